import anyio.to_thread
import pytest

from memd.config import RetentionConfig
from memd.consolidate.retention import Retention, compact_payload
from memd.models import EventKind, Kind
from memd.recall.provenance import explain_node
from memd.store import events, ledger, summaries
from memd.time_expressions import DAY_MS

OUTPUT = "line of output\n" * 200


@pytest.fixture
def keep(vault, clock):
    def make(**config):
        return Retention(vault.db, RetentionConfig(**config), clock, lambda: None)

    return make


@pytest.fixture
def old(vault, clock):
    """A turn of a hundred days ago whose memory cites one line of what a tool said."""
    prompt = vault.event("why does it fail?" + OUTPUT)
    call = vault.event(
        None, kind=EventKind.TOOL_RESULT, tool_input={"command": "make"},
        tool_response={"stdout": OUTPUT + "E: 17 failed"},
    )  # fmt: skip
    number = vault.put("It failed.", quality=0.1)
    vault.derives(number, call, "E: 17 failed")
    vault.db.write_now(lambda tx: events.mark_distilled(tx, [prompt, call]))
    clock.advance(s=100 * 86_400)
    return prompt, call, number


def payload(vault, number):
    return vault.db.read_now(lambda tx: events.events_by_ids(tx, [number]))[number].payload


def days(clock, count=1.0):
    clock.advance(ms=int(count * DAY_MS))


async def test_an_old_tool_event_is_cut_down_to_what_is_cited_and_a_prompt_stays(vault, keep, old):
    prompt, call, number = old
    before = payload(vault, prompt)
    preview = await keep().preview()
    assert (preview.compacted, preview.is_dry_run) == (1, True)
    assert "stdout" in payload(vault, call)["tool_response"]
    done = await keep().apply()
    assert (done.compacted, done.bytes) == (preview.compacted, preview.bytes)
    assert done.bytes > len(OUTPUT)
    cut = payload(vault, call)
    assert (cut["cited"], cut["tool_input"]) == (["E: 17 failed"], {"command": "make"})
    assert payload(vault, prompt) == before
    found = await explain_node(vault.db, "summary", str(number), depth=1, project_ids=None)
    assert [source.quote for source in found.sources] == ["E: 17 failed"]
    assert (await keep().apply()).is_empty


async def test_young_and_pending_events_and_those_that_the_settings_spare_stay(vault, keep, clock):
    young = vault.event(None, kind=EventKind.TOOL_RESULT, tool_response={"stdout": OUTPUT})
    clock.advance(s=100 * 86_400)
    assert (await keep().apply()).is_empty, "it was not distilled"
    vault.db.write_now(lambda tx: events.mark_distilled(tx, [young]))
    assert (await keep(events_days=101).apply()).is_empty
    assert (await keep(events_days=0).apply()).is_empty
    assert (await keep(events_days=99).apply()).compacted == 1


@pytest.mark.usefixtures("old")
async def test_before_the_first_round_a_preview_is_shown_for_a_day(vault, keep, clock):
    retention = keep()
    await retention.run_due()
    assert "1 events compacted" in str(retention.status()["why"])
    assert retention.status()["last"] is None
    days(clock, 0.9)
    await keep().run_due()
    assert vault.db.read_now(lambda tx: tx.execute("SELECT count(*) FROM compactions").get) == 0
    days(clock, 0.2)
    retention = keep()
    await retention.run_due()
    assert retention.status()["last"]["compacted"] == 1
    assert retention.status()["why"] == ""


@pytest.mark.usefixtures("old")
async def test_other_settings_are_previewed_again_and_disabled_does_nothing(keep, clock):
    for _ in range(3):
        await keep(events_days=0).run_due()
        days(clock)
    other = keep(events_days=30)
    await other.run_due()
    assert other.status()["preview"]["compacted"] == 1
    off = keep(enabled=False)
    days(clock, 2)
    await off.run_due()
    assert off.status()["last"] is None or off.status()["last"]["compacted"] == 0


@pytest.mark.usefixtures("old")
async def test_a_round_that_has_run_comes_again_daily_without_a_preview(vault, keep, clock):
    retention = keep()
    await retention.apply()
    number = vault.event(None, kind=EventKind.TOOL_RESULT, tool_response={"stdout": OUTPUT})
    vault.db.write_now(lambda tx: events.mark_distilled(tx, [number]))
    for _ in range(91):
        assert "stdout" in payload(vault, number)["tool_response"]
        days(clock)
        await retention.run_due()
    assert "stdout" not in payload(vault, number).get("tool_response", {})


@pytest.mark.usefixtures("old")
async def test_a_clock_that_leaps_years_ahead_and_back_makes_nothing_old(vault, keep, clock):
    retention = keep()
    await retention.apply()
    number = vault.event(None, kind=EventKind.TOOL_RESULT, tool_response={"stdout": OUTPUT})
    vault.db.write_now(lambda tx: events.mark_distilled(tx, [number]))
    present = clock.now
    for ahead in (12 * 365, 13 * 365, 12 * 365 + 8, 13 * 365 + 8):
        days(clock, ahead)
        await retention.run_due()
        assert "after so long a pause" in str(retention.status()["why"])
        clock.now = present
        await retention.run_due()
    assert "stdout" in payload(vault, number)["tool_response"]
    assert retention.status()["why"] == ""
    for _ in range(91):
        days(clock)
        await retention.run_due()
    assert "stdout" not in payload(vault, number).get("tool_response", {}), "its day has come"


@pytest.mark.usefixtures("old")
async def test_a_first_preview_that_a_wrong_clock_made_is_made_again(keep, clock):
    days(clock, 12 * 365)
    retention = keep()
    await retention.run_due()
    days(clock, -12 * 365)
    await retention.run_due()
    assert retention.status()["last"] is None
    days(clock)
    await retention.run_due()
    assert retention.status()["last"]["compacted"] == 1


async def test_after_a_long_pause_there_is_a_preview_and_a_week_later_a_round(vault, keep, clock):
    retention = keep()
    number = vault.event(None, kind=EventKind.TOOL_RESULT, tool_response={"stdout": OUTPUT})
    vault.db.write_now(lambda tx: events.mark_distilled(tx, [number]))
    days(clock, 91)
    await retention.apply()
    days(clock, 60)
    await retention.run_due()
    before = retention.status()["last"]
    assert before["compacted"] == 1
    for _ in range(7):
        assert retention.status()["last"] == before
        days(clock)
        await retention.run_due()
    assert retention.status()["last"]["at"] == clock.now
    assert retention.status()["preview"] is None


async def test_a_vault_near_its_ceiling_warns_and_beyond_it_compacts_younger_events(
    vault, keep, clock
):
    number = vault.event(None, kind=EventKind.TOOL_RESULT, tool_response={"stdout": OUTPUT})
    vault.db.write_now(lambda tx: events.mark_distilled(tx, [number]))
    used = await anyio.to_thread.run_sync(vault.db.size)
    near = keep(size_bytes=int(used / 0.9))
    await near.run_due()
    assert "of its ceiling" in str(near.status()["why"])
    days(clock, 13)
    assert (await keep(size_bytes=1).apply()).is_empty
    days(clock, 2)
    assert (await keep(size_bytes=0).apply()).is_empty
    done = await keep(size_bytes=1).apply()
    assert (done.compacted, done.days) == (1, 14)


async def test_a_memory_that_expired_long_ago_is_deleted_and_not_forgotten(vault, keep, clock):
    number = vault.put("buy milk", kind=Kind.TASK, expires_at=clock() + DAY_MS)
    pinned = vault.put("kept", expires_at=clock() + DAY_MS)
    vault.db.write_now(lambda tx: summaries.pin_summary(tx, pinned, 1))
    uid = vault.get(number).uid
    await vault.indexer.load()
    await vault.indexer.settle()
    days(clock, 365)
    assert (await keep().apply()).expired == 0
    days(clock, 2)
    assert (await keep().preview()).expired == 1
    assert (await keep().apply()).expired == 1
    await vault.indexer.settle()
    assert (vault.get(number), vault.get(pinned) is None) == (None, False)
    assert not vault.db.read_now(lambda tx: ledger.is_forgotten(tx, uid))


async def test_an_unused_memory_is_archived_only_if_configured_and_shown_when_repeated(
    vault, keep, clock
):
    poor, good = vault.put("poor", quality=0.1), vault.put("good", quality=0.9)
    days(clock, 400)
    assert (await keep().apply()).archived == 0
    retention = keep(archive_days=365)
    assert (await retention.preview()).archived == 1
    assert (await retention.apply()).archived == 1
    await vault.indexer.load()
    await vault.indexer.settle()
    columns = vault.index.columns
    hidden = {int(n): bool(h) for n, h in zip(columns.summary_id, columns.retired, strict=True)}
    assert hidden == {poor: True, good: False}
    found = await explain_node(vault.db, "summary", str(poor), depth=1, project_ids=None)
    assert found.verdict == "archived"
    vault.db.write_now(lambda tx: summaries.strengthen_summary(tx, poor, clock()))
    await vault.indexer.settle()
    assert not vault.index.columns.retired.any()


async def test_a_large_vault_is_compacted_in_small_transactions_and_shrinks(clock, vault, keep):
    session = vault.session()
    for _ in range(160):
        vault.event(None, session, kind=EventKind.TOOL_RESULT, tool_response={"stdout": OUTPUT})
    vault.db.write_now(lambda tx: events.mark_distilled(tx, range(1, 161)))
    clock.advance(s=100 * 86_400)
    retention = keep()
    assert (await retention.apply()).compacted == 160
    await vault.db.compact()
    assert await anyio.to_thread.run_sync(vault.db.size) < 160 * len(OUTPUT)


LONG = "x" * 500


def test_the_short_values_of_a_tool_call_stay_and_its_output_goes():
    payload = {
        "tool_name": "Bash",
        "tool_input": {"command": "pytest " + LONG, "timeout": 5, "content": LONG},
        "tool_response": {"stdout": LONG, "stderr": "", "interrupted": False, "lines": [1, 2]},
    }
    assert compact_payload(payload, []) == {
        "tool_name": "Bash",
        "tool_input": {"command": ("pytest " + LONG)[:400], "timeout": 5},
        "tool_response": {"stderr": "", "interrupted": False},
    }


def test_what_the_user_said_to_a_tool_call_stays_whole():
    payload = {"tool_input": {"content": "x" * 9_000}, "said": "no, because " * 99}
    assert compact_payload(payload, []) == {"said": payload["said"]}

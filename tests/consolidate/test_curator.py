import dataclasses

import pytest

from memd.consolidate.remember import NewMemory
from memd.consolidate.sources import Origin
from memd.errors import BadRequest, UnknownId
from memd.models import UNTITLED, Authority, Kind, Tier
from tests.consolidate.conftest import make_curator

HAND = Authority.USER_HAND
NOTE = NewMemory(
    "Deploy with make ship. It asks for the token.", project_key="/a", project_name="a"
)


@pytest.fixture
def nudges():
    return []


@pytest.fixture
def curator(vault, nudges):
    def redact(text):
        return text.replace("hunter2", "[REDACTED]")

    return make_curator(vault, lambda: nudges.append(1), redact)


async def test_a_memory_is_titled_by_its_first_sentence(vault, curator, nudges):
    kept = await curator.remember(NOTE)
    assert (kept.outcome, kept.superseded, nudges) == ("created", (), [1])
    summary = vault.get(kept.id)
    assert (summary.title, summary.body) == ("Deploy with make ship", NOTE.text)
    assert (summary.tier, summary.source, summary.rule) == (Tier.AGENT, "agent", UNTITLED)
    titled = await curator.remember(
        dataclasses.replace(NOTE, title="How we ship", text="Ship it with make.")
    )
    assert vault.get(titled.id).rule == "remembered"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Use it, e.g. for tests. Always.", "Use it, e.g. for tests"),
        ("Really? Yes.", "Really?"),
        ("one\ntwo", "one"),
        ("x" * 200, "x" * 89 + "…"),
        (".", "."),
    ],
)
async def test_a_title_is_one_short_line(vault, curator, text, title):
    assert vault.get((await curator.remember(NewMemory(text))).id).title == title


async def test_a_secret_never_reaches_the_vault(vault, curator):
    secret = dataclasses.replace(
        NOTE, text="it is hunter2", title="hunter2!", tags=("hunter2",), files=("/hunter2.py",)
    )
    summary = vault.get((await curator.remember(secret)).id)
    assert "hunter2" not in str(summary)
    assert all("hunter2" not in edge.to_id for edge in vault.edges(summary.id))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"text": "  \n "}, "text: empty"),
        ({"text": "ä" * 40_000}, "64 KiB"),
        ({"topic_key": "k" * 201}, "topic_key"),
        ({"topic_key": "two words"}, "topic_key"),
        # Two of them, redacted, would be one topic, and the second value would hide the first.
        ({"topic_key": "k.hunter2"}, "topic_key: it looks like a secret"),
    ],
)
async def test_an_invalid_memory_is_refused_with_advice(vault, curator, nudges, change, says):
    with pytest.raises(BadRequest, match=says):
        await curator.remember(dataclasses.replace(NOTE, **change))
    assert vault.live() == []
    assert nudges == []


async def test_of_several_memories_all_are_written_or_none_and_the_bad_one_is_named(vault, curator):
    with pytest.raises(BadRequest, match="memory 2 of 2: text: empty"):
        await curator.remember_many([NOTE, NewMemory("")])
    assert vault.live() == []
    kept = await curator.remember_many([NOTE, dataclasses.replace(NOTE, text="Another"), NOTE])
    assert [k.outcome for k in kept] == ["created", "created", "duplicate"]


async def test_a_pin_makes_it_core_and_keeps_its_time(curator, clock, nudges):
    number = (await curator.remember(NOTE)).id
    first = clock()
    pinned = await curator.pin(number, True, HAND)
    assert (pinned.tier, pinned.pinned_at) == (Tier.CORE, first)
    clock.advance(s=5)
    assert (await curator.pin(number, pinned=True, by=HAND)).pinned_at == first
    unpinned = await curator.pin(number, pinned=False, by=HAND)
    assert (unpinned.tier, unpinned.pinned_at) == (Tier.AGENT, None)
    assert len(nudges) == 4


@pytest.mark.parametrize("number", [999, 0, -1, 10**30])
async def test_what_is_not_there_can_be_neither_pinned_nor_forgotten(curator, number):
    with pytest.raises(UnknownId, match="there is no memory"):
        await curator.pin(number, pinned=True, by=HAND)
    with pytest.raises(UnknownId, match="there is no memory"):
        await curator.forget([number], dry_run=False)


async def test_a_dry_run_forgets_nothing_and_reports_the_same(vault, curator, nudges):
    number = (await curator.remember(NOTE)).id
    await vault.indexer.settle()
    planned = await curator.forget([number, 999], dry_run=True)
    assert vault.live() == [number]
    done = await curator.forget([number, 999], dry_run=False)
    assert vault.live() == []
    assert dataclasses.replace(planned, is_dry_run=False) == done
    assert (done.unknown, done.summaries[0].id) == ((999,), number)
    assert len(nudges) == 2


async def test_nothing_of_a_forgotten_text_stays_in_any_table(vault, curator):
    odd = dataclasses.replace(
        NOTE, text="the xylophonist wrote zzyzx", tags=("qqfrobnicate",), files=("/p/mxyzptlk.py",)
    )
    number = (await curator.remember(odd)).id
    await vault.indexer.settle()
    await curator.forget([number], dry_run=False)
    await vault.indexer.settle()

    def everything(tx):
        names = [
            name for (name,) in tx.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        return [str(row) for name in names for row in tx.execute(f'SELECT * FROM "{name}"')]  # noqa: S608  # the schema's own names

    rows = vault.db.read_now(everything)
    text = "\n".join(rows)
    assert not [word for word in ("xylophon", "zzyzx", "qqfrobnicate", "mxyzptlk") if word in text]


async def test_two_origins_named_by_secrets_stay_apart_when_redacted(vault, curator):
    def note(part, text):
        return dataclasses.replace(NOTE, text=text, title="t", origin=Origin("/a.md", part))

    one = await curator.remember(note("pass hunter2", "one"))
    other = await curator.remember(note("pass [REDACTED]", "two"))
    assert other.superseded == ()
    assert all("hunter2" not in edge.to_id for edge in vault.edges(one.id))
    assert (await curator.remember(note("pass hunter2", "three"))).superseded == (one.id,)


async def test_memories_missing_from_a_file_expire_and_the_index_is_nudged(vault, curator, nudges):
    kept = await curator.remember(dataclasses.replace(NOTE, origin=Origin("/a.md", "x")))
    assert await curator.withdraw("/a.md", {kept.id}) == ()
    assert nudges == [1]
    assert await curator.withdraw("/a.md", ()) == (kept.id,)
    assert nudges == [1, 1]
    assert vault.get(kept.id).expires_at is not None


async def test_a_deliberate_task_has_an_end(vault, clock):
    curator = make_curator(vault, lambda: None, task_days=30)
    month = clock() + 30 * 86_400_000

    async def end(text, **fields):
        memory = NewMemory(text, kind=fields.pop("kind", Kind.TASK), **fields)
        return vault.get((await curator.remember(memory)).id).expires_at

    assert await end("Call the harbour") == month
    assert await end("Call the baker", expires_at=month + 5) == month + 5
    assert await end("The harbour is closed", kind=Kind.FACT) is None
    assert await end("Call the mayor", source="import:elsewhere") is None
    clock.advance(s=60)
    assert await end("Call the harbour") == month + 60_000
    endless = make_curator(vault, lambda: None)
    kept = await endless.remember(NewMemory("Call the priest", kind=Kind.TASK))
    assert vault.get(kept.id).expires_at is None

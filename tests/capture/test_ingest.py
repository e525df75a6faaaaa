"""Ingestor: acknowledged means committed, once, whoever else fails, waits or goes away."""

import dataclasses
import json
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from structlog.testing import capture_logs

from memd.capture import ingest, spool
from memd.capture.ingest import CONCURRENT_CALLS_MAX, Ingestor
from memd.capture.prepare import CaptureRequest
from memd.capture.project import ProjectOverrides, ProjectResolver
from memd.config import CaptureConfig
from memd.errors import SpoolBroken, VaultError, VaultFull
from memd.models import EventKind
from memd.store import NewPassage, events, fulltext, ledger, projects, summaries
from tests.factories import make_draft

DATA = Path(__file__).parents[1] / "data" / "claude-code"
LEDGER = [json.loads(line) for line in (DATA / "ledger/hooks.jsonl").read_text().splitlines()]
SECRET = "AKIAIOSFODNN7EXAMPLE"


@pytest.fixture
def rings():
    return []


@pytest.fixture
def spool_dir(tmp_path):
    return str(tmp_path / "spool")


@pytest.fixture
def ingestor(db, clock, spool_dir, rings):
    return Ingestor(db, CaptureConfig(), clock, spool_dir, lambda: rings.append(1))


def prompt(number, text="hello", session="s", **fields):
    payload = {
        "session_id": session, "hook_event_name": "UserPromptSubmit", "prompt_id": f"p{number}",
        "prompt": text, "cwd": "/nowhere/p",
    }  # fmt: skip
    return CaptureRequest("claude-code", payload, **fields)


async def stored(db):
    def all_of_them(tx):
        found = events.events_by_ids(tx, range(1, 2_000))
        return [found[number] for number in sorted(found)]

    return await db.read(all_of_them)


async def balance(db):
    found = await db.read(ledger.balance)
    parts = ("stored", "duplicate", "filtered", "refused")
    assert found["received"] == sum(found[part] for part in parts)
    return found


def spooled(spool_dir, request):
    line = {"client": request.client, "payload": request.payload, "at": request.at}
    spool.append(spool_dir, json.dumps({**line, "directory": request.directory}).encode())


async def until(condition):
    with anyio.fail_after(60):
        while not condition():  # noqa: ASYNC110  # what is waited for is inside, without an event
            await anyio.sleep(0.001)


def appended(spool_dir, torn):
    with Path(spool_dir, "active").open("ab") as file:
        file.write(torn)


def file_of(db):
    return Path(db.path).read_bytes()


def on_disk(db):
    return b"".join(Path(db.path + suffix).read_bytes() for suffix in ("", "-wal"))


async def test_a_receipt_says_what_became_of_each(ingestor, db, clock, rings):
    requests = [
        prompt(1),
        prompt(1),
        CaptureRequest("claude-code", {"session_id": "s", "hook_event_name": "PostToolUse",
                                       "tool_name": "mcp__memd__mem_search", "tool_use_id": "t"}),
        CaptureRequest("claude-code", ["no object"]),
        CaptureRequest("somebody", {"of": 1}),
    ]  # fmt: skip
    receipts = await ingestor.capture(requests)
    assert [receipt.outcome for receipt in receipts] == [
        "stored", "duplicate", "filtered", "refused", "stored"
    ]  # fmt: skip
    assert receipts[0].seq == receipts[1].seq == 1
    assert receipts[2].reason == "ignored tool: mcp__memd__*"
    assert receipts[3].reason == "the payload is not an object"
    event, unknown = await stored(db)
    assert (unknown.kind, unknown.payload) == (EventKind.OTHER, {"of": 1})
    assert (event.at, event.kind, event.source) == (clock(), EventKind.PROMPT, "live")
    assert rings == [1]
    assert (await balance(db))["received"] == 5


async def test_the_real_sessions_are_stored_once_each(ingestor, db):
    def requests():
        return [
            CaptureRequest(
                "claude-code",
                line["stdin"],
                int(line["t"] * 1000),
                line["env"]["CLAUDE_PROJECT_DIR"],
            )
            for line in LEDGER
        ]

    first = await ingestor.capture(requests())
    assert {receipt.outcome for receipt in first} == {"stored", "filtered"}
    assert [r.reason for r in first if r.outcome == "filtered"] == ["the compaction's own agent"]
    second = await ingestor.capture(requests())
    assert {receipt.outcome for receipt in second} == {"duplicate", "filtered"}
    sessions = await db.read(lambda tx: projects.sessions(tx, range(1, 9)))
    assert len(sessions) == 3
    assert {session.directory for session in sessions.values()} == {"/home/dev/ledger"}
    assert sessions[1].title.startswith("Login answers 500")


async def test_no_planted_secret_reaches_the_vault(ingestor, db):
    for number, line in enumerate(LEDGER):
        await ingestor.capture([CaptureRequest("claude-code", line["stdin"], number + 1)])
    await ingestor.capture([prompt(1, f"key {SECRET} " + "word " * 20_000 + SECRET)])
    text = json.dumps([event.payload for event in await stored(db)])
    assert SECRET not in text
    assert "wJalrXUtnFEMI" not in text
    assert "<private>" not in text
    assert SECRET.encode() not in on_disk(db)


async def test_what_was_read_is_measured_and_ignored_paths_are_dropped(ingestor, db):
    def tool(use, path, **more):
        payload = {"session_id": "s", "hook_event_name": "PostToolUse", "tool_use_id": use,
                   "tool_name": "Read", "tool_input": {"file_path": path}, "tool_response": "a\nb\n"}  # fmt: skip
        return CaptureRequest("claude-code", payload | more, directory="/home/u/build/p")

    receipts = await ingestor.capture([tool("t1", "/home/u/build/p/a.py"), tool("t2", "dist/a.js")])
    assert [receipt.reason for receipt in receipts] == [None, "ignored path: dist/"]
    (event,) = await stored(db)
    assert event.payload["tool_response"] == {
        "path": "/home/u/build/p/a.py",
        "bytes": 4,
        "lines": 2,
    }


@pytest.mark.parametrize("at", [-5, 0, 2**60, True, None])
async def test_a_time_that_makes_no_sense_is_now(ingestor, db, clock, at):
    await ingestor.capture([prompt(1, at=at)])
    assert (await stored(db))[0].at == clock()


async def test_texts_that_no_database_can_hold_are_stored_all_the_same(ingestor, db):
    payload = {
        "session_id": "s\ud800",
        "hook_event_name": "Odd\udfff",
        "n": float("nan"),
        "x": "\0\ud83d",
    }
    request = CaptureRequest("claude-code", payload, directory="/p/\udcff", source="nonsense")
    assert (await ingestor.capture([request]))[0].outcome == "stored"
    (event,) = await stored(db)
    assert (event.kind, event.source) == (EventKind.OTHER, "live")


async def test_after_a_commit_that_failed_nothing_of_it_is_taken_for_known(ingestor, db):
    db._writer.set_commit_hook(lambda: True)  # SQLite rolls back instead
    with pytest.raises(VaultError):
        await ingestor.capture([prompt(1), prompt(2)])
    db._writer.set_commit_hook(None)
    receipts = await ingestor.capture([prompt(1), prompt(2)])
    assert [receipt.outcome for receipt in receipts] == ["stored", "stored"]
    assert len(await stored(db)) == 2


async def test_a_client_that_disconnects_cancels_no_other_call(ingestor, db):
    free = threading.Event()
    receipts = {}
    scopes = {}

    async def capture(number):
        with anyio.CancelScope() as scopes[number]:
            receipts[number] = await ingestor.capture([prompt(number)])

    async with anyio.create_task_group() as group:
        group.start_soon(db.write, lambda _: free.wait(60))
        group.start_soon(capture, 0)
        await until(lambda: ingestor._group_commit._has_leader)
        for number in range(1, 9):
            group.start_soon(capture, number)
        await until(lambda: ingestor.status()["pending"] >= 8)
        for number in (0, 1, 2, 8):  # the one that commits for others, and some that wait
            scopes[number].cancel()
        await anyio.lowlevel.checkpoint()
        free.set()
    assert {number for number, r in receipts.items() if r[0].outcome == "stored"} >= {3, 4, 5, 6, 7}
    turns = [event.turn for event in await stored(db)]
    assert len(turns) == len(set(turns))
    assert set(turns) >= {f"p{number}" for number in (3, 4, 5, 6, 7)}
    again = await ingestor.capture([prompt(number) for number in range(9)])
    assert {receipt.outcome for receipt in again} <= {"stored", "duplicate"}
    assert len(await stored(db)) == 9
    assert ingestor.status()["pending"] == 0


async def test_more_calls_than_may_wait_are_all_served(ingestor, db):
    async with anyio.create_task_group() as group:
        for number in range(CONCURRENT_CALLS_MAX + 30):
            group.start_soon(ingestor.capture, [prompt(number)])
    assert len(await stored(db)) == CONCURRENT_CALLS_MAX + 30


async def test_a_call_with_more_than_a_batch_is_stored_in_order(ingestor):
    receipts = await ingestor.capture([prompt(number) for number in range(450)])
    assert [receipt.seq for receipt in receipts] == list(range(1, 451))


async def test_a_full_disk_fails_every_waiting_capture_and_the_next_commit_is_tried(
    ingestor, db, rings
):
    await ingestor.capture([prompt(0)])
    pages = db._writer.pragma("page_count")
    db._writer.pragma("max_page_count", pages)
    refused = []

    async def capture(number):
        try:
            await ingestor.capture([prompt(number, "word " * 8_000)])
        except VaultFull:
            refused.append(number)

    async with anyio.create_task_group() as group:
        for number in range(1, 6):
            group.start_soon(capture, number)
    assert sorted(refused) == [1, 2, 3, 4, 5]
    assert ingestor.status()["failing"] == "VaultFull"
    db._writer.pragma("max_page_count", 1_000_000)
    assert (await ingestor.capture([prompt(1)]))[0].outcome == "stored"
    assert ingestor.status()["failing"] is None
    assert (await balance(db))["received"] == 2
    assert len(rings) == 2


async def test_the_spool_is_drained_in_order_once_and_then_empty(ingestor, db, spool_dir, rings):
    for number in range(450):
        spooled(spool_dir, prompt(number, at=1_000 + number))
    assert await ingestor.drain() == 450
    assert [event.turn for event in await stored(db)] == [f"p{number}" for number in range(450)]
    assert {event.source for event in await stored(db)} == {"spool"}
    assert spool.measure(spool_dir).files == 0
    assert ingestor.status()["spool"] == {"files": 0, "bytes": 0, "lines": 0}
    assert await ingestor.drain() == 0
    assert rings


async def test_what_was_stored_late_and_spooled_too_is_one_event(ingestor, db, spool_dir):
    request = prompt(1, at=7)
    end = {"session_id": "s", "hook_event_name": "SessionEnd", "reason": "other"}
    nameless = CaptureRequest("claude-code", end, at=7)
    await ingestor.capture([request, nameless])
    spooled(spool_dir, request)
    spooled(spool_dir, nameless)
    await ingestor.drain()
    assert len(await stored(db)) == 2
    assert (await balance(db))["duplicate"] == 2


async def test_torn_and_meaningless_lines_are_counted_and_stop_nothing(ingestor, db, spool_dir):
    spooled(spool_dir, prompt(1))
    torn = b'[1]\n{"payload": {"raw": "x"}, "client": "claude-code", "at": "no"}\n{"client": "cl'
    appended(spool_dir, torn)
    spooled(spool_dir, prompt(2))
    appended(spool_dir, b'{"torn')
    await ingestor.drain()
    assert [event.turn for event in await stored(db)] == ["p1", "p2"]
    assert await db.read(lambda tx: ledger.outcome_reasons(tx, "refused")) == {
        "torn spool line": 3, "the payload is not JSON": 1
    }  # fmt: skip
    await balance(db)


async def test_a_spool_file_outlives_a_commit_that_failed(ingestor, db, spool_dir):
    for number in range(3):
        spooled(spool_dir, prompt(number, "word " * 6_000))
    db._writer.pragma("max_page_count", db._writer.pragma("page_count"))
    with pytest.raises(VaultFull):
        await ingestor.drain()
    assert spool.measure(spool_dir).lines == 3
    db._writer.pragma("max_page_count", 1_000_000)
    spooled(spool_dir, prompt(3))
    await ingestor.drain()
    assert [event.turn for event in await stored(db)] == ["p0", "p1", "p2", "p3"]
    assert (await balance(db))["received"] == 4


async def test_a_running_ingestor_finds_what_is_spooled_by_a_client_that_came(
    ingestor, spool_dir, monkeypatch
):
    monkeypatch.setattr(ingest, "SPOOL_POLL_S", 0.05)
    spooled(spool_dir, prompt(1))
    async with anyio.create_task_group() as group:
        group.start_soon(ingestor.run)
        await until(lambda: ingestor.status()["commit"]["events"] == 1)
        spooled(spool_dir, prompt(2))
        ingestor.notice_client()
        await until(lambda: ingestor.status()["commit"] == {"events": 1, "captures": 1, "total": 2})
        group.cancel_scope.cancel()


@pytest.fixture
def broken_spool(spool_dir):
    Path(spool_dir).mkdir()
    Path(spool_dir, "000000000001.jsonl").mkdir()
    Path(spool_dir, "active").write_bytes(b"x\n")


@pytest.mark.usefixtures("broken_spool")
async def test_a_spool_that_cannot_be_read_raises_spool_broken(ingestor):
    with pytest.raises(SpoolBroken):
        await ingestor.drain()


@pytest.mark.usefixtures("broken_spool")
async def test_every_place_of_the_spool_is_drained_though_one_cannot_be_read(
    db, clock, spool_dir, tmp_path
):
    others = [str(tmp_path / "second"), str(tmp_path / "third")]
    ingestor = Ingestor(db, CaptureConfig(), clock, spool_dir, lambda: None, spool_fallbacks=others)
    for number, place in enumerate(others):
        spooled(place, prompt(number))
    with pytest.raises(SpoolBroken):
        await ingestor.drain()
    assert [event.turn for event in await stored(db)] == ["p0", "p1"]
    assert [spool.measure(place).files for place in others] == [0, 0]
    assert ingestor.status()["spool"]["lines"] == 1  # what lies in the one that is broken


async def test_a_refusal_is_logged_without_its_text(ingestor):
    with capture_logs() as told:
        await ingestor.capture(
            [prompt(1), CaptureRequest("somebody", "a"), CaptureRequest("somebody", "b")]
        )
    assert told == [
        {
            "room": "intake",
            "log_level": "warning",
            "event": "event_refused",
            "reason": "the payload is not an object",
            "count": 2,
        }
    ]


async def test_a_spooled_line_that_memd_fails_on_is_refused_and_blocks_nothing(
    db, clock, spool_dir
):
    def fragile(value):
        if "poison" in str(value):
            raise AttributeError
        return value

    ingestor = Ingestor(db, CaptureConfig(), clock, spool_dir, lambda: None, fragile)
    for request in (prompt(1), prompt(2, "poison"), prompt(3)):
        spooled(spool_dir, request)
    await ingestor.drain()
    assert [event.payload["prompt"] for event in await stored(db)] == ["hello", "hello"]
    assert (await balance(db))["refused"] == 1
    with pytest.raises(AttributeError):
        await ingestor.capture([prompt(4, "poison")])


async def test_the_entropy_rule_is_a_setting(db, clock, spool_dir):
    word = "".join(f"{a}{b}" for a, b in zip("qWmZkXvPtRbN", "728164935046", strict=True))
    strict = Ingestor(db, CaptureConfig(), clock, spool_dir, lambda: None)
    lax = Ingestor(db, CaptureConfig(entropy=False), clock, spool_dir, lambda: None)
    await strict.capture([prompt(1, f"x {word}")])
    await lax.capture([prompt(2, f"x {word}")])
    assert [e.payload["prompt"] for e in await stored(db)] == [
        "x [REDACTED:high-entropy]",
        f"x {word}",
    ]


def turn(number, *events_):
    """Events of one turn as hook payloads, after its prompt."""
    common = {"session_id": "s", "cwd": "/nowhere/p", "prompt_id": f"p{number}"}
    return [CaptureRequest("claude-code", common | event) for event in events_]


TOOL = {
    "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "t1",
    "tool_input": {"command": "cat diary"}, "tool_response": {"stdout": "dear diary"},
}  # fmt: skip
STOP = {"hook_event_name": "Stop", "last_assistant_message": "Your diary says hello."}


@pytest.mark.parametrize(
    "text",
    [
        "<private>read my diary</private>",
        "<private>a</private>\n<private>b</private> .",
        "<private>read my diary",
        "read my diary</private>",
        "&lt;private>read my diary&lt;/private>",
    ],
)
async def test_all_of_a_private_turn_is_private_until_the_next_prompt(ingestor, db, text):
    asked = await ingestor.capture([prompt(1, text), *turn(1, TOOL, STOP)])
    assert [receipt.outcome for receipt in asked] == ["stored", "filtered", "filtered"]
    assert {receipt.reason for receipt in asked[1:]} == {"private turn"}
    late = await ingestor.capture(
        [prompt(2, "and now?"), *turn(1, TOOL | {"tool_use_id": "t2"}), *turn(2, STOP)]
    )
    assert [receipt.outcome for receipt in late] == ["stored", "filtered", "stored"]
    assert [event.payload.get("prompt") for event in await stored(db)] == [
        "[REDACTED:private]", "and now?", None,
    ]  # fmt: skip
    (session,) = (await db.read(lambda tx: projects.sessions(tx, [1]))).values()
    assert session.title == "and now?"
    assert b"diary" not in on_disk(db).replace(b"Your diary", b"")
    assert (await balance(db))["filtered"] == 3


async def test_a_prompt_with_something_public_in_it_is_an_ordinary_one(ingestor):
    receipts = await ingestor.capture(
        [prompt(1, "read <private>my diary</private> please"), *turn(1, TOOL, STOP)]
    )
    assert {receipt.outcome for receipt in receipts} == {"stored"}


async def test_an_import_does_not_bring_a_private_turn_back(ingestor, db):
    live = [prompt(1, "<private>x</private>"), *turn(1, TOOL, STOP)]
    await ingestor.capture(live)
    again = [dataclasses.replace(request, source="import", at=5) for request in live]
    assert [r.outcome for r in await ingestor.capture(again)] == ["duplicate", "filtered", "filtered"]  # fmt: skip
    assert len(await stored(db)) == 1


async def test_an_import_alone_keeps_a_private_turn_private(ingestor, db):
    requests = [prompt(1, "<private>x</private>"), *turn(1, TOOL, STOP)]
    await ingestor.capture([dataclasses.replace(one, source="import") for one in requests])
    assert len(await stored(db)) == 1


async def test_what_overtook_its_private_prompt_is_taken_out_again(ingestor, db, spool_dir):
    spooled(spool_dir, prompt(1, "<private>x</private>", at=5))
    await ingestor.capture([prompt(0), *turn(1, TOOL, STOP)])
    assert len(await stored(db)) == 3
    await ingestor.drain()
    assert [event.turn for event in await stored(db)] == ["p0", "p1"]
    again = await ingestor.capture(turn(1, TOOL))
    assert again[0].outcome == "filtered"
    assert b"dear diary" not in file_of(db)


async def test_no_word_of_what_was_taken_out_again_stays_on_the_disk(ingestor, db):
    await ingestor.capture([prompt(0), *turn(1, TOOL, STOP)])
    (owner,) = (await db.read(lambda tx: projects.sessions(tx, [1]))).values()
    draft = make_draft(title="Your diary says hello", sources=())

    def distil(tx):
        number, _ = summaries.put_summary(
            tx, "u", draft, summaries.SummaryOwner(owner.project_id, 1, "x"), 1
        )
        fulltext.put_passages(tx, [NewPassage(number, 0, 0, 5, "diary", "diary", "", ())])
        fulltext.remove_changes(tx, [fulltext.last_change(tx)])
        return number

    number = await db.write(distil)
    await ingestor.capture([prompt(1, "<private>x</private>")])
    await ingestor.scrub()
    # It is the memory's turn when the turn has been distilled anew.
    assert b"dear diary" not in on_disk(db)
    assert b"says hello" in on_disk(db)

    def distil_again(tx):
        fulltext.remove_passages(tx, number)
        summaries.delete_summary(tx, number)
        fulltext.remove_changes(tx, [fulltext.last_change(tx)])
        events.mark_distilled(tx, range(10))

    await db.write(distil_again)
    await ingestor.scrub()
    assert not {word for word in (b"diary", b"hello", b"diari") if word in on_disk(db)} - {
        b"hello"  # of the first prompt
    }


async def test_what_cannot_be_scrubbed_now_is_scrubbed_later(ingestor, db, monkeypatch):
    await ingestor.capture([prompt(0), *turn(1, TOOL, STOP)])
    await ingestor.capture([prompt(1, "<private>x</private>")])

    async def refuses(_):
        raise VaultFull("full")

    with monkeypatch.context() as patch:
        patch.setattr(db, "write", refuses)
        with pytest.raises(VaultFull):
            await ingestor.scrub()
    assert b"diary" in on_disk(db)
    await ingestor.scrub()
    assert b"diary" not in on_disk(db)


async def test_where_no_turn_is_named_the_last_prompt_decides(ingestor, clock):
    def nameless(event):
        return CaptureRequest("claude-code", {"session_id": "s", **event}, at=clock())

    first = {"hook_event_name": "UserPromptSubmit", "prompt": "<private>x", "uuid": "u1"}
    assert (await ingestor.capture([nameless(first)]))[0].outcome == "stored"
    clock.advance(s=1)
    found = await ingestor.capture([nameless(TOOL), nameless({"hook_event_name": "SessionEnd"})])
    assert [receipt.reason for receipt in found] == ["private turn", None]
    clock.advance(s=1)
    other = {"hook_event_name": "UserPromptSubmit", "prompt": "hello", "uuid": "u2"}
    found = await ingestor.capture([nameless(other), nameless(STOP)])
    assert [receipt.outcome for receipt in found] == ["stored", "stored"]


async def test_a_compaction_tells_a_private_turn_again_and_is_dropped(ingestor, clock):
    summary = {"hook_event_name": "PostCompact", "compact_summary": "The diary says hello."}
    await ingestor.capture([prompt(1, "<private>x</private>")])
    clock.advance(s=1)
    asked = await ingestor.capture([prompt(2, "go on"), *turn(2, summary, STOP)])
    assert [receipt.outcome for receipt in asked] == ["stored", "filtered", "stored"]


def switch(db, scope, target, captures):
    db.write_now(lambda tx: projects.put_switch(tx, scope, target, captures, True, 1))


@pytest.mark.parametrize("source", ["live", "spool", "import"])
@pytest.mark.parametrize(
    "said",
    [
        ("project", "/nowhere/p", "switched off for this project"),
        ("session", "s", "switched off for this session"),
    ],
)
async def test_nothing_is_stored_where_memd_is_switched_off(ingestor, db, spool_dir, source, said):
    scope, target, reason = said
    switch(db, scope, target, captures=False)
    if source == "spool":
        spooled(spool_dir, prompt(1))
        await ingestor.drain()
    else:
        (receipt,) = await ingestor.capture([prompt(1, source=source)])
        assert (receipt.outcome, receipt.reason) == ("filtered", reason)
    assert await stored(db) == []
    assert await db.read(projects.projects) == []
    assert await db.read(lambda tx: ledger.outcome_reasons(tx, "filtered")) == {reason: 1}
    switch(db, scope, target, captures=True)
    assert (await ingestor.capture([prompt(1)]))[0].outcome == "stored"
    await balance(db)


async def test_a_session_is_let_into_a_project_that_is_off(ingestor, db):
    switch(db, "project", "/nowhere/p", captures=False)
    switch(db, "session", "s", captures=True)
    found = await ingestor.capture([prompt(1), prompt(1, session="other")])
    assert [receipt.outcome for receipt in found] == ["stored", "filtered"]


async def test_capture_disabled_keeps_nothing_but_what_a_person_imports(db, clock, spool_dir):
    ingestor = Ingestor(db, CaptureConfig(enabled=False), clock, spool_dir, lambda: None)
    spooled(spool_dir, prompt(1))
    await ingestor.drain()
    found = await ingestor.capture([prompt(2), prompt(3, source="import")])
    assert [receipt.outcome for receipt in found] == ["filtered", "stored"]
    assert found[0].reason == "switched off in config.toml"
    assert (await balance(db))["filtered"] == 2


async def test_a_sender_may_switch_its_own_capture_off(ingestor, db, spool_dir):
    (receipt,) = await ingestor.capture([prompt(1, capture=False)])
    assert (receipt.outcome, receipt.reason) == ("filtered", "switched off by its sender")
    line = {"client": "claude-code", "payload": prompt(2).payload, "capture": False}
    spool.append(spool_dir, json.dumps(line).encode())
    await ingestor.drain()
    assert await stored(db) == []
    assert (await balance(db))["filtered"] == 2


async def test_a_persons_own_word_names_the_project(db, clock, spool_dir, tmp_path):
    file = tmp_path / "projects.toml"
    file.write_text('[projects]\n"/nowhere/p" = "mine"')
    resolver = ProjectResolver(clock, ProjectOverrides(str(file), "/"))
    ingestor = Ingestor(db, CaptureConfig(), clock, spool_dir, lambda: None, projects=resolver)
    await ingestor.capture([prompt(1)])
    (project,) = await db.read(projects.projects)
    assert (project.key, project.reason) == ("mine", "projects.toml says so for /nowhere/p")
    assert ingestor.status()["trouble"] is None
    file.write_text("[projects")
    await ingestor.capture([prompt(2, session="s2")])
    assert "is not used: it is not valid TOML" in ingestor.status()["trouble"]
    assert len(await db.read(projects.projects)) == 2

"""One id, one or two events: what comes twice is stored once, and what is different is never lost."""

import json

import pytest

from memd.capture import spool, truncate
from memd.capture.ingest import Ingestor
from memd.capture.prepare import CaptureRequest
from memd.config import CaptureConfig
from memd.store import events
from memd.text import PRIVATE
from memd.transfer.transcripts import TranscriptReader

UNIQUE = "b71a2c55-77e5-4884-aeb6-5b097c91094e"
CALL = "toolu_a602977a657e43fcbde12a"
LONG = "The report begins here. " + "All is well in this line. " * 4_000


@pytest.fixture
def spool_dir(tmp_path):
    return str(tmp_path / "spool")


@pytest.fixture
def ingestor(db, clock, spool_dir):
    return Ingestor(db, CaptureConfig(), clock, spool_dir, lambda: None)


def hook(name, at=1_000_000, session="s", source="live", **fields):
    payload = {"session_id": session, "hook_event_name": name, "cwd": "/nowhere/p", **fields}
    return CaptureRequest("claude-code", payload, at, source=source)


def prompt(text, turn=UNIQUE, **more):
    return hook("UserPromptSubmit", prompt=text, prompt_id=turn, **more)


def bash(command, output, call=CALL, **more):
    return hook(
        "PostToolUse", tool_name="Bash", tool_use_id=call, prompt_id=UNIQUE,
        tool_input={"command": command}, tool_response={"stdout": output, "stderr": ""}, **more,
    )  # fmt: skip


def answer(text, **more):
    return hook("Stop", prompt_id=UNIQUE, last_assistant_message=text, **more)


async def outcomes(ingestor, *requests):
    return [receipt.outcome for receipt in await ingestor.capture(requests)]


async def texts(db):
    found = await db.read(lambda tx: events.events_by_ids(tx, range(1, 500)))
    return [json.dumps(found[number].payload, ensure_ascii=False) for number in sorted(found)]


def spool_as_the_hook_does(spool_dir, request):
    line = {"client": request.client, "payload": truncate.clean_payload(request.payload)}
    spool.append(spool_dir, json.dumps({**line, "at": request.at, "directory": None}).encode())


DIFFERENT = {
    "prompts with one word changed": (prompt("Use Redis here."), prompt("Use SQLite here.")),
    "prompts with another number": (prompt("Retry 3 times"), prompt("Retry 5 times")),
    "prompts with another symbol": (prompt("keep if a == b"), prompt("keep if a != b")),
    "prompts with a weak id": (prompt("one", turn="7"), prompt("two", turn="7")),
    "long prompts with another end": (
        prompt("word " * 3_000 + "yes"),
        prompt("word " * 3_000 + "no"),
    ),
    "prompts too long to be stored whole": (prompt(LONG + "Say yes."), prompt(LONG + "Say no.")),
    "a private prompt, then a public one": (
        prompt("<private>mine</private>"),
        prompt("for everybody"),
    ),
    "one command with two results": (bash("make test", "2 failed"), bash("make test", "all pass")),
    "two commands": (bash("ls", "a", call="call_1"), bash("cat a", "a", call="call_1")),
    "results that differ in a number": (
        hook("PostToolUse", tool_name="mcp__db__count", tool_use_id="c", tool_response={"rows": 1}),
        hook("PostToolUse", tool_name="mcp__db__count", tool_use_id="c", tool_response={"rows": 2}),
    ),
    "two calls": (
        hook("PreToolUse", tool_name="Write", tool_use_id="c", tool_input={"content": "a"}),
        hook("PreToolUse", tool_name="Write", tool_use_id="c", tool_input={"content": "b"}),
    ),
    "two failures": (
        hook("PostToolUseFailure", tool_name="Bash", tool_use_id="c", error="Exit code 1"),
        hook("PostToolUseFailure", tool_name="Bash", tool_use_id="c", error="Exit code 2"),
    ),
    "answers that differ after many words": (
        answer("so " * 300 + "it works"),
        answer("so " * 300 + "it fails"),
    ),
    "reports of a subagent": (
        hook("SubagentStop", agent_id="a1", last_assistant_message="Found nothing."),
        hook("SubagentStop", agent_id="a1", last_assistant_message="Found the cause."),
    ),
    "compactions long after one another": (
        hook("PreCompact", prompt_id=UNIQUE, trigger="auto"),
        hook("PreCompact", prompt_id=UNIQUE, trigger="auto", at=1_900_000),
    ),
}


@pytest.mark.parametrize("both", DIFFERENT.values(), ids=DIFFERENT)
async def test_two_events_with_one_id_are_both_stored_and_their_copies_are_not(ingestor, db, both):
    assert await outcomes(ingestor, *both) == ["stored", "stored"]
    before = await texts(db)
    assert await outcomes(ingestor, *both, *reversed(both)) == ["duplicate"] * 4
    assert await texts(db) == before
    assert len(set(before)) == 2 or both[0].payload == both[1].payload


@pytest.mark.parametrize("both", DIFFERENT.values(), ids=DIFFERENT)
async def test_what_was_spooled_meanwhile_is_no_further_event(ingestor, db, spool_dir, both):
    await ingestor.capture(both)
    for request in both:
        spool_as_the_hook_does(spool_dir, request)
    await ingestor.drain()
    assert len(await texts(db)) == 2


SAME = {
    "a secret": prompt("the key is AKIAIOSFODNN7EXAMPLE, use it"),
    "a long prompt": prompt(LONG + "Say yes."),
    "a long result": bash("cat log", LONG * 3 + "the end"),
    "many long fields": hook(
        "PostToolUse", tool_name="mcp__x__y", tool_use_id="c",
        tool_input={f"f{n}": LONG for n in range(12)}, tool_response=[LONG] * 5,
    ),
    "a read": hook(
        "PostToolUse", tool_name="Read", tool_use_id="c", tool_input={"file_path": "/p/a.py"},
        tool_response={"type": "text", "file": {"filePath": "/p/a.py", "content": "import os\n" * 9_000}},
    ),
    "an edit": hook(
        "PostToolUse", tool_name="Edit", tool_use_id="c",
        tool_input={"file_path": "/p/a.py", "old_string": "a", "new_string": "b"},
        tool_response={"filePath": "/p/a.py", "oldString": "a", "newString": "b", "originalFile": "a"},
    ),
    "half a character": prompt("broken \ud83d here"),
}  # fmt: skip


@pytest.mark.parametrize("request_", SAME.values(), ids=SAME)
@pytest.mark.parametrize("entropy", [True, False])
async def test_a_copy_by_another_way_is_one_event(db, clock, spool_dir, request_, entropy):
    ingestor = Ingestor(db, CaptureConfig(entropy=entropy), clock, spool_dir, lambda: None)
    assert await outcomes(ingestor, request_, request_) == ["stored", "duplicate"]
    spool_as_the_hook_does(spool_dir, request_)
    await ingestor.drain()
    assert len(await texts(db)) == 1


async def test_a_forgotten_second_event_stays_forgotten_and_the_first_stays(ingestor, db):
    _, second = await ingestor.capture([prompt("Use Redis here."), prompt("Use SQLite here.")])
    await db.write(lambda tx: events.forget_events(tx, [second.seq], 3))
    (receipt,) = await ingestor.capture([prompt("Use SQLite here.")])
    assert (receipt.outcome, receipt.reason) == ("filtered", "forgotten")
    assert await outcomes(ingestor, prompt("Use Redis here.")) == ["duplicate"]
    assert len(await texts(db)) == 1


async def test_a_second_private_prompt_takes_only_its_own_part_of_the_turn(ingestor, db):
    await ingestor.capture([
        prompt("an open question", at=10),
        bash("ls", "open result", call="c1", at=20),
        bash("cat diary", "hidden result", call="c2", at=40),
    ])  # fmt: skip
    await ingestor.capture([prompt("<private>a secret question</private>", at=30)])
    await ingestor.capture([bash("cat diary", "hidden later", call="c3", at=50)])
    await ingestor.capture([bash("ls b", "open and late", call="c4", at=25)])
    found = "\n".join(await texts(db))
    assert "open result" in found
    assert "open and late" in found
    assert "hidden" not in found
    assert PRIVATE in found


def line(text, turn=UNIQUE, **fields):
    return json.dumps({
        "type": "user", "uuid": f"u-{text[:9]}", "sessionId": "s", "cwd": "/nowhere/p",
        "promptId": turn, "timestamp": "2026-08-20T10:00:00.000Z",
        "message": {"role": "user", "content": text}, **fields,
    })  # fmt: skip


def imported(*lines):
    reader = TranscriptReader()
    found = [one for text in lines for one in reader.feed(text)] + reader.finish()
    return [
        CaptureRequest("claude-code", one.payload, one.at, one.directory, source="import")
        for one in found
    ]


@pytest.mark.parametrize("live_first", [True, False])
@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("Why does login answer 500?", "Why does login answer 500?"),
        ("look at  [Image #1]\nplease", "look at [Image #1] please"),
        ("explain this selection", "explain this selection <ide_opened_file>a.py</ide_opened_file>"),
        ("my key is AKIAIOSFODNN7EXAMPLE", "my key is AKIAIOSFODNN7EXAMPLE"),
        (LONG, LONG),
    ],
)  # fmt: skip
async def test_a_prompt_its_second_hook_and_its_import_are_one_event(
    ingestor, db, typed, written, live_first
):
    live, later = [prompt(typed), prompt(typed)], imported(line(written))
    await ingestor.capture(live if live_first else later)
    assert set(await outcomes(ingestor, *(later if live_first else live))) == {"duplicate"}
    assert len(await texts(db)) == 1


async def test_two_prompts_of_one_id_converge_with_their_import(ingestor, db):
    first, second = "Keep sessions in Redis.", "No, I said files, in the home directory!"
    await ingestor.capture([prompt(first), prompt(second, at=2_000_000)])
    requests = imported(line(first), line("Other turn", turn="other"), line(second))
    assert await outcomes(ingestor, *requests) == ["duplicate", "stored", "duplicate"]
    assert len(await texts(db)) == 3


async def test_an_import_brings_the_second_prompt_that_no_hook_saw(ingestor):
    await ingestor.capture([prompt("Keep sessions in Redis.")])
    requests = imported(
        line("Keep sessions in Redis."),
        line("Other turn", turn="other"),
        line("Now write the changelog of version two."),
    )
    assert await outcomes(ingestor, *requests) == ["duplicate", "stored", "stored"]
    assert await outcomes(ingestor, *requests) == ["duplicate"] * 3


async def test_calls_and_texts_without_ids_are_those_that_a_transcript_numbers(ingestor, db):
    base = {"session_id": "s", "cwd": "/p"}
    run = base | {
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "make  test"},
    }
    said = base | {"hook_event_name": "UserPromptSubmit", "prompt": "Test it."}
    hooks = [
        (1_000_000, said), (1_003_000, run | {"timestamp": "a"}), (1_006_000, run | {"timestamp": "b"}),
    ]  # fmt: skip
    lines = [
        (999_000, said | {"prompt_id": "turn"}), (1_003_500, run | {"tool_use_id": "call_1"}),
        (1_006_500, run | {"tool_use_id": "call_2"}), (1_400_000, run | {"tool_use_id": "call_3"}),
    ]  # fmt: skip
    for source, told in (("live", hooks), ("import", lines)):
        for at, payload in told:
            await ingestor.capture([CaptureRequest("copilot", payload, at, source=source)])
    kept = (await db.read(lambda tx: events.events_by_ids(tx, range(1, 9)))).values()
    assert [event.at for event in kept] == [1_000_000, 1_003_000, 1_006_000, 1_400_000]

"""A session that a client before 1.1 resumed in a new file: one session, each turn once, whichever file is read."""

import itertools
import json

import pytest

from memd.capture.ingest import Ingestor
from memd.capture.prepare import CaptureRequest
from memd.config import CaptureConfig
from memd.models import EventKind
from memd.store import events, projects
from memd.transfer.transcripts import TranscriptReader

OLD, NEW = "11111111-aaaa-4aaa-8aaa-000000000001", "22222222-bbbb-4bbb-8bbb-000000000002"
RESUMED = "2025-06-12T09:00:00.000Z"


def line_id(number):
    return f"{number:08x}-1234-4abc-8def-0123456789ab"


def make_line(kind, number, content, minute, **fields):
    message = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"msg_{number}", "model": "some-model"}
    return {
        "type": kind, "uuid": line_id(number), "sessionId": OLD, "cwd": "/src/kiln", "version": "1.0.17", "isSidechain": False,
        "timestamp": f"2025-06-11T20:{minute:02}:00.000Z", "message": message, **fields,
    }  # fmt: skip


def say(number, words, minute, **fields):
    return make_line("user", number, words, minute, **fields)


def work(number, minute, command):
    use = f"toolu_01{number:020d}"
    called = {"type": "tool_use", "id": use, "name": "Bash", "input": {"command": command}}
    done = {"type": "tool_result", "tool_use_id": use, "content": "ok"}
    return [
        make_line("assistant", number, [called], minute),
        make_line("user", number + 1, [done], minute),
    ]


def answer(number, words, minute, **fields):
    return make_line("assistant", number, [{"type": "text", "text": words}], minute, **fields)


FIRST = [
    say(1, "Fire the kiln at cone 6", 0),
    *work(2, 1, "kiln --cone 6"),
    answer(4, "The kiln runs at cone 6.", 2),
    say(5, "Now log the temperature", 10),
    *work(6, 11, "kiln --log"),
    answer(8, "The log goes to kiln.log.", 12),
]


def resume(lines, renewed=(), new=NEW):
    """The past of a session as the client copies it: answers and results under the new name and the time of now."""
    for line in lines:
        is_typed = line["type"] == "user" and isinstance(line["message"]["content"], str)
        copied = line if is_typed else {**line, "sessionId": new, "timestamp": RESUMED}
        if line["uuid"] in renewed:
            copied = {**copied, "uuid": "f" + copied["uuid"][1:]}
        yield copied


LATER = [
    say(21, "Now open the lid", 0, sessionId=NEW, timestamp="2025-06-12T09:01:00.000Z"),
    answer(22, "It is open.", 0, sessionId=NEW, timestamp="2025-06-12T09:01:09.000Z"),
]


def read(lines):
    reader = TranscriptReader()
    found = [p for line in lines for p in reader.feed(json.dumps(line))]
    return found + reader.finish()


async def store(ingestor, found):
    requests = [
        CaptureRequest("claude-code", p.payload, p.at, p.directory, "import") for p in found
    ]
    return [receipt.outcome for receipt in await ingestor.capture(requests)]


async def read_turns(db):
    """What is stored of each session: its prompts, each with the kinds of events that follow it."""

    def run(tx):
        found = {}
        for session in projects.find_sessions(tx, ""):
            stored = events.session_events(tx, session.id, 0, 100)
            turns = found.setdefault(session.key, [])
            for event in sorted(stored, key=lambda e: (e.at, e.id)):
                if event.kind is EventKind.PROMPT:
                    turns.append((event.payload["prompt"], []))
                else:
                    turns[-1][1].append(event.kind)
        return found

    return await db.read(run)


DONE = [EventKind.TOOL_RESULT, EventKind.STOP]
EXPECTED = {
    OLD: [("Fire the kiln at cone 6", DONE), ("Now log the temperature", DONE)],
    NEW: [("Now open the lid", [EventKind.STOP])],
}


@pytest.fixture
def ingestor(db, clock, tmp_path):
    return Ingestor(db, CaptureConfig(), clock, str(tmp_path), lambda: None)


def test_a_copied_interruption_is_of_the_session_that_was_interrupted():
    stopped = say(9, "[Request interrupted by user]", 0, sessionId=NEW, timestamp=RESUMED)
    cut = answer(10, "I stop.", 0, sessionId=NEW, timestamp=RESUMED)
    found = read([FIRST[0], cut, stopped, FIRST[4]])
    assert {p.payload["session_id"] for p in found} == {OLD}
    assert [p.payload["hook_event_name"] for p in found][1] == "AgentText"


async def test_a_resumed_file_alone_has_the_whole_session(db, ingestor):
    await store(ingestor, read([*resume(FIRST), *LATER]))
    assert await read_turns(db) == EXPECTED


RENEWED = {line["uuid"] for line in FIRST[4:]}


@pytest.mark.parametrize("renewed", [(), RENEWED], ids=["same-uuids", "renewed-uuids"])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
async def test_a_session_and_its_copies_are_stored_once_in_any_order(db, ingestor, order, renewed):
    third = "33333333-cccc-4ccc-8ccc-000000000003"
    resumed = [*resume(FIRST, renewed), *LATER]
    files = [read(FIRST), read(resumed), read([*resume(resumed, new=third)])]
    for number in order:
        await store(ingestor, files[number])
    assert await read_turns(db) == EXPECTED
    for found in files:
        assert "stored" not in await store(ingestor, found)


def test_the_summary_that_an_old_client_goes_on_from_is_a_compaction():
    words = "This session is being continued from a previous conversation that ran out of context.\nSummary:\nThe kiln is hot."
    summary, *_ = read([say(1, words, 0), *FIRST[4:]])
    assert summary.payload["hook_event_name"] == "PostCompact"
    assert summary.payload["compact_summary"] == "The kiln is hot."


def test_the_words_of_a_subagent_stay_in_the_session_that_their_lines_name():
    aside = say(30, "Look for cracks", 1, isSidechain=True, sessionId=NEW)
    found = answer(31, "There are none.", 1, isSidechain=True, sessionId=NEW)
    payloads = [p.payload for p in read([FIRST[0], aside, found])]
    assert [(p["session_id"], p["hook_event_name"]) for p in payloads] == [
        (OLD, "UserPromptSubmit"), (NEW, "SubagentStop"),
    ]  # fmt: skip

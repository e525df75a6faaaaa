"""Transcripts: they tell what the hooks told, and nothing that nobody said or did."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.capture.intake import CaptureRequest, Intake
from memd.config import CaptureConfig
from memd.exchange.transcripts import TranscriptReader
from memd.store import books, events

DATA = Path(__file__).parents[1] / "data" / "claude-code"
LEDGER = sorted((DATA / "ledger/projects/-home-dev-ledger").glob("*.jsonl"))
EVERY = [
    DATA / f"every-event/transcript-{name}.jsonl" for name in ("sample", "subagent-sample")
]
LIVE_ONLY = {"SessionStart", "SessionEnd", "PreToolUse", "PreCompact", "SubagentStart"}


def read(*files, seen=None):
    found = []
    for file in files:
        reader = TranscriptReader(**({} if seen is None else {"seen": seen}))
        for line in file.read_bytes().splitlines(keepends=True):
            found += reader.feed(line)
        found += reader.finish()
    return found


def told(*lines):
    """What a reader makes of these lines, given as dicts or raw text."""
    reader = TranscriptReader()
    found = [
        p
        for line in lines
        for p in reader.feed(line if isinstance(line, str) else json.dumps(line))
    ]
    return [p.payload for p in found + reader.finish()], reader.skipped


def user(content, turn="p1", **fields):
    return {
        "type": "user",
        "sessionId": "s",
        "promptId": turn,
        "message": {"content": content},
        **fields,
    }


def assistant(*blocks, **fields):
    return {
        "type": "assistant",
        "sessionId": "s",
        "message": {"content": list(blocks)},
        **fields,
    }


def text(words):
    return {"type": "text", "text": words}


def call(use, name="Bash", **given_input):
    return {"type": "tool_use", "id": use, "name": name, "input": given_input}


def result(use, content="done", **fields):
    return {"type": "tool_result", "tool_use_id": use, "content": content, **fields}


def names(payloads):
    return [payload["hook_event_name"] for payload in payloads]


def of_hooks(file):
    lines = (DATA / file).read_text(encoding="utf-8").splitlines()
    return [
        CaptureRequest(
            "claude-code",
            line["stdin"],
            int(line.get("t", 1) * 1000),
            line["env"]["CLAUDE_PROJECT_DIR"],
        )
        for line in map(json.loads, lines)
    ]


def of_transcripts(files):
    return [
        CaptureRequest("claude-code", p.payload, p.at, p.directory, "import")
        for p in read(*files)
    ]


@pytest.mark.parametrize("hooks_first", [True, False])
@pytest.mark.parametrize(
    ("hooks", "files"),
    [("ledger/hooks.jsonl", LEDGER), ("every-event/hook-samples.jsonl", EVERY)],
    ids=["ledger", "every-event"],
)
async def test_hooks_and_transcripts_of_one_session_converge(
    db, clock, tmp_path, hooks, files, hooks_first
):
    intake = Intake(db, CaptureConfig(), clock, str(tmp_path), lambda: None)
    live, imported = of_hooks(hooks), of_transcripts(files)
    assert len(imported) > 5
    first, second = (live, imported) if hooks_first else (imported, live)
    assert "stored" in {receipt.outcome for receipt in await intake.capture(first)}
    receipts = await intake.capture(second)
    new = [
        r.payload["hook_event_name"]
        for r, got in zip(second, receipts, strict=True)
        if got.outcome == "stored"
    ]
    assert set(new) <= (set() if hooks_first else LIVE_ONLY)
    found = await db.read(lambda tx: events.by_ids(tx, range(1, 500)))
    wanted = {e.name for e in found.values()}
    assert wanted >= {
        "UserPromptSubmit",
        "PostToolUse",
        "PostToolUseFailure",
        "Stop",
        "PostCompact",
    }
    assert await db.read(lambda tx: books.reasons(tx, "refused")) == {}


def test_times_and_directories_are_those_of_the_session():
    first, *_, last = read(LEDGER[0])
    assert first.at == 1_795_188_370_158
    assert last.at > first.at
    assert {p.directory for p in read(*LEDGER)} == {"/home/dev/ledger"}


@pytest.mark.parametrize("stamp", ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", 5, "soon"])
def test_a_time_that_cannot_be_is_no_time(stamp):
    """One of them in a batch would be refused, and the whole file with it."""
    line = {"type": "user", "sessionId": "s", "timestamp": stamp, "message": {"content": "hi"}}
    (payload,) = TranscriptReader().feed(json.dumps(line))
    assert payload.at is None


def test_a_turn_is_its_prompt_its_results_and_its_last_word():
    payloads, _ = told(
        user("Fix it"),
        assistant(text("Let me look.")),
        assistant(call("t1", command="make")),
        user([result("t1", "Exit code 2", is_error=True)], toolUseResult="Error: Exit code 2"),
        assistant(call("t2", command="make")),
        user([result("t2")], toolUseResult={"stdout": "done"}),
        assistant(text("Fixed.")),
        user("Thanks", turn="p2"),
    )
    assert names(payloads) == [
        "UserPromptSubmit",
        "PostToolUseFailure",
        "PostToolUse",
        "Stop",
        "UserPromptSubmit",
    ]
    prompt, failure, success, stop, _ = payloads
    assert prompt["prompt"] == "Fix it"
    assert (failure["error"], failure["tool_input"]) == ("Exit code 2", {"command": "make"})
    assert success["tool_response"] == {"stdout": "done"}
    assert (stop["last_assistant_message"], stop["prompt_id"]) == ("Fixed.", "p1")


def test_a_turn_that_was_broken_off_has_no_last_word():
    payloads, skipped = told(
        user("Fix it"), assistant(text("Let me look.")), assistant(call("t1")),
        user([text("[Request interrupted by user for tool use]")]), user("Other", turn="p2"),
    )  # fmt: skip
    assert names(payloads) == ["UserPromptSubmit", "UserPromptSubmit"]
    assert skipped["interruption"] == 1


def test_a_stop_that_a_hook_sent_back_to_work_is_told_twice():
    stop = {"type": "system", "subtype": "stop_hook_summary", "sessionId": "s"}
    payloads, _ = told(user("Go"), assistant(text("One.")), stop, assistant(text("Two.")), stop)
    assert [p.get("last_assistant_message") for p in payloads] == [None, "One.", "Two."]


def test_what_nobody_said_is_left_out_and_counted():
    payloads, skipped = told(
        user("injected", isMeta=True),
        user("<command-name>/compact</command-name>"),
        user("<local-command-stdout>ok</local-command-stdout>"),
        user("<system-reminder>be good</system-reminder>"),
        user("Hello <system-reminder>psst</system-reminder>"),
        assistant({"type": "thinking", "thinking": "hm"}),
        assistant(text("API Error"), isApiErrorMessage=True),
        {"type": "attachment", "attachment": {}},
        {"type": "api-request"},
        "{torn", "[]", "", "7",
    )  # fmt: skip
    assert [p["prompt"] for p in payloads] == ["Hello"]
    assert skipped == {
        "injected by the client": 1, "command": 2, "no text": 1, "error of the API": 1,
        "not conversation": 2, "broken line": 1, "not an object": 2,
    }  # fmt: skip


def test_our_own_tools_and_calls_that_never_ran_are_left_out():
    payloads, skipped = told(
        assistant(call("t1", "mcp__memd__mem_search")), user([result("t1")]),
        assistant(call("t2")), user([result("t2", "<tool_use_error>no</tool_use_error>", is_error=True)]),
        assistant(call("t3")), user([result("t3", "The user doesn't want to proceed", is_error=True)]),
        user([result("t4")]),
    )  # fmt: skip
    assert payloads == []
    assert skipped == {
        "memd's own tool": 1,
        "a call that was not run": 2,
        "a result without its call": 1,
    }


def test_several_results_in_one_line_keep_each_its_own():
    payloads, _ = told(
        assistant(call("t1"), call("t2")),
        user(
            [result("t1", "one"), result("t2", [text("two")])], toolUseResult={"stdout": "one"}
        ),
    )
    assert [p["tool_response"] for p in payloads] == ["one", [text("two")]]


def test_a_subagent_is_told_with_its_name_and_its_last_word():
    about = {"isSidechain": True, "agentId": "a1"}
    payloads, _ = told(
        user("task", **about), assistant(call("t1"), attributionAgent="Explore", **about),
        user([result("t1")], **about), assistant(text("Found."), **about),
    )  # fmt: skip
    assert names(payloads) == ["PostToolUse", "SubagentStop"]
    assert all((p["agent_id"], p["agent_type"]) == ("a1", "Explore") for p in payloads)
    assert payloads[1]["last_assistant_message"] == "Found."


def test_a_compaction_is_told_without_the_words_around_it():
    words = (
        "This session is being continued from a previous conversation.\n\n"
        "<system-reminder>tools</system-reminder>\nSummary:\nWe chose Redis.\n\nThen tests.\n\n"
        "If you need specific details from before compaction (like), read /x\nContinue the conversation from where"
    )
    boundary = {"type": "system", "subtype": "compact_boundary", "sessionId": "s",
                "compactMetadata": {"trigger": "auto"}}  # fmt: skip
    ((payload,), _) = told(boundary, user(words, isCompactSummary=True))
    assert payload["compact_summary"] == "We chose Redis.\n\nThen tests."
    assert (payload["trigger"], payload["prompt_id"]) == ("auto", "p1")


def test_a_file_that_was_forked_into_does_not_tell_it_again():
    seen = set()
    once = read(LEDGER[0], seen=seen)
    assert once
    assert read(LEDGER[0], seen=seen) == []


def test_a_transcript_of_an_old_client_hangs_on_its_uuids():
    payloads, _ = told(
        user("Hi", turn=None, uuid="u1"),
        assistant(text("Yo."), uuid="u2"),
        user("Hi", turn=None, uuid="u3"),
    )
    assert [payload["uuid"] for payload in payloads] == ["u1", "u2", "u3"]
    assert all("prompt_id" not in payload for payload in payloads)


FIELDS = ["type", "sessionId", "promptId", "message", "content", "timestamp", "agentId", "subtype",
          "isCompactSummary", "toolUseResult", "id", "name", "input", "tool_use_id", "text", "uuid"]  # fmt: skip
WORDS = [
    "user",
    "assistant",
    "system",
    "tool_use",
    "tool_result",
    "text",
    "compact_boundary",
    "s",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6)
    ),
    max_leaves=15,
)
LINES = st.builds(lambda kind, rest: {**rest, "type": kind, "sessionId": "s"},
                  st.sampled_from(WORDS[:3]), st.dictionaries(st.sampled_from(FIELDS), JSON))  # fmt: skip


@given(st.lists(LINES | JSON, max_size=6), st.binary(max_size=20))
def test_nothing_in_a_file_makes_it_raise(lines, noise):
    reader = TranscriptReader()
    for line in lines:
        json.dumps([p.payload for p in reader.feed(json.dumps(line))])
    reader.feed(noise)
    reader.finish()

"""Transcripts give the payloads that the hooks gave, and nothing that was not said or done."""

import json
from pathlib import Path

import pytest

from memd.capture.ingest import Ingestor
from memd.capture.prepare import CaptureRequest
from memd.config import CaptureConfig
from memd.store import events, ledger, projects
from memd.transfer import parse_time_ms
from memd.transfer.transcripts import TranscriptReader
from tests.tables import every_row

DATA = Path(__file__).parents[1] / "data" / "claude-code"
LEDGER = sorted((DATA / "ledger/projects/-home-dev-ledger").glob("*.jsonl"))
EVERY = [DATA / f"every-event/transcript-{name}.jsonl" for name in ("sample", "subagent-sample")]
LIVE_ONLY = {"SessionStart", "SessionEnd", "PreToolUse", "PreCompact", "SubagentStart"}


def read(*files, seen=None):
    found = []
    for file in files:
        reader = TranscriptReader(**({} if seen is None else {"seen": seen}))
        for line in file.read_bytes().splitlines(keepends=True):
            found += reader.feed(line)
        found += reader.finish()
    return found


def read_lines(*lines, reader=None, is_growing=False):
    """The payloads of these lines, given as dicts or raw text."""
    reader = reader or TranscriptReader()
    found = [
        p
        for line in lines
        for p in reader.feed(line if isinstance(line, str) else json.dumps(line))
    ]
    found += reader.finish(is_growing=is_growing)
    return [p.payload for p in found], reader.skipped


def user(content, turn="p1", **fields):
    said = {"type": "user", "sessionId": "s", "promptId": turn, "message": {"content": content}}
    return said | fields


def assistant(*blocks, why=None, **fields):
    message = {"content": list(blocks), "stop_reason": why}
    return {"type": "assistant", "sessionId": "s", "message": message} | fields


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
        CaptureRequest("claude-code", p.payload, p.at, p.directory, "import") for p in read(*files)
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
    ingestor = Ingestor(db, CaptureConfig(), clock, str(tmp_path), lambda: None)
    live, imported = of_hooks(hooks), of_transcripts(files)
    assert len(imported) > 5
    first, second = (live, imported) if hooks_first else (imported, live)
    assert "stored" in {receipt.outcome for receipt in await ingestor.capture(first)}
    receipts = await ingestor.capture(second)
    new = [
        r.payload["hook_event_name"]
        for r, got in zip(second, receipts, strict=True)
        if got.outcome == "stored"
    ]
    assert set(new) <= (set() if hooks_first else LIVE_ONLY)
    found = await db.read(lambda tx: events.events_by_ids(tx, range(1, 500)))
    wanted = {e.name for e in found.values()}
    assert wanted >= {
        "UserPromptSubmit",
        "PostToolUse",
        "PostToolUseFailure",
        "Stop",
        "PostCompact",
    }
    assert await db.read(lambda tx: ledger.outcome_reasons(tx, "refused")) == {}


def test_a_turn_is_its_prompt_its_results_and_its_last_text():
    payloads, _ = read_lines(
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
        "AgentText",
        "PostToolUseFailure",
        "PostToolUse",
        "Stop",
        "UserPromptSubmit",
    ]
    prompt, _, failure, success, stop, _ = payloads
    assert prompt["prompt"] == "Fix it"
    assert (failure["error"], failure["tool_input"]) == ("Exit code 2", {"command": "make"})
    assert success["tool_response"] == {"stdout": "done"}
    assert (stop["last_assistant_message"], stop["prompt_id"]) == ("Fixed.", "p1")


def test_what_was_not_said_is_left_out_and_counted():
    payloads, skipped = read_lines(
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
    payloads, skipped = read_lines(
        assistant(call("t1", "mcp__memd__mem_search")), user([result("t1")]),
        assistant(call("t2")), user([result("t2", "<tool_use_error>no</tool_use_error>", is_error=True)]),
        user([result("t4")]),
    )  # fmt: skip
    assert payloads == []
    assert skipped == {
        "memd's own tool": 1,
        "a call that was not run": 1,
        "a result without its call": 1,
    }


def test_a_subagent_is_read_with_its_name_and_its_last_text():
    about = {"isSidechain": True, "agentId": "a1"}
    payloads, _ = read_lines(
        user("task", **about), assistant(call("t1"), attributionAgent="Explore", **about),
        user([result("t1")], **about), assistant(text("Found."), **about),
    )  # fmt: skip
    assert names(payloads) == ["PostToolUse", "SubagentStop"]
    assert all((p["agent_id"], p["agent_type"]) == ("a1", "Explore") for p in payloads)
    assert payloads[1]["last_assistant_message"] == "Found."


def test_a_compaction_is_read_without_the_instructions_around_it():
    words = (
        "This session is being continued from a previous conversation.\n\n"
        "<system-reminder>tools</system-reminder>\nSummary:\nWe chose Redis.\n\nThen tests.\n\n"
        "If you need specific details from before compaction (like), read /x\nContinue the conversation from where"
    )
    boundary = {"type": "system", "subtype": "compact_boundary", "sessionId": "s",
                "compactMetadata": {"trigger": "auto"}}  # fmt: skip
    ((payload,), _) = read_lines(boundary, user(words, isCompactSummary=True))
    assert payload["compact_summary"] == "We chose Redis.\n\nThen tests."
    assert (payload["trigger"], payload["prompt_id"]) == ("auto", "p1")


def test_lines_copied_by_a_fork_are_left_out():
    seen = set()
    once = read(LEDGER[0], seen=seen)
    assert once
    assert read(LEDGER[0], seen=seen) == []


def test_a_transcript_of_an_old_client_is_identified_by_its_uuids():
    payloads, _ = read_lines(
        user("Hi", turn=None, uuid="u1"),
        assistant(text("Yo."), uuid="u2"),
        user("Hi", turn=None, uuid="u3"),
    )
    assert [payload["uuid"] for payload in payloads] == ["u1", "u2", "u3"]
    assert all("prompt_id" not in payload for payload in payloads)


def fork(file, session, *, marked):
    """The lines of a session as a fork has them: another session's name over the same uuids."""
    for line in map(json.loads, file.read_bytes().splitlines()):
        if line.get("uuid") and marked:
            line["forkedFrom"] = {"sessionId": line["sessionId"], "messageUuid": line["uuid"]}
        yield {**line, "sessionId": session}


def captures(payloads):
    return [CaptureRequest("claude-code", p, 1, "/home/dev/ledger", "import") for p in payloads]


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("fork_first", [True, False])
async def test_a_fork_that_is_imported_by_itself_stores_nothing_twice(
    db, clock, tmp_path, marked, fork_first
):
    ingestor = Ingestor(db, CaptureConfig(), clock, str(tmp_path), lambda: None)
    original = captures(p.payload for p in read(LEDGER[0]))
    own = user("And now?", turn="0d2f51e2-1a7c-4a41-9d3a-c2f0f1c0a001", sessionId="f0")
    copied, _ = read_lines(*fork(LEDGER[0], "f0", marked=marked), own)
    assert len(copied) == len(original) + 1
    first, second = original, captures(copied)
    if fork_first:
        first, second = second, first
    assert {r.outcome for r in await ingestor.capture(first)} == {"stored"}
    again = [r.outcome for r in await ingestor.capture(second)]
    assert again.count("stored") == (0 if fork_first else 1)
    sessions = await db.read(lambda tx: projects.find_sessions(tx, ""))
    by_key = {session.key: session for session in sessions}
    if marked:
        assert by_key[LEDGER[0].stem].title.startswith("Login answers 500")
        assert by_key["f0"].title == "And now?"


async def test_context_injected_by_memd_is_not_imported(db, clock, tmp_path):
    ingestor = Ingestor(db, CaptureConfig(), clock, str(tmp_path), lambda: None)
    block = '<recalled-memory source="memd" project="p">\nWe chose Redis.\n</recalled-memory>'
    payloads, _ = read_lines(
        {"type": "attachment", "sessionId": "s", "attachment": {"type": "hook_additional_context", "content": [block]}},
        user(f"{block} Go on"), assistant(text(f"As remembered: {block}"), why="end_turn"),
    )  # fmt: skip
    await ingestor.capture(captures(payloads))
    found = await db.read(lambda tx: events.events_by_ids(tx, range(9)))
    assert [e.payload.get("prompt", "").strip() for e in found.values()] == ["Go on", ""]
    assert "Redis" not in str(found)


def test_the_turn_of_a_private_prompt_is_not_imported():
    payloads, skipped = read_lines(
        user("<private>Call Anna.</private>"),
        assistant(call("t1")), user([result("t1", "Anna: 555")]), assistant(text("Called Anna.")),
        user("Now the tests", turn="p2"), assistant(text("Green.")),
        user("Summary:\nAnna was called.", turn="p3", isCompactSummary=True),
    )  # fmt: skip
    assert names(payloads) == ["UserPromptSubmit", "UserPromptSubmit", "Stop"]
    assert skipped["of a private turn"] == 3


def test_a_note_for_the_client_s_memory_is_a_prompt_as_typed_and_ends_no_turn():
    payloads, _ = read_lines(
        user("Number the invoices", turn="p0"), assistant(call("t1")),
        user("<user-memory-input>use bun</user-memory-input>", turn="p0"),
        user([result("t1", "ok")], turn="p0"), assistant(text("Numbered.")),
    )  # fmt: skip
    prompts = [(p["prompt"], p.get("prompt_id")) for p in payloads if "prompt" in p]
    assert prompts == [("Number the invoices", "p0"), ("# use bun", None)]
    assert payloads[-1]["prompt_id"] == "p0"


def test_a_command_that_an_agent_answers_is_a_prompt_as_typed():
    wrapped = "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>auth.py</command-args>"
    payloads, _ = read_lines(
        user("Before", turn="p0"), assistant(text("Yes.")),
        user(wrapped), user("Review this thoroughly …", isMeta=True), assistant(text("Fine.")),
        user("<command-name>/model</command-name>", turn="p2"),
        user("<local-command-stdout>Set model</local-command-stdout>", turn="p2"),
        user("Thanks", turn="p2"), assistant(text("Bye.")),
    )  # fmt: skip
    assert [p.get("prompt") or p.get("last_assistant_message") for p in payloads] == [
        "Before", "Yes.", "/review auth.py", "Fine.", "Thanks", "Bye.",
    ]  # fmt: skip
    assert payloads[2]["prompt_id"] == payloads[3]["prompt_id"] == "p1"


def test_a_prompt_typed_while_the_agent_worked_stands_alone():
    def queued(**held):
        about = {"type": "queued_command", "commandMode": "prompt", **held}
        return {"type": "attachment", "sessionId": "s", "uuid": "q1", "attachment": about}

    payloads, skipped = read_lines(
        {"type": "queue-operation", "operation": "enqueue", "sessionId": "s", "content": "Use tabs"},
        user("Fix it"), assistant(call("t1")), user([result("t1")]),
        queued(prompt="Use tabs", origin={"kind": "human"}),
        queued(prompt=[{"type": "text", "text": "and no pytest"}]),
        queued(prompt="a task ended", commandMode="task-notification"),
        queued(prompt="a note", origin={"kind": "coordinator"}),
        # Who sent it may be told in a word.
        queued(prompt="and no mocks", origin="human"),
        queued(prompt="another note", origin="coordinator"),
        queued(prompt="meta", isMeta=True),
        assistant(text("Done.")),
    )  # fmt: skip
    asides = [p for p in payloads if p["hook_event_name"] == "UserPromptSubmit"][1:]
    assert [p["prompt"] for p in asides] == ["Use tabs", "and no pytest", "and no mocks"]
    assert all("prompt_id" not in p and p["uuid"] == "q1" for p in asides)
    assert payloads[-1]["prompt_id"] == "p1"
    assert skipped["not conversation"] == 5


def test_a_refused_call_is_kept_with_what_the_user_said_instead():
    stop = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    payloads, _ = read_lines(
        user("Set it up"),
        assistant(call("t1", command="git config gc.auto 0")),
        user([result("t1", f"{stop} To tell you how to proceed, the user said:\nno, let's see", is_error=True)]),
        assistant(call("t2", "Write", file_path="/a")),
        user([result("t2", f"{stop} STOP what you are doing.", is_error=True)]),
    )  # fmt: skip
    assert names(payloads) == ["UserPromptSubmit", "ToolRefused", "ToolRefused"]
    assert [p.get("said") for p in payloads[1:]] == ["no, let's see", None]
    assert payloads[1]["tool_input"] == {"command": "git config gc.auto 0"}
    assert (payloads[2]["tool_name"], payloads[2]["tool_use_id"]) == ("Write", "t2")


def test_a_growing_session_ends_only_where_the_client_says_so():
    reader = TranscriptReader()
    open_end, skipped = read_lines(
        user("Go"), assistant(text("So far …")), reader=reader, is_growing=True
    )
    assert names(open_end) == ["UserPromptSubmit"]
    assert reader.is_open
    assert skipped["may not be the last word yet"] == 1
    reader = TranscriptReader()
    ended, _ = read_lines(
        user("Go"), assistant(text("Done."), why="end_turn"), reader=reader, is_growing=True
    )
    assert names(ended) == ["UserPromptSubmit", "Stop"]
    assert not reader.is_open


def test_an_interrupted_text_is_not_the_end_of_a_turn():
    payloads, _ = read_lines(
        user("Go"), assistant(text("I would")), user([text("[Request interrupted by user]")])
    )
    assert names(payloads) == ["UserPromptSubmit", "AgentText"]


def test_a_sidechain_of_an_old_client_is_a_subagent():
    side = {"isSidechain": True}
    payloads, _ = read_lines(
        user("Fix it", turn=None, uuid="u1"), assistant(call("t1", "Task")),
        user("look around", turn=None, **side), assistant(text("Found."), **side),
        user([result("t1", "Found.")], turn=None), assistant(text("Fixed."), uuid="u2"),
    )  # fmt: skip
    assert [(p["hook_event_name"], p.get("agent_id")) for p in payloads] == [
        ("UserPromptSubmit", None), ("PostToolUse", None), ("Stop", None), ("SubagentStop", "sidechain"),
    ]  # fmt: skip


@every_row("agent", ["acompact-f5b7ac", "aprompt_suggestion-d60234"])
def test_the_clients_own_agents_are_left_out(agent):
    payloads, skipped = read_lines(
        user("everything again", agentId=agent), assistant(text("<summary>"), agentId=agent)
    )
    assert payloads == []
    assert skipped == {"the client's own agent": 2}


def test_images_are_imported_by_their_size():
    shot = {"type": "image", "source": {"type": "base64", "data": "A" * 9_000}}
    payloads, _ = read_lines(
        user([shot, text("Like this")]), assistant(call("t1", "mcp__browser__shot")),
        user([result("t1", [shot])], toolUseResult=[shot]),
    )  # fmt: skip
    assert payloads[0]["prompt"] == "Like this"
    assert payloads[1]["tool_response"] == [{"type": "image", "characters": 9_000}]


def test_a_session_keeps_its_first_directory_and_times_may_run_backwards():
    lines = [
        user("One", cwd="/p", timestamp="2026-11-20T10:00:05Z"),
        user("Two", turn="p2", cwd="/p/sub", timestamp="2026-11-20T10:00:01Z"),
        user("Three", turn="p3"),
    ]
    reader = TranscriptReader()
    found = [p for line in lines for p in reader.feed(json.dumps(line))]
    assert {p.directory for p in found} == {"/p"}
    assert [p.at - found[1].at for p in found] == [4_000, 0, 0]


def test_a_notification_that_sets_the_agent_to_work_again_ends_what_it_did_before():
    payloads, _ = read_lines(
        user("Start the build"),
        assistant(text("It runs.")),
        user("<task-notification>done</task-notification>", turn="p2"),
        assistant(call("t1")),
        user([result("t1")], turn="p2"),
    )
    assert names(payloads) == ["UserPromptSubmit", "Stop", "PostToolUse"]
    assert [p["prompt_id"] for p in payloads] == ["p1", "p1", "p2"]


def title(kind, **fields):
    return {"type": kind, "sessionId": "s", **fields}


def test_titles_of_the_client_are_read_and_a_summary_of_another_sessions_line_is_not():
    payloads, skipped = read_lines(
        {"type": "summary", "summary": "Of another session", "leafUuid": "elsewhere"},
        user("Go", uuid="u1"),
        assistant(text("Done."), uuid="u2"),
        {"type": "summary", "summary": "Work on the store", "leafUuid": "u2"},
        title("ai-title", aiTitle="Store the sessions"),
        title("custom-title", customTitle="Store"),
        title("custom-title"),
    )
    told = [p for p in payloads if p["hook_event_name"] == "SessionTitle"]
    assert [(p["title_kind"], p["title"], p["session_id"]) for p in told] == [
        ("summary", "Work on the store", "s"),
        ("ai", "Store the sessions", "s"),
        ("custom", "Store", "s"),
    ]
    assert skipped["title of another session"] == 2


def test_a_summary_is_of_the_time_and_the_turn_of_the_line_that_it_names():
    reader = TranscriptReader()
    lines = (
        user("Sort the orders", uuid="u1", promptId="p1", timestamp="2026-08-20T10:00:00Z"),
        assistant(text("They are sorted."), uuid="u2", timestamp="2026-08-20T10:00:05Z"),
        user("Now the bills", uuid="u3", promptId="p2", timestamp="2026-08-20T11:00:00Z"),
        {"type": "summary", "summary": "Orders are sorted by day", "leafUuid": "u2"},
        title("ai-title", aiTitle="Orders and bills"),
    )
    found = [one for line in lines for one in reader.feed(json.dumps(line))]
    told = [one for one in found if one.payload["hook_event_name"] == "SessionTitle"]
    first, last = parse_time_ms("2026-08-20T10:00:05Z"), parse_time_ms("2026-08-20T11:00:00Z")
    assert [(one.at, one.payload.get("prompt_id")) for one in told] == [(first, "p1"), (last, None)]


def test_a_summary_names_a_line_of_another_file_that_was_read_before_with_the_same_places():
    places = {}
    earlier, later = TranscriptReader(places=places), TranscriptReader(places=places)
    earlier.feed(json.dumps(user("Go", uuid="u1", sessionId="first")))
    named = {"type": "summary", "summary": "Work on the store", "leafUuid": "u1"}
    (found,) = later.feed(json.dumps(named))
    assert (found.payload["session_id"], found.payload["title"]) == ("first", "Work on the store")


def test_a_prompt_and_what_the_agent_says_on_the_way_name_the_branch():
    payloads, _ = read_lines(
        user("Sort the orders", uuid="u1", gitBranch="dev/orders"),
        assistant(text("I look."), uuid="u2", gitBranch="dev/orders"),
        assistant(text("Done."), uuid="u3", gitBranch="dev/orders"),
        user("Now the bills", turn="p2", uuid="u4", gitBranch="HEAD"),
    )
    assert [(p["hook_event_name"], p.get("git_branch")) for p in payloads] == [
        ("UserPromptSubmit", "dev/orders"), ("AgentText", "dev/orders"), ("Stop", None), ("UserPromptSubmit", None),
    ]  # fmt: skip


def test_a_title_that_the_client_made_of_private_words_is_left_out():
    payloads, skipped = read_lines(
        user("<private>Hush</private>"),
        assistant(text("A secret.")),
        title("ai-title", aiTitle="The secret"),
    )
    assert names(payloads) == ["UserPromptSubmit"]
    assert skipped["of a private turn"] >= 1

"""What single readers leave out, and what they read that others do not have."""

import json
import os
import random
from pathlib import Path

import pytest

from memd.errors import MemdError
from memd.models import TITLE_EVENT
from memd.transfer.readers.aider import AiderReader
from memd.transfer.readers.codex import CodexReader
from memd.transfer.readers.copilot import CopilotReader
from memd.transfer.readers.cursor import CursorReader
from memd.transfer.readers.gemini import GeminiReader
from memd.transfer.readers.opencode import OpencodeReader
from memd.transfer.readers.pi import PiReader
from memd.transfer.session_sources import SESSION_SOURCES, SharedLines, find_sessions
from tests.tables import every_row
from tests.transfer import told_sessions as told


def feed(reader, lines, *, is_growing=False):
    """Return (event, its own words or input) of what a reader makes of lines."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    found = [one for text in texts for one in reader.feed(text)]
    return [one.payload for one in found + reader.finish(is_growing=is_growing)]


def said(payloads):
    fields = ("prompt", "text", "last_assistant_message", "compact_summary", "title", "tool_name")
    return [
        (one["hook_event_name"], next((one[name] for name in fields if name in one), ""))
        for one in payloads
    ]


def codex(*payloads, meta=None):
    lines = [("session_meta", {"id": "t-1", "cwd": "/shop"} | (meta or {})), *payloads]
    return [{"timestamp": told.iso(n), "type": kind, "payload": one} for n, (kind, one) in enumerate(lines)]  # fmt: skip


def user(text):
    return "response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}  # fmt: skip


def agent(text):
    return "response_item", {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}  # fmt: skip


@every_row(
    "injected",
    [
        "# AGENTS.md instructions for /shop\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>",
        "<environment_context>\n<cwd>/shop</cwd>\n</environment_context>", "<user_instructions>x</user_instructions>",
        "<turn_aborted>\nx\n</turn_aborted>", '<subagent_notification>\n{"agent_path":"a"}\n</subagent_notification>',
        "<user_shell_command><command>ls</command></user_shell_command>", "<skill>\n<name>x</name></skill>", "<image name=[Image #1]>", "</image>",
        "<system-reminder>be brief</system-reminder>",
    ],
)  # fmt: skip
def test_codex_what_the_client_wrote_in_the_users_place_is_left_out(injected):
    reader = CodexReader()
    assert said(feed(reader, codex(user(injected), user("Go."), agent("Gone.")))) == [
        ("UserPromptSubmit", "Go."), ("Stop", "Gone."),
    ]  # fmt: skip


def test_codex_an_older_prompt_is_told_twice_and_is_one_and_an_editors_context_is_not_the_users():
    context = "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nTidy a.py"  # fmt: skip
    event = lambda text: ("event_msg", {"type": "user_message", "message": text})  # noqa: E731
    lines = codex(user(context), event(context), agent("Tidied."), user("go on"), event("go on"), agent("Done."), user("go on"), event("go on"))  # fmt: skip
    assert said(feed(CodexReader(), lines)) == [
        ("UserPromptSubmit", "Tidy a.py"), ("Stop", "Tidied."), ("UserPromptSubmit", "go on"), ("Stop", "Done."),
        ("UserPromptSubmit", "go on"),
    ]  # fmt: skip


def test_codex_commands_of_other_forms_have_their_output_and_exit_code():
    def call(number, output, **fields):
        kind = fields.pop("type", "function_call")
        return [
            ("response_item", {"type": kind, "call_id": f"c{number}"} | fields),
            ("response_item", {"type": "function_call_output", "call_id": f"c{number}", "output": output}),
        ]  # fmt: skip

    old = json.dumps({"output": "one\n", "metadata": {"exit_code": 2, "duration_seconds": 0.1}})
    lines = codex(
        user("Run them."),
        *call(1, old, name="shell", arguments='{"command": ["bash", "-lc", "make"]}'),
        *call(2, "Exit code: 0\nWall time: 1 seconds\nOutput:\ntwo\n", name="shell_command", arguments='{"command": "ls"}'),
        *call(3, "three", type="local_shell_call", action={"type": "exec", "command": ["ls"]}),
        *call(4, "unsupported call: shell_command", name="shell_command", arguments="{}"),
        *call(5, "found", name="mem_search", namespace="mcp__memd", arguments="{}"),
        *call(6, "x", name="search", namespace="mcp__docs", arguments="{}"),
    )  # fmt: skip
    reader = CodexReader()
    ran = [one for one in feed(reader, lines) if "tool_name" in one]
    assert [(one["tool_name"], one["tool_response"], one.get("exit_code")) for one in ran] == [
        ("shell", "one\n", 2), ("shell_command", "two\n", 0), ("local_shell", "three", None),
        ("mcp__docs__search", "x", None),
    ]  # fmt: skip
    assert reader.skipped["memd's own tool"] == reader.skipped["a call that was not run"] == 1


def test_codex_a_script_is_left_out_and_the_calls_in_it_are_told_as_hooks_tell_them():
    item = {"type": "CommandExecution", "id": "exec-1", "command": ["/bin/bash", "-lc", "make"], "aggregated_output": "ok", "exit_code": 0}  # fmt: skip
    lines = codex(
        user("Make it."),
        ("response_item", {"type": "custom_tool_call", "call_id": "c", "name": "exec", "input": "await tools.exec_command()"}),
        ("event_msg", {"type": "item_completed", "item": item}),
        ("response_item", {"type": "custom_tool_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "x"}]}),
    )  # fmt: skip
    (call,) = [one for one in feed(CodexReader(), lines) if "tool_name" in one]
    assert (call["tool_use_id"], call["tool_name"], call["exit_code"]) == ("exec-1", "exec_command", 0)  # fmt: skip


def test_codex_a_subagent_belongs_to_its_session_and_a_fork_tells_no_past_twice():
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": "t-0", "agent_role": "explorer"}}}
    meta = {"session_id": "t-0", "parent_thread_id": "t-0", "source": spawn}
    (end,) = feed(CodexReader(), codex(user("Count."), agent("Two."), meta=meta))
    assert (end["hook_event_name"], end["session_id"], end["agent_id"], end["agent_type"]) == ("SubagentStop", "t-0", "t-1", "explorer")  # fmt: skip
    copied = [line | {"timestamp": told.iso(0)} for line in codex(user("Old."), agent("Past."), meta={"id": "t-0"})]  # fmt: skip
    own = codex(user("New."), agent("Now."))
    reader = CodexReader()
    assert said(feed(reader, [own[0], *copied, *own[1:]])) == [
        ("UserPromptSubmit", "New."), ("Stop", "Now."),
    ]  # fmt: skip
    assert reader.skipped["copied from another session"] == 2


def test_codex_an_interruption_a_compaction_and_a_private_turn():
    compacted = {"message": "Another language model started to solve this problem and x y own analysis:\nWe did a."}  # fmt: skip
    lines = codex(
        user("Go."), agent("Going."), ("event_msg", {"type": "turn_aborted"}), ("compacted", compacted),
        user("<private>my salary</private>"), agent("Yes, yours."), ("compacted", compacted),
    )  # fmt: skip
    assert said(feed(CodexReader(), lines)) == [
        ("UserPromptSubmit", "Go."), ("AgentText", "Going."), ("PostCompact", "We did a."),
        ("UserPromptSubmit", "<private>my salary</private>"),
    ]  # fmt: skip


def test_a_session_is_called_what_its_user_calls_it(tmp_path):
    rollout = told.write(tmp_path / "c" / "sessions" / "2026", told.codex())
    names = [{"id": rollout.stem[-36:], "thread_name": name, "updated_at": "x"} for name in ("Old", "Retries")]  # fmt: skip
    (tmp_path / "c" / "session_index.jsonl").write_text("torn\n" + told.join(names))
    events = told.write(tmp_path, told.copilot())
    events.with_name("workspace.yaml").write_text("id: x\nname: 'Audit log'\nuser_named: true\n")
    for source, path, name in (("codex", rollout, "Retries"), ("copilot", events, "Audit log")):
        reader = SESSION_SOURCES[source].make_reader(path, SharedLines())
        titles = [one for one in feed(reader, path.read_text().splitlines()) if "title" in one]
        assert [(one["title"], one["title_kind"]) for one in titles] == [(name, "custom")]
    events.with_name("workspace.yaml").write_text("name: made up\nuser_named: false\n")
    reader = SESSION_SOURCES["copilot"].make_reader(events, SharedLines())
    assert not [one for one in feed(reader, events.read_text().splitlines()) if "title" in one]


def test_codex_lines_without_an_envelope_are_read_too():
    lines = [{"id": "t", "timestamp": told.iso(0), "instructions": None}, user("Hi.")[1], {"record_type": "state"}, agent("Ho.")[1]]  # fmt: skip
    assert said(feed(CodexReader(), lines)) == [("UserPromptSubmit", "Hi."), ("Stop", "Ho.")]


def test_copilot_skills_other_agents_and_its_own_continuation_are_not_the_user():
    def line(kind, agent=None, **data):
        return {"type": kind, "data": data, "id": "e", "timestamp": told.iso(1)} | ({"agentId": agent} if agent else {})  # fmt: skip

    lines = [
        line("session.start", sessionId="s", context={"cwd": "/shop", "branch": "main"}),
        line("user.message", content="Read this", source="skill-pdf"), line("user.message", content="Go."),
        line("tool.execution_start", toolCallId="a-1", toolName="task", arguments={"prompt": "Count"}),
        line("subagent.started", toolCallId="a-1", agentName="explore"),
        line("user.message", agent="a-1", content="Count"), line("assistant.message", agent="a-1", content="Two.", toolRequests=[]),
        line("tool.execution_complete", toolCallId="a-1", success=True, result={"content": "Two."}),
        line("tool.execution_start", toolCallId="c", toolName="mem_search", mcpServerName="memd", mcpToolName="mem_search"),
        line("tool.execution_complete", toolCallId="c", success=True, result={"content": "found"}),
        line("session.compaction_complete", success=True, summaryContent="We counted."),
        line("session.title_changed", title="Counting"),
        line("assistant.message", content="There are two.", messageId="m", toolRequests=[]),
        line("assistant.turn_end", turnId="1"),
    ]  # fmt: skip
    reader = CopilotReader("folder")
    told_of = feed(reader, lines, is_growing=True)
    assert said(told_of) == [
        ("UserPromptSubmit", "Go."), ("PostToolUse", "task"), ("PostCompact", "We counted."), ("SessionTitle", "Counting"),
        ("Stop", "There are two."), ("SubagentStop", "Two."),
    ]  # fmt: skip
    assert not reader.is_open
    assert told_of[0]["git_branch"] == "main"
    assert {one["session_id"] for one in told_of} == {"s"}
    assert (told_of[-1]["agent_id"], told_of[-1]["agent_type"]) == ("a-1", "explore")


def test_gemini_a_message_that_grows_is_read_once_and_a_call_when_it_is_over():
    head = {"sessionId": "s", "kind": "main"}
    call = {"id": "c", "name": "run_shell_command", "args": {"command": "ls"}, "status": "executing"}  # fmt: skip
    message = {"id": "m", "type": "gemini", "content": "Looking.", "timestamp": told.iso(1)}
    done = call | {"status": "success", "resultDisplay": "a.py"}
    refused = call | {"id": "d", "status": "cancelled"}
    lines = [
        head, {"id": "u", "type": "user", "content": [{"text": "Go."}], "displayContent": "Go"}, message,
        message | {"toolCalls": [call]}, message | {"toolCalls": [done]}, message | {"toolCalls": [done, refused]},
        {"$rewindTo": "u"}, {"$set": {"summary": "Listing files"}}, {"id": "i", "type": "info", "content": "x"},
    ]  # fmt: skip
    reader = GeminiReader("/shop")
    assert said(feed(reader, lines)) == [
        ("UserPromptSubmit", "Go"), ("AgentText", "Looking."), ("PostToolUse", "run_shell_command"),
        ("SessionTitle", "Listing files"),
    ]  # fmt: skip


def pi(*entries, **head):
    first = {"type": "session", "id": "pi-1", "timestamp": told.iso(3), "cwd": "/shop"} | head
    return [first, *({"id": f"e{n}", "timestamp": told.iso(n + 4)} | one for n, one in enumerate(entries))]  # fmt: skip


def pi_message(role, text, **fields):
    parts = [{"type": "text", "text": text}, *fields.pop("calls", [])]
    return {"type": "message", "message": {"role": role, "content": parts} | fields}


def test_pi_a_name_a_compaction_and_an_abort_are_told_and_the_users_own_shell_and_extensions_are_not():
    lines = pi(
        {"type": "model_change", "modelId": "m"}, pi_message("system", "Be brief."), pi_message("user", "Go."),
        {"type": "message", "message": {"role": "bashExecution", "command": "ls", "output": "a.py", "exitCode": 0}},
        {"type": "custom_message", "customType": "memd", "content": "Injected.", "display": True},
        pi_message("assistant", "Half a", stopReason="aborted"), pi_message("user", "Go on."),
        pi_message("assistant", "Gone.", stopReason="stop"), {"type": "session_info", "name": "Going"},
        {"type": "compaction", "summary": "We went.", "firstKeptEntryId": "e1"}, {"type": "zz_new"},
    )  # fmt: skip
    reader = PiReader()
    assert said(feed(reader, lines)) == [
        ("UserPromptSubmit", "Go."), ("AgentText", "Half a"), ("UserPromptSubmit", "Go on."),
        ("SessionTitle", "Going"), ("PostCompact", "We went."), ("Stop", "Gone."),
    ]  # fmt: skip
    assert reader.skipped["unknown line zz_new"] == 1


def test_pi_a_fork_does_not_tell_again_what_it_was_made_of():
    past = pi_message("user", "Of the other session.") | {"timestamp": told.iso(1)}
    lines = pi(past, pi_message("user", "Of the fork."))
    assert said(feed(PiReader(), lines))[0] == ("UserPromptSubmit", "Of the other session.")
    forked = pi(past, pi_message("user", "Of the fork."), parentSession="/x/pi-0.jsonl")
    assert said(feed(PiReader(), forked)) == [("UserPromptSubmit", "Of the fork.")]


def test_pi_a_file_that_is_named_below_the_directory_has_its_whole_path():
    call = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a.py"}}
    told_of = feed(
        PiReader(),
        pi(
            pi_message("user", "Read."), pi_message("assistant", "", calls=[call], stopReason="toolUse"),
            pi_message("toolResult", "x = 1", toolCallId="c1", toolName="read", isError=False),
        ),
    )  # fmt: skip
    assert told_of[1]["tool_input"] == {"path": "/shop/a.py"}
    assert told_of[1]["tool_response"] == "x = 1"


def test_opencode_a_subagent_a_compaction_an_abort_and_a_title():
    def message(role, text, **info):
        return {"info": {"id": f"m-{text}", "role": role, "time": {"created": 9}} | info, "parts": [{"type": "text", "text": text, "id": f"p-{text}"}]}  # fmt: skip

    messages = [
        message("user", 'Say "a" and "b"'), message("assistant", "Saying.", error={"name": "MessageAbortedError"}),
        message("assistant", "We talked.", summary=True), message("user", "On."), message("assistant", "Yes.", finish="stop"),
    ]  # fmt: skip
    own = {"info": {"id": "s", "directory": "/shop", "title": "Talking"}, "messages": messages}
    child = {"info": {"id": "k", "parentID": "s", "title": "Child session"}, "messages": messages[3:]}  # fmt: skip
    told_of = feed(OpencodeReader(), [own, child, {"info": {}}])
    assert said(told_of) == [
        ("UserPromptSubmit", 'Say "a" and "b"'), ("AgentText", "Saying."), ("PostCompact", "We talked."),
        ("UserPromptSubmit", "On."), ("SessionTitle", "Talking"), ("Stop", "Yes."), ("SubagentStop", "Yes."),
    ]  # fmt: skip
    assert (told_of[-1]["session_id"], told_of[-1]["agent_id"]) == ("s", "k")


def test_pi_a_fork_a_compaction_a_name_and_a_refused_call():
    stamp = "2026-09-21T13:33:{}.000Z"

    def line(second, kind, **fields):
        return {"type": kind, "id": f"id{second}", "timestamp": stamp.format(second)} | fields

    def says(second, role, text, **fields):
        message = {"role": role, "content": [{"type": "text", "text": text}]} | fields
        return line(second, "message", message=message)

    call = {"type": "toolCall", "id": "call_1", "name": "bash", "arguments": {"command": "x"}}
    refused = {"toolCallId": "call_1", "toolName": "bash", "isError": True}
    lines = [
        line(30, "session", cwd="/p", parentSession="/old.jsonl") | {"id": "s"},
        says(10, "user", "Of the session before."),
        says(31, "user", "Go on."),
        line(32, "message", message={"role": "assistant", "content": [call], "stopReason": "toolUse"}),
        says(33, "toolResult", "memd: refused, because …", **refused),
        says(34, "assistant", "Broken off", stopReason="aborted"),
        line(35, "compaction", summary="All of it."), line(36, "session_info", name="Mine"), line(37, "label"),
        line(38, "of tomorrow"),
    ]  # fmt: skip
    reader = SESSION_SOURCES["pi"].make_reader(Path("x.jsonl"), SharedLines())
    told = feed(reader, map(json.dumps, lines))
    names = [(one["hook_event_name"], one["session_id"]) for one in told]
    assert names == [(name, "s") for name in ("UserPromptSubmit", "AgentText", "PostCompact", TITLE_EVENT)]  # fmt: skip
    assert reader.skipped["copied from another session"] == 1
    assert reader.skipped["a call that memd refused"] == 1


def test_cursor_a_time_is_read_and_a_turn_that_was_broken_off_has_no_answer():
    def line(role, text):
        return {"role": role, "message": {"content": [{"type": "text", "text": text}]}}

    reader = CursorReader("s")
    lines = [
        line("user", "<timestamp>Monday, Aug 31, 2026, 12:52 AM (UTC+5:30)</timestamp>\n<user_query>\nGo.\n</user_query>"),
        line("assistant", "Going."), {"type": "turn_ended", "status": "aborted"},
        line("user", "<open_files>a.py</open_files>"), line("user", "plain words"),
    ]  # fmt: skip
    assert said(feed(reader, lines)) == [
        ("UserPromptSubmit", "Go."), ("AgentText", "Going."), ("UserPromptSubmit", "plain words"),
    ]  # fmt: skip
    assert reader.last_at == 1_788_117_720_000


def test_aider_commands_and_headings_are_no_prompts_and_each_start_is_a_session():
    text = (
        "# aider chat started at 2026-01-02 03:04:05\n\n#### /run make  \n> ok  \n\n#### /ask why  \n#### so?  \n\nBecause.\n\n"
        "#### Details\n\nMore.\n\n# aider chat started at 2026-01-02 04:00:00\n\n#### <blank>  \n\n#### Go.  \n\nGone.\n"
    )
    told_of = feed(AiderReader("/shop"), text.splitlines(keepends=True))
    assert said(told_of) == [
        ("UserPromptSubmit", "why\nso?"), ("Stop", "Because.\n\n#### Details\n\nMore."),
        ("UserPromptSubmit", "Go."), ("Stop", "Gone."),
    ]  # fmt: skip
    assert len({one["session_id"] for one in told_of}) == 2


TELLERS = {**told.TOLD_WHOLE, **told.TOLD_IN_PART, "gemini-cli ": told.gemini_document}
ODD = [None, 0, -1, 1e300, "", [], {}, "x", True, ["a", {"text": 3}], {"a": [{}]}, "2026-13-45T99:99", 10**20, "\ud800"]  # fmt: skip


def mutate(value, chance):
    """Leave out some of a value, and put odd things in the place of some."""
    if chance.random() < 0.04:
        return chance.choice(ODD)
    if isinstance(value, dict):
        return {key: mutate(one, chance) for key, one in value.items() if chance.random() > 0.03}
    return [mutate(one, chance) for one in value if chance.random() > 0.03] if isinstance(value, list) else value  # fmt: skip


@pytest.mark.parametrize("name", TELLERS)
def test_no_line_stops_a_reader(name, tmp_path):
    chance = random.Random(name)  # noqa: S311  # no secret
    path = told.write(tmp_path, TELLERS[name]())
    text = path.read_text(encoding="utf-8")
    for round_ in range(60):
        whole = json.loads(text) if path.suffix == ".json" else None
        if name == "aider" or round_ % 3 == 0:
            raw = bytearray(text.encode())
            for _ in range(20):
                raw[chance.randrange(len(raw))] = chance.randrange(256)
            lines = bytes(raw).splitlines(keepends=True)
        elif whole is not None:
            lines = [json.dumps(mutate(whole, chance)).encode()]
        else:
            lines = [json.dumps(mutate(json.loads(line), chance)).encode() for line in text.splitlines()]  # fmt: skip
        reader = SESSION_SOURCES[name.strip()].make_reader(path, SharedLines())
        try:
            found = [one for line in lines for one in reader.feed(line)] + reader.finish()
        except MemdError:
            continue  # a document that is none any more
        for one in found:
            assert json.dumps(one.payload)
            assert one.payload["session_id"]
            assert one.at is None or isinstance(one.at, int)


def test_every_source_finds_its_files_where_the_client_keeps_them(tmp_path):
    home = tmp_path / "home"
    places = {
        "claude-code": home / ".claude" / "projects" / "-shop", "codex": home / ".codex" / "sessions" / "2026" / "09" / "21",
        "copilot": home / ".copilot" / "session-state", "cursor": home / ".cursor", "gemini-cli": home / ".gemini" / "tmp",
        "pi": home / ".pi" / "agent" / "sessions",
        "aider": home.parent,
    }  # fmt: skip
    (home / ".codex").mkdir(parents=True)
    (home / ".codex" / "history.jsonl").write_text("{}\n")
    for name, folder in places.items():
        told.write(folder, TELLERS[name]())
    environ = {"HOME": str(home), "PWD": str(tmp_path / "shop")}
    for name, source in SESSION_SOURCES.items():
        assert len(find_sessions(source, None, environ)) == (name in places), name
        assert find_sessions(source, None, {"HOME": str(tmp_path / "none"), "PWD": "/"}) == []
    (found,) = find_sessions(SESSION_SOURCES["cursor"], None, environ)
    reader = SESSION_SOURCES["cursor"].make_reader(Path(found), SharedLines())
    assert {one["cwd"] for one in feed(reader, Path(found).read_text().splitlines())} == {told.DIRECTORY}  # fmt: skip


def test_a_pipe_beside_a_session_is_not_waited_for(tmp_path):
    for client, pipe, session in (
        ("codex", "session_index.jsonl", "rollout-1.jsonl"),
        ("copilot", "workspace.yaml", "events.jsonl"),
        ("gemini-cli", "../.project_root", "session-1.jsonl"),
    ):
        folder = tmp_path / client / "chats"
        folder.mkdir(parents=True)
        os.mkfifo(folder / pipe)
        (folder / session).touch()
        assert SESSION_SOURCES[client].make_reader(folder / session, SharedLines())

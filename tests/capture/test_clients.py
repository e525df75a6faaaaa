"""Who is speaking: the marks of payloads, and what becomes of one that nobody is known to send."""

import pytest

from memd import hook_event as hook
from memd.capture import truncate
from memd.capture.claude_code import Refused, adapt_hook_payload
from memd.capture.clients import EXIT_CODE, list_if_several, recognise
from memd.capture.prepare import (
    CaptureRequest,
    Preparer,
    add_exit_code,
    find_exit_code,
    may_have_failed,
)
from memd.capture.project import ProjectResolver
from memd.config import CaptureConfig
from memd.models import EventKind
from tests.tables import every_row

CURSOR = {
    "conversation_id": "c-1", "generation_id": "g-1", "model": "default", "hook_event_name": "beforeSubmitPrompt",
    "cursor_version": "3.24.9", "workspace_roots": ["/nowhere/shop"], "user_email": "dev@example.com", "prompt": "hi",
}  # fmt: skip
CODEX = {
    "session_id": "s", "turn_id": "t", "transcript_path": None, "cwd": "/nowhere/shop", "model": "m",
    "hook_event_name": "UserPromptSubmit", "permission_mode": "default", "prompt": "hi",
}  # fmt: skip
CODEX_END = {
    "session_id": "s", "transcript_path": "/h/.codex/sessions/2026/11/23/rollout-2026-11-23T07-53-18-x.jsonl",
    "cwd": "/nowhere/shop", "hook_event_name": "SessionEnd", "reason": "other",
}  # fmt: skip
COPILOT = {
    "hook_event_name": "UserPromptSubmit", "session_id": "s", "timestamp": "2026-11-23T07:53:18.000Z",
    "cwd": "/nowhere/shop", "prompt": "hi",
}  # fmt: skip
COPILOT_OWN = {
    "sessionId": "s",
    "timestamp": 1_795_420_398_000,
    "cwd": "/nowhere/shop",
    "prompt": "hi",
}
CLAUDE = {
    "session_id": "s",
    "hook_event_name": "Stop",
    "permission_mode": "default",
    "prompt_id": "p",
}
STRANGE = {"kind": "turn", "thread_id": "x-1", "user_email": "dev@example.com", "said": "hello"}


@every_row(
    ("payload", "stated", "expected"),
    [
        (CURSOR, "claude-code", "cursor"),
        (CURSOR, "cursor", "cursor"),
        (CODEX, "claude-code", "codex"),
        (CODEX_END, "claude-code", "codex"),
        (COPILOT, "claude-code", "copilot"),
        (COPILOT_OWN | {"hookEventName": "Stop"}, "claude-code", "copilot"),
        (CLAUDE, "claude-code", "claude-code"),
        (STRANGE, "claude-code", "unknown"),
        (CLAUDE, "somebody", "unknown"),
        ({"raw": "{torn"}, "codex", "codex"),
        ([], "somebody", "unknown"),
    ],
)
def test_a_payload_is_its_senders_whatever_its_hook_was_told(payload, stated, expected):
    assert CaptureRequest(stated, payload).translate().client == expected


def test_what_is_read_from_a_file_is_the_clients_whose_file_it_is():
    assert recognise("copilot", CODEX_END, "import") == "copilot"


def prepare(clock, stated, payload, **fields):
    ours = Preparer(CaptureConfig(), clock, ProjectResolver(clock))
    (made,) = ours.prepare_all([CaptureRequest(stated, payload, **fields)])
    return made


def test_cursors_prompt_has_its_project_and_turn_and_says_nobodys_address(clock):
    made = prepare(clock, "claude-code", CURSOR)
    event = made.verdict
    assert (event.session.client, event.session.key) == ("cursor", "c-1")
    assert (made.project.key, event.kind, event.turn) == ("/nowhere/shop", EventKind.PROMPT, "g-1")
    assert "user_email" not in event.payload
    native = prepare(clock, "cursor", CURSOR, event="beforeSubmitPrompt").verdict
    assert native.key == event.key


def test_an_unknown_payload_is_kept_as_it_is(clock):
    event = prepare(clock, "claude-code", STRANGE).verdict
    assert (event.session.client, event.session.key, event.kind) == (
        "unknown", "x-1", EventKind.OTHER
    )  # fmt: skip
    assert event.payload == {key: STRANGE[key] for key in STRANGE if key != "user_email"}
    assert isinstance(prepare(clock, "somebody", {"raw": "{torn"}).verdict, Refused)


def test_copilots_own_form_needs_the_events_name_from_its_hook(clock):
    event = prepare(clock, "copilot", COPILOT_OWN, event="userPromptSubmitted").verdict
    assert (event.kind, event.payload["prompt"]) == (EventKind.PROMPT, "hi")
    assert prepare(clock, "copilot", COPILOT_OWN).verdict.session.client == "unknown"


def test_a_payload_of_windows_is_read():
    text = '\r\n{"conversation_id": "c",\r\n "cursor_version": "3", "hook_event_name": "stop"}\r\n'
    assert hook._strip([b"\xef\xbb\xbf", text.encode()]) == text.strip().encode()


def test_a_rollout_without_the_exit_code_is_read_once_and_nothing_of_that_is_stored(
    tmp_path, clock
):
    (rollout := tmp_path / "rollout-x.jsonl").write_text("{}\n")
    payload = {"session_id": "s", "turn_id": "1", "model": "m", "hook_event_name": "PostToolUse", "cwd": "/p",
               "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": "a", "tool_use_id": "c1",
               "transcript_path": str(rollout)}  # fmt: skip
    looked = add_exit_code(CaptureRequest("codex", payload, None, None))
    assert not may_have_failed(looked)
    event = prepare(clock, "codex", looked.payload).verdict
    assert EXIT_CODE not in event.payload
    assert event.payload["tool_response"] == {"stdout": "a", "interrupted": True}


def test_an_exit_code_is_looked_for_in_rollouts_only(tmp_path):
    line = '{"payload": {"item": {"id": "call_1", "exit_code": 3}}}\n'
    rollout, other = tmp_path / "rollout-x.jsonl", tmp_path / "other.jsonl"
    for file in (rollout, other):
        file.write_text('{torn "call_1" "exit_code"\n' + line + '{"exit_code": "call_1"}\n')
    (tmp_path / "rollout-link.jsonl").symlink_to(rollout)

    def find(path, call="call_1"):
        return find_exit_code({"transcript_path": str(path), "tool_use_id": call})

    assert find(rollout) == 3
    assert [find(rollout, "call_2"), find(other), find(tmp_path / "rollout-link.jsonl")] == [
        None
    ] * 3
    assert [
        find(tmp_path / "rollout-gone.jsonl"),
        find("rollout-x.jsonl"),
        find("/\0/rollout-x.jsonl"),
    ] == [None] * 3


def test_a_command_whose_end_is_not_known_proves_nothing(clock):
    ran = CODEX | {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": "call_1",
                   "tool_input": {"command": "make"}, "tool_response": "done"}  # fmt: skip
    assert prepare(clock, "codex", ran).verdict.payload["tool_response"]["interrupted"]


def test_what_is_told_to_a_subagent_is_not_the_users_word(clock):
    event = prepare(clock, "codex", CODEX | {"agent_id": "a1"}).verdict
    assert (event.name, event.kind) == ("SubagentUserPromptSubmit", EventKind.OTHER)


@pytest.mark.parametrize("payload", [CURSOR, CODEX, COPILOT, COPILOT_OWN])
@pytest.mark.parametrize("odd", [None, 7, "", [], {}, ["x"], {"a": 1}, "\n", float("inf")])
def test_no_odd_field_stops_a_payload(clock, payload, odd):
    tool = {"tool_name": "Bash", "tool_input": {"command": odd}, "tool_response": odd}
    for name in [*payload, "hook_event_name", "tool_input", "tool_response", "tool_name"]:
        made = prepare(clock, "copilot", payload | tool | {name: odd}, event="postToolUse")
        assert made.verdict


def test_clients_are_named_only_where_there_are_several():
    assert list_if_several(["codex", "user", "import:x"]) == frozenset()
    assert list_if_several(["codex", "cursor", "user"]) == {"codex", "cursor"}


def test_an_import_finds_the_events_of_an_opencode_session_whose_id_was_taken_for_a_secret():
    session, agent = "ses_de76a0648ffeFbXkVJK5gjgbe6", "ses_de76a0648ffeFbXkVJK5gjgbe7"
    payload = {"session_id": session, "hook_event_name": "Stop", "prompt_id": "msg_1", "last_assistant_message": "ok"}  # fmt: skip
    of_agent = {**payload, "hook_event_name": "SubagentStop", "agent_id": agent}
    for told in (payload, of_agent):
        kept = truncate.clean_payload(told)
        assert kept["session_id"] == session
        masked = {key: truncate.mask_id(value) if value in (session, agent) else value for key, value in told.items()}  # fmt: skip
        old, new = (
            adapt_hook_payload(one, 1, directory=None, source="import", client="opencode")
            for one in (masked, kept)
        )
        assert old.key in new.former_keys

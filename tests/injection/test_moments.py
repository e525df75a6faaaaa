import pytest

from memd.injection.moments import InjectionMoment, hook_output, read_moment

BASE = {"session_id": "s1", "cwd": "/p"}


def read(**payload):
    return read_moment("claude-code", {**BASE, **payload}, None)


def test_a_prompt_is_an_injection_moment():
    moment = read(hook_event_name="UserPromptSubmit", prompt="why?")
    assert moment == InjectionMoment(
        "claude-code", "s1", "prompt", "UserPromptSubmit", "why?", "/p"
    )


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact"])
def test_the_start_of_a_session_is_an_injection_moment(source):
    moment = read(hook_event_name="SessionStart", source=source)
    assert (moment.name, moment.event) == (source, "SessionStart")


@pytest.mark.parametrize(
    "payload",
    [{"hook_event_name": "SessionStart", "source": "fork"}, {"hook_event_name": "SessionStart"},
     {"hook_event_name": "SessionStart", "source": ["startup"]}, {"hook_event_name": "Stop"},
     {"hook_event_name": "UserPromptSubmit", "prompt": "x", "agent_id": "a1"},
     {"hook_event_name": "UserPromptSubmit", "session_id": ""}, {"hook_event_name": 7},
     {"hook_event_name": "UserPromptSubmit", "session_id": "empty-state-draft"}],
)  # fmt: skip
def test_other_events_are_no_injection_moments(payload):
    assert read(**payload) is None


@pytest.mark.parametrize("payload", [None, "x", [1], {}])
def test_a_malformed_payload_is_no_injection_moment(payload):
    assert read_moment("claude-code", payload, None) is None


def test_an_event_of_an_unknown_client_is_no_injection_moment():
    assert (
        read_moment("other", {**BASE, "hook_event_name": "SessionStart", "source": "startup"}, "/p")
        is None
    )


def test_the_directory_of_the_hook_is_preferred_to_the_one_in_the_payload():
    moment = read_moment("claude-code", {**BASE, "hook_event_name": "UserPromptSubmit"}, "/root")
    assert (moment.directory, moment.prompt) == ("/root", "")


def test_the_text_is_written_as_the_hook_prints_it():
    moment = read(hook_event_name="UserPromptSubmit", prompt="why?")
    assert hook_output(moment, "because") == {
        "hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "because"}
    }


@pytest.mark.parametrize(
    ("client", "event", "expected"),
    [
        ("codex", "SessionStart",
         {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "so"}}),
        ("copilot", "SessionStart", {"additionalContext": "so"}),
        ("copilot", "UserPromptSubmit", {"additionalContext": "so"}),
        ("cursor", "SessionStart", {"additional_context": "so"}),
        ("cursor", "UserPromptSubmit", None),
        ("codex", "PreToolUse", None),
        ("unknown", "SessionStart", None),
    ],
)  # fmt: skip
def test_each_client_gets_context_as_and_where_it_takes_it(client, event, expected):
    payload = {**BASE, "hook_event_name": event, "source": "startup", "prompt": "why?"}
    moment = read_moment(client, payload, None)
    assert (moment and hook_output(moment, "so")) == expected


def call(event="PostToolUse", **fields):
    given = {"tool_name": "Edit", "tool_input": {"file_path": "/p/a.py"}, "cwd": "/p", **fields}
    return {"session_id": "s", "hook_event_name": event, **given}


def test_a_call_that_has_ended_is_a_moment_of_its_file_or_of_its_failure():
    moment = read_moment("claude-code", call(), "/p")
    assert (moment.name, moment.call.paths, moment.call.command) == ("file", ("/p/a.py",), "")
    ran = call("PostToolUseFailure", tool_name="Bash", tool_input={"command": "make"}, error="no")
    failed = read_moment("claude-code", ran, "/p")
    assert (failed.name, failed.call.command, failed.call.error) == ("failure", "make", "no")
    edits = [{"file_path": "/p/a.py"}, {"file_path": "/p/b.py"}]
    several = read_moment("codex", call(tool_input={**edits[0], "edits": edits}), "/p")
    assert set(several.call.paths) == {"/p/a.py", "/p/b.py"}


@pytest.mark.parametrize(
    ("client", "payload"),
    [
        ("claude-code", call(agent_id="a1")),
        ("claude-code", call("PostToolUseFailure", is_interrupt=True)),
        ("claude-code", call("PreToolUse")),
        ("claude-code", call("SubagentStart", agent_id="a1", agent_type="")),
        ("cursor", call()),
    ],
)
def test_a_subagent_s_call_one_that_was_broken_off_and_one_of_another_client_are_none(
    client, payload
):
    assert read_moment(client, payload, "/p") is None


@pytest.mark.parametrize(
    ("client", "written"),
    [
        ("claude-code", {"hookSpecificOutput": {"hookEventName": "PostToolUseFailure", "additionalContext": "x"}}),
        # Its hook of a call that failed is that of one that succeeded.
        ("codex", {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "x"}}),
        ("copilot", {"additionalContext": "x"}),
    ],
)  # fmt: skip
def test_each_client_gets_what_is_told_at_a_failure_in_its_own_form(client, written):
    moment = read_moment(client, call("PostToolUseFailure"), "/p")
    assert hook_output(moment, "x") == written

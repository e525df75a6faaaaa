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

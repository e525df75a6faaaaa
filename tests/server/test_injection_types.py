import pytest

from memd.server.injection_types import Opening, opening, output

BASE = {"session_id": "s1", "cwd": "/p"}


def read(**payload):
    return opening("claude-code", {**BASE, **payload}, None)


def test_a_prompt_is_such_a_moment():
    asked = read(hook_event_name="UserPromptSubmit", prompt="why?")
    assert asked == Opening("claude-code", "s1", "prompt", "UserPromptSubmit", "why?", "/p")


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact"])
def test_the_beginning_of_a_session_is_such_a_moment(source):
    asked = read(hook_event_name="SessionStart", source=source)
    assert (asked.moment, asked.event) == (source, "SessionStart")


@pytest.mark.parametrize(
    "payload",
    [{"hook_event_name": "SessionStart", "source": "fork"}, {"hook_event_name": "SessionStart"},
     {"hook_event_name": "SessionStart", "source": ["startup"]}, {"hook_event_name": "Stop"},
     {"hook_event_name": "UserPromptSubmit", "prompt": "x", "agent_id": "a1"},
     {"hook_event_name": "UserPromptSubmit", "session_id": ""}, {"hook_event_name": 7},
     {"hook_event_name": "UserPromptSubmit", "session_id": "empty-state-draft"}],
)  # fmt: skip
def test_nothing_else_is(payload):
    assert read(**payload) is None


@pytest.mark.parametrize("payload", [None, "x", [1], {}])
def test_what_makes_no_sense_asks_for_nothing(payload):
    assert opening("claude-code", payload, None) is None


def test_an_unknown_client_is_shown_nothing():
    assert (
        opening("other", {**BASE, "hook_event_name": "SessionStart", "source": "startup"}, "/p")
        is None
    )


def test_the_stable_root_is_better_than_where_the_agent_stands():
    asked = opening("claude-code", {**BASE, "hook_event_name": "UserPromptSubmit"}, "/root")
    assert (asked.directory, asked.prompt) == ("/root", "")


def test_the_text_is_handed_over_as_the_client_takes_it():
    asked = read(hook_event_name="UserPromptSubmit", prompt="why?")
    assert output(asked, "because") == {
        "hookSpecificOutput": {
            "hookEventName": "UserPromptSubmit",
            "additionalContext": "because",
        }
    }

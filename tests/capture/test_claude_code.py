"""The adapter: every real payload becomes an event, and one thing that happened has one key."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memd.capture import claude_code
from memd.capture.claude_code import Ignored, Refused
from memd.models import EventKind, NewEvent
from memd.text import digest
from tests.tables import every_row

DATA = Path(__file__).parents[1] / "data" / "claude-code"
FILES = ("every-event/hook-samples.jsonl", "ledger/hooks.jsonl")
SAMPLES = [
    json.loads(line)["stdin"]
    for file in FILES
    for line in (DATA / file).read_text(encoding="utf-8").splitlines()
]
AT = 1_800_000_000_000


def adapt(payload, at=AT, directory=None):
    return claude_code.adapt_hook_payload(payload, at, directory=directory, source="live")


def key(**fields):
    event = adapt({"session_id": "s", **fields}, fields.pop("at", AT))
    assert isinstance(event, NewEvent)
    return event.key


@every_row("payload", SAMPLES, ids=[f"{n}-{p['hook_event_name']}" for n, p in enumerate(SAMPLES)])
def test_every_real_payload_is_understood(payload):
    event = adapt(payload)
    if payload.get("agent_type") == "" and payload["hook_event_name"] == "SubagentStop":
        assert event == Ignored("the compaction's own agent")
        return
    assert isinstance(event, NewEvent)
    assert event.kind is not EventKind.OTHER
    assert event.session.key == payload["session_id"]
    assert event.session.directory == payload["cwd"]
    assert event.turn == payload.get("prompt_id")
    assert event.tool == payload.get("tool_name")
    assert event.payload == payload


def test_the_same_payload_has_the_same_key_and_no_two_of_a_session_share_one():
    keys = {}
    for number, payload in enumerate(SAMPLES):
        event = adapt(payload, AT + number * 2_000)
        if isinstance(event, NewEvent):
            assert event.key == adapt(payload, AT + number * 2_000 + 3).key
            assert event.key not in keys
            keys[event.key] = payload


def test_an_unknown_event_is_stored_as_it_is():
    event = adapt(
        {"session_id": "s", "hook_event_name": "TaskCreated", "task_id": "t", "more": [1]}
    )
    assert event.kind is EventKind.OTHER
    assert event.name == "TaskCreated"
    assert event.payload["more"] == [1]


def test_the_environment_is_not_part_of_an_event():
    event = adapt(
        {"session_id": "s", "hook_event_name": "Stop", "env": {"TOKEN": "x"}, "cwd": "/p"}
    )
    assert "env" not in event.payload


def test_the_stable_root_goes_before_the_working_directory():
    payload = {"session_id": "s", "hook_event_name": "Stop", "cwd": "/p/sub"}
    assert adapt(payload, directory="/p").session.directory == "/p"
    assert adapt(payload).session.directory == "/p/sub"


@every_row(
    ("payload", "reason"),
    [
        ([], "the payload is not an object"),
        (None, "the payload is not an object"),
        ({}, "the payload has no session_id"),
        ({"session_id": 7, "hook_event_name": "Stop"}, "the payload has no session_id"),
        ({"session_id": "s"}, "the payload has no hook_event_name"),
        ({"raw": "{torn"}, "the payload is not JSON"),
    ],
)
def test_what_is_no_payload_is_refused_with_a_reason(payload, reason):
    assert adapt(payload) == Refused(reason)


def test_a_session_that_has_not_begun_is_ignored():
    payload = {"session_id": "empty-state-draft", "hook_event_name": "SessionStart"}
    assert isinstance(adapt(payload), Ignored)


def test_a_tool_call_its_result_and_its_failure_are_three_events():
    names = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
    assert len({key(hook_event_name=name, tool_use_id="t") for name in names}) == 3


def test_a_turn_that_stops_twice_with_other_words_is_two_events():
    one = key(hook_event_name="Stop", prompt_id="p", last_assistant_message="Tests fail.")
    two = key(hook_event_name="Stop", prompt_id="p", last_assistant_message="Tests pass.")
    again = key(hook_event_name="Stop", prompt_id="p", last_assistant_message=" Tests\npass. ")
    assert one != two == again


def test_two_compactions_of_one_turn_are_two_events():
    one = key(hook_event_name="PostCompact", prompt_id="p", compact_summary="<summary>A</summary>")
    two = key(hook_event_name="PostCompact", prompt_id="p", compact_summary="<summary>B</summary>")
    assert one != two


def test_a_compaction_is_one_event_whether_the_hook_or_the_transcript_tells_it():
    hook = "<analysis>thinking</analysis>\n<summary>\nWe chose Redis.\n</summary>"
    told = key(hook_event_name="PostCompact", prompt_id="p", compact_summary=hook)
    assert told == key(
        hook_event_name="PostCompact", prompt_id="p", compact_summary="We chose Redis."
    )


def test_a_stop_has_one_key_before_and_after_redaction():
    said = "The key was AKIAIOSFODNN7EXAMPLE, now rotated."
    gone = claude_code.redact(said)
    assert gone != said
    assert key(hook_event_name="Stop", prompt_id="p", last_assistant_message=said) == key(
        hook_event_name="Stop", prompt_id="p", last_assistant_message=gone
    )


def test_two_copies_of_a_nameless_event_are_one_and_a_later_one_is_another():
    payload = {"session_id": "s", "hook_event_name": "SessionEnd", "reason": "other"}
    assert adapt(payload, AT).key == adapt(payload, AT + 5).key
    assert adapt(payload, AT).key != adapt(payload, AT + 60_000).key


def test_a_prompt_without_a_prompt_id_hangs_on_its_uuid():
    one = key(hook_event_name="UserPromptSubmit", uuid="u1", prompt="again")
    two = key(hook_event_name="UserPromptSubmit", uuid="u2", prompt="again")
    assert one != two


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(
    ["session_id", "hook_event_name", "prompt_id", "tool_use_id", "agent_id", "cwd"]
)
SAID = st.sampled_from(["Stop", "PostCompact", "PreToolUse", "SubagentStop", "Nonsense"])


@given(st.dictionaries(NAMES, JSON | SAID) | JSON, st.integers(0, 2**52))
def test_no_json_makes_it_raise(payload, at):
    assert isinstance(adapt(payload, at), NewEvent | Ignored | Refused)


PROMPT = "75983f12-0b58-413a-9a26-aabd688dc3b3"


@every_row(
    "fields",
    [
        {"hook_event_name": "UserPromptSubmit", "prompt_id": PROMPT},
        {"hook_event_name": "UserPromptSubmit", "uuid": PROMPT},
        {"hook_event_name": "PostToolUse", "tool_use_id": "toolu_10bf108d20744d5b99c938"},
        {"hook_event_name": "Stop", "prompt_id": PROMPT, "last_assistant_message": "Done."},
        {"hook_event_name": "SubagentStop", "agent_id": "af012c2095c5380bf"},
    ],
    ids=["prompt", "prompt of an old client", "call", "stop", "subagent"],
)
def test_what_a_fork_took_along_has_the_key_of_the_original(fields):
    assert key(**fields) == key(**fields, session_id="the-fork")


def test_an_id_that_another_session_may_use_too_holds_in_its_own_only():
    call = {"hook_event_name": "PostToolUse", "tool_use_id": "call_0"}
    assert key(**call) != key(**call, session_id="other")
    ended = {"hook_event_name": "SessionEnd", "reason": "other"}
    assert key(**ended) != key(**ended, session_id="other")


def test_a_key_of_its_own_still_knows_what_an_older_memd_called_it():
    payload = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt_id": PROMPT}
    former = digest(claude_code.CLIENT, "s", "UserPromptSubmit", "turn", PROMPT)
    assert adapt(payload).former_keys == (former,)
    assert adapt({**payload, "prompt_id": "weak"}).former_keys == ()


def test_what_the_client_wrote_in_the_place_of_a_prompt_is_kept_as_no_prompt():
    common = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt_id": "p1"}
    told = adapt(common | {"prompt": "<task-notification>done</task-notification>"})
    assert (told.kind, told.name) == (EventKind.NOTIFICATION, "UserPromptSubmit")
    assert adapt(common | {"prompt": "Go on"}).kind is EventKind.PROMPT
    assert adapt(common | {"prompt": 5}).kind is EventKind.NOTIFICATION, "no text"

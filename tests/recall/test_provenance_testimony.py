from memd.models import EventKind
from memd.recall import provenance
from memd.recall.types import Position
from tests.factories import make_event


def test_a_quote_that_was_kept_goes_before_the_event_s_own_words():
    event = make_event(prompt="the whole prompt")
    assert provenance.quoted("the prompt", event) == "the prompt"
    assert provenance.quoted("  ", event) == "the whole prompt"


def test_the_words_of_a_tool_call_are_what_it_was_given():
    event = make_event(EventKind.TOOL_RESULT, tool_input={"command": "make"}, tool_response={})
    assert provenance.told(event) == "make"
    assert provenance.told(make_event(tool_input="odd", prompt=7)) == ""


def test_words_are_never_long():
    assert len(provenance.told(make_event(prompt="w" * 5_000))) == provenance.QUOTE_CHARACTERS


def test_an_event_says_where_it_stands_as_far_as_it_knows():
    event = make_event(
        transcript_path="/t/s.jsonl", session_id=1, uuid="u1", tool_use_id="toolu_1", turn="p1"
    )
    assert provenance.position(event) == Position("/t/s.jsonl", "", "u1", "p1", "toolu_1")
    assert provenance.position(make_event(turn=None, uuid=7)) == Position()
    inner = make_event(transcript_path="/t/s.jsonl", agent_transcript_path="/t/agent.jsonl")
    assert provenance.position(inner).transcript == "/t/agent.jsonl"

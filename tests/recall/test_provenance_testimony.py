from memd.models import EventKind
from memd.recall import provenance
from memd.recall.types import TranscriptPosition
from tests.factories import make_event


def test_a_quote_that_was_kept_goes_before_the_event_s_own_words():
    event = make_event(prompt="the whole prompt")
    assert provenance.quote_event("the prompt", event) == "the prompt"
    assert provenance.quote_event("  ", event) == "the whole prompt"


def test_the_words_of_a_tool_call_are_what_it_was_given():
    event = make_event(EventKind.TOOL_RESULT, tool_input={"command": "make"}, tool_response={})
    assert provenance.quote_event("", event) == "make"
    assert provenance.quote_event("", make_event(tool_input="odd", prompt=7)) == ""


def test_words_are_never_long():
    assert (
        len(provenance.quote_event("", make_event(prompt="w" * 5_000)))
        == provenance.QUOTE_CHARACTERS
    )


def test_an_event_says_where_it_stands_as_far_as_it_knows():
    event = make_event(
        transcript_path="/t/s.jsonl", session_id=1, uuid="u1", tool_use_id="toolu_1", turn="p1"
    )
    assert provenance.locate_in_transcript(event) == TranscriptPosition(
        "/t/s.jsonl", "", "u1", "p1", "toolu_1"
    )
    assert (
        provenance.locate_in_transcript(make_event(turn=None, uuid=7)) == TranscriptPosition()
    )
    inner = make_event(transcript_path="/t/s.jsonl", agent_transcript_path="/t/agent.jsonl")
    assert provenance.locate_in_transcript(inner).transcript == "/t/agent.jsonl"

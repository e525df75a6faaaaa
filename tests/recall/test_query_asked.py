from memd.models import Kind
from memd.recall.profiles import resolve_profile
from memd.recall.query import Intent, ParsedQuery, parse_terms
from memd.recall.types import Question


def asked(text="kettle", intent=None, profile="memd", **question):
    return ParsedQuery(
        Question(text, 100, **question),
        parse_terms(text),
        intent or Intent(),
        resolve_profile(profile, {}),
        profile,
        5,
        None,
        None,
        {},
    )


def test_ages_count_from_the_moment_that_is_asked_about():
    assert asked().now == 100
    assert asked(as_of=0).now == 0


def test_what_was_read_between_the_lines_is_said_only_if_the_profile_heeds_it():
    meant = Intent(is_recent=True, kinds=(Kind.FIX,))
    assert asked(intent=meant).notes[1] == "the question asks for a fix"
    assert "an instruction" in asked(intent=Intent(kinds=(Kind.INSTRUCTION,))).notes[0]
    assert asked(intent=meant, profile="siftcoder").notes == ()


def test_the_page_ends_after_its_last_hit():
    assert asked(offset=10).page_end == 15

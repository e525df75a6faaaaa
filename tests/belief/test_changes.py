from hypothesis import assume, given
from hypothesis import strategies as st

from memd.belief.changes import find_value_change
from memd.belief.claims import parse_claims
from tests.belief.value_pairs import CHANGED_VALUES, SAME_STATEMENTS, TWO_SUBJECTS
from tests.tables import every_row


def change(older, newer):
    return find_value_change(parse_claims(older), parse_claims(newer))


@every_row(("older", "newer"), CHANGED_VALUES)
def test_another_value_of_the_same_thing_is_a_change(older, newer):
    assert change(older, newer) is not None


@every_row(("one", "other"), TWO_SUBJECTS)
def test_another_thing_is_no_change(one, other):
    assert change(one, other) is None
    assert change(other, one) is None


@every_row(("one", "other"), SAME_STATEMENTS)
def test_the_same_in_another_spelling_is_no_change(one, other):
    assert change(one, other) is None


def test_a_length_of_time_in_another_unit_is_no_change():
    assert change("The timeout is 60 seconds", "The timeout is 1 minute") is None
    assert change("The TTL is 2 h", "No, set the TTL to 120 minutes") is None
    assert str(change("wait 60 s, retry 3 times", "wait 1 min, retry 4 times")) == (
        "the value of “retry times” changed from 3 to 4"
    )
    assert change("The timeout is 60 seconds", "The timeout is 60 minutes") is not None


def test_the_change_is_written_in_words():
    found = change("Redis it is; the TTL is 5 minutes.", "Redis it is; the TTL is 60 minutes.")
    assert str(found) == "the value of “the TTL is” changed from 5 minutes to 60 minutes"
    both = change("wait 5 s, retry 3 times", "wait 10 s, retry 4 times")
    assert str(both) == (
        "the value of “wait” changed from 5 s to 10 s; the value of “retry times” changed from 3 to 4"
    )
    denied = change("We use Redis", "We do not use Redis")
    assert str(denied) == "the statement changed from “We use Redis” to “We do not use Redis”"


def test_a_correction_of_a_part_keeps_the_rest():
    assert not change("Redis it is. The TTL is 5 minutes.", "No, the TTL is 60 minutes.").is_whole
    assert change("The TTL is 5 minutes.", "No, the TTL is 60 minutes.").is_whole


WORDS = st.lists(
    st.sampled_from(
        [
            "the",
            "cache",
            "keeps",
            "rows",
            "of",
            "each",
            "worker",
            "for",
            "a",
            "while",
            "and",
            "we",
            "check",
            "it",
        ]
    ),
    max_size=8,
).map(" ".join)


@given(WORDS, WORDS, st.integers(0, 999), st.integers(0, 999))
def test_a_change_goes_both_ways_and_never_from_a_statement_to_itself(head, tail, was, now):
    assume(was != now)
    one, other = (f"{head} {number} {tail}".strip() for number in (was, now))
    assert change(one, one) is None
    assert (change(one, other) is None) == (change(other, one) is None)

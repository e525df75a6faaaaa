import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.recall.hits import bigrams, diversify, jaccard, make_snippet
from memd.recall.profiles import DiversitySettings
from memd.recall.query import parse_terms


def test_a_second_hit_of_the_same_turn_comes_after_everything_else():
    order, why = diversify(
        [1, 2, 3], {1: "e", 2: "e", 3: "f"}, {}, DiversitySettings(per_episode=1)
    )
    assert order == [1, 3, 2]
    assert why == {2: "diversity: same turn as #1"}


def test_what_belongs_to_no_turn_is_never_the_same_turn():
    assert diversify([1, 2], {1: None, 2: None}, {}, DiversitySettings(per_episode=1))[0] == [
        1,
        2,
    ]


def test_a_hit_that_says_the_same_is_demoted_not_removed():
    texts = {
        1: "we keep sessions in redis now",
        2: "we keep sessions in redis",
        3: "tests run with pytest",
    }
    order, why = diversify([1, 2, 3], {}, texts, DiversitySettings(jaccard=0.6))
    assert order == [1, 3, 2]
    assert why == {2: "diversity: like #1"}


def test_overlap_is_counted_in_pairs_of_words():
    # "a b c": {a b, b c}; "a b d": {a b, b d}: 1 shared of 3
    assert jaccard(bigrams("a b c"), bigrams("A, b: d")) == pytest.approx(1 / 3)
    assert jaccard(bigrams(""), bigrams("")) == 0.0


@given(st.lists(st.integers(0, 50), unique=True), st.integers(1, 3))
def test_diversity_loses_and_doubles_nothing(ids, limit):
    episodes = {i: f"e{i % 4}" for i in ids}
    order, _ = diversify(ids, episodes, {}, DiversitySettings(per_episode=limit))
    assert sorted(order) == sorted(ids)


def test_a_snippet_begins_where_the_question_is_answered():
    text = "Asked for a rate limit. The window slides. Redis holds the sessions. Done."
    assert make_snippet("Rate limit", text, parse_terms("where are sessions")).startswith(
        "Redis holds the sessions."
    )


def test_a_snippet_does_not_repeat_the_title():
    assert make_snippet(
        "Use Redis.", "Use Redis. Because of three machines.", parse_terms("redis")
    ).startswith("Because")
    assert make_snippet("Title", "", parse_terms("x")) == ""


def test_a_snippet_is_one_short_line():
    assert len(make_snippet("t", "word\n" * 500, parse_terms("word"), 100)) <= 100
    assert "\n" not in make_snippet("t", "a\nb\nc", parse_terms("b"))


def test_a_file_name_is_no_end_of_a_sentence():
    text = "It raised in auth.py (login). Then it was mended."
    assert make_snippet("t", text, parse_terms("auth raised")) == text


def test_a_labelled_repetition_of_the_title_is_no_snippet():
    text = "Asked: Login answers 500. Find out why.\nCause and fix: The token was not split."
    assert not make_snippet(
        "Fixed: Login answers 500", text, parse_terms("login 500")
    ).startswith("Asked: Login")

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.embeddings.fitting import CONTEXT_TOKENS, fitted, halved, tokens


def test_a_text_that_fits_is_sent_whole_behind_its_prefix():
    assert fitted("short", "search_query: ") == "search_query: short"


@pytest.mark.parametrize(
    "unit", ["word ", "decode_token(x) ", "数据库", "9", "a", "\U0001f600 "]
)
def test_a_long_text_keeps_its_head_and_fits(unit):
    text = unit * 20_000
    cut = fitted(text, "search_document: ")
    assert cut.startswith("search_document: " + unit)
    assert text.startswith(cut.removeprefix("search_document: "))
    assert CONTEXT_TOKENS * 0.9 < tokens(cut) <= CONTEXT_TOKENS


def test_a_smaller_context_cuts_more():
    assert tokens(fitted("word " * 1_000, context=256)) <= 256


@given(st.text(max_size=300), st.integers(16, 100))
def test_what_is_cut_is_always_the_beginning_of_the_text(text, context):
    assert text.startswith(fitted(text, context=context))


def test_the_estimate_is_rather_too_high_than_too_low():
    assert tokens("the quick brown fox") == 6
    assert tokens("0a1b2c3d") == 8
    assert tokens("   \n") == 0


def test_a_half_keeps_the_prefix_and_there_is_an_end_to_it():
    text, halves = "p: " + "x" * 100, []
    while text is not None:
        halves.append(text)
        text = halved(text, "p: ")
    assert [len(half) - 3 for half in halves] == [100, 50, 25, 12]
    assert all(half.startswith("p: ") for half in halves)

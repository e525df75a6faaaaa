import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.recall.query import QueryTerms, fts_expression, parse_terms, phrase_expression
from memd.store import fulltext


def test_words_are_stemmed_counted_and_freed_of_stop_words():
    query = parse_terms("why did the logins answer the login")
    assert query.weights == {"login": 2.0, "answer": 1.0}
    assert query.words == ("logins", "answer", "login")


def test_a_question_of_stop_words_alone_keeps_them():
    assert set(parse_terms("what was that").weights) == {"what", "was", "that"}


def test_phrases_prefixes_and_or_are_understood():
    query = parse_terms('"model router" OR conf* OR "single" redis')
    assert query.phrases == (("model", "router"),)
    assert query.prefixes == ("conf",)
    assert set(query.weights) == {"singl", "redi"}


def test_identifiers_are_asked_for_whole_and_in_parts():
    assert set(parse_terms("decode_token").weights) == {"decode_token", "decod", "token"}


@pytest.mark.parametrize("nothing", ["", "   ", "!!!", '""', "*", "\x00", "AND OR NOT"])
def test_nothing_to_look_for_is_an_empty_query(nothing):
    assert parse_terms(nothing).is_empty


@pytest.mark.parametrize(
    "soup",
    [
        '"unclosed',
        "a AND",
        "NEAR(x y, 5)",
        "col:val",
        "C++ (a OR",
        "-x ^y",
        "a''b",
        '"" "',
        "{}[]",
        "*x",
    ],
)
def test_operator_soup_is_taken_for_words(db, soup):
    expression = fts_expression(parse_terms(soup))
    if expression:
        db.read_now(lambda tx: fulltext.match_passages(tx, expression, 5))


def test_what_is_too_long_is_cut_and_not_refused():
    assert len(parse_terms("word " * 10_000).weights) == 1
    assert len(parse_terms(" ".join(f"w{i}" for i in range(2_000))).weights) <= 64


@given(st.text(max_size=300))
def test_no_text_whatever_makes_an_fts_expression_that_sqlite_refuses(text):
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE t USING fts5 (x, tokenize = 'porter unicode61')")
    query = parse_terms(text)
    for expression in (fts_expression(query), *(phrase_expression(p) for p in query.phrases)):
        if expression:
            safe = expression.encode("utf-8", "replace").decode()
            list(connection.execute("SELECT * FROM t WHERE t MATCH ?", (safe,)))
    connection.close()


def test_an_empty_query_has_no_expression():
    assert fts_expression(QueryTerms("")) == ""


def test_a_prefix_is_a_word_whole_and_found_at_once():
    assert parse_terms("__conf* x.lo* naïv* _*").prefixes == ("conf", "lo", "naiv")
    assert parse_terms("a" * 1_000_000).prefixes == ()

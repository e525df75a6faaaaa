import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.models import Kind
from memd.recall import Question
from memd.recall.profiles import resolve_profile
from memd.recall.query import (
    Intent,
    ParsedQuery,
    QueryTerms,
    fts_expression,
    parse_terms,
    phrase_expression,
    read_intent,
)
from memd.store import fulltext
from tests.tables import every_row, read_tables

TABLES = read_tables("recall/query")


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


@every_row("nothing", ["", "   ", "!!!", '""', "*", "\x00", "AND OR NOT"])
def test_nothing_to_look_for_is_an_empty_query(nothing):
    assert parse_terms(nothing).is_empty


@pytest.mark.parametrize("soup", TABLES["operator_soup_is_taken_for_words"])
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


@every_row(
    "question",
    ["latest decision", "where were we?", "what did we do last session", "Yesterday's fix"],
)
def test_asking_for_the_latest_is_noticed(question):
    assert read_intent(question).is_recent


@every_row("question", ["where do we keep sessions", "the lastpass import", "recentre the map"])
def test_other_questions_do_not_ask_for_the_latest(question):
    assert not read_intent(question).is_recent


@every_row(
    ("question", "kind"),
    [
        ("how should tests be run", Kind.INSTRUCTION),
        ("why did login answer 500", Kind.FIX),
        ("LIMITS NameError", Kind.FAILURE),
        ("where do we keep sessions", Kind.DECISION),
        ("open tasks", Kind.TASK),
    ],
)
def test_the_kind_that_is_asked_for_is_read_from_the_words(question, kind):
    assert kind in read_intent(question).kinds


def test_plain_words_ask_for_no_kind():
    assert not read_intent("redis session store").kinds


def make_parsed_query(text="kettle", intent=None, profile="memd", **question):
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
    assert make_parsed_query().now == 100
    assert make_parsed_query(as_of=0).now == 0


def test_the_intent_is_noted_only_if_the_profile_uses_it():
    meant = Intent(is_recent=True, kinds=(Kind.FIX,))
    assert make_parsed_query(intent=meant).notes[1] == "the question asks for a fix"
    assert "an instruction" in make_parsed_query(intent=Intent(kinds=(Kind.INSTRUCTION,))).notes[0]
    assert make_parsed_query(intent=meant, profile="siftcoder").notes == ()


def test_the_page_ends_after_its_last_hit():
    assert make_parsed_query(offset=10).page_end == 15


def test_both_sides_of_and_are_required_but_a_prefix_is_only_ranked():
    assert parse_terms("deploy AND shop").required == ("deploy", "shop")
    assert parse_terms("shop AND dep*").required == ("shop",)
    assert parse_terms("dep* AND shop").required == ("shop",)

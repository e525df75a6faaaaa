"""Orders in other languages that hold: kept as the English ones are, and not what reports, asks or is said for once."""

from memd.distill.assertions import draft_assertions, read_sentence
from memd.distill.episodes import EpisodeContext, read_story
from memd.distill.own_words import read_own_sentences, select_assertions
from tests.factories import make_event
from tests.tables import every_row, read_tables

TABLES = read_tables("distill/orders")

KEPT = TABLES["KEPT"]
ASKED_TO_KEEP = TABLES["ASKED_TO_KEEP"]  # fmt: skip
NOT_KEPT = TABLES["NOT_KEPT"]


def read(text):
    found = filter(None, map(read_sentence, select_assertions(read_own_sentences(text))))
    return [(form.rule, str(kind)) for form, kind in found]


def draft(text):
    context = EpisodeContext()
    found = draft_assertions(read_story([make_event(prompt=text)], context), context)
    return [(str(one.kind), one.title) for one in found]


@every_row(("text", "rule"), KEPT)
def test_an_order_that_holds_is_kept_in_the_language_in_which_it_is_given(text, rule):
    assert read(text) == [(rule, "instruction")]


@every_row(("text", "kind", "title"), ASKED_TO_KEEP)
def test_what_one_asks_to_remember_decides_or_prefers_is_kept_in_any_of_the_languages(
    text, kind, title
):
    assert draft(text) == [(kind, title)]


@every_row("text", NOT_KEPT)
def test_what_reports_asks_or_is_for_once_is_no_order(text):
    assert read(text) == []

"""“From now on” before an order or what binds, and “remember that” behind it: kept where they say something that can be understood alone."""

from memd.distill.assertions import _clean, read_sentence
from memd.distill.own_words import read_own_sentences, select_assertions
from tests.tables import every_row, read_tables

TABLES = read_tables("distill/asked_to_keep")

BANS = (
    "From now on, no semicolons in TypeScript.",
    "From now on, no push to main.",
    "from now on no print statements in the code please",
    "From now on, no test may take longer than a second.",
)
KEPT = TABLES["KEPT"]
NOT_KEPT = TABLES["NOT_KEPT"]


def read(text):
    found = filter(None, map(read_sentence, select_assertions(read_own_sentences(text))))
    return [(form.rule, str(kind)) for form, kind in found]


@every_row(("text", "rule", "kind"), KEPT)
def test_what_the_user_asks_to_keep_is_kept(text, rule, kind):
    assert read(text) == [(rule, kind)]


@every_row("text", NOT_KEPT)
def test_what_is_doubted_asked_reported_or_ordered_for_once_is_not(text):
    assert read(text) == []


@every_row("text", BANS)
def test_what_is_forbidden_from_now_on_is_not_turned_into_an_order(text):
    (sentence,) = read_own_sentences(text)
    form, _ = read_sentence(sentence)
    assert _clean(sentence.text, form).startswith("no ")

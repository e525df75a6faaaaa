"""What its speaker takes back or doubts with his next words is neither kept nor told as said lately; what follows it harmlessly undoes nothing."""

from memd.distill.assertions import is_withdrawn_form, read_sentence
from memd.distill.own_words import read_own_sentences, select_assertions
from memd.injection.learned import SaidSentence, choose_said
from tests.tables import every_row, read_tables

TABLES = read_tables("distill/withdrawn")

WITHDRAWN = TABLES["WITHDRAWN"]
KEPT = TABLES["KEPT"]


def read(text):
    own = select_assertions(read_own_sentences(text))
    return [one.text for one in own if read_sentence(one) and not is_withdrawn_form(one)]


@every_row("text", WITHDRAWN)
def test_what_is_taken_back_in_the_same_message_is_not_kept(text):
    assert read(text) == []


@every_row("text", KEPT)
def test_what_is_followed_by_a_reason_thanks_or_another_matter_is_kept(text):
    assert text.startswith(read(text)[0])


@every_row("text", WITHDRAWN[:8])
def test_neither_what_is_taken_back_nor_the_words_that_do_so_are_told_as_said_lately(text):
    other = "Please never restart the ferry database while the tide table is read."
    said = [SaidSentence(text, 2), SaidSentence(other, 1)]
    assert [one.text for one in choose_said(said, (), 10)] == [other]

"""Which words `memd forget --query` finds in a text, and which it does not."""

from memd.consolidate.wanted_words import parse_wanted_words
from tests.tables import every_row, read_tables

TABLES = read_tables("consolidate/wanted_words")

FOUND = TABLES["FOUND"]
NOT_FOUND = TABLES["NOT_FOUND"]


@every_row(("query", "text"), FOUND)
def test_a_word_is_found_as_search_splits_it(query, text):
    wanted = parse_wanted_words(query)
    assert wanted.terms
    assert wanted.are_in([text])
    assert wanted.may_be_in(text)


@every_row(("query", "text"), NOT_FOUND)
def test_a_word_is_not_found_within_another_or_in_another_form(query, text):
    assert not parse_wanted_words(query).are_in([text])


def test_all_words_must_stand_in_one_row_but_a_phrase_in_one_text():
    assert parse_wanted_words("party server").are_in(["the server", "of the party"])
    assert not parse_wanted_words('"party server"').are_in(["a party", "server it is"])


def test_the_directory_of_a_project_does_not_say_its_words():
    wanted = parse_wanted_words("party").with_names(["/home/dev/party-server"])
    assert not wanted.are_in(["edited /home/dev/party-server/src/a.py"])
    assert not wanted.are_in(["/home/dev/.claude/projects/-home-dev-party-server/1.jsonl"])
    assert wanted.are_in(["edited /home/dev/party-server/src/party.py"])
    assert wanted.are_in(["the party is over"])
    literal = parse_wanted_words("party-server/src/a.py").with_names(["/home/dev/party-server"])
    assert literal.are_in(["edited /home/dev/party-server/src/a.py"])


def test_a_long_text_takes_no_longer_for_its_repetitions():
    wanted = parse_wanted_words('"a b" art')
    assert not wanted.are_in(["a " * 50_000 + "restart"])
    assert not wanted.are_in(["a" + " ." * 50_000])

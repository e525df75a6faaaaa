import pytest

from memd.errors import VaultError
from memd.store import fulltext
from memd.store.types import NewPassage, Posting


def passage(summary_id, text, seq=0):
    postings = tuple(Posting(word, 0, 1) for word in dict.fromkeys(text.split()))
    return NewPassage(summary_id, seq, 0, len(text), "Title", text, "", postings)


def put(db, *passages):
    return db.write_now(lambda tx: fulltext.put_passages(tx, passages))


def test_a_passage_is_found_by_its_words_and_loaded_as_it_was_put(db):
    stored = put(db, passage(7, "alpha beta"), passage(8, "beta gamma"))
    assert [
        p for p, _ in db.read_now(lambda tx: fulltext.match_passages(tx, '"gamma"', 9))
    ] == [stored[1].id]
    assert list(db.read_now(lambda tx: list(fulltext.load_passages(tx)))) == stored
    assert db.read_now(lambda tx: fulltext.passage_owners(tx, [stored[0].id])) == {
        stored[0].id: 7
    }
    assert db.read_now(lambda tx: fulltext.passage_spans(tx, [stored[0].id])) == {
        stored[0].id: (0, 10)
    }
    assert db.read_now(fulltext.count_passages) == 2


def test_a_removed_summary_leaves_no_passage_and_no_word_of_its_own(db):
    (first, _) = put(db, passage(7, "alpha beta"), passage(8, "beta gamma"))
    assert db.write_now(lambda tx: fulltext.remove_passages(tx, 7)) == [first.id]
    words, numbers = db.read_now(fulltext.terms_in_order)
    assert words == b"beta\ngamma"
    assert len(set(numbers.split())) == 2
    assert db.read_now(lambda tx: fulltext.match_passages(tx, '"alpha"', 9)) == []
    db.write_now(fulltext.purge_passages)
    assert db.read_now(lambda tx: fulltext.match_passages(tx, '"beta"', 9)) != []


def test_postings_hold_the_number_of_the_term_and_how_often(db):
    (stored,) = put(db, NewPassage(1, 0, 0, 1, "t", "x", "", (Posting("a", 1, 300),)))
    number = int(db.read_now(fulltext.terms_in_order)[1])
    assert stored.postings == number.to_bytes(4, "little") + bytes((1, 255))
    assert stored.length == 301


def test_an_expression_that_is_none_is_an_error_of_the_vault_not_a_crash(db):
    with pytest.raises(VaultError):
        db.read_now(lambda tx: fulltext.match_passages(tx, '"', 9))

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.errors import VaultError
from memd.models import Draft, Kind
from memd.store import NewPassage, Posting, erasure, fulltext, links, projects, summaries
from memd.store.fulltext import POSTING, pack_postings, unpack_postings
from tests.consolidate.conftest import Vault
from tests.factories import supersede


def passage(summary_id, text, seq=0):
    postings = tuple(Posting(word, 0, 1) for word in dict.fromkeys(text.split()))
    return NewPassage(summary_id, seq, 0, len(text), "Title", text, "", postings)


def put(db, *passages):
    return db.write_now(lambda tx: fulltext.put_passages(tx, passages))


def test_a_passage_is_found_by_its_words_and_loaded_as_it_was_put(db):
    stored = put(db, passage(7, "alpha beta"), passage(8, "beta gamma"))
    assert [p for p, _ in db.read_now(lambda tx: fulltext.match_passages(tx, '"gamma"', 9))] == [
        stored[1].id
    ]
    assert list(db.read_now(lambda tx: list(fulltext.load_passages(tx)))) == stored
    assert db.read_now(lambda tx: fulltext.passage_owners(tx, [stored[0].id])) == {stored[0].id: 7}
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


def test_an_expression_that_is_none_is_an_error_of_the_vault_not_a_crash(db):
    with pytest.raises(VaultError):
        db.read_now(lambda tx: fulltext.match_passages(tx, '"', 9))


def write(tx, uid, body="b"):
    owner = summaries.SummaryOwner(projects.ensure_project(tx, "/a", "a", "", 1), None, "agent")
    return summaries.put_summary(tx, uid, Draft("t", Kind.NOTE, "t", body, 1, "r", ()), owner, 1)[0]


def pending(db):
    return db.read_now(lambda tx: fulltext.pending_changes(tx, 100))


def test_hiding_and_reviving_a_summary_is_a_change_of_the_older_one(db):
    old, new = db.write_now(lambda tx: (write(tx, "o"), write(tx, "n")))

    def learn(tx):
        fulltext.remove_changes(tx, [seq for seq, _ in fulltext.pending_changes(tx, 9)])

    db.write_now(learn)
    row = supersede(db, new, old)
    assert [i for _, i in pending(db)] == [old]
    db.write_now(learn)
    db.write_now(lambda tx: links.undo_supersession(tx, row, 2))
    assert [i for _, i in pending(db)] == [old]


def test_queue_reindex_queues_every_summary(db):
    db.write_now(lambda tx: [write(tx, str(i)) for i in range(3)])
    db.write_now(
        lambda tx: fulltext.remove_changes(tx, [seq for seq, _ in fulltext.pending_changes(tx, 9)])
    )
    assert db.write_now(fulltext.queue_reindex) == 3


COUNT = st.sampled_from([0, 1, 1, 1, 2, 255])
TERM = st.one_of(st.integers(0, 300), st.integers(0, 2**32 - 1))


def flat(passages):
    rows = [(term, *counts) for passage in passages for term, counts in passage.items()]
    return np.array(rows, POSTING), [len(passage) for passage in passages]


@given(st.lists(st.dictionaries(TERM, st.tuples(COUNT, COUNT), max_size=12), max_size=6))
def test_what_is_packed_is_unpacked_in_order_of_the_terms(passages):
    blobs = pack_postings(*flat(passages))
    found, sizes = unpack_postings(blobs)
    assert sizes.tolist() == [len(passage) for passage in passages]
    assert found.tolist() == [
        (term, *passage[term]) for passage in passages for term in sorted(passage)
    ]
    assert [unpack_postings([blob])[0].tolist() for blob in blobs] == [
        [(term, *passage[term]) for term in sorted(passage)] for passage in passages
    ]


def test_a_blob_that_is_none_is_an_error_that_can_be_caught():
    with pytest.raises(ValueError, match="no postings"):
        unpack_postings([b"\x09\x00\x01\x02\x03"])


LABELS = {"sources": ["a", "b"], "tags": [[], ["x", "y"]]}


def hold(db, name="one"):
    return db.write_now(lambda tx: fulltext.record_snapshot(tx, name, LABELS))


def state(db):
    return db.read_now(
        lambda tx: (
            fulltext.snapshot_name(tx),
            fulltext.unsaved_ids(tx),
            fulltext.snapshot_labels(tx),
        )
    )


NOTHING = (None, [], {"sources": [], "tags": []})


def test_a_snapshot_is_valid_until_another_one_is_recorded(db):
    assert state(db) == NOTHING
    assert hold(db)
    db.write_now(lambda tx: fulltext.mark_unsaved(tx, [3, 1, 3]))
    assert state(db) == ("one", [1, 3], LABELS)
    assert db.read_now(fulltext.count_unsaved) == 2
    assert hold(db, "two")
    assert state(db) == ("two", [], LABELS)
    db.write_now(fulltext.invalidate_snapshot)
    assert state(db) == NOTHING


def test_without_a_snapshot_nothing_is_marked_unsaved(db):
    db.write_now(lambda tx: fulltext.mark_unsaved(tx, [1, 2]))
    assert state(db) == NOTHING


def test_no_two_snapshots_have_the_same_name(db):
    assert db.read_now(fulltext.new_snapshot_name) != db.read_now(fulltext.new_snapshot_name)


async def test_a_snapshot_is_not_recorded_while_changes_are_pending(db, clock):
    vault = Vault(db, clock)
    vault.put("the ledger")
    assert not hold(db)
    await vault.indexer.settle()
    assert hold(db)


def test_marking_an_erasure_invalidates_the_snapshot(db):
    hold(db)
    db.write_now(lambda tx: erasure.mark_erased(tx, "forgotten"))
    assert state(db) == NOTHING

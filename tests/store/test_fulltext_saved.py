from memd.store import erasure, fulltext, summaries
from tests.consolidate.conftest import Vault

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


def test_a_copy_holds_until_another_does(db):
    assert state(db) == NOTHING
    assert hold(db)
    db.write_now(lambda tx: fulltext.mark_unsaved(tx, [3, 1, 3]))
    assert state(db) == ("one", [1, 3], LABELS)
    assert db.read_now(fulltext.count_unsaved) == 2
    assert hold(db, "two")
    assert state(db) == ("two", [], LABELS)
    db.write_now(fulltext.invalidate_snapshot)
    assert state(db) == NOTHING


def test_without_a_copy_nothing_is_listed(db):
    db.write_now(lambda tx: fulltext.mark_unsaved(tx, [1, 2]))
    assert state(db) == NOTHING


def test_no_two_copies_have_the_same_name(db):
    assert db.read_now(fulltext.new_snapshot_name) != db.read_now(fulltext.new_snapshot_name)


async def test_a_copy_does_not_hold_while_something_waits_to_be_indexed(db, clock):
    vault = Vault(db, clock)
    vault.put("the ledger")
    assert not hold(db)
    await vault.indexer.settle()
    assert hold(db)


async def test_a_memory_that_goes_lets_no_copy_hold_any_more(db, clock):
    vault = Vault(db, clock)
    number, _ = vault.put("the ledger"), vault.put("another")
    await vault.indexer.settle()
    hold(db)
    db.write_now(
        lambda tx: (fulltext.remove_passages(tx, number), summaries.delete_summary(tx, number))
    )
    assert state(db) == NOTHING


def test_what_is_erased_in_place_lets_no_copy_hold_any_more(db):
    hold(db)
    db.write_now(lambda tx: erasure.mark_erased(tx, "forgotten"))
    assert state(db) == NOTHING

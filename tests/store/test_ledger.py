from memd.store import ledger


def test_the_ledger_balances_over_all_sources(db):
    db.write_now(
        lambda tx: ledger.record_receipts(
            tx, "live", {("received", ""): 3, ("stored", ""): 2, ("filtered", "tool"): 1}
        )
    )
    db.write_now(
        lambda tx: ledger.record_receipts(
            tx, "spool", {("received", ""): 1, ("filtered", "tool"): 1}
        )
    )
    balance = db.read_now(ledger.balance)
    assert balance == {"received": 4, "stored": 2, "duplicate": 0, "filtered": 2, "refused": 0}
    assert db.read_now(lambda tx: ledger.outcome_reasons(tx, "filtered")) == {"tool": 2}


def test_forgetting_is_remembered_by_hash_and_can_be_taken_back(db):
    db.write_now(lambda tx: ledger.record_forgotten(tx, "k", 1))
    assert db.read_now(lambda tx: ledger.is_forgotten(tx, "k"))
    db.write_now(lambda tx: ledger.remove_forgotten(tx, "k"))
    assert not db.read_now(lambda tx: ledger.is_forgotten(tx, "k"))


def test_an_imported_file_is_known_as_it_was(db):
    db.write_now(lambda tx: ledger.mark_imported(tx, "/t.jsonl", 10, 20, 1))
    db.write_now(lambda tx: ledger.mark_imported(tx, "/t.jsonl", 11, 21, 2))
    assert db.read_now(ledger.imported_files) == {"/t.jsonl": (11, 21)}

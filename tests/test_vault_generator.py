from benchmarks import vault_generator
from memd.daemon.doctor import examine_vault
from memd.store import fulltext
from memd.store.database import Database


def test_a_generated_vault_is_whole_and_its_index_equals_its_truth(tmp_path, monkeypatch):
    monkeypatch.setattr("memd.index.snapshot.ROWS_MIN", 1)
    path = str(tmp_path / "v.db")
    vault_generator.fill(path, 300)
    found = examine_vault(path, 2_000_000_000_000, is_served=False)
    # It was made without a daemon, which would have noted by which rules of redaction it was written.
    assert [one for one in found if one.verdict != "ok" and one.name != "secrets"] == []
    db = Database(path, 1)
    assert db.read_now(fulltext.snapshot_name)
    db.close()

from pathlib import Path

from memd.store import database
from memd.store.database import Database


def test_the_copy_counts_in_what_a_vault_weighs_and_goes_as_a_whole(tmp_path):
    vault = str(tmp_path / "v.db")
    db = Database(vault, 1)
    before = db.size()
    assert database.snapshot_bytes(vault) == 0
    folder = Path(database.snapshot_directory(vault), "one")
    folder.mkdir(parents=True)
    (folder / "a").write_bytes(bytes(100_000))
    with (folder / "hole").open("wb") as file:
        file.truncate(10_000_000)
    assert 100_000 <= db.size() - before < 200_000
    database.remove_snapshots(vault)
    assert db.size() == before
    database.remove_snapshots(vault)
    db.close()

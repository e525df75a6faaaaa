import random
from pathlib import Path

import apsw
import pytest

from memd.store import database
from memd.store.database import Database

LOCKS = Path("/proc/locks")


def noise(path):
    with Path(path).open("r+b") as file:
        file.seek(4096)
        file.write(random.Random(1).randbytes(40_960))  # noqa: S311  # noise, not a secret


@pytest.mark.skipif(not LOCKS.exists(), reason="only Linux shows its locks")
def test_a_whole_vault_is_not_damaged_and_its_locks_are_kept(tmp_path):
    db = Database(str(tmp_path / "v.db"), 1)
    inode = f":{Path(db.path).stat().st_ino} "
    assert inode in LOCKS.read_text(encoding="ascii")
    assert not database.is_damaged(db.path)
    assert inode in LOCKS.read_text(encoding="ascii")
    db.close()


def test_a_vault_with_noise_in_its_pages_is_damaged(tmp_path):
    db = Database(str(tmp_path / "v.db"), 1)
    db.write_now(lambda tx: tx.execute("INSERT INTO forgotten VALUES ('a', 1)"))
    db.close()
    noise(db.path)
    assert database.is_damaged(db.path)
    (tmp_path / "text.db").write_text("no database " * 100)
    assert database.is_damaged(str(tmp_path / "text.db"))


def test_a_file_that_cannot_be_read_is_not_damaged_for_that(tmp_path):
    assert not database.is_damaged(str(tmp_path / "none.db"))
    (tmp_path / "directory").mkdir()
    assert not database.is_damaged(str(tmp_path / "directory"))
    connection = apsw.Connection(str(tmp_path / "locked.db"))
    connection.execute("CREATE TABLE a (b)")
    connection.execute("BEGIN EXCLUSIVE")
    assert not database.is_damaged(str(tmp_path / "locked.db"))
    connection.close()

from importlib import resources
from pathlib import Path

import apsw
import pytest

from memd.errors import VaultCorrupt, VaultForeign, VaultNewer
from memd.store import migrate
from memd.store.database import Database


def dump(connection):
    """Everything a schema is, and nothing of how its SQL was laid out."""
    return sorted(
        (kind, name, " ".join(sql.split()))
        for kind, name, sql in connection.execute(
            "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
        )
    )


def untouched(path):
    before = path.read_bytes(), sorted(p.name for p in path.parent.iterdir())
    return lambda: (path.read_bytes(), sorted(p.name for p in path.parent.iterdir())) == before


def test_all_migrations_together_yield_the_schema():
    migrated, declared = apsw.Connection(":memory:"), apsw.Connection(":memory:")
    for sql in migrate.migrations():
        migrated.execute(sql)
    declared.execute((resources.files("memd.store") / "schema.sql").read_text(encoding="utf-8"))
    assert dump(migrated) == dump(declared)


def test_a_new_vault_says_what_it_is_in_its_first_hundred_bytes(tmp_path):
    path = tmp_path / "v.db"
    Database(str(path), 1).close()
    header = path.read_bytes()[:100]
    assert header[68:72] == b"memd"
    assert int.from_bytes(header[60:64], "big") == len(migrate.migrations())


def test_opening_a_vault_again_changes_nothing_of_its_schema(tmp_path):
    path = str(tmp_path / "v.db")
    first = Database(path, 1)
    schema = first.read_now(dump)
    first.close()
    second = Database(path, 2)
    assert second.read_now(dump) == schema
    second.close()


def test_a_newer_vault_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "v.db"
    Database(str(path), 1).close()
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 999)
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.close()
    same = untouched(path)
    with pytest.raises(VaultNewer, match="999"):
        Database(str(path), 2)
    assert same()


def test_a_foreign_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "v.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    same = untouched(path)
    with pytest.raises(VaultForeign, match="another program"):
        Database(str(path), 1)
    assert same()


@pytest.mark.parametrize(
    "content", [b"not a database at all", b"\x00" * 200, b"SQLite format 3\x00" + b"x" * 20]
)
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "v.db"
    path.write_bytes(content)
    same = untouched(path)
    with pytest.raises(VaultCorrupt, match="beginning is damaged"):
        Database(str(path), 1)
    assert same()


def test_a_damaged_page_is_found_at_the_start_and_the_file_stays(tmp_path):
    path = tmp_path / "v.db"
    Database(str(path), 1).close()
    content = bytearray(path.read_bytes())
    content[4096:8192] = b"\xff" * 4096
    path.write_bytes(bytes(content))
    with pytest.raises(VaultCorrupt):
        Database(str(path), 1)
    assert path.read_bytes() == bytes(content)


def test_an_empty_file_becomes_a_vault(tmp_path):
    path = tmp_path / "v.db"
    path.touch()
    Database(str(path), 1).close()
    assert path.read_bytes().startswith(b"SQLite format 3")


def test_a_crash_in_the_very_first_transaction_is_not_taken_for_a_foreign_file(tmp_path):
    path = tmp_path / "v.db"
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.execute("BEGIN; CREATE TABLE half (x); ROLLBACK")
    Path(str(path) + "-wal").touch()
    connection.close()
    Path(str(path) + "-wal").touch()
    Database(str(path), 1).close()

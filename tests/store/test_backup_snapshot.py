import pytest

from memd.errors import BadRequest, VaultCorrupt, VaultError
from memd.store.backup import read_snapshot, require_current_schema
from memd.store.database import Database
from tests.export_records import AT, fill, project


def count(connection):
    return connection.execute("SELECT count(*) FROM projects").get


def test_a_snapshot_is_of_one_moment_and_holds_up_no_writer(tmp_path):
    path = fill(tmp_path / "v.db", [project()])
    db = Database(path, AT)
    with read_snapshot(path) as connection:
        db.write_now(lambda tx: tx.execute("DELETE FROM projects"))
        assert count(connection) == 1
    with read_snapshot(path) as connection:
        assert count(connection) == 0
    db.close()


def test_where_there_is_no_vault_it_says_so_and_makes_none(tmp_path):
    for path in (tmp_path / "none.db", tmp_path):
        with pytest.raises(BadRequest, match="there is no vault"), read_snapshot(str(path)):
            raise AssertionError
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_vault_is_refused(tmp_path):
    (tmp_path / "x.db").write_text("not a database, but long enough to look like one " * 9)
    with pytest.raises(VaultCorrupt), read_snapshot(str(tmp_path / "x.db")):
        raise AssertionError


def test_sqlite_s_errors_are_said_in_memd_s_words(tmp_path):
    path = fill(tmp_path / "v.db", [])
    with read_snapshot(path) as connection:
        require_current_schema(connection)
    with pytest.raises(VaultError), read_snapshot(path) as connection:
        connection.execute("SELECT nothing FROM nowhere")

import os

import apsw
import pytest

from memd.errors import BadRequest, Broken
from memd.store import foreign_sqlite
from memd.store.foreign_sqlite import open_foreign


@pytest.fixture
def path(tmp_path):
    return tmp_path / "other #1?.db"


@pytest.fixture
def owner(path):
    connection = apsw.Connection(str(path))
    connection.execute('CREATE TABLE things (id INTEGER PRIMARY KEY, "odd ""name" TEXT, n)')
    connection.execute("INSERT INTO things VALUES (1, 'Müde', 3), (7, CAST(x'ff41' AS TEXT), NULL)")
    yield connection
    connection.close()


@pytest.mark.usefixtures("owner")
def test_tables_and_rows_are_read_as_text(path):
    with open_foreign(str(path)) as file:
        assert file.tables() == {"things": ("id", 'odd "name', "n")}
        assert file.count("things") == 2
        assert list(file.rows("things")) == [
            {"id": "1", 'odd "name': "Müde", "n": "3"},
            {"id": "7", 'odd "name': "\ufffdA", "n": None},
        ]


def test_more_rows_than_a_page_come_in_order(path, owner, monkeypatch):
    monkeypatch.setattr(foreign_sqlite, "_PAGE_ROWS", 10)
    owner.executemany("INSERT INTO things (id) VALUES (?)", [(n,) for n in range(-5, 95, 10)])
    owner.executemany("INSERT INTO things (id) VALUES (?)", [(n,) for n in range(100, 130)])
    with open_foreign(str(path)) as file:
        ids = [int(row["id"]) for row in file.rows("things")]
    assert ids == sorted(ids)
    assert len(ids) == 42


def test_the_owner_s_write_ahead_log_is_read_and_the_owner_goes_on(path, owner):
    owner.pragma("journal_mode", "wal")
    owner.pragma("wal_autocheckpoint", 0)
    owner.execute("INSERT INTO things (id) VALUES (8)")
    before = path.read_bytes()
    with open_foreign(str(path)) as file:
        owner.execute("INSERT INTO things (id) VALUES (9)")
        assert [row["id"] for row in file.rows("things")] == ["1", "7", "8", "9"]
    assert path.read_bytes() == before


def test_an_unopened_file_is_left_as_it_was_with_nothing_beside_it(path, owner):
    owner.pragma("journal_mode", "wal")
    owner.close()
    before = path.read_bytes()
    with open_foreign(str(path)) as file:
        assert file.count("things") == 2
        with pytest.raises(Broken):
            list(file.rows("gone"))
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]  # noqa: PTH208  # the names are the point


def test_a_write_by_the_owner_during_the_read_is_noticed(path, owner):
    owner.pragma("journal_mode", "wal")
    owner.close()

    def write_late():
        with open_foreign(str(path)):
            late = apsw.Connection(str(path))
            late.execute("INSERT INTO things (id) VALUES (9)")
            late.close()

    with pytest.raises(Broken, match="written to while it was read"):
        write_late()


def test_a_locked_file_is_reported_as_locked(path, owner, monkeypatch):
    monkeypatch.setattr(foreign_sqlite, "BUSY_TIMEOUT_MS", 10)
    owner.execute("BEGIN EXCLUSIVE")
    with pytest.raises(Broken, match="locked by another program"), open_foreign(str(path)) as file:
        file.tables()
    owner.execute("ROLLBACK")


def test_a_file_that_is_not_a_database_is_reported(tmp_path, path, owner):
    (tmp_path / "a.db").write_text("SQLite, they say")
    with (
        pytest.raises(BadRequest, match="is not an SQLite database"),
        open_foreign(str(tmp_path / "a.db")),
    ):
        pass
    with pytest.raises(FileNotFoundError), open_foreign(str(tmp_path / "gone.db")):
        pass
    owner.close()
    torn = tmp_path / "torn.db"
    torn.write_bytes(path.read_bytes()[:100] + b"\xff" * 4_000)
    with pytest.raises((Broken, BadRequest)), open_foreign(str(torn)) as file:
        file.tables()

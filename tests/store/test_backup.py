import os
import threading
from pathlib import Path

import apsw
import pytest

from memd.errors import BadRequest, VaultCorrupt, VaultForeign, VaultNewer
from memd.store import backup, database
from memd.store.backup import read_snapshot
from memd.store.database import Database
from tests.export_records import AT, edge, event, exported, fill, one_of_each, project, session


def silent(_done, _total):
    pass


@pytest.fixture
def vault(tmp_path):
    return fill(tmp_path / "v.db", one_of_each())


@pytest.fixture
def target(tmp_path):
    return str(tmp_path / "copy")


def test_a_copy_is_one_private_file_with_everything_in_it(vault, target, tmp_path):
    rows = backup.copy_vault(vault, target, silent)
    assert (rows["summaries"], rows["events"]) == (3, 2)
    assert Path(target).stat().st_mode & 0o777 == 0o600
    assert backup.verify_vault(target) == rows
    assert exported(target) == exported(vault)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "v.db"]


def test_a_copy_finishes_while_the_vault_is_written_and_is_of_one_moment(vault, target):
    db = Database(vault, AT)
    filler = "INSERT INTO forgotten SELECT hex(randomblob(400)), 1 FROM events, events b, events c"
    for _ in range(200):
        db.write_now(lambda tx: tx.execute(filler))
    before = db.read_now(lambda tx: tx.execute("SELECT count(*) FROM forgotten").get)
    slices = []

    def write(done, total):
        slices.append((done, total))
        db.write_now(lambda tx: tx.execute(filler))

    rows = backup.copy_vault(vault, target, write)
    after = db.read_now(lambda tx: tx.execute("SELECT count(*) FROM forgotten").get)
    db.close()
    assert len(slices) > 1
    assert slices[-1][0] == slices[-1][1]
    assert rows["forgotten"] == before < after


def test_a_copy_replaces_no_file_and_leaves_none_where_it_failed(vault, target, tmp_path):
    backup.copy_vault(vault, target, silent)
    before = (tmp_path / "copy").read_bytes()
    with pytest.raises(FileExistsError):
        backup.copy_vault(vault, target, silent)
    assert (tmp_path / "copy").read_bytes() == before

    def interrupt(_done, _total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backup.copy_vault(vault, str(tmp_path / "second"), interrupt)
    with pytest.raises(BadRequest, match="no vault"):
        backup.copy_vault(str(tmp_path / "none"), str(tmp_path / "third"), silent)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "v.db"]


def test_a_damaged_a_foreign_a_newer_and_an_empty_file_are_found_out(vault, tmp_path):
    data = bytearray((tmp_path / "v.db").read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4096] = os.urandom(4096)
    (tmp_path / "damaged").write_bytes(data)
    (tmp_path / "empty").touch()
    foreign = apsw.Connection(str(tmp_path / "foreign"))
    foreign.execute("CREATE TABLE t (x)")
    foreign.close()
    db = Database(vault, AT)
    db.write_now(lambda tx: tx.pragma("user_version", len(database.migrations()) + 1))
    db.close()
    for name, error in {
        "damaged": VaultCorrupt,
        "empty": VaultCorrupt,
        "foreign": VaultForeign,
        "v.db": VaultNewer,
    }.items():
        with pytest.raises(error):
            backup.verify_vault(str(tmp_path / name))


def test_rows_that_refer_to_nothing_are_damage(vault):
    db = Database(vault, AT)
    db._writer.pragma("foreign_keys", 0)
    db.write_now(lambda tx: tx.execute("UPDATE summaries SET project_id = 999"))
    db.close()
    with pytest.raises(VaultCorrupt, match="missing"):
        backup.verify_vault(vault)


def test_a_copy_forgets_what_was_forgotten_since(vault, target):
    backup.copy_vault(vault, target, silent)
    assert b"Because they are shared" in Path(target).read_bytes()
    gone = [
        ("sqlite", AT),
        ("redis", AT),
        ("rule", AT),
        ("e1", AT),
        ("a" * 32, AT),
        ("unknown", AT),
    ]
    assert backup.upgrade_copy(target, gone, AT) == 3
    assert backup.read_forgotten(target) == sorted({key: AT for key, _ in gone}.items())
    left = Path(target).read_bytes()
    assert b"Because they are shared" not in left
    assert b"Where shall the sessions live" not in left
    assert backup.upgrade_copy(target, gone, AT) == 0


def test_a_session_that_was_forgotten_since_leaves_no_word_in_the_copy(tmp_path):
    path = str(tmp_path / "old")
    fill(
        path,
        [
            project(),
            session("s1", title="zzyzx asked", directory="/nowhere/zzyzx"),
            session("s2", title="zzyzx too"),
            event("e1", payload={"prompt": "zzyzx asked"}),
            event("e2", session="s2", payload={"prompt": "zzyzx too"}),
            event("e3", session="s2", kind="stop", payload={"last_assistant_message": "kept"}),
            edge(("event", "e1"), "references", ("file", "/a.py")),
            edge(("file", "/a.py"), "imports", ("file", "/zzyzx.py")),
        ],
    )
    assert backup.upgrade_copy(path, [("e1", AT), ("e2", AT), ("s1", AT)], AT) == 0
    assert b"zzyzx" not in Path(path).read_bytes()
    db = Database(path, AT)
    left = db.read_now(lambda tx: tx.execute("SELECT uid FROM sessions").fetchall())
    db.close()
    assert left == [("s2",)]


def test_fold_wal_moves_the_log_into_the_file(vault):
    db = Database(vault, AT)
    db.write_now(lambda tx: tx.execute("INSERT INTO forgotten VALUES ('folded', 1)"))
    # As if its process had been killed: what was written stands in the log alone.
    data = {name: Path(vault + name).read_bytes() for name in ("", "-wal")}
    db.close()
    for name, content in data.items():
        Path(f"{vault}2{name}").write_bytes(content)
    backup.fold_wal(vault + "2")
    assert not Path(f"{vault}2-wal").exists() or not Path(f"{vault}2-wal").stat().st_size
    assert b"folded" in Path(vault + "2").read_bytes()


def test_a_byte_for_byte_copy_is_private_and_replaces_nothing(vault, target):
    backup.copy_file(vault, target)
    assert Path(target).read_bytes() == Path(vault).read_bytes()
    assert Path(target).stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        backup.copy_file(vault, target)


def test_two_copies_at_once_do_not_disturb_each_other(vault, tmp_path):
    names = [str(tmp_path / f"copy{n}") for n in range(2)]
    threads = [
        threading.Thread(target=backup.copy_vault, args=(vault, name, silent)) for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert exported(names[0]) == exported(names[1]) == exported(vault)


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

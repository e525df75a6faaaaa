import os
import random
import shutil
from pathlib import Path

import apsw
import pytest

from memd.errors import VaultCorrupt
from memd.store import backup, integrity
from memd.store.database import Database

AT = 1_700_000_000_000
PAGE = 4096
DERIVED = (  # the index computes them again, syncing reads them again at its places
    "sync_records", "sync_cursors", "sync_places", "team_projects", "team_said", "changes", "terms", "passages", "vectors", "spaces", "entities", "cues", "forms", "saved",
    "unsaved", "labels", "meta",
)  # fmt: skip
EVENTS, SUMMARIES, SESSIONS = 1_200, 400, 20


def fill(tx):
    tx.execute("INSERT INTO projects VALUES (1, '/a', 'a', 'because', 1)")
    tx.executemany(
        "INSERT INTO sessions (id, uid, client, key, project_id, started_at, last_event_at)"
        " VALUES (?1, 'u' || ?1, 'test', 'k' || ?1, 1, 1, 1)",
        [(number + 1,) for number in range(SESSIONS)],
    )
    tx.executemany(
        "INSERT INTO events (key, session_id, kind, name, at, source, payload)"
        " VALUES ('e' || ?1, ?1 % 20 + 1, 'prompt', 'x', 1, 'live', json_object('prompt', ?2))",
        [(number, f"word{number} " * 60) for number in range(EVENTS)],
    )
    tx.executemany(
        "INSERT INTO summaries (uid, project_id, kind, tier, source, title, body, at, created_at,"
        " updated_at, rule) VALUES ('s' || ?1, 1, 'note', 'agent', 'x', 'title ' || ?1, ?2, 1, 1, 1, 'x')",
        [(number, f"body {number} " * 40) for number in range(SUMMARIES)],
    )
    tx.execute("INSERT INTO forgotten VALUES ('gone', 7)")
    tx.execute(
        "INSERT INTO receipts VALUES ('live', 'received', '', 1200), ('live', 'stored', '', 1200)"
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    db = Database(str(tmp_path_factory.mktemp("whole") / "v.db"), AT)
    db.write_now(fill)
    db.close()
    return db.path


@pytest.fixture
def damaged(whole, tmp_path):
    return str(shutil.copy(whole, tmp_path / "damaged.db"))


@pytest.fixture
def target(tmp_path):
    return str(tmp_path / "new.db")


def over(path, at, data):
    with Path(path).open("r+b") as file:
        file.seek(at)
        file.write(data)


def noise(seed, size):
    return random.Random(seed).randbytes(size)  # noqa: S311  # noise, not a secret


def pages_of(path, table):
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    found = connection.execute(
        "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path", (table,)
    ).fetchall()
    connection.close()
    return [number for (number,) in found]


def test_everything_is_salvaged_from_an_intact_vault(damaged, target):
    made = integrity.salvage(damaged, target, AT)
    assert made.lost == {}
    assert (made.copied["events"], made.copied["summaries"]) == (EVENTS, SUMMARIES)
    rows = backup.verify_vault(target)
    assert (rows["events"], rows["sessions"], rows["forgotten"]) == (EVENTS, SESSIONS, 1)
    assert rows["changes"] == SUMMARIES
    assert Path(target).stat().st_mode & 0o777 == 0o600


def test_an_unreadable_page_loses_its_rows_and_no_others(damaged, target):
    gone = pages_of(damaged, "events")[3:40:7]
    for page in gone:
        over(damaged, (page - 1) * PAGE, noise(page, PAGE))
    made = integrity.salvage(damaged, target, AT)
    assert 0 < made.lost["events"] <= len(gone) * 12
    assert made.copied["events"] == EVENTS - made.lost["events"]
    assert made.copied["summaries"] == SUMMARIES
    backup.verify_vault(target)


def test_what_a_lost_row_was_referred_to_by_gets_a_stand_in(damaged, target):
    for table in ("projects", "sessions"):
        for page in pages_of(damaged, table):
            over(damaged, (page - 1) * PAGE, bytes(PAGE))
    made = integrity.salvage(damaged, target, AT)
    assert (made.copied["events"], made.copied["summaries"]) == (EVENTS, SUMMARIES)
    rows = backup.verify_vault(target)
    assert (rows["projects"], rows["sessions"]) == (1, SESSIONS)


def test_a_truncated_file_yields_its_remaining_rows_and_ids_are_not_reused(damaged, target):
    os.truncate(damaged, Path(damaged).stat().st_size // 2 + 123)
    made = integrity.salvage(damaged, target, AT)
    assert 0 < made.copied["events"] < EVENTS
    assert made.copied["events"] + made.lost["events"] <= EVENTS
    db = Database(target, AT)
    sequence = "SELECT seq FROM sqlite_sequence WHERE name = 'events'"
    assert db.read_now(lambda tx: tx.execute(sequence).get) == EVENTS
    db.close()


def test_a_ledger_that_lost_a_page_is_counted_again_and_balances(damaged, target):
    for page in pages_of(damaged, "receipts"):
        over(damaged, (page - 1) * PAGE, bytes(PAGE))
    integrity.salvage(damaged, target, AT)
    db = Database(target, AT)
    found = db.read_now(
        lambda tx: tx.execute("SELECT outcome, count FROM receipts ORDER BY 1").fetchall()
    )
    db.close()
    assert found == [("received", EVENTS), ("stored", EVENTS)]


@pytest.mark.parametrize("left", [b"", b"Dear diary.\n" * 900, bytes(PAGE)])
def test_of_nothing_nothing_is_made(damaged, target, left):
    Path(damaged).write_bytes(left)
    with pytest.raises(VaultCorrupt):
        integrity.salvage(damaged, target, AT)
    assert not Path(target).exists()


def test_what_was_forgotten_is_read_of_a_damaged_vault_too(damaged):
    for page in pages_of(damaged, "events")[:5]:
        over(damaged, (page - 1) * PAGE, bytes(PAGE))
    assert integrity.salvage_forgotten(damaged) == [("gone", 7)]


def test_a_row_that_makes_no_sense_is_none(damaged, target):
    connection = apsw.Connection(damaged)
    connection.execute("DROP TRIGGER turns_updated")
    connection.execute("UPDATE events SET payload = 'torn {' WHERE id < 4")
    connection.execute("UPDATE summaries SET tags = '' WHERE id = 1")
    connection.execute("UPDATE summaries SET kind = 'x' WHERE id = 2")
    connection.close()
    made = integrity.salvage(damaged, target, AT)
    assert (made.copied["events"], made.lost) == (EVENTS - 3, {"events": 3, "summaries": 2})


def test_every_table_is_either_salvaged_or_derived(whole):
    connection = apsw.Connection(whole, flags=apsw.SQLITE_OPEN_READONLY)
    tables = {
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            " AND name NOT LIKE '%\\_fts%' ESCAPE '\\'"
        )
    }
    connection.close()
    assert tables == {*integrity.NUMBERED, *integrity.KEYED, *DERIVED}

import pytest

from memd.store.backup import read_snapshot
from memd.store.database import Database
from memd.store.export_rows import EXPORT_SCHEMA, VaultRecords
from tests.export_records import AT, edge, fill, one_of_each, project, session, summary

ELSEWHERE = {
    "changes", "compactions", "cues", "entities", "forms", "imports", "labels", "meta", "passages", "receipts", "runs",
    "saved", "spaces", "sqlite_sequence", "sqlite_stat1", "terms", "unsaved", "vectors",
}  # fmt: skip
"""Tables that stay: derived, or about this machine, or numbers that mean nothing elsewhere."""
TABLES = {
    "project": "projects", "alias": "aliases", "session": "sessions", "event": "events",
    "summary": "summaries", "supersession": "supersessions", "edge": "edges", "judgment": "judgments",
    "use": "uses", "together": "coactivations", "injection": "injections", "switch": "switches",
    "forgotten": "forgotten",
}  # fmt: skip
STAYING = {"supersessions": {"run"}}
"""Columns that stay: table → names."""


@pytest.fixture
def home(tmp_path):
    return fill(tmp_path / "home.db", one_of_each())


def leaving(path, project_id=None):
    with read_snapshot(path) as connection:
        return list(VaultRecords(connection, project_id).records())


def test_every_table_and_column_of_truth_travels_or_is_known_to_stay(db):
    named = {
        "id",
        "project_id",
        "session_id",
        "summary_id",
        "from_id",
        "to_id",
        "newer_id",
        "older_id",
        "low_id",
        "high_id",
    }

    def look(tx):
        tables = tx.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%\\_fts%' ESCAPE '\\'"
        )
        return {
            table: {row[1] for row in tx.execute(f"PRAGMA table_info({table})")} - named
            for (table,) in tables.fetchall()
        }

    found = db.read_now(look)
    assert found.keys() - ELSEWHERE == set(TABLES.values())
    for kind, table in TABLES.items():
        assert found[table] - STAYING.get(table, set()) <= EXPORT_SCHEMA[kind].fields.keys(), (
            table
        )


def test_every_record_leaves_in_its_order_and_is_counted(home):
    assert leaving(home) == one_of_each()
    with read_snapshot(home) as connection:
        counts = VaultRecords(connection).counts()
    assert counts == {
        kind: sum(one[0] == kind for one in one_of_each()) for kind in EXPORT_SCHEMA
    }


def test_an_edge_to_a_row_that_is_no_more_stays(tmp_path):
    path = fill(tmp_path / "v.db", [project(), session("s1"), summary("a")])
    db = Database(path, AT)
    sql = (
        "INSERT INTO edges (from_kind, from_id, type, to_kind, to_id, rule, at)"
        " VALUES ('summary', ?, 'edits', 'file', 'x', 'r', 1)"
    )
    for gone in ("99", "1x", "01"):
        db.write_now(lambda tx, gone=gone: tx.execute(sql, (gone,)))
    db.close()
    assert [kind for kind, _ in leaving(path)] == ["project", "session", "summary"]


def test_the_number_of_a_round_means_nothing_elsewhere_and_stays(tmp_path):
    held = [project(), session("s1"), summary("a"), summary("b")]
    near = edge(
        ("summary", "a"), "similar_to", ("summary", "b"), detail={"run": 3, "cosine": 0.9}
    )
    assert leaving(fill(tmp_path / "v.db", [*held, near]))[-1][1]["detail"] == {"cosine": 0.9}

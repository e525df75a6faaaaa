import re
from pathlib import Path

import pytest

from memd.errors import BadRequest, RecordTooNew
from memd.store.backup import read_snapshot
from memd.store.export_rows import (
    DEPTH_MAX,
    EXPORT_SCHEMA,
    VaultRecords,
    check_record,
    redact_record,
)
from memd.transfer.archive import EXPORT_FORMAT
from tests.export_records import fill, one_of_each

ELSEWHERE = {
    "asks", "changes", "compactions", "costs", "cues", "enforced", "entities", "forms", "imports", "labels", "meta", "passages", "receipts", "runs",
    "saved", "spaces", "sqlite_sequence", "sqlite_stat1", "sync_cursors", "sync_places", "sync_records", "team_projects", "team_said", "terms", "told", "unknown_fields", "unsaved", "vectors",
}  # fmt: skip
"""Tables that stay: derived, or about this machine, or numbers that mean nothing elsewhere."""
TABLES = {
    "project": "projects", "alias": "aliases", "session": "sessions", "event": "events",
    "summary": "summaries", "supersession": "supersessions", "edge": "edges", "judgment": "judgments", "review": "reviews",
    "use": "uses", "together": "coactivations", "injection": "injections", "switch": "switches",
    "forgotten": "forgotten",
}  # fmt: skip
STAYING = {
    "supersessions": {"run"},
    "summaries": {"author"},
    # Judged again where they arrive, by the events that came with them.
    "injections": {"outcome", "evidence", "held"},
    "uses": {"helped", "ignored"},
}
"""Columns that stay: table → names."""


@pytest.fixture
def home(tmp_path):
    return fill(tmp_path / "home.db", one_of_each())


def leaving(path, project_id=None):
    with read_snapshot(path) as connection:
        return list(VaultRecords(connection, project_id).records())


def test_every_table_and_column_of_truth_is_exported_or_known_not_to_be(db):
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
        assert found[table] - STAYING.get(table, set()) <= EXPORT_SCHEMA[kind].fields.keys(), table


def test_every_record_is_exported_in_schema_order_and_counted(home):
    assert leaving(home) == one_of_each()
    with read_snapshot(home) as connection:
        counts = VaultRecords(connection).counts()
    assert counts == {kind: sum(one[0] == kind for one in one_of_each()) for kind in EXPORT_SCHEMA}


DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "export.md"
EXAMPLES = dict(one_of_each())


def nested(depth):
    return {"a": nested(depth - 1)} if depth > 1 else {}


@pytest.mark.parametrize("kind", EXPORT_SCHEMA)
def test_a_field_that_is_missing_or_strange_or_null_is_named(kind):
    fields = EXAMPLES[kind]
    check_record(kind, fields | {"wish": {"deep": [1]}})
    with pytest.raises(BadRequest, match="nested too deep"):
        check_record(kind, fields | {"wish": nested(DEPTH_MAX + 1)})
    for name in EXPORT_SCHEMA[kind].added:
        check_record(kind, {k: v for k, v in fields.items() if k != name})
    for name in fields.keys() - EXPORT_SCHEMA[kind].added:
        with pytest.raises(BadRequest, match=f"lacks the field '{name}'"):
            check_record(kind, {k: v for k, v in fields.items() if k != name})
        if name not in EXPORT_SCHEMA[kind].optional:
            with pytest.raises(BadRequest, match=f"{name} of this {kind} must be"):
                check_record(kind, fields | {name: None})


@pytest.mark.parametrize(
    ("kind", "field", "values"),
    [
        ("summary", "at", [-1, 1.5, "1", True, 2**53 + 1]),
        ("summary", "confidence", [float("nan"), float("inf"), "1", True, 10**400]),
        ("summary", "kind", ["", 1, []]),
        ("summary", "tags", ["x", [1], {}]),
        ("summary", "uid", ["", "x" * 5_000, 7]),
        ("summary", "revisions", [-1, 0.5]),
        ("summary", "authority", [0, True, 1.5, "user"]),
        ("summary", "pinned_by", [0, True, 1.5, "user"]),
        ("event", "payload", [[], "x", nested(DEPTH_MAX + 1), {"a": float("inf")}, {"a": 2**63}]),
        ("event", "distilled", [2, -1, True]),
        ("switch", "scope", [1]),
        ("judgment", "relation", [[]]),
        ("project", "key", ["", 1]),
    ],
)
def test_a_value_that_cannot_be_is_refused(kind, field, values):
    for value in values:
        with pytest.raises(BadRequest, match=f"{field} of this {kind} must be"):
            check_record(kind, EXAMPLES[kind] | {field: value})
    check_record("event", EXAMPLES["event"] | {"payload": nested(DEPTH_MAX)})


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [("summary", "kind", "wish"), ("summary", "authority", 6), ("summary", "pinned_by", 99),
     ("switch", "scope", "everywhere"), ("judgment", "relation", "loves"), ("event", "kind", "dream"),
     ("edge", "type", "explains"), ("summary", "tier", "golden")],
)  # fmt: skip
def test_a_value_that_a_newer_memd_may_have_added_is_too_new_and_not_wrong(kind, field, value):
    with pytest.raises(RecordTooNew, match=f"{kind} with {field} {value}"):
        check_record(kind, EXAMPLES[kind] | {field: value})


def test_a_kind_that_is_not_known_is_too_new():
    with pytest.raises(RecordTooNew, match="skill"):
        check_record("skill", {})


def test_everything_is_redacted_except_uids_and_keys():
    seen = []

    def redact(value):
        seen.append(value)
        return "clean"

    found = redact_record(
        "edge", EXAMPLES["edge"] | {"from_kind": "summary", "from": "uid"}, redact
    )
    assert (found["from"], found["to"], found["detail"]) == ("uid", "clean", "clean")
    assert (
        redact_record("summary", EXAMPLES["summary"], redact)["uid"] == EXAMPLES["summary"]["uid"]
    )
    assert EXAMPLES["summary"]["body"] in seen


def test_the_documented_format_is_the_one_that_is_read():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert f"The format, version {EXPORT_FORMAT}" in text
    named = re.search(r"Between them are records \((.+?)…\)", text, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", named[1])) <= set(EXPORT_SCHEMA)

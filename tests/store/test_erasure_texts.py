import json

import pytest

from memd.models import EventKind, Kind
from memd.store import erasure, events, projects, summaries
from memd.store.queries import compact_json
from tests.factories import make_draft, make_new_event

WORDLESS = {
    # Names that memd or the client gives: no words of a person.
    "sessions": {"uid", "client"},
    "events": {"key", "kind", "source", "turn", "agent"},
    "summaries": {"uid", "episode", "kind", "tier", "source", "rule", "author"},
    "supersessions": {"rule"},
    "edges": {"from_kind", "type", "to_kind"},
    "injections": {"moment", "outcome"},
    "costs": {"what"},
    "judgments": {"relation", "who"},
    "reviews": {"verdict"},
    "switches": {"scope"},
    "receipts": {"source", "outcome", "reason"},
    "forgotten": {"key"},
    "team_projects": {"name", "project"},
    "team_said": {"place", "log", "name", "uid", "state", "device", "beside"},
    "sync_records": {"kind", "one", "link", "other", "device", "shown", "project"},
    "unknown_fields": {"kind", "one", "link", "other"},
    "sync_cursors": {"device", "position"},
    "spaces": {"name", "provider", "model", "version", "digest", "document_prefix", "query_prefix"},
    "meta": {"key", "value"},
}  # fmt: skip
DERIVED = {
    "terms", "passages", "vectors", "entities", "cues", "forms", "changes", "saved", "unsaved", "labels",
}  # fmt: skip


def table(name):
    return next(one for one in erasure.TEXT_TABLES if one.name == name)


@pytest.fixture
def filled(db):
    def write(tx):
        project = projects.ensure_project(tx, "/a", "a", "why", 1)
        event = make_new_event(prompt="the zebra runs")
        session = projects.ensure_session(tx, event.session, project, 1)
        number, _ = events.append_event(tx, event, session)
        owner = summaries.SummaryOwner(project, session, "test")
        draft = make_draft("Zebra", "the zebra runs", kind=Kind.DECISION)
        return number, summaries.put_summary(tx, "u", draft, owner, 1)[0]

    return db.write_now(write)


def test_every_text_column_is_rewritten_or_named_or_known_to_hold_no_words(db):
    known = {name: set(columns) for name, columns in WORDLESS.items()}
    for one in erasure.TEXT_TABLES:
        known.setdefault(one.name, set()).update(one.columns)
    for name, column in erasure.LOOKUP_COLUMNS:
        known.setdefault(name, set()).add(column)

    def columns(tx):
        for (name,) in tx.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall():
            if "_fts" in name or name in DERIVED:
                continue
            yield from (
                (name, row[1]) for row in tx.execute(f"PRAGMA table_info({name})") if row[2] == "TEXT"
            )  # fmt: skip

    for name, column in db.read_now(lambda tx: list(columns(tx))):
        assert column in known.get(name, ()), f"{name}.{column}"


@pytest.mark.usefixtures("filled")
def test_rows_are_read_in_order_and_only_behind_a_number(db):
    (row,) = db.read_now(lambda tx: erasure.read_texts(tx, table("summaries"), 0, 10))
    assert row.texts == {"title": "Zebra", "body": "the zebra runs", "tags": "[]", "files": "[]"}
    assert db.read_now(lambda tx: erasure.read_texts(tx, table("summaries"), row.id, 10)) == []
    assert db.read_now(lambda tx: erasure.texts_by_ids(tx, table("summaries"), [row.id, 99])) == [
        row
    ]


@pytest.mark.usefixtures("filled")
def test_a_rewritten_event_is_found_by_its_new_words_alone(db):
    (row,) = db.read_now(lambda tx: erasure.read_texts(tx, table("events"), 0, 10))
    payload = compact_json({**json.loads(row.texts["payload"]), "prompt": "the okapi runs"})
    db.write_now(lambda tx: erasure.write_texts(tx, table("events"), row, {"payload": payload}))

    def found(word):
        return len(
            db.read_now(lambda tx: events.match_turns(tx, f'"{word}"', events.TurnFilter(), 5))
        )

    assert (found("okapi"), found("zebra")) == (1, 0)
    event = db.read_now(lambda tx: events.events_by_ids(tx, [row.id]))[row.id]
    assert (event.kind, event.payload["prompt"]) == (EventKind.PROMPT, "the okapi runs")


@pytest.mark.usefixtures("filled")
def test_a_rewritten_summary_waits_to_be_indexed_and_compared_again(db):
    db.write_now(lambda tx: tx.execute("DELETE FROM changes"))
    db.write_now(lambda tx: tx.execute("UPDATE summaries SET consolidated = 1"))
    (row,) = db.read_now(lambda tx: erasure.read_texts(tx, table("summaries"), 0, 10))
    new = {"title": "Okapi", "body": "it runs"}
    db.write_now(lambda tx: erasure.write_texts(tx, table("summaries"), row, new))
    assert db.read_now(lambda tx: tx.execute("SELECT summary_id FROM changes").get) == row.id
    assert db.read_now(lambda tx: summaries.summary_counts(tx)["to_consolidate"]) == 1
    stems = {
        cue for (cue,) in db.read_now(lambda tx: tx.execute("SELECT cue FROM cues").fetchall())
    }
    assert "zebra" not in stems


@pytest.mark.usefixtures("filled")
def test_lookup_names_come_with_their_table_and_column(db):
    assert ("projects.key", "/a") in db.read_now(lambda tx: list(erasure.lookup_names(tx)))

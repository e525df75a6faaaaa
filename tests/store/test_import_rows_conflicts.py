import pytest

from memd.store.import_rows import IMPORT_RULE, RecordImporter, resolve_imported
from tests.export_records import AT, in_order, project, session, summary


@pytest.fixture
def arrive(db):
    """Take records in and settle them; (hidden, gone)."""

    def arrive(*records):
        def work(tx):
            importer = RecordImporter(tx)
            for kind, fields in in_order(records):
                importer.import_record(kind, dict(fields))
            return resolve_imported(tx, importer, AT + 10)

        return db.write_now(work)

    return arrive


def hidden(db):
    return db.read_now(
        lambda tx: tx.execute(
            "SELECT n.uid, o.uid, x.rule FROM supersessions x JOIN summaries n ON n.id = x.newer_id"
            " JOIN summaries o ON o.id = x.older_id ORDER BY x.id"
        ).fetchall()
    )


def value(uid, at, **fields):
    return summary(uid, kind="fact", topic_key="build", at=at, **fields)


def test_of_two_values_of_one_slot_the_newest_holds_whichever_vault_it_came_from(db, arrive):
    arrive(project(), session("s1"), value("here", 5))
    assert arrive(value("older", 1), value("newer", 9)) == (2, 0)
    assert hidden(db) == [("here", "older", IMPORT_RULE), ("newer", "here", IMPORT_RULE)]


def test_values_that_came_together_are_left_as_they_were(db, arrive):
    assert arrive(project(), session("s1"), value("a", 1), value("b", 2)) == (0, 0)
    assert hidden(db) == []


def test_a_pinned_value_stays_and_an_edge_says_that_they_differ(db, arrive):
    arrive(project(), session("s1"), value("here", 5, pinned_at=6))
    assert arrive(value("newer", 9)) == (0, 0)
    edges = db.read_now(lambda tx: tx.execute("SELECT from_id, type, to_id FROM edges").fetchall())
    assert edges == [("2", "contradicts", "1")]


def test_another_kind_another_project_and_what_has_expired_are_no_rivals(db, arrive):
    arrive(
        project(), project("/x"), session("s1"), value("here", 5), value("gone", 4, expires_at=6)
    )
    assert arrive(
        value("x", 9, project="/x"), summary("note", kind="note", topic_key="build", at=9)
    ) == (0, 0)
    assert hidden(db) == []

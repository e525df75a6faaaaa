import pytest

from memd.models import Authority
from memd.store.import_rows import RecordImporter
from memd.transfer.archive import IMPORT_RULE, resolve_imported
from tests.export_records import AT, in_order, judgment, project, session, summary, supersession


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


def test_a_pinned_value_stays_and_an_edge_says_that_they_differ(db, arrive):
    arrive(project(), session("s1"), value("here", 5, pinned_at=6))
    assert arrive(value("newer", 9)) == (0, 0)
    edges = db.read_now(lambda tx: tx.execute("SELECT from_id, type, to_id FROM edges").fetchall())
    assert edges == [("2", "contradicts", "1")]


def contradictions(db):
    return db.read_now(
        lambda tx: tx.execute(
            "SELECT n.uid, o.uid FROM edges e JOIN summaries n ON CAST(n.id AS TEXT) = e.from_id"
            " JOIN summaries o ON CAST(o.id AS TEXT) = e.to_id WHERE e.type = 'contradicts'"
        ).fetchall()
    )


def still_hidden(db):
    return db.read_now(
        lambda tx: tx.execute(
            "SELECT o.uid FROM supersessions x JOIN summaries o ON o.id = x.older_id"
            " WHERE x.undone_at IS NULL"
        ).fetchall()
    )


@pytest.mark.parametrize("kind", ["fact", "note"])
def test_a_value_of_a_lesser_voice_hides_none_of_a_greater_one(db, arrive, kind):
    arrive(project(), session("s1"), value("mine", 5, authority=5))
    assert arrive(
        value("theirs", 9, authority=3)
        if kind == "fact"
        else summary("theirs", kind="note", topic_key="Build", at=9, authority=4)
    ) == (0, 0)
    assert contradictions(db) == [("theirs", "mine")]


def test_an_imported_supersession_hides_what_is_here_only_if_its_voice_may(db, arrive):
    arrive(project(), session("s1"), summary("mine", authority=5), summary("agent's", authority=2))
    imported = (
        summary("x", authority=3), summary("y", authority=3),
        supersession("x", "mine"), supersession("y", "agent's"),
    )  # fmt: skip
    for _ in range(2):
        arrive(*imported)
        assert still_hidden(db) == [("agent's",)]
        assert contradictions(db) == [("x", "mine")]


@pytest.mark.parametrize(("who", "expected"), [("user", [("mine",)]), ("agent", [])])
def test_an_imported_judgment_counts_as_much_as_who_made_it(db, arrive, who, expected):
    arrive(project(), session("s1"), summary("mine", authority=5))
    arrive(
        summary("x", authority=3),
        supersession("x", "mine", rule="judged"),
        judgment("x", "mine", "supersedes", who=who),
    )
    assert still_hidden(db) == expected


def test_a_record_does_not_change_the_words_of_a_greater_voice(db, arrive):
    arrive(project(), session("s1"), summary("mine", authority=5))
    arrive(summary("mine", title="Otherwise", updated_at=AT + 9, authority=3))
    rows = db.read_now(lambda tx: tx.execute("SELECT title, authority FROM summaries").fetchall())
    assert rows == [("Sessions live in mine", Authority.USER_HAND.code)]

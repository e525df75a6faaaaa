import pytest

from memd.errors import BadRequest
from memd.store import import_rows, summaries
from memd.store.import_rows import RecordImporter
from tests.export_records import (
    AT,
    edge,
    event,
    in_order,
    one_of_each,
    project,
    session,
    summary,
    supersession,
)


@pytest.fixture
def put(db):
    """Take records in, in one transaction; what became of each."""

    def put(*records, strict=False):
        def work(tx):
            importer = RecordImporter(tx, is_strict=strict)
            return [
                importer.import_record(kind, dict(fields)) for kind, fields in in_order(records)
            ]

        return db.write_now(work)

    return put


def rows(db, sql):
    return db.read_now(lambda tx: tx.execute(sql).fetchall())


def test_everything_that_is_new_is_created_and_then_known(put):
    assert set(put(*one_of_each(), strict=True)) == {"created"}
    assert set(put(*one_of_each())) == {"known"}


def test_beside_existing_memories_an_imported_one_is_consolidated_again(db, put):
    put(project(), session("s1"), summary("a"))
    put(summary("b"))
    assert rows(db, "SELECT uid, consolidated FROM summaries") == [("a", 1), ("b", 0)]


def test_a_project_that_was_merged_here_is_imported_into_its_successor(db, put):
    put(project(), ("alias", {"key": "/old", "project": "/home/dev/ledger", "at": AT}))
    assert put(project("/old", name="old"), session("s1", project="/old")) == ["known", "created"]
    assert rows(db, "SELECT count(*) FROM projects") == [(1,)]
    # And one that is its own here is not merged away.
    alias = ("alias", {"key": "/home/dev/ledger", "project": "/new", "at": AT})
    assert put(project("/new"), alias) == ["created", "known"]


def test_supersessions_that_would_make_a_cycle_are_left_out(db, put):
    put(
        project(),
        session("s1"),
        *map(summary, "abc"),
        supersession("a", "b"),
        supersession("b", "c"),
    )
    assert put(supersession("c", "a")) == ["left"]
    assert put(supersession("b", "a")) == ["left"]
    assert put(supersession("a", "a", at=1)) == ["left"]
    assert put(supersession("a", "c", at=2)) == ["left"]
    assert put(supersession("c", "a", at=3, undone_at=4)) == ["created"]
    assert len(rows(db, "SELECT id FROM supersessions WHERE undone_at IS NULL")) == 2


def test_a_pin_of_this_vault_is_this_vault_s(db, put):
    put(project(), session("s1"), summary("a", pinned_at=AT))
    later = {"pinned_at": None, "title": "later", "updated_at": AT + 1}
    assert put(summary("a", **later)) == ["known"]  # said in a prompt, and pinned by hand here
    assert put(summary("a", authority=5, **later)) == ["revised"]
    found = db.read_now(lambda tx: summaries.summary_by_uid(tx, "a"))
    assert (found.title, found.pinned_at) == ("later", AT)


def test_a_session_that_was_forgotten_and_lives_again_is_known(db, put):
    put(project(), session("s1"), ("forgotten", {"key": "s1", "at": AT}))
    assert put(session("s1", last_event_at=AT + 70)) == ["known"]
    assert rows(db, "SELECT last_event_at FROM sessions") == [(AT + 70,)]


def test_records_that_refer_to_forgotten_rows_are_left_out(put):
    gone = [("forgotten", {"key": key, "at": AT}) for key in ("a", "s1", "e1")]
    put(project(), *gone)
    shown = {"session": "s1", "summary": "a", "moment": "startup", "at": AT, "reason": ""}
    judged = {"newer": "a", "older": "b", "relation": "duplicate", "reason": "", "who": "user"}
    assert put(
        session("s1"), event("e1"), event("e2"), summary("a"), summary("b"), supersession("b", "a"),
        edge(("summary", "b"), "derives_from", ("event", "e1")), ("use", {"summary": "a", "count": 1, "last_at": 1}),
        ("together", {"one": "a", "other": "b", "count": 1}), ("injection", shown),
        ("judgment", judged | {"at": AT, "undone_at": None}),
    ) == [
        "forgotten", "forgotten", "forgotten", "forgotten", "created", "forgotten", "forgotten",
        "forgotten", "forgotten", "forgotten", "forgotten",
    ]  # fmt: skip


def test_a_pair_that_was_judged_here_retains_its_judgment(put):
    judged = {"newer": "a", "older": "b", "relation": "duplicate", "reason": "", "who": "user"}
    first = ("judgment", judged | {"at": AT, "undone_at": None})
    put(project(), session("s1"), summary("a"), summary("b"), first)
    other = ("judgment", judged | {"newer": "b", "older": "a", "at": AT + 1, "undone_at": None})
    itself = ("judgment", judged | {"older": "a", "at": AT + 2, "undone_at": None})
    assert put(first, other, itself) == ["known", "left", "left"]


def test_equal_records_of_one_millisecond_are_imported_as_often_as_they_occur(db, put):
    judged = {"newer": "a", "older": "b", "relation": "duplicate", "reason": "", "who": "user"}
    undone, holds = {"undone_at": AT}, {"undone_at": None}
    said = [
        record
        for since in (undone, undone, holds)
        for record in (supersession("a", "b", **since), ("judgment", judged | {"at": AT} | since))
    ]
    came = [project(), session("s1"), summary("a"), summary("b"), *said]
    assert set(put(*came, strict=True)) == {"created"}
    assert set(put(*came)) == {"known"}
    as_said = [(AT,), (AT,), (None,)]
    assert rows(db, "SELECT undone_at FROM supersessions ORDER BY id") == as_said
    assert rows(db, "SELECT undone_at FROM judgments ORDER BY id") == as_said


def test_what_was_undone_here_stays_undone(db, put):
    said = [supersession("a", "b", undone_at=AT), supersession("a", "b")]
    put(project(), session("s1"), summary("a"), summary("b"), *said)
    db.write_now(lambda tx: tx.execute("UPDATE supersessions SET undone_at = ?", (AT + 5,)))
    assert put(*said) == ["known", "known"]
    assert put(supersession("a", "b")) == ["known"]


def test_a_second_import_of_equal_records_creates_nothing(put):
    put(project(), session("s1"), *map(summary, "abc"), supersession("c", "b"))
    said = [supersession("a", "b"), supersession("a", "b", undone_at=AT)]
    assert put(*said) == ["left", "created"]
    assert "created" not in put(*said)


def test_a_strict_import_of_an_existing_row_is_refused(put):
    put(project())
    with pytest.raises(BadRequest, match="this project stands there twice"):
        put(project(), strict=True)


def test_an_imported_contradiction_lowers_the_confidence_of_existing_memories_once(db, put):
    put(project(), session("s1"), summary("here", confidence=0.5))
    doubt = edge(("summary", "new"), "contradicts", ("summary", "here"))
    judged = {
        "newer": "new",
        "older": "here",
        "relation": "compatible",
        "reason": "",
        "who": "user",
    }
    put(summary("new", confidence=0.25), doubt)
    put(doubt)
    (here,), (new,) = rows(db, "SELECT confidence FROM summaries ORDER BY id")
    assert here < 0.5
    assert new == 0.25
    put(("judgment", judged | {"at": AT, "undone_at": None}))
    assert rows(db, "SELECT confidence FROM summaries WHERE uid = 'here'") == [(0.5,)]


def test_a_chain_longer_than_the_limit_is_refused(put, monkeypatch):
    monkeypatch.setattr(import_rows, "CHAIN_MAX", 20)
    count = import_rows.CHAIN_MAX + 5
    held = [summary(f"c{n}") for n in range(count)]
    held += [supersession(f"c{n + 1}", f"c{n}") for n in range(count - 2, -1, -1)]
    with pytest.raises(BadRequest, match="no end"):
        put(project(), session("s1"), *held, strict=True)

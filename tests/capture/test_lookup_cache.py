"""What the ingestor knows from one transaction to the next, and when it asks again."""

import pytest

from memd.capture.project import ProjectIdentity
from memd.capture.write import LookupCache, PreparedItem, Receipt, store_items
from memd.models import EventKind, NewEvent, SessionRef
from memd.store import ledger, projects
from memd.text import PRIVATE

PROJECT = ProjectIdentity("/p", "p", "the directory")


def make(key, text="x", *, kind=EventKind.TOOL_RESULT, turn="t", at=5, session="s"):
    event = NewEvent(
        session=SessionRef("claude-code", session, "/p"), key=key, kind=kind, name=kind.value,
        at=at, source="live", payload={"prompt": text}, turn=turn,
    )  # fmt: skip
    return PreparedItem("live", event, PROJECT)


def prompt(key, text="x", **more):
    return make(key, text, kind=EventKind.PROMPT, **more)


@pytest.fixture
def known():
    return LookupCache()


@pytest.fixture
def add(db, known):
    """Record some in a transaction of their own, and say what became of them, and what was asked."""

    def add(*everything):
        asked = []

        def work(tx):
            def note(_, sql, __):
                asked.append(sql)
                return True

            tx.exec_trace = note
            try:
                return store_items(tx, everything, 1, known)
            finally:
                tx.exec_trace = None

        return [receipt.outcome for receipt in db.write_now(work)], asked

    return add


def test_an_event_of_a_known_session_asks_nothing(add):
    add(prompt("a"), make("b"))
    add(make("c"))
    outcomes, asked = add(make("d"))
    assert outcomes == ["stored"]
    assert not [sql for sql in asked if sql.startswith("SELECT")]


def test_after_anybody_else_has_written_everything_is_asked_again(add, db):
    add(make("a"))
    db.write_now(lambda tx: projects.put_switch(tx, "session", "s", False, True, 1))
    assert add(make("b"))[0] == ["filtered"]
    db.write_now(lambda tx: projects.drop_switch(tx, "session", "s"))
    db.write_now(lambda tx: ledger.record_forgotten(tx, "c", 1))
    assert add(make("c"), make("d"))[0] == ["filtered", "stored"]


def test_a_session_merged_into_another_project_is_switched_as_that_one_is(add, db):
    add(make("a"))
    assert add(make("b"))[0] == ["stored"]

    def merge(tx):
        other = projects.ensure_project(tx, "/q", "q", "it", 1)
        old, new = projects.project_by_key(tx, "/p"), projects.project(tx, other)
        projects.merge_project(tx, old, new, 1)
        projects.put_switch(tx, "project", "/q", False, True, 1)

    db.write_now(merge)
    assert add(make("c"))[0] == ["filtered"]


@pytest.mark.parametrize("is_one", [True, False], ids=["in one transaction", "in several"])
def test_what_follows_a_prompt_is_private_as_the_prompt_is(add, is_one):
    everything = [
        make("a", at=1, turn="t1"),
        prompt("b", PRIVATE, at=2, turn="t2"),
        make("c", at=3, turn="t2"),
        prompt("d", "fix it", at=4, turn="t3"),
        make("e", at=5, turn="t3"),
        make("f", at=6, turn="t2"),
        make("g", at=7, turn="t3"),
        make("h", at=3, turn=None),
    ]
    outcomes = add(*everything)[0] if is_one else [add(one)[0][0] for one in everything]
    expected = [
        "stored",
        "stored",
        "filtered",
        "stored",
        "stored",
        "filtered",
        "stored",
        "filtered",
    ]
    assert outcomes == expected


def test_too_many_sessions_are_let_go(add):
    add(*(make(f"a{n}", session=f"s{n}") for n in range(300)))
    add(*(make(f"b{n}", session=f"s{n}") for n in range(300)))
    outcomes, asked = add(make("c", session="s7"))
    assert outcomes == ["stored"]
    assert [sql for sql in asked if sql.startswith("SELECT")]


def test_known_or_not_the_receipts_are_the_same(add, db):
    assert add(make("a"), make("a"))[0] == ["stored", "duplicate"]
    (again,) = db.write_now(lambda tx: store_items(tx, [make("a")], 1))
    assert again == Receipt("duplicate", 1)

import pytest

from memd.distill.closing import close
from memd.distill.passing import Passed
from memd.models import Kind, SessionRef
from memd.store import cards, links, projects, summaries
from tests.make import AT, make_draft


@pytest.fixture
def failed(db):
    """An open failure of project 1; its number."""

    def write(tx):
        for key in ("/p", "/q"):
            projects.ensure_project(tx, key, key, "", AT)
        session = projects.ensure_session(tx, SessionRef("claude-code", "s1"), 1, AT)
        owner = summaries.Owner(1, session, "claude-code", "t1")
        body = "`pytest -q` failed: ValueError: x"
        draft = make_draft("ValueError: x", body, kind=Kind.FAILURE, rule="unmended")
        return summaries.put(tx, "u1", draft, owner, AT)[0]

    return db.write_now(write)


def open_ones(db):
    found = db.read_now(lambda tx: cards.open_failures(tx, [1], 0, AT, 9))
    return [card.id for card in found]


def test_a_later_pass_closes_a_failure_once(db, failed):
    run = Passed("pytest -q", 7, AT + 1)
    assert open_ones(db) == [failed]
    assert db.write_now(lambda tx: close(tx, [run], 1)) == 1
    assert db.write_now(lambda tx: close(tx, [run], 1)) == 0
    assert open_ones(db) == []
    (edge,) = db.read_now(lambda tx: links.edges_at(tx, "summary", str(failed)))
    assert (edge.rule, edge.to_kind, edge.to_id) == ("passed-later", "event", "7")


def test_a_pass_elsewhere_or_before_closes_nothing(db, failed):
    assert db.write_now(lambda tx: close(tx, [Passed("pytest -q", 7, AT + 1)], 2)) == 0
    assert db.write_now(lambda tx: close(tx, [Passed("pytest -q", 7, AT - 1)], 1)) == 0
    assert db.write_now(lambda tx: close(tx, [], 1)) == 0
    assert open_ones(db) == [failed]

from dataclasses import replace

import pytest

from memd.models import SessionRef, Tier
from memd.store import fulltext, projects, summaries
from memd.store.summaries import TurnRewrite
from tests.factories import AT, make_draft, supersede

NEW = TurnRewrite(1, 1, "A better title", "Learnt:\n- x\n\nA body.", 0.8, "ollama/m")


@pytest.fixture
def put(db):
    """Remember a turn; its id."""

    def write(slot="t1", *, session="s1", **fields):
        def work(tx):
            project = projects.ensure_project(tx, "/p", "p", "", 1)
            ref = SessionRef("claude-code", session) if session else None
            number = projects.ensure_session(tx, ref, project, AT) if ref else None
            owner = summaries.SummaryOwner(project, number, "claude-code", slot)
            return summaries.put_summary(tx, f"u-{slot}", make_draft(**fields), owner, AT)[0]

        return db.write_now(work)

    return write


def found(db, since=0):
    return [n for n, _ in db.read_now(lambda tx: summaries.rewritable_turns(tx, since, AT, 10))]


def test_turns_are_found_newest_first_and_not_the_old_ones(db, put):
    put("a", at=AT - 3), put("b", at=AT - 1), put("c", at=AT - 9)
    assert found(db, AT - 5) == [2, 1]


def test_only_plain_turns_can_be_rewritten(db, put):
    put("decision", rule="decision:stated")
    put("by hand", session=None)
    put("file", tier=Tier.FILE)
    put("over", expires_at=AT)
    pinned, older, newer = put("pinned"), put("older"), put("newer")
    db.write_now(lambda tx: summaries.pin_summary(tx, pinned, AT))
    supersede(db, newer, older, at=AT)
    assert found(db) == [newer]


def test_a_rewritten_turn_is_a_revision_that_names_its_model_and_is_indexed_again(db, put):
    number = put()
    db.write_now(
        lambda tx: fulltext.remove_changes(tx, [s for s, _ in fulltext.pending_changes(tx, 10)])
    )
    assert db.write_now(lambda tx: summaries.rewrite_turn(tx, NEW, AT + 5))
    now = db.read_now(lambda tx: summaries.get_summary(tx, number))
    assert (now.title, now.body, now.quality) == (NEW.title, NEW.body, 0.8)
    assert (now.rule, now.revisions, now.updated_at) == ("turn, written by ollama/m", 2, AT + 5)
    assert db.read_now(fulltext.count_changes) == 1
    assert found(db) == []


def test_lone_surrogates_in_a_rewritten_turn_are_replaced(db, put):
    put()
    assert db.write_now(
        lambda tx: summaries.rewrite_turn(tx, replace(NEW, title="half \ud800"), AT)
    )
    assert db.read_now(lambda tx: summaries.get_summary(tx, 1)).title == "half ?"

import dataclasses

import pytest

from memd.distill.transaction import EpisodePlan, write_episode
from memd.import_graph import FileLink
from memd.models import DraftEdge, EdgeType, Kind, Session, Source, Stance
from memd.store import events, judgments, links, projects, summaries
from memd.store.summaries import TurnRewrite
from tests.factories import AT, make_draft, make_new_event


def begin(tx):
    project = projects.ensure_project(tx, "/p", "p", "", AT)
    event = make_new_event(prompt="x")
    number = projects.ensure_session(tx, event.session, project, AT)
    for _ in range(3):
        events.append_event(tx, make_new_event(prompt="x"), number)
    return projects.session(tx, number)


@pytest.fixture
def session(db):
    found = db.write_now(begin)
    assert isinstance(found, Session)
    return found


def put(db, session, *drafts, episode="t1", now=AT):
    return db.write_now(
        lambda tx: write_episode(tx, EpisodePlan(episode, drafts, (1,)), session, now)[0]
    )


def edges(db, number):
    found = db.read_now(lambda tx: links.edges_at(tx, "summary", str(number)))
    return {(e.from_id, e.type.value, e.to_kind, e.to_id) for e in found}


def test_drafts_edges_and_marks_are_written_at_once(db, session):
    fix = make_draft("Fixed", slot="fix/0", kind=Kind.FIX)
    cause = DraftEdge(EdgeType.CAUSES, "slot", "fix/0")
    lost = DraftEdge(EdgeType.CAUSES, "slot", "fix/7")
    failure = make_draft("Failed", slot="failure/0", kind=Kind.FAILURE, edges=(cause, lost))
    assert put(db, session, failure, fix)["created"] == 2
    assert edges(db, 1) == {("1", "derives_from", "event", "1"), ("1", "causes", "summary", "2")}
    assert db.read_now(events.count_pending) == 2
    stored = db.read_now(lambda tx: summaries.get_summary(tx, 1))
    assert (stored.source, stored.episode, stored.session_id) == ("claude-code", "t1", session.id)


def test_what_is_captured_begins_below_what_somebody_says_however_certain_the_rule(db, session):
    put(db, session, make_draft("Sure", confidence=0.95))
    stored = db.read_now(lambda tx: summaries.get_summary(tx, 1))
    assert stored.confidence == judgments.captured_confidence(0.95)
    assert stored.confidence < judgments.initial_confidence("agent")


def test_files_are_linked_only_from_what_a_memory_tells_of(db, session):
    told = make_draft("Changed", edges=(DraftEdge(EdgeType.EDITS, "file", "/p/a.py"),))
    found = tuple(FileLink(path, "/p/b.py", AT, ".b") for path in ("/p/a.py", "/p/c.py"))
    for _ in range(2):
        db.write_now(
            lambda tx: write_episode(tx, EpisodePlan("t1", (told,), (1,), files=found), session, AT)
        )
    (edge,) = db.read_now(lambda tx: links.edges_at(tx, "file", "/p/b.py"))
    assert (edge.from_id, edge.type) == ("/p/a.py", EdgeType.IMPORTS)
    assert (edge.rule, edge.detail) == ("statement", {"as": ".b"})
    assert db.read_now(lambda tx: links.files_of_session(tx, session.id)) == ["/p/a.py"]


def test_a_turn_that_turns_out_private_leaves_no_edge_between_its_files(db, session):
    told = make_draft("Changed", edges=(DraftEdge(EdgeType.EDITS, "file", "/p/a.py"),))
    one = FileLink("/p/a.py", "/p/b.py", AT, ".b")
    db.write_now(
        lambda tx: write_episode(tx, EpisodePlan("t1", (told,), (1,), files=(one,)), session, AT)
    )
    db.write_now(lambda tx: write_episode(tx, EpisodePlan("t1", (), (1,)), session, AT))
    assert db.read_now(lambda tx: links.edges_at(tx, "file", "/p/a.py")) == []


def test_the_same_drafts_again_change_nothing(db, session):
    put(db, session, make_draft())
    before = db.read_now(lambda tx: summaries.get_summary(tx, 1))
    assert dict(put(db, session, make_draft(), now=AT + 9)) == {"unchanged": 1, "deleted": 0}
    assert db.read_now(lambda tx: summaries.get_summary(tx, 1)) == before


def test_a_revision_drops_its_own_edges_and_keeps_verdicts(db, session):
    put(db, session, make_draft("One", sources=(Source(1, "a"),)))
    verdict = links.NewEdge("summary", "1", EdgeType.SIMILAR_TO, "summary", "9", "guard", AT)
    db.write_now(lambda tx: links.add_edges(tx, [verdict]))
    assert put(db, session, make_draft("Two", sources=(Source(2, "b"),)))["revised"] == 1
    assert edges(db, 1) == {
        ("1", "derives_from", "event", "2"),
        ("1", "similar_to", "summary", "9"),
    }


def test_the_same_rule_from_another_episode_strengthens_it(db, session):
    rule = make_draft("Always run make", slot="instruction/0", kind=Kind.INSTRUCTION)
    put(db, session, rule)
    again = make_draft(
        "always run  MAKE!", slot="instruction/0", kind=Kind.INSTRUCTION, sources=(Source(2, "b"),)
    )
    assert put(db, session, again, episode="t2")["strengthened"] == 1
    assert put(db, session, again, episode="t2")["strengthened"] == 0
    assert db.read_now(lambda tx: summaries.get_summary(tx, 1)).duplicates == 2
    assert (
        put(db, session, make_draft("Always run make", slot="note/0"), episode="t2")["created"] == 1
    )


def test_an_edge_that_another_episode_gave_survives_a_revision(db, session):
    rule = make_draft("Always run make", slot="instruction/0", kind=Kind.INSTRUCTION)
    put(db, session, rule)
    again = make_draft(
        "Always run make", slot="instruction/0", kind=Kind.INSTRUCTION, sources=(Source(2, "b"),)
    )
    put(db, session, again, episode="t2")
    put(
        db,
        session,
        make_draft("Always run make", "More.", slot="instruction/0", kind=Kind.INSTRUCTION),
    )
    assert ("1", "derives_from", "event", "2") in edges(db, 1)


def test_a_project_that_was_merged_meanwhile_does_not_come_back(db, session):
    def merge(tx):
        into = projects.project(tx, projects.ensure_project(tx, "/q", "q", "", AT))
        projects.merge_project(tx, projects.project_by_key(tx, "/p"), into, AT)
        return into.id

    into = db.write_now(merge)
    put(db, session, make_draft("Said"))
    assert db.read_now(lambda tx: summaries.get_summary(tx, 1)).project_id == into


def decision(statement, number):
    return make_draft(
        statement, f"“{statement}”", kind=Kind.DECISION, slot="decision/0", at=AT + number,
    )  # fmt: skip


def verdicts(db):
    def found(tx):
        judged = tx.execute("SELECT newer_id, older_id, undone_at FROM supersessions").fetchall()
        gainsaid = tx.execute(
            "SELECT from_id, to_id FROM edges WHERE type = 'contradicts'"
        ).fetchall()
        return sorted(judged), sorted(gainsaid)

    return db.read_now(found)


def test_what_a_wrong_clock_dated_ahead_reverses_nothing_and_is_reversed(db, session):
    ahead = dataclasses.replace(decision("Use npm", 0), at=AT + 4_000 * 86_400_000)
    put(db, session, ahead, episode="t1")
    put(db, session, decision("Use pnpm instead of npm", 1), episode="t2")
    assert verdicts(db)[0] == [(2, 1, None)]


def test_a_judged_pair_is_not_decided_by_a_rule(db, session):
    old, new = decision("Use npm", 1), decision("Use pnpm instead of npm", 2)
    put(db, session, old, episode="t1")
    put(db, session, new, episode="t2")
    ((newer, older, _),) = verdicts(db)[0]

    def settle(tx):
        (made,) = links.supersessions_of(tx, older)
        tx.execute("DELETE FROM supersessions WHERE id = ?", (made.id,))
        judgments.put_judgment(
            tx, newer_id=newer, older_id=older, relation=Stance.COMPATIBLE, reason="both hold",
            who="user", at=AT,
        )  # fmt: skip

    db.write_now(settle)
    put(db, session, dataclasses.replace(new, tags=("again",)), episode="t2")
    assert verdicts(db) == ([], [])


def test_what_a_model_has_written_up_stands_while_the_rules_say_the_same(db, session):
    put(db, session, make_draft())
    new = TurnRewrite(1, 1, "Better", "Learnt:\n- x\n\nA body.", 0.9, "m")
    db.write_now(lambda tx: summaries.rewrite_turn(tx, new, AT))
    assert put(db, session, make_draft())["unchanged"] == 1
    assert db.read_now(lambda tx: summaries.get_summary(tx, 1)).title == "Better"
    assert put(db, session, make_draft(body="Another body."))["revised"] == 1
    now = db.read_now(lambda tx: summaries.get_summary(tx, 1))
    assert (now.title, now.body, now.rule) == ("A title", "Another body.", "turn")

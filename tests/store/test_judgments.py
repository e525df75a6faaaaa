from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.errors import VaultError
from memd.models import EdgeType, Stance
from memd.store import judgments, links, projects, summaries
from tests.factories import make_draft, supersede


@pytest.fixture
def ids(db):
    def write(tx):
        owner = summaries.SummaryOwner(projects.ensure_project(tx, "/a", "a", "", 1), None, "user")
        return [summaries.put_summary(tx, t, make_draft(t), owner, 1)[0] for t in ("a", "b", "c")]

    return db.write_now(write)


@pytest.fixture
def say(db):
    def say(one, other, relation=Stance.COMPATIBLE, at=1):
        return db.write_now(
            lambda tx: judgments.put_judgment(
                tx, newer_id=one, older_id=other, relation=relation, reason="r", who="user", at=at
            )
        )

    return say


def test_a_pair_has_one_verdict_in_whatever_order_it_is_named(db, ids, say):
    one, two, three = ids
    say(two, one, Stance.UNRELATED)
    for pair in ((one, two), (two, one)):
        assert db.read_now(lambda tx, p=pair: judgments.stance_between(tx, *p)) is Stance.UNRELATED
    assert db.read_now(lambda tx: judgments.stance_between(tx, one, three)) is None
    with pytest.raises(VaultError, match="judgments_live"):
        say(one, two)


def test_an_undone_judgment_holds_no_longer_and_is_still_listed(db, ids, say):
    one, two, _ = ids
    say(two, one)
    said = db.read_now(lambda tx: judgments.judgment_between(tx, one, two))
    assert db.write_now(lambda tx: judgments.undo_judgment(tx, said, 5))
    assert not db.write_now(lambda tx: judgments.undo_judgment(tx, said, 6))
    assert db.read_now(lambda tx: judgments.stance_between(tx, one, two)) is None
    say(one, two, Stance.DUPLICATE, at=7)
    told = db.read_now(lambda tx: judgments.judgments_of(tx, one))
    assert [(j.relation, j.undone_at) for j in told] == [
        (Stance.COMPATIBLE, 5),
        (Stance.DUPLICATE, None),
    ]


def test_many_are_asked_about_at_once(db, ids, say):
    one, two, three = ids
    say(two, one)
    say(two, three, Stance.CONTRADICTS)
    assert db.read_now(lambda tx: judgments.stances_of_pairs(tx, [one])) == {
        (one, two): Stance.COMPATIBLE
    }
    assert len(db.read_now(lambda tx: judgments.stances_of_pairs(tx, [two]))) == 2


def test_a_judgment_goes_with_either_memory(db, ids, say):
    one, two, _ = ids
    say(two, one)
    db.write_now(lambda tx: summaries.delete_summary(tx, one))
    assert db.read_now(lambda tx: judgments.judgments_of(tx, two)) == []


trust = st.floats(0.1, 0.9)
counts = st.integers(1, 50)


def test_captured_memories_have_less_confidence_than_explicit_ones():
    assert (
        judgments.captured_confidence(1.0)
        < judgments.initial_confidence("agent")
        < judgments.initial_confidence("user")
    )
    assert judgments.captured_confidence(0.4) == 0.4
    assert judgments.initial_confidence("import:elsewhere") < judgments.initial_confidence("agent")


def test_a_repetition_raises_it_and_each_further_one_less():
    steps = [judgments.confidence_after_repeats(0.5, 1, count) for count in range(1, 6)]
    gains = [after - before for before, after in pairwise(steps)]
    assert gains == sorted(gains, reverse=True)
    assert min(gains) > 0


@given(trust, counts, counts, st.integers(0, 4))
def test_what_moved_it_can_be_taken_back_in_any_order(first, was, now, others):
    moved = judgments.confidence_after_contradictions(
        judgments.confidence_after_repeats(first, was, now), 0, others
    )
    back = judgments.confidence_after_repeats(
        judgments.confidence_after_contradictions(moved, others, 0), now, was
    )
    assert back == pytest.approx(first, abs=1e-3)


@given(st.floats(0, 1), counts, st.integers(0, 50))
def test_nothing_becomes_certain_or_worthless(first, times, others):
    held = judgments.confidence_after_contradictions(
        judgments.confidence_after_repeats(first, 1, times), 0, others
    )
    assert 0 <= held <= 1


@pytest.fixture
def put(db):
    def put(title, project="/a"):
        def write(tx):
            owner = summaries.SummaryOwner(
                projects.ensure_project(tx, project, "a", "", 1), None, "user"
            )
            return summaries.put_summary(tx, title, make_draft(title, confidence=0.8), owner, 1)[0]

        return db.write_now(write)

    return put


@pytest.fixture
def gainsay(db):
    def gainsay(newer, older):
        edge = links.NewEdge(
            "summary", str(newer), EdgeType.CONTRADICTS, "summary", str(older), "test", 1
        )
        return db.write_now(lambda tx: links.add_edges(tx, [edge]))

    return gainsay


def held(db, *ids):
    return [db.read_now(lambda tx, n=n: summaries.get_summary(tx, n).confidence) for n in ids]


def against(db, *ids, **more):
    return db.read_now(lambda tx: judgments.visible_contradictions(tx, ids, **more))


def judge(db, one, other, relation):
    return db.write_now(
        lambda tx: judgments.put_judgment(
            tx, newer_id=one, older_id=other, relation=relation, reason="r", who="user", at=1
        )
    )


def test_a_contradiction_lowers_both_and_marks_both(db, put, gainsay):
    one, two, three = put("one"), put("two"), put("three")
    gainsay(two, one)
    assert held(db, one, two) == [pytest.approx(2 / 3, abs=1e-5)] * 2
    assert held(db, three) == [0.8]
    assert against(db, one, two, three) == {one: (two,), two: (one,)}


def test_an_edge_that_is_dropped_and_one_that_is_unlinked_give_it_back_too(db, put, gainsay):
    one, two = put("one"), put("two")
    ends = ("summary", str(two)), EdgeType.CONTRADICTS, ("summary", str(one))
    gainsay(two, one)
    db.write_now(lambda tx: links.drop_edge(tx, *ends))
    assert held(db, one, two) == [pytest.approx(0.8)] * 2
    gainsay(two, one)
    db.write_now(lambda tx: links.drop_edges_from(tx, two))
    assert held(db, one, two) == [pytest.approx(0.8)] * 2


def test_a_judgment_silences_an_edge_until_it_is_undone(db, put, gainsay):
    one, two = put("one"), put("two")
    gainsay(two, one)
    doubted = held(db, one, two)
    judge(db, two, one, Stance.COMPATIBLE)
    assert held(db, one, two) == [pytest.approx(0.8)] * 2
    assert against(db, one, two) == {}
    said = db.read_now(lambda tx: judgments.judgment_between(tx, one, two))
    db.write_now(lambda tx: judgments.undo_judgment(tx, said, 2))
    assert held(db, one, two) == doubted
    assert against(db, one) == {one: (two,)}


def test_a_hidden_memory_and_one_of_another_project_are_not_named(db, put, gainsay):
    one, two, far = put("one"), put("two"), put("far", project="/b")
    gainsay(two, one)
    gainsay(far, one)
    home = db.read_now(lambda tx: summaries.get_summary(tx, one)).project_id
    assert against(db, one) == {one: (two, far)}
    assert against(db, one, project_ids=(home,)) == {one: (two,)}
    supersede(db, far, two)
    assert against(db, one, project_ids=(home,)) == {}


def test_a_repetition_can_be_taken_back_but_not_the_first_saying(db, put):
    one = put("one")
    db.write_now(lambda tx: summaries.strengthen_summary(tx, one, 2))
    assert held(db, one)[0] > 0.8
    for _ in range(2):
        db.write_now(lambda tx: summaries.strengthen_summary(tx, one, 2, times=-1))
    summary = db.read_now(lambda tx: summaries.get_summary(tx, one))
    assert (summary.duplicates, summary.confidence) == (1, pytest.approx(0.8))
    db.write_now(lambda tx: summaries.strengthen_summary(tx, 999, 2))

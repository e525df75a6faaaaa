import pytest

from memd.errors import VaultError
from memd.models import Stance
from memd.store import judgments, projects, summaries
from tests.factories import make_draft


@pytest.fixture
def ids(db):
    def write(tx):
        owner = summaries.SummaryOwner(
            projects.ensure_project(tx, "/a", "a", "", 1), None, "user"
        )
        return [
            summaries.put_summary(tx, t, make_draft(t), owner, 1)[0] for t in ("a", "b", "c")
        ]

    return db.write_now(write)


@pytest.fixture
def say(db):
    def say(one, other, relation=Stance.COMPATIBLE, at=1):
        return db.write_now(
            lambda tx: judgments.put_judgment(
                tx,
                newer_id=one,
                older_id=other,
                relation=relation,
                reason="r",
                who="user",
                at=at,
            )
        )

    return say


def test_a_pair_has_one_verdict_in_whatever_order_it_is_named(db, ids, say):
    one, two, three = ids
    say(two, one, Stance.UNRELATED)
    for pair in ((one, two), (two, one)):
        assert (
            db.read_now(lambda tx, p=pair: judgments.stance_between(tx, *p)) is Stance.UNRELATED
        )
    assert db.read_now(lambda tx: judgments.stance_between(tx, one, three)) is None
    with pytest.raises(VaultError, match="judgments_live"):
        say(one, two)


def test_what_is_undone_holds_no_longer_and_is_still_told(db, ids, say):
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

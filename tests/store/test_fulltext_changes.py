from memd.models import Draft, Kind
from memd.store import fulltext, links, projects, summaries


def write(tx, uid, body="b"):
    owner = summaries.SummaryOwner(projects.ensure_project(tx, "/a", "a", "", 1), None, "agent")
    return summaries.put_summary(
        tx, uid, Draft("t", Kind.NOTE, "t", body, 1, "r", ()), owner, 1
    )[0]


def pending(db):
    return db.read_now(lambda tx: fulltext.pending_changes(tx, 100))


def test_a_change_that_happens_again_while_it_is_learnt_stays(db):
    number = db.write_now(lambda tx: write(tx, "u"))
    seen = pending(db)
    db.write_now(lambda tx: write(tx, "u", "other"))
    db.write_now(lambda tx: fulltext.remove_changes(tx, [seq for seq, _ in seen]))
    assert [i for _, i in pending(db)] == [number]


def test_hiding_and_reviving_a_summary_is_a_change_of_the_older_one(db):
    old, new = db.write_now(lambda tx: (write(tx, "o"), write(tx, "n")))

    def learn(tx):
        fulltext.remove_changes(tx, [seq for seq, _ in fulltext.pending_changes(tx, 9)])

    db.write_now(learn)
    row = db.write_now(
        lambda tx: links.supersede(
            tx, newer_id=new, older_id=old, rule="r", cosine=None, guard="", at=1
        )
    )
    assert [i for _, i in pending(db)] == [old]
    db.write_now(learn)
    db.write_now(lambda tx: links.undo_supersession(tx, row, 2))
    assert [i for _, i in pending(db)] == [old]


def test_everything_can_be_asked_for_again(db):
    db.write_now(lambda tx: [write(tx, str(i)) for i in range(3)])
    db.write_now(
        lambda tx: fulltext.remove_changes(
            tx, [seq for seq, _ in fulltext.pending_changes(tx, 9)]
        )
    )
    assert db.write_now(fulltext.queue_reindex) == 3

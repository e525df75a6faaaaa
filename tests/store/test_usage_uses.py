from memd.store import summaries, usage
from memd.store.types import SummaryUse
from tests.factories import make_draft


def put(db, count):
    def write(tx):
        from_project = tx.execute(
            "INSERT INTO projects (key, name, reason, created_at) VALUES ('a', 'a', '', 1) RETURNING id"
        ).get
        owner = summaries.SummaryOwner(from_project, None, "test")
        return [
            summaries.put_summary(tx, f"u{i}", make_draft(), owner, 1)[0] for i in range(count)
        ]

    return db.write_now(write)


def test_uses_add_up_and_remember_the_last(db):
    one, two = put(db, 2)
    db.write_now(lambda tx: usage.record_uses(tx, {one: SummaryUse(2, 50)}, {}))
    db.write_now(
        lambda tx: usage.record_uses(tx, {one: SummaryUse(1, 40), two: SummaryUse(1, 60)}, {})
    )
    assert db.read_now(lambda tx: usage.uses_of(tx, [one, two, 99])) == {
        one: SummaryUse(3, 50),
        two: SummaryUse(1, 60),
    }
    assert db.read_now(lambda tx: usage.uses_of(tx, [])) == {}


def test_pairs_add_up_and_are_found_among_those_asked_for(db):
    one, two, three = put(db, 3)
    db.write_now(lambda tx: usage.record_uses(tx, {}, {(one, two): 1, (two, three): 2}))
    db.write_now(lambda tx: usage.record_uses(tx, {}, {(one, two): 4}))
    assert db.read_now(lambda tx: usage.coactivations_of(tx, [one, two])) == {(one, two): 5}
    assert db.read_now(lambda tx: usage.coactivations_of(tx, [one, two, three])) == {
        (one, two): 5,
        (two, three): 2,
    }


def test_what_was_forgotten_meanwhile_is_not_counted_and_no_error(db):
    (one,) = put(db, 1)
    db.write_now(
        lambda tx: usage.record_uses(
            tx, {99: SummaryUse(1, 1), one: SummaryUse(1, 1)}, {(one, 99): 1}
        )
    )
    assert db.read_now(lambda tx: usage.uses_of(tx, [one, 99])) == {one: SummaryUse(1, 1)}
    assert db.read_now(lambda tx: usage.coactivations_of(tx, [one, 99])) == {}


def test_forgetting_a_memory_takes_its_uses_and_pairs_along(db):
    one, two = put(db, 2)
    db.write_now(
        lambda tx: usage.record_uses(
            tx, {one: SummaryUse(1, 1), two: SummaryUse(1, 1)}, {(one, two): 1}
        )
    )
    db.write_now(lambda tx: summaries.delete_summary(tx, two))
    assert db.read_now(lambda tx: usage.uses_of(tx, [one, two])) == {one: SummaryUse(1, 1)}
    assert db.read_now(lambda tx: tx.execute("SELECT count(*) FROM coactivations").get) == 0

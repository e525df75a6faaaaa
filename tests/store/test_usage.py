from memd.models import SessionRef
from memd.store import SummaryUse, projects, summaries, usage
from memd.store.usage import NewInjection
from tests.factories import make_draft


def put(db, count):
    def write(tx):
        from_project = tx.execute(
            "INSERT INTO projects (key, name, reason, created_at) VALUES ('a', 'a', '', 1) RETURNING id"
        ).get
        owner = summaries.SummaryOwner(from_project, None, "test")
        return [summaries.put_summary(tx, f"u{i}", make_draft(), owner, 1)[0] for i in range(count)]

    return db.write_now(write)


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


def filled(tx):
    project = projects.ensure_project(tx, "/p", "p", "", 1)
    for name in ("s1", "s2"):
        projects.ensure_session(tx, SessionRef("claude-code", name), project, 1)
    owner = summaries.SummaryOwner(project, 1, "claude-code")
    for number in range(3):
        summaries.put_summary(tx, f"u{number}", make_draft(f"Title {number}"), owner, 1)


def shown(number, *, session=1, at=5, moment="startup"):
    return NewInjection(session, number, moment, at, "pinned")


def test_injections_are_read_by_session(db):
    db.write_now(filled)
    rows = [shown(1), shown(2, at=6), shown(1, at=9, moment="prompt"), shown(3, session=2)]
    db.write_now(lambda tx: usage.record_injections(tx, rows))
    assert db.read_now(lambda tx: usage.last_injected(tx, 1)) == {
        1: (9, "prompt"),
        2: (6, "startup"),
    }
    found = db.read_now(lambda tx: usage.session_injections(tx, 1))
    assert [(i.summary_id, i.title, i.moment, i.at, i.reason) for i in found] == [
        (1, "Title 0", "startup", 5, "pinned"),
        (2, "Title 1", "startup", 6, "pinned"),
        (1, "Title 0", "prompt", 9, "pinned"),
    ]
    assert [i.at for i in db.read_now(lambda tx: usage.session_injections(tx, 1, 1))] == [9]


def test_what_was_forgotten_is_left_out_and_goes_with_its_memory(db):
    db.write_now(filled)
    db.write_now(lambda tx: usage.record_injections(tx, [shown(1), shown(99)]))
    db.write_now(lambda tx: summaries.delete_summary(tx, 1))
    assert db.read_now(lambda tx: usage.last_injected(tx, 1)) == {}


def test_injections_of_a_memory_are_counted_and_the_latest_are_listed(db):
    db.write_now(filled)
    rows = [shown(1), shown(1, at=9, moment="prompt"), shown(1, session=2, at=7), shown(2)]
    db.write_now(lambda tx: usage.record_injections(tx, rows))
    assert db.read_now(lambda tx: usage.count_injections(tx, 1)) == (3, 2)
    latest = db.read_now(lambda tx: usage.summary_injections(tx, 1, 2))
    assert [(one.session_id, one.at) for one in latest] == [(1, 9), (2, 7)]
    assert db.read_now(lambda tx: usage.count_injections(tx, 3)) == (0, 0)

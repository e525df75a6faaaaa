from memd.models import SessionRef
from memd.store import projects, summaries, usage
from memd.store.usage import NewInjection
from tests.factories import make_draft


def filled(tx):
    project = projects.ensure_project(tx, "/p", "p", "", 1)
    for name in ("s1", "s2"):
        projects.ensure_session(tx, SessionRef("claude-code", name), project, 1)
    owner = summaries.SummaryOwner(project, 1, "claude-code")
    for number in range(3):
        summaries.put_summary(tx, f"u{number}", make_draft(f"Title {number}"), owner, 1)


def shown(number, *, session=1, at=5, moment="startup"):
    return NewInjection(session, number, moment, at, "pinned")


def test_what_was_shown_is_known_by_session(db):
    db.write_now(filled)
    rows = [shown(1), shown(2, at=6), shown(1, at=9, moment="prompt"), shown(3, session=2)]
    db.write_now(lambda tx: usage.record_injections(tx, rows))
    assert db.read_now(lambda tx: usage.last_injected(tx, 1)) == {1: 9, 2: 6}
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


def test_to_be_shown_is_not_to_be_used(db):
    db.write_now(filled)
    db.write_now(lambda tx: usage.record_injections(tx, [shown(1)]))
    assert db.read_now(lambda tx: usage.uses_of(tx, [1])) == {}


def test_to_whom_a_memory_was_shown_is_counted_and_the_latest_are_listed(db):
    db.write_now(filled)
    rows = [shown(1), shown(1, at=9, moment="prompt"), shown(1, session=2, at=7), shown(2)]
    db.write_now(lambda tx: usage.record_injections(tx, rows))
    assert db.read_now(lambda tx: usage.count_injections(tx, 1)) == (3, 2)
    latest = db.read_now(lambda tx: usage.summary_injections(tx, 1, 2))
    assert [(one.session_id, one.at) for one in latest] == [(1, 9), (2, 7)]
    assert db.read_now(lambda tx: usage.count_injections(tx, 3)) == (0, 0)

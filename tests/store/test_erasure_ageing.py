import pytest

from memd.models import EventKind, SessionRef
from memd.store import SummaryUse, erasure, events, projects, summaries, usage
from tests.factories import make_draft, make_new_event


@pytest.fixture
def ids(db):
    def write(tx):
        project = projects.ensure_project(tx, "/a", "a", "", 1)
        session = projects.ensure_session(tx, SessionRef("t", "s"), project, 1)
        made = [
            events.append_event(tx, make_new_event(kind, at=at, text="x" * 100), session)[0]
            for kind, at in (
                (EventKind.PROMPT, 1),
                (EventKind.TOOL_RESULT, 1),
                (EventKind.TOOL_RESULT, 9),
            )
        ]
        events.mark_distilled(tx, made)
        return made

    return db.write_now(write)


def test_windows_cover_every_event_and_end(db, ids):
    last = db.read_now(lambda tx: erasure.next_window(tx, 0))
    assert last >= ids[-1]
    assert db.read_now(lambda tx: erasure.next_window(tx, last)) is None


def test_only_old_events_of_other_kinds_that_were_not_compacted_are_found(db, ids):
    def find(before=5):
        window = (0, 100)
        return db.read_now(
            lambda tx: [o.id for o in erasure.events_to_compact(tx, window, before, ["prompt"], 9)]
        )

    assert (find(), find(before=10)) == ([ids[1]], ids[1:])
    (old,) = db.read_now(lambda tx: erasure.events_to_compact(tx, (0, 100), 5, ["prompt"], 9))
    db.write_now(lambda tx: erasure.compact_event(tx, old, "{}", 7))
    assert find() == []
    assert db.read_now(lambda tx: events.events_by_ids(tx, [old.id]))[old.id].payload == {}
    db.write_now(lambda tx: events.forget_events(tx, [old.id], 1))
    assert db.read_now(lambda tx: tx.execute("SELECT count(*) FROM compactions").get) == 0


@pytest.mark.usefixtures("ids")
def test_a_compaction_that_would_only_add_leaves_the_event_as_it_is(db):
    (old,) = db.read_now(lambda tx: erasure.events_to_compact(tx, (0, 100), 5, ["prompt"], 9))
    db.write_now(lambda tx: erasure.compact_event(tx, old, "x" * 1_000, 7))
    assert db.read_now(lambda tx: events.events_by_ids(tx, [old.id]))[old.id].payload == old.payload


@pytest.mark.usefixtures("ids")
def test_idle_is_what_is_old_poor_and_was_never_returned(db):
    def put(tx, uid, **fields):
        return summaries.put_summary(
            tx, uid, make_draft(at=1, **fields), summaries.SummaryOwner(1, None, "t"), 1
        )[0]

    poor, used, good = db.write_now(
        lambda tx: [
            put(tx, uid, quality=quality) for uid, quality in (("a", 0.1), ("b", 0.1), ("c", 0.9))
        ]
    )
    db.write_now(lambda tx: usage.record_uses(tx, {used: SummaryUse(1, 1)}, {}))

    def idle():
        return db.read_now(lambda tx: erasure.idle_summaries(tx, erasure.IdleCriteria(5, 0.3), 9))

    assert idle() == [poor]
    db.write_now(lambda tx: erasure.archive_summaries(tx, [poor], 9))
    assert idle() == []
    db.write_now(lambda tx: summaries.pin_summary(tx, poor, 1))
    db.write_now(lambda tx: summaries.pin_summary(tx, poor, None))
    assert idle() == [poor]
    assert good not in idle()


@pytest.mark.usefixtures("ids")
def test_what_expired_before_a_time_is_found_unless_it_is_pinned(db):
    def put(tx, uid, expires_at):
        draft = make_draft(at=1, expires_at=expires_at)
        return summaries.put_summary(tx, uid, draft, summaries.SummaryOwner(1, None, "t"), 1)[0]

    early, pinned, _ = db.write_now(
        lambda tx: [put(tx, uid, at) for uid, at in (("a", 3), ("b", 3), ("c", 7))]
    )
    db.write_now(lambda tx: summaries.pin_summary(tx, pinned, 1))
    assert db.read_now(lambda tx: erasure.expired_summaries(tx, 5, 9)) == [early]
    db.write_now(lambda tx: erasure.delete_memory(tx, early))
    assert db.read_now(lambda tx: summaries.get_summary(tx, early)) is None

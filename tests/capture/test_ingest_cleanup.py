from pathlib import Path

import pytest

from memd.capture.ingest import Cleanup
from memd.models import EventKind
from memd.store import erasure, events, projects
from tests.factories import make_new_event


@pytest.fixture
def cleanup(db):
    return Cleanup(db)


@pytest.fixture
def said(db):
    def put(tx):
        project = projects.ensure_project(tx, "/a", "a", "", 1)
        event = make_new_event(EventKind.PROMPT, prompt="the zzyzx road")
        return events.append_event(
            tx, event, projects.ensure_session(tx, event.session, project, 1)
        )[0]

    return db.write_now(put)


def erase(db, seq, what="forgotten"):
    def work(tx):
        events.forget_events(tx, [seq], 2)
        erasure.mark_erased(tx, what)

    db.write_now(work)


def on_disk(db):
    files = Path(db.path).parent.glob(f"{Path(db.path).name}*")
    return b"".join(file.read_bytes() for file in files)


async def test_what_a_killed_daemon_had_erased_is_cleaned_up_at_the_first_look(
    db, cleanup, said
):
    erase(db, said)
    assert b"zzyzx" in on_disk(db)
    await cleanup.look()
    assert b"zzyzx" not in on_disk(db)
    assert db.read_now(erasure.pending_marks) == {}


async def test_what_is_being_forgotten_is_left_to_whoever_forgets_it_for_one_look(
    db, cleanup, said
):
    await cleanup.look()
    erase(db, said)
    await cleanup.look()
    assert db.read_now(erasure.pending_marks) == {"forgotten": 1}
    await cleanup.look()
    assert db.read_now(erasure.pending_marks) == {}


async def test_a_private_turn_is_cleaned_up_at_once_and_again_when_it_has_faded(
    db, cleanup, said, monkeypatch
):
    await cleanup.look()
    erase(db, said, "private")
    monkeypatch.setattr(erasure, "has_redistilled_private", lambda _: False)
    await cleanup.look()
    assert b"zzyzx" not in on_disk(db)
    assert db.read_now(erasure.pending_marks) == {"private": 1}
    monkeypatch.undo()
    await cleanup.look()
    assert db.read_now(erasure.pending_marks) == {}


async def test_where_nothing_was_erased_nothing_is_written(db, cleanup, monkeypatch):
    monkeypatch.setattr(db, "write", None)
    await cleanup.look()
    await cleanup.look()

from pathlib import Path

import pytest

from memd.capture.ingest import ErasureCleaner
from memd.models import EventKind
from memd.store import erasure, events, projects
from tests.factories import make_new_event


@pytest.fixture
def cleaner(db):
    return ErasureCleaner(db)


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


async def test_what_a_killed_daemon_had_erased_is_cleaned_up_at_the_first_look(db, cleaner, said):
    erase(db, said)
    assert b"zzyzx" in on_disk(db)
    await cleaner.clean_up()
    assert b"zzyzx" not in on_disk(db)
    assert db.read_now(erasure.pending_marks) == {}


async def test_a_running_forget_may_clean_up_itself_before_the_next_call(db, cleaner, said):
    await cleaner.clean_up()
    erase(db, said)
    await cleaner.clean_up()
    assert db.read_now(erasure.pending_marks) == {"forgotten": 1}
    await cleaner.clean_up()
    assert db.read_now(erasure.pending_marks) == {}


async def test_a_private_turn_is_cleaned_up_at_once_and_again_when_it_has_faded(
    db, cleaner, said, monkeypatch
):
    await cleaner.clean_up()
    erase(db, said, "private")
    monkeypatch.setattr(erasure, "has_redistilled_private", lambda _: False)
    await cleaner.clean_up()
    assert b"zzyzx" not in on_disk(db)
    assert db.read_now(erasure.pending_marks) == {"private": 1}
    monkeypatch.undo()
    await cleaner.clean_up()
    assert db.read_now(erasure.pending_marks) == {}


async def test_where_nothing_was_erased_nothing_is_written(db, cleaner, monkeypatch):
    monkeypatch.setattr(db, "write", None)
    await cleaner.clean_up()
    await cleaner.clean_up()

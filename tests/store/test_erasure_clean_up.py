from pathlib import Path

import anyio.to_thread
import apsw
import pytest

from memd.models import EventKind
from memd.store import erasure, events, projects
from memd.store.backup import read_snapshot
from memd.text import PRIVATE
from tests.factories import make_new_event


def put(tx, prompt):
    project = projects.ensure_project(tx, "/a", "a", "", 1)
    event = make_new_event(EventKind.PROMPT, prompt=prompt)
    session = projects.ensure_session(tx, event.session, project, 1)
    return events.append_event(tx, event, session)[0]


def on_disk(db):
    files = Path(db.path).parent.glob(f"{Path(db.path).name}*")
    return b"".join(file.read_bytes() for file in files)


def marks_of(path):
    with read_snapshot(path) as tx:
        return erasure.pending_marks(tx)


def erase(db, seq):
    def work(tx):
        events.forget_events(tx, [seq], 2)
        erasure.mark_erased(tx, "forgotten")

    db.write_now(work)


async def test_the_mark_stays_in_the_vault_until_the_bytes_are_overwritten(db):
    seq = db.write_now(lambda tx: put(tx, "the zzyzx road"))
    assert db.read_now(erasure.pending_marks) == {}
    erase(db, seq)
    marks = await anyio.to_thread.run_sync(marks_of, db.path)
    assert marks == {"forgotten": 1}
    await erasure.clean_up(db, marks)
    assert db.read_now(erasure.pending_marks) == {}
    assert b"zzyzx" not in on_disk(db)


async def test_what_is_erased_during_a_clean_up_stays_due(db):
    erase(db, 1)
    marks = db.read_now(erasure.pending_marks)
    erase(db, 2)
    await erasure.clean_up(db, marks)
    assert db.read_now(erasure.pending_marks) == {"forgotten": 2}


async def test_a_reader_that_blocks_the_checkpoint_leaves_only_the_emptying_of_the_log_due(db):
    erase(db, 1)
    marks = db.read_now(erasure.pending_marks)
    reader = apsw.Connection(db.path)
    reader.execute("BEGIN; SELECT count(*) FROM meta").fetchall()
    assert not await erasure.clean_up(db, marks)
    assert db.read_now(erasure.pending_marks) == {"forgotten": 1}
    assert db.read_now(lambda tx: erasure.is_rewritten(tx, marks))
    assert not await erasure.empty_log(db, marks)
    reader.close()
    assert await erasure.empty_log(db, marks)
    assert db.read_now(erasure.pending_marks) == {}


@pytest.mark.parametrize(("said", "is_quiet"), [(PRIVATE, False), ("hello", True)])
def test_private_text_is_redistilled_once_its_prompt_is_distilled(db, said, is_quiet):
    seq = db.write_now(lambda tx: put(tx, said))
    assert db.read_now(erasure.has_redistilled_private) is is_quiet
    db.write_now(lambda tx: events.mark_distilled(tx, [seq]))
    assert db.read_now(erasure.has_redistilled_private)

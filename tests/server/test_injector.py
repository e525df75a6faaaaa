"""The room that shows agents something: deadlines, failures, and that nothing is shown twice."""

import json
from contextlib import asynccontextmanager

import anyio
import pytest

from memd.config import InjectConfig
from memd.errors import Broken, VaultBusy
from memd.models import Kind, SessionRef
from memd.server.injection_types import Looked, Opening, Verdict
from memd.server.injector import LOOKS_MAX, Injector
from memd.store import projects, summaries, usage
from tests.factories import make_draft

ASKED = Opening("test", "s1", "startup", "SessionStart", "", "/p")
PROMPT = Opening("test", "s1", "prompt", "UserPromptSubmit", "why?", "/p")


class Looker:
    """Finds memory 1 unless it is known to be shown; may be slow, or fail."""

    def __init__(self):
        self.fails_with, self.gate, self.known = None, None, []

    async def look(self, _asked, _event_id, known, *, explain=False):  # noqa: ARG002  # the port
        self.known.append(known)
        if self.gate is not None:
            await self.gate.wait()
        if self.fails_with is not None:
            raise self.fails_with
        if 1 in known.shown:
            return Looked("nothing new is known")
        verdict = Verdict(1, Kind.NOTE, "A title", 1, "Group", True, "pinned")
        return Looked("1 of 1 shown", "the text", "p", None, (verdict,))


@pytest.fixture
def looker():
    return Looker()


@asynccontextmanager
async def opened(db, clock, looker, seconds):
    room = Injector(db, looker, InjectConfig(prompt_s=seconds, session_s=seconds), clock)

    def write(tx):
        project = projects.ensure_project(tx, "/p", "p", "", 1)
        summaries.put_summary(
            tx, "u1", make_draft(), summaries.SummaryOwner(project, None, "test"), 1
        )

    db.write_now(write)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(room.run)
        await anyio.wait_all_tasks_blocked()
        yield room
        tasks.cancel_scope.cancel()


@pytest.fixture
async def injector(db, clock, looker):
    async with opened(db, clock, looker, 0.05) as room:
        yield room


@pytest.fixture
async def patient(db, clock, looker):
    """One whose deadline is not what is tested."""
    async with opened(db, clock, looker, 5.0) as room:
        yield room


def begin(db, key="s1"):
    db.write_now(lambda tx: projects.ensure_session(tx, SessionRef("test", key), 1, 1))


def rows(db):
    return db.read_now(lambda tx: usage.session_injections(tx, 1))


def logged(caplog, event):
    return [r for r in caplog.messages if json.loads(r)["event"] == event]


async def test_what_is_shown_is_written_down_and_not_shown_again(db, injector, looker):
    begin(db)
    assert await injector.offer(ASKED, 1) == "the text"
    assert await injector.offer(PROMPT, 2) is None
    assert looker.known[1].shown == {1: 1_800_000_000_000}
    (row,) = await injector.injected(1)
    assert (row.summary_id, row.moment, row.reason) == (1, "startup", "Group: pinned")
    assert injector.status() == {
        "asked": 2, "shown": 1, "late": 0, "failed": 0, "pending": 0, "failing": None,
    }  # fmt: skip


async def test_what_is_shown_is_written_down_before_the_reply(db, patient):
    """Else a daemon that is killed right after it would show the same again."""
    begin(db)
    assert await patient.offer(ASKED, 1) == "the text"
    assert len(rows(db)) == 1


async def test_two_hooks_at_once_are_not_shown_the_same(patient, looker):
    looker.gate = anyio.Event()
    told = []

    async def ask(asked):
        told.append(await patient.offer(asked, 1))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, ASKED)
        tasks.start_soon(ask, PROMPT)
        await anyio.wait_all_tasks_blocked()
        looker.gate.set()
    assert sorted(told, key=bool) == [None, "the text"]


async def test_what_is_shown_is_not_held_up_by_a_vault_that_is_busy(db, injector):
    begin(db)
    async with injector._writing:  # as while an import commits
        with anyio.fail_after(60):
            assert await injector.offer(ASKED, 1) == "the text"
    assert [row.summary_id for row in await injector.injected(1)] == [1]


async def test_a_session_that_is_not_known_yet_is_remembered_until_it_is(db, injector):
    assert await injector.offer(ASKED, None) == "the text"
    await injector.flush()
    assert await injector.offer(ASKED, None) is None
    begin(db)
    assert [row.summary_id for row in await injector.injected(1)] == [1]


async def test_what_comes_late_is_dropped_and_told_once(injector, looker, caplog):
    looker.gate = anyio.Event()
    with anyio.fail_after(60):
        assert await injector.offer(ASKED, 1) is None
        assert await injector.offer(PROMPT, 2) is None
    assert len(logged(caplog, "context_left_out")) == 1
    looker.gate.set()
    await anyio.wait_all_tasks_blocked()
    # It came after all, and was not shown: it may be shown yet.
    assert await injector.offer(ASKED, 3) == "the text"
    assert injector.status()["late"] == 2
    assert injector.status()["failing"] is None


@pytest.mark.parametrize("error", [VaultBusy("busy"), KeyError("a mistake of ours")], ids=str)
async def test_a_failure_is_told_once_until_it_works_again(injector, looker, caplog, error):
    looker.fails_with = error
    for _ in range(3):
        assert await injector.offer(ASKED, 1) is None
    assert len(logged(caplog, "context_left_out")) == 1
    assert injector.status()["failed"] == 3
    looker.fails_with = None
    assert await injector.offer(ASKED, 1) == "the text"
    looker.fails_with = error
    assert await injector.offer(PROMPT, 1) is None
    assert len(logged(caplog, "context_left_out")) == 2


async def test_while_all_looks_are_stuck_nobody_waits(injector, looker):
    looker.gate = anyio.Event()
    async with anyio.create_task_group() as tasks:
        for _ in range(LOOKS_MAX):
            tasks.start_soon(injector.offer, ASKED, 1)
        await anyio.wait_all_tasks_blocked()
        assert await injector.offer(PROMPT, 1) is None
    assert injector.status()["asked"] == LOOKS_MAX
    looker.gate.set()


async def test_a_vault_that_cannot_be_written_keeps_nothing_from_being_shown(
    db, injector, monkeypatch
):
    begin(db)

    async def refuses(_):
        raise Broken("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(db, "write", refuses)
        assert await injector.offer(ASKED, 1) == "the text"
        await anyio.wait_all_tasks_blocked()
        assert await injector.offer(ASKED, 1) is None
        assert injector.status()["pending"] == 1
    await injector.flush()
    assert len(rows(db)) == 1


async def test_a_room_that_is_not_open_shows_nothing(db, clock, looker):
    room = Injector(db, looker, InjectConfig(), clock)
    assert await room.offer(ASKED, 1) is None


async def test_to_look_beforehand_leaves_no_trace(db, injector):
    begin(db)
    for _ in range(2):
        assert (await injector.rehearse(ASKED, explain=True)).text == "the text"
    assert await injector.injected(1) == []


async def test_after_a_compaction_what_was_shown_counts_from_there(injector, looker, clock):
    await injector.offer(ASKED, 1)
    clock.advance(s=1)
    looker.fails_with = None
    compacted = Opening("test", "s2", "compact", "SessionStart")
    await injector.offer(compacted, 2)
    await injector.offer(Opening("test", "s2", "prompt", "UserPromptSubmit", "x"), 3)
    assert looker.known[-1].broke_at == clock()
    assert looker.known[0].broke_at is None

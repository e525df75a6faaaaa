"""The injector: deadlines, failures, and that nothing is injected twice."""

import json
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from memd.config import InjectConfig
from memd.errors import Broken, VaultBusy
from memd.injection import injector as injector_module
from memd.injection.builder import ContextDraft
from memd.injection.injector import BUILDS_MAX, Injector
from memd.injection.moments import InjectedContext, InjectionCandidate, InjectionMoment
from memd.models import Kind, SessionRef
from memd.store import projects, summaries, usage
from tests.factories import make_draft

START = InjectionMoment("test", "s1", "startup", "SessionStart", "", "/p")
PROMPT = InjectionMoment("test", "s1", "prompt", "UserPromptSubmit", "why?", "/p")


class FakeBuilder:
    """Builds a context of memory 1, unless the session has it; may be slow, or fail."""

    def __init__(self):
        self.fails_with, self.gate, self.recent = None, None, []
        self.prepared, self.has_prepared = [], anyio.Event()

    def begin_draft(self, moment):
        return ContextDraft(moment)

    async def search_ahead(self, draft):
        return draft

    async def prepare_start(self, client, directory):
        self.prepared.append((client, directory))
        self.has_prepared.set()
        if self.fails_with is not None:
            raise self.fails_with

    async def may_matter(self, _moment):
        return True

    async def build(self, _moment, recent, *, explain=False, draft=None):  # noqa: ARG002  # as ContextBuilder's
        self.recent.append(recent)
        if self.gate is not None:
            await self.gate.wait()
        if self.fails_with is not None:
            raise self.fails_with
        if 1 in recent.shown:
            return InjectedContext("nothing new is known")
        candidate = InjectionCandidate(1, Kind.NOTE, "A title", 1, "Group", True, "pinned")
        return InjectedContext("1 of 1 shown", "the text", "p", (candidate,))


@pytest.fixture
def builder():
    return FakeBuilder()


@asynccontextmanager
async def opened(db, clock, builder, seconds, config=None):
    config = config or InjectConfig(prompt_s=seconds, session_s=seconds)
    injector = Injector(db, builder, config, clock)

    def write(tx):
        project = projects.ensure_project(tx, "/p", "p", "", 1)
        summaries.put_summary(
            tx, "u1", make_draft(), summaries.SummaryOwner(project, None, "test"), 1
        )

    db.write_now(write)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(injector.run)
        await anyio.wait_all_tasks_blocked()
        yield injector
        tasks.cancel_scope.cancel()


@pytest.fixture
async def injector(db, clock, builder):
    async with opened(db, clock, builder, 0.05) as injector:
        yield injector


@pytest.fixture
async def patient(db, clock, builder):
    """An injector with a long deadline."""
    async with opened(db, clock, builder, 5.0) as injector:
        yield injector


def begin(db, key="s1"):
    db.write_now(lambda tx: projects.ensure_session(tx, SessionRef("test", key), 1, 1))


def rows(db):
    return db.read_now(lambda tx: usage.session_injections(tx, 1))


def logged(caplog, event):
    return [r for r in caplog.messages if json.loads(r)["event"] == event]


async def test_an_injection_is_recorded_and_not_repeated(db, injector, builder):
    begin(db)
    assert (await injector.offer(START)).text == "the text"
    assert (await injector.offer(PROMPT)).text is None
    assert builder.recent[1].shown == {1: (1_800_000_000_000, "startup")}
    (row,) = await injector.list_injections(1)
    assert (row.summary_id, row.moment, row.reason) == (1, "startup", "Group: pinned")
    assert injector.status() == {
        "asked": 2, "shown": 1, "tokens": 2, "session_tokens": 1_500, "session_wait_s": 10, "late": 0, "failed": 0, "pending": 0, "failing": None,
    }  # fmt: skip


async def test_an_injection_is_recorded_before_the_reply(db, patient):
    """Otherwise a daemon that is killed right after it would inject the same again."""
    begin(db)
    assert (await patient.offer(START)).text == "the text"
    assert len(rows(db)) == 1


async def test_two_hooks_at_a_time_do_not_get_the_same_memories(patient, builder):
    builder.gate = anyio.Event()
    texts = []

    async def ask(moment):
        texts.append((await patient.offer(moment)).text)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, START)
        tasks.start_soon(ask, PROMPT)
        await anyio.wait_all_tasks_blocked()
        builder.gate.set()
    assert sorted(texts, key=bool) == [None, "the text"]


async def test_a_busy_vault_does_not_hold_up_the_reply(db, injector):
    begin(db)
    async with injector._writing:  # as while an import commits
        with anyio.fail_after(60):
            assert (await injector.offer(START)).text == "the text"
    assert [row.summary_id for row in await injector.list_injections(1)] == [1]


async def test_injections_into_an_unknown_session_are_recorded_once_it_is_known(db, injector):
    assert (await injector.offer(START)).text == "the text"
    await injector.flush()
    assert (await injector.offer(START)).text is None
    begin(db)
    assert [row.summary_id for row in await injector.list_injections(1)] == [1]


async def test_a_late_context_is_dropped_and_logged_once(injector, builder, caplog):
    builder.gate = anyio.Event()
    with anyio.fail_after(60):
        assert (await injector.offer(START)).text is None
        assert (await injector.offer(PROMPT)).text is None
    assert len(logged(caplog, "context_left_out")) == 1
    builder.gate.set()
    await anyio.wait_all_tasks_blocked()
    # The late context was dropped, so its memories may still be injected.
    assert (await injector.offer(START)).text == "the text"
    assert injector.status()["late"] == 2
    assert injector.status()["failing"] is None


async def test_a_start_that_was_late_is_told_with_the_next_prompt_and_once(injector, builder):
    builder.gate = anyio.Event()
    with anyio.fail_after(60):
        assert (await injector.offer(START)).text is None
        assert (await injector.tell(PROMPT, None)).text is None
    builder.gate.set()
    await anyio.wait_all_tasks_blocked()
    assert (await injector.tell(replace(PROMPT, session="another"), None)).text is None
    assert (await injector.tell(PROMPT, None)).text == "the text"
    assert (await injector.tell(PROMPT, None)).text is None


async def test_a_page_that_came_after_its_hook_had_left_is_told_to_the_hook_that_asks_again(
    db, patient
):
    begin(db)
    told = await patient.tell(START, patient.prepare(START))
    assert told.text == "the text"
    patient.take_back(told)
    assert await patient.list_injections(1) == []
    assert (await patient.budget.load((START.client, START.session))).tokens == 0
    assert (await patient.tell(START, None, is_repeated=True)).text == "the text"
    assert (await patient.tell(START, None, is_repeated=True)).text is None
    assert (await patient.tell(PROMPT, None)).text is None
    assert [one.why for one in await patient.list_untold(1)] == ["the hook had given up waiting"]


@pytest.mark.parametrize("error", [VaultBusy("busy"), KeyError("a mistake of ours")], ids=str)
async def test_a_failure_is_logged_once_until_a_context_is_built_again(
    injector, builder, caplog, error
):
    builder.fails_with = error
    for _ in range(3):
        assert (await injector.offer(START)).text is None
    assert len(logged(caplog, "context_left_out")) == 1
    assert injector.status()["failed"] == 3
    builder.fails_with = None
    assert (await injector.offer(START)).text == "the text"
    builder.fails_with = error
    assert (await injector.offer(PROMPT)).text is None
    assert len(logged(caplog, "context_left_out")) == 2


async def test_while_all_builds_are_stuck_no_hook_waits(injector, builder):
    builder.gate = anyio.Event()
    async with anyio.create_task_group() as tasks:
        for _ in range(BUILDS_MAX):
            tasks.start_soon(injector.offer, START)
        await anyio.wait_all_tasks_blocked()
        assert (await injector.offer(PROMPT)).text is None
    assert injector.status()["asked"] == BUILDS_MAX
    builder.gate.set()


async def test_a_vault_that_cannot_be_written_does_not_prevent_injection(db, injector, monkeypatch):
    begin(db)

    async def refuses(_):
        raise Broken("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(db, "write_unsynced", refuses)
        assert (await injector.offer(START)).text == "the text"
        await anyio.wait_all_tasks_blocked()
        assert (await injector.offer(START)).text is None
        assert injector.status()["pending"] == 2, (
            "what was told, and why the second start was told nothing"
        )
    await injector.flush()
    assert len(rows(db)) == 1


async def test_an_injector_that_does_not_run_injects_nothing(db, clock, builder):
    injector = Injector(db, builder, InjectConfig(), clock)
    assert (await injector.offer(START)).text is None


async def test_a_preview_records_nothing(db, injector):
    begin(db)
    for _ in range(2):
        assert (await injector.preview(START, explain=True)).text == "the text"
    assert await injector.list_injections(1) == []


async def test_a_compaction_resets_what_the_session_has_seen(injector, builder, clock):
    await injector.offer(START)
    clock.advance(s=1)
    builder.fails_with = None
    compacted = InjectionMoment("test", "s2", "compact", "SessionStart")
    await injector.offer(compacted)
    await injector.offer(InjectionMoment("test", "s2", "prompt", "UserPromptSubmit", "x"))
    assert builder.recent[-1].reset_at == clock()
    assert builder.recent[0].reset_at is None


async def test_a_session_whose_hooks_were_held_up_for_long_is_told_nothing_more(injector, builder):
    key = PROMPT.client, PROMPT.session
    await injector.budget.load(key)
    injector.budget.spend(key, 0, 10.5)
    assert (await injector.offer(PROMPT)).text is None
    assert builder.recent == []
    assert (await injector.offer(replace(PROMPT, session="s2"))).text == "the text"
    # A compaction begins anew.
    assert (await injector.offer(replace(START, name="compact"))).text == "the text"


async def test_another_daemon_knows_what_a_session_was_told_and_waited_for(
    db, clock, builder, injector
):
    begin(db)
    await injector.offer(START)
    injector.budget.spend((START.client, START.session), 40, 2.5)
    await injector.flush()
    async with opened(db, clock, builder, 5.0) as later:
        spent = await later.budget.load((START.client, START.session))
        assert spent.tokens == 42
        assert spent.waited_ms >= 2_500
        await later.preview(PROMPT, explain=False)
        assert builder.recent[-1].tokens == 42


async def test_what_is_spent_of_an_unknown_session_is_kept_once_it_is_known(db, injector):
    injector.budget.spend((START.client, START.session), 40, 0)
    await injector.flush()
    begin(db)
    await injector.flush()
    assert db.read_now(lambda tx: usage.read_spent(tx, 1)).tokens == 40


async def test_what_a_subagent_is_told_its_session_has_not_seen(db, injector):
    begin(db)
    assert (await injector.offer(replace(START, name="subagent"))).text == "the text"
    assert (await injector.offer(PROMPT)).text == "the text"
    assert db.read_now(lambda tx: usage.last_injected(tx, 1)).keys() == {1}
    assert [row.moment for row in rows(db)] == ["subagent", "prompt"]


async def test_a_daemon_that_starts_prepares_the_next_start_where_the_last_session_was(
    db, clock, builder
):
    ref = SessionRef("test", "s1", "/p")
    db.write_now(lambda tx: projects.ensure_session(tx, ref, projects.ensure_project(tx, "/p", "p", "", 1), 1))  # fmt: skip
    async with opened(db, clock, builder, 5.0):
        await builder.has_prepared.wait()
    assert builder.prepared == [("test", "/p")]


async def test_the_next_start_is_prepared_at_rest_once_something_changed(
    injector, builder, monkeypatch
):
    monkeypatch.setattr(injector_module, "_GATHER_S", 0.0)
    injector.notice_change()  # nobody has been here yet
    injector.prepare(PROMPT)
    await anyio.wait_all_tasks_blocked()
    assert builder.prepared == []
    builder.fails_with = Broken("nothing can be read")
    injector.notice_change()
    await builder.has_prepared.wait()
    builder.has_prepared = anyio.Event()
    injector.notice_change()
    await builder.has_prepared.wait()
    assert builder.prepared == [("test", "/p")] * 2

import dataclasses

import pytest

from memd.errors import BadRequest, UnknownId
from memd.models import Kind, SessionRef
from memd.recall.types import RelevanceGate
from memd.server.requests import (
    ForgetRequest,
    GetRequest,
    PinRequest,
    RelevanceRequest,
    RememberRequest,
    SearchRequest,
    TimelineRequest,
)
from memd.server.scope import Caller
from memd.server.service import Desk
from memd.server.time_expressions import DAY
from memd.store import projects

NOBODY = Caller()


@pytest.fixture
def desk(house):
    return Desk(house.app, 0.05)


async def test_a_question_carries_everything_that_was_asked(house, desk, clock):
    session = house.db.write_now(
        lambda tx: projects.ensure_session(
            tx,
            SessionRef("claude-code", "s1"),
            projects.ensure_project(tx, "/p", "p", "", 1),
            1,
        )
    )
    asked = SearchRequest(
        query="login", k=7, offset=3, kinds=[Kind.FIX], session="s1", source="user", since="7d", until="now",
        tags=["a"], topic_key="t", include_superseded=True, legs=["lexical"], profile="siftcoder",
        explain=True, as_of="yesterday", include_turns=True, focus=["src/**", "billing"],
    )  # fmt: skip
    await desk.search(asked, NOBODY)
    (question,) = house.recaller.asked
    assert (question.text, question.k, question.offset) == ("login", 7, 3)
    assert (question.kinds, question.session_id, question.source) == (
        (Kind.FIX,),
        session,
        "user",
    )
    assert (question.since, question.until) == (clock() - 7 * DAY, clock())
    assert question.as_of == clock() - clock() % DAY - 1
    assert (question.tags, question.topic_key, question.legs) == (
        ("a",),
        "t",
        frozenset({"lexical"}),
    )
    assert question.include_superseded
    assert question.include_turns
    assert question.count_use
    assert question.explain
    assert question.profile == "siftcoder"
    assert question.focus == ("src/**", "billing")
    assert question.relevance_gate is None


async def test_only_the_control_call_can_ask_for_what_is_worth_showing(house, desk):
    await desk.search(SearchRequest(query="x", surface={"floor": 0.2}), NOBODY)
    assert house.recaller.asked[-1].relevance_gate == RelevanceGate(floor=0.2, ratio=0.5)
    assert RelevanceRequest().model_dump() == dataclasses.asdict(RelevanceGate())


async def test_a_topic_or_a_vector_is_question_enough(house, desk):
    await desk.search(SearchRequest(topic_key="build.command"), NOBODY)
    await desk.search(SearchRequest(embedding=[1.0]), NOBODY)
    assert len(house.recaller.asked) == 2
    with pytest.raises(BadRequest, match="say what to look for"):
        await desk.search(SearchRequest(embedding=[]), NOBODY)


async def test_who_names_a_session_means_it_whichever_project_it_is_of(house, desk, tmp_path):
    house.db.write_now(
        lambda tx: projects.ensure_session(
            tx,
            SessionRef("claude-code", "s1"),
            projects.ensure_project(tx, "/p", "p", "", 1),
            1,
        )
    )
    caller = Caller(cwd=str(tmp_path))
    await desk.search(SearchRequest(query="x", session="s1"), caller)
    await desk.search(SearchRequest(query="x", session="s1", project="current"), caller)
    assert [question.project_ids for question in house.recaller.asked] == [None, ()]


async def test_nothing_to_wait_for_is_not_waited_for(house, desk):
    assert (await desk.search(SearchRequest(query="x"), NOBODY)).waited is None
    assert house.worker.settled == []


async def test_memories_are_read_in_the_order_asked_for_and_once(house, desk):
    first, second = house.remember("a"), house.remember("b")
    read = await desk.get(GetRequest(ids=[second, first, second, 99]), NOBODY)
    assert [one.id for one in read.memories] == [second, first]
    assert read.unknown == (99,)
    with pytest.raises(UnknownId, match=r"there is no memory #98, #99"):
        await desk.get(GetRequest(ids=[98, 99]), NOBODY)


async def test_a_memory_out_of_reach_can_be_neither_forgotten_nor_pinned(house, desk, tmp_path):
    number = house.remember("a", project="/elsewhere")
    caller = Caller(cwd=str(tmp_path))
    with pytest.raises(UnknownId, match="belongs to"):
        await desk.forget(ForgetRequest(ids=[number], dry_run=False), caller)
    with pytest.raises(UnknownId, match="belongs to"):
        await desk.pin(PinRequest(id=number), caller)


async def test_a_rehearsal_of_forgetting_does_not_bother_the_index(house, desk):
    number = house.remember("a")
    await desk.forget(ForgetRequest(ids=[number]), NOBODY)
    assert house.worker.settled == []
    await desk.forget(ForgetRequest(ids=[number], dry_run=False), NOBODY)
    assert house.worker.settled == [None]


async def test_an_agent_cannot_make_up_a_project_and_an_importer_can(house, desk):
    with pytest.raises(BadRequest, match="current or global"):
        await desk.remember([RememberRequest(text="x", project="corpus")], NOBODY, "agent")
    with pytest.raises(BadRequest, match="current or global"):
        await desk.remember([RememberRequest(text="x", project="all")], NOBODY, "user")
    await desk.remember([RememberRequest(text="x", project="corpus")], NOBODY, "user")
    assert house.curator.memories[0].project_reason == "somebody named it so with --project"


async def test_a_path_is_a_project_too(house, desk, tmp_path):
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    await desk.remember(
        [RememberRequest(text="x", project=str(tmp_path / "shop"))], NOBODY, "agent"
    )
    (memory,) = house.curator.memories
    assert (memory.project_key, memory.project_name) == (str(tmp_path / "shop"), "shop")


@pytest.mark.parametrize(
    ("asked", "session"),
    [
        (Caller(), None),
        (Caller(session="s"), None),
        (Caller(session="s", client="c", cwd="/d"), SessionRef("c", "s", "/d")),
    ],
    ids=["nobody", "no client", "known"],
)
async def test_a_memory_belongs_to_the_session_that_said_it(house, desk, asked, session):
    await desk.remember([RememberRequest(text="x", project="global")], asked, "agent")
    assert house.curator.memories[0].session == session


async def test_a_focus_holds_for_its_session_until_it_is_ended_or_a_day_old(house, desk, clock):
    mine, other = Caller(session="mine"), Caller(session="other")

    async def focus_of(caller, **more):
        await desk.search(SearchRequest(query="login", **more), caller)
        return house.recaller.asked[-1].focus

    assert await focus_of(mine, focus=["billing"]) == ("billing",)
    assert await focus_of(mine) == ("billing",)
    assert await focus_of(other) == ()
    assert await focus_of(NOBODY, focus=["once"]) == ("once",)
    assert await focus_of(NOBODY) == ()
    clock.advance(s=24 * 3600)
    assert await focus_of(mine) == ()
    assert await focus_of(mine, focus=["src/**"]) == ("src/**",)
    assert await focus_of(mine, focus=[]) == ()
    assert await focus_of(mine) == ()


async def test_focuses_do_not_pile_up(desk):
    for number in range(300):
        await desk.search(
            SearchRequest(query="login", focus=["a"]), Caller(session=str(number))
        )
    assert len(desk.focuses) == 256


@pytest.fixture
def rows(desk):
    async def ask_for(**asked):
        shown, _ = await desk.timeline(TimelineRequest(project="all", **asked), NOBODY)
        return [row.summary.id for row in shown.rows]

    return ask_for


async def test_days_are_whole_days_up_to_one_of_them(house, rows, clock):
    midnight = clock() - clock() % DAY
    last, first, today = (
        house.remember(title, at=at)
        for title, at in (("a", midnight - 1), ("b", midnight - DAY), ("c", midnight))
    )
    assert await rows(days=1) == [today]
    assert await rows(days=2) == [first, last, today]
    assert await rows(days=1, at=midnight - 5) == [first, last]
    assert await rows(days=1, at="yesterday") == [first, last]
    assert await rows(since=midnight - 1, until=midnight - 1) == [last]
    assert await rows(since=midnight) == [today]


async def test_a_session_narrows_what_is_around_a_memory(house, rows):
    number = house.remember("a")
    session = house.db.write_now(
        lambda tx: projects.ensure_session(tx, SessionRef("claude-code", "s1"), 1, 1)
    )
    assert session
    with pytest.raises(UnknownId, match="does not belong to this session"):
        await rows(id=number, session="s1")
    for asked in ({"id": number, "at": 5}, {"id": number, "days": 2}):
        with pytest.raises(BadRequest, match="not both"):
            await rows(**asked)

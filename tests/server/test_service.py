import pytest
from pydantic import ValidationError

from memd.consolidate.forget import ForgetSelection
from memd.errors import BadRequest, UnknownId
from memd.models import Kind, SessionRef
from memd.server.requests import (
    ForgetRequest,
    GetRequest,
    PinRequest,
    RememberRequest,
    SearchRequest,
    TimelineRequest,
)
from memd.server.scope import Caller
from memd.server.service import MemoryService
from memd.store import projects, summaries
from memd.store.erasure import ErasureBounds
from memd.time_expressions import DAY_MS

ANYONE = Caller()


@pytest.fixture
def service(server):
    return MemoryService(server.app, 0.05)


async def test_an_agent_passes_keywords_factors_and_a_vector_or_browses(server, service):
    given = SearchRequest(keywords="vegan diet", boost={"src/**": 2.0}, embedding=[0.6, 0.8])
    await service.search(given, ANYONE)
    await service.search(SearchRequest(browse=True), ANYONE)
    first, second = server.recaller.asked
    assert (first.keywords, first.boost) == ("vegan diet", (("src/**", 2.0),))
    assert (first.embedding, first.browse) == ((0.6, 0.8), False)
    assert second.browse
    with pytest.raises(BadRequest, match="say what to look for"):
        await service.search(SearchRequest(), ANYONE)


async def test_a_rating_is_stored_with_the_memory(server, service):
    (stored,) = await service.remember(
        [RememberRequest(text="The kettle is red", significance=8)], ANYONE, "user"
    )
    found = server.db.read_now(lambda tx: summaries.get_summary(tx, stored.id))
    assert found.significance == 8


async def test_a_question_has_every_argument_of_the_request(server, service, clock):
    session = server.db.write_now(
        lambda tx: projects.ensure_session(
            tx, SessionRef("claude-code", "s1"), projects.ensure_project(tx, "/p", "p", "", 1), 1
        )
    )
    asked = SearchRequest(
        query="login", k=7, offset=3, kinds=[Kind.FIX], session="s1", source="user", since="7d", until="now",
        tags=["a"], topic_key="t", include_superseded=True, legs=["lexical"], profile="siftcoder",
        explain=True, as_of="yesterday", include_turns=True, focus=["src/**", "billing"],
    )  # fmt: skip
    await service.search(asked, ANYONE)
    (question,) = server.recaller.asked
    assert (question.text, question.k, question.offset) == ("login", 7, 3)
    assert (question.kinds, question.session_id, question.source) == ((Kind.FIX,), session, "user")
    assert (question.since, question.until) == (clock() - 7 * DAY_MS, clock())
    assert question.as_of == clock() - clock() % DAY_MS - 1
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


async def test_a_topic_key_or_a_vector_is_enough_for_a_search(server, service):
    await service.search(SearchRequest(topic_key="build.command"), ANYONE)
    await service.search(SearchRequest(embedding=[1.0]), ANYONE)
    assert len(server.recaller.asked) == 2
    with pytest.raises(BadRequest, match="say what to look for"):
        await service.search(SearchRequest(embedding=[]), ANYONE)


async def test_a_named_session_is_searched_whichever_project_it_belongs_to(
    server, service, tmp_path
):
    server.db.write_now(
        lambda tx: projects.ensure_session(
            tx, SessionRef("claude-code", "s1"), projects.ensure_project(tx, "/p", "p", "", 1), 1
        )
    )
    caller = Caller(cwd=str(tmp_path))
    await service.search(SearchRequest(query="x", session="s1"), caller)
    await service.search(SearchRequest(query="x", session="s1", project="current"), caller)
    assert [question.project_ids for question in server.recaller.asked[:2]] == [None, ()]


async def test_a_search_without_min_event_does_not_wait(server, service):
    assert (await service.search(SearchRequest(query="x"), ANYONE)).waited is None
    assert server.worker.settled == []


async def test_memories_are_returned_once_in_the_order_asked_for(server, service):
    first, second = server.remember("a"), server.remember("b")
    read = await service.get(GetRequest(ids=[second, first, second, 99]), ANYONE)
    assert [one.id for one in read.memories] == [second, first]
    assert read.unknown == (99,)
    with pytest.raises(UnknownId, match=r"there is no memory #98, #99"):
        await service.get(GetRequest(ids=[98, 99]), ANYONE)


async def test_a_memory_outside_the_scope_can_be_neither_forgotten_nor_pinned(
    server, service, tmp_path
):
    number = server.remember("a", project="/elsewhere")
    caller = Caller(cwd=str(tmp_path))
    with pytest.raises(UnknownId, match="belongs to"):
        await service.forget(ForgetRequest(ids=[number], dry_run=False), caller, "user")
    with pytest.raises(UnknownId, match="belongs to"):
        await service.pin(PinRequest(id=number), caller, "user")


async def test_a_dry_run_of_forgetting_does_not_wait_for_the_index(server, service):
    number = server.remember("a")
    await service.forget(ForgetRequest(ids=[number]), ANYONE, "user")
    assert server.worker.settled == []
    await service.forget(ForgetRequest(ids=[number], dry_run=False), ANYONE, "user")
    assert server.worker.settled == [None]


async def test_an_importer_may_name_a_new_project_and_an_agent_may_not(server, service):
    with pytest.raises(BadRequest, match="there is no"):
        await service.remember([RememberRequest(text="x", project="corpus")], ANYONE, "agent")
    with pytest.raises(BadRequest, match="there is no"):
        await service.remember([RememberRequest(text="x", project="all")], ANYONE, "user")
    await service.remember([RememberRequest(text="x", project="corpus")], ANYONE, "user")
    assert server.curator.memories[0].project_reason == "named with --project"


async def test_a_path_names_its_project(server, service, tmp_path):
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    await service.remember(
        [RememberRequest(text="x", project=str(tmp_path / "shop"))], ANYONE, "user"
    )
    (memory,) = server.curator.memories
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
async def test_a_memory_belongs_to_the_session_of_the_caller(server, service, asked, session):
    await service.remember([RememberRequest(text="x", project="global")], asked, "user")
    assert server.curator.memories[0].session == session


async def test_a_focus_holds_for_its_session_until_it_is_ended_or_a_day_old(server, service, clock):
    mine, other = Caller(session="mine"), Caller(session="other")

    async def focus_of(caller, **more):
        await service.search(SearchRequest(query="login", **more), caller)
        return server.recaller.asked[-1].focus

    assert await focus_of(mine, focus=["billing"]) == ("billing",)
    assert await focus_of(mine) == ("billing",)
    assert await focus_of(other) == ()
    assert await focus_of(ANYONE, focus=["once"]) == ("once",)
    assert await focus_of(ANYONE) == ()
    clock.advance(s=24 * 3600)
    assert await focus_of(mine) == ()
    assert await focus_of(mine, focus=["src/**"]) == ("src/**",)
    assert await focus_of(mine, focus=[]) == ()
    assert await focus_of(mine) == ()


async def test_only_the_latest_focuses_are_held(service):
    for number in range(300):
        await service.search(SearchRequest(query="login", focus=["a"]), Caller(session=str(number)))
    assert len(service._focuses) == 256


@pytest.fixture
def rows(service):
    async def ask_for(**asked):
        shown, _ = await service.timeline(TimelineRequest(project="all", **asked), ANYONE)
        return [row.summary.id for row in shown.rows]

    return ask_for


async def test_days_are_whole_days_up_to_the_last(server, rows, clock):
    midnight = clock() - clock() % DAY_MS
    last, first, today = (
        server.remember(title, at=at)
        for title, at in (("a", midnight - 1), ("b", midnight - DAY_MS), ("c", midnight))
    )
    assert await rows(days=1) == [today]
    assert await rows(days=2) == [first, last, today]
    assert await rows(days=1, at=midnight - 5) == [first, last]
    assert await rows(days=1, at="yesterday") == [first, last]
    assert await rows(since=midnight - 1, until=midnight - 1) == [last]
    assert await rows(since=midnight) == [today]


async def test_a_session_narrows_the_timeline_around_a_memory(server, rows):
    number = server.remember("a")
    session = server.db.write_now(
        lambda tx: projects.ensure_session(tx, SessionRef("claude-code", "s1"), 1, 1)
    )
    assert session
    with pytest.raises(UnknownId, match="does not belong to this session"):
        await rows(id=number, session="s1")
    for asked in ({"id": number, "at": 5}, {"id": number, "days": 2}):
        with pytest.raises(BadRequest, match="not both"):
            await rows(**asked)


@pytest.fixture
def select(server, service):
    """Select what a request would forget, in a vault with the projects `one` and `global`."""

    def write(tx):
        one = projects.ensure_project(tx, "/home/dev/one", "one", "", 1)
        projects.ensure_global(tx, 1)
        return projects.ensure_session(tx, SessionRef("claude-code", "abcd-1"), one, 1)

    server.db.write_now(write)

    async def select_memories(caller=ANYONE, **given):
        request = ForgetRequest(**({"project": "all"} | given))
        return await service.select_memories(request, caller)

    return select_memories


async def test_ids_are_selected_alone(select):
    assert await select(ids=[3]) == ForgetSelection(ids=(3,))
    with pytest.raises(BadRequest, match="query"):
        await select(ids=[3], query="x")


@pytest.mark.parametrize("given", [{}, {"project": "all"}, {"directory": "/home/dev/one"}])
async def test_everything_is_never_selected(select, given):
    with pytest.raises(BadRequest, match="say what"):
        await select(**given)


async def test_a_project_selects_that_one_alone(select):
    assert await select(project="one") == ForgetSelection(bounds=ErasureBounds(project_id=1))
    assert await select(project="global") == ForgetSelection(bounds=ErasureBounds(project_id=2))
    with pytest.raises(BadRequest, match="no 'two'"):
        await select(project="two")


async def test_a_session_is_selected_whichever_project_it_belongs_to(select):
    assert await select(session="abcd") == ForgetSelection(bounds=ErasureBounds(session_id=1))
    with pytest.raises(BadRequest, match="session"):
        await select(session="nope")


async def test_words_and_times_are_selected_within_a_project(select, clock):
    found = await select(query="red  tea", since="1d", project="one")
    assert [one.parts for one in found.words.terms] == [("red",), ("tea",)]
    assert found.bounds == ErasureBounds(project_id=1, since=clock() - 86_400_000)
    with pytest.raises(BadRequest, match="empty"):
        await select(query="  ")


@pytest.mark.parametrize("factor", [0, -1, 1e200, float("inf"), float("nan")])
def test_a_boost_is_a_factor_that_scores_survive(factor):
    with pytest.raises(ValidationError):
        SearchRequest(boost={"shop": factor})

import pytest

from memd.errors import BadRequest, UnknownId
from memd.models import SessionRef
from memd.server.scope import Caller, ProjectScope, ScopeResolver, visible_memories
from memd.store import projects


@pytest.fixture
def place(db, tmp_path):
    """Make a project in a directory of its own; (its directory, its id)."""

    def placed(path):
        directory = tmp_path / path
        (directory / ".git").mkdir(parents=True)
        key = str(directory)
        return key, db.write_now(
            lambda tx: projects.ensure_project(tx, key, directory.name, "here", 1)
        )

    return placed


@pytest.fixture
def everywhere(db):
    return db.write_now(lambda tx: projects.ensure_global(tx, 1))


async def test_current_is_the_project_of_the_directory_and_global(db, place, everywhere):
    directory, number = place("shop")
    place("other")
    assert await ScopeResolver(db).find_scope(directory, "current") == ProjectScope(
        (number, everywhere), "shop"
    )


async def test_other_projects_are_all_but_that_of_the_directory(db, place, everywhere):
    directory, _ = place("shop")
    _, other = place("other")
    assert await ScopeResolver(db).find_other_projects(directory) == {
        other: "other",
        everywhere: "global",
    }
    assert len(await ScopeResolver(db).find_other_projects(None)) == 3


async def test_a_caller_without_a_directory_sees_every_project(db):
    assert await ScopeResolver(db).find_scope(None, "current") == ProjectScope(None)


async def test_all_is_every_project(db, place):
    directory, _ = place("shop")
    assert await ScopeResolver(db).find_scope(directory, "all") == ProjectScope(None)


async def test_an_unknown_directory_sees_global_with_a_note(db, tmp_path, everywhere):
    found = await ScopeResolver(db).find_scope(str(tmp_path), "current")
    assert found.project_ids == (everywhere,)
    assert "nothing is known of" in found.note


async def test_a_project_is_found_by_name_and_by_path(db, place, everywhere):
    directory, number = place("shop")
    for asked in ("shop", directory, directory + "/.git"):
        assert (await ScopeResolver(db).find_scope("/", asked)).project_ids == (number, everywhere)
    assert (await ScopeResolver(db).find_scope("/", "global")).project_ids == (everywhere,)


async def test_two_projects_of_one_name_are_both_searched(db, place, everywhere):
    _, first = place("a/shop")
    _, second = place("b/shop")
    assert (await ScopeResolver(db).find_scope(None, "shop")).project_ids == (
        first,
        second,
        everywhere,
    )


async def test_an_unknown_name_is_answered_with_the_known_ones(db, place):
    place("shop")
    with pytest.raises(
        BadRequest, match="there is no 'shoe'; there is shop; or use current or all"
    ):
        await ScopeResolver(db).find_scope(None, "shoe")


async def test_a_long_list_of_names_is_cut(db, place):
    for number in range(25):
        place(f"p{number:02}")
    with pytest.raises(BadRequest, match="p19, …"):
        await ScopeResolver(db).find_scope(None, "shoe")


@pytest.fixture
def sessions(db, place):
    _, project = place("shop")

    def work(tx):
        return [
            projects.ensure_session(tx, SessionRef("claude-code", key), project, 1)
            for key in ("abc-1", "abc-2", "abc")
        ]

    return db.write_now(work)


async def test_a_session_is_found_by_the_beginning_of_its_id(db, sessions):
    assert (await ScopeResolver(db).find_session("abc-1", Caller())).id == sessions[0]
    assert (await ScopeResolver(db).find_session("abc-2", Caller())).key == "abc-2"
    assert (await ScopeResolver(db).find_session("abc", Caller())).id == sessions[2]
    assert (
        await ScopeResolver(db).find_session("current", Caller(session="abc-1"))
    ).id == sessions[0]


@pytest.mark.usefixtures("sessions")
async def test_an_ambiguous_or_unknown_session_is_an_error(db):
    with pytest.raises(BadRequest, match="3 sessions begin with 'ab'"):
        await ScopeResolver(db).find_session("ab", Caller())
    with pytest.raises(BadRequest, match="there is no 'x'"):
        await ScopeResolver(db).find_session("x", Caller())
    with pytest.raises(BadRequest, match="did not say"):
        await ScopeResolver(db).find_session("current", Caller())


async def test_a_memory_outside_the_scope_differs_from_one_that_does_not_exist(server):
    number = server.remember("login", project="/shop")

    def look(scope):
        return server.db.read_now(lambda tx: visible_memories(tx, [number, 99], scope))

    memories, unknown = look(ProjectScope(None))
    assert (list(memories), unknown) == ([number], [99])
    with pytest.raises(UnknownId, match="belongs to /shop; ask with the project all"):
        look(ProjectScope((77,)))

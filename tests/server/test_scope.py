import pytest

from memd.errors import BadRequest, UnknownId
from memd.models import SessionRef
from memd.server import scope
from memd.server.scope import Caller, Reach
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


async def test_here_is_the_project_around_the_directory_and_what_is_global(
    db, place, everywhere
):
    directory, number = place("shop")
    place("other")
    assert await scope.reach(db, directory, "current") == Reach((number, everywhere), "shop")


async def test_every_project_but_that_of_the_directory_is_elsewhere(db, place, everywhere):
    directory, _ = place("shop")
    _, other = place("other")
    assert await scope.elsewhere(db, directory) == {other: "other", everywhere: "global"}
    assert len(await scope.elsewhere(db, None)) == 3


async def test_who_has_no_directory_sees_everything(db):
    assert await scope.reach(db, None, "current") == Reach(None)


async def test_all_is_everything(db, place):
    directory, _ = place("shop")
    assert await scope.reach(db, directory, "all") == Reach(None)


async def test_an_unknown_directory_sees_what_is_global_and_is_told(db, tmp_path, everywhere):
    reach = await scope.reach(db, str(tmp_path), "current")
    assert reach.project_ids == (everywhere,)
    assert "nothing is known of" in reach.note


async def test_a_project_is_found_by_name_and_by_path(db, place, everywhere):
    directory, number = place("shop")
    for asked in ("shop", directory, directory + "/.git"):
        assert (await scope.reach(db, "/", asked)).project_ids == (number, everywhere)
    assert (await scope.reach(db, "/", "global")).project_ids == (everywhere,)


async def test_two_projects_of_one_name_are_both_meant(db, place, everywhere):
    _, first = place("a/shop")
    _, second = place("b/shop")
    assert (await scope.reach(db, None, "shop")).project_ids == (first, second, everywhere)


async def test_a_name_that_is_none_is_told_with_those_there_are(db, place):
    place("shop")
    with pytest.raises(
        BadRequest, match="there is no 'shoe'; there is shop; or use current or all"
    ):
        await scope.reach(db, None, "shoe")


async def test_many_names_are_not_all_told(db, place):
    for number in range(25):
        place(f"p{number:02}")
    with pytest.raises(BadRequest, match="p19, …"):
        await scope.reach(db, None, "shoe")


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
    assert (await scope.session(db, "abc-1", Caller())).id == sessions[0]
    assert (await scope.session(db, "abc-2", Caller())).key == "abc-2"
    assert (await scope.session(db, "abc", Caller())).id == sessions[2]
    assert (await scope.session(db, "current", Caller(session="abc-1"))).id == sessions[0]


@pytest.mark.usefixtures("sessions")
async def test_a_session_that_is_not_one_is_told(db):
    with pytest.raises(BadRequest, match="3 sessions begin with 'ab'"):
        await scope.session(db, "ab", Caller())
    with pytest.raises(BadRequest, match="there is no 'x'"):
        await scope.session(db, "x", Caller())
    with pytest.raises(BadRequest, match="did not say"):
        await scope.session(db, "current", Caller())


async def test_a_memory_out_of_reach_is_told_from_one_that_is_not_there(house):
    number = house.remember("login", project="/shop")
    look = lambda reach: house.db.read_now(lambda tx: scope.visible(tx, [number, 99], reach))  # noqa: E731
    found, unknown = look(Reach(None))
    assert (list(found), unknown) == ([number], [99])
    with pytest.raises(UnknownId, match="belongs to /shop; ask with the project all"):
        look(Reach((77,)))

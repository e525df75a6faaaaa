import pytest

from memd.consolidate.forget import ForgetSelection
from memd.errors import BadRequest
from memd.models import SessionRef
from memd.server import service
from memd.server.requests import ForgetRequest, ScrubRequest
from memd.server.scope import Caller
from memd.store import projects
from memd.store.erasure import ErasureBounds

NOBODY = Caller()


@pytest.fixture
def meant(house):
    def write(tx):
        one = projects.ensure_project(tx, "/home/dev/one", "one", "", 1)
        projects.ensure_global(tx, 1)
        return projects.ensure_session(tx, SessionRef("claude-code", "abcd-1"), one, 1)

    house.db.write_now(write)

    async def selection(caller=NOBODY, **given):
        return await service.selection(
            house.app, ForgetRequest(**({"project": "all"} | given)), caller
        )

    return selection


async def test_ids_are_meant_alone(meant):
    assert await meant(ids=[3]) == ForgetSelection(ids=(3,))
    with pytest.raises(BadRequest, match="query"):
        await meant(ids=[3], query="x")


@pytest.mark.parametrize("given", [{}, {"project": "all"}, {"directory": "/home/dev/one"}])
async def test_everything_is_never_meant(meant, given):
    with pytest.raises(BadRequest, match="say what"):
        await meant(**given)


async def test_a_project_means_that_one_alone(meant):
    assert await meant(project="one") == ForgetSelection(bounds=ErasureBounds(project_id=1))
    assert await meant(project="global") == ForgetSelection(bounds=ErasureBounds(project_id=2))
    with pytest.raises(BadRequest, match="no 'two'"):
        await meant(project="two")


async def test_a_session_is_meant_in_whichever_project_it_is(meant):
    assert await meant(session="abcd") == ForgetSelection(bounds=ErasureBounds(session_id=1))
    with pytest.raises(BadRequest, match="session"):
        await meant(session="nope")


async def test_words_and_times_are_bounded_by_a_project(meant, clock):
    found = await meant(query="red  tea", since="1d", project="one")
    assert found.words == ("red", "tea")
    assert found.bounds == ErasureBounds(project_id=1, since=clock() - 86_400_000)
    with pytest.raises(BadRequest, match="empty"):
        await meant(query="  ")


async def test_an_agent_erases_by_session_or_time_only_what_a_dry_run_has_told(meant):
    agent = Caller(session="s", client="claude-code")
    with pytest.raises(BadRequest, match="token"):
        await meant(agent, session="abcd", dry_run=False)
    assert await meant(agent, session="abcd", dry_run=False, token="t")


async def test_a_scrub_needs_a_pattern_or_secrets(house):
    scrubs = service.Scrubs(house.app)
    for wrong in ({}, {"pattern": "x", "secrets": True}):
        with pytest.raises(BadRequest, match="pattern"):
            await scrubs.scrub(ScrubRequest(**wrong), NOBODY)
    done = await scrubs.scrub(ScrubRequest(pattern="nowhere-at-all"), NOBODY)
    assert (done["rows"], done["is_dry_run"]) == ({}, True)
    assert (await scrubs.scrub(ScrubRequest(secrets=True, dry_run=False), NOBODY))["rows"] == {}

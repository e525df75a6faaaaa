import pytest

from memd.server.control import Tidying
from memd.server.requests import (
    ConsolidateRequest,
    ConsolidationRunsRequest,
    UndoConsolidationRequest,
)
from memd.server.scope import Caller


@pytest.fixture
def tidying(house):
    return Tidying(house.app)


async def test_a_round_is_done_or_rehearsed(tidying):
    done = await tidying.consolidate(ConsolidateRequest(), Caller())
    assert done == {"dry_run": False, "report": {"superseded": 1}}
    rehearsed = await tidying.consolidate(ConsolidateRequest(dry_run=True), Caller())
    assert rehearsed == {"dry_run": True, "report": {"superseded": 2}}


async def test_what_is_taken_back_can_be_found_when_it_is_told(tidying, house):
    asked = UndoConsolidationRequest(what="r1")
    undone = await tidying.undo(asked, Caller())
    assert undone == {"report": {"run": "r1", "is_dry_run": False}}
    assert house.worker.settled == [None]
    await tidying.undo(UndoConsolidationRequest(what="r1", dry_run=True), Caller())
    assert house.worker.settled == [None]


async def test_the_runs_are_listed(tidying):
    assert await tidying.runs(ConsolidationRunsRequest(limit=1), Caller()) == {
        "runs": [{"id": 1}]
    }

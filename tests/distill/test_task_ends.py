"""A task is over once a later turn of its project has done it."""

from memd.models import Kind
from tests.distill.told_sessions import asks, edits, says

TASK = "Remind me to rotate the keys of the harbour ledger."


async def open_tasks(session):
    found = await session.memories()
    return [one.title for one in found if one.kind is Kind.TASK and one.superseded_by is None]


async def test_a_turn_of_a_later_session_that_did_it_ends_a_task(session):
    await session.tell(asks(TASK), says("Noted."))
    assert len(await open_tasks(session)) == 1
    await session.starts_another("s2")
    await session.tell(
        asks("rotate the keys of the harbour ledger"), edits("ops/keys.py"), says("The harbour ledger's keys are rotated now.")
    )  # fmt: skip
    assert await open_tasks(session) == []


async def test_work_on_something_near_ends_no_task(session):
    await session.tell(asks(TASK), says("Noted."))
    await session.starts_another("s2")
    await session.tell(
        asks("rename the harbour page"), edits("shop/harbour.py"), says("The harbour page is called Port now.")
    )  # fmt: skip
    assert len(await open_tasks(session)) == 1

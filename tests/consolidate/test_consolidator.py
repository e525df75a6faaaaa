import anyio
import pytest

from memd.config import ConsolidateConfig
from memd.consolidate.consolidator import RULE, Consolidator
from memd.consolidate.decide import Relate, Supersede
from memd.models import EdgeType, Kind
from memd.store import links, summaries

LONG = (
    "The gateway retries a failed request with exponential backoff and jitter, because the billing service"
    " answers slowly after every deployment; the timeout was raised from 10 to {} seconds"
)


@pytest.fixture
def rung():
    return []


@pytest.fixture
def consolidator(vault, clock, rung):
    return make(vault, clock, rung)


def make(vault, clock, rung, **config):
    return Consolidator(
        vault.db,
        vault.shelf,
        vault.space,
        ConsolidateConfig(**config),
        clock,
        lambda: rung.append(1),
    )


def waiting(vault):
    return [s.id for s in vault.db.read_now(lambda tx: summaries.to_consolidate(tx, 999))]


async def test_a_restatement_is_superseded_with_its_cosine_rule_and_guard(
    vault, consolidator, rung, clock
):
    old = vault.put(LONG.format(30))
    clock.advance(s=1)
    new = vault.put(LONG.format(30).upper())
    await vault.indexer.settle()
    tick = await consolidator.tick()
    assert (tick.examined, tick.pairs, tick.superseded, tick.refused) == (2, 1, 1, {})
    assert vault.get(old).superseded_by == new
    (one,) = vault.supersessions(old)
    assert (one.rule, one.guard, one.at) == (RULE, "same", clock())
    assert one.cosine > 0.95
    assert rung == [1]


async def test_another_number_contradicts_whatever_the_cosine(vault, consolidator, rung):
    old = vault.put(LONG.format(30))
    new = vault.put(LONG.format(60))
    await vault.indexer.settle()
    tick = await consolidator.tick()
    assert (tick.superseded, tick.contradicts, tick.refused) == (0, 1, {"number": 1})
    (edge,) = vault.edges(old)
    assert (edge.from_id, edge.type, edge.to_id) == (str(new), EdgeType.CONTRADICTS, str(old))
    assert edge.detail["finding"] == "number: 30 seconds → 60 seconds"
    assert edge.detail["cosine"] >= 0.95
    assert rung == []


async def test_a_second_tick_finds_nothing_to_do(vault, consolidator):
    vault.put(LONG.format(30))
    vault.put(LONG.format(60))
    await vault.indexer.settle()
    await consolidator.tick()
    tick = await consolidator.tick()
    assert (tick.examined, tick.pairs, tick.contradicts) == (0, 0, 0)
    assert waiting(vault) == []


async def test_what_is_not_indexed_yet_is_left_for_the_next_tick(vault, consolidator):
    vault.put(LONG.format(30))
    assert (await consolidator.tick()).waiting == 1
    await vault.indexer.settle()
    vault.put(LONG.format(30))
    tick = await consolidator.tick()
    assert (tick.examined, tick.waiting) == (1, 1)
    await vault.indexer.settle()
    assert (await consolidator.tick()).superseded == 1


async def test_what_waits_does_not_block_what_comes_after_it(vault, clock, rung):
    for _ in range(3):
        vault.put("not indexed")
    consolidator = make(vault, clock, rung, batch=2)
    ticks = [await consolidator.tick() for _ in range(3)]
    assert [(t.waiting, t.has_more) for t in ticks] == [(2, True), (1, False), (2, True)]


async def test_a_text_without_a_word_is_looked_at_once(vault, consolidator):
    vault.put("✅")
    await vault.indexer.settle()
    assert (await consolidator.tick()).examined == 1


async def test_projects_do_not_meet(vault, consolidator):
    vault.put(LONG.format(30))
    vault.put(LONG.format(30), project_id=vault.project("/b"))
    await vault.indexer.settle()
    assert (await consolidator.tick()).pairs == 0


async def test_a_pinned_memory_is_never_hidden(vault, consolidator, clock):
    old = vault.put(LONG.format(30))
    vault.db.write_now(lambda tx: summaries.pin(tx, old, 1))
    clock.advance(s=1)
    vault.put(LONG.format(30))
    await vault.indexer.settle()
    tick = await consolidator.tick()
    assert (tick.superseded, tick.similar, tick.refused) == (0, 1, {"pinned": 1, "tier": 1})


async def test_what_has_expired_is_over(vault, consolidator, clock):
    vault.put(LONG.format(30), kind=Kind.TASK, expires_at=clock() - 1)
    vault.put(LONG.format(30), kind=Kind.TASK)
    await vault.indexer.settle()
    tick = await consolidator.tick()
    assert (tick.examined, tick.pairs) == (2, 0)


async def test_a_verdict_that_was_undone_is_not_given_again(vault, consolidator, clock):
    old = vault.put(LONG.format(30))
    clock.advance(s=1)
    vault.put(LONG.format(30))
    await vault.indexer.settle()
    await consolidator.tick()
    (one,) = vault.supersessions(old)
    vault.db.write_now(lambda tx: links.undo(tx, one.id, 1))
    vault.db.write_now(
        lambda tx: summaries.renew(tx, old, at=1, expires_at=None, now=clock() + 1)
    )
    await vault.indexer.settle()
    assert (await consolidator.tick()).superseded == 0
    assert vault.get(old).superseded_by is None


async def test_a_memory_that_changes_while_it_is_looked_at_is_left(
    vault, consolidator, clock, monkeypatch
):
    old = vault.put(LONG.format(30))
    vault.put(LONG.format(30))
    await vault.indexer.settle()
    planned = consolidator._plan

    async def then_changed(now):
        plan = await planned(now)
        vault.db.write_now(lambda tx: summaries.strengthen(tx, old, clock() + 1))
        return plan

    monkeypatch.setattr(consolidator, "_plan", then_changed)
    tick = await consolidator.tick()
    assert (tick.examined, tick.waiting, tick.superseded) == (0, 2, 0)
    monkeypatch.undo()
    assert (await consolidator.tick()).superseded == 1


async def test_a_rehearsal_decides_and_writes_nothing(vault, consolidator, rung):
    for seconds in (30, 60):
        vault.put(LONG.format(seconds))
    vault.put(LONG.format(60).lower())
    await vault.indexer.settle()
    decisions = await consolidator.rehearse()
    assert {type(decision) for decision in decisions} == {Supersede, Relate}
    assert len(waiting(vault)) == 3
    assert vault.live() == [1, 2, 3]
    assert rung == []


async def test_a_chain_of_restatements_ends_at_the_newest(vault, consolidator, clock):
    ids = []
    for _ in range(3):
        ids.append(vault.put(LONG.format(30)))
        clock.advance(s=1)
        await vault.indexer.settle()
        await consolidator.tick()
        await vault.indexer.settle()
    assert vault.live() == ids[-1:]
    assert vault.db.read_now(lambda tx: links.newest(tx, ids[0])) == ids[-1]


async def test_it_ticks_at_once_and_when_nudged(vault, clock):
    send, receive = anyio.create_memory_object_stream[int](9)
    consolidator = Consolidator(
        vault.db,
        vault.shelf,
        vault.space,
        ConsolidateConfig(),
        clock,
        lambda: send.send_nowait(1),
    )
    assert consolidator.status()["last"] is None
    with send, receive:
        vault.put(LONG.format(30))
        vault.put(LONG.format(30))
        await vault.indexer.settle()
        async with anyio.create_task_group() as group:
            with anyio.fail_after(10):
                group.start_soon(consolidator.run)
                await receive.receive()
                vault.put(LONG.format(30))
                await vault.indexer.settle()
                consolidator.nudge()
                await receive.receive()
            group.cancel_scope.cancel()
    status = consolidator.status()
    assert status["superseded"] == 2
    assert status["last"]["superseded"] == 1


async def test_switched_off_it_never_ticks(vault, clock, rung):
    off = make(vault, clock, rung, enabled=False)
    with anyio.move_on_after(0.05):
        await off.run()
    assert off.status()["last"] is None

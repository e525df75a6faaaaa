import anyio
import numpy as np
import pytest

from memd.belief.changes import CHANGED_VALUE_RULE
from memd.config import ConsolidateConfig
from memd.consolidate.consolidator import Consolidator
from memd.consolidate.runs import NEAR_DUPLICATE_RULE
from memd.index import backfill
from memd.models import EdgeType, Kind, Space, Stance
from memd.store import judgments, links, summaries
from tests.fakes.ollama import Model

LONG = (
    "The gateway retries a failed request with exponential backoff and jitter, because the billing service"
    " answers slowly after every deployment; the timeout was raised from 10 to {} seconds"
)


@pytest.fixture
def nudges():
    return []


@pytest.fixture
def consolidator(vault, clock, nudges):
    return make(vault, clock, nudges)


def make(vault, clock, nudges, **config):
    return Consolidator(
        vault.db,
        vault.index,
        vault.space,
        ConsolidateConfig(**config),
        clock,
        lambda: nudges.append(1),
    )


def waiting(vault):
    return [s.id for s in vault.db.read_now(lambda tx: summaries.to_consolidate(tx, 999))]


async def test_a_restatement_is_superseded_with_its_cosine_rule_and_reason(
    vault, consolidator, nudges, clock
):
    old = vault.put(LONG.format(30))
    clock.advance(s=1)
    new = vault.put(LONG.format(30).upper())
    await vault.indexer.settle()
    tick = await consolidator.tick()
    assert (tick.examined, tick.pairs, tick.superseded, tick.refused) == (2, 1, 1, {})
    assert vault.get(old).superseded_by == new
    (one,) = vault.supersessions(old)
    assert (one.rule, one.guard, one.at) == (NEAR_DUPLICATE_RULE, "same", clock())
    assert one.cosine > 0.95
    assert nudges == [1]


async def test_another_number_contradicts_whatever_the_cosine(vault, consolidator, nudges):
    old = vault.put(LONG.format(30))
    new = vault.put(LONG.format(60))
    await vault.indexer.settle()
    tick = await consolidator.tick()
    assert (tick.superseded, tick.contradicts, tick.refused) == (0, 1, {"number": 1})
    (edge,) = vault.edges(old)
    assert (edge.from_id, edge.type, edge.to_id) == (str(new), EdgeType.CONTRADICTS, str(old))
    assert edge.detail["finding"] == "number: 30 seconds → 60 seconds"
    assert edge.detail["cosine"] >= 0.95
    assert vault.live() == [old, new]
    assert nudges == [1]


async def test_another_value_of_one_thing_supersedes_the_older_one_until_that_is_undone(
    vault, consolidator, clock
):
    text = "The gateway of the billing service waits {} before it asks the ledger for a page again"
    old = vault.put(text.format("30 seconds"))
    clock.advance(s=1)
    new = vault.put(text.format("60 seconds"))
    await vault.indexer.settle()
    tick = await consolidator.tick()
    assert (tick.superseded, tick.contradicts) == (1, 0)
    (one,) = vault.supersessions(old)
    assert (one.newer_id, one.rule) == (new, CHANGED_VALUE_RULE)
    assert one.guard.endswith("changed from 30 seconds to 60 seconds")
    await consolidator.undo(f"r{tick.run}", dry_run=False)
    assert vault.live() == [old, new]
    vault.db.write_now(lambda tx: tx.execute("UPDATE summaries SET consolidated = 0"))
    assert (await consolidator.tick()).superseded == 0


async def test_a_second_tick_finds_nothing_to_do(vault, consolidator):
    vault.put(LONG.format(30))
    vault.put(LONG.format(60))
    await vault.indexer.settle()
    await consolidator.tick()
    tick = await consolidator.tick()
    assert (tick.examined, tick.pairs, tick.contradicts) == (0, 0, 0)
    assert waiting(vault) == []


async def test_a_waiting_memory_does_not_block_those_after_it(vault, clock, nudges):
    for _ in range(3):
        vault.put("not indexed")
    consolidator = make(vault, clock, nudges, batch=2)
    ticks = [await consolidator.tick() for _ in range(3)]
    assert [(t.waiting, t.has_more) for t in ticks] == [(2, True), (1, False), (2, True)]


async def test_a_text_without_a_word_is_examined_once(vault, consolidator):
    vault.put("✅")
    await vault.indexer.settle()
    assert (await consolidator.tick()).examined == 1


async def test_a_pinned_memory_is_never_hidden(vault, consolidator, clock):
    old = vault.put(LONG.format(30))
    vault.db.write_now(lambda tx: summaries.pin_summary(tx, old, 1))
    clock.advance(s=1)
    copy = vault.put(LONG.format(30))
    await vault.indexer.settle()
    tick = await consolidator.tick()
    assert (tick.superseded, tick.similar) == (1, 0)
    assert vault.live() == [old]
    assert vault.get(copy).superseded_by == old


async def test_an_expired_memory_is_not_compared(vault, consolidator, clock):
    vault.put(LONG.format(30), kind=Kind.TASK, expires_at=clock() - 1)
    vault.put(LONG.format(30), kind=Kind.TASK)
    await vault.indexer.settle()
    tick = await consolidator.tick()
    assert (tick.examined, tick.pairs) == (2, 0)


async def test_a_memory_that_changes_while_it_is_examined_waits(
    vault, consolidator, clock, monkeypatch
):
    old = vault.put(LONG.format(30))
    vault.put(LONG.format(30))
    await vault.indexer.settle()
    planned = consolidator._plan_tick

    async def then_changed(now):
        plan = await planned(now)
        vault.db.write_now(lambda tx: summaries.strengthen_summary(tx, old, clock() + 1))
        return plan

    monkeypatch.setattr(consolidator, "_plan_tick", then_changed)
    tick = await consolidator.tick()
    assert (tick.examined, tick.waiting, tick.superseded) == (0, 2, 0)
    monkeypatch.undo()
    assert (await consolidator.tick()).superseded == 1


async def test_a_preview_shows_decisions_and_writes_nothing(vault, consolidator, nudges):
    for seconds in (30, 60):
        vault.put(LONG.format(seconds))
    vault.put(LONG.format(60).lower())
    await vault.indexer.settle()
    shown = {(one.newer_id, one.older_id): one for one in await consolidator.preview_tick()}
    assert (shown[3, 2].verdict, shown[3, 2].finding) == (EdgeType.SUPERSEDES, "same")
    assert (shown[3, 1].verdict, shown[3, 1].finding) == (
        EdgeType.CONTRADICTS,
        "number: 30 seconds → 60 seconds",
    )
    assert shown[3, 1].older.endswith("…")
    assert len(waiting(vault)) == 3
    assert vault.live() == [1, 2, 3]
    assert nudges == []


async def test_a_chain_of_restatements_ends_at_the_newest(vault, consolidator, clock):
    ids = []
    for _ in range(3):
        ids.append(vault.put(LONG.format(30)))
        clock.advance(s=1)
        await vault.indexer.settle()
        await consolidator.tick()
        await vault.indexer.settle()
    assert vault.live() == ids[-1:]
    assert vault.db.read_now(lambda tx: links.final_superseder(tx, ids[0])) == ids[-1]


async def test_it_ticks_at_once_and_after_each_interval(vault, clock):
    send, receive = anyio.create_memory_object_stream[int](9)
    consolidator = Consolidator(
        vault.db,
        vault.index,
        vault.space,
        ConsolidateConfig(interval_s=1),
        clock,
        lambda: send.send_nowait(1),
    )
    assert consolidator.status()["last"] is None
    with send, receive:
        vault.put(LONG.format(30))
        vault.put(LONG.format(30))
        await vault.indexer.settle()
        async with anyio.create_task_group() as group:
            with anyio.fail_after(60):
                group.start_soon(consolidator.run)
                await receive.receive()
                vault.put(LONG.format(30))
                await vault.indexer.settle()
                await receive.receive()
            group.cancel_scope.cancel()
    status = consolidator.status()
    assert status["superseded"] == 2
    assert status["last"]["superseded"] == 1


async def test_switched_off_it_never_ticks(vault, clock, nudges):
    off = make(vault, clock, nudges, enabled=False)
    with anyio.move_on_after(0.05):
        await off.run()
    assert off.status()["last"] is None


async def test_a_contradiction_lowers_the_trust_in_both_once(vault, consolidator, clock):
    old, new = vault.put(LONG.format(30)), vault.put(LONG.format(60))
    await vault.indexer.settle()
    before = vault.get(old).confidence
    await consolidator.tick()
    lowered = vault.get(old).confidence
    assert vault.get(new).confidence == lowered < before
    vault.db.write_now(
        lambda tx: summaries.renew_summary(tx, new, at=1, expires_at=None, now=clock() + 1)
    )
    await vault.indexer.settle()
    assert (await consolidator.tick()).examined >= 1
    assert vault.get(old).confidence == lowered


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Use Redis for sessions.", "for sessions, please: just use REDIS"),
        ("2026-01-02T10:11:12Z build works", "2026-02-03T11:12:13Z Build works!"),
    ],
)
async def test_a_restatement_is_found_whatever_its_cosine(vault, clock, nudges, older, newer):
    consolidator = make(vault, clock, nudges, threshold=1.0)
    old = vault.put(older)
    await vault.indexer.settle()
    await consolidator.tick()
    clock.advance(s=1)
    new = vault.put(newer)
    await vault.indexer.settle()
    (shown,) = await consolidator.preview_tick()
    assert (shown.cosine, shown.verdict) == (None, EdgeType.SUPERSEDES)
    assert (await consolidator.tick()).superseded == 1
    assert vault.get(old).superseded_by == new


async def test_memories_that_were_examined_and_lack_a_text_hash_are_examined_again(
    vault, clock, nudges
):
    old = [vault.put(f"the {word} is cached") for word in ("menu", "cart", "page")]
    await vault.indexer.settle()
    await make(vault, clock, nudges, threshold=1.0).tick()
    vault.db.write_now(lambda tx: tx.execute("DELETE FROM forms"))
    consolidator = make(vault, clock, nudges, threshold=1.0)
    await consolidator.reopen_unhashed()
    assert (await consolidator.tick()).examined == 3
    clock.advance(s=1)
    vault.put("Cached: the menu is")
    await vault.indexer.settle()
    assert (await consolidator.tick()).superseded == 1
    assert vault.live() == [*old[1:], 4]


async def test_a_judged_pair_is_left_alone(vault, consolidator):
    old, new = vault.put(LONG.format(30), at=1), vault.put(LONG.format(30), at=2)
    vault.db.write_now(
        lambda tx: judgments.put_judgment(
            tx, newer_id=new, older_id=old, relation=Stance.COMPATIBLE, reason="both", who="user", at=3,
        )
    )  # fmt: skip
    await vault.indexer.settle()
    assert await consolidator.preview_tick() == []
    tick = await consolidator.tick()
    assert (tick.superseded, tick.run) == (0, None)
    assert await consolidator.list_runs(9) == []


async def test_a_whole_run_is_undone_and_not_repeated(vault, consolidator, clock, nudges):
    old = [vault.put(LONG.format(30), at=1), vault.put("Use Redis for sessions.", at=1)]
    for text in (LONG.format(30), "for sessions, use redis"):
        vault.put(text, at=2)
    await vault.indexer.settle()
    tick = await consolidator.tick()
    assert (tick.run, tick.superseded) == (1, 2)
    rehearsed = await consolidator.undo("r1", dry_run=True)
    assert sorted(older for _, older in rehearsed.shown) == old
    assert (rehearsed.is_dry_run, vault.live()) == (True, [3, 4])
    nudges.clear()
    assert sorted((await consolidator.undo("r1", dry_run=False)).shown) == [(3, 1), (4, 2)]
    assert nudges == [1]
    assert vault.live() == [1, 2, 3, 4]
    (run,) = await consolidator.list_runs(9)
    assert (run.id, run.superseded, run.undone_at) == (1, 2, clock())
    for number in (1, 2, 3, 4):
        vault.db.write_now(
            lambda tx, n=number: summaries.renew_summary(
                tx, n, at=n, expires_at=None, now=clock() + 1
            )
        )
    await vault.indexer.settle()
    assert (await consolidator.tick()).superseded == 0
    assert vault.live() == [1, 2, 3, 4]


LEARNED = Space("ollama", "m", "1", 768, "d1")
PARAPHRASE = (
    "The {car} lost its {database} connection after the {deploy} on Monday and recovered at noon"
)
ONE = PARAPHRASE.format(car="car", database="sqlite", deploy="deploy")
OTHER = PARAPHRASE.format(car="vehicle", database="persistence", deploy="rollout")


async def learn(vault):
    """Index, and give memories the vectors of a model that knows words of one meaning."""
    await vault.indexer.settle()
    vault.index.adopt_learned_space(LEARNED)
    lacking = vault.index.missing_vectors(LEARNED.name, 99)
    texts = vault.db.read_now(lambda tx: backfill.texts_to_embed(tx, lacking))
    rows = Model().vectors(list(texts.values())).astype(np.float32)
    await backfill.save_vectors(vault.db, vault.index, LEARNED, list(texts), rows)


async def test_a_paraphrase_is_a_candidate_in_a_learned_space_that_leads(vault, consolidator):
    old, new = vault.put(ONE), vault.put(OTHER)
    await vault.indexer.settle()
    assert await consolidator.preview_tick() == []
    await learn(vault)
    tick = await consolidator.tick()
    assert (tick.examined, tick.pairs) == (2, 1)
    (edge,) = vault.edges(old)
    assert edge.from_id == str(new)
    assert edge.detail["cosine"] == pytest.approx(1, abs=5e-3)
    assert edge.detail["space"] == LEARNED.name


async def test_a_supersession_names_the_learned_space_of_its_cosine(vault, consolidator, clock):
    old = vault.put(ONE)
    clock.advance(s=1)
    new = vault.put(f"{ONE}. The night shift watched it from the control room.")
    await vault.indexer.settle()
    assert await consolidator.preview_tick() == []
    vault.index.adopt_learned_space(LEARNED)
    same = np.repeat(Model().vectors([ONE]), 2, axis=0).astype(np.float32)
    lacking = vault.index.missing_vectors(LEARNED.name, 9)
    await backfill.save_vectors(vault.db, vault.index, LEARNED, lacking, same)
    assert (await consolidator.tick()).superseded == 1
    (one,) = vault.supersessions(old)
    assert (one.newer_id, one.cosine) == (new, pytest.approx(1, abs=1e-3))
    assert one.guard.endswith(f"; alike in {LEARNED.name}")


async def test_another_number_is_refused_in_any_space(vault, consolidator):
    old = vault.put(f"{ONE}; it waited for 30 seconds")
    vault.put(f"{OTHER}; it waited for 60 seconds")
    await learn(vault)
    consolidator.config = consolidator.config.model_copy(update={"threshold": 0.9})
    tick = await consolidator.tick()
    assert (tick.pairs, tick.superseded) == (1, 0)
    assert tick.refused["number"] == 1
    (edge,) = vault.edges(old)
    assert edge.detail["space"] == LEARNED.name


async def test_a_memory_waits_one_tick_for_its_learned_vector_and_no_longer(vault, consolidator):
    vault.index._active_from = 0.1
    vault.put(ONE)
    await learn(vault)
    assert (await consolidator.tick()).examined == 1
    vault.put(OTHER)
    await vault.indexer.settle()
    assert vault.index.active == LEARNED.name
    tick = await consolidator.tick()
    assert (tick.examined, tick.waiting) == (0, 1)
    tick = await consolidator.tick()
    assert (tick.examined, tick.waiting, tick.pairs) == (1, 0, 0)
    vault.put(OTHER.replace("noon", "dusk"))
    await vault.indexer.settle()
    assert (await consolidator.tick()).waiting == 1
    await learn(vault)
    assert (await consolidator.tick()).waiting == 0
    assert consolidator._waiting_for_vector == set()

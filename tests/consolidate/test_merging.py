"""Merging near-duplicates into one observation, after ClawMem's merge guards and its status `inactive` for the sources.

Source: ClawMem, "before merging a new pattern into an existing consolidated observation, it checks for contradictions
via a deterministic heuristic plus an LLM confirmation. Contradictory merges are blocked".
"""

import json
from types import SimpleNamespace

import pytest

from memd.config import ConsolidateConfig
from memd.consolidate import runs
from memd.consolidate.consolidator import Consolidator
from memd.errors import EngineFailed

BASE = (
    "In src/gateway.py the PaymentGateway retries a failed request with exponential backoff and jitter, because the billing service"
    " answers slowly after every deployment of the cluster in the evening, as the on-call team has found out."
)
ONE = f"{BASE} The dashboard shows it."
OTHER = f"{BASE} Alerts are muted."
WRITES = "The {} service of the web shop writes into the ledger table, and the {} service of the warehouse only reads from it"


class Writer:
    """A model that says what it is told to say."""

    name = "fake/1"

    def __init__(self, reply):
        self.reply, self.asked = reply, []

    async def complete(self, _, text, __):
        self.asked.append(json.loads(text))
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


@pytest.fixture
async def pair(vault, clock):
    """Two memories that a tick found alike and left both."""

    async def put(one, other, **more):
        ids = [vault.put(one, **more), vault.put(other, **more)]
        await vault.indexer.settle()
        made = Consolidator(
            vault.db, vault.index, vault.space, ConsolidateConfig(threshold=0.6), clock, lambda: None
        )  # fmt: skip
        await made.tick()
        return SimpleNamespace(ids=ids, consolidator=made)

    return put


async def test_two_that_each_say_more_become_one_that_says_all_and_are_hidden_behind_it(
    vault, pair
):
    made = await pair(ONE, OTHER)
    report = await made.consolidator.merge(None, dry_run=False)
    (merge,) = report.merges
    merged = vault.get(merge.observation)
    assert (merged.body, merged.rule) == (f"{OTHER}\nThe dashboard shows it.", "merged")
    assert [vault.get(one).superseded_by for one in made.ids] == [merged.id] * 2
    again = await made.consolidator.merge(None, dry_run=False)
    assert again.merges == ()


async def test_undo_shows_the_sources_again_retires_the_observation_and_it_is_not_merged_again(
    vault, pair, clock
):
    made = await pair(ONE, OTHER)
    report = await made.consolidator.merge(None, dry_run=False)
    (merge,) = report.merges
    undone = vault.db.write_now(lambda tx: runs.undo_change(tx, None, clock()))
    assert undone.name == f"r{report.run}"
    assert [vault.get(one).superseded_by for one in made.ids] == [None, None]
    assert vault.get(merge.observation).is_expired(clock())
    (again,) = (await made.consolidator.merge(None, dry_run=False)).merges
    assert (again.observation, again.refused) == (0, "was merged once, and undone")


async def test_a_dry_run_says_what_would_be_merged_and_changes_nothing(vault, pair):
    made = await pair(ONE, OTHER)
    report = await made.consolidator.merge(None, dry_run=True)
    assert [set(one.ids) for one in report.merges] == [set(made.ids)]
    assert [vault.get(one).superseded_by for one in made.ids] == [None, None]


@pytest.mark.parametrize(
    ("one", "other", "guard"),
    [
        (WRITES.format("orders", "billing"), WRITES.format("billing", "orders"), "contradiction"),
        (f"{ONE} See src/pay.py and src/tax.py.", f"{OTHER} See src/pal.py and src/tar.py.", "names"),
        (f"{BASE} {'The dashboard shows it to all. ' * 3}", f"{BASE} {'Alerts are muted by then. ' * 3}", "likeness"),
    ],
)  # fmt: skip
async def test_a_guard_keeps_two_apart(pair, one, other, guard):
    made = await pair(one, other)
    report = await made.consolidator.merge(None, dry_run=False)
    assert (report.merges, report.refused) == ((), {guard: 1})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{ONE} It waits 30 seconds.", f"{OTHER} It waits 60 seconds."),
        (ONE, OTHER.replace("retries", "never retries")),
    ],
)
async def test_two_that_contradict_are_linked_by_the_tick_and_never_merged(vault, pair, one, other):
    made = await pair(one, other)
    report = await made.consolidator.merge(None, dry_run=False)
    assert (report.merges, report.refused) == ((), {})
    assert [vault.get(one).superseded_by for one in made.ids] == [None, None]


async def test_a_model_that_agrees_lets_them_merge_and_is_asked_with_both_texts(pair):
    made = await pair(ONE, OTHER)
    writer = Writer('{"same": true}')
    (merge,) = (await made.consolidator.merge(writer, dry_run=False)).merges
    assert merge.observation
    assert writer.asked == [[OTHER, ONE]]


@pytest.mark.parametrize(
    "reply", ['{"same": false}', "yes", '{"same": "true"}', "[]", EngineFailed("too slow")]
)
async def test_a_model_that_denies_fails_or_is_late_merges_nothing(vault, pair, reply):
    made = await pair(ONE, OTHER)
    (merge,) = (await made.consolidator.merge(Writer(reply), dry_run=False)).merges
    assert merge.refused
    assert [vault.get(one).superseded_by for one in made.ids] == [None, None]

"""The model here is played, for it must fail, change and hang exactly when a test says."""

import tempfile
from pathlib import Path

import anyio
import anyio.to_thread
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.config import EnginesConfig
from memd.embeddings.hashing import HashingEmbedder
from memd.errors import EngineAbsent, EngineFailed
from memd.index import backfill
from memd.index.backfill import Backfill
from memd.index.indexer import Indexer
from memd.index.memory_index import MemoryIndex
from memd.index.quantization import decode_vectors
from memd.models import Draft, Kind, Space
from memd.store import fulltext, links, projects, summaries, vectors
from tests.factories import open_new_vault

FIRST, SECOND = Space("ollama", "m", "1", 4, "d1"), Space("ollama", "m", "1", 4, "d2")
HASHING = HashingEmbedder().space.name


class Model:
    """Conforms to Learned. `then` is called with the texts of every batch, and may raise."""

    def __init__(self, space=FIRST):
        self.current = space
        self.is_ready = space is not None
        self.why_not = "" if space else "nobody answers; start it"
        self.then = lambda _: None
        self.asked = []

    async def documents(self, texts):
        self.asked.append([text.partition("\n")[0] for text in texts])
        rows = np.stack([self.vector(text) for text in texts])
        self.then(texts)
        return rows

    def vector(self, text):
        if "unspeakable" in text:
            return np.zeros(4, np.float32)
        row = np.full(4, -0.1 if self.current == SECOND else 0.1, np.float32)
        row[len(text) % 4] = 1
        return row / np.linalg.norm(row)


class Vault:
    """A database, its index and what fills it."""

    def __init__(self, db, model, *, batch=3, indexed=2, active_from=0.9, clock=lambda: 5):
        self.db, self.model = db, model
        self.index = MemoryIndex(active_from)
        config = EnginesConfig(batch=batch)
        self.backfill = Backfill(db, model, self.index, config, clock)
        self.indexer = Indexer(
            db, (HashingEmbedder(),), self.index, self.backfill.nudge, batch=indexed
        )

    def put(self, *titles, at=1, body="words"):
        def write(tx):
            project = projects.ensure_project(tx, "/a", "a", "", 1)
            owner = summaries.SummaryOwner(project, None, "agent")
            return [
                summaries.put_summary(
                    tx, f"uid {t}", Draft("turn", Kind.NOTE, t, body, at, "r", ()), owner, 1
                )[0]
                for t in titles
            ]

        return self.db.write_now(write)

    async def read_back(self):
        """Put on the index what the vault has of the learned space, as the room does after a start."""
        space, c = self.index.learned_space, self.index.columns
        lacking = self.index.missing_vectors(space.name, c.n)
        stored = self.db.read_now(lambda tx: vectors.vectors_of(tx, space.name, lacking))
        if stored:
            await backfill.fill_index(self.index, space, stored)

    async def fill(self):
        """Index, then do what the room does until it sleeps; for how long it would."""
        await self.indexer.settle()
        return await self.backfill._fill_space()

    def stored(self, space=FIRST):
        """Title → vector, as the vault has them."""

        def read(tx):
            owners = fulltext.passage_owners(tx, [p.id for p in fulltext.load_passages(tx)])
            found = vectors.vectors_of(tx, space.name, list(owners))
            return {
                summaries.get_summary(tx, owners[number]).title: decode_vectors(
                    [blob], space.dimensions
                )[0].tolist()
                for number, blob in found.items()
            }

        return self.db.read_now(read)


@pytest.fixture
def vault(db):
    return Vault(db, Model())


def held(index):
    """What the index has of each space, by passage; None where a passage was not embedded."""
    c = index.columns
    return {
        name: {
            int(c.passage_id[row]): matrix.vectors(np.array([row])).tobytes()
            if matrix.known[row]
            else None
            for row in np.flatnonzero(c.live)
        }
        for name, matrix in index.matrices.items()
    }


async def agree(vault):
    """The index is what a start would make of the vault."""
    again = Vault(vault.db, vault.model)
    if vault.index.learned_space is not None:
        again.index.adopt_learned_space(vault.index.learned_space)
    await again.indexer.load()
    if vault.index.learned_space is not None:
        await again.read_back()
    assert held(again.index) == held(vault.index)


async def test_what_was_there_before_the_model_is_embedded_newest_first(vault):
    for at, title in enumerate("abcdefg"):
        vault.put(title, at=at)
    await vault.fill()
    assert vault.model.asked == [["g", "f", "e"], ["d", "c", "b"], ["a"]]
    assert len(vault.stored()) == 7
    assert (vault.index.learned, vault.index.active) == (FIRST.name, FIRST.name)
    assert vault.backfill.status()["missing"] == 0
    await agree(vault)


async def test_a_new_memory_and_a_new_text_are_embedded_and_nothing_else_is(vault):
    vault.put("a", "b")
    await vault.fill()
    vault.put("c")
    vault.put("a", body="other words")
    vault.model.asked.clear()
    await vault.fill()
    assert sorted(vault.model.asked[0]) == ["a", "c"]
    assert len(vault.model.asked) == 1
    assert vault.index.active == FIRST.name
    await agree(vault)


async def test_a_text_that_the_model_cannot_take_is_covered_and_not_asked_for_again(vault):
    vault.put("a", "unspeakable")
    await vault.fill()
    assert vault.stored()["unspeakable"] == [0, 0, 0, 0]
    assert vault.backfill.status()["missing"] == 0
    again = Vault(vault.db, Model())
    await again.fill()
    assert again.model.asked == []
    assert again.backfill.status()["done"] == 2


async def test_a_model_that_changes_between_the_question_and_the_answer_mixes_nothing(vault):
    vault.put("a", "b")

    def change(_):
        vault.model.current, vault.model.then = SECOND, lambda _: None

    vault.model.then = change
    await vault.fill()
    assert vault.stored(FIRST) == {}
    assert set(vault.stored(SECOND)) == {"a", "b"}
    assert all(min(vector) < 0 for vector in vault.stored(SECOND).values())
    assert set(vault.index.matrices) == {HASHING, SECOND.name}
    await agree(vault)


async def test_going_back_to_a_model_finds_its_vectors(vault):
    vault.put("a", "b", "c", "d")
    await vault.fill()
    vault.model.current = SECOND
    await vault.fill()
    vault.put("e")
    vault.model.current = FIRST
    vault.model.asked.clear()
    await vault.fill()
    assert vault.model.asked == [["e"]]
    assert vault.index.coverage(FIRST.name) == 1
    await agree(vault)


async def test_without_a_model_it_waits_and_says_why(db):
    vault = Vault(db, Model(None))
    vault.put("a")
    assert await vault.fill() > 10
    status = vault.backfill.status()
    assert (status["space"], status["why"]) == (None, "nobody answers; start it")
    assert (status["done"], status["missing"]) == (0, 1)
    assert vault.index.active == HASHING


async def test_an_absent_model_is_not_asked_and_retries_back_off(vault):
    vault.put("a")
    vault.model.is_ready, vault.model.why_not = False, "gone; start it"
    waits = [await vault.fill() for _ in range(9)]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (1, 30)
    assert vault.model.asked == []
    assert vault.backfill.status()["why"] == "gone; start it"
    vault.model.is_ready = True
    await vault.fill()
    assert vault.backfill.status()["why"] == ""
    assert len(vault.stored()) == 1


async def test_one_text_that_makes_the_model_fail_does_not_hold_up_the_others(db):
    vault = Vault(db, Model(), batch=8)
    vault.put(*"abcdefg", "poison")

    def fail(texts):
        if any("poison" in text for text in texts):
            raise EngineFailed("the runner has crashed")

    vault.model.then = fail
    for _ in range(9):
        await vault.fill()
    stored = vault.stored()
    assert stored.pop("poison") == [0, 0, 0, 0]
    assert set(stored) == set("abcdefg")
    assert all(any(vector) for vector in stored.values())


async def test_an_outage_condemns_no_text(vault):
    vault.put("a")

    def fail(_):
        raise EngineAbsent("nobody listens")

    vault.model.then = fail
    for _ in range(9):
        await vault.fill()
    assert vault.stored() == {}


async def test_it_sleeps_until_the_indexer_rings(vault):
    asked = anyio.Event()
    vault.model.then = lambda _: asked.set()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(vault.backfill.run)
        tasks.start_soon(vault.indexer.run)
        await vault.indexer.loaded.wait()
        vault.put("a", "b", "c", "d")
        vault.indexer.nudge()
        with anyio.fail_after(60):
            await asked.wait()
        tasks.cancel_scope.cancel()


async def test_a_memory_that_is_deleted_while_it_is_embedded_leaves_nothing(vault):
    gone, _ = vault.put("a", "b")

    def erase(_):
        vault.model.then = lambda _: None

        def write(tx):
            fulltext.remove_passages(tx, gone)
            summaries.delete_summary(tx, gone)

        vault.db.write_now(write)

    vault.model.then = erase
    await vault.fill()
    await vault.fill()
    assert set(vault.stored()) == {"b"}
    assert vault.backfill.status()["missing"] == 0
    await agree(vault)


async def test_a_daemon_killed_between_commit_and_index_embeds_nothing_twice(vault):
    vault.put("a", "b")
    await vault.indexer.settle()

    class PowerCut(BaseException):
        pass

    def cut(*_):
        raise PowerCut

    vault.index.fill = cut
    with pytest.raises(PowerCut):
        await vault.backfill._fill_space()
    again = Vault(vault.db, Model())
    await again.fill()
    assert again.model.asked == []
    assert again.backfill.status()["done"] == 2


async def test_status_has_rate_and_time_left(db):
    class Clock:
        now = 1_000

        def __call__(self):
            return self.now

    clock = Clock()
    vault = Vault(db, Model(), clock=clock)
    vault.put(*"abcdefgh")
    told = []

    def work(_):
        told.append(vault.backfill.status())
        clock.now += 500

    vault.model.then = work
    await vault.fill()
    assert [one["done"] for one in told] == [0, 3, 6]
    assert (told[0]["rate_per_s"], told[0]["eta_s"]) == (None, None)
    assert (told[1]["rate_per_s"], told[1]["eta_s"]) == (6.0, 1)
    done = vault.backfill.status()
    assert (done["done"], done["missing"], done["rate_per_s"], done["eta_s"]) == (8, 0, None, None)
    assert (done["space"], done["active"]) == (FIRST.name, True)


async def test_reembedding_drops_the_vectors_of_this_space_and_makes_them_again(vault):
    vault.put("a", "b")
    vault.model.current = SECOND
    await vault.fill()
    vault.model.current = FIRST
    await vault.fill()
    vault.model.asked.clear()
    assert await vault.backfill.reembed() == {"space": FIRST.name, "missing": 2}
    assert (vault.stored(FIRST), vault.index.active) == ({}, HASHING)
    assert set(vault.stored(SECOND)) == {"a", "b"}
    await vault.fill()
    assert sorted(vault.model.asked[-1]) == ["a", "b"]
    assert vault.index.active == FIRST.name
    await agree(vault)


async def test_nothing_is_dropped_for_a_model_that_does_not_answer(vault):
    vault.put("a")
    await vault.fill()

    def fail(_):
        raise EngineFailed("gone; start it")

    vault.model.then = fail
    with pytest.raises(EngineFailed, match="gone; start it"):
        await vault.backfill.reembed()
    assert set(vault.stored()) == {"a"}
    assert vault.index.active == FIRST.name


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 4), st.sampled_from(["words", "unspeakable", ""])),
        st.tuples(st.just("forget"), st.integers(0, 4)),
        st.tuples(st.just("supersede"), st.integers(0, 4), st.integers(0, 4)),
        st.tuples(st.sampled_from(["index", "fill", "change model", "crowd", "reindex", "start"])),
    ),
    max_size=10,
)


class Story:
    """A vault to which the steps of a property happen."""

    def __init__(self, db):
        self.vault = self.start(db, Model())
        self.ids = {}

    def start(self, db, model):
        return Vault(db, model, batch=40, indexed=40)

    async def happen(self, step, *given):
        vault = self.vault
        if step == "put":
            (self.ids[given[0]],) = vault.put(f"t{given[0]}", body=given[1])
        elif step == "index":
            await vault.indexer.settle()
        elif step == "fill":
            await vault.fill()
        elif step == "change model":
            vault.model.current = SECOND if vault.model.current == FIRST else FIRST
        elif step == "crowd":
            await self.crowd()
        elif step == "reindex":
            await vault.indexer.reindex()
        elif step == "start":
            self.vault = self.start(vault.db, vault.model)
        elif given[0] in self.ids:
            vault.db.write_now(lambda tx: self.change(tx, step, *given))

    def change(self, tx, step, uid, *given):
        if step == "forget":
            summaries.delete_summary(tx, self.ids.pop(uid))
        elif (older := self.ids.get(given[0])) is not None:
            links.supersede(tx, newer_id=self.ids[uid], older_id=older, rule="r", cosine=None,
                            guard="", at=1)  # fmt: skip

    async def crowd(self):
        """So many come and go that the rows close up."""
        crowd = self.vault.put(*(f"crowd {n}" for n in range(70)))
        await self.vault.fill()
        before = self.vault.index.columns.n
        self.vault.db.write_now(
            lambda tx: [summaries.delete_summary(tx, number) for number in crowd]
        )
        await self.vault.indexer.settle()
        assert self.vault.index.columns.n < before


async def tell(path, steps):
    db = await anyio.to_thread.run_sync(open_new_vault, path, 1)
    try:
        story = Story(db)
        for step in steps:
            await story.happen(*step)
        await story.vault.indexer.settle()
        await agree(story.vault)
        await story.vault.fill()
        await agree(story.vault)
        assert story.vault.backfill.status()["missing"] == 0
        count = db.read_now(fulltext.count_passages)
        learned = story.vault.model.current.name
        weights = {w.name: w.vectors for w in db.read_now(vectors.measure_spaces)}
        assert weights.get(learned, 0) == count
        assert HASHING not in weights
    finally:
        db.close()


@settings(max_examples=20)
@given(STEPS)
def test_in_any_order_of_vectors_the_index_equals_what_a_start_would_load(steps):
    with tempfile.TemporaryDirectory() as home:
        anyio.run(tell, str(Path(home) / "v.db"), steps)

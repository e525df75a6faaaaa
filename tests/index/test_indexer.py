import tempfile
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.embeddings.hashing import HashingEmbedder
from memd.errors import EngineFailed
from memd.index import snapshot
from memd.index.indexer import Indexer, has_same_passages
from memd.index.memory_index import MemoryIndex
from memd.models import Draft, Kind, SessionRef, Space
from memd.store import fulltext, links, projects, summaries
from memd.store.fulltext import unpack_postings
from memd.text import TERMS_VERSION
from tests.factories import open_new_vault

HASHING = HashingEmbedder().space.name
LONG = "\n\n".join(f"Paragraph {n} says something about ledgers and totals." for n in range(90))


class Scripted:
    """A learned embedder that does what a test says when it is asked."""

    space = Space("scripted", "s", "1", 4)

    def __init__(self, then=lambda: None):
        self.then = then
        self.asked = []

    async def documents(self, texts):
        self.asked += texts
        self.then()
        return np.full((len(texts), 4), 0.5, np.float32)

    async def query(self, text):
        return np.full(4, 0.5 if text else 0.0, np.float32)


def make(db, *more, index=None, batch=200, on_indexed=None):
    embedders = (HashingEmbedder(), *more)
    return Indexer(db, embedders, index or MemoryIndex(), on_indexed, batch=batch)


def put(db, uid, body="Sessions are kept in Redis", **more):
    def write(tx):
        project = projects.ensure_project(tx, "/a", "a", "", 1)
        session = projects.ensure_session(tx, SessionRef("c", "one"), project, 1)
        draft = Draft("turn", Kind.NOTE, f"Title {uid}", body, 1, "r", (), **more)
        return summaries.put_summary(
            tx, uid, draft, summaries.SummaryOwner(project, session, "agent"), 1
        )[0]

    return db.write_now(write)


def passage_ids(db, number):
    return db.read_now(
        lambda tx: [p.id for p in fulltext.load_passages(tx) if p.summary_id == number]
    )


def words_of(index):
    """(summary, seq) → {term: (in title, in body)} of the live rows."""
    c = index.columns
    found = {(int(c.summary_id[row]), int(c.seq[row])): {} for row in np.flatnonzero(c.live)}
    for term in {index.vocabulary.term(number) for number in index.postings.terms()} - {None}:
        for row, *counts in zip(*index.postings.term(index.vocabulary.number(term)), strict=True):
            found[int(c.summary_id[row]), int(c.seq[row])][term] = tuple(map(int, counts))
    return found


def contents(index):
    """All that an index holds, without the numbers that a rebuild may give anew."""
    c = index.columns
    names = {row: (int(c.summary_id[row]), int(c.seq[row])) for row in np.flatnonzero(c.live)}
    names[-1] = None
    plain = ("project_id", "session_id", "kind", "tier", "at", "expires_at", "retired", "pinned", "length",
             "quality", "confidence", "revisions", "duplicates", "title_length", "body_length")  # fmt: skip
    previous, following = c.neighbours(np.arange(c.n))
    return {
        names[row]: (
            [getattr(c, name)[row].item() for name in plain],
            c.source_names[c.source[row]],
            c.tag_sets[c.tags[row]],
            {name: m.vectors(np.array([row])).tobytes() for name, m in index.matrices.items()},
            (names[previous[row]], names[following[row]]),
        )
        for row in np.flatnonzero(c.live)
    }


def tables(db):
    """All that the derived tables hold, without the numbers that a rebuild may give anew."""

    def read(tx):
        terms = dict(tx.execute("SELECT id, term FROM terms"))
        rows = tx.execute("SELECT id, summary_id, seq, start, stop, length, postings FROM passages")
        found, names = {}, {}
        for number, summary_id, seq, *span, blob in rows:
            names[number] = (summary_id, seq)
            decoded = unpack_postings([blob])[0].tolist()
            found[summary_id, seq] = (span, {terms[t]: counts for t, *counts in decoded})
        tx.execute("CREATE VIRTUAL TABLE temp.spots USING fts5vocab (main, passages_fts, instance)")
        spots = sorted(
            (names[doc], col, at, term) for term, doc, col, at in tx.execute("SELECT * FROM spots")
        )
        tx.execute("DROP TABLE temp.spots")
        return (
            found,
            sorted(tx.execute("SELECT term, passages FROM terms")),
            spots,
            list(tx.execute("SELECT * FROM changes")),
        )

    return db.write_now(read)


async def agree(db, index, *more):
    again = MemoryIndex()
    indexer = make(db, *more, index=again)
    await indexer.load()
    await indexer._fill_spaces()
    assert contents(again) == contents(index)
    assert words_of(again) == words_of(index)


async def test_what_is_pending_is_searchable_when_settle_returns(db):
    index = MemoryIndex()
    number = put(db, "a", files=("/x/login.py",), tags=("auth",))
    indexer = make(db, index=index)
    await indexer.settle()
    row = index.columns.rows_of(number)
    assert index.postings.rows_of(index.vocabulary.number("redi")).tolist() == row.tolist()
    text = "Title a\nSessions are kept in Redis"
    rows, cosines = index.matrices[HASHING].top(HashingEmbedder().embed([text])[0], 1)
    assert (rows.tolist(), cosines[0]) == (row.tolist(), pytest.approx(1, abs=1e-3))
    assert db.read_now(fulltext.count_changes) == 0
    assert (
        db.read_now(lambda tx: fulltext.match_passages(tx, '"login"', 5))[0][0]
        == passage_ids(db, number)[0]
    )
    assert indexer.status() == {
        "pending": 0, "passages": 1, "space": HASHING, "loaded": True, "failed": {},
        "copy": {"mapped": False, "trouble": ""}, "trouble": None,
    }  # fmt: skip


async def test_a_pin_keeps_the_passages_and_is_known_at_once(db):
    index, embedder = MemoryIndex(), Scripted()
    indexer = make(db, embedder, index=index)
    number = put(db, "a")
    await indexer.settle()
    before = passage_ids(db, number)
    db.write_now(lambda tx: summaries.pin_summary(tx, number, 5))
    await indexer.settle()
    assert passage_ids(db, number) == before
    assert len(embedder.asked) == 1
    assert index.columns.pinned.tolist() == [True]


async def test_a_revision_replaces_and_a_deletion_removes_every_passage(db):
    index = MemoryIndex()
    indexer = make(db, index=index)
    number = put(db, "a", LONG)
    await indexer.settle()
    assert len(passage_ids(db, number)) == index.columns.live_count == 2
    put(db, "a", "Short now")
    await indexer.settle()
    assert len(passage_ids(db, number)) == index.columns.live_count == 1
    db.write_now(lambda tx: summaries.delete_summary(tx, number))
    await indexer.settle()
    assert passage_ids(db, number) == []
    assert index.columns.live_count == 0
    assert db.read_now(fulltext.terms_in_order) == (b"", b"")


async def test_a_memory_erased_with_its_passages_leaves_the_index(db):
    index = MemoryIndex()
    indexer = make(db, index=index)
    number, other = put(db, "one"), put(db, "two")
    await indexer.settle()

    def erase(tx):
        fulltext.remove_passages(tx, number)
        summaries.delete_summary(tx, number)

    db.write_now(erase)
    await indexer.settle()
    assert index.columns.summary_id[index.columns.live].tolist() == [other]
    assert indexer.status()["passages"] == 1


async def test_a_summary_that_is_deleted_while_it_is_embedded_leaves_nothing(db):
    index = MemoryIndex()
    number = put(db, "a")
    embedder = Scripted(lambda: db.write_now(lambda tx: summaries.delete_summary(tx, number)))
    await make(db, embedder, index=index).settle()
    await make(db, index=index).settle()
    assert passage_ids(db, number) == []
    assert index.columns.live_count == 0


async def test_a_model_that_fails_holds_nothing_up_and_is_named(db):
    index = MemoryIndex()

    def fail():
        raise EngineFailed("no answer in 2 s")

    embedder = Scripted(fail)
    indexer = make(db, embedder, index=index)
    put(db, "a")
    await indexer.settle()
    assert indexer.status()["failed"] == {embedder.space.name: "no answer in 2 s"}
    assert index.matrices[HASHING].vectors(np.array([0])).any()
    assert not index.matrices[embedder.space.name].vectors(np.array([0])).any()
    embedder.then = lambda: None
    put(db, "b")
    await indexer.settle()
    assert indexer.status()["failed"] == {}
    assert index.matrices[embedder.space.name].vectors(np.array([1])).any()
    await indexer._fill_spaces()
    await agree(db, index, embedder)


async def test_a_cancelled_caller_leaves_the_index_current(db):
    index, scope = MemoryIndex(), anyio.CancelScope()
    indexer = make(db, Scripted(scope.cancel), index=index)
    put(db, "a")
    with scope:
        await indexer.settle()
    assert index.columns.live_count == len(passage_ids(db, 1)) == 1
    await indexer.settle()
    await agree(db, index, Scripted())


async def test_an_index_that_missed_a_batch_is_loaded_again(db):
    class Clumsy(MemoryIndex):
        dropped = False

        def apply(self, batch):
            if not self.dropped:
                self.dropped = True
                raise MemoryError
            super().apply(batch)

    index = Clumsy()
    indexer = make(db, index=index)
    put(db, "a")
    with pytest.raises(MemoryError):
        await indexer.settle()
    assert index.columns.live_count == 0
    await indexer.settle()
    await agree(db, index)
    assert index.columns.live_count == 1


async def test_small_batches_index_everything_and_it_tells_after_loading_and_after_each(db):
    told, index = [], MemoryIndex()
    for n in range(25):
        put(db, str(n))
    await make(db, index=index, batch=2, on_indexed=lambda: told.append(1)).settle()
    assert (index.columns.live_count, len(told)) == (25, 14)


async def test_reindexing_mends_derived_tables_and_keeps_the_truth(db):
    index = MemoryIndex()
    indexer = make(db, index=index)
    put(db, "a", LONG)
    put(db, "b")
    await indexer.settle()
    good = tables(db)
    db.write_now(lambda tx: tx.execute("DELETE FROM passages WHERE seq = 0").fetchall())
    db.write_now(lambda tx: tx.execute("DELETE FROM terms").fetchall())
    await indexer.reindex()
    assert tables(db) == good
    await agree(db, index)


async def test_a_reindex_that_is_given_up_leaves_the_rest_for_the_next_time(db):
    index, scope = MemoryIndex(), anyio.CancelScope()
    for n in range(5):
        put(db, str(n))
    embedder = Scripted(scope.cancel)
    indexer = make(db, embedder, index=index, batch=2)
    with scope:
        await indexer.reindex()
    assert index.columns.live_count == 2
    await indexer.settle()
    assert index.columns.live_count == 5
    await agree(db, index, embedder)


BODIES = st.sampled_from(
    [
        "",
        "Redis it is",
        "it is Redis",
        "SQLite locks",
        LONG,
        LONG.replace("totals", "sums"),
        "数据库",
        "nul\x00 x",
    ]
)
UIDS = st.integers(0, 3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), UIDS, BODIES, st.sampled_from([(), ("a",), ("a", "b")])),
        st.tuples(st.just("delete"), UIDS),
        st.tuples(st.just("supersede"), UIDS, UIDS),
        st.tuples(st.just("undo"), st.integers(1, 3)),
        st.tuples(st.just("pin"), UIDS, st.sampled_from([None, 5])),
        st.tuples(st.sampled_from(["settle", "restart", "rest", "rest"])),
    ),
    max_size=14,
)


class Story:
    """A vault to which the steps of a property happen."""

    def __init__(self, db):
        self.db = db
        self.ids = {}
        self.index = MemoryIndex()
        self.indexer = make(db, index=self.index, batch=2)

    async def happen(self, step, *given):
        if step == "settle":
            await self.indexer.settle()
        elif step == "rest":
            await self.indexer._save_and_trim()
        elif step == "restart":
            self.index = MemoryIndex()
            self.indexer = make(self.db, index=self.index, batch=2)
        elif step == "put":
            self.ids[given[0]] = put(self.db, f"u{given[0]}", given[1], tags=given[2])
        elif step == "undo":
            self.db.write_now(lambda tx: links.undo_supersession(tx, given[0], 9))
        elif given[0] in self.ids:
            self.db.write_now(lambda tx: self._change(tx, step, *given))

    def _change(self, tx, step, uid, *given):
        number = self.ids[uid]
        if step == "delete":
            summaries.delete_summary(tx, self.ids.pop(uid))
        elif step == "pin":
            summaries.pin_summary(tx, number, *given)
        elif (older := self.ids.get(given[0])) is not None:
            links.supersede(
                tx, newer_id=number, older_id=older, rule="r", cosine=None, guard="", at=1
            )


async def tell(path, steps):
    db = await anyio.to_thread.run_sync(open_new_vault, path, 1)
    try:
        story = Story(db)
        for step in steps:
            await story.happen(*step)
        await story.indexer.settle()
        await agree(db, story.index)
        db.write_now(fulltext.invalidate_snapshot)
        await agree(db, story.index)
        before = tables(db)
        await story.indexer.reindex()
        assert tables(db) == before
        await agree(db, story.index)
    finally:
        db.close()


@settings(max_examples=25)
@given(STEPS)
def test_the_updated_index_equals_a_freshly_loaded_one_whatever_happens(steps):
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        for name in ("ROWS_MIN", "_CHANGED_MIN", "_CHANGED_SHARE"):
            patch.setattr(snapshot, name, 0)
        anyio.run(tell, str(Path(home) / "v.db"), steps)


async def test_when_work_has_been_quiet_for_a_while_its_memory_is_given_back(db, monkeypatch):
    given_back = []
    monkeypatch.setattr("memd.index.indexer._IDLE_S", 0.001)
    monkeypatch.setattr("memd.index.indexer.trim_heap", lambda: given_back.append(1))
    rested = anyio.Event()
    monkeypatch.setattr("memd.index.indexer.clear_caches", rested.set)
    indexer = make(db)
    await indexer.settle()
    given_back.clear()
    put(db, "new")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(indexer.run)
        with anyio.fail_after(60):
            await rested.wait()
            while not given_back:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()


async def test_what_lacks_a_vector_gets_it_behind_the_first_answers_and_new_memories_go_between(db):
    index = MemoryIndex()
    for n in range(300):
        put(db, str(n))
    await make(db).settle()
    indexer = make(db, index=index, batch=20)
    await indexer.load()
    assert (index.loaded, index.coverage(HASHING)) == (True, 0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(indexer.run)
        new = put(db, "new")
        indexer.nudge()
        with anyio.fail_after(60):
            while index.coverage(HASHING) < 1 or not len(index.columns.rows_of(new)):
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    await agree(db, index)


async def test_after_an_upgrade_only_what_has_other_terms_is_indexed_again(db):
    same, other = put(db, "u1"), put(db, "u2", "我们使用Redis处理会话")
    indexer = make(db)
    await indexer.load()
    await indexer.settle()

    def pretend_it_was_an_older_version(tx):
        tx.execute("UPDATE passages SET length = 99 WHERE summary_id = ?", (other,))
        tx.execute("DELETE FROM meta WHERE key = 'tokenizer_version'")
        return dict(tx.execute("SELECT summary_id, id FROM passages"))

    before = db.write_now(pretend_it_was_an_older_version)
    indexer = make(db)
    await indexer.load()
    await indexer.upgrade_terms()
    await indexer.settle()
    after = db.read_now(lambda tx: dict(tx.execute("SELECT summary_id, id FROM passages")))
    assert after[same] == before[same]
    assert after[other] != before[other]
    await indexer.upgrade_terms()
    assert db.read_now(fulltext.count_changes) == 0


async def test_an_upgrade_that_was_cut_off_goes_on_where_it_was(db, monkeypatch):
    numbers = [put(db, f"memory {number}") for number in range(3)]
    await make(db).settle()
    db.write_now(lambda tx: tx.execute("DELETE FROM meta WHERE key = 'tokenizer_version'"))
    compared = []
    compare = has_same_passages

    def note(tx, one):
        compared.append(one.id)
        return compare(tx, one)

    monkeypatch.setattr("memd.index.indexer.has_same_passages", note)
    monkeypatch.setattr("memd.index.indexer._UPGRADE_PAUSE_S", 3_600)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(make(db, batch=1).upgrade_terms)
        with anyio.fail_after(60):
            while db.read_now(lambda tx: fulltext.last_compared(tx, TERMS_VERSION)) == 0:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    monkeypatch.setattr("memd.index.indexer._UPGRADE_PAUSE_S", 0)
    await make(db, batch=1).upgrade_terms()
    assert compared == numbers
    assert db.read_now(fulltext.tokenizer_version) == TERMS_VERSION
    assert db.read_now(lambda tx: fulltext.last_compared(tx, TERMS_VERSION + 1)) == 0


async def test_what_is_new_can_be_found_while_an_upgrade_looks_through_the_old(db, monkeypatch):
    put(db, "old")
    await make(db).settle()
    db.write_now(lambda tx: tx.execute("DELETE FROM meta WHERE key = 'tokenizer_version'"))
    monkeypatch.setattr("memd.index.indexer._UPGRADE_PAUSE_S", 3_600)
    index, compared = MemoryIndex(), []
    compare = fulltext.indexed_summaries
    monkeypatch.setattr(
        fulltext, "indexed_summaries", lambda *given: compared.append(given) or compare(*given)
    )
    indexer = make(db, index=index)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(indexer.run)
        with anyio.fail_after(20):
            while not compared:
                await anyio.lowlevel.checkpoint()
            new = put(db, "new")
            indexer.nudge()
            while not len(index.columns.rows_of(new)):
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()

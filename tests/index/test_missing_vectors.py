import anyio
import numpy as np
import pytest

from memd.embeddings.hashing import HashingEmbedder
from memd.index import backfill
from memd.index.indexer import Indexer
from memd.index.memory_index import MemoryIndex
from memd.models import Draft, Kind, Space
from memd.store import fulltext, projects, summaries, vectors

SPACE = Space("ollama", "m", "1", 4)


def put(db, uid, body="Sessions are kept in Redis"):
    def write(tx):
        project = projects.ensure_project(tx, "/a", "a", "", 1)
        draft = Draft("turn", Kind.NOTE, f"Title {uid}", body, 1, "r", ())
        return summaries.put_summary(
            tx, uid, draft, summaries.SummaryOwner(project, None, "agent"), 1
        )[0]

    return db.write_now(write)


async def shelved(db):
    index = MemoryIndex()
    index.adopt_learned_space(SPACE)
    await Indexer(db, (HashingEmbedder(),), index).settle()
    return index


def ids(db):
    return db.read_now(lambda tx: [p.id for p in fulltext.load_passages(tx)])


def rows(count):
    return np.full((count, 4), 0.5, np.float32)


async def test_a_caller_may_be_cancelled_but_not_between_commit_and_index(db):
    put(db, "a")
    index = await shelved(db)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await backfill.save_vectors(db, index, SPACE, ids(db), rows(1))
    assert index.counts(SPACE.name) == (1, 1)


async def test_a_float16_vector_is_read_and_stored_again_in_fewer_bytes(db):
    put(db, "a")
    index = await shelved(db)
    (one,) = ids(db)
    former = {one: np.array([0.5, -0.5, 0.5, 0.5], "<f2").tobytes()}
    space = db.write_now(lambda tx: vectors.ensure_space(tx, SPACE))
    db.write_now(lambda tx: vectors.put_vectors(tx, space, former.items()))
    gap = db.read_now(lambda tx: backfill.find_missing(tx, SPACE, [one], 9))
    await backfill.fill_index(index, SPACE, gap.stored)
    before = index.matrices[SPACE.name].vectors(np.array([0]))
    assert before.tolist() == [[0.5, -0.5, 0.5, 0.5]]
    await backfill.recode_old_vectors(db, SPACE, gap.stored)
    anew = db.read_now(lambda tx: vectors.vectors_of(tx, SPACE.name, [one]))
    assert anew != former
    await backfill.fill_index(index, SPACE, anew)
    after = index.matrices[SPACE.name].vectors(np.array([0]))
    assert after.tolist() == [pytest.approx(before[0].tolist(), abs=0.01)]
    await backfill.recode_old_vectors(db, SPACE, anew)
    assert db.read_now(lambda tx: vectors.vectors_of(tx, SPACE.name, [one])) == anew

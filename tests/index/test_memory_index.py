import threading
from dataclasses import replace

import numpy as np
import pytest

from memd.index import memory_index
from memd.index.memory_index import IndexUpdate, MemoryIndex, VaultContents
from memd.index.postings import POSTING
from memd.index.snapshot import read_snapshot, write_snapshot
from memd.models import Space
from memd.store import IndexRow, StoredPassage
from tests.index.test_term_dictionary import lines

SPACE = Space("test", "two", "1", 2)


def stored(number, summary_id, seq=0, terms=(1,)):
    blob = np.array([(term, 0, 1) for term in terms], POSTING).tobytes()
    return StoredPassage(number, summary_id, seq, len(terms), blob)


def facts(summary_id, at=0, session_id=0):
    return IndexRow(
        summary_id, 1, session_id, "note", "agent", "agent", at, None, False, False, 0.5, 0.5, 1, 1, 1, 1, ()
    )  # fmt: skip


def half(*values):
    return np.array(values, "<f2")


def filled():
    """Four passages of three summaries: words a to d, the second without a vector."""
    index = MemoryIndex()
    index.load(
        VaultContents(
            [stored(1, 10), stored(3, 10, 1, (1, 2)), stored(4, 11, 0, (3,)), stored(9, 12, 0, (4,))],
            lines([("a", 1), ("b", 2), ("c", 3), ("d", 4)]),
            [facts(10, 5, 1), facts(11, 5, 1), facts(12, 2, 1)],
            [SPACE],
        )
    )  # fmt: skip
    index.fill(SPACE.name, [1, 4, 8, 9], half((1, 0), (0, 1), (0, 0), (1, 0)))
    return index


def beside(index):
    return index.columns.neighbours(np.arange(index.columns.n))


def test_try_lock_succeeds_for_one_thread_and_only_after_loading():
    with MemoryIndex().try_lock() as is_mine:
        assert not is_mine
    index = filled()
    with index.try_lock() as is_mine:
        assert is_mine
        others = []

        def try_it():
            with index.try_lock() as is_theirs:
                others.append(is_theirs)

        other = threading.Thread(target=try_it)
        other.start()
        other.join()
        assert others == [False]
    other = threading.Thread(target=try_it)
    other.start()
    other.join()
    assert others == [False, True]


def test_loading_puts_every_array_in_step():
    index = filled()
    assert index.loaded
    assert index.version == 1
    assert index.columns.n == index.postings.n == index.matrices[SPACE.name].n == 4
    assert index.matrices[SPACE.name].cosines(np.array([1, 0], np.float32)).tolist() == [1, 0, 0, 1]
    assert index.columns.rows_with([9, 2]).tolist() == [3]
    assert index.vocabulary.expand("a", index.postings.df) == [1]


def test_a_batch_removes_adds_and_updates_as_one():
    index = filled()
    index.apply(
        IndexUpdate(
            removed=[4, 77],
            added=[stored(12, 11, 0, (3, 5))],
            numbers={"new": 5, "c": 3},
            vectors={SPACE: half(0, 1).reshape(1, 2)},
            facts=[facts(11, 8, 1), facts(12, 3, 1)],
            digests={11: 2**64 - 1},
        )
    )
    assert index.version == 2
    assert index.columns.live.tolist() == [True, True, False, True, True]
    assert index.columns.at[[3, 4]].tolist() == [3, 8]
    assert int(index.columns.digest[4]) == 2**64 - 1
    assert index.postings.rows_of(3).tolist() == [4]
    assert index.vocabulary.number("new") == 5
    assert index.matrices[SPACE.name].top(np.array([0, 1], np.float32), 1)[0].tolist() == [4]


def test_a_batch_without_vectors_leaves_their_rows_empty():
    index = filled()
    index.apply(IndexUpdate(added=[stored(12, 13)], numbers={"a": 1}, facts=[facts(13)]))
    assert index.matrices[SPACE.name].n == 5
    assert 4 not in index.matrices[SPACE.name].top(np.array([1, 0], np.float32), 9)[0]


def test_gaps_are_closed_in_every_array_and_unused_words_forgotten():
    index = MemoryIndex()
    numbers = sorted((f"word{n}", n) for n in range(1, 401))
    passages = [stored(n, n, 0, (n,)) for n in range(1, 401)]
    index.load(VaultContents(passages, lines(numbers), [facts(n) for n in range(1, 401)], [SPACE]))
    index.apply(IndexUpdate(removed=list(range(1, 300))))
    assert index.columns.n == index.postings.n == index.matrices[SPACE.name].n == 101
    assert index.columns.rows_with([300]).tolist() == [0]
    assert index.postings.rows_of(300).tolist() == [0]
    assert index.vocabulary.number("word1") is None
    assert len(index.vocabulary) == 101


def test_neighbours_follow_changes_and_cross_no_session():
    index = filled()
    assert beside(index)[0].tolist() == [3, 0, 1, -1]
    index.apply(IndexUpdate(removed=[3], facts=[facts(12, 2, 2), facts(10, 5, 1), facts(11, 5, 1)]))
    previous, following = beside(index)
    assert previous.tolist() == [-1, -1, 0, -1]
    assert following.tolist() == [2, -1, -1, -1]


LEARNED = Space("ollama", "m", "1", 3, "d1")


def fill(index, *passage_ids, value=1):
    rows = np.zeros((len(passage_ids), 3), np.float16)
    rows[:, 0] = value
    index.fill(LEARNED.name, passage_ids, rows)


def test_a_text_that_has_no_vector_is_covered_and_never_found():
    index = filled()
    index.adopt_learned_space(LEARNED)
    fill(index, 1, value=0)
    assert index.counts(LEARNED.name) == (1, 4)
    assert len(index.matrices[LEARNED.name].top(np.ones(3, np.float32), 5)[0]) == 0


def test_the_learned_space_leads_from_its_share_on_and_stays_until_well_below():
    index = MemoryIndex(active_from=0.9)
    count = 20
    passages = [stored(n, n) for n in range(1, count + 1)]
    known = [facts(n) for n in range(1, count + 1)]
    index.load(VaultContents(passages, lines([("a", 1)]), known, [SPACE]))
    index.adopt_learned_space(LEARNED)
    fill(index, *range(1, 18))
    assert index.active == SPACE.name
    fill(index, 18)
    assert index.active == LEARNED.name
    added = [stored(n, n) for n in range(21, 25)]
    index.apply(IndexUpdate(added=added, numbers={"a": 1}, facts=[facts(n) for n in range(21, 25)]))
    assert (index.coverage(LEARNED.name), index.active) == (0.75, LEARNED.name)
    index.apply(IndexUpdate(removed=[1, 2, 3]))
    assert index.coverage(LEARNED.name) < 0.72
    assert index.active == SPACE.name
    fill(index, *range(18, 24))
    assert index.coverage(LEARNED.name) > 0.9
    assert index.active == LEARNED.name


def test_what_lacks_a_vector_comes_newest_first_and_what_is_superseded_last():
    index = MemoryIndex()
    times = {1: 50, 2: 90, 3: 70, 4: 99}
    known = [replace(facts(n, at), is_retired=n == 4) for n, at in times.items()]
    passages = [stored(n, n) for n in times]
    index.load(VaultContents([*passages, stored(5, 2, 1)], lines([("a", 1)]), known, [SPACE]))
    index.adopt_learned_space(LEARNED)
    assert index.missing_vectors(LEARNED.name, 9) == [5, 2, 3, 1, 4]
    assert index.missing_vectors(LEARNED.name, 3) == [5, 2, 3]
    fill(index, 2, 5, 4)
    assert index.missing_vectors(LEARNED.name, 9) == [3, 1]
    assert index.missing_vectors("unheard of", 9) == []


def written(index, folder):
    """A snapshot of an index, mapped."""
    vault = str(folder / "v.db")
    write_snapshot(vault, "one", index, lambda: None)
    return read_snapshot(vault, "one")


def test_an_index_moves_into_the_arrays_of_its_snapshot_and_keeps_the_learned_space(tmp_path):
    index = filled()
    index.adopt_learned_space(LEARNED)
    fill(index, 1)
    index.exchange(written(index, tmp_path))
    assert index.counts(LEARNED.name) == (1, 4)
    assert index.vocabulary.expand("a", index.postings.df) == [1]
    index.apply(IndexUpdate(removed=[1, 3]))
    assert index.postings.rows_of(1).tolist() == []
    assert index.vocabulary.expand("a", index.postings.df) == []


def test_gaps_that_are_closed_keep_every_space_in_step():
    index = MemoryIndex()
    passages = [stored(n, n) for n in range(1, 401)]
    known = [facts(n) for n in range(1, 401)]
    index.load(VaultContents(passages, lines([("a", 1)]), known, [SPACE]))
    index.adopt_learned_space(LEARNED)
    fill(index, 300, 350)
    index.apply(IndexUpdate(removed=list(range(1, 300))))
    assert index.columns.n == index.matrices[LEARNED.name].n == 101
    found = np.flatnonzero(index.matrices[LEARNED.name].known)
    assert index.columns.passage_id[found].tolist() == [300, 350]


@pytest.mark.parametrize("kept_rows_max", [0, 9], ids=["large", "small"])
def test_an_index_that_gave_memory_back_finds_the_same(monkeypatch, kept_rows_max):
    monkeypatch.setattr(memory_index, "_KEPT_ROWS_MAX", kept_rows_max)
    index = filled()

    def found():
        out = index.cache.scratch("scores", index.postings.n)
        scores = index.postings.add_logarithms({1: (1.0, 0.5)}, title_weight=1.0, out=out)
        return scores.tolist(), [rows.tolist() for rows in index.columns.neighbours(np.arange(4))]

    before = found()
    index.release_memory()
    assert found() == before


def test_an_early_caller_waits_briefly_for_the_index():
    index = MemoryIndex()
    assert not index.wait_until_loaded(0.001)
    loads = threading.Timer(0.01, index.become, [filled()])
    loads.start()
    assert index.wait_until_loaded(60)
    loads.join()

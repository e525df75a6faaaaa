import tracemalloc

import numpy as np
import pytest

from memd.consolidate import near_duplicates
from memd.consolidate.near_duplicates import PAIRS_PER_MEMORY_MAX, VectorRows
from memd.index.memory_index import MemoryIndex
from memd.index.vectors import VectorMatrix


def unit(*values):
    vector = np.array(values, np.float32)
    return vector / np.linalg.norm(vector)


NEAR, NEARER, FAR = unit(1, 0.1), unit(1, 0.0), unit(0, 1)


def rows(*given):
    """(summary, project, seq, vector[, live])"""
    matrix = np.stack([row[3] for row in given])
    return VectorRows(
        np.array([row[0] for row in given]),
        np.array([row[1] for row in given], np.int32),
        np.array([row[2] for row in given], np.int32),
        np.array([row[4] if len(row) > 4 else True for row in given]),
        lambda wanted: matrix[wanted],
    )


def test_a_new_memory_meets_what_is_like_it_in_its_project():
    found = rows((1, 1, 0, NEAR), (2, 1, 0, NEARER), (3, 2, 0, NEARER), (4, 1, 0, FAR)).pairs(
        [2], 0.95
    )
    assert [(a, b) for a, b, _ in found] == [(1, 2)]
    assert found[0][2] == pytest.approx(0.995, abs=1e-3)


def test_two_new_memories_make_one_pair():
    assert len(rows((1, 1, 0, NEAR), (2, 1, 0, NEARER)).pairs([1, 2], 0.95)) == 1


def test_what_is_hidden_or_dead_is_no_neighbour():
    assert rows((1, 1, 0, NEAR, False), (2, 1, 0, NEARER)).pairs([2], 0.95) == []


def test_the_least_alike_passages_count():
    one = ((1, 1, 0, NEARER), (1, 1, 1, NEARER))
    assert rows(*one, (2, 1, 0, NEARER), (2, 1, 1, NEAR)).pairs([2], 0.9)[0][
        2
    ] == pytest.approx(0.995, abs=1e-3)
    assert rows(*one, (2, 1, 0, NEARER), (2, 1, 1, FAR)).pairs([2], 0.9) == []


def test_another_number_of_passages_is_another_memory():
    assert rows((1, 1, 0, NEARER), (1, 1, 1, NEARER), (2, 1, 0, NEARER)).pairs([2], 0.9) == []


def test_of_very_many_copies_each_new_one_meets_a_few():
    many = rows(*[(number, 1, 0, NEARER) for number in range(1, 101)])
    assert len(many.pairs([100], 0.95)) == PAIRS_PER_MEMORY_MAX
    assert len(many.pairs(list(range(1, 101)), 0.95)) <= 100 * PAIRS_PER_MEMORY_MAX


def test_slices_and_blocks_change_nothing(monkeypatch):
    random = np.random.default_rng(7)
    vectors = [unit(*row) for row in random.normal(size=(60, 3))]
    given = rows(
        *[(number, number % 2, 0, vector) for number, vector in enumerate(vectors, start=1)]
    )
    whole = given.pairs(list(range(1, 61)), 0.97)
    monkeypatch.setattr(near_duplicates, "_SLICE_ROWS", 7)
    monkeypatch.setattr(near_duplicates, "_BLOCK_ROWS", 5)
    sliced = given.pairs(list(range(1, 61)), 0.97)
    assert [(a, b) for a, b, _ in sorted(sliced)] == [(a, b) for a, b, _ in sorted(whole)]
    assert whole


def test_only_what_has_all_its_vectors_can_be_compared():
    none = np.zeros(2, np.float32)
    given = rows((1, 1, 0, NEAR), (2, 1, 0, NEAR), (2, 1, 1, none), (3, 1, 0, none))
    assert given.indexed([1, 2, 3, 4]) == {1}
    assert given.pairs([3], 0.0) == []


def test_an_index_that_is_not_loaded_has_no_rows():
    assert near_duplicates.read_vector_rows(MemoryIndex(), "hashing") is None


def test_a_tick_needs_little_memory_however_many_rows_there_are():
    """What a tick takes at its peak, the process keeps in part."""
    count = 6_000
    random = np.random.default_rng(3)
    matrix = VectorMatrix(256, rows=count)
    for _ in range(12):
        vectors = random.normal(size=(500, 256)).astype(np.float32)
        matrix.append(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    numbers = np.arange(1, count + 1)
    ones = np.ones(count, np.int32)
    given = VectorRows(numbers, ones, 0 * ones, ones.astype(np.bool_), matrix.vectors)
    tracemalloc.start()
    assert given.pairs(list(range(1, 301)), 0.9) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000


def test_looking_goes_in_steps_of_which_the_last_tells_all(monkeypatch):
    monkeypatch.setattr(near_duplicates, "_SLICE_ROWS", 10)
    given = rows(*[(number, 1, 0, NEARER) for number in range(1, 41)])
    *steps, found = given.looking([40], 0.95)
    assert steps == [[]] * 5
    assert len(found) == PAIRS_PER_MEMORY_MAX
    assert list(given.looking([], 0.95)) == [[]]

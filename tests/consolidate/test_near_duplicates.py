import tracemalloc

import numpy as np
import pytest

from memd.consolidate import near_duplicates
from memd.consolidate.near_duplicates import (
    CANDIDATES_MAX,
    LEARNED_COSINE_MIN,
    PAIRS_PER_MEMORY_MAX,
    Neighbour,
    SpaceRows,
    hash_text,
    select_candidates,
)
from memd.index.memory_index import VectorMatrix
from memd.models import Kind
from tests.factories import AT, make_summary
from tests.tables import every_row


def unit(*values):
    vector = np.array(values, np.float32)
    return vector / np.linalg.norm(vector)


NEAR, NEARER, FAR = unit(1, 0.1), unit(1, 0.0), unit(0, 1)


def rows(*given):
    """(summary, project, seq, vector[, live])"""
    matrix = np.stack([row[3] for row in given])
    return SpaceRows(
        np.array([row[0] for row in given]),
        np.array([row[1] for row in given], np.int32),
        np.array([row[2] for row in given], np.int32),
        np.array([row[4] if len(row) > 4 else True for row in given]),
        lambda wanted: matrix[wanted],
    )


def test_a_new_memory_is_paired_with_similar_ones_of_its_project():
    found = rows((1, 1, 0, NEAR), (2, 1, 0, NEARER), (3, 2, 0, NEARER), (4, 1, 0, FAR)).find_pairs(
        [2], 0.95
    )
    assert [(a, b) for a, b, _ in found] == [(1, 2)]
    assert found[0][2] == pytest.approx(0.995, abs=1e-3)


def test_the_least_alike_passages_count():
    one = ((1, 1, 0, NEARER), (1, 1, 1, NEARER))
    assert rows(*one, (2, 1, 0, NEARER), (2, 1, 1, NEAR)).find_pairs([2], 0.9)[0][
        2
    ] == pytest.approx(0.995, abs=1e-3)
    assert rows(*one, (2, 1, 0, NEARER), (2, 1, 1, FAR)).find_pairs([2], 0.9) == []


def test_the_size_of_slices_and_blocks_changes_no_pair(monkeypatch):
    random = np.random.default_rng(7)
    vectors = [unit(*row) for row in random.normal(size=(60, 3))]
    given = rows(
        *[(number, number % 2, 0, vector) for number, vector in enumerate(vectors, start=1)]
    )
    whole = given.find_pairs(list(range(1, 61)), 0.97)
    monkeypatch.setattr(near_duplicates, "_SLICE_ROWS", 7)
    monkeypatch.setattr(near_duplicates, "_BLOCK_ROWS", 5)
    sliced = given.find_pairs(list(range(1, 61)), 0.97)
    assert [(a, b) for a, b, _ in sorted(sliced)] == [(a, b) for a, b, _ in sorted(whole)]
    assert whole


def test_only_memories_with_all_vectors_are_comparable():
    none = np.zeros(2, np.float32)
    given = rows((1, 1, 0, NEAR), (2, 1, 0, NEAR), (2, 1, 1, none), (3, 1, 0, none))
    assert given.find_comparable([1, 2, 3, 4]) == {1}
    assert given.find_pairs([3], 0.0) == []


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
    given = SpaceRows(numbers, ones, 0 * ones, ones.astype(np.bool_), matrix.vectors)
    tracemalloc.start()
    assert given.find_pairs(list(range(1, 301)), 0.9) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000


def test_a_search_goes_in_steps_of_which_the_last_has_all_pairs(monkeypatch):
    monkeypatch.setattr(near_duplicates, "_SLICE_ROWS", 10)
    given = rows(*[(number, 1, 0, NEARER) for number in range(1, 41)])
    *steps, found = given.search_pairs([40], 0.95)
    assert steps == [[]] * 5
    assert len(found) == PAIRS_PER_MEMORY_MAX
    assert list(given.search_pairs([], 0.95)) == [[]]


def of(text):
    return hash_text("", text)


@every_row(
    "other",
    [
        "USE REDIS FOR SESSIONS",
        "for sessions, use `redis`!",
        "Basically just use Redis for sessions, please.",
        "2026-01-02T10:11:12Z Use Redis for sessions",
        "[10:11:12] Use Redis for sessions",
        "Nov 21 10:11:12 Use Redis for sessions",
    ],
)
def test_case_punctuation_filler_and_stamps_change_no_hash(other):
    assert of("Use Redis for sessions.") == of(other)


@every_row("other", ["Use Postgres for sessions", "Use Redis for 30 sessions", ""])
def test_another_word_is_another_hash(other):
    assert of("Use Redis for sessions") != of(other)


NOW = AT + 1


def said(text, number=1, *, kind=Kind.FACT, **more):
    return make_summary(text, text, id=number, kind=kind, **more)


MINE = said("The retry limit of the gateway is 5")


def ask(*near, judged=(), mine=MINE):
    return select_candidates(mine, near, judged, NOW)


def test_a_similar_memory_is_a_candidate_with_its_difference():
    (one,) = ask(Neighbour(said("The retry limit of the gateway is 3", 2), 0.8))
    assert (one.id, one.kind, one.likeness) == (2, Kind.FACT, pytest.approx(0.8))
    assert one.finding == "number: 3 → 5"


def test_shared_words_are_enough_and_so_is_a_learned_model():
    assert ask(Neighbour(said("Its retry limit of the gateway is small", 2), 0.5))
    other = said("Requests are attempted again at most thrice", 2)
    assert not ask(Neighbour(other, 0.1, LEARNED_COSINE_MIN - 0.01))
    assert ask(Neighbour(other, 0.1, LEARNED_COSINE_MIN))


def test_a_memory_with_little_in_common_is_no_candidate():
    assert not ask(Neighbour(said("The docs are built with Sphinx", 2), 0.46))


def test_a_pair_that_a_rule_decides_is_no_candidate():
    assert not ask(Neighbour(said("the retry limit, of the gateway: is 5!", 2), 0.99))
    assert not ask(Neighbour(said("The retry limit of the gateway is 3", 2, superseded_by=7), 0.9))
    assert not ask(Neighbour(said("The retry limit of the gateway is 3", 2, expires_at=NOW), 0.9))
    assert not ask(Neighbour(MINE, 1.0))


def test_what_happened_in_a_turn_competes_with_nothing():
    text = "The retry limit of the gateway is 3"
    assert not ask(Neighbour(said(text, 2, kind=Kind.CHANGE), 0.9))
    change = said(text, 1, kind=Kind.CHANGE)
    assert not ask(Neighbour(said("The retry limit of the gateway is 5", 2), 0.9), mine=change)


def test_only_the_most_similar_few_are_candidates_best_first():
    near = [
        Neighbour(said(f"The retry limit of the gateway is {n}", n), n / 100) for n in range(70, 80)
    ]
    found = ask(*near)
    assert len(found) == CANDIDATES_MAX
    assert [one.likeness for one in found] == sorted((o.likeness for o in found), reverse=True)

import numpy as np
import pytest

from memd.embeddings.hashing import HashingEmbedder
from memd.index.memory_index import ExactVectors, VectorMatrix
from memd.index.quantization import BinaryCodes


def unit(rng, count, dimensions=96):
    vectors = rng.standard_normal((count, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def test_cosines_are_exact_and_a_missing_vector_has_none(rng):
    vectors = unit(rng, 300)
    vectors[7] = 0
    matrix = VectorMatrix(96)
    for first in range(0, 300, 70):
        matrix.append(vectors[first : first + 70])
    assert np.allclose(matrix.cosines(vectors[3]), vectors @ vectors[3], atol=1e-6)
    some = np.array([3, 0, 7])
    assert np.allclose(matrix.cosines(vectors[3], some), vectors[some] @ vectors[3], atol=1e-6)
    assert matrix.vectors(np.array([5, 2])).tolist() == vectors[[5, 2]].tolist()
    rows, _ = matrix.top(vectors[3], 300)
    assert 7 not in rows
    assert len(rows) == 299


def test_the_nearest_come_first_and_of_equals_the_older(rng):
    vectors = unit(rng, 50)
    matrix = VectorMatrix(96)
    matrix.append(np.concatenate((vectors, vectors[:3])))
    rows, cosines = matrix.top(vectors[1], 3)
    assert rows[:2].tolist() == [1, 51]
    assert cosines[0] == pytest.approx(1)
    assert (np.diff(cosines) <= 0).all()


def test_an_empty_matrix_answers():
    matrix = VectorMatrix(96)
    assert matrix.cosines(np.zeros(96, np.float32)).shape == (0,)
    assert len(matrix.top(np.ones(96, np.float32), 5)[0]) == 0


@pytest.mark.parametrize("rows", [0, 6_000], ids=["grown", "made in size"])
def test_codes_take_over_beyond_the_exact_size_and_follow_every_change(rng, rows):
    vectors = unit(rng, 6_000)
    matrix = VectorMatrix(96, rows=rows, exact_max=3_000)
    for first in range(0, 6_000, 1_500):
        matrix.append(vectors[first : first + 1_500].astype(np.float16))
    assert isinstance(matrix._rows, BinaryCodes)
    assert np.allclose(matrix.cosines(vectors[9]), vectors @ vectors[9], atol=5e-3)
    for at in (0, 2_999, 3_001, 5_999):
        assert matrix.top(vectors[at], 1)[0].tolist() == [at]
    gone = np.zeros(6_000, np.bool_)
    gone[:600] = True
    matrix.retire(np.flatnonzero(gone))
    matrix.compact(np.where(gone, -1, np.arange(6_000) - 600).astype(np.int32))
    matrix.append(vectors[:1])
    assert matrix.top(vectors[5_999], 1)[0].tolist() == [5_399]
    assert matrix.top(vectors[0], 1)[0].tolist() == [5_400]


def test_few_rows_that_a_mask_leaves_are_scored_without_a_first_pass(rng):
    vectors = unit(rng, 8_000)
    matrix = VectorMatrix(96, rows=8_000, exact_max=100)
    matrix.append(vectors)
    mask = np.zeros(8_000, np.bool_)
    mask[::80] = True
    rows, _ = matrix.top(vectors[1], 100, mask)
    assert sorted(rows.tolist()) == list(range(0, 8_000, 80))


def test_a_byte_a_value_is_fine_enough_and_equal_vectors_stay_equal(rng):
    """Vectors with few large values and of short texts, as the hashing space has them."""
    texts = [" ".join(f"word{n}" for n in rng.integers(0, 4_000, 1 + i % 40)) for i in range(600)]
    vectors = HashingEmbedder().embed(texts)
    vectors[7] = vectors[300]
    coded = VectorMatrix(768, exact_max=10)
    coded.append(vectors)
    errors = np.stack([coded.cosines(query) - vectors @ query for query in vectors[::10]])
    assert np.sqrt(np.square(errors).mean()) < 5e-4
    assert np.abs(errors).max() < 4e-3
    stored = coded.vectors(np.arange(600))
    assert np.allclose(np.linalg.norm(stored, axis=1), 1, atol=1e-5)
    assert stored[7].tolist() == stored[300].tolist()
    assert coded.cosines(vectors[7])[7] == coded.cosines(vectors[7])[300]


def test_rows_do_not_depend_on_the_batches_in_which_they_came(rng):
    vectors = unit(rng, 700).astype(np.float16)
    at_once, bit_by_bit = (
        VectorMatrix(96, rows=700, exact_max=100),
        VectorMatrix(96, exact_max=100),
    )
    at_once.append(vectors)
    for first in range(0, 700, 30):
        bit_by_bit.append(vectors[first : first + 30])
    rows = np.arange(700)
    assert at_once.vectors(rows).tobytes() == bit_by_bit.vectors(rows).tobytes()


def test_capacity_grows_by_a_quarter(rng):
    matrix = VectorMatrix(96, exact_max=100)
    assert isinstance(matrix._rows, ExactVectors)
    for _ in range(40):
        matrix.append(unit(rng, 100))
    assert isinstance(matrix._rows, BinaryCodes)
    assert 4_000 <= len(matrix._rows._values) <= 5_000


def test_codes_find_nearly_all_that_an_exact_search_finds_in_the_hashing_space(rng):
    """10,000 texts of words as frequent as in real ones; the space is sparse, its neighbours far."""
    letters = np.array(list("etaoinshrdlucm"))
    lexicon = ["".join(rng.choice(letters, size)) for size in rng.integers(3, 10, 8_000)]
    share = 1 / np.arange(1, 8_001)
    drawn = rng.choice(8_000, (10_000, 24), p=share / share.sum())
    texts = [" ".join(lexicon[word] for word in row) for row in drawn]
    vectors = HashingEmbedder().embed(texts)
    exact, coded = (
        VectorMatrix(768, rows=10_000, exact_max=10_000),
        VectorMatrix(768, rows=10_000, exact_max=100),
    )
    exact.append(vectors)
    coded.append(vectors)
    found, fewer = [], []
    for query in HashingEmbedder().embed([" ".join(text.split()[:10]) for text in texts[::400]]):
        least = exact.top(query, 50)[1][-1]
        true = exact.cosines(query)[coded.top(query, 50)[0]]
        found.append(np.count_nonzero(true >= least - 1e-4) / 50)
        cosines = coded.cosines(query)
        floor = float(np.sort(cosines)[-20])
        above = coded._rows.nearest(query, 50, np.ones(10_000, np.bool_), floor)
        assert set(np.flatnonzero(cosines >= floor)) <= set(above.tolist())
        fewer.append(len(above) < len(coded._rows.nearest(query, 50, np.ones(10_000, np.bool_))))
    assert np.mean(found) >= 0.99
    assert np.mean(fewer) >= 0.9


@pytest.mark.parametrize("exact_max", [1_000, 10], ids=["exact", "coded"])
def test_rows_that_are_filled_in_later_equal_those_that_came_with_their_vectors(rng, exact_max):
    vectors = unit(rng, 200).astype(np.float16)
    vectors[9] = 0
    whole, late = VectorMatrix(96, exact_max=exact_max), VectorMatrix(96, exact_max=exact_max)
    whole.append(vectors)
    late.extend(200)
    assert not late.known.any()
    assert len(late.top(vectors[3].astype(np.float32), 5)[0]) == 0
    for rows in np.array_split(rng.permutation(200), 7):
        late.put(rows, vectors[rows])
    assert late.known.all()
    rows = np.arange(200)
    assert late.vectors(rows).tobytes() == whole.vectors(rows).tobytes()
    query = vectors[3].astype(np.float32)
    assert late.top(query, 5)[0].tolist() == whole.top(query, 5)[0].tolist()
    assert 9 not in late.top(query, 200)[0]


def mapped(path, parts, room):
    """The parts as files with room for more rows, mapped so that what is written stays private."""
    found = {}
    for name, part in parts.items():
        shape = list(part.shape)
        if name != "centre":
            shape[name == "planes"] += room
        whole = np.zeros(shape, part.dtype)
        whole[tuple(slice(size) for size in part.shape)] = part
        whole.tofile(path / name)
        found[name] = np.memmap(path / name, part.dtype, "c", shape=tuple(shape))
    return found


@pytest.mark.parametrize("exact_max", [10_000, 100], ids=["exact", "coded"])
def test_a_matrix_that_was_saved_and_mapped_goes_on_as_one_that_never_was(rng, tmp_path, exact_max):
    vectors = unit(rng, 4_000)
    kept = VectorMatrix(96, exact_max=exact_max)
    kept.append(vectors[:2_500])
    kept.retire(np.array([5, 700]))
    parts = kept.parts()
    assert parts["filled"].shape == (2_500,)
    again = VectorMatrix(96, exact_max=exact_max)
    again.restore(2_500, mapped(tmp_path, parts, room=100))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def is_same():
        rows = np.arange(kept.n)
        assert again.n == kept.n
        assert again.known.tolist() == kept.known.tolist()
        assert again.vectors(rows).tobytes() == kept.vectors(rows).tobytes()
        for query in vectors[::1_000]:
            for mask in (None, rows % 3 > 0):
                found, wanted = again.top(query, 50, mask), kept.top(query, 50, mask)
                assert found[0].tolist() == wanted[0].tolist()
                assert found[1].tolist() == wanted[1].tolist()

    is_same()
    for matrix in (kept, again):
        matrix.append(vectors[2_500:2_580])  # within the room
        matrix.retire(np.array([6, 2_510]))
        matrix.put(np.array([9]), vectors[3_999:])
    is_same()
    gone = np.isin(np.arange(2_580), [5, 6, 700, 2_510])
    mapping = np.where(gone, -1, np.cumsum(~gone) - 1).astype(np.int32)
    for matrix in (kept, again):
        matrix.append(vectors[2_580:3_500])  # beyond it
    is_same()
    mapping = np.concatenate((mapping, np.arange(2_576, 3_496))).astype(np.int32)
    for matrix in (kept, again):
        matrix.compact(mapping)
    is_same()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before

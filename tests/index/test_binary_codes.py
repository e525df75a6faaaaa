import numpy as np
import pytest

from memd.index.quantization import BinaryCodes, _distance_limit, _rows_within

ROWS = 30_000


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def vectors():
    """Rows around 300 centres, as texts lie around their themes, and all of them in one direction."""
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((300, 256), dtype=np.float32) + 1
    noise = rng.standard_normal((ROWS, 256), dtype=np.float32)
    return unit(centres[rng.integers(0, 300, ROWS)] + noise)


@pytest.fixture(scope="module")
def coded(vectors):
    made = BinaryCodes(vectors.shape[1], ROWS)
    for first in range(0, ROWS, 5_000):
        made.put(np.arange(first, first + 5_000), vectors[first : first + 5_000])
    return made


@pytest.mark.parametrize("one_in", [1, 1.2, 3, 6, 40], ids=str)
def test_the_nearest_rows_are_among_those_that_are_scored_under_any_mask(coded, vectors, one_in):
    rng = np.random.default_rng(5)
    seen = rng.random(ROWS) < 1 / one_in
    found = []
    for query in unit(vectors[::1_500] + 0.03 * rng.standard_normal((20, 256), dtype=np.float32)):
        cosines = np.where(seen, vectors @ query, -2)
        rows = coded.nearest(query, 50, seen)
        assert seen[rows].all()
        assert (np.diff(rows) > 0).all()
        assert len(rows) < 0.4 * ROWS
        found.append(np.isin(np.argpartition(-cosines, 50)[:50], rows).mean())
    assert np.mean(found) >= 0.99


def test_bits_say_what_is_above_the_mean_of_the_first_rows_whenever_they_came(coded):
    floats = coded._values * coded._scales[:, np.newaxis]
    bits = np.unpackbits(coded._codes.view(np.uint8), axis=1)
    assert (bits == (floats > coded._centre)).all()
    assert np.allclose(coded._centre, floats[:5_000].mean(axis=0), atol=1e-5)


def test_the_bits_by_plane_are_those_by_row_whatever_is_written_added_or_dropped(vectors):
    made = BinaryCodes(256, 25_000)
    made.put(np.arange(25_000), vectors[:25_000])

    def planes():
        made.nearest(vectors[0], 50, np.ones(len(made._codes), np.bool_))
        assert (made._codes == made._planes.T).all()

    planes()
    made.put(np.array([3, 24_000]), vectors[-2:])
    planes()
    made.grow(30_000)
    made.put(np.array([29_999]), vectors[:1])
    planes()
    made.keep(np.arange(1_000, 29_000))
    planes()


def test_ten_thousands_of_copies_do_not_crowd_out_what_is_nearer(vectors):
    many = vectors.copy()
    many[:25_000] = many[0]
    made = BinaryCodes(256, ROWS)
    made.put(np.arange(ROWS), many)
    rows = made.nearest(many[27_000], 50, np.ones(ROWS, np.bool_))
    assert 27_000 in rows
    rows = made.nearest(many[0], 50, np.ones(ROWS, np.bool_))
    assert 50 <= len(rows) < 7_500


def test_as_many_are_within_as_are_wanted_though_the_sample_says_otherwise():
    distances = np.full(200_000, 200, np.uint8)
    distances[: 6 * 50 : 6] = 10  # those of the sample are near, others are not
    limit, _ = _distance_limit(distances, 100, 5, 1_000)
    within = _rows_within(distances, limit, 100, 1_000)
    assert 100 <= len(within) <= 1_000
    assert np.isin(np.flatnonzero(distances == 10), within).all()
    distances[1_000:] = 10
    limit, _ = _distance_limit(distances, 100, 5, 1_000)
    assert len(_rows_within(distances, limit, 100, 1_000)) <= 1_100

import numpy as np
import pytest

from memd.index.quantization import decode, encode, is_former


def unit(count, dimensions, seed=1):
    rows = np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("dimensions", [4, 64, 100, 768])
def test_a_vector_comes_back_nearly_as_it_was_in_half_the_bytes(dimensions):
    rows = unit(20, dimensions)
    blobs = encode(rows)
    assert {len(blob) for blob in blobs} == {-(-dimensions // 64) * 64 + 4}
    found = decode(blobs, dimensions)
    assert np.abs((found * rows).sum(axis=1) - 1).max() < 2e-3
    if dimensions % 64 == 0:  # else what rotates out of the dimensions is lost
        assert encode(found) == blobs


def test_a_row_of_zeros_stays_one():
    assert not decode(encode(np.zeros((2, 8), np.float32)), 8).any()
    assert encode(np.zeros((0, 8), np.float32)) == []
    assert decode([], 8).shape == (0, 8)


def test_what_a_former_memd_wrote_is_read_beside_what_this_one_writes():
    rows = unit(3, 8)
    blobs = [rows[0].astype("<f2").tobytes(), *encode(rows[1:])]
    assert [is_former(blob, 8) for blob in blobs] == [True, False, False]
    found = decode(blobs, 8)
    assert found[0].tolist() == rows[0].astype(np.float16).astype(np.float32).tolist()
    assert np.allclose(found, rows, atol=0.02)

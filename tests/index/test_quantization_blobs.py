import numpy as np
import pytest

from memd.index.quantization import decode_vectors, encode_vectors, is_float16


def unit(count, dimensions, seed=1):
    rows = np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("dimensions", [4, 64, 100, 768])
def test_a_vector_comes_back_nearly_as_it_was_in_half_the_bytes(dimensions):
    rows = unit(20, dimensions)
    blobs = encode_vectors(rows)
    assert {len(blob) for blob in blobs} == {-(-dimensions // 64) * 64 + 4}
    found = decode_vectors(blobs, dimensions)
    assert np.abs((found * rows).sum(axis=1) - 1).max() < 2e-3
    if dimensions % 64 == 0:  # else what rotates out of the dimensions is lost
        assert encode_vectors(found) == blobs


def test_a_row_of_zeros_stays_one():
    assert not decode_vectors(encode_vectors(np.zeros((2, 8), np.float32)), 8).any()
    assert encode_vectors(np.zeros((0, 8), np.float32)) == []
    assert decode_vectors([], 8).shape == (0, 8)


def test_what_a_former_memd_wrote_is_read_beside_what_this_one_writes():
    rows = unit(3, 8)
    blobs = [rows[0].astype("<f2").tobytes(), *encode_vectors(rows[1:])]
    assert [is_float16(blob, 8) for blob in blobs] == [True, False, False]
    found = decode_vectors(blobs, 8)
    assert found[0].tolist() == rows[0].astype(np.float16).astype(np.float32).tolist()
    assert np.allclose(found, rows, atol=0.02)

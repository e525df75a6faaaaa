import numpy as np
import pytest

from memd.index.quantization import Rotation, decode_vectors, encode_vectors, is_float16, quantize
from tests.tables import every_row


def unit(rng, count, dimensions):
    vectors = rng.standard_normal((count, dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.mark.parametrize("dimensions", [2, 64, 100, 384, 768])
def test_a_rotation_keeps_lengths_and_angles_and_can_be_undone(rng, dimensions):
    vectors = unit(rng, 40, dimensions)
    rotation = Rotation(dimensions)
    rotated = rotation.forward(vectors)
    assert rotated.shape == (40, rotation.width)
    assert np.allclose(rotated @ rotated.T, vectors @ vectors.T, atol=1e-5)
    assert np.allclose(rotation.back(rotated), vectors, atol=1e-5)


def test_a_rotation_spreads_one_large_value_over_all():
    one = np.zeros((1, 768), np.float32)
    one[0, 5] = 1
    assert np.abs(Rotation(768).forward(one)).max() < 0.15


def test_bytes_keep_the_length_and_nothing_stays_nothing(rng):
    vectors = unit(rng, 30, 128)
    vectors[4] = 0
    values, scales = quantize(vectors)
    assert values.dtype == np.int8
    assert scales[4] == 0
    assert not values[4].any()
    again = values * scales[:, np.newaxis]
    there = np.arange(30) != 4
    assert np.allclose(np.linalg.norm(again[there], axis=1), 1, atol=1e-6)
    assert np.abs(again - vectors).max() < 4e-3
    assert quantize(again)[0].tolist() == values.tolist()


def unit_rows(count, dimensions, seed=1):
    rows = np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@every_row("dimensions", [4, 64, 100, 768])
def test_a_vector_comes_back_nearly_as_it_was_in_half_the_bytes(dimensions):
    rows = unit_rows(20, dimensions)
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
    rows = unit_rows(3, 8)
    blobs = [rows[0].astype("<f2").tobytes(), *encode_vectors(rows[1:])]
    assert [is_float16(blob, 8) for blob in blobs] == [True, False, False]
    found = decode_vectors(blobs, 8)
    assert found[0].tolist() == rows[0].astype(np.float16).astype(np.float32).tolist()
    assert np.allclose(found, rows, atol=0.02)

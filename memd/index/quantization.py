"""Random rotation; int8 encoding. Pure.

Rounding to a byte or a sign is accurate only if no value is much larger than the others, and the hashing space is
full of those. A random rotation spreads each over all dimensions (Ailon and Chazelle, 2006). The vault stores a
model's vectors as the index holds them: rotated, a byte a dimension and one scale. Older vaults have float16.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WORD_BITS = 64
_BYTE_MAX = 127
_SCALE_BYTES = 4
_FLOAT16_BYTES = 2

Floats = NDArray[np.float32]
VectorRows = NDArray[np.float32] | NDArray[np.float16]


def quantize(rotated: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Return a byte per value, and per row the scale that gives it length 1; 0 without a vector."""
    highest = np.abs(rotated).max(axis=1, keepdims=True, initial=0)
    values = np.rint(rotated * (_BYTE_MAX / np.where(highest > 0, highest, 1)))
    length = np.sqrt(np.square(values).sum(axis=1))
    scales = np.where(length > 0, 1 / np.where(length > 0, length, 1), 0)
    return values.astype(np.int8), scales.astype(np.float32)


class Rotation:
    """A cheap rotation that mixes all dimensions, the same on every machine.

    Twice: random signs, then a Hadamard transform within blocks of a power of two; in between, each block
    receives a part of every other.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.width = -(-dimensions // WORD_BITS) * WORD_BITS
        """Dimensions of rotated vectors: filled up to whole words."""
        side = self.width & -self.width
        self._blocks = self.width // side
        # The transform of a product of two sides is two small products: H(a) · X · H(b).
        half = 1 << (side.bit_length() // 2)
        self._left, self._right = _hadamard_matrix(half), _hadamard_matrix(side // half)
        self._signs = _random_signs(2 * self.width).reshape(2, self.width)

    def forward(self, vectors: VectorRows) -> Floats:
        """Rotate (m, dimensions) to (m, width)."""
        padded = np.zeros((len(vectors), self.width), np.float32)
        padded[:, : self.dimensions] = vectors
        mixed = self._mix_blocks(padded * self._signs[0])
        return self._mix_blocks(self._interleave(mixed, self._blocks) * self._signs[1])

    def back(self, rotated: Floats) -> Floats:
        """Rotate (m, width) back to (m, dimensions)."""
        mixed = self._mix_blocks(rotated) * self._signs[1]
        dealt = self._interleave(mixed, self.width // self._blocks)
        vectors: Floats = self._mix_blocks(dealt) * self._signs[0]
        return vectors[:, : self.dimensions]

    def _mix_blocks(self, rows: Floats) -> Floats:
        grid = rows.reshape(-1, len(self._left), len(self._right))
        return np.asarray((self._left @ grid @ self._right).reshape(rows.shape), np.float32)

    def _interleave(self, rows: Floats, piles: int) -> Floats:
        """Take the first column of each pile, then the second of each, and so on."""
        dealt = rows.reshape(len(rows), piles, self.width // piles).swapaxes(1, 2)
        return np.ascontiguousarray(dealt).reshape(rows.shape)


def _hadamard_matrix(side: int) -> Floats:
    """Build the Hadamard matrix of a power of two, scaled to be a rotation."""
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < side:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix / np.float32(np.sqrt(side))


def _random_signs(count: int) -> Floats:
    """Return random signs, the same on every machine: ±1, (count,)."""
    stream = hashlib.shake_128(b"memd rotation 2").digest(count // 8)
    bits = np.unpackbits(np.frombuffer(stream, np.uint8))
    return np.where(bits, np.float32(1), np.float32(-1))


def encode_vectors(vectors: Floats) -> list[bytes]:
    """Return one blob per row of (n, dimensions)."""
    if not len(vectors):
        return []
    values, scales = quantize(Rotation(vectors.shape[1]).forward(vectors))
    return [
        row.tobytes() + scale.tobytes()
        for row, scale in zip(values, scales.astype("<f4"), strict=True)
    ]


def decode_vectors(blobs: Sequence[bytes], dimensions: int) -> Floats:
    """Return a row per blob, (n, dimensions), approximately what was encoded."""
    rows = np.zeros((len(blobs), dimensions), np.float32)
    former = [at for at, blob in enumerate(blobs) if is_float16(blob, dimensions)]
    if former:
        halves = np.frombuffer(b"".join(blobs[at] for at in former), "<f2")
        rows[former] = halves.reshape(-1, dimensions)
    coded = sorted(set(range(len(blobs))) - set(former))
    if coded:
        rotation = Rotation(dimensions)
        whole = np.frombuffer(b"".join(blobs[at] for at in coded), np.uint8)
        whole = whole.reshape(len(coded), rotation.width + _SCALE_BYTES)
        values = whole[:, : rotation.width].view(np.int8)
        scales = np.ascontiguousarray(whole[:, rotation.width :]).view("<f4")
        rows[coded] = rotation.back(values * scales)
    return rows


def is_float16(blob: bytes, dimensions: int) -> bool:
    """Return whether an earlier memd wrote this blob, in float16."""
    return len(blob) == _FLOAT16_BYTES * dimensions

"""A model's vectors as the vault keeps them: rotated, a byte a dimension, and one scale. Pure.

That is what an index's big matrices hold of them, too, so nothing is lost on the way; half of float16.
A vault from before that has float16, told by its length. Not here: what a rotation is (quantization.py).
"""

from collections.abc import Sequence

import numpy as np

from memd.index.quantization import Floats, Rotation, quantized

_SCALE_BYTES = 4
_HALF_BYTES = 2


def encode(vectors: Floats) -> list[bytes]:
    """One blob per row of (n, dimensions)."""
    if not len(vectors):
        return []
    values, scales = quantized(Rotation(vectors.shape[1]).forward(vectors))
    return [
        row.tobytes() + scale.tobytes()
        for row, scale in zip(values, scales.astype("<f4"), strict=True)
    ]


def decode(blobs: Sequence[bytes], dimensions: int) -> Floats:
    """Return a row per blob, (n, dimensions), nearly as it was given to `encode`."""
    rows = np.zeros((len(blobs), dimensions), np.float32)
    former = [at for at, blob in enumerate(blobs) if is_former(blob, dimensions)]
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


def is_former(blob: bytes, dimensions: int) -> bool:
    """Whether this was written in float16, by a memd before this one."""
    return len(blob) == _HALF_BYTES * dimensions

"""Random rotation, int8 encoding, and 1-bit codes with exact re-scoring: which rows are nearest to a query vector. Pure.

Rounding to a byte or a sign is accurate only if no value is much larger than the others, and the hashing space is
full of those. A random rotation spreads each over all dimensions (Ailon and Chazelle, 2006). The vault stores a
model's vectors as the index holds them: rotated, a byte a dimension and one scale. Older vaults have float16.

A row's cosines are off by 3e-4 on average and by less than 4e-3 (both in a test), its length stays 1, and equal
vectors stay equal. Its bits, whether each value is above the mean of the first rows, lie row by row, and once more in
planes, one array for every 64 dimensions. Three passes, each finer, slower per row and over fewer rows, find the
nearest:
- coarse: the differing bits in the four planes that hold most of the query; if too many rows remain, in four more
  planes, for the larger half of the query there.
- fine: all differing bits, those of the query's larger third counted three times. It reads few rows, so it reads them
  row by row: two cache lines a row, where planes would be a line each.
- full: products of the bytes.
While rows are few, a query with few dimensions, such as that of some words in the hashing space, needs no bits: the bytes
lie once more dimension by dimension, so its products with all rows read a tenth of them, and a few rows are scored in full.

Recall@50 is .99 at 10,000 and 100,000 rows, at a million .996 where neighbours stand out and .98 in the hashing
space, where they do not. (Bits relative to the sign instead of the mean leave a fifth to twice as many rows to
scan in the hashing space; the choice of planes matters less, up to a quarter.)
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import Rows, widen
from memd.store.filter import Mask

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


BitWords = NDArray[np.uint64]
Distances = NDArray[np.uint8] | NDArray[np.uint16]

# ── Codes of one bit, and re-scoring ─────────────────────────────────────────────────────────────

_FIRST_PLANES = 4
"""Planes of the first coarse distance: 256 bits, whose count fits in a byte but for the query's exact opposite."""
_SECOND_SHARE = 1 / 2
"""Share of the query's values, in the next four planes, that are counted if the first do not suffice."""
_LARGE_SHARE = 1 / 3
"""Share of the query's values that count as large; their bits weigh 1 + 2."""
_COARSE_SPREAD, _FINE_SPREAD = 28, 42
"""Bits by which chance may move a wanted row: 3.5 deviations of the sum of 256 bits, and 1.6 of the sum of all,
of which large ones weigh three. Where neighbours stand out, few rows are that near."""
_SURVIVORS_FACTOR, _SURVIVORS_MIN = 45, 8_000
"""The coarse pass leaves at most this factor times the square root of the visible rows, or the minimum."""
_COUNT_MIN = 200
"""Nearest rows that define what is near; fewer are too few to average out chance."""
_CANDIDATE_BYTES = 80 * 768
"""Bytes of the rows that are scored in full at most, times the cube root of the visible rows. Rows with fewer
dimensions have fewer bits, so more of them are scored, at the same cost."""
_COARSE_ROWS_MIN = 20_000
"""Visible rows; below, the fine pass over all of them is faster."""
_SPARSE_SHARE = 4
"""A query in fewer dimensions than one in this many is compared by these alone, while there are no rows for a coarse pass."""
_SPARE_SHARE = 4
"""One row more for this many wanted is scored in full then, since the bytes of dimensions are rounded, too."""
_ROUNDED_MAX = 0.02
"""The most by which those bytes change a cosine; measured: 0.003."""
_CENTRE_ROWS = 2_048
"""Rows after which the mean is fixed; it is near that of all by then."""
_GATHER_SHARE = 4
"""If a mask leaves less than one in this many rows, they are gathered and no others read."""
_SAMPLE_ROWS = 32_768
"""Rows from which the distance limit is estimated."""
_ALL_BITS = ~np.uint64(0)
_BLOCK_ROWS = 128
"""Rows that are converted to float32 at a time: larger blocks leave the cache and fragment the heap."""
_STEP_ROWS = 32_768
"""Rows of which a plane is compared at a time."""
_FINE_ROWS = 1_024
"""Rows of which all bits are compared at a time."""


@dataclass(frozen=True, slots=True)
class _Plane:
    """The numbers of a query that are compared with one plane."""

    number: int
    signs: np.uint64
    chosen: np.uint64
    """Bits of the coarse pass."""


@dataclass(frozen=True, slots=True)
class _QueryBits:
    """The bits of a query that are compared with those of a row."""

    signs: BitWords
    large: BitWords
    """Bits that weigh three in the fine pass."""
    planes: list[_Plane]
    """Those that hold most of the query first."""


class BinaryCodes:
    """Vectors of length 1; a row that was not put is zeros. Not thread-safe: it has scratch arrays."""

    def __init__(self, dimensions: int, capacity: int) -> None:
        self._last_query: tuple[Floats, Floats] | None = None
        self._rotation = Rotation(dimensions)
        width = self._rotation.width
        self._values = np.zeros((capacity, width), np.int8)
        self._scales = np.zeros(capacity, np.float32)
        self._codes = np.zeros((capacity, width // WORD_BITS), np.uint64)
        self._planes: BitWords | None = None
        """The same bits, (words, capacity), once there were rows enough for a coarse pass."""
        self._by_dimension: tuple[NDArray[np.int8], Floats] | None = None
        """Bytes before the rotation, (dimensions, capacity), and scales, once a query was sparse; never saved."""
        self._centre = np.zeros(width, np.float32)
        self._rows_until_centre = _CENTRE_ROWS
        # Allocated once: fresh pages cost as much as writing to them.
        self._bytes = np.empty((_BLOCK_ROWS, width), np.int8)
        self._floats = np.empty((_BLOCK_ROWS, width), np.float32)
        self._words = np.empty(_STEP_ROWS, np.uint64)
        self._counts = np.empty(_STEP_ROWS, np.uint8)
        self._fine_words = np.empty((_FINE_ROWS, width // WORD_BITS), np.uint64)
        self._fine_counts = np.empty((2, *self._fine_words.shape), np.uint8)
        self._fine_floats = np.empty(self._fine_words.shape, np.float32)
        self._distances = np.empty(0, np.uint8)

    def parts(self, n: int) -> dict[str, NDArray[Any]]:
        """Return the arrays of a snapshot of the first n rows."""
        found: dict[str, NDArray[Any]] = {
            "values": self._values[:n],
            "scales": self._scales[:n],
            "codes": self._codes[:n],
            "centre": self._centre,
        }
        if n > _COARSE_ROWS_MIN:
            found["planes"] = self._ensure_planes()[:, :n]
        return found

    def restore(self, parts: Mapping[str, NDArray[Any]]) -> None:
        """Use the arrays of a snapshot."""
        self._values, self._scales = parts["values"], parts["scales"]
        self._codes, self._planes = parts["codes"], parts.get("planes")
        self._by_dimension = None
        self._centre = parts["centre"][: self._rotation.width]
        self._rows_until_centre = 0 if self._centre.any() else _CENTRE_ROWS

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` rows."""
        self._values, self._scales = (widen(self._values, capacity), widen(self._scales, capacity))
        self._codes = widen(self._codes, capacity)
        self._planes = self._by_dimension = None

    def put(self, rows: Rows, vectors: VectorRows) -> None:
        """Write these rows."""
        for start in range(0, len(vectors), _BLOCK_ROWS):
            rotated = self._rotation.forward(vectors[start : start + _BLOCK_ROWS])
            at = rows[start : start + _BLOCK_ROWS]
            self._values[at], self._scales[at] = quantize(rotated)
            self._write_bits(at)
            if self._by_dimension is not None:
                self._write_dimensions(at, self._by_dimension)
        if self._rows_until_centre > 0:
            self._rows_until_centre -= len(vectors)
            if self._rows_until_centre <= 0:
                self._fix_centre()

    def _write_bits(self, rows: Rows) -> None:
        """Write for each value of a few rows whether it is above the centre."""
        floats = self._values[rows] * self._scales[rows, np.newaxis]
        self._codes[rows] = _pack_bits(floats > self._centre)
        if self._planes is not None:
            self._planes[:, rows] = self._codes[rows].T

    def _fix_centre(self) -> None:
        """Use the mean of the present rows as the centre from now on."""
        rows = np.flatnonzero(self._scales)
        sums = np.zeros(len(self._centre), np.float64)
        for some in _split_blocks(rows):
            sums += self._scales[some] @ self._values[some]
        self._centre = (sums / max(len(rows), 1)).astype(np.float32)
        for some in _split_blocks(rows):
            self._write_bits(some)

    def keep(self, kept: Rows) -> None:
        """Keep only these rows."""
        self._values, self._scales = self._values[kept], self._scales[kept]
        self._codes = self._codes[kept]
        self._planes = self._by_dimension = None

    def vectors(self, rows: Rows) -> Floats:
        """Return these rows, decoded."""
        found = np.empty((len(rows), self._rotation.dimensions), np.float32)
        for first in range(0, len(rows), _BLOCK_ROWS):
            some = rows[first : first + _BLOCK_ROWS]
            found[first : first + len(some)] = self._rotation.back(self._decode(some))
        return found

    def likeness(self, rows: Rows) -> Floats:
        """Return the product of each of these rows with each of them; a rotation changes none."""
        rotated = self._decode(rows)
        return rotated @ rotated.T

    def _decode(self, rows: Rows) -> Floats:
        return self._values[rows] * self._scales[rows, np.newaxis]

    def products(self, query: Floats, rows: Rows) -> Floats:
        """Return the product of each of these rows with the query."""
        wanted = self._rotate_query(query)
        found = np.empty(len(rows), np.float32)
        for first in range(0, len(rows), _BLOCK_ROWS):
            some = rows[first : first + _BLOCK_ROWS]
            values, floats = self._bytes[: len(some)], self._floats[: len(some)]
            # With "clip" numpy checks no bounds and writes to `out` directly.
            np.take(self._values, some, axis=0, out=values, mode="clip")
            np.copyto(floats, values)
            np.dot(floats, wanted, out=found[first : first + len(some)])
        return found * self._scales[rows]

    def _rotate_query(self, query: Floats) -> Floats:
        """Rotate a query as the rows are; cached, because each is used twice."""
        if self._last_query is None or self._last_query[0] is not query:
            self._last_query = (query, self._rotation.forward(query[np.newaxis, :])[0])
        return self._last_query[1]

    def nearest(self, query: Floats, count: int, seen: Mask, floor: float = -1.0) -> Rows:
        """Return rows, ascending, that likely include the `count` nearest of those `seen`, (n,), with cosines from `floor` on."""
        count = max(count, _COUNT_MIN)
        total = int(np.count_nonzero(seen))
        most = max(4 * count, int(_CANDIDATE_BYTES / self._rotation.width * total ** (1 / 3)))
        if total <= 2 * most:
            return np.flatnonzero(seen)
        is_sparse = _SPARSE_SHARE * np.count_nonzero(query) <= len(query)
        if is_sparse and len(self._scales) <= _COARSE_ROWS_MIN:
            return self._nearest_by_dimension(query, count, seen, most, floor)
        bits = self._read_bits(query)
        rows: Rows | None = None
        if total > _COARSE_ROWS_MIN:
            rows = self._find_survivors(bits.planes, count, seen, total)
        elif total < len(seen):
            rows = np.flatnonzero(seen)
        distances = self._fine_distances(bits, total if rows is None else len(rows), rows)
        limit, _ = _distance_limit(distances, count, _FINE_SPREAD, most)
        within = _rows_within(distances, limit, count, most)
        return within if rows is None else rows[within]

    def _nearest_by_dimension(
        self, query: Floats, count: int, seen: Mask, most: int, floor: float
    ) -> Rows:
        """Return the rows that are nearest by the dimensions of a sparse query."""
        if self._by_dimension is None:
            shape = (self._rotation.dimensions, len(self._scales))
            self._by_dimension = np.zeros(shape, np.int8), np.zeros(len(self._scales), np.float32)
            for rows in _split_blocks(np.arange(len(seen))):
                self._write_dimensions(rows, self._by_dimension)
        values, scales = self._by_dimension
        touched = np.flatnonzero(query)
        wanted = query[touched]
        far = np.empty(len(seen), np.float32)
        for first in range(0, len(seen), _FINE_ROWS):
            some = slice(first, min(first + _FINE_ROWS, len(seen)))
            far[some] = wanted @ values[touched, some].astype(np.float32)
        far *= -scales[: len(seen)]
        far[~seen] = np.inf
        count += count // _SPARE_SHARE
        # Most often few are near enough, and none has to be sorted out.
        if len(close := np.flatnonzero(far <= _ROUNDED_MAX - floor)) <= count:
            return close
        return _rows_within(far, np.partition(far, count - 1)[count - 1], count, most)

    def _write_dimensions(self, rows: Rows, at: tuple[NDArray[np.int8], Floats]) -> None:
        values, at[1][rows] = quantize(self.vectors(rows))
        at[0][:, rows] = values.T

    def _ensure_planes(self) -> BitWords:
        if self._planes is None:
            self._planes = np.ascontiguousarray(self._codes.T)
        return self._planes

    def _read_bits(self, query: Floats) -> _QueryBits:
        """Return what the query compares."""
        wanted = self._rotate_query(query)
        size = np.abs(wanted)
        signs = _pack_bits(wanted > 0)
        large = _pack_bits(size > _share_threshold(size, _LARGE_SHARE))
        by_plane = size.reshape(-1, WORD_BITS)
        order = np.argsort(-np.square(by_plane).sum(axis=1), kind="stable")
        second = order[_FIRST_PLANES : 2 * _FIRST_PLANES]
        chosen = np.full(len(signs), ~np.uint64(0))
        if len(second):
            chosen[second] = _pack_bits(
                by_plane[second] > _share_threshold(by_plane[second], _SECOND_SHARE)
            ).ravel()
        planes = [_Plane(n, signs[n], chosen[n]) for n in order.tolist()]
        return _QueryBits(signs, large, planes)

    def _find_survivors(self, planes: list[_Plane], count: int, seen: Mask, total: int) -> Rows:
        """Return the visible rows whose coarse distance is small."""
        few = _GATHER_SHARE * total < len(seen)
        rows = np.flatnonzero(seen) if few else None
        n = total if few else len(seen)
        if len(self._distances) < n:
            self._distances = np.empty(max(n, len(self._scales)), np.uint8)
        distances = self._distances[:n]
        hidden = None if few or total == n else seen.view(np.uint8) - np.uint8(1)
        most = max(_SURVIVORS_MIN, int(_SURVIVORS_FACTOR * total**0.5))
        distances[:] = 0
        limit, is_less = 0, True
        for some in (planes[:_FIRST_PLANES], planes[_FIRST_PLANES : 2 * _FIRST_PLANES]):
            if is_less:
                self._add_coarse(distances, some, rows)
                if hidden is not None:
                    distances |= hidden
                limit, is_less = _distance_limit(distances, count, _COARSE_SPREAD, most)
        within = _rows_within(distances, limit, count, most)
        return within if rows is None else rows[within]

    def _add_coarse(
        self, distances: NDArray[np.uint8], planes: list[_Plane], rows: Rows | None
    ) -> None:
        """Add the number of differing chosen bits, of these rows or of the first ones."""
        columns = self._ensure_planes()
        for first in range(0, len(distances), _STEP_ROWS):
            found = distances[first : first + _STEP_ROWS]
            words, counts = self._words[: len(found)], self._counts[: len(found)]
            for plane in planes:
                column = columns[plane.number]
                if rows is None:
                    np.bitwise_xor(column[first : first + len(words)], plane.signs, out=words)
                else:
                    np.take(column, rows[first : first + _STEP_ROWS], out=words, mode="clip")
                    np.bitwise_xor(words, plane.signs, out=words)
                if plane.chosen != _ALL_BITS:
                    np.bitwise_and(words, plane.chosen, out=words)
                np.bitwise_count(words, out=counts)
                np.add(found, counts, out=found)

    def _fine_distances(self, bits: _QueryBits, n: int, rows: Rows | None) -> NDArray[np.uint16]:
        """Count differing bits, large ones three times, of these rows or of the first n."""
        distances = np.empty(n, np.uint16)
        ones = np.ones(len(bits.signs), np.float32)
        # Repeated for each row: to combine a row of a dozen words with one of them takes three times as long.
        signs, large = (np.tile(one, (_FINE_ROWS, 1)) for one in (bits.signs, bits.large))
        for first in range(0, n, _FINE_ROWS):
            found = distances[first : first + _FINE_ROWS]
            size = len(found)
            words, floats = self._fine_words[:size], self._fine_floats[:size]
            once, more = self._fine_counts[:, :size]
            if rows is None:
                np.bitwise_xor(self._codes[first : first + size], signs[:size], out=words)
            else:
                np.take(self._codes, rows[first : first + size], axis=0, out=words, mode="clip")
                np.bitwise_xor(words, signs[:size], out=words)
            np.bitwise_count(words, out=once)
            np.bitwise_and(words, large[:size], out=words)
            np.bitwise_count(words, out=more)
            np.add(more, more, out=more)
            np.add(once, more, out=once)
            # A product with ones adds bytes up several times as fast as `sum` along so short an axis.
            np.copyto(floats, once)
            found[:] = np.dot(floats, ones)
        return distances


def _rows_within(
    distances: Distances | Floats, limit: int | np.float32, count: int, most: int
) -> Rows:
    """Return the rows with distances up to `limit`, ascending: at least `count`, at most `most` of them.

    Of those that tie at the limit the last: a thousand copies would be a thousand products.
    """
    within = np.flatnonzero(distances <= limit)
    if len(within) < count:  # those in the sample were not like the others
        limit = int(np.partition(distances, count - 1)[count - 1])
        within = np.flatnonzero(distances <= limit)
    if len(within) > most:
        at_limit = np.flatnonzero(distances[within] == limit)
        within = np.delete(within, at_limit[: len(within) - most])
    return within


def _distance_limit(distances: Distances, count: int, spread: int, most: int) -> tuple[int, bool]:
    """Return the largest distance to accept, and whether that is less than it should be."""
    step = max(len(distances) // _SAMPLE_ROWS, 1)
    # Counting is quicker than sorting.
    reached = np.cumsum(np.bincount(distances[::step]))
    wanted = (max(count // step, 1), max(most // step, 1))
    near, far = np.searchsorted(reached, wanted).tolist()
    return min(near + spread, far), near + spread > far


def _share_threshold(values: Floats, share: float) -> np.float32:
    """Return the value above which this share of the values lies."""
    place = int(values.size * (1 - share))
    return np.float32(np.partition(values.ravel(), place)[place])


def _split_blocks(rows: Rows) -> Iterator[Rows]:
    for first in range(0, len(rows), _BLOCK_ROWS):
        yield rows[first : first + _BLOCK_ROWS]


def _pack_bits(bits: Mask) -> BitWords:
    """Pack 64 bits into a word."""
    return np.packbits(bits, axis=-1).view(np.uint64)

"""Postings as the vault keeps them: two bytes each instead of six, unpacked a thousand passages at a time. Pure.

The numbers of a passage's terms ascend, so each is told as the distance from the one before. A token is
that distance times four plus a code: the word stands once in the body, once in the title, once in both,
or otherwise; it is written seven bits to a byte, the lowest first, the last byte below 128. What stands
otherwise has its two counts, a byte each, at the end; how many of those there are stands in front, u2.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

POSTING = np.dtype([("term", "<u4"), ("title", "u1"), ("body", "u1")])
"""One posting, unpacked."""
_TITLE = np.array([0, 1, 1, 0], np.uint8)
_BODY = np.array([1, 0, 1, 0], np.uint8)
_OTHERWISE = 3
_HEAD = 2
_BITS = 7
_MORE = 1 << _BITS

Postings = NDArray[np.void]
Numbers = NDArray[np.int64]


def pack(postings: Postings, sizes: Sequence[int]) -> list[bytes]:
    """One blob per passage; `postings`, of dtype POSTING, are those of one passage after the other.

    `sizes` says how many each has. The order of postings within a passage is lost.
    """
    counts = np.asarray(sizes, np.int64)
    owner = np.repeat(np.arange(len(counts)), counts)
    postings = postings[np.lexsort((postings["term"], owner))]
    terms = postings["term"].astype(np.int64)
    before = np.concatenate(([0], terms[:-1])) * np.concatenate(
        ([False], owner[1:] == owner[:-1])
    )
    codes = _codes(postings)
    written, ends = _written(((terms - before) << 2) | codes)
    odd = np.flatnonzero(codes == _OTHERWISE)
    tails = np.stack((postings["title"][odd], postings["body"][odd]), axis=1)
    stops = np.concatenate(([0], ends))[np.concatenate(([0], np.cumsum(counts)))].tolist()
    odds = np.searchsorted(owner[odd], np.arange(len(counts) + 1)).tolist()
    return [
        (odds[at + 1] - odds[at]).to_bytes(_HEAD, "little")
        + written[stops[at] : stops[at + 1]].tobytes()
        + tails[odds[at] : odds[at + 1]].tobytes()
        for at in range(len(counts))
    ]


def _codes(postings: Postings) -> Numbers:
    title, body = postings["title"], postings["body"]
    both = 2 * title.astype(np.int64) + body
    return np.where(
        (title > 1) | (body > 1) | (both == 0), _OTHERWISE, np.array([0, 0, 1, 2])[both % 4]
    )


def _written(tokens: Numbers) -> tuple[NDArray[np.uint8], Numbers]:
    """The tokens as bytes, and where each ends."""
    lengths = np.ones(len(tokens), np.int64)
    for step in range(1, 5):
        lengths += tokens >> (_BITS * step) > 0
    ends = np.cumsum(lengths)
    found = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    for step in range(5):
        those = np.flatnonzero(lengths > step)
        low = (tokens[those] >> (_BITS * step)) & (_MORE - 1)
        found[(ends - lengths)[those] + step] = low | np.where(
            lengths[those] > step + 1, _MORE, 0
        )
    return found, ends


def unpack(blobs: Sequence[bytes]) -> tuple[Postings, Numbers]:
    """The postings of these passages, one after the other, and how many each has.

    Raises ValueError if they cannot be read.
    """
    odd = [int.from_bytes(blob[:_HEAD], "little") for blob in blobs]
    tokens, tails = [], []
    for blob, count in zip(blobs, odd, strict=True):
        stop = len(blob) - 2 * count
        if stop < _HEAD:
            raise ValueError("these are no postings")
        tokens.append(blob[_HEAD:stop])
        tails.append(blob[stop:])
    written = np.frombuffer(b"".join(tokens), np.uint8)
    ends = np.flatnonzero(written < _MORE)
    borders = np.cumsum([len(part) for part in tokens], dtype=np.int64)
    stops = np.searchsorted(ends, borders)
    sizes = np.diff(stops, prepend=0)
    found = np.zeros(len(ends), POSTING)
    if len(ends):
        values = _read(written, ends)
        sums = np.cumsum(values >> 2)
        firsts = stops - sizes
        before = np.where(firsts > 0, sums[firsts - 1], 0)
        codes = values & _OTHERWISE
        found["term"] = sums - np.repeat(before, sizes)
        found["title"], found["body"] = _TITLE[codes], _BODY[codes]
        counts = np.frombuffer(b"".join(tails), np.uint8).reshape(-1, 2)
        other = np.flatnonzero(codes == _OTHERWISE)
        found["title"][other], found["body"][other] = counts[:, 0], counts[:, 1]
    return found, sizes


def _read(written: NDArray[np.uint8], ends: Numbers) -> Numbers:
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    values = (written[starts] & (_MORE - 1)).astype(np.int64)
    for step in range(1, int(lengths.max())):
        those = np.flatnonzero(lengths > step)
        low = (written[starts[those] + step] & (_MORE - 1)).astype(np.int64)
        values[those] |= low << (_BITS * step)
    return values

"""Whether a write-ahead log holds everything that was committed into it.

SQLite reads a log up to the first frame that does not add up, and takes that for its end: right after a
power cut, where only what nobody was promised is torn, and silent where a disk has lost what was. One
transaction is synced before the next begins, so of a log that broke in power at most the last one is
torn. Two that are whole and follow each other behind the break, or a beginning that is no log's, are
damage. Only where nobody writes: before a vault is opened. Not here: what can be saved (salvage.py).
"""

import functools
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memd.errors import VaultCorrupt

_HEADER = 32
_FRAME = 24
_MAGIC = 0x377F0682
"""The last bit says in which order of bytes the sums are made."""
_PAGES = range(512, 65_537)
_LOOKED_AT_MAX = 64 * 1024 * 1024
"""Bytes. A log is folded back at a sixteenth of that, unless a reader holds it up."""
_LOW = 0xFFFFFFFF
_Words = npt.NDArray[np.uint32]


def check(vault: str) -> None:
    """Raise VaultCorrupt if committed transactions in the log of a vault cannot be read any more."""
    log = Path(vault + "-wal")
    if not log.exists() or log.stat().st_size > _LOOKED_AT_MAX:
        return
    held = log.read_bytes()
    if len(held) <= _HEADER or not any(held[:_HEADER]):
        return  # nothing was ever committed into it
    lost = _lost(held)
    if lost:
        raise VaultCorrupt(f"{log} is damaged: {lost}. Nothing was changed.")


def _lost(held: bytes) -> str:
    """Say what is lost of a log; empty if nothing is."""
    words = np.frombuffer(held[: len(held) & ~3], ">u4").astype(np.uint32)
    magic, page = int(words[0]), int(words[2])
    order = ">u4" if magic & 1 else "<u4"
    begun = np.frombuffer(held[:24], order).astype(np.uint32)
    own = _sums(begun[None, :]) + _stepped(np.zeros((1, 2), np.uint32), 3)
    if magic & ~1 != _MAGIC or page not in _PAGES or (own[0] != words[6:8]).any():
        return "its beginning is not that of a log"
    size = _FRAME + page
    count = (len(held) - _HEADER) // size
    told = words[_HEADER // 4 : (_HEADER + count * size) // 4].reshape(count, size // 4)
    body = np.frombuffer(held, order, count * size // 4, _HEADER).astype(np.uint32)
    body = body.reshape(count, size // 4)
    own = _sums(np.concatenate([body[:, :2], body[:, 6:]], axis=1))
    before = np.concatenate([words[None, 6:8], told[:-1, 4:6]])
    fits = (own + _stepped(before, (8 + page) // 8) == told[:, 4:6]).all(axis=1)
    # Frames of an earlier round of the log have another salt: they are old, and not lost.
    fits &= (told[:, 2:4] == words[4:6]).all(axis=1)
    behind = _behind(fits.tolist(), (told[:, 1] != 0).tolist())
    return f"{behind} transactions behind a break cannot be read" if behind else ""


def _behind(fits: list[bool], ends: list[bool]) -> int:
    """How many whole transactions lie behind the first frame that does not fit to the one before it.

    What commits that failed have left behind is there, too: runs of frames that end one transaction.
    """
    if all(fits):
        return 0
    found = run = 0
    start = fits.index(False)
    for one, is_end in zip(fits[start:], ends[start:], strict=True):
        run = run + is_end if one else 0
        found += 2 if run == 2 and is_end else int(run > 2 and is_end)  # noqa: PLR2004  # see above
    return found


def _stepped(sums: _Words, pairs: int) -> _Words:
    """Running sums, shape (rows, 2), after a row of so many pairs of zeros."""
    a, b, c, d = _power(pairs)
    step = np.array([[a, c], [b, d]], np.uint32)
    return sums @ step


def _sums(words: _Words) -> _Words:
    """What each row adds to SQLite's running sums, begun at zero; shape (rows, 2)."""
    return words @ _weights(words.shape[1] // 2)


@functools.cache
def _weights(pairs: int) -> _Words:
    """How much each word of a row counts in either sum."""
    # s1 += a + s2; s2 += b + s1: so a pair counts as the power of that step that is yet to come.
    weights = np.empty((2 * pairs, 2), np.uint32)
    step = (1, 1, 1, 2)
    now = (1, 0, 0, 1)
    for number in reversed(range(pairs)):
        a, b, c, d = now
        weights[2 * number] = ((a + b) & _LOW, (c + d) & _LOW)
        weights[2 * number + 1] = (b, d)
        now = _product(now, step)
    return weights


@functools.cache
def _power(pairs: int) -> tuple[int, int, int, int]:
    now = (1, 0, 0, 1)
    for _ in range(pairs):
        now = _product(now, (1, 1, 1, 2))
    return now


def _product(
    m: tuple[int, int, int, int], n: tuple[int, int, int, int]
) -> tuple[int, int, int, int]:
    return (
        (m[0] * n[0] + m[1] * n[2]) & _LOW,
        (m[0] * n[1] + m[1] * n[3]) & _LOW,
        (m[2] * n[0] + m[3] * n[2]) & _LOW,
        (m[2] * n[1] + m[3] * n[3]) & _LOW,
    )

"""Pages of files that were read and are not ours to keep: given back to the system at rest.

A page of a private map that was only read is the file's own: letting go of it loses nothing, and whoever
reads it again finds it in the system's cache. A page that was written to is ours alone and stays. Linux
tells the two apart (/proc/self/pagemap); elsewhere nothing is done. What a start has read of libraries
is a quarter of an idle daemon. Not here: what Python itself has freed (heap.py).
"""

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_PAGEMAP = "/proc/self/pagemap"
_MAPS = Path("/proc/self/maps")
_ENTRY = 8
"""Bytes a page."""
_PRESENT, _SWAPPED, _OF_A_FILE = np.uint64(1 << 63), np.uint64(1 << 62), np.uint64(1 << 61)
_AT_ONCE = 4_096
"""Pages: for so many, writers wait."""
_UNWRITABLE = ("r--p", "r-xp")
_DONT_NEED = 4

Lock = AbstractContextManager[object]


def give_back(mapped: mmap.mmap, lock: Lock) -> int:
    """Let go of the pages of a map that are a file's own; how many bytes that were.

    Whoever writes to the map holds the lock, which is taken for a moment again and again.
    """
    address = int(np.frombuffer(mapped, np.uint8).ctypes.data)
    return _give_back([(address, len(mapped))], lock)


def give_back_code() -> int:
    """Let go of what was read of programs and libraries; how many bytes that were."""
    with suppress(OSError):
        return _give_back(_unwritable(), nullcontext())
    return 0


def _unwritable() -> Iterator[tuple[int, int]]:
    """Address and length of every map of a file that nobody can write to."""
    for line in _MAPS.read_text(encoding="utf-8").splitlines():
        where, kind, *_, name = line.split(maxsplit=5)
        if kind in _UNWRITABLE and name.startswith("/"):
            start, _, stop = where.partition("-")
            yield int(start, 16), int(stop, 16) - int(start, 16)


def _give_back(maps: Iterator[tuple[int, int]] | list[tuple[int, int]], lock: Lock) -> int:
    given = 0
    try:
        handle = os.open(_PAGEMAP, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        for address, length in maps:
            for first in range(0, length, _AT_ONCE * mmap.PAGESIZE):
                pages = min(_AT_ONCE, -(-(length - first) // mmap.PAGESIZE))
                with lock:
                    given += _drop(address + first, pages, handle)
    finally:
        os.close(handle)
    return given


def _drop(address: int, pages: int, handle: int) -> int:
    told = os.pread(handle, pages * _ENTRY, address // mmap.PAGESIZE * _ENTRY)
    flags = np.frombuffer(told, np.uint64)
    if len(flags) < pages:
        return 0
    there = (flags & _PRESENT) != 0
    ours = ((flags & _OF_A_FILE) == 0) & (there | ((flags & _SWAPPED) != 0))
    for start, stop in _runs(there & ~ours):
        at, size = address + start * mmap.PAGESIZE, (stop - start) * mmap.PAGESIZE
        _LIBC.madvise(ctypes.c_void_p(at), ctypes.c_size_t(size), _DONT_NEED)
    return int(np.count_nonzero(there & ~ours)) * mmap.PAGESIZE


_LIBC = ctypes.CDLL(None)


def _runs(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where the mask is true: [start, stop)."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))

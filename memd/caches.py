"""Memory that is given back: bounded caches, emptied together when the work is done, and the heap of glibc.

A turn is distilled by many rules, and several of them split the same sentences, parse the same commands and read the
same outputs. What is kept makes no difference but to the time.

Left to itself glibc gives every thread a heap of its own, and once a big array was freed it takes the next one of that
size from a heap, too, where it leaves a hole: an index of 25 MB costs 60 that way. Other C libraries do not know these
calls, and need none of them.
"""

import contextlib
import ctypes
import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

Given = ParamSpec("Given")
Result = TypeVar("Result")

_emptying: list[Callable[[], None]] = []


def cached(maxsize: int) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """`functools.lru_cache(maxsize)` that keeps the signature, and that `clear_caches` empties."""

    def decorate(work: Callable[Given, Result]) -> Callable[Given, Result]:
        kept = functools.lru_cache(maxsize)(work)
        _emptying.append(kept.cache_clear)
        return cast("Callable[Given, Result]", kept)

    return decorate


def clear_caches() -> None:
    """Empty the caches, which hold megabytes after much text."""
    for empty in _emptying:
        empty()


_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_ARENAS = 2
_BIG = 1024 * 1024
"""Bytes. What is bigger is mapped apart, and gone when it is freed."""


def limit_arenas() -> None:
    """Hold together what threads allocate. For the start of a process, before its first thread."""
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_ARENA_MAX, _ARENAS)
        mallopt(_MMAP_THRESHOLD, _BIG)
        mallopt(_TRIM_THRESHOLD, _BIG)


def trim_heap() -> None:
    """Return to the system what was used and freed. Takes milliseconds, or nothing."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)

"""Bounded caches of pure functions, which are emptied together when the work is done. Pure.

A turn is distilled by many rules, and several of them split the same sentences, parse the same commands and read the
same outputs. What is kept makes no difference but to the time.
"""

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

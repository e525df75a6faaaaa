"""What is left of an event once its memories are old: what they cite, and what tells what it was. Pure.

What a person or an agent said stays whole: prompts, closing messages, compaction summaries. Of what a
tool was given and answered, short values and the beginnings of telling ones stay. Compacting twice is
compacting once. Not here: which events are old enough (retention.py).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memd.models import EventKind

SPOKEN = frozenset(
    {EventKind.PROMPT, EventKind.STOP, EventKind.SUBAGENT_STOP, EventKind.COMPACT_END}
)
"""Kinds that are never compacted."""
QUOTES = "cited"
"""The key under which what memories cite is kept."""
_SHORT = 200
_TELLING = frozenset(
    {"command", "description", "error", "file_path", "message", "pattern", "url"}
)
_TELLING_CHARACTERS = 400
_DEPTH = 3


def compact(payload: Mapping[str, Any], quotes: Sequence[str]) -> dict[str, Any]:
    """The payload cut down, with those quotes that would else be lost from it."""
    kept = {
        name: short
        for name, value in payload.items()
        if (short := _shortened(name, value, _DEPTH)) is not None
    }
    had = list(payload.get(QUOTES, ()))
    whole = "\n".join(_texts(kept))
    cited = [quote for quote in dict.fromkeys((*had, *quotes)) if quote and quote not in whole]
    if cited:
        kept[QUOTES] = cited
    return kept


def _shortened(name: str, value: Any, depth: int) -> Any:
    """The value if it is short; None if nothing of it stays."""
    if name == QUOTES:
        return None
    if isinstance(value, str):
        if name in _TELLING:
            return value[:_TELLING_CHARACTERS]
        return value if len(value) <= _SHORT else None
    if isinstance(value, Mapping) and depth:
        inner = {
            key: short
            for key, one in value.items()
            if (short := _shortened(key, one, depth - 1)) is not None
        }
        return inner or None
    return value if isinstance(value, bool | int | float) else None


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for inner in value.values() for text in _texts(inner)]
    return []

"""Making results fit: how many bytes a value takes as compact JSON, and cutting text and lists. Pure."""

import json
from collections.abc import Iterable
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from memd.text import one_line

_ELLIPSIS_BYTES = 3


def compact(value: object) -> str:
    """The value as compact JSON, as clients hand it to a model. What JSON cannot say is null."""
    try:
        return to_json(value, inf_nan_mode="null").decode()
    except PydanticSerializationError:  # half of a surrogate pair
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def quoted(value: str) -> int:
    """Bytes of a text as JSON."""
    if value.isascii() and value.isprintable() and '"' not in value and "\\" not in value:
        return len(value) + 2
    return size(value)


def size(value: object) -> int:
    """Bytes of the compact JSON, or a few more. Pydantic's writer: a page is measured seventy times."""
    try:
        return len(to_json(value))
    except PydanticSerializationError:
        return len(compact(value).encode("utf-8", "replace"))  # half of a surrogate pair


def text(value: str, room: int) -> str:
    """The text on one line in at most `room` bytes of JSON, quotes included; empty if nothing fits."""
    if room < 2 + _ELLIPSIS_BYTES:
        return ""
    # A character takes a byte at least, so this is never cut too short at first.
    limit = room - 2
    shown = one_line(value[: 2 * limit], limit)
    while (over := quoted(shown) - room) > 0:
        if limit == 1:
            return ""
        limit = max(1, min(limit, len(shown)) - max(1, over // 6))
        shown = one_line(value[: 2 * limit], limit)
    return shown


def head(value: str, room: int) -> str:
    """The beginning of a text as it is, lines and all, in at most `room` bytes of JSON."""
    if size(value) <= room:
        return value
    low, high = 0, min(len(value), max(0, room))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(value[:middle] + "…") <= room else (low, middle - 1)
    return value[:low] + "…" if low else ""


def items(values: Iterable[Any], room: int) -> tuple[list[Any], int]:
    """As many values from the beginning as fit into a list of `room` bytes, and how many did not."""
    kept: list[Any] = []
    left_out = 0
    used = 2
    for value in values:
        used += size(value) + 1
        if left_out or used > room:
            left_out += 1
        else:
            kept.append(value)
    return kept, left_out


def number(value: float, digits: int = 4) -> float | int:
    """Rounded to so many significant digits; whole numbers without a point."""
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded  # noqa: PLR2004

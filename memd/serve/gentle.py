"""JSON from a long line, without holding the others up meanwhile. Pure.

The usual parser is one call in C: while it reads sixteen megabytes, no other thread runs, and lists
of lists grow to twenty times their line. Here each value is a step, so that other threads come in
between; who calls may pause now and then; and depth and number of values have limits. Long texts, which
is what honest long lines consist of, are as quick as ever.
"""

import re
from collections.abc import Callable
from json import decoder, scanner
from typing import Any

VALUES_MAX = 100_000
"""Values in one message."""
_STEP = 500
"""Values between two pauses."""
_PIECE = 16_384
"""Characters that are looked through at a time."""
_LONE = re.compile("[\ud800-\udfff]")


class TooDeep(ValueError):
    """More levels than allowed."""


class TooMany(ValueError):
    """More values than `VALUES_MAX`."""


def parse(
    text: str,
    *,
    depth_max: int,
    pause: Callable[[], None],
    parse_float: Callable[[str], float],
    parse_constant: Callable[[str], Any],
) -> Any:
    """The value of a JSON text, with U+FFFD for lone surrogates. TooDeep, TooMany, or a ValueError."""
    made = _Decoder(depth_max, pause, parse_float, parse_constant)
    made.is_escaped = "\\u" in text
    return made.decode(text)


class _Decoder(decoder.JSONDecoder):
    """The standard decoder, made of its own parts in Python, which count as they go."""

    def __init__(
        self,
        depth_max: int,
        pause: Callable[[], None],
        parse_float: Callable[[str], float],
        parse_constant: Callable[[str], Any],
    ) -> None:
        super().__init__(
            parse_float=parse_float,
            parse_constant=parse_constant,
            object_pairs_hook=self._pairs,
        )
        self.is_escaped = False
        self._left = depth_max
        self._count = 0
        self._pause = pause
        self.parse_array = self._array
        self.parse_object = self._object
        self.parse_string = self._string
        self.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]

    def _array(self, place: Any, scan_once: Any) -> Any:
        with self:
            return decoder.JSONArray(place, self._counting(scan_once))  # type: ignore[attr-defined]

    def _object(self, place: Any, strict: Any, scan_once: Any, *hooks: Any) -> Any:
        with self:
            return decoder.JSONObject(place, strict, self._counting(scan_once), *hooks)  # type: ignore[attr-defined]

    def _string(self, text: str, end: int, strict: Any) -> tuple[str, int]:
        value, end = decoder.scanstring(text, end, strict)  # type: ignore[attr-defined]
        return (self._whole(value) if self.is_escaped else value), end

    def _pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if not self.is_escaped:
            return dict(pairs)
        return {self._whole(key): value for key, value in pairs}

    def _whole(self, text: str) -> str:
        # Pairs have become one character by now, so each that is left is a lone one.
        pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
        for at, piece in enumerate(pieces):
            pieces[at], count = _LONE.subn("\ufffd", piece)
            if count > _STEP:
                self._pause()
        return "".join(pieces)

    def _counting(self, scan_once: Any) -> Any:
        def scan(text: str, index: int) -> Any:
            self._count += 1
            if self._count > VALUES_MAX:
                raise TooMany
            if not self._count % _STEP:
                self._pause()
            return scan_once(text, index)

        return scan

    def __enter__(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TooDeep

    def __exit__(self, *_: object) -> None:
        self._left += 1

"""redact(), redact_value(): no secret reaches the disk. Pure.

Four rules in a row: multi-line blocks (`blocks`), secrets known by their form (`tokens`, `formats`), values assigned
to secret names (`assignments`), random words (`entropy`). A finding becomes `[REDACTED:<name>]`, and the result is
redacted again until it no longer changes, so redacting twice equals redacting once. Standard library only: the
hook runs this when no daemon answers.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from memd.capture.redact.assignments import (
    is_reference,
    is_working_directory,
    redact_assignments,
    secret_rule,
)
from memd.capture.redact.blocks import redact_blocks
from memd.capture.redact.entropy import has_random_words, redact_words
from memd.capture.redact.formats import FORMATS
from memd.capture.redact.tokens import ISSUERS, PLACEHOLDER, TOKENS, Pattern, compile_regex

__all__ = ["PATTERNS", "redact", "redact_blocks", "redact_value"]

PATTERNS: tuple[Pattern, ...] = (*TOKENS, *ISSUERS, *FORMATS)
"""Every secret known by its form, in the order in which they are tried."""

_Needles = tuple[tuple[str, tuple[int, ...]], ...]


def _by_needle(members: Iterable[int]) -> _Needles:
    """Return each needle once, with the indexes of its patterns in `PATTERNS`."""
    table: dict[str, tuple[int, ...]] = {}
    for n in members:
        for needle in PATTERNS[n].needles:
            table[needle] = (*table.get(needle, ()), n)
    return tuple(table.items())


def _by_gate() -> tuple[tuple[int, str, _Needles], ...]:
    """Group the folded patterns as (run, gate, needles): both checks cost less than the search for a needle."""
    groups: dict[tuple[int, str], list[int]] = {}
    for n, pattern in enumerate(PATTERNS):
        if pattern.folded:
            groups.setdefault((pattern.run, pattern.gate), []).append(n)
    return tuple((run, gate, _by_needle(members)) for (run, gate), members in groups.items())


_GATED_NEEDLES = _by_gate()
_NEEDLES = _by_needle(n for n, pattern in enumerate(PATTERNS) if not pattern.folded)
_NEEDLELESS = [n for n, p in enumerate(PATTERNS) if not p.needles]
_SHORT_NAME = re.compile(r"[\w./-]{0,19}", re.ASCII)
_LONG_CHARACTERS_MIN = 20
_LONG_RUN = re.compile(r"[A-Za-z0-9_+/.=~:%-]{20,}", re.ASCII)
_CAPITAL_OR_DIGIT = re.compile(r"[A-Z0-9]", re.ASCII)
_HARMLESS_CACHED_MAX = 4_096
_HARMLESS_CHARACTERS = 200
_PASSES_MAX = 32
"""Nearly every text takes two; adjacent secrets of different kinds take one each."""
_DEPTH_MAX = 150
_PLACEHOLDER_CHARACTERS_MAX = 64
_RedactText = Callable[[str], str]

_harmless: set[str] = set()
"""Long words without a secret, because paths and names recur. A secret is never cached."""


def redact(text: str, *, entropy: bool = True) -> str:
    """Replace every secret by `[REDACTED:<pattern-name>]`; idempotent.

    `entropy=False` leaves random words without a name or a known form.
    """
    # Most keys of an object are too short for a token or an assigned value.
    if _SHORT_NAME.fullmatch(text):
        return text
    for _ in range(_PASSES_MAX):
        redacted = _redact_once(text, entropy=entropy)
        if redacted == text:
            break
        text = redacted
    return text


def redact_value(value: Any, *, entropy: bool = True) -> Any:
    """Redact the strings and keys of a JSON value; `entropy` as in `redact`.

    A string (or the strings of a list) under a secret name is redacted whole, unless it only refers to a
    secret. Numbers, booleans and None stay. Values nested deeper than 150 levels are redacted.
    """
    clean = redact if entropy else functools.partial(redact, entropy=False)
    return _redact_value(value, _DEPTH_MAX, clean)


def _redact_once(text: str, *, entropy: bool) -> str:
    text = redact_blocks(text)
    lowered = text.lower()
    long_words = _find_long_words(text)
    fresh = [word for word in long_words if word not in _harmless]
    longest = max(map(len, long_words), default=0)
    candidates = {*_match_words(fresh), *_match_text(lowered, longest)}
    for n in sorted(candidates):
        text = _replace_secrets(text, PATTERNS[n])
    text = redact_assignments(text, text.lower())
    return redact_words(text) if entropy and has_random_words(fresh) else text


def _find_long_words(text: str) -> list[str]:
    """Return the runs of token characters that are long enough for a token and not all small letters.

    Most of a text is short words; splitting it first costs a third of searching it for runs.
    """
    return [
        run
        for word in text.split()
        if len(word) >= _LONG_CHARACTERS_MIN
        for run in _LONG_RUN.findall(word)
        if _CAPITAL_OR_DIGIT.search(run)
    ]


def _match_text(lowered: str, longest: int) -> list[int]:
    """Return the indexes of the folded patterns with a needle in the text."""
    return [
        n
        for run, gate, needles in _GATED_NEEDLES
        if run <= longest and gate in lowered
        for needle, ns in needles
        if needle in lowered
        for n in ns
    ]


def _match_words(words: list[str]) -> list[int]:
    """Return the indexes of the other patterns with a needle in one of these words; cache words without any."""
    if not words:
        return []
    joined = "\n".join(words)
    found = [n for needle, ns in _NEEDLES if needle in joined for n in ns]
    found += [n for n in _NEEDLELESS if PATTERNS[n].compiled().search(joined)]
    if not found and not has_random_words(words):
        if len(_harmless) > _HARMLESS_CACHED_MAX:
            _harmless.clear()
        _harmless.update(word for word in words if len(word) <= _HARMLESS_CHARACTERS)
    return found


def _find_secrets(text: str, pattern: Pattern) -> Iterator[tuple[int, int]]:
    """Yield the spans that a pattern matches; one that begins with a needle is tried only there."""
    regex = pattern.compiled()
    lowered = text.lower() if pattern.begins else ""
    done = 0
    if len(lowered) != len(text):  # a few letters grow when lowered
        while found := regex.search(text, done):
            for span in _find_adjacent(text, regex, found):
                yield span
                done = span[1]
            done = max(done, found.end(), found.start() + 1)
        return
    for at in sorted({at for needle in pattern.needles for at in _find_all(needle, lowered)}):
        if at >= done and (found := regex.match(text, at)):
            for span in _find_adjacent(text, regex, found):
                yield span
                done = span[1]
            done = max(done, found.end())


def _find_adjacent(
    text: str, regex: re.Pattern[str], first: re.Match[str]
) -> Iterator[tuple[int, int]]:
    """Yield the span of a secret, and of each that begins where the previous one ends.

    A pattern needs an edge before a secret; without this every pass would find one of a hundred in a row.
    """
    at, found = 0, first
    while True:
        start, end = found.span(found.lastindex or 0)
        yield at + start, at + end
        is_last = end < found.end() or not text[at + end : at + end + 1].isalnum()
        again = None if is_last else regex.match(text[at + end :])
        if again is None or not again.end(again.lastindex or 0):
            return
        at, found = at + end, again


def _find_all(needle: str, lowered: str) -> Iterator[int]:
    at = lowered.find(needle)
    while at >= 0:
        yield at
        at = lowered.find(needle, at + 1)


def _replace_secrets(text: str, pattern: Pattern) -> str:
    kept: list[str] = []
    done = 0
    for found in _find_secrets(text, pattern):
        start, end = _widen_to_placeholder(text, *found)
        secret = text[start:end]
        if not compile_regex(PLACEHOLDER).sub("", secret) or (
            pattern.references and is_reference(secret)
        ):
            continue
        kept += [text[done:start], f"[REDACTED:{pattern.name}]"]
        done = end
    return "".join((*kept, text[done:])) if kept else text


def _widen_to_placeholder(text: str, start: int, end: int) -> tuple[int, int]:
    """Exclude part of a placeholder at the span's beginning, and include all of one at its end."""
    opened = text.rfind("[REDACTED:", max(0, start - _PLACEHOLDER_CHARACTERS_MAX), start + 9)
    if 0 <= opened < start and (before := compile_regex(PLACEHOLDER).match(text, opened)):
        start = max(start, before.end())
    last = text.rfind("[REDACTED:", start, end + 9)
    if start <= last < end and (within := compile_regex(PLACEHOLDER).match(text, last)):
        end = max(end, within.end())
    return start, max(start, end)


def _redact_value(value: Any, depth: int, redact: _RedactText) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return _redact_object(value, depth - 1, redact) if depth else "[REDACTED:depth]"
    if isinstance(value, list | tuple):
        if not depth:
            return "[REDACTED:depth]"
        items = [_redact_value(item, depth - 1, redact) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value


def _redact_object(members: dict[Any, Any], depth: int, redact: _RedactText) -> dict[Any, Any]:
    # `{"name": "DB_PASSWORD", "value": "…"}` names its secret in a field of its own.
    named = next((members[k] for k in ("name", "key") if isinstance(members.get(k), str)), "")
    clean: dict[Any, Any] = {}
    for key, value in members.items():
        shown = redact(key) if isinstance(key, str) else key
        name = redact(named) if key == "value" else shown
        clean[_free_key(shown, clean)] = _redact_member(
            _strip_placeholders(name), value, depth, redact
        )
    return clean


def _strip_placeholders(name: Any) -> str:
    """Remove placeholders from a name: a redacted part says nothing about the value."""
    return compile_regex(PLACEHOLDER).sub("", name) if isinstance(name, str) else ""


def _redact_member(name: str, value: Any, depth: int, redact: _RedactText) -> Any:
    rule = secret_rule(name)
    if rule is not None and isinstance(value, list | tuple):
        items = [_redact_member(name, item, depth, redact) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if rule is None or not isinstance(value, str):
        return _redact_value(value, depth, redact)
    if is_reference(value) or is_working_directory(name, value):
        return redact(value)
    return f"[REDACTED:{rule}]"


def _free_key(key: Any, taken: dict[Any, Any]) -> Any:
    """Return the key, numbered if another was redacted to the same, so that no member is lost."""
    if key not in taken or not isinstance(key, str):
        return key
    number = 2
    while f"{key}#{number}" in taken:
        number += 1
    return f"{key}#{number}"

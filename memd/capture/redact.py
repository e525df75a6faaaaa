"""Redaction: no secret reaches the disk. Pure.

Four rules in a row: blocks over many lines (`spans`), named secrets (`patterns`, `shapes`), values of names
that hold secrets (`assignments`), random words (`entropy`). What they find becomes
`[REDACTED:<name>]`, and the result is fed to them again until it no longer changes, so that redacting
twice is redacting once. Standard library only: the hook runs this when no daemon answers.
"""

import functools
import re
from collections.abc import Callable
from typing import Any

from memd.capture.assignments import redact_assignments
from memd.capture.entropy import has_random_words, redact_words
from memd.capture.names import NAMING_WORDS, is_directory, is_reference, secret_rule
from memd.capture.patterns import PLACEHOLDER, TOKENS, Pattern, compiled
from memd.capture.shapes import SHAPES
from memd.capture.spans import redact_spans

__all__ = ["PATTERNS", "redact", "redact_spans", "redact_value"]

PATTERNS: tuple[Pattern, ...] = (*TOKENS, *SHAPES)
"""Every named secret, in the order in which they are tried."""


def _by_needle(*, folded: bool) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Each needle once, with the places in the table of the patterns that it speaks for."""
    table: dict[str, tuple[int, ...]] = {}
    for n, pattern in enumerate(PATTERNS):
        for needle in pattern.needles if pattern.folded is folded else ():
            table[needle] = (*table.get(needle, ()), n)
    return tuple(table.items())


_FOLDED_NEEDLES = _by_needle(folded=True)
_NEEDLES = _by_needle(folded=False)
_BARE = [n for n, p in enumerate(PATTERNS) if not p.needles]
_SHORT_NAME = re.compile(r"[\w./-]{0,19}", re.ASCII)
_LONG = re.compile(r"[A-Za-z0-9_+/.=~:%-]{20,}", re.ASCII)
_PASSES_MAX = 8
_DEPTH_MAX = 150
_PLACEHOLDER_MAX = 64
_Redact = Callable[[str], str]


def redact(text: str, *, entropy: bool = True) -> str:
    """The text with every secret replaced by `[REDACTED:<pattern-name>]`; idempotent.

    `entropy=False` leaves random words without a name or a known shape.
    """
    # Most keys of an object are too short for a token, and have no room for a value.
    if _SHORT_NAME.fullmatch(text):
        return text
    for _ in range(_PASSES_MAX):
        redacted = _redact_once(text, entropy=entropy)
        if redacted == text:
            break
        text = redacted
    return text


def redact_value(value: Any, *, entropy: bool = True) -> Any:
    """A JSON value with its strings and keys redacted; `entropy` as in `redact`.

    A string (or the strings of a list) whose key says it is a secret goes whole, unless it only
    refers to one. Numbers, booleans and None stay. What lies deeper than 150 levels goes.
    """
    clean = redact if entropy else functools.partial(redact, entropy=False)
    return _redact_value(value, _DEPTH_MAX, clean)


def _redact_once(text: str, *, entropy: bool) -> str:
    text = redact_spans(text)
    lowered = text.lower()
    long_words = "\n".join(_LONG.findall(text))
    for pattern in _candidates(lowered, long_words):
        text = _replace(text, pattern)
    lowered = text.lower()
    if any(word in lowered for word in NAMING_WORDS):
        text = redact_assignments(text, lowered)
    return redact_words(text) if entropy and has_random_words(long_words) else text


def _candidates(lowered: str, long_words: str) -> list[Pattern]:
    """The patterns that may match, in their order: a needle of theirs stands in the text."""
    hits = [ns for needle, ns in _FOLDED_NEEDLES if needle in lowered]
    if long_words:
        hits += [ns for needle, ns in _NEEDLES if needle in long_words]
        # No telling letters: a look at the long words costs little.
        hits += [(n,) for n in _BARE if PATTERNS[n].compiled().search(long_words)]
    return [PATTERNS[n] for n in sorted({n for ns in hits for n in ns})]


def _replace(text: str, pattern: Pattern) -> str:
    kept: list[str] = []
    done = 0
    for found in pattern.compiled().finditer(text):
        start, end = _whole(text, *found.span(found.lastindex or 0))
        secret = text[start:end]
        if not compiled(PLACEHOLDER).sub("", secret) or (
            pattern.references and is_reference(secret)
        ):
            continue
        kept += [text[done:start], f"[REDACTED:{pattern.name}]"]
        done = end
    return "".join((*kept, text[done:])) if kept else text


def _whole(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without a part of a placeholder at its beginning, and with all of one at its end."""
    opened = text.rfind("[REDACTED:", max(0, start - _PLACEHOLDER_MAX), start + 9)
    if 0 <= opened < start and (before := compiled(PLACEHOLDER).match(text, opened)):
        start = max(start, before.end())
    last = text.rfind("[REDACTED:", start, end + 9)
    if start <= last < end and (within := compiled(PLACEHOLDER).match(text, last)):
        end = max(end, within.end())
    return start, max(start, end)


def _redact_value(value: Any, depth: int, redact: _Redact) -> Any:
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


def _redact_object(members: dict[Any, Any], depth: int, redact: _Redact) -> dict[Any, Any]:
    # `{"name": "DB_PASSWORD", "value": "…"}` names its secret in a field of its own.
    named = next((members[k] for k in ("name", "key") if isinstance(members.get(k), str)), "")
    clean: dict[Any, Any] = {}
    for key, value in members.items():
        shown = redact(key) if isinstance(key, str) else key
        name = redact(named) if key == "value" else shown
        clean[_free_key(shown, clean)] = _redact_member(_bare(name), value, depth, redact)
    return clean


def _bare(name: Any) -> str:
    """The name that a rule may judge: what was redacted in it says nothing about its value."""
    return compiled(PLACEHOLDER).sub("", name) if isinstance(name, str) else ""


def _redact_member(name: str, value: Any, depth: int, redact: _Redact) -> Any:
    rule = secret_rule(name)
    if rule is not None and isinstance(value, list | tuple):
        items = [_redact_member(name, item, depth, redact) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if rule is None or not isinstance(value, str):
        return _redact_value(value, depth, redact)
    if is_reference(value) or is_directory(name, value):
        return redact(value)
    return f"[REDACTED:{rule}]"


def _free_key(key: Any, taken: dict[Any, Any]) -> Any:
    """The key, numbered if another secret was redacted to the same: no member is lost."""
    if key not in taken or not isinstance(key, str):
        return key
    number = 2
    while f"{key}#{number}" in taken:
        number += 1
    return f"{key}#{number}"

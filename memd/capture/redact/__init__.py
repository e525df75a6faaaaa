"""Redaction: no secret reaches the disk. Pure.

Four rules in a row: blocks over many lines (`spans`), named secrets (`patterns`, `shapes`), values of names
that hold secrets (`assignments`), random words (`entropy`). What they find becomes
`[REDACTED:<name>]`, and the result is fed to them again until it no longer changes, so that redacting
twice is redacting once. Standard library only: the hook runs this when no daemon answers.
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
"""Every named secret, in the order in which they are tried."""

_Needles = tuple[tuple[str, tuple[int, ...]], ...]


def _by_needle(members: Iterable[int]) -> _Needles:
    """Each needle once, with the places in the table of the patterns that it speaks for."""
    table: dict[str, tuple[int, ...]] = {}
    for n in members:
        for needle in PATTERNS[n].needles:
            table[needle] = (*table.get(needle, ()), n)
    return tuple(table.items())


def _by_gate() -> tuple[tuple[int, str, _Needles], ...]:
    """(run, gate, needles) of the folded patterns: a look for a needle costs more than either."""
    groups: dict[tuple[int, str], list[int]] = {}
    for n, pattern in enumerate(PATTERNS):
        if pattern.folded:
            groups.setdefault((pattern.run, pattern.gate), []).append(n)
    return tuple((run, gate, _by_needle(members)) for (run, gate), members in groups.items())


_GATED_NEEDLES = _by_gate()
_NEEDLES = _by_needle(n for n, pattern in enumerate(PATTERNS) if not pattern.folded)
_BARE = [n for n, p in enumerate(PATTERNS) if not p.needles]
_SHORT_NAME = re.compile(r"[\w./-]{0,19}", re.ASCII)
_LONG_MIN = 20
_LONG = re.compile(r"[A-Za-z0-9_+/.=~:%-]{20,}", re.ASCII)
_TELLING = re.compile(r"[A-Z0-9]", re.ASCII)
_HARMLESS_MAX = 4_096
_HARMLESS_CHARACTERS = 200
_harmless: set[str] = set()
_PASSES_MAX = 32
"""Nearly every text takes two. Secrets of different kinds that nothing parts take one each."""
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
    text = redact_blocks(text)
    lowered = text.lower()
    long_words = _long_words(text)
    fresh = [word for word in long_words if word not in _harmless]
    longest = max(map(len, long_words), default=0)
    candidates = [*_by_word(fresh), *_by_text(lowered, longest)]
    for pattern in [PATTERNS[n] for n in sorted(set(candidates))]:
        text = _replace(text, pattern)
    text = redact_assignments(text, text.lower())
    return redact_words(text) if entropy and has_random_words(fresh) else text


def _long_words(text: str) -> list[str]:
    """The runs of characters that tokens are made of and as long as one.

    Most of a text stands in short words, and splitting it costs a third of looking for runs in it.
    No token is drawn of small letters alone.
    """
    return [
        run
        for word in text.split()
        if len(word) >= _LONG_MIN
        for run in _LONG.findall(word)
        if _TELLING.search(run)
    ]


def _by_text(lowered: str, longest: int) -> list[int]:
    """Places of the folded patterns that may match: a needle of theirs stands in the text."""
    return [
        n
        for run, gate, needles in _GATED_NEEDLES
        if run <= longest and gate in lowered
        for needle, ns in needles
        if needle in lowered
        for n in ns
    ]


def _by_word(words: list[str]) -> list[int]:
    """Places of the other patterns that may match: a needle of theirs stands in one of these words.

    Words in which there is nothing are remembered, for paths and names come again and again; a secret
    never is.
    """
    if not words:
        return []
    joined = "\n".join(words)
    found = [n for needle, ns in _NEEDLES if needle in joined for n in ns]
    # No telling letters: a look at the long words costs little.
    found += [n for n in _BARE if PATTERNS[n].compiled().search(joined)]
    if not found and not has_random_words(words):
        if len(_harmless) > _HARMLESS_MAX:
            _harmless.clear()
        _harmless.update(word for word in words if len(word) <= _HARMLESS_CHARACTERS)
    return found


def _matches(text: str, pattern: Pattern) -> Iterator[tuple[int, int]]:
    """The spans of what the pattern finds; one that begins with a needle is tried there alone."""
    regex = pattern.compiled()
    lowered = text.lower() if pattern.begins else ""
    done = 0
    if len(lowered) != len(text):  # a few letters grow when lowered
        while found := regex.search(text, done):
            for span in _in_a_row(text, regex, found):
                yield span
                done = span[1]
            done = max(done, found.end(), found.start() + 1)
        return
    for at in sorted({at for needle in pattern.needles for at in _places(needle, lowered)}):
        if at >= done and (found := regex.match(text, at)):
            for span in _in_a_row(text, regex, found):
                yield span
                done = span[1]
            done = max(done, found.end())


def _in_a_row(
    text: str, regex: re.Pattern[str], first: re.Match[str]
) -> Iterator[tuple[int, int]]:
    """The span of a secret, and of those that begin where the one before it ends.

    Only what is put in its place parts them: else every pass would find one of a hundred.
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


def _places(needle: str, lowered: str) -> Iterator[int]:
    at = lowered.find(needle)
    while at >= 0:
        yield at
        at = lowered.find(needle, at + 1)


def _replace(text: str, pattern: Pattern) -> str:
    kept: list[str] = []
    done = 0
    for found in _matches(text, pattern):
        start, end = _whole(text, *found)
        secret = text[start:end]
        if not compile_regex(PLACEHOLDER).sub("", secret) or (
            pattern.references and is_reference(secret)
        ):
            continue
        kept += [text[done:start], f"[REDACTED:{pattern.name}]"]
        done = end
    return "".join((*kept, text[done:])) if kept else text


def _whole(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without a part of a placeholder at its beginning, and with all of one at its end."""
    opened = text.rfind("[REDACTED:", max(0, start - _PLACEHOLDER_MAX), start + 9)
    if 0 <= opened < start and (before := compile_regex(PLACEHOLDER).match(text, opened)):
        start = max(start, before.end())
    last = text.rfind("[REDACTED:", start, end + 9)
    if start <= last < end and (within := compile_regex(PLACEHOLDER).match(text, last)):
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
    return compile_regex(PLACEHOLDER).sub("", name) if isinstance(name, str) else ""


def _redact_member(name: str, value: Any, depth: int, redact: _Redact) -> Any:
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
    """The key, numbered if another secret was redacted to the same: no member is lost."""
    if key not in taken or not isinstance(key, str):
        return key
    number = 2
    while f"{key}#{number}" in taken:
        number += 1
    return f"{key}#{number}"

"""redact(), redact_value(): no secret reaches the disk. Pure.

The rules in a row: multi-line blocks (`blocks`), secrets known by their form (`tokens`, `formats`) or by what is
around them (`documents`), arguments of known programs (`commands`), columns (`tables`), values assigned to secret names
(`assignments`, `names`), random words (`entropy`). A finding becomes `[REDACTED:<name>]`, and the result is redacted
again until it no longer changes, so redacting twice equals redacting once. Colours of a terminal are removed from a
text in which something was found. Standard library only: the hook runs this when no daemon answers.
"""

import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from memd.capture.redact.assignments import ANCHOR_WORDS, redact_assignments
from memd.capture.redact.blocks import redact_blocks
from memd.capture.redact.commands import PROGRAM_NEEDLES, redact_commands
from memd.capture.redact.documents import (
    DOCUMENT_NEEDLES,
    may_have_seed_phrase,
    redact_documents,
    redact_seed_phrases,
)
from memd.capture.redact.entropy import has_random_words, redact_words
from memd.capture.redact.formats import FORMATS
from memd.capture.redact.names import FOREIGN_LETTER, is_reference
from memd.capture.redact.objects import redact_members
from memd.capture.redact.spoken import SPOKEN_WORDS, redact_spoken
from memd.capture.redact.tables import TABLE_NEEDLES, redact_tables
from memd.capture.redact.tokens import (
    ISSUERS,
    PLACEHOLDER,
    TOKENS,
    Pattern,
    compile_regex,
    find_all,
)

__all__ = ["PATTERNS", "RULES_VERSION", "forget_words", "redact", "redact_blocks", "redact_value"]

RULES_VERSION = 2
"""Grows when redaction finds what it did not find before: a vault that older rules wrote is then worth a scrub."""
PATTERNS: tuple[Pattern, ...] = (*TOKENS, *ISSUERS, *FORMATS)
"""Every secret known by its form, in the order in which they are tried."""

_Needles = tuple[tuple[str, tuple[int, ...]], ...]
_Signs = frozenset[str]


def _by_needle(members: Iterable[int]) -> _Needles:
    """Return each needle once, with the indexes of its patterns in `PATTERNS`."""
    table: dict[str, tuple[int, ...]] = {}
    for n in members:
        for needle in PATTERNS[n].needles:
            table[needle] = (*table.get(needle, ()), n)
    return tuple(table.items())


def _as_word(needle: str) -> str:
    """What to search for in a list of words: `curl ` is a word's end."""
    return f"{needle[:-1]}\n" if needle.endswith(" ") else needle


def _by_sign() -> list[tuple[str, _Needles]]:
    """Group the needles of the other patterns by a sign in them, "" for none: most words have few signs."""
    signs: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    for needle, ns in _by_needle(n for n, pattern in enumerate(PATTERNS) if not pattern.folded):
        sign = next((c for c in needle if c in "_-.:$/~|%+"), "")
        signs.setdefault(sign, []).append((needle, ns))
    return [(sign, tuple(needles)) for sign, needles in signs.items()]


_FOLDED_NEEDLES = _by_needle(n for n, pattern in enumerate(PATTERNS) if pattern.folded)
_WORD_NEEDLES = {_as_word(needle): ns for needle, ns in _FOLDED_NEEDLES if " " not in needle[:-1]}
_SPACED_NEEDLES = [(needle, ns) for needle, ns in _FOLDED_NEEDLES if " " in needle[:-1]]
_SIGNED_NEEDLES = _by_sign()
_NEEDLELESS = [n for n, p in enumerate(PATTERNS) if not p.needles]
_ANCHORS = frozenset((*ANCHOR_WORDS, *SPOKEN_WORDS))
_SIGNS = tuple({
    *_WORD_NEEDLES, *_ANCHORS, *SPOKEN_WORDS, *PROGRAM_NEEDLES, *DOCUMENT_NEEDLES, *TABLE_NEEDLES
})  # fmt: skip
"""Everything that any rule searches for in the lower-cased words of a text, each with a line break behind it."""


def _by_part() -> dict[str, list[str]]:
    """Group the signs by a shorter one within them: what is not in a text is not searched for in longer ones."""
    parts: dict[str, list[str]] = {"(": [], "$": []}
    for sign in sorted(_SIGNS, key=len):
        part = next((part for part in parts if part in sign), None)
        parts.setdefault(sign if part is None else part, []).append(sign)
    return parts


_SIGNS_BY_PART = _by_part()
_SHORT_NAME = re.compile(r"[\w./-]{0,19}", re.ASCII)
_LONG_CHARACTERS_MIN = 20
_LONG_RUN = re.compile(r"[A-Za-z0-9_+/.=~:%-]{20,}", re.ASCII)
_CAPITAL_OR_DIGIT = re.compile(r"[A-Z0-9]", re.ASCII)
_NO_SIGNS: _Signs = frozenset()
_HARMLESS_CACHED_MAX = 4_096
_HARMLESS_CHARACTERS = 200
_WORDS_CACHED_MAX = 40_000
_PASSES_MAX = 32
"""Nearly every text takes two; adjacent secrets of different kinds take one each."""
_PLACEHOLDER_CHARACTERS_MAX = 64
_ESCAPES = ("001b[", "001B[", "x1b[", "x1B[", "\\033[", "\\e[")
_COLOUR = r"(?:\x1b|\\{1,7}(?:u001[bB]|x1[bB]|033|e))(?:\[[0-9;:?]{0,20}[A-Za-z]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\))"

_signs_by_word: dict[str, _Signs] = {}
"""Word → which of `_SIGNS` it has, mostly none. No word with a token is in it, and none of a text with a secret."""
_harmless_runs: set[str] = set()
"""Long runs of token characters that are no token, because paths and names recur. A secret is never cached."""
_harmless_texts: set[str] = set()
"""Short texts without a secret. Not the same set: the run `password=x` is no token, but a text with a secret."""


class _FoundSigns(NamedTuple):
    """Which of `_SIGNS` are in the words of a text."""

    all: _Signs
    fresh_words: set[str]
    """Words that were not seen before, or may not be remembered."""
    of_fresh_words: _Signs


def redact(text: str, *, entropy: bool = True) -> str:
    """Replace every secret by `[REDACTED:<pattern-name>]`; idempotent.

    `entropy=False` leaves random words without a name or a known form.
    """
    # Most keys of an object are too short for a token or an assigned value.
    if text in _harmless_texts or _SHORT_NAME.fullmatch(text):
        return text
    given, text = text, _strip_colours(text)
    plain = text
    for _ in range(_PASSES_MAX):
        redacted = _redact_once(text, entropy=entropy)
        if redacted == text:
            break
        text = redacted
    if text != plain:
        return text
    if entropy:
        _remember(_harmless_texts, [given])
    return given


def forget_words() -> None:
    """Empty the caches, which make no difference but to the time, and take some megabytes after much text."""
    for cache in (_signs_by_word, _harmless_runs, _harmless_texts):
        cache.clear()


def _strip_colours(text: str) -> str:
    """Remove what colours a terminal's text: it stands between a name and its value, and within tokens."""
    if "\x1b" in text or ("[" in text and any(escape in text for escape in _ESCAPES)):
        return compile_regex(_COLOUR).sub("", text)
    return text


def redact_value(value: Any, *, entropy: bool = True) -> Any:
    """Redact the strings and keys of a JSON value (see `objects`); `entropy` as in `redact`."""
    clean = redact if entropy else functools.partial(redact, entropy=False)
    return redact_members(value, clean)


def _redact_once(text: str, *, entropy: bool) -> str:
    text = given = redact_blocks(text)
    if may_have_seed_phrase(text):
        text = redact_seed_phrases(text)
    words = text.split()
    signs, fresh, signs_of_fresh = _find_signs(words)
    is_foreign = _has_foreign_letter(text)
    named = not signs.isdisjoint(_ANCHORS) or is_foreign
    fresh_runs = [run for run in _find_long_runs(fresh) if run not in _harmless_runs]
    drawn = [run for run in fresh_runs if has_random_words([run])]
    of_words = _match_words(fresh_runs)
    if not of_words:
        _remember(_harmless_runs, [run for run in fresh_runs if run not in drawn])
    for n in sorted(_match_text(text, signs, words, named=named).union(of_words)):
        text = _replace_secrets(text, PATTERNS[n])
    if text is not given:  # what replaces a secret has words of its own
        signs = _find_signs(text.split()).all
    text = redact_commands(redact_documents(text, signs, named=named), signs)
    if named:
        if text is not given:
            signs = _find_signs(text.split()).all
        if (tidied := redact_spoken(text, signs, is_foreign=is_foreign)) is not text:
            text, signs = tidied, _find_signs(tidied.split()).all
        if (tidied := redact_tables(text, signs)) is not text:
            signs = _find_signs(tidied.split()).all
        text = redact_assignments(tidied, tidied.lower(), signs)
    text = redact_words(text) if entropy and drawn else text
    if text is given and fresh:
        _remember_signs(fresh, signs_of_fresh)
    return text


def _find_signs(words: list[str]) -> _FoundSigns:
    """Return which of `_SIGNS` are in these words, each with a line break behind it."""
    known = list(map(_signs_by_word.get, words))
    distinct = set(known)
    if None not in distinct:
        return _FoundSigns(_NO_SIGNS.union(*filter(None, distinct)), set(), _NO_SIGNS)
    # A sign costs a look at every character, and a long text repeats its words.
    fresh = {word for word, signs in zip(words, known, strict=True) if signs is None}
    joined = "\n".join((*fresh, "")).lower()
    parts = [part for part in _SIGNS_BY_PART if part in joined]
    of_fresh = frozenset([s for part in parts for s in _SIGNS_BY_PART[part] if s in joined])
    return _FoundSigns(of_fresh.union(*filter(None, distinct)), fresh, of_fresh)


def _has_foreign_letter(text: str) -> bool:
    """Whether names of secrets may be in a text though they are not in ASCII."""
    return not text.isascii() and compile_regex(FOREIGN_LETTER).search(text) is not None


def _remember_signs(words: set[str], signs: _Signs) -> None:
    """Cache which of these signs each word has. Only of a text without a secret: a secret is never cached."""
    if len(_signs_by_word) > _WORDS_CACHED_MAX:
        _signs_by_word.clear()
    for word in words:
        if len(word) > _HARMLESS_CHARACTERS or not word.isascii():
            continue
        if _harmless_runs.issuperset(_find_long_runs([word])):
            lowered = f"{word}\n".lower()
            _signs_by_word[word] = frozenset([s for s in signs if s in lowered]) or _NO_SIGNS


def _find_long_runs(words: Iterable[str]) -> list[str]:
    """Return the runs of token characters that are long enough for a token and not all small letters.

    Most of a text is short words; splitting it first costs a third of searching it for runs.
    """
    return [
        run
        for word in words
        if len(word) >= _LONG_CHARACTERS_MIN
        for run in _LONG_RUN.findall(word)
        if _CAPITAL_OR_DIGIT.search(run)
    ]


def _match_text(text: str, signs: _Signs, words: list[str], *, named: bool) -> set[int]:
    """Return the indexes of the folded patterns with a needle in the text and all else that they need."""
    lowered = text.lower()
    found = {n for sign in signs for n in _WORD_NEEDLES.get(sign, ())}
    found.update(n for needle, ns in _SPACED_NEEDLES if needle in lowered for n in ns)
    found = {n for n in found if _may_match(PATTERNS[n], lowered, named=named)}
    if any(PATTERNS[n].run for n in found):
        longest = max(map(len, words))
        found = {n for n in found if PATTERNS[n].run <= longest}
    return found


def _may_match(pattern: Pattern, lowered: str, *, named: bool) -> bool:
    """Whether a text has what a folded pattern needs besides its needle."""
    if pattern.named and not named:
        return False
    return not pattern.gate or any(map(lowered.__contains__, pattern.gate))


def _match_words(words: list[str]) -> list[int]:
    """Return the indexes of the other patterns with a needle in one of these words."""
    if not words:
        return []
    joined = "\n".join(words)
    found = [
        n
        for sign, needles in _SIGNED_NEEDLES
        if sign in joined
        for needle, ns in needles
        if needle in joined
        for n in ns
    ]
    return found + [n for n in _NEEDLELESS if PATTERNS[n].compiled().search(joined)]


def _remember(harmless: set[str], texts: list[str]) -> None:
    """Cache texts without a secret, unless they are too long to recur."""
    if len(harmless) > _HARMLESS_CACHED_MAX:
        harmless.clear()
    harmless.update(text for text in texts if len(text) <= _HARMLESS_CHARACTERS)


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
    for at in sorted({at for needle in pattern.needles for at in find_all(needle, lowered)}):
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
        if pattern.check is not None and not pattern.check(secret):
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

"""redact(), redact_value(): no secret reaches the disk. Pure.

The rules in a row: multi-line blocks (`documents`), secrets known by their form (`patterns`) or by what is around them
(`documents`), arguments and output of known programs (`commands`), sentences (`spoken`), values assigned to secret names
(`assignments`, `names`), random words (`names`); then the same in other readings of the text, joined and decoded
(`views`). A finding becomes `[REDACTED:<name>]`, and the result is redacted
again until it no longer changes, so redacting twice equals redacting once. Colours of a terminal are removed from a
text in which something was found. Standard library only: the hook runs this when no daemon answers.
"""

import functools
import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from memd.capture.redact.assignments import ANCHOR_WORDS, find_assigned
from memd.capture.redact.commands import (
    PRINTED_SIGNS,
    PROGRAM_NEEDLES,
    find_in_commands,
    find_printed,
    prints_secret,
    redact_output,
)
from memd.capture.redact.documents import (
    BLOCK_SIGNS,
    DOCUMENT_NEEDLES,
    TABLE_NEEDLES,
    find_in_documents,
    find_in_tables,
    is_key_bytes,
    may_have_seed_phrase,
    redact_blocks,
    redact_seed_phrases,
)
from memd.capture.redact.names import (
    FOREIGN_LETTER,
    doubtful_rule,
    find_named_keys,
    find_random_words,
    has_random_words,
    is_label,
    is_likely_secret,
    is_reference,
    is_secret_under,
    is_working_directory,
    key_rule,
    secret_rule,
)
from memd.capture.redact.patterns import PATTERNS, is_login, replace_secrets
from memd.capture.redact.regexes import (
    PLACEHOLDER,
    Reading,
    as_sign,
    compile_regex,
    join_words,
    lower_alike,
    note_secrets,
    place_mark,
    replace_spans,
)
from memd.capture.redact.spoken import find_spoken
from memd.capture.redact.views import redact_encoded, redact_joined, redact_misread
from memd.capture.redact.words import OPENING_SIGNS, SPOKEN_WORDS

__all__ = ["PATTERNS", "RULES_VERSION", "forget_words", "note_secrets", "redact", "redact_blocks", "redact_value"]  # fmt: skip

RULES_VERSION = 9
"""Grows when redaction finds what it did not find before: a vault that older rules wrote is then worth a scrub."""

_Needle = tuple[str, tuple[int, ...]]
_Needles = tuple[_Needle, ...]
_Signs = frozenset[str]


def _group_by_needle(members: Iterable[int]) -> _Needles:
    """Return each needle once, with the indexes of its patterns in `PATTERNS`."""
    table: dict[str, tuple[int, ...]] = {}
    for n in members:
        for needle in PATTERNS[n].needles:
            table[needle] = (*table.get(needle, ()), n)
    return tuple(table.items())


def _group_by_sign() -> list[tuple[str, list[tuple[str, _Needles]]]]:
    """Group the needles of the other patterns by a sign in them, "" for none, and then by the two characters that end there.

    Most words have few signs, and most that have one have few of its needles.
    """
    signs: dict[str, dict[str, _Needles]] = {}
    for needle, ns in _group_by_needle(
        n for n, pattern in enumerate(PATTERNS) if not pattern.folded
    ):
        at, sign = next(((n, c) for n, c in enumerate(needle) if c in "_-.:$/~|%+"), (1, ""))
        pairs = signs.setdefault(sign, {})
        pair = needle[max(at - 1, 0) : max(at + 1, 2)]
        pairs[pair] = (*pairs.get(pair, ()), (needle, ns))
    return [(sign, list(pairs.items())) for sign, pairs in signs.items()]


_FOLDED_NEEDLES = _group_by_needle(n for n, pattern in enumerate(PATTERNS) if pattern.folded)
_WORD_NEEDLES = {as_sign(needle): ns for needle, ns in _FOLDED_NEEDLES if " " not in needle[:-1]}
_SPACED_NEEDLES: dict[str, list[_Needle]] = {}
for _needle, _ns in _FOLDED_NEEDLES:
    if " " in _needle[:-1]:
        _SPACED_NEEDLES.setdefault(as_sign(_needle), []).append((_needle, _ns))
_SIGNED_NEEDLES = _group_by_sign()
_NEEDLELESS = [n for n, p in enumerate(PATTERNS) if not p.needles]
_ANCHORS = frozenset((*ANCHOR_WORDS, *SPOKEN_WORDS))
_SIGNS = frozenset({
    *_WORD_NEEDLES, *_ANCHORS, *OPENING_SIGNS, *PROGRAM_NEEDLES, *DOCUMENT_NEEDLES, *TABLE_NEEDLES,
    *BLOCK_SIGNS, *PRINTED_SIGNS, *_SPACED_NEEDLES,
})  # fmt: skip
"""Everything that any rule searches for in the lower-cased words of a text, each with a line break behind it."""


_FREQUENT = ("name", "code", "user", "command", "output", "root", "http", "key")
"""Signs that many texts have: searching for each takes less time than to find them again and again."""


def _group_by_beginning() -> dict[str, list[str]]:
    """Group the other signs by the shortest of them that they begin with."""
    groups: dict[str, list[str]] = {}
    for sign in sorted(_SIGNS - set(_FREQUENT), key=len):
        begun = next((sign[:n] for n in range(1, len(sign)) if sign[:n] in groups), sign)
        groups.setdefault(begun, []).append(sign)
    return groups


_SIGNS_BY_BEGINNING = _group_by_beginning()
_ANY_SIGN = join_words(_SIGNS_BY_BEGINNING)
"""A regex that finds all of them at once."""
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
_ESCAPES = ("001b[", "001B[", "x1b[", "x1B[", "\\033[", "\\e[")
_COLOUR = r"(?:\x1b|\\{1,7}(?:u001[bB]|x1[bB]|033|e))(?:\[[0-9;:?]{0,20}[A-Za-z]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\))"

_DEPTH_MAX = 150
_FIELD_NAME = r"(?i)pass(?:word|wd|code|phrase|wort)|pwd|secret|api[ _-]?key|#pass\b"
_FIELDS = ("selector", "element", "label", "field", "placeholder", "target", "name", "id")
_COOKIE_MARKS = frozenset({"httpOnly", "sameSite", "domain", "expirationDate", "hostOnly"})
_PLAIN_KEY = re.compile(r"[A-Za-z_]{1,19}")
"""Too short to hold a secret."""
_TELLING_KEYS = frozenset({"auth", "value", "data", "stringData"})
_KEYS_CACHED = 1_024
_RESPONSE = "tool_response"
_HELD = ("value", "default", "current_value")
"""Where an object under a secret name holds the secret."""
_COOKIE_MIN = 8
_FIELD_MAX = 100
_RedactText = Callable[[str], str]
_signless_words: set[str] = set()
"""Words without any of `_SIGNS`: most are. No word with a token is in it, and none of a text with a secret."""
_signs_by_word: dict[str, _Signs] = {}
"""The other words of such texts → their signs."""
_harmless_runs: set[str] = set()
"""Long runs of token characters that are no token, because paths and names recur. A secret is never cached."""
_harmless_texts: set[str] = set()
"""Short texts without a secret. Not the same set: the run `password=x` is no token, but a text with a secret."""
_clean_digests: set[bytes] = set()
"""Digests of long texts without a secret: a text comes in several fields, by a hook and in the transcript."""


class _FoundSigns(NamedTuple):
    """The `_SIGNS` that the words of a text have."""

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
    if (known := _digest(text)) in _clean_digests:
        return text
    given, text = text, _strip_colours(text)
    plain = text
    read = functools.partial(_redact_read, entropy=entropy)
    for _ in range(_PASSES_MAX):
        redacted = read(redact_joined(text, read))
        if redacted == text:
            break
        text = redacted
    if text != plain:
        return text
    if entropy and known:
        if len(_clean_digests) > _HARMLESS_CACHED_MAX:
            _clean_digests.clear()
        _clean_digests.add(known)
    elif entropy:
        _remember(_harmless_texts, [given])
    return given


def _digest(text: str) -> bytes:
    """Return what a long text is known by; nothing for a short one, which is known by itself."""
    if len(text) <= _HARMLESS_CHARACTERS:
        return b""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def forget_words() -> None:
    """Empty the caches, which make no difference but to the time, and take some megabytes after much text."""
    for cache in (_signless_words, _signs_by_word, _harmless_runs, _harmless_texts, _clean_digests):
        cache.clear()


def _strip_colours(text: str) -> str:
    """Remove what colours a terminal's text: it stands between a name and its value, and within tokens."""
    # An escape is written out behind a backslash, which most texts do not have.
    if "\x1b" in text or ("\\" in text and any(escape in text for escape in _ESCAPES)):
        return compile_regex(_COLOUR).sub("", text)
    return text


def redact_value(value: Any, *, entropy: bool = True) -> Any:
    """Redact the strings and keys of a JSON value; `entropy` as in `redact`.

    A string (or the strings of a list) under a secret name is redacted whole, unless it only refers to a secret.
    Numbers, booleans and None stay. Values nested deeper than 150 levels are redacted.
    """
    clean = redact if entropy else functools.partial(redact, entropy=False)
    return _redact_item(value, _DEPTH_MAX, clean)


def _redact_read(text: str, *, entropy: bool) -> str:
    """Redact a text as it stands, and then as it reads when it is decoded."""
    once = functools.partial(_redact_once, entropy=entropy)
    return redact_misread(redact_encoded(once(text), once), once)


def _redact_once(text: str, *, entropy: bool) -> str:
    given, words = text, text.split()
    signs, fresh, signs_of_fresh = _find_signs(words)
    if not signs.isdisjoint(BLOCK_SIGNS):
        text = redact_blocks(text)
    if may_have_seed_phrase(text):
        text = redact_seed_phrases(text)
    if text is not given:
        words = text.split()
        signs, fresh, signs_of_fresh = _find_signs(words)
    reading = _make_reading(text, signs)
    runs = {word: _find_long_runs(word) for word in fresh if len(word) >= _LONG_CHARACTERS_MIN}
    fresh_runs = [run for own in runs.values() for run in own if run not in _harmless_runs]
    drawn = [run for run in fresh_runs if has_random_words([run])]
    of_words = _match_words(fresh_runs)
    if not of_words:
        _remember(_harmless_runs, [run for run in fresh_runs if run not in drawn])
    numbers = sorted(_match_text(reading, words).union(of_words))
    text = _redact_around(reading, _redact_forms(reading, numbers))
    if entropy and drawn:
        text = replace_spans(text, find_random_words(text))
    if text is given and fresh:
        _remember_signs(fresh, signs_of_fresh, runs)
    return text


def _redact_forms(reading: Reading, numbers: Iterable[int]) -> str:
    """Redact the secrets of which these patterns know the form."""
    text, lowered = reading.text, reading.lowered
    for number in numbers:
        if (tidied := replace_secrets(text, lowered, PATTERNS[number])) is not text:
            text, lowered = tidied, lower_alike(tidied)
    return text


def _redact_around(reading: Reading, text: str) -> str:
    """Redact the secrets that what is around them gives away. `reading` is of the text as it was before."""
    for find in (
        find_in_documents,
        find_in_commands,
        find_named_keys,
        find_spoken,
        find_in_tables,
        find_assigned,
    ):
        if text is not reading.text:  # what replaces a secret has words of its own
            reading = _make_reading(text, _find_signs(text.split()).all)
        text = replace_spans(text, find(reading))
    if text is not reading.text or not reading.signs.isdisjoint(PRINTED_SIGNS):
        text = replace_spans(text, find_printed(text))
    return text


def _make_reading(text: str, signs: _Signs) -> Reading:
    is_foreign = not text.isascii() and compile_regex(FOREIGN_LETTER).search(text) is not None
    is_named = is_foreign or not signs.isdisjoint(_ANCHORS)
    return Reading(text, lower_alike(text), signs, is_named, is_foreign)


def _find_signs(words: Iterable[str]) -> _FoundSigns:
    """Return which of `_SIGNS` are in these words, each with a line break behind it."""
    # Each word is looked up once: another thread may empty the caches meanwhile.
    others = set(itertools.filterfalse(_signless_words.__contains__, words))
    looked_up = {word: _signs_by_word.get(word) for word in others}
    fresh = {word for word, signs in looked_up.items() if signs is None}
    known = set(filter(None, looked_up.values()))
    if not fresh:
        return _FoundSigns(_NO_SIGNS.union(*known), fresh, _NO_SIGNS)
    joined = "\n".join((*fresh, "")).lower()
    found = [sign for sign in _FREQUENT if sign in joined]
    begun, search = set(), compile_regex(_ANY_SIGN).search
    at = search(joined)
    while at is not None:
        begun.add(at[0])
        at = search(joined, at.start() + 1)  # another may begin within it
    found += [s for sign in begun for s in _SIGNS_BY_BEGINNING[sign] if s in joined]
    of_fresh = frozenset(found)
    return _FoundSigns(of_fresh.union(*known), fresh, of_fresh)


def _remember_signs(words: set[str], signs: _Signs, runs: Mapping[str, list[str]]) -> None:
    """Cache which of these signs each word has. Only of a text without a secret: a secret is never cached.

    `runs`: the runs of characters of the long words, which are not cached if one of these may be a token.
    """
    if len(_signless_words) + len(_signs_by_word) > _WORDS_CACHED_MAX:
        _signless_words.clear()
        _signs_by_word.clear()
    for word in words:
        if len(word) > _HARMLESS_CHARACTERS or not word.isascii():
            continue
        if word not in runs or _harmless_runs.issuperset(runs[word]):
            lowered = f"{word}\n".lower()
            if found := frozenset([s for s in signs if s in lowered]):
                _signs_by_word[word] = found
            else:
                _signless_words.add(word)


def _find_long_runs(word: str) -> list[str]:
    """Return the runs of token characters that are long enough for a token and not all small letters.

    Most of a text is short words; splitting it first costs a third of searching it for runs.
    """
    return [run for run in _LONG_RUN.findall(word) if _CAPITAL_OR_DIGIT.search(run)]


def _match_text(reading: Reading, words: list[str]) -> set[int]:
    """Return the indexes of the folded patterns with a needle in the lower-cased text and all else that they need."""
    lowered = reading.lowered
    by_gate, spaced = _list_patterns(reading.signs)
    found = {n for gate, ns in by_gate if any(map(lowered.__contains__, gate)) for n in ns}
    for needle, ns in spaced:
        if needle in lowered:
            found.update(ns)
    longest = max(map(len, words), default=0) if any(PATTERNS[n].run for n in found) else 0
    return {
        n
        for n in found
        if (reading.is_named or not PATTERNS[n].named)
        and PATTERNS[n].run <= longest
        and (not PATTERNS[n].gate or any(map(lowered.__contains__, PATTERNS[n].gate)))
    }


@functools.lru_cache(maxsize=_KEYS_CACHED)
def _list_patterns(signs: _Signs) -> tuple[list[tuple[tuple[str, ...], list[int]]], list[_Needle]]:
    """Return the patterns with a needle among these signs by their gates, and the needles with a blank that may be in the text."""
    by_gate: dict[tuple[str, ...], list[int]] = {}
    for n in {n for sign in signs for n in _WORD_NEEDLES.get(sign, ())}:
        by_gate.setdefault(PATTERNS[n].gate or ("",), []).append(n)
    spaced = [one for sign in signs for one in _SPACED_NEEDLES.get(sign, ())]
    return list(by_gate.items()), spaced


def _match_words(words: list[str]) -> list[int]:
    """Return the indexes of the other patterns with a needle in one of these words."""
    if not words:
        return []
    joined = "\n".join(words)
    found = [
        n
        for sign, pairs in _SIGNED_NEEDLES
        if sign in joined
        for pair, needles in pairs
        if pair in joined
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


def _redact_item(value: Any, depth: int, redact: _RedactText) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return _redact_object(value, depth - 1, redact) if depth else "[REDACTED:depth]"
    if isinstance(value, list | tuple):
        if not depth:
            return "[REDACTED:depth]"
        if is_key_bytes(value):
            return "[REDACTED:key-bytes]"
        items = [_redact_item(item, depth - 1, redact) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value


def _redact_object(members: dict[Any, Any], depth: int, redact: _RedactText) -> dict[Any, Any]:
    # `{"name": "DB_PASSWORD", "value": "…"}` names its secret in a field of its own.
    named = next((members[k] for k in ("name", "key") if isinstance(members.get(k), str)), "")
    given = _find_given(members)
    is_manifest = members.get("kind") == "Secret"
    called = members.get("tool_input")
    if isinstance(called, dict) and prints_secret(str(called.get("command", ""))):
        members = {k: redact_output(v) if k == _RESPONSE else v for k, v in members.items()}
    clean: dict[Any, Any] = {}
    for key, value in members.items():
        if isinstance(key, str) and key not in given and _says_nothing(key):
            clean[_free_key(key, clean)] = _redact_item(value, depth, redact)
            continue
        shown = redact(key) if isinstance(key, str) else key
        if is_manifest and key in {"data", "stringData"} and isinstance(value, dict):
            value = {k: _redact_given(v, "kubernetes-secret") for k, v in value.items()}  # noqa: PLW2901
        elif key in given and secret_rule(_strip_placeholders(named)) is None:
            value = _redact_given(value, given[key])  # noqa: PLW2901
        name = redact(named) if key == "value" else shown
        clean[_free_key(shown, clean)] = _redact_member(
            _strip_placeholders(name), value, depth, redact
        )
    return clean


@functools.lru_cache(maxsize=_KEYS_CACHED)
def _says_nothing(key: str) -> bool:
    """Return whether a key neither is a secret nor marks its value as one; most keys are such."""
    return (
        _PLAIN_KEY.fullmatch(key) is not None
        and key not in _TELLING_KEYS
        and secret_rule(key) is None
        and doubtful_rule(key) is None
        and key_rule(key) is None
    )


def _find_given(members: dict[Any, Any]) -> dict[Any, str]:
    """Return the rule by member for an object that describes a cookie or what was typed into a password field."""
    value = members.get("value")
    if (
        isinstance(value, str)
        and len(value) >= _COOKIE_MIN
        and is_likely_secret(value)
        and "name" in members
        and not _COOKIE_MARKS.isdisjoint(members)
    ):
        return {"value": "cookie"}
    typed = [key for key in ("value", "text") if isinstance(members.get(key), str)]
    if not typed:
        return {}
    fields = [members[key] for key in _FIELDS if isinstance(members.get(key), str)]
    if not any(
        compile_regex(_FIELD_NAME).search(field) for field in fields if len(field) <= _FIELD_MAX
    ):
        return {}
    return {key: "field-value" for key in typed if is_likely_secret(members[key])}


def _redact_given(value: Any, rule: str) -> Any:
    return place_mark(value, rule) if isinstance(value, str) and not is_reference(value) else value


def _strip_placeholders(name: Any) -> str:
    """Remove placeholders from a name: a redacted part says nothing about the value."""
    if not isinstance(name, str):
        return ""
    return compile_regex(PLACEHOLDER).sub("", name) if "[REDACTED:" in name else name


def _redact_member(name: str, value: Any, depth: int, redact: _RedactText) -> Any:
    rule = secret_rule(name)
    if rule is None and isinstance(value, str | list | tuple):
        rule = _doubtful_rule(name, value)
    if rule is not None and isinstance(value, list | tuple):
        items = [_redact_member(name, item, depth, redact) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if rule is not None and isinstance(value, dict):
        # `"db_password": {"type": "string", "value": "…"}`: an output of Terraform, a field of a form.
        held = {k for k in _HELD if is_likely_secret(str(value.get(k, "")))}
        value = {k: _redact_given(v, rule) if k in held else v for k, v in value.items()}
    if rule is None or not isinstance(value, str):
        return _redact_item(value, depth, redact)
    if is_reference(value) or is_working_directory(name, value) or is_label(name, value):
        return redact(value)
    if _is_question(name) and rule != "password" and len(value.split()) > 1:
        return redact(value)  # what the user chose; a token has no spaces
    return place_mark(value, rule)


def _is_question(name: str) -> bool:
    return name.rstrip().endswith("?") and len(name.split()) > 1


def _doubtful_rule(name: str, value: Any) -> str | None:
    """Return the rule for a name that holds a secret only if the value looks like one."""
    if name == "auth" and isinstance(value, str) and is_login(value):
        return "docker-auth"
    rule = doubtful_rule(name) or key_rule(name)
    if rule is None or isinstance(value, str):
        return rule if rule is not None and is_secret_under(name, value) else None
    likely = [isinstance(item, str) and is_secret_under(name, item) for item in value]
    return rule if likely and all(likely) else None


def _free_key(key: Any, taken: dict[Any, Any]) -> Any:
    """Return the key, numbered if another was redacted to the same, so that no member is lost."""
    if key not in taken or not isinstance(key, str):
        return key
    number = 2
    while f"{key}#{number}" in taken:
        number += 1
    return f"{key}#{number}"

"""Secrets known by what is around them: a line above, a manifest's kind, numbers that make up a key, a seed phrase. Pure.

The names of `assignments` stand on the line of their value. Here they stand above it (YAML, Markdown), in another
language, or there are none: an array of 64 bytes is a key pair, twelve words after `mnemonic` are a wallet.
"""

import itertools
import re
from collections.abc import Container, Iterator
from typing import Any

from memd.capture.redact.names import (
    FOREIGN_KEYS,
    FOREIGN_LETTER,
    FOREIGN_PASSWORDS,
    is_likely_secret,
    is_naming,
    is_reference,
)
from memd.capture.redact.tokens import compile_regex, find_all, find_beginning

_Found = tuple[int, int, str]
"""Start, end and rule of a secret."""

_ABOVE = (
    r"(?m)[ \t]*(?:[-?*+>][ \t]{1,4})?[\"'`*_]{0,3}(?P<name>[\w. /-]{2,40}?)[\"'`*_]{0,3}[ \t]*"
    r"(?P<colon>:?)[*_]{0,3}[ \t]*(?:[>|]\d?[+-]?\d?|&[\w-]{1,40}|!!\w{1,12})?[ \t]*(?:#[^\n]{0,60})?\r?\n"
    r"(?:[ \t]*(?:```\w{0,12})?[ \t]*\r?\n){0,2}[ \t]*[\"'`]?(?P<s>[^\s\"'`]{5,512})[\"'`]?[ \t]*(?:\r?$|\Z)"
)
_ABOVE_NAMES = ("pass", "pw", "secret", "token", "key", "kennwort", "senha", "contrase")
_NAME_TAIL_MAX = 60
_STRONG_DIGITS = 3
_MANIFEST = r"(?m)^[ \t-]*[\"']?kind[\"']?[ \t]*:[ \t]*[\"']?(?:Sealed)?Secret(?:List)?\b|\\{0,7}\"kind\\{0,7}\"\s*:\s*\\{0,7}\"Secret\\{0,7}\""
_DATA = r"(?m)^(?P<indent>[ \t]*)(?:data|stringData)[ \t]*:[ \t]*\r?$\n?"
_DATA_LINE = r"(?P<indent>[ \t]+)[\w.\"'/-]{1,128}[ \t]*:[ \t]*(?:[|>][+-]?[ \t]*\r?\n[ \t]+)?[\"']?(?P<s>[^\s\"'{}]{4,8192})[\"']?[ \t]*(?:\r?\n|\Z)"
_DATA_OBJECT = r"\\{0,7}\"(?:data|stringData)\\{0,7}\"\s{0,4}:\s{0,4}\{(?P<body>[^{}]{1,20000})\}"
_MEMBER = r":\s{0,4}\\{0,7}\"(?P<s>[^\"\\\s]{4,8192})\\{0,7}\""
_BYTES = (
    r"[\[({]\s{0,40}(?P<s>(?:0x[0-9a-fA-F]{1,2}|\d{1,3})(?:\s{0,20},\s{0,20}(?:0x[0-9a-fA-F]{1,2}|\d{1,3})){31,63})"
    r"\s{0,20},?\s{0,40}[\])}]"
)
_NUMBER = r"0x[0-9a-fA-F]+|\d+"
_KEY_PAIR = 64
_KEY_SEED = 32
_KEY_HINT = r"(?i:secret|private|seed|key)[^\n]{0,60}\Z"
_DISTINCT_SHARE = 0.6
_BYTE_MAX = 255
_STEPS_SHARE = 0.5
_PHRASE_WORDS = ("mnemonic", "seed", "recovery", "secret", "backup", "wallet")
_PHRASE = (
    r"(?i:mnemonic|(?:seed|recovery|secret|backup|wallet)[ _-]?(?:phrase|words)|seed(?=\\{0,3}[\"'`]?\s{0,4}[:=]))[^\n.]{0,40}?[\"'`:=\s]\s{0,8}\\{0,3}[\"'`]?"
    r"(?P<s>(?:\d{1,2}[.)]\s{0,2})?[a-z]{3,8}(?:(?:[ ,]|\r?\n|\\n){1,3}(?:\d{1,2}[.)]\s{0,2})?[a-z]{3,8}){11,23})"
)
_PROSE = frozenset(
    [
        "the",
        "and",
        "for",
        "are",
        "but",
        "not",
        "all",
        "any",
        "can",
        "had",
        "her",
        "was",
        "one",
        "our",
        "out",
        "day",
        "get",
        "has",
        "him",
        "his",
        "how",
        "its",
        "may",
        "see",
        "two",
        "who",
        "did",
        "yes",
        "again",
        "them",
        "they",
        "were",
        "from",
        "have",
        "been",
        "each",
        "their",
        "said",
        "which",
        "does",
        "would",
        "there",
        "what",
        "where",
        "when",
        "with",
        "your",
        "because",
        "anybody",
        "please",
        "which",
        "could",
        "should",
        "must",
        "into",
        "over",
        "than",
        "then",
        "only",
        "paper",
        "keep",
        "write",
        "home",
        "runs",
        "lazy",
        "dog",
        "fox",
        "shown",
        "never",
        "once",
        "that",
        "wallet",
        "phrase",
        "words",
    ]
)
_PROSE_MAX = 1
_FOREIGN_VALUE = (
    r"(?:[\"'»”`*_]{0,3}(?:[ \t]{1,2}[^\W\d_]{1,12}){0,2}?\s{0,2}(?P<sign>[:：=→—–-]|は|은|는|이|是|为|為|هي|هو)"
    r"|[\"'*_]{0,3}(?P<verb>\s{1,2}(?:ist|lautet|war|est|es|é|è|ist:|is|jest|to|brzmi|är|er|on|je|e|هي|هو|является)"
    r"(?=\s|:)):?)\s{0,4}[\"'«„“`*]{0,3}\s{0,2}(?P<s>[^\s\"'«»“”`*,;<>()（）。，、|]{4,128})"
)
_FOREIGN_TAIL = r"[^\x21-\x7e]+\Z"
_LATIN_STEMS = r"passwort|kennwort|mot de passe|contrase[ñn]a|palavra-passe|wachtwoord|adgangskode"
"""Also the end of a longer word: `Root-Passwort`, `Datenbankpasswort`."""
_LATIN_NAMES = (
    r"mdp|clave|senha|haslo|parola(?: d'ordine)?|losenord|passord|salasana|heslo|parole|jelszo|mat khau|kata sandi|"
    r"lozinka|parool"
)
_LATIN_GATE = (
    "wort",
    "mot\n",
    "mdp",
    "contrase",
    "clave",
    "senha",
    "palavra",
    "wachtw",
    "haslo",
    "parol",
    "losen",
    "passord",
    "adgangs",
    "salas",
    "heslo",
    "jelszo",
    "khau",
    "sandi",
    "lozinka",
)
_KEY_MIN = 16
_SIGNS = frozenset(":：=")
_LATIN_LAST = "\u024f"


DOCUMENT_NEEDLES = ("kind", "mnemonic", "phrase", "seed", *_ABOVE_NAMES, *_LATIN_GATE)
"""What `redact_documents` searches for in the words of a text."""


def redact_documents(text: str, signs: Container[str], *, named: bool) -> str:
    """Redact secrets that only what is around them gives away.

    `signs`: which of `DOCUMENT_NEEDLES` are in its words in lower case; `named`: whether names of secrets may be
    among them.
    """
    found: list[_Found] = []
    if named:
        found += _find_named(text, text.lower(), signs)
    if "kind" in signs and "secret" in signs and compile_regex(_MANIFEST).search(text):
        found += _find_in_manifest(text)
    if text.count(",") >= _KEY_SEED - 1:
        found += _find_bytes(text)
    if "mnemonic" in signs or "phrase" in signs or "seed" in signs:
        found += _find_phrases(text, text.lower())
    if not found:
        return text
    kept: list[str] = []
    done = 0
    for start, end, rule in sorted(set(found)):
        if start >= done:
            kept += [text[done:start], f"[REDACTED:{rule}]"]
            done = end
    return "".join((*kept, text[done:])) if kept else text


def _is_latin_word(value: str) -> bool:
    return value.isascii() and value.isalpha() and value.islower() and not is_reference(value)


def is_key_bytes(numbers: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a list of numbers is a key pair: 64 bytes that look drawn."""
    return len(numbers) == _KEY_PAIR and _are_drawn(numbers)


def _are_drawn(numbers: list[Any] | tuple[Any, ...]) -> bool:
    """Whether these are bytes at random: in no order, few of them twice."""
    if not all(type(n) is int and 0 <= n <= _BYTE_MAX for n in numbers):
        return False
    steps = [abs(a - b) for a, b in itertools.pairwise(numbers)]
    small = sum(step <= 1 for step in steps)
    return (
        len(set(numbers)) >= _DISTINCT_SHARE * len(numbers)
        and small < _STEPS_SHARE * len(steps)
        and max(numbers) > _BYTE_MAX // 2
    )


def _find_named(text: str, lowered: str, signs: Container[str]) -> Iterator[_Found]:
    if "\n" in text:
        yield from _find_below(text, lowered, signs)
    yield from _find_foreign(text, lowered, signs)


def _find_below(text: str, lowered: str, signs: Container[str]) -> Iterator[_Found]:
    """Yield values on the line below their name."""
    if len(lowered) != len(text):  # a few letters grow when lowered
        lowered = text
    done = 0
    for at in sorted(
        at for word in _ABOVE_NAMES if word in signs for at in find_all(word, lowered)
    ):
        if at < done:
            continue
        end = text.find("\n", at)
        if end < 0:
            return
        done = end
        if end - at > _NAME_TAIL_MAX:
            continue
        found = compile_regex(_ABOVE).match(text, text.rfind("\n", 0, at) + 1)
        if found is None:
            continue
        name = found["name"].strip(" _").rsplit(" ", 1)[-1]
        value = found["s"]
        if not is_naming(name) or not is_likely_secret(value) or value[-1] in ":,{[":
            continue
        # Without a colon, two lines of a list look the same.
        if found["colon"] or sum(map(str.isdigit, value)) >= _STRONG_DIGITS:
            yield (*found.span("s"), "password")


def _find_in_manifest(text: str) -> Iterator[_Found]:
    """Yield the values of a Kubernetes secret, of YAML and of JSON."""
    start = 0
    for document in compile_regex(r"(?m)^---[^\n]*$").split(text):
        begin = text.find(document, start)
        end = start = begin + len(document)
        if not compile_regex(_MANIFEST).search(document):
            continue
        for data in compile_regex(_DATA).finditer(text, begin, end):
            at = data.end()
            while line := compile_regex(_DATA_LINE).match(text, at, end):
                if len(line["indent"]) <= len(data["indent"]):
                    break
                if not is_reference(line["s"]):
                    yield (*line.span("s"), "kubernetes-secret")
                at = line.end()
        for data in compile_regex(_DATA_OBJECT).finditer(text, begin, end):
            for member in compile_regex(_MEMBER).finditer(text, *data.span("body")):
                if not is_reference(member["s"]):
                    yield (*member.span("s"), "kubernetes-secret")


def _find_bytes(text: str) -> Iterator[_Found]:
    """Yield arrays of numbers that are keys."""
    for found in compile_regex(_BYTES).finditer(text):
        numbers = [
            int(n, 0) if n[:2] == "0x" else int(n)
            for n in compile_regex(_NUMBER).findall(found["s"])
        ]
        if not _are_drawn(numbers):
            continue
        before = text[max(0, found.start() - 80) : found.start()]
        hinted = compile_regex(_KEY_HINT).search(before) is not None
        if len(numbers) == _KEY_PAIR or (hinted and len(numbers) == _KEY_SEED):
            yield (*found.span("s"), "key-bytes")


def _find_phrases(text: str, lowered: str) -> Iterator[_Found]:
    """Yield seed phrases: twelve words or more that are no sentence."""
    for found in find_beginning(compile_regex(_PHRASE), _PHRASE_WORDS, text, lowered):
        words = compile_regex(r"[a-z]+").findall(found["s"])
        if (
            sum(word in _PROSE for word in words) <= _PROSE_MAX
            and len(set(words)) > len(words) // 2
        ):
            yield (*found.span("s"), "mnemonic")


def _find_foreign(text: str, lowered: str, signs: Container[str]) -> Iterator[_Found]:
    """Yield passwords after the word for it in other languages."""
    if any(word in signs for word in _LATIN_GATE):
        for found in compile_regex(
            rf"(?i)(?:{_LATIN_STEMS}|(?<![\w/.-])(?:{_LATIN_NAMES}))(?![a-z_]){_FOREIGN_VALUE}"
        ).finditer(text):
            if is_likely_secret(found["s"].rstrip(".!?:")):
                yield (*found.span("s"), "password")
    if text.isascii() or not compile_regex(FOREIGN_LETTER).search(text):
        return
    for words, least in ((FOREIGN_PASSWORDS, 4), (FOREIGN_KEYS, _KEY_MIN)):
        for word in [word for word in words if word in lowered]:
            regex = compile_regex(rf"(?i){re.escape(word)}{_FOREIGN_VALUE}")
            for found in regex.finditer(text):
                start = found.start("s")
                # Languages without blanks go on after the value.
                value = compile_regex(_FOREIGN_TAIL).sub("", found["s"]).rstrip(".!?:")
                # Between other letters, a Latin word after a colon is no prose: `пароль: letmein`.
                is_word = (
                    found["sign"] in _SIGNS and word[0] > _LATIN_LAST and _is_latin_word(value)
                )
                if len(value) >= least and (is_word or is_likely_secret(value)):
                    yield start, start + len(value), "password"

"""The words of a text that may tell a secret, and the words about secrets in each language (words.toml). Pure."""

import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from memd.capture.redact import names
from memd.capture.redact.names import is_naming, is_reference, judge
from memd.capture.redact.regexes import Found, Reading, compile_regex, find_all, mark_characters


class Language(NamedTuple):
    """The words of a language of each kind (see words.toml)."""

    being: frozenset[str]
    to: frozenset[str]
    of: frozenset[str]
    using: frozenset[str]
    small: frozenset[str]
    closing: frozenset[str]
    polite: frozenset[str]
    state: frozenset[str]
    enter: frozenset[str]
    user: frozenset[str]
    former: frozenset[str]
    opens: frozenset[str]
    endings: tuple[str, ...]
    change: tuple[str, ...]


_COLLECTIONS = (*(frozenset,) * 12, tuple, tuple)
"""What a language has its kinds of words in."""


class Word(NamedTuple):
    """A word for a secret, and the languages that have it."""

    parts: str
    is_password: bool
    languages: tuple[Language, ...]
    is_english: bool
    """If not, it may have an ending of its own, and be that of a longer word: `hasłem`, `Datenbankpasswort`."""
    all: Language
    """The words of all its languages together."""
    has_english: bool = False
    """Whether English has it, too, where what stands before it says of what it is."""
    opens: bool = False
    """Whether it holds a secret only where what it opens is named: "the code for the gate"."""
    leads: frozenset[str] = frozenset()
    """What may stand between a value and the word after it: "as", "is"."""
    goes_on: frozenset[str] = frozenset()
    """What may stand between the word and a value after it."""
    of_anything: bool = False
    """Whether it is a key or a code for something else, whose value must be drawn: "the key for the crash reporter"."""

    @property
    def may_be_plain(self) -> bool:
        """Return whether a plain word may be its value."""
        return self.is_password and not self.opens and self.parts != "pass"


class SpokenToken(NamedTuple):
    """A word between blanks, or what stands in quotes; `start` and `end` leave out quotes and punctuation."""

    start: int
    end: int
    raw: str
    bare: str
    quote: str
    """The sign that opens it, if it is in quotes."""


_INTERNATIONAL = ("en", "de", "fr", "es", "pt", "it", "nl", "pl", "tr", "sv", "da", "ru")
"""English words for a secret are used in these languages, too."""
_SIGNS = (
    *("pass", "pw", "secret", "token", "key", "cred", "jwt", "hasl", "hesl", "jelsz", "parol", "sandi"),
    *("code", "kod", "combi", "nyckel"),
)  # fmt: skip
"""What many words have in common, so that a text is searched for few."""
_WHOLE_MAX = 4
"""A shorter word is searched for with what ends it: `pin` is in `shipping`."""


def _read_language(table: dict[str, str]) -> Language:
    def read(name: str) -> frozenset[str]:
        return frozenset(word.replace("_", " ") for word in table.get(name, "").split())

    return Language(
        read("is"), read("to"), read("of"), read("as"), read("small"), read("closing"), read("polite"),
        read("state"), read("enter"), read("user"), read("former"), read("opens"), tuple(table["endings"].split()),
        tuple(table.get("change", "").split()),
    )  # fmt: skip


def _join_languages(languages: tuple[Language, ...]) -> Language:
    """Return what several languages have together."""
    joined = (dict.fromkeys(word for each in kind for word in each) for kind in zip(*languages))  # noqa: B905  # of one length
    return Language._make(kind(found) for kind, found in zip(_COLLECTIONS, joined, strict=True))


@functools.cache
def words_for_secrets(*, opening: bool = False) -> dict[str, list[Word]]:
    """Return the words for secrets by the last part of each, those of several parts first; or those that open something."""
    languages = {
        name: _read_language(row) for name, row in names.WORD_TABLES.items() if "endings" in row
    }
    spoken: dict[tuple[str, bool], list[Language]] = {}
    for name, language in languages.items():
        for kind in ("code",) if opening else ("password", "key"):
            for word in names.WORD_TABLES[name].get(kind, "").split():
                spoken.setdefault((word.replace("_", " "), kind != "key"), []).append(language)
    english = languages["en"]
    # An English word in another language: what is English, too, means what it means in English.
    known = english.to | english.of | english.small
    others = [languages[name] for name in _INTERNATIONAL[1:]]
    joins = known | english.using | english.closing
    narrow = (one._replace(being=one.being - known, small=one.small - joins) for one in others)
    abroad = [english, *narrow]
    index: dict[str, list[Word]] = {}
    for (parts, is_password), own in spoken.items():
        more = abroad if own[0] is english else [english]
        of = tuple(dict.fromkeys([*own, *more]))
        is_english = own[0] is english and (not opening or len(own) == 1)
        both = _join_languages(of)
        leads, goes_on = both.using | both.being, both.being | both.small | both.of | both.to
        word = Word(
            parts, is_password, of, is_english, both, own[0] is english, opening, leads, goes_on
        )
        index.setdefault(parts.rsplit(" ", 1)[-1], []).append(word)
    return {last: sorted(words, key=lambda w: -len(w.parts)) for last, words in index.items()}


def list_last_parts(*kinds: str) -> list[str]:
    """Return the last parts of the words for secrets of some kinds."""
    rows = [row for row in names.WORD_TABLES.values() if "endings" in row]
    words = [word for row in rows for kind in kinds for word in row.get(kind, "").split()]
    return list(dict.fromkeys(word.rsplit("_", 1)[-1] for word in words))


def group_by_sign(words: list[str]) -> dict[str, list[str]]:
    """Return the ASCII words by what to search for first."""
    signs: dict[str, list[str]] = {}
    for last in sorted(filter(str.isascii, words), key=len):
        whole = f"{last}\n" if len(last) < _WHOLE_MAX else last
        signs.setdefault(next((s for s in (*_SIGNS, *signs) if s in last), whole), []).append(last)
    return signs


def group_by_letters(words: list[str]) -> list[tuple[frozenset[str], str]]:
    """Return the words beyond ASCII, each with its letters that are beyond it."""
    return [
        (frozenset(re.findall(names.FOREIGN_LETTER, last)), last)
        for last in words
        if not last.isascii()
    ]


def find_foreign(lowered: str, words: list[tuple[frozenset[str], str]]) -> list[str]:
    """Return which of these words are in a text: few texts have the letters of many."""
    letters = set(compile_regex(names.FOREIGN_LETTER).findall(lowered))
    return [last for own, last in words if own <= letters and last in lowered]


BY_SIGN = group_by_sign(list_last_parts("password", "key"))
FOREIGN = group_by_letters(list_last_parts("password", "key"))
SPOKEN_WORDS = tuple(BY_SIGN)
"""What `find_spoken` searches for in the words of a text, each with a line break behind it."""
LINE = 160
"""Characters of a line that are read after a word, and half of them before."""
_TOKENS_MAX = 9
_WORD_OR_QUOTE = (
    r"[(\[*_]{0,3}(?P<q>\\{0,3}[\"'`]|[«“„‘「『])(?P<in>[^\"'`«»“”„‘’「」『』\n\\]{1,80})(?P<c>\\{0,3}[\"'`]"
    r"|[»”“’」』])[)\]*_.,;:!?]{0,3}(?=[\s)\]]|\\n|\Z)"
    r"|[^\s\\\"`]+(?:\\(?![nrt\"'])[^\s\\\"`]*)*"
)
FINAL = (
    r"[)\]\"'`*_»”’」]*(?:[.!?…,;。，]+(?=[\s)\"'`*]|\Z|\\n)|[)\]»”]|[ \t]*(?:\Z|[\r\n#(|]|\\[nr]))"
)
NEXT_WORD = r"[\"'`*_»”’)]*[ \t]{1,4}([^\W\d_]+(?:['’][a-z]+)?)"
CLAUSE_SIGNS = ".,;:!?(-–—*>|\"'`“«"
_SUBJECT_MAX = 5
_OWNERS_MAX = 2
_OPENING = "\"'`*_«“„‘「『(["
_CLOSING = "\"'`*_»”“’」』)],;:!?.…"

PLAIN_MIN = 5
_OTHER_MIN = 6
_NUMBERED_NAME = r"[A-Z][a-z]+\d+(?:[A-Z][a-z]+\d*)+|[A-Z][a-z]+[A-Z]{2,}\d*"
CODE_NAME = (
    r"[a-z]+(?:_[a-z]+)+\d?|[a-z]+(?:[A-Z][a-z]+)+\d?|[A-Z]+(?:_[A-Z]+)+\d?|(?:[A-Z][a-z]+){1,4}\d?"
)
_MARKS = bytes(
    c if chr(c) in "-:" else b"1"[0] if c > 127 or chr(c) in "0123456789!#$%&*+=?@^~" else 32  # noqa: PLR2004
    for c in range(256)
)
"""Marks what `judge` asks of a value that is no plain word: a digit or a sign, which another letter may be, or four parts."""
_HYPHENS_MIN = 3
_COLON_AT_END = r":[\s\\\"`]*(?:\n|\\n|\Z)"
"""Behind it a value stands on the next line."""
LATIN_LAST = "\u024f"
_WITHIN = frozenset("_-./$@#{<\\=")
_ENDING = r"[^\W\d_]{1,5}(?![\w])"


def among(word: Word, kind: str, low: str) -> bool:
    """Return whether a lower-cased word is of this kind in a language of the word for a secret."""
    return as_listed(low) in getattr(word.all, kind)


def as_listed(low: str) -> str:
    """Return lower-cased words as they are listed: with the apostrophe of print."""
    return low.replace("'", "’")


def begin_of_line(text: str, at: int) -> int:
    """Return where the part of a line begins that is read before a word."""
    low = max(at - LINE // 2, 0)
    return max(text.rfind("\n", low, at) + 1, low)


def read_tokens_after(text: str, at: int) -> list[SpokenToken]:
    """Return the words of the rest of a line; after a colon at its end, the only one of the line below."""
    stop = text.find("\n", at, at + LINE)
    stop = min(at + LINE, len(text)) if stop < 0 else stop
    escaped = text.find("\\n", at, stop)
    stop = stop if escaped < 0 else escaped
    tokens: list[SpokenToken] = []
    # A quote, a bracket or a mark of bold text that closes after the word belongs to it.
    while (
        at < stop
        and text[at] in "\"'`*)»”’"
        and text[at + 1 : at + 2] in {" ", ":", "*", "\t", "="}
    ):
        at += 1
    for found in compile_regex(_WORD_OR_QUOTE).finditer(text, at, stop):
        if len(tokens) == _TOKENS_MAX:
            return tokens
        tokens.append(_read_token(found))
    if not tokens or not tokens[-1].raw.endswith(":"):
        return tokens
    below = compile_regex(
        r"[ \t]*(?:\r?\n|\\n)(?:[ \t]*(?:```\w{0,12})?[ \t]*(?:\r?\n|\\n)){0,2}[ \t>]*"
    ).match(text, stop)
    value = compile_regex(_WORD_OR_QUOTE).match(text, below.end()) if below else None
    if value is not None and compile_regex(r"[ \t]*(?:\r?\n|\\n|\Z)").match(text, value.end()):
        tokens.append(_read_token(value))
    return tokens


def _read_token(found: re.Match[str]) -> SpokenToken:
    if found["q"]:
        start, end = found.span("in")
        return SpokenToken(start, end, found[0], found["in"], found["q"][-1])
    start, end = found.span()
    raw = found[0]
    left = len(raw) - len(raw.lstrip(_OPENING))
    bare = raw[left:].rstrip(_CLOSING)
    # What a bracket within opened is part of the value, and so is a sign that ends it: `Kite92!`.
    end = start + left + len(bare)
    while end < found.end() and (
        raw[end - start] in "!?" or (raw[end - start] == ")" and "(" in bare)
    ):
        end += 1
    return SpokenToken(start + left, end, raw, bare, "")


def read_before(text: str, begin: int, start: int) -> list[SpokenToken]:
    """Return the words before a word for a secret."""
    return [_read_token(one) for one in compile_regex(_WORD_OR_QUOTE).finditer(text, begin, start)]


def read_sentence(text: str, start: int, end: int) -> list[SpokenToken]:
    """Return the words of the sentence around a word for a secret, as far as they are read."""
    stop = text.find("\n", end, end + LINE)
    ended = compile_regex(r"[.!?;。](?=\s|\Z)|\\n").search(
        text, end, stop if stop >= 0 else end + LINE
    )
    begin = begin_of_line(text, start)
    for before in compile_regex(r"[.!?;。]\s|\\n").finditer(text, begin, start):
        begin = before.end()
    stop = ended.start() if ended else stop if stop >= 0 else end + LINE
    return read_before(text, begin, stop)


def is_last(text: str, token: SpokenToken, word: Word) -> bool:
    """Return whether nothing of the sentence follows, or only a word that may: "fyi"."""
    if compile_regex(FINAL).match(text, token.end):
        return True
    following = compile_regex(NEXT_WORD).match(text, token.end)
    return following is not None and among(word, "closing", following[1].lower())


def is_complete(
    text: str, end: int, word: Word, owner: Language | None = None, *, is_strict: bool = True
) -> bool:
    """Return whether the word ends its sentence, or a phrase about it follows: the owner's language needs no preposition."""
    for n in range(_OWNERS_MAX + 1 if owner else 1):
        if compile_regex(FINAL).match(text, end):
            return True
        following = compile_regex(NEXT_WORD).match(text, end)
        if following is None:
            return False
        low = following[1].lower()
        is_elided = "'" in low or "’" in low  # dell'utente, d'administration
        if n == 0 and (is_elided or among(word, "of", low) or among(word, "closing", low)):
            return True
        if owner and is_strict and (low in owner.state or low.endswith(owner.endings)):
            return False
        end = following.end()
    return False


def begins_clause(text: str, start: int, word: Word) -> bool:
    """Return whether a word is the subject of its clause, at most a few words from the beginning of it."""
    before = text[begin_of_line(text, start) : start]
    subject = (
        before[max(map(before.rfind, CLAUSE_SIGNS)) + 1 :].lower().split()[-_SUBJECT_MAX - 1 :]
    )
    return len(subject) <= _SUBJECT_MAX or any(among(word, "closing", one) for one in subject)


def end_of_word(text: str, start: int, end: int, word: Word) -> int:
    """Return where a word ends with its ending; 0 if it is part of another."""
    before = text[start - 1 : start]
    if before == ":" and text.startswith("[REDACTED:", start - 10):
        return 0
    if before and (before.isalnum() or before in _WITHIN):
        compound = not word.is_english and (before.isalpha() or before == "-")
        if not compound and text[max(0, start - 2) : start] not in {"\\n", "\\t", "\\r"}:
            return 0
    following = text[end : end + 1]
    if following.isalnum() or following == "_":
        is_whole = word.is_english or word.opens
        ending = None if is_whole else compile_regex(_ENDING).match(text, end)
        return ending.end() if ending else 0
    return end


def can_be_password(bare: str, word: Word, language: Language, least: int = PLAIN_MIN) -> bool:
    """Return whether a word can be a password, and is not one that this language has for what passwords are."""
    low = bare.lower()
    if not bare.isalpha() or bare.isupper() or len(low) < least or word.parts in {"pass", "pin"}:
        return False
    if not word.is_password or is_naming(low) or is_reference(low) or low in names.VARIABLES:
        return False
    foreign = not low.isascii() and word.parts[0] > LATIN_LAST
    about = (language.state, language.of, language.closing, language.being)
    if low in language.small and least == PLAIN_MIN:
        return False
    return (
        not foreign
        and not low.endswith(language.endings)
        and not any(low in words for words in about)
    )


def has_verb_of_change(text: str, start: int, end: int, word: Word) -> bool:
    """Return whether a verb of change is in the line: passwords are also sent and added to something."""
    line = text[begin_of_line(text, start) : end + LINE // 4].lower()
    return any(one.startswith(word.all.change) for one in line.split())


def is_of_change(text: str, end: int, word: Word) -> bool:
    """Return whether the next word is a verb of change: "the password rotated from … to …"."""
    return text[end : end + LINE // 4].lower().lstrip().startswith(word.all.change)


def find_words(
    text: str, lowered: str, lasts: list[str], *, opening: bool = False
) -> Iterator[tuple[int, int, Word]]:
    """Yield where words for secrets stand that end with one of `lasts`, and which they are, but none without a value near it."""
    marks = mark_characters(text, _MARKS) if lasts else b""
    has_values = b"1" in marks or b":" in marks or marks.count(b"-") >= _HYPHENS_MIN
    for last in lasts:
        words = words_for_secrets(opening=opening)[last]
        if not has_values and not any(word.may_be_plain for word in words):
            continue
        for at in find_all(last, lowered):
            end = at + len(last)
            for word in words:
                start = end - len(word.parts)
                if start != at and not lowered.startswith(word.parts, max(start, 0)):
                    continue
                whole = end_of_word(text, start, end, word)
                if whole:
                    if word.may_be_plain or _may_be_told(text, marks, start, whole):
                        yield start, whole, word
                    break


def _may_be_told(text: str, marks: bytes, start: int, end: int) -> bool:
    """Return whether a value that is no plain word may stand as near to a word as values are read."""
    begin, stop = max(start - LINE // 2, 0), end + LINE + LINE // 2
    near = marks[begin:stop]
    if b"1" in near or near.count(b"-") >= _HYPHENS_MIN:
        return True
    return b":" in near and compile_regex(_COLON_AT_END).search(text, begin, stop) is not None


def may_be_another(token: SpokenToken, least: int) -> bool:
    """Return whether a word has the length and the digits of a password, and is no name in code and no digest."""
    bare = token.bare
    return (
        len(bare) >= _OTHER_MIN
        and judge(bare) >= least
        and any(map(str.isdigit, bare))
        and not compile_regex(_NUMBERED_NAME).fullmatch(bare)
        and not compile_regex(
            rf"{CODE_NAME}|r?[0-9a-f]+|\d{{1,3}}[a-z]+|.*(?:[*/|]|\.\.\.).*"
        ).fullmatch(bare)
    )


def kinds_of(bare: str) -> tuple[bool, ...]:
    """Return which kinds of characters a word has: two passwords of one person are alike."""
    tests = (str.islower, str.isupper, str.isdigit, lambda c: not c.isalnum())
    return tuple(any(map(test, bare)) for test in tests)


# ── Languages that write no blanks ────────────────────────────────────────────────────────────────

_UNSPACED = [row for row in names.WORD_TABLES.values() if "after" in row]
_USUAL_MIN = 8
_UNSPACED_RUN = (
    r"[\"'`「『“*(（]{0,3}\s{0,2}(?P<s>[\x21\x23-\x26\x28-\x3b\x3d\x3f-\x5f\x61-\x7e]{4,128})"
)
_UNSPACED_GAP = r"[^\x21-\x7e。！？；\n]{0,24}?"
_UNSPACED_END = r"[\"'`」』”)）]{0,3}\s{0,2}(?:です|だよ?|だ|입니다|이야|야|예요|이에요|。|，|、|,|\.|\Z|\n|\\n)"


def find_unspaced(text: str, lowered: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and rule of the values in languages that write no blanks: 密码是…, パスワードは…です, 비밀번호는 …, 用…作为密码."""
    for table in _UNSPACED:
        for kind in ("password", "key"):
            for word in table[kind].replace("_", " ").split():
                if word in lowered:
                    yield from _find_beside(text, word, kind, table)


def _find_beside(
    text: str, word: str, kind: str, table: dict[str, str]
) -> Iterator[tuple[int, int, str]]:
    links = "|".join(sorted(table["after"].split(), key=len, reverse=True))
    after = compile_regex(
        rf"(?i){word}{_UNSPACED_GAP}(?:{links})\s{{0,3}}[:：]?\s{{0,3}}{_UNSPACED_RUN}"
    )
    told = compile_regex(rf"(?i){word}{_UNSPACED_GAP}{_UNSPACED_RUN}")
    instead = compile_regex(
        rf"\s{{0,3}}[，,、]?\s{{0,3}}[^\x21-\x7e。！？；\n]{{1,8}}?{_UNSPACED_RUN}"
    )
    befores = "|".join(sorted(table["before"].split(), key=len, reverse=True))
    before = compile_regex(
        rf"(?i){_UNSPACED_RUN}[\"'`」』”*)）]{{0,3}}\s{{0,2}}(?:{befores})[^\x21-\x7e。！？；，、\n]{{0,8}}?{word}"
    )
    is_password = kind == "password"
    least = names.FAIR if is_password else names.STRONG
    for regex in (after, told, before):
        for found in regex.finditer(text):
            start, bare = found.start("s"), found["s"].rstrip("\"'`*().,;:")
            is_last = compile_regex(_UNSPACED_END).match(text, start + len(bare)) is not None
            strength = judge(bare)
            if (
                is_last
                and is_password
                and strength in {names.PLAIN, names.NUMBER}
                and regex is not told
            ):
                named = is_naming(bare) or is_reference(bare)
                is_value = strength == names.NUMBER or (
                    regex is after and bare.islower() and not named
                )
            else:
                # A short name with a number may be a part of the page: 密码框是input2组件.
                is_usual = len(bare) >= _USUAL_MIN and (regex is not told or _has_digits(bare))
                is_value = strength >= least and (
                    strength == names.STRONG or (is_last and regex is not told) or is_usual
                )
            if is_value:
                yield start, start + len(bare), "password" if is_password else "token"
            newer = instead.match(text, start + len(bare)) if is_password else None
            if newer and regex is after and judge(newer["s"]) >= names.FAIR:
                yield *newer.span("s"), "password"


def _has_digits(bare: str) -> bool:
    return sum(map(str.isdigit, bare)) > 1


# ── Codes and keys that open something: "the code for the gate is 4711B", "clé wifi : …" ──────────
# Codes and keys are also those of tables, errors and parts. What they are is said by a word beside them (`opens` in
# words.toml), and their values are drawn or those of a keypad; a plain word never is one.

_OPENING_BY_SIGN = group_by_sign(list_last_parts("code"))
_FOREIGN_OPENING = group_by_letters(list_last_parts("code"))
OPENING_SIGNS = frozenset(_OPENING_BY_SIGN)
"""What is searched for in the words of a text, each with a line break behind it."""
_OPENED = frozenset(
    part
    for row in names.WORD_TABLES.values()
    for word in ("redacted", *row.get("opens", "").split())
    for part in word.split("-")
)
"""What they open, and what stands in the place of a secret before another."""
_AFTER = 6
"""Words after a code among which what it opens may stand."""
_LONG_NUMBERED = r"(?a)(?=[\w+/=:.~-]{0,99}\d)[\w+/=:.~-]{12}"
_FOR_MAX = 4
"""Words after a key until the one that says what it is for: "key i made for …"."""
_CODE_LENGTH_MIN = 8
_PARTED_NAME = r"[A-Z]{1,4}-?\d+|[a-z]+\d*(?:[_.:][a-z0-9]+)+|[a-z]+\d*(?:-[a-z0-9]+){1,2}|[A-Z]+\d*(?:[_.:-][A-Z0-9]+)+"
"""What keys, parts and errors are called: `tenant-2024`, `E1042`, `ERR_2024`."""


def find_opening_words(reading: Reading) -> Iterator[tuple[int, int, Word]]:
    """Yield where a code or a key stands that opens something, and by which word it is called."""
    text, lowered = reading.text, reading.lowered
    words = [last for sign in OPENING_SIGNS & reading.signs for last in _OPENING_BY_SIGN[sign]]
    words += find_foreign(lowered, _FOREIGN_OPENING) if reading.is_foreign else []
    for at, end, word in find_words(text, lowered, words, opening=True):
        near = f"{lowered[max(at - LINE // 2, 0) : at]} {lowered[end : end + LINE // 2]}"
        is_near = not _OPENED.isdisjoint(compile_regex(r"[^\W_]+").findall(near))
        if is_near and _is_opening(text, at, end, word):
            yield at, end, word
        elif _is_for_something(text, at, end, word):
            yield at, end, word._replace(of_anything=True)


def _is_for_something(text: str, start: int, end: int, word: Word) -> bool:
    """Return whether a key or a code is said to be for something: "key for the crash reporter", but not "cache key for"."""
    if compile_regex(_LONG_NUMBERED).search(text, end, end + LINE) is None:
        return False  # nearly all have no such word near, and reading them takes longer
    before = text[begin_of_line(text, start) : start].split()[-1:]
    after = read_tokens_after(text, end)[:_FOR_MAX]
    is_for = any(among(word, "of", one.bare.lower()) for one in after)
    return is_for and not names.is_spared("_".join((*before, "key")))


def find_opened(text: str, end: int, word: Word, value: tuple[int, int] | None) -> Iterator[Found]:
    """Yield the value of a code that opens something, or of a “key for …” if it is drawn.

    A label may stand before the latter: “key for the maps: osm …”.
    """
    if not word.of_anything:
        if value is not None and is_code(text[slice(*value)]):
            yield *value, "password"
        return
    tokens = read_tokens_after(text, end)
    links = (
        n
        for n, one in enumerate(tokens)
        if one.raw.endswith((":", "=")) or among(word, "being", one.bare.lower())
    )
    at = next(links, len(tokens)) + 1
    spans = ([value] if value else []) + [(one.start, one.end) for one in tokens[at : at + 2]]
    for span in spans:
        words = text[end : max(span[0], end)].split()
        if names.is_named_key(words, text[slice(*span)]):
            yield *span, "token"
            return


def _is_opening(text: str, start: int, end: int, word: Word) -> bool:
    """Return whether what a code or a key opens is named beside it, or a secret was told before it in the line.

    What stands between says of what they are: "error code for the door", "code d'erreur de la porte".
    """
    line = begin_of_line(text, start)
    before = text[line:start].lower().split()[-1:]
    if any(_names_opening(one, word) for one in before):
        return True
    if word.has_english and any(_is_noun(one, word) for one in before):
        return False
    of = has_noun = False
    tokens = [one.bare.lower() for one in read_tokens_after(text, end)[:_AFTER]]
    for n, low in enumerate(tokens):
        if among(word, "of", low):
            if has_noun:
                break
            of = True
        elif _names_opening(low, word):
            if of or not among(word, "of", " ".join(tokens[n + 1 : n + 2])):
                return True  # but not "le code porte sur …"
        elif not among(word, "small", low):
            has_noun = True
            if any(map(str.isdigit, low)):
                break
    return of and "[REDACTED:" in text[line:start]


def _is_noun(low: str, word: Word) -> bool:
    """Return whether a word before another may be a noun that goes with it: none of the small words of its language."""
    kinds = ("small", "of", "to", "being", "closing", "using", "enter")
    return low.isalpha() and not any(among(word, kind, low) for kind in kinds)


def _names_opening(low: str, word: Word) -> bool:
    """Return whether a word is what a code opens, or has it as a part: "l'alarme", the "tür" of "türcode"."""
    bare = low.rstrip("-")
    return bare in word.all.opens or any(
        part in word.all.opens for part in re.split(r"[-'’]", bare)
    )


def is_code(bare: str) -> bool:
    """Return whether a value can be a code or a key that opens something: digits or drawn, and no name in code."""
    kind = judge(bare)
    is_long = kind == names.STRONG or (kind == names.FAIR and len(bare) >= _CODE_LENGTH_MIN)
    return kind == names.NUMBER or (
        is_long and not compile_regex(rf"{CODE_NAME}|{_PARTED_NAME}").fullmatch(bare)
    )

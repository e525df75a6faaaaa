"""Secrets told in a sentence: a word for a secret, what may stand between, and the value. Pure.

One grammar for every language of `words.toml`, which says what the words are:

    word [phrase] is|:|= [small words] value        the password for root is sunflower49, hasło do bazy to …
    word value, word phrase value                   pw sunflower49, пароль от сервера …
    word [phrase] to value                          set the password to …, setz das Passwort auf …
    as word value                                   als Passwort …, comme mot de passe …
    user value, word value                          Benutzer …, Passwort …
    value as|is|( [small words] word                use … as the password, … is the password for …
    enter value … word, word … enter value          type … when it asks for the password
    … value [but|now|is] value                      the password is no longer …, but …

A value is judged by its structure. Letters with digits or signs, and words in quotes, go wherever the grammar
leads to them; where it leads less surely (no verb between), they must look more drawn. A plain word goes only
where nothing but a value can stand: alone after "is" at the end of its sentence, no adjective and no participle.
"""

import functools
import itertools
from collections.abc import Container, Iterator
from typing import Any, NamedTuple

from memd.capture.redact import names
from memd.capture.redact.names import is_naming, is_reference, judge
from memd.capture.redact.regexes import compile_regex, find_all, replace_spans
from memd.capture.redact.unspaced import find_unspaced


class _Language(NamedTuple):
    """What a language has of each kind of words (see words.toml)."""

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
    endings: tuple[str, ...]
    change: tuple[str, ...]


class _Word(NamedTuple):
    """A word for a secret, and the languages that have it."""

    parts: str
    is_password: bool
    languages: tuple[_Language, ...]
    is_english: bool
    """If not, it may have an ending of its own, and be that of a longer word: `hasłem`, `Datenbankpasswort`."""


class _Token(NamedTuple):
    """A word between blanks, or what stands in quotes; `start` and `end` leave out quotes and punctuation."""

    start: int
    end: int
    raw: str
    bare: str
    quote: str
    """The sign that opens it, if it is in quotes."""


_Span = tuple[int, int]
_Found = tuple[int, int, str]
"""Start, end and rule of a secret."""
_INTERNATIONAL = ("en", "de", "fr", "es", "pt", "it", "nl", "pl", "tr", "sv", "da", "ru")
"""English words for a secret are used in these languages, too."""
_SIGNS = ("pass", "pw", "secret", "token", "key", "cred", "jwt", "hasl", "hesl", "jelsz", "parol", "sandi")  # fmt: skip
"""What many words have in common, so that a text is searched for few."""
_WHOLE_MAX = 4
"""A shorter word is searched for with what ends it: `pin` is in `shipping`."""


def _read_language(table: dict[str, str]) -> _Language:
    def read(name: str) -> frozenset[str]:
        return frozenset(word.replace("_", " ") for word in table.get(name, "").split())

    return _Language(
        read("is"), read("to"), read("of"), read("as"), read("small"), read("closing"), read("polite"),
        read("state"), read("enter"), read("user"), tuple(table["endings"].split()),
        tuple(table.get("change", "").split()),
    )  # fmt: skip


@functools.cache
def _words() -> dict[str, list[_Word]]:
    """Return the words for secrets by the last part of each, those of several parts first."""
    languages = {
        name: _read_language(row) for name, row in names.WORD_TABLES.items() if "endings" in row
    }
    spoken: dict[tuple[str, bool], list[_Language]] = {}
    for name, language in languages.items():
        for kind in ("password", "key"):
            for word in names.WORD_TABLES[name][kind].split():
                spoken.setdefault((word.replace("_", " "), kind == "password"), []).append(language)
    english = languages["en"]
    # An English word in another language: what is English, too, means what it means in English.
    known = english.to | english.of | english.small
    others = [languages[name] for name in _INTERNATIONAL[1:]]
    joins = known | english.using | english.closing
    narrow = (one._replace(being=one.being - known, small=one.small - joins) for one in others)
    abroad = [english, *narrow]
    index: dict[str, list[_Word]] = {}
    for (parts, is_password), own in spoken.items():
        more = abroad if own[0] is english else [english]
        word = _Word(parts, is_password, tuple(dict.fromkeys([*own, *more])), own[0] is english)
        index.setdefault(parts.rsplit(" ", 1)[-1], []).append(word)
    return {last: sorted(words, key=lambda w: -len(w.parts)) for last, words in index.items()}


def _last_parts() -> dict[str, None]:
    """Return the last parts of the words for secrets."""
    return {
        word.rsplit("_", 1)[-1]: None
        for row in names.WORD_TABLES.values()
        if "endings" in row
        for word in (*row["password"].split(), *row["key"].split())
    }


def _by_sign() -> dict[str, list[str]]:
    """Return the ASCII words by what to search for first."""
    signs: dict[str, list[str]] = {}
    for last in sorted(filter(str.isascii, _last_parts()), key=len):
        whole = f"{last}\n" if len(last) < _WHOLE_MAX else last
        signs.setdefault(next((s for s in (*_SIGNS, *signs) if s in last), whole), []).append(last)
    return signs


_BY_SIGN = _by_sign()
_FOREIGN = [last for last in _last_parts() if not last.isascii()]
SPOKEN_WORDS = tuple(_BY_SIGN)
"""What `redact_spoken` searches for in the words of a text, each with a line break behind it."""

_LINE = 160
"""Characters of a line that are read after a word, and half of them before."""
_TOKENS_MAX = 9
_PHRASE_MAX = 7
_SMALL_MAX = 3
_LATIN_LAST = "\u024f"
_LEFT_MIN, _LEFT_MAX = 3, 4
_SUBJECT_MAX = 5
_COMMAND_MAX = 3
"""Words before the value in "i have set … as the password"."""
_PAIR_MAX = 5
_OWNERS_MAX = 2
_ENGLISH_USING = frozenset(["as", "for"])
_WITHIN = frozenset("_-./$@#{<\\=")
_GOES_ON = frozenset(" ,\t\"'’`*)»”“’(（[")
_GOES_ON_FOREIGN = _GOES_ON | frozenset(":=：＝-–—→")
_AFTER_QUOTE = frozenset([" ", "\t", "*", ")", "s", ":", ""])
_ENDING = r"[^\W\d_]{1,5}(?![\w])"
_WORD_OR_QUOTE = (
    r"[(\[*_]{0,3}(?P<q>\\{0,3}[\"'`]|[«“„‘「『])(?P<in>[^\"'`«»“”„‘’「」『』\n\\]{1,80})(?P<c>\\{0,3}[\"'`]|[»”“’」』])[)\]*_.,;:!?]{0,3}(?=[\s)\]]|\\n|\Z)"
    r"|[^\s\\\"`]+(?:\\(?![nrt\"'])[^\s\\\"`]*)*"
)
_OPENING = "\"'`*_«“„‘「『(["
_CLOSING = "\"'`*_»”“’」』)],;:!?.…"
_SYMBOLS = frozenset([":", "=", "->", "=>", "→", "::", ":=", "＝", "：", "is:"])
_CHANGE = ">"
"""The link of "set the password to"."""
_DASHES = frozenset(["-", "–", "—", "--"])
_BREAKS = (".", "!", "?", ";", "…")
_FINAL = (
    r"[)\]\"'`*_»”’」]*(?:[.!?…,;。，]+(?=[\s)\"'`*]|\Z|\\n)|[)\]»”]|[ \t]*(?:\Z|[\r\n#(|]|\\[nr]))"
)
_NEXT_WORD = r"[\"'`*_»”’)]*[ \t]{1,4}([^\W\d_]+(?:['’][a-z]+)?)"
_CLAUSE_SIGNS = ".,;:!?(-–—*>|\"'`“«"
_LENGTH_MIN, _PLAIN_MIN, _USUAL_MIN, _PIN_MIN, _PIN_MAX = 4, 5, 8, 4, 12
_CODE_NAME = (
    r"[a-z]+(?:_[a-z]+)+\d?|[a-z]+(?:[A-Z][a-z]+)+\d?|[A-Z]+(?:_[A-Z]+)+\d?|(?:[A-Z][a-z]+){1,4}\d?"
)


def redact_spoken(text: str, signs: Container[str], *, is_foreign: bool) -> str:
    """Redact secrets told in sentences.

    `signs`: which of `SPOKEN_WORDS` are in its words in lower case; `is_foreign`: whether it has letters that are
    not ASCII.
    """
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters grow when lowered; then offsets would not agree
        lowered = "".join(c.lower() if c.isascii() else c for c in text)
    found: list[_Found] = []
    for sign in [sign for sign in _BY_SIGN if sign in signs]:
        for last in _BY_SIGN[sign]:
            found += _find_at_word(text, lowered, last)
    if is_foreign:
        for last in _FOREIGN:
            if last in lowered:
                found += _find_at_word(text, lowered, last)
        found += find_unspaced(text, lowered)
    return replace_spans(text, found)


def _find_at_word(text: str, lowered: str, last: str) -> Iterator[_Found]:
    """Yield the values around each place where a word for a secret ends with `last`."""
    for at in find_all(last, lowered):
        end = at + len(last)
        for word in _words()[last]:
            start = end - len(word.parts)
            if start != at and not lowered.startswith(word.parts, max(start, 0)):
                continue
            whole = _word_end(text, start, end, word)
            if whole:
                yield from _find_around(text, start, whole, word)
                break


def _word_end(text: str, start: int, end: int, word: _Word) -> int:
    """Where a word ends with its ending; 0 if it is part of another."""
    before = text[start - 1 : start]
    if before == ":" and text.startswith("[REDACTED:", start - 10):
        return 0
    if before and (before.isalnum() or before in _WITHIN):
        compound = not word.is_english and (before.isalpha() or before == "-")
        if not compound and text[max(0, start - 2) : start] not in {"\\n", "\\t", "\\r"}:
            return 0
    following = text[end : end + 1]
    if following.isalnum() or following == "_":
        ending = None if word.is_english else compile_regex(_ENDING).match(text, end)
        return ending.end() if ending else 0
    return end


def _find_around(text: str, start: int, end: int, word: _Word) -> Iterator[_Found]:
    following = text[end : end + 1]
    if following == "-" and text[end + 1 : end + 2].isalnum():
        return
    if following in "\"'’`" and text[end + 1 : end + 2] not in _AFTER_QUOTE:
        return
    if word.is_english and following == " " and not _may_go_on(text, end, word):
        following = ""  # most words after "password" are nouns: "password field"
    value = _find_value(text, start, end, word, following)
    if value is not None:
        yield (*value, _rule(word))
        if (newer := _find_next(text, value[1], word)) is not None:
            yield (*newer, _rule(word))


def _find_value(text: str, start: int, end: int, word: _Word, following: str) -> _Span | None:
    """Return the value after a word, else the one before it, else the one that is entered or newer."""
    before = text[max(0, start - _LINE // 2) : start].rpartition("\n")[2].split()
    used = bool(before) and before[-1] != "for" and _among(word, "using", before[-1].lower())
    if used and (value := _find_before(text, start, end, word)) is not None:
        return value
    asked = compile_regex(r" ?[?？]").match(text, end)
    if asked is not None:
        value = _find_answer(text, asked.end(), word)
    elif following in (_GOES_ON if word.is_english else _GOES_ON_FOREIGN):
        tokens = _read_tokens(text, end)
        value = _find_linked(text, start, tokens, word, "as") if used else None
        value = value or _find_paired(text, before, tokens, word)
        value = value or _find_after(text, start, end, word)
    else:
        value = None
    return (
        value
        or _find_before(text, start, end, word)
        or _find_newer(text, end, word)
        or _find_entered(text, start, end, word)
    )


def _find_paired(text: str, before: list[str], tokens: list[_Token], word: _Word) -> _Span | None:
    """Return a plain word after "user admin, password"."""
    pair = [one.strip(_CLAUSE_SIGNS).lower() for one in before[-_PAIR_MAX:]]
    if (
        not tokens
        or not word.is_password
        or not any(_among(word, "user", one) for one in pair[:-1])
    ):
        return None
    value, is_last = tokens[0], before[-1][-1] not in ",/"
    if is_last and not any(pair[-1] in one.closing for one in word.languages):
        return None
    is_plain = judge(value.bare) == names.PLAIN and _is_plain(value.bare, word, word.languages[0])
    return (value.start, value.end) if is_plain and _is_last(text, value, word) else None


def _find_next(text: str, at: int, word: _Word) -> _Span | None:
    """Return the value that takes the place of the one before it: "not …, but …"."""
    tokens = _read_tokens(text, at)[: _SMALL_MAX + 1]
    for n, token in enumerate(tokens):
        low = token.bare.lower()
        if n and judge(token.bare) >= names.FAIR:
            is_value = word.is_password and _is_last(text, token, word)
            return (token.start, token.end) if is_value else None
        joins = not low or any(_among(word, kind, low) for kind in ("small", "being", "closing"))
        if not joins or _among(word, "of", low) or token.raw.endswith(_BREAKS):
            return None
    return None


def _find_entered(text: str, start: int, end: int, word: _Word) -> _Span | None:
    """Return what is to be typed when the secret is asked for, before the word or after it."""
    begin = max(text.rfind("\n", 0, start) + 1, start - _LINE // 2, 0)
    window = f" {text[begin : end + _LINE // 2].lower()} "
    if not any(f" {verb} " in window for one in word.languages for verb in one.enter):
        return None
    found = compile_regex(_WORD_OR_QUOTE).finditer(text, begin, start)
    for tokens in ([_read_token(one) for one in found], _read_tokens(text, end)):
        for verb, value in itertools.pairwise(tokens):
            if verb.quote or not _among(word, "enter", verb.bare.lower()):
                continue
            following = compile_regex(_NEXT_WORD).match(text, value.end)
            ends = _is_last(text, value, word) or following is not None
            kind = judge(value.bare)
            is_plain = kind == names.PLAIN and _is_plain(value.bare, word, word.languages[0])
            if ends and word.is_password and (kind >= names.FAIR or is_plain):
                return value.start, value.end
    return None


def _find_answer(text: str, at: int, word: _Word) -> _Span | None:
    """Return the value that is the whole sentence after a question: "The root password? Kestrel92."."""
    token = next(iter(_read_tokens(text, at)), None)
    if token is None or compile_regex(_CODE_NAME).fullmatch(token.bare):
        return None
    is_value = word.is_password and judge(token.bare) >= names.FAIR
    is_whole = compile_regex(_FINAL).match(text, token.end) and not token.raw.endswith((",", "?"))
    return (token.start, token.end) if is_value and is_whole else None


def _may_go_on(text: str, end: int, word: _Word) -> bool:
    """Whether the next word is a value, or one that may stand before it."""
    following = text[end + 1 : end + 24].partition(" ")[0]
    if not following.isalpha():
        return True
    low = following.lower()
    return any(_among(word, kind, low) for kind in ("being", "small", "of", "to"))


def _rule(word: _Word) -> str:
    return "password" if word.is_password else "token"


def _find_after(  # noqa: PLR0911  # one for each form of the grammar
    text: str, start: int, end: int, word: _Word
) -> _Span | None:
    """Return where the value after a word is: its sentence is read word by word."""
    if text.startswith(("'s ", "’s "), end):
        return _find_linked(text, start, _read_tokens(text, end + 2), word, "is")
    is_aside = text[end : end + 1] == ","
    tokens = _read_tokens(text, end + is_aside)
    nouns, of = 0, False
    for n, token in enumerate(tokens):
        rest = tokens[n + 1 :]
        if link := _read_link(token, word):
            return _find_linked(text, start, rest, word, link)
        if is_aside and n == 0:
            # "the password, it's …" goes on about it, hardly anything else does but a value.
            is_told = judge(token.bare) == names.STRONG and _is_last(text, token, word)
            return (token.start, token.end) if is_told else None
        low = token.bare.lower()
        if changed := _find_changed(text, start, rest[:1], word, low):
            return changed
        is_of = not token.quote and _among(word, "of", low)
        is_adjacent = nouns == 0 and not of and word.parts != "pass"
        may_be_told = is_adjacent or (of and nouns > 0) or _is_verb_second(token, word)
        if may_be_told and not is_of and _is_told(text, token, word, adjacent=is_adjacent):
            return token.start, token.end
        if n >= _PHRASE_MAX or not _continues(token, word, n, is_of=is_of):
            return None
        of = of or is_of
        nouns = 0 if is_of else nouns + (not _among(word, "small", low))
        if token.raw.endswith((":", "：")):
            return _find_linked(text, start, rest, word, ":")
    return None


def _find_newer(text: str, end: int, word: _Word) -> _Span | None:
    """Return the value of the one that is spoken of further on: "the password was rotated, the new one is …"."""
    if " one " not in text[end : end + _LINE]:
        return None
    tokens = _read_tokens(text, end)
    for noun, verb, value in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if noun.bare.lower() == "one" and _among(word, "being", verb.bare.lower()):
            is_drawn = judge(value.bare) == names.STRONG and _is_last(text, value, word)
            return (value.start, value.end) if is_drawn else None
    return None


def _find_changed(text: str, start: int, rest: list[_Token], word: _Word, low: str) -> _Span | None:
    """Return the value after "to"."""
    is_to = bool(rest) and _among(word, "to", low)
    return _value_after(text, start, rest[0], word, _CHANGE) if is_to else None


def _is_verb_second(token: _Token, word: _Word) -> bool:
    """Whether a value may follow though no preposition began a phrase: "als Passwort nimmst du …"."""
    is_name = compile_regex(r"[A-Z]?[a-z]+\d{1,2}").fullmatch(token.bare) is not None  # Safari17
    return not word.is_english and not is_name and judge(token.bare) == names.STRONG


def _read_link(token: _Token, word: _Word) -> str:
    """Return the verb or the sign that a token is; "" for all other tokens."""
    if token.quote:
        return ""
    if token.raw in _SYMBOLS:
        return token.raw
    low = token.bare.lower().rstrip(":")
    if _among(word, "being", low):
        return low
    return "-" if token.raw in _DASHES else ""


def _continues(token: _Token, word: _Word, n: int, *, is_of: bool) -> bool:
    """Whether a phrase about the secret goes on with this token.

    In English what is said of a noun after the word is not said of the secret: "the password policy is".
    """
    if token.raw.endswith(_BREAKS):
        return False
    if not word.is_english or n or is_of or token.raw[0] == "(":
        return True
    return _among(word, "small", token.bare.lower())


def _find_linked(
    text: str, start: int, tokens: list[_Token], word: _Word, link: str
) -> _Span | None:
    """Return the value after a verb or a sign, and after what may stand between: "is still set to"."""
    small = 0
    for n, token in enumerate(tokens):
        low = token.bare.lower()
        if n + 2 < len(tokens) and tokens[n + 1].raw == "/":  # user / password
            return _value_after(text, start, tokens[n + 2], word, link)
        if not token.quote and low in word.languages[0].to:
            link = _CHANGE
        elif (
            not token.quote
            and small < _SMALL_MAX
            and _among(word, "small", low)
            and not (link == "as" and _is_last(text, token, word))
        ):
            small += 1
        else:
            return _value_after(text, start, token, word, link)
    return None


def _among(word: _Word, kind: str, low: str) -> bool:
    low = low.replace("'", "’")
    return any(low in getattr(language, kind) for language in word.languages)


def _read_tokens(text: str, at: int) -> list[_Token]:
    """Return the words of the rest of a line; after a colon at its end, the only one of the line below."""
    stop = text.find("\n", at, at + _LINE)
    stop = min(at + _LINE, len(text)) if stop < 0 else stop
    escaped = text.find("\\n", at, stop)
    stop = stop if escaped < 0 else escaped
    tokens: list[_Token] = []
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


def _read_token(found: Any) -> _Token:
    if found["q"]:
        start, end = found.span("in")
        return _Token(start, end, found[0], found["in"], found["q"][-1])
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
    return _Token(start + left, end, raw, bare, "")


def _value_after(text: str, start: int, token: _Token, word: _Word, link: str) -> _Span | None:
    """Return where the value is that a word such as "is" leads to, if it is one."""
    kind = judge(token.bare)
    if word.parts == "pin" and kind != names.NUMBER:
        found = False
    elif token.quote:
        found = _is_quoted_value(token, word, link)
    elif (
        link == "-" and kind == names.PLAIN and word.parts[0] > _LATIN_LAST and token.bare.isascii()
    ):
        found = _is_plain_value(text, start, token, word, link)
    elif link in {_CHANGE, "-"}:
        found = _is_told(text, token, word, adjacent=link == _CHANGE)
        found = found or (link == _CHANGE and _is_usual(text, token, word, digits_min=1))
        if link == _CHANGE and kind == names.PLAIN and _is_changed(text, start, token.end, word):
            found = _is_plain_value(text, start, token, word, link)
    elif kind >= names.FAIR:
        found = word.is_password or _is_key(token.bare, kind)
    elif kind == names.NUMBER:
        found = word.is_password and _is_last(text, token, word)
    else:
        found = kind == names.PLAIN and _is_plain_value(text, start, token, word, link)
    return (token.start, token.end) if found else None


def _is_changed(text: str, start: int, end: int, word: _Word) -> bool:
    """Whether a verb of change is in the line: passwords are also sent and added to something."""
    line = text[max(text.rfind("\n", 0, start) + 1, start - _LINE // 2) : end + _LINE // 4].lower()
    stems = tuple(stem for language in word.languages for stem in language.change)
    return any(one.startswith(stems) for one in line.split())


def _is_key(bare: str, kind: int) -> bool:
    return kind == names.STRONG or len(bare) >= _USUAL_MIN


def _is_quoted_value(token: _Token, word: _Word, link: str) -> bool:
    """Whether what stands in quotes is a value, and no name, state or text about secrets."""
    bare = token.bare.strip()
    if len(bare) < _LENGTH_MIN or is_reference(bare) or is_naming(bare) or names.is_state(bare):
        return False
    if any(bare.lower() in language.state for language in word.languages):
        return False
    kind = judge(bare)
    if link == _CHANGE or token.quote == "`" or not word.is_password or word.parts == "pass":
        return kind >= names.FAIR
    if " " in bare:
        return all(part.isalnum() for part in bare.split()) and not compile_regex(
            r"(?i)pass|secret|token|key|auth"
        ).search(bare)
    return not compile_regex(names.HARMLESS_TOLD).fullmatch(bare)


def _is_told(text: str, token: _Token, word: _Word, *, adjacent: bool) -> bool:
    """Whether a word without a verb before it is a value: drawn, or the last of its sentence."""
    kind = judge(token.bare)
    if kind == names.NUMBER:
        pin = word.parts in {"pin", "passcode"} and _PIN_MIN <= len(token.bare) <= _PIN_MAX
        return adjacent and pin and _is_last(text, token, word)
    if kind < names.FAIR or compile_regex(_CODE_NAME).fullmatch(token.bare):
        return False
    if kind == names.STRONG:
        return adjacent or token.quote != "" or _is_last(text, token, word)
    if adjacent and sum(map(str.isdigit, token.bare)) > 1:
        return word.is_password and len(token.bare) >= _USUAL_MIN
    # A digit in the middle of a word is drawn, at its end it may be the number of a version.
    is_within = compile_regex(r"[^\W\d_]\d[^\W\d_]").search(token.bare) is not None
    return _is_usual(text, token, word, digits_min=1 if adjacent and is_within else 2)


def _is_usual(text: str, token: _Token, word: _Word, *, digits_min: int) -> bool:
    """Whether a word that ends its sentence has the length and the digits of usual passwords."""
    if not word.is_password or compile_regex(_CODE_NAME).fullmatch(token.bare):
        return False
    digits = sum(map(str.isdigit, token.bare))
    drawn = judge(token.bare) >= names.FAIR and digits >= digits_min
    return drawn and len(token.bare) >= _USUAL_MIN and _is_last(text, token, word)


def _is_last(text: str, token: _Token, word: _Word) -> bool:
    """Whether nothing of the sentence follows, or only a word that may: "fyi"."""
    if compile_regex(_FINAL).match(text, token.end):
        return True
    following = compile_regex(_NEXT_WORD).match(text, token.end)
    return following is not None and _among(word, "closing", following[1].lower())


def _is_plain_value(text: str, start: int, token: _Token, word: _Word, link: str) -> bool:
    """Whether a plain word is a value: nothing else can stand alone where it does.

    After "is" and its like an adjective, a participle or a word about secrets may stand, but no noun without an
    article, which a value is.
    """
    if word.parts == "pw" and link == "=":  # pw = playwright
        return False
    language = next((one for one in word.languages if link in one.being), word.languages[0])
    least = _LENGTH_MIN if link == "as" else _PLAIN_MIN
    if not _is_plain(token.bare, word, language, least) or not _begins_clause(text, start, word):
        return False
    if link == "as":
        return _is_last(text, token, word)
    if compile_regex(_FINAL).match(text, token.end):
        return True
    following = compile_regex(_NEXT_WORD).match(text, token.end)
    return following is not None and following[1].lower() in language.polite


def _is_plain(bare: str, word: _Word, language: _Language, least: int = _PLAIN_MIN) -> bool:
    """Whether a word can be a password, and is not one that this language has for what passwords are."""
    low = bare.lower()
    if not bare.isalpha() or bare.isupper() or len(low) < least or word.parts in {"pass", "pin"}:
        return False
    if not word.is_password or is_naming(low) or is_reference(low) or low in names.VARIABLES:
        return False
    foreign = not low.isascii() and word.parts[0] > _LATIN_LAST
    about = (language.state, language.of, language.closing, language.being)
    if low in language.small and least == _PLAIN_MIN:
        return False
    return (
        not foreign
        and not low.endswith(language.endings)
        and not any(low in words for words in about)
    )


def _begins_clause(text: str, start: int, word: _Word) -> bool:
    """Whether a word is the subject of its clause, at most a few words from the beginning of it."""
    before = text[max(text.rfind("\n", 0, start) + 1, start - _LINE // 2) : start]
    subject = (
        before[max(map(before.rfind, _CLAUSE_SIGNS)) + 1 :].lower().split()[-_SUBJECT_MAX - 1 :]
    )
    return len(subject) <= _SUBJECT_MAX or any(_among(word, "closing", one) for one in subject)


def _find_before(text: str, start: int, end: int, word: _Word) -> _Span | None:
    """Return where the value is of which the word is said: `use … as the password`, `… is the password`."""
    begin = max(text.rfind("\n", 0, start) + 1, start - _LINE // 2, 0)
    if start - begin < _LENGTH_MIN + _LEFT_MIN:
        return None
    near = text[begin:start].split()[-_LEFT_MAX:]
    if not any(
        one[0] in "(=→" or _leads_back(one.strip(_CLAUSE_SIGNS).lower(), word) for one in near
    ):
        return None
    tokens = [
        _read_token(found) for found in compile_regex(_WORD_OR_QUOTE).finditer(text, begin, start)
    ]
    for back in range(1, min(_LEFT_MAX, len(tokens) - 1) + 1):
        token, value = tokens[-back], tokens[-back - 1]
        low = token.bare.lower()
        if (not low and token.raw != "=") or token.raw.endswith((*_BREAKS, ",", ":")):
            return None
        if _among(word, "using", low):
            said = [one.bare.lower() for one in tokens[: -back - 1]]
            is_article = len(said) > 1 and _among(word, "small", said[-1])
            is_first = len(said) <= _COMMAND_MAX and not is_article
            is_used = _is_used(text, end, value, word, low, is_first=is_first)
            return (value.start, value.end) if is_used else None
        is_said = _among(word, "being", low) or token.raw in {"=", "→"} or token.raw[0] == "("
        if is_said and _is_subject(
            text, tokens[: -back - 1], value, word, end, bracketed=token.raw[0] == "("
        ):
            return value.start, value.end
    return None


def _is_subject(
    text: str, said: list[_Token], value: _Token, word: _Word, end: int, *, bracketed: bool
) -> bool:
    """Whether it is said of what stands before "is the password" that it is one."""
    if not _is_complete(text, end, word):
        return False
    if judge(value.bare) == names.PLAIN:
        may_be = (
            not (said or bracketed)
            and value.bare.islower()
            and "?" not in text[end : end + _LINE // 2]
        )
        return may_be and _is_plain(value.bare, word, word.languages[0])
    is_drawn = judge(value.bare) >= names.FAIR and word.is_password and not bracketed
    is_named = compile_regex(_CODE_NAME).fullmatch(value.bare) is not None
    return (is_drawn and not is_named) or _is_told(text, value, word, adjacent=True)


def _leads_back(low: str, word: _Word) -> bool:
    return _among(word, "using", low) or _among(word, "being", low)


def _is_used(
    text: str, end: int, value: _Token, word: _Word, using: str, *, is_first: bool
) -> bool:
    """Whether what stands before "as the password" is one; a plain word is only in an order."""
    language = next(one for one in word.languages if using in one.using)
    # Whose it is may be all that follows: "comme mot de passe root". In English that is a noun of its own: "hash".
    owner = None if using in _ENGLISH_USING else language
    if not _is_complete(text, end, word, owner):
        return False
    if value.quote:
        return _is_quoted_value(value, word, "is" if is_first else _CHANGE)
    kind = judge(value.bare)
    if kind == names.PLAIN:
        return is_first and using != "for" and _is_plain(value.bare, word, language)
    return kind >= names.FAIR or (kind == names.NUMBER and word.is_password)


def _is_complete(text: str, end: int, word: _Word, owner: _Language | None = None) -> bool:
    """Whether the word ends its sentence, or a phrase about it follows: in the owner's language without a preposition."""
    for n in range(_OWNERS_MAX + 1 if owner else 1):
        if compile_regex(_FINAL).match(text, end):
            return True
        following = compile_regex(_NEXT_WORD).match(text, end)
        if following is None:
            return False
        low = following[1].lower()
        if n == 0 and (_among(word, "of", low) or _among(word, "closing", low)):
            return True
        if owner and (low in owner.state or low.endswith(owner.endings)):
            return False
        end = following.end()
    return False

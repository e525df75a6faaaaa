"""What a text asserts beyond its gist: numbers, names, dates, negations, and what they belong to. Pure.

Two texts can share nearly every word and say opposite things; what tells them apart is small and
exact. So a text is read once into sentences of clauses of tokens, each token with a sort that says
how much a change of it means. Reading errs towards telling things apart: two spellings that this
page does not know to be one stay two. Not here: what a difference leads to (guards.py).
"""

import enum
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from memd.text import STOP_WORDS, stem


class TokenType(enum.StrEnum):
    """What a token is. The value is the word that a finding uses for it."""

    NUMBER = "number"
    DATE = "date"
    VERSION = "version"
    PATH = "path"
    IDENTIFIER = "identifier"
    SYMBOL = "symbol"
    NEGATION = "negation"
    QUALIFIER = "qualifier"
    WORD = "word"
    MARK = "mark"
    """A word without content that gives a direction: `to`, `than`."""
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Token:
    """`key` is equal exactly when two tokens mean the same; `shown` is how it was written."""

    key: str
    shown: str
    sort: TokenType

    @property
    def has_content(self) -> bool:
        """Whether leaving it out would change what is said."""
        return self.sort not in {TokenType.STOP, TokenType.MARK}


Clause = tuple[Token, ...]
Sentence = tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Claims:
    """A text as the guards see it."""

    sentences: tuple[Sentence, ...]
    quoted: frozenset[str]
    """What stands in backticks, in lower case."""
    flat: str
    """The whole text in lower case, on one line, without backticks: where to look quotes up."""

    @property
    def clauses(self) -> Iterator[Clause]:
        """Every clause, in order."""
        for sentence in self.sentences:
            yield from sentence

    @property
    def tokens(self) -> Iterator[Token]:
        """Every token, in order."""
        for clause in self.clauses:
            yield from clause


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_UNITS = {
    unit: name
    for name, units in {
        "ns": "ns nanosecond nanoseconds", "µs": "µs us microsecond microseconds",
        "ms": "ms msec msecs millis millisecond milliseconds", "s": "s sec secs second seconds",
        "min": "min mins minute minutes", "h": "h hr hrs hour hours", "d": "d day days",
        "week": "week weeks", "month": "month months", "year": "year years yr yrs",
        "m": "m", "M": "M", "k": "k K", "x": "x", "%": "% percent", "px": "px", "B": "B byte bytes",
        "kB": "kB KB kb", "KiB": "KiB", "MB": "MB mb megabyte megabytes", "MiB": "MiB",
        "GB": "GB gb gigabyte gigabytes", "GiB": "GiB", "TB": "TB tb", "Hz": "Hz", "GHz": "GHz",
    }.items()
    for unit in units.split()
}  # fmt: skip
_UNITS_ANY_CASE = {unit.casefold(): name for unit, name in _UNITS.items()}
_NUMERALS = {
    "zero": "0", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
    "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "twenty": "20", "thirty": "30", "sixty": "60",
    "hundred": "100", "thousand": "1000",
}  # fmt: skip
_NEGATIONS = _set(
    """not no never none neither nor without cannot nobody nothing nowhere dont doesnt didnt cant wont
    isnt arent wasnt werent shouldnt couldnt wouldnt hasnt havent hadnt mustnt aint"""
)
_QUALIFIERS = _set(
    """only until till unless except before after under above below against off out up down over between
    through during should could may might must will would shall can almost
    nearly hardly barely partly partially mostly usually sometimes often rarely seldom probably maybe
    perhaps possibly likely if all any each every few more most same once again
    both other less least he him his she her hers"""
)
_QUESTIONS = _set("who whom whose what where why how which")
"""They ask only at the head of a clause; elsewhere they join."""
_MARKS = _set("to from into than by")
CLAUSE_BREAKS = _set("and or but because so while whereas then since")
FILLER_WORDS = _set(
    """actually basically really simply just also please note fyi btw quite okay ok hi hey hello thanks
    thank now currently well indeed anyway therefore thus hence anymore"""
)
_CALENDAR = _set(
    """monday tuesday wednesday thursday friday saturday sunday january february march april june july
    august september october november december today yesterday tomorrow"""
)
_PERSONS = {"my": "i", "me": "i", "mine": "i", "we": "i", "our": "i", "us": "i", "ours": "i",
            "your": "you", "yours": "you", "are": "is", "were": "was"}  # fmt: skip
_SYNONYMS = {
    stem(other): stem(one)
    for one, others in {
        "bug": "issue problem", "directory": "folder", "repository": "repo", "configuration": "config",
        "database": "db", "use": "utilise utilize", "documentation": "docs", "application": "app",
        "parameter": "param", "argument": "arg", "environment": "env", "delete": "remove",
        "information": "info", "large": "big", "quick": "fast", "behavior": "behaviour",
        "color": "colour", "require": "need", "display": "show",
    }.items()
    for other in others.split()
}  # fmt: skip
_FILE_ENDINGS = _set(
    """py pyi js jsx ts tsx json jsonl yaml yml toml ini cfg conf md rst txt html css scss sql sh bash zsh
    rs go java kt c h cc cpp hpp cs rb php lua pl ex swift xml csv db sqlite lock log env service"""
)
_ABBREVIATIONS = frozenset({"e.g", "i.e"})
_COMPARISONS = {"≤": "<=", "≥": ">=", "≠": "!="}
_TAILS = frozenset({"s", "re", "ve", "ll", "m", "d"})

_NAMES = {
    "date": TokenType.DATE, "ratio": TokenType.NUMBER, "version": TokenType.VERSION, "path": TokenType.PATH,
    "slashed": TokenType.PATH, "flag": TokenType.IDENTIFIER, "mail": TokenType.IDENTIFIER, "language": TokenType.IDENTIFIER,
}  # fmt: skip

_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_SEGMENT = r"(?:[\w@+-]|\.(?=[\w/])){1,255}"
_TOKEN = re.compile(
    rf"""
    (?P<stamp>^[ \t]*[\[(]?\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[\])]?(?=[:\s])
        |^[ \t]*(?:{_MONTHS})[ ]{{1,2}}\d{{1,2}}[ ]\d\d:\d\d:\d\d(?=[:\s])
        |^[ \t]*\d\d:\d\d:\d\d(?:[.,]\d+)?(?=[:\s])
        |[\[(]\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?[\])]
        |\[\d\d:\d\d:\d\d(?:[.,]\d+)?\])
    |(?P<box>\[[\ xX]\])
    |(?P<path>https?://[^\s<>`"]*[^\s<>`".,;:!?)\]]
        |(?<![\w.])\*\.\w+)
    |(?P<date>\d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\w)
        |\d{{1,2}}/\d{{1,2}}/\d{{2,4}}(?!\w)|\d{{1,2}}\.\d{{1,2}}\.\d{{4}}(?!\w)
        |(?<![\w:])\d{{1,2}}:\d\d(?::\d\d)?(?:\s?[aApP]\.?[mM]\b)?(?![\w:]))
    |(?P<flag>(?<![\w-])--?[A-Za-z][\w-]*)
    |(?P<ratio>(?<![\w/.])\d+/\d+(?![\w/]))
    |(?P<mail>(?<![\w.+-])[\w.+-]{{1,64}}@[\w-]+(?:\.[\w-]+)+)
    |(?P<slashed>(?<![\w@+-])(?:~|\.{{1,2}})?/?{_SEGMENT}(?:/{_SEGMENT})+/?|(?<![\w.])~?/{_SEGMENT}/?)
    |(?P<version>(?<![\w.])(?:[vV]\d+(?:\.\d+)*|\d+(?:\.\d+){{2,}})(?:[-+][A-Za-z][\w.]*\w)?(?!\w))
    |(?P<number>(?P<value>(?:(?<![\w.)\]])[-+−])?(?<![\w.])\d+(?:[,_]\d{{3}})*(?:\.\d+)?(?:[eE][+-]?\d+)?)
        (?:[\s-]?(?P<unit>(?i:{"|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))}))(?!\w)|(?!\w)))
    |(?P<language>(?<!\w)(?:[A-Za-z]\+\+|[CFcf]\#)(?!\w))
    |(?P<dotted>(?<![\w.-])\.?[A-Za-z_$][\w$-]*(?:\.[A-Za-z_$][\w$-]*)+(?:\(\))?|(?<![\w.])\.[A-Za-z][\w-]*)
    |(?P<word>\w+(?:['’]\w+)*)
    |(?P<arrow>->|=>|→|⇒)
    |(?P<comparison>(?<!\w)(?<!^)(?:<=|>=|!=|==|≤|≥|≠|&&|\|\||<|>))
    |(?P<end>[.!?…]+(?=[\s"')\]*_]|$)|\n(?![ \t]*[a-z]))
    |(?P<break>[,;:()\[\]{{}}—–•]|(?<=\s)-(?=\s))
    |(?P<other>\S)
    """,
    re.VERBOSE | re.MULTILINE,
)  # fmt: skip
_QUOTED = re.compile(r"`([^`\n]{1,200})`")
_REGRET = re.compile(r"\b(should|would|could|must|might) have\b", re.IGNORECASE)
"""`should have used` is not `should use`."""
_NO_LONGER = re.compile(r"\b(?:no longer|not any ?more|can not)\b", re.IGNORECASE)
_MIXED = re.compile(r"[a-z][A-Z]|[_\d]")
_ACRONYM = re.compile(r"[A-Z]{2}[a-z]")
_SPACES = re.compile(r"\s+")


def parse_claims(text: str) -> Claims:
    """The sentences, clauses and tokens of a text; log stamps at the head of a line are dropped."""
    text = unicodedata.normalize("NFC", text)
    quoted = frozenset(_flatten(found) for found in _QUOTED.findall(text))
    bare = _REGRET.sub(r"\1have", _NO_LONGER.sub("not", text.replace("`", " ")))
    return Claims(tuple(_sentences(bare)), quoted - {""}, _flatten(bare))


def _flatten(text: str) -> str:
    return _SPACES.sub(" ", text).strip().casefold()


def _sentences(text: str) -> Iterator[Sentence]:
    clauses: list[Clause] = []
    clause: list[Token] = []
    is_loud = text.isupper()
    for match in _TOKEN.finditer(text):
        group = match.lastgroup or ""
        token = _token(match, group, is_first=not clause)
        if match.group() == "A" and clause and not is_loud:
            # `B depends on A` speaks of a thing.
            token = Token("a", "A", TokenType.IDENTIFIER)
        if token is not None:
            clause.append(token)
        if clause and (group in {"end", "break"} or match.group().casefold() in CLAUSE_BREAKS):
            clauses.append(tuple(clause))
            clause = []
        if clauses and group == "end":
            yield tuple(clauses)
            clauses = []
    if clause:
        clauses.append(tuple(clause))
    if clauses:
        yield tuple(clauses)


def _token(match: re.Match[str], group: str, *, is_first: bool) -> Token | None:
    raw = match.group()
    if group == "word":
        return _word(raw, is_first=is_first)
    if group == "number":
        return _number(match.group("value"), match.group("unit"), raw)
    if group == "dotted":
        return _dotted(raw)
    return _name(raw, group) if group in _NAMES else _sign(raw, group)


def _name(raw: str, group: str) -> Token:
    key = raw.casefold()
    if _NAMES[group] is TokenType.VERSION:
        key = key.lstrip("v")
    elif _NAMES[group] is TokenType.PATH:
        key = key.rstrip("/")
    elif group == "flag" and len(raw) == 2:  # noqa: PLR2004  # a dash and a letter
        # `-v` and `-V` are two flags; `--Force` and `--force` hardly ever.
        key = raw
    return Token(key, raw, _NAMES[group])


def _dotted(raw: str) -> Token | None:
    key = raw.casefold().removesuffix("()")
    if key in _ABBREVIATIONS:
        return None
    is_file = key.startswith(".") or key.rsplit(".", 1)[-1] in _FILE_ENDINGS
    return Token(key, raw, TokenType.PATH if is_file else TokenType.IDENTIFIER)


def _sign(raw: str, group: str) -> Token | None:
    if group == "arrow":
        return Token("to", raw, TokenType.MARK)
    if group == "comparison":
        return Token(_COMPARISONS.get(raw, raw), raw, TokenType.SYMBOL)
    if group == "box":
        return Token(raw.casefold(), raw, TokenType.SYMBOL)
    if group == "end" and "?" in raw:
        return Token("?", "?", TokenType.QUALIFIER)
    # Ticks, crosses, currencies, and the vowel signs that \w leaves out in some scripts.
    # As in `^4.17`, `~4.17` and `x = y`.
    if group == "other" and (
        raw in "^~=" or unicodedata.category(raw) in {"So", "Sc", "Mn", "Mc", "Me"}
    ):
        return Token(raw, raw, TokenType.SYMBOL)
    return None


def _number(value: str, unit: str | None, raw: str) -> Token:
    plain = value.replace(",", "").replace("_", "").replace("−", "-").lstrip("+")
    # `5m` are minutes or metres, `5M` are millions; a shouted `30 S` are seconds all the same.
    name = _UNITS.get(unit) or _UNITS_ANY_CASE[unit.casefold()] if unit else ""
    return Token(f"{plain} {name}".rstrip(), raw, TokenType.NUMBER)


def _word(raw: str, *, is_first: bool) -> Token | None:
    folded = raw.replace("’", "'").casefold()
    head, _, tail = folded.rpartition("'")
    if folded in _NEGATIONS or (tail == "t" and head.endswith("n")):
        return Token("not", raw, TokenType.NEGATION)
    folded = head if head and tail in _TAILS else folded.replace("'", "")
    if folded in FILLER_WORDS:
        return None
    return (
        _plain(folded, raw) or _grammar(folded, raw, is_first=is_first) or _content(folded, raw)
    )


def _plain(folded: str, raw: str) -> Token | None:
    if folded in _NUMERALS:
        return Token(_NUMERALS[folded], raw, TokenType.NUMBER)
    return Token(folded, raw, TokenType.DATE) if folded in _CALENDAR else None


def _grammar(folded: str, raw: str, *, is_first: bool) -> Token | None:
    if folded in _QUALIFIERS or (is_first and folded in _QUESTIONS):
        return Token(folded, raw, TokenType.QUALIFIER)
    if folded in _MARKS:
        return Token(folded, raw, TokenType.MARK)
    return (
        Token(_PERSONS.get(folded, folded), raw, TokenType.STOP)
        if folded in STOP_WORDS
        else None
    )


def _content(folded: str, raw: str) -> Token:
    if _MIXED.search(raw):
        return Token(folded, raw, TokenType.IDENTIFIER)
    if _ACRONYM.search(raw):
        return Token(folded, raw, TokenType.WORD)
    stemmed = stem(folded)
    return Token(_SYNONYMS.get(stemmed, stemmed), raw, TokenType.WORD)


def word_key(word: str) -> str:
    """The key of a single word in a reading; empty if it says nothing."""
    token = _word(word, is_first=True)
    return token.key if token else ""

"""Parse a text into the claims it makes: numbers, names, dates, negations and content words.

Two texts can share nearly every word and state opposite things. A text becomes sentences of clauses
of tokens, and the type of a token shows how much a change of it means. Two spellings that this module
does not know to be one stay two.
"""

import enum
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from memd.belief.notes import split_note
from memd.belief.polarity import WORDS
from memd.caches import cached
from memd.patterns import compile_lazily
from memd.text import STOP_WORDS, one_line, stem, strip_emphasis, words

_TEXTS_CACHED = 512
"""Texts that are kept parsed: one is compared with several others in a row."""


class TokenType(enum.StrEnum):
    """Types of tokens. The value names the aspect in which two texts differ."""

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
    """`key` is equal exactly when two tokens mean the same; `text` is how it was written."""

    key: str
    text: str
    type: TokenType

    @property
    def has_content(self) -> bool:
        """Return whether leaving the token out would change the meaning of the text."""
        return self.type not in {TokenType.STOP, TokenType.MARK}


Clause = tuple[Token, ...]
Sentence = tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Claims:
    """A parsed text."""

    sentences: tuple[Sentence, ...]
    quoted: frozenset[str]
    """The parts in backticks."""
    flat_text: str
    """The whole text in lower case, on one line, without backticks: quotes are looked up in it."""

    @property
    def clauses(self) -> Iterator[Clause]:
        """Every clause, in order."""
        for sentence in self.sentences:
            yield from sentence

    @property
    def content_keys(self) -> set[str]:
        """The keys of the tokens that have content."""
        return {token.key for token in self.tokens if token.has_content}

    @property
    def tokens(self) -> Iterator[Token]:
        """Every token, in order."""
        for clause in self.clauses:
            yield from clause


@cached(_TEXTS_CACHED)
def parse_claims(text: str) -> Claims:
    """Parse a text; time stamps of log lines are dropped."""
    text = unicodedata.normalize("NFC", text)
    quoted = frozenset(" ".join(quote.split()) for quote in _QUOTED.findall(text))
    text = strip_emphasis(_LINE_MARK.sub("", text))
    bare = _PERFECT.sub(
        r"\1have", _NO_LONGER.sub("not", _QUOTED.sub(r" \1", text).replace("`", " "))
    )
    return Claims(tuple(_split_sentences(bare)), quoted - {""}, " ".join(bare.split()).casefold())


def word_key(word: str) -> str:
    """The key of a single word; empty if it has no meaning of its own."""
    token = _make_word(word, is_first=True)
    return token.key if token else ""


def parse_statement(title: str, body: str) -> Claims:
    """Parse a memory's whole statement."""
    return parse_claims(statement_text(title, body))


def list_keys(name: str) -> frozenset[str]:
    """Return the keys of the words of a list of `words.toml`."""
    return frozenset(filter(None, map(word_key, WORDS.list_words(name))))


def statement_text(title: str, body: str) -> str:
    """Return a memory's whole statement: the words that it quotes of its first speaker, else title and body.

    The title of a captured memory is only a part of its statement, and what another speaker makes of it
    is not its speaker's word. What announces a statement (`Decision:`, `remember that`) or only asks to keep it
    (`…, please remember that`) is left out.
    """
    body = split_note(body).text
    quotes = _STATEMENT.findall(body) if _STATEMENT.match(body) else []
    if not quotes:
        return _strip_request(join_title(title, body))
    speaker = quotes[0][0]
    return "\n".join(_strip_request(said) for who, said in quotes if who == speaker)


def _strip_request(said: str) -> str:
    for name in ("remember that", "remember that elsewhere"):
        if match := WORDS[name].match(said):
            said = match["rest"]
    return WORDS["announcement"].sub("", said)


def join_title(title: str, body: str) -> str:
    """The text of a memory; a title that only repeats words of the body is left out."""
    body = split_note(body).text
    begins = one_line(body, len(body)).casefold()
    is_repeated = begins.startswith(title.rstrip("…").casefold().strip()) or (
        title.isascii() and set(words(title.lower())) <= set(words(body.lower()))
    )
    return body if is_repeated else f"{title}\n{body}"


_UNITS: dict[str, str] = {
    unit: name for name, units in WORDS.rows["units"].items() for unit in units.split()
}
_UNITS_ANY_CASE = {unit.casefold(): name for unit, name in _UNITS.items()}
_NEGATIONS = WORDS.list_words("English negations")
_QUESTIONS = WORDS.list_words("question words")
"""Words that ask only at the head of a clause; elsewhere they join two clauses."""
CLAUSE_BREAKS, FILLER_WORDS = WORDS.list_words("clause breaks"), WORDS.list_words("fillers")
_SYNONYMS = {
    stem(other): stem(one)
    for one, others in WORDS.rows["synonyms"].items()
    for other in others.split()
}
_ABBREVIATIONS = frozenset({"e.g", "i.e"})
_SIGN_CATEGORIES = frozenset({"So", "Sc", "Sm", "Mn", "Mc", "Me"})
"""Unicode categories of symbols and combining marks."""
_SIGNS = frozenset("!?@#$%&*+/\\|^~=<>")
"""ASCII characters that mean something wherever they do not end a sentence."""
_COMPARISONS = {"≤": "<=", "≥": ">=", "≠": "!="}
_CONTRACTIONS = frozenset({"s", "re", "ve", "ll", "m", "d"})

_NAME_TYPES = {
    "date": TokenType.DATE, "ratio": TokenType.NUMBER, "version": TokenType.VERSION, "path": TokenType.PATH,
    "slashed": TokenType.PATH, "flag": TokenType.IDENTIFIER, "mail": TokenType.IDENTIFIER, "language": TokenType.IDENTIFIER,
    "escape": TokenType.IDENTIFIER, "letter": TokenType.IDENTIFIER, "compound": TokenType.IDENTIFIER,
}  # fmt: skip

_NAMES_OF_ANY_CASE = frozenset({"date", "version", "mail", "language"})

_UNIT = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
_TOKEN = compile_lazily(
    "|".join(
        f"(?P<{kind}>{'|'.join(map(WORDS.insert_parts, ways))})"
        for kind, ways in WORDS.rows["tokens"].items()
    ).replace("{UNIT}", _UNIT),
    re.MULTILINE,
)
_LINE_MARK = compile_lazily(
    r"^[ \t]*(?:#{1,6}[ \t]|>[ \t]|[-*+][ \t](?!\S*$))[ \t]*|[\ufe0e\ufe0f]", re.MULTILINE
)
"""Headings, quotation marks and bullets at the start of a line, and variants of emoji."""
_STATEMENT = compile_lazily(r"^([\w -]{1,100}): “(.+?)(?:”$|…$|\Z)", re.MULTILINE)
"""Who said something in a captured memory, and what."""
_QUOTED = compile_lazily(r"`([^`\n]{1,200})`")
_PERFECT = compile_lazily(r"\b(should|would|could|must|might) have\b", re.IGNORECASE)
"""`should have used` is not `should use`."""
_NO_LONGER = compile_lazily(r"\b(?:no longer|not any ?more|can not)\b", re.IGNORECASE)
_MIXED_CASE = compile_lazily(r"[a-z][A-Z]|[_\d]")
_CASE_MATTERS = compile_lazily(r"[a-z][A-Z]|_")
_PLAIN_PAIR = compile_lazily(r"[A-Z]?[a-z]+/[A-Z]?[a-z]+")
"""`Client/server`: two words rather than a path."""
_ACRONYM = compile_lazily(r"[A-Z]{2}[a-z]")
_KNOWN_WORDS = {
    **{word: (WORDS.rows["persons"].get(word, word), TokenType.STOP) for word in STOP_WORDS},
    **{word: (word, TokenType.MARK) for word in WORDS.list_words("marks")},
    **{word: (word, TokenType.QUALIFIER) for word in WORDS.list_words("qualifiers")},
    **{word: (word, TokenType.DATE) for word in WORDS.list_words("calendar")},
    **{word: (number, TokenType.NUMBER) for word, number in WORDS.rows["numerals"].items()},
}
"""Folded word → its key and type. Of a word in several tables the last one counts."""


def _split_sentences(text: str) -> Iterator[Sentence]:
    clauses: list[Clause] = []
    clause: list[Token] = []
    is_upper = text.isupper()
    for match in _TOKEN.finditer(text):
        group = match.lastgroup or ""
        token = _make_token(match, group, is_first=not clause)
        if match.group() == "A" and clause and not is_upper:
            # `B depends on A` names a thing.
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


def _make_token(match: re.Match[str], group: str, *, is_first: bool) -> Token | None:
    raw = match.group()
    if group == "word":
        return _make_word(raw, is_first=is_first)
    if group == "number":
        return _make_number(match.group("value"), match.group("unit"), raw)
    if group == "dotted":
        return _make_dotted(raw)
    return _make_name(raw, group) if group in _NAME_TYPES else _make_sign(match, group)


def _make_word(raw: str, *, is_first: bool) -> Token | None:
    folded = raw.replace("’", "'").lower()
    head, _, tail = folded.rpartition("'")
    if folded in _NEGATIONS or (tail == "t" and head.endswith("n")):
        return Token("not", raw, TokenType.NEGATION)
    folded = head if head and tail in _CONTRACTIONS else folded.replace("'", "")
    if folded in FILLER_WORDS:
        return None
    if is_first and folded in _QUESTIONS:
        return Token(folded, raw, TokenType.QUALIFIER)
    key, type_ = _KNOWN_WORDS.get(folded) or _classify_content_word(folded, raw)
    return Token(key, raw, type_)


def _classify_content_word(folded: str, raw: str) -> tuple[str, TokenType]:
    if _MIXED_CASE.search(raw):
        # `userId` and `userID` are two names; `SHA256` and `sha256` are one.
        return (raw if _CASE_MATTERS.search(raw) else folded), TokenType.IDENTIFIER
    if _ACRONYM.search(raw):
        return folded, TokenType.WORD
    stemmed = stem(folded)
    return _SYNONYMS.get(stemmed, stemmed), TokenType.WORD


def _make_number(value: str, unit: str | None, raw: str) -> Token:
    plain = value.replace(",", "").replace("_", "").replace("−", "-").lstrip("+")
    # `5m` are minutes or metres, `5M` are millions; in capitals `30 S` are seconds all the same.
    name = _UNITS.get(unit) or _UNITS_ANY_CASE[unit.casefold()] if unit else ""
    return Token(f"{plain} {name}".rstrip(), raw, TokenType.NUMBER)


def _make_dotted(raw: str) -> Token | None:
    key = raw.removesuffix("()")
    if key.lower() in _ABBREVIATIONS:
        return None
    is_file = key.startswith(".") or key.rsplit(".", 1)[-1].lower() in WORDS.list_words(
        "file endings"
    )
    return Token(key, raw, TokenType.PATH if is_file else TokenType.IDENTIFIER)


def _make_name(raw: str, group: str) -> Token:
    type_ = _NAME_TYPES[group]
    key = raw.lower() if group in _NAMES_OF_ANY_CASE or _PLAIN_PAIR.fullmatch(raw) else raw
    if group == "version":
        key = key.lstrip("v")
    elif type_ is TokenType.PATH:
        key = key.rstrip("/") or raw
    return Token(key, raw, type_)


def _make_sign(match: re.Match[str], group: str) -> Token | None:
    raw = match.group()
    if group == "arrow":
        return Token("to", raw, TokenType.MARK)
    if group == "end" and "?" in raw:
        return Token("?", "?", TokenType.QUALIFIER)
    key = None
    if group in {"sign", "operator"}:
        key = _COMPARISONS.get(raw, raw)
    elif group == "box":
        key = raw.lower()
    elif group == "other" and _is_meaningful(match):
        key = raw
    return Token(key, raw, TokenType.SYMBOL) if key else None


def _is_meaningful(match: re.Match[str]) -> bool:
    r"""Return whether a sign has meaning: `^4.17`, `x = y`; ticks, crosses, currencies; vowel signs that \w leaves out."""
    raw, text = match.group(), match.string
    if raw == "#":
        # `issue #12` is `issue 12`, but `#general` is no word.
        return not text[match.end() : match.end() + 1].isdigit()
    return raw in _SIGNS or unicodedata.category(raw) in _SIGN_CATEGORIES

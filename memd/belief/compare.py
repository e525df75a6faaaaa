"""Compare two texts: find the aspects in which they differ, or that they state the same.

A cosine cannot separate "cache" from "do not cache" (0.98) or 30 seconds from 60 (0.96), so it only
proposes a pair and this module decides. Any difference of a number, negation, version, date, path,
identifier, qualifier or content word refuses the pair, and so do the same words in another relation
("from 10 to 30", "from 30 to 10"). Case, punctuation, the order of clauses, inflection, filler words
and whole sentences that only one text has may differ; such sentences are reported.
"""

import enum
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import TypeVar

from memd.belief.claims import (
    Claims,
    Clause,
    Sentence,
    TokenType,
    list_keys,
    parse_claims,
    word_key,
)
from memd.belief.polarity import WORDS
from memd.text import one_line

_ORDER = "the same words, differently assigned"
_VALUE_CHARACTERS_MAX = 60
_REASON_DIFFERENCES_MAX = 4
_MISSING_CLAUSES_MAX = 100
"""Texts with more clauses that only one side has are not compared further."""
_QUOTES_MAX = 200
_WINDOW_WORDS = 2
"""Content words on each side that count as the neighbours of a word."""
_EXACT_TYPES = (
    TokenType.NUMBER, TokenType.VERSION, TokenType.DATE, TokenType.PATH, TokenType.IDENTIFIER,
    TokenType.SYMBOL, TokenType.QUALIFIER,
)  # fmt: skip
EXACT_ASPECTS = frozenset(type_.value for type_ in _EXACT_TYPES) - {"qualifier"}
"""Aspects of values: numbers, versions, dates, paths, names and signs."""
_ANTONYMS = tuple(
    (word_key(one), word_key(other), f"{one}/{other}")
    for one, other in (pair.split("/") for pair in WORDS.rows["words"]["opposites"].split())
)
_BINDING_QUALIFIERS = list_keys("binding qualifiers")
_LEADING_WORDS, _SEQUENCE_WORDS = list_keys("leading words"), list_keys("sequence words")
_ARTICLES = frozenset({"the", "a", "an"})
_Key = TypeVar("_Key")
_Uncovered = list[tuple[Sentence, bool]]
"""Sentences that the other text does not contain, and whether all of the sentence is missing."""


class Agreement(enum.StrEnum):
    """Relation of two texts."""

    SAME = "same"
    RESTATED = "restated"
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference, such as `number`, `30`, `60`; the value is empty where a text has none."""

    aspect: str
    was: str
    now: str

    def __str__(self) -> str:
        """Describe the difference: `number: 30 → 60`; `negation: not` if only one text has it."""
        if self.was and self.now:
            return f"{self.aspect}: {self.was} → {self.now}"
        return f"{self.aspect}: {self.was or self.now}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing an older text with a newer one."""

    agreement: Agreement
    differences: tuple[Difference, ...] = ()
    lost: tuple[str, ...] = ()
    """Sentences that only the older text has."""
    gained: tuple[str, ...] = ()
    """Sentences that only the newer text has."""
    overlap: float = 1.0
    """The share of content words that both have, 0 to 1."""

    @property
    def agrees(self) -> bool:
        """Return whether both state the same, as far as both mention it."""
        return self.agreement is not Agreement.DIFFERS

    @property
    def is_equal(self) -> bool:
        """Return whether both state the same, and neither says more."""
        return self.agrees and not self.lost and not self.gained

    @property
    def aspects(self) -> tuple[str, ...]:
        """The aspects of the differences, each once."""
        return tuple(dict.fromkeys(d.aspect for d in self.differences))

    @property
    def reason(self) -> str:
        """The result in words."""
        parts = [str(d) for d in self.differences[:_REASON_DIFFERENCES_MAX]]
        parts += [f"adds: {text}" for text in self.gained[:1]]
        parts += [f"leaves out: {text}" for text in self.lost[:1]]
        return "; ".join(parts) or self.agreement.value


def compare(older: str, newer: str) -> Comparison:
    """Compare two texts. `compare(b, a)` agrees exactly when `compare(a, b)` does."""
    return compare_claims(parse_claims(older), parse_claims(newer))


def compare_claims(older: Claims, newer: Claims) -> Comparison:
    """Compare two parsed texts."""
    said, told = (_texts_by_key(claims, TokenType.WORD).keys() for claims in (older, newer))
    overlap = len(said & told) / len(said | told) if said | told else 1.0
    finders = (
        _find_antonyms, _find_exact, _find_negations, _find_qualified, _find_tenses, _find_quotes,
    )  # fmt: skip
    exact = dict.fromkeys(one for find in finders for one in find(older, newer))
    if exact:
        return Comparison(Agreement.DIFFERS, tuple(exact), overlap=overlap)
    ours, theirs = (
        [token.key for token in claims.tokens if token.type is not TokenType.STOP]
        for claims in (older, newer)
    )
    if ours == theirs:
        return Comparison(Agreement.SAME)
    if is_reordered(older, newer) or is_reordered(newer, older):
        order = Difference("order", "", _ORDER)
        return Comparison(Agreement.DIFFERS, (order,), overlap=overlap)
    lost, gained = _find_uncovered(older, newer), _find_uncovered(newer, older)
    rest = (*_find_wording(older, newer, lost, gained), *_find_directions(older, newer))
    if rest:
        return Comparison(Agreement.DIFFERS, rest, overlap=overlap)
    return Comparison(
        Agreement.RESTATED, (), _write_sentences(lost), _write_sentences(gained), overlap
    )


def _texts_by_key(claims: Claims, type_: TokenType) -> dict[str, str]:
    texts = {t.key: t.text for t in claims.tokens if t.type is type_}
    return dict(sorted(texts.items()))


def _join_texts(texts: Iterable[str]) -> str:
    return one_line(", ".join(texts), _VALUE_CHARACTERS_MAX)


def _diff_keys(
    aspect: str, ours: Mapping[_Key, str], theirs: Mapping[_Key, str]
) -> Iterator[Difference]:
    """The difference of two maps of keys to texts, if one has a key that the other lacks."""
    if ours.keys() != theirs.keys():
        was = _join_texts(text for key, text in ours.items() if key not in theirs)
        now = _join_texts(text for key, text in theirs.items() if key not in ours)
        yield Difference(aspect, was, now)


def _find_antonyms(older: Claims, newer: Claims) -> Iterator[Difference]:
    """Find a word in one text whose opposite is in the other."""
    ours, theirs = ({token.key for token in claims.tokens} for claims in (older, newer))
    alone = (ours - theirs, theirs - ours)
    for one, other, name in _ANTONYMS:
        if any(one in was and other in now for was, now in permutations(alone)):
            yield Difference("antonym", name, "")


def _find_exact(older: Claims, newer: Claims) -> Iterator[Difference]:
    """Numbers, names and the like that only one text has, or has more often."""
    for type_ in _EXACT_TYPES:
        yield from _diff_keys(type_.value, _texts_by_key(older, type_), _texts_by_key(newer, type_))
    ours, theirs = (
        Counter(t.key for t in claims.tokens if t.type is TokenType.SYMBOL)
        for claims in (older, newer)
    )
    if ours.keys() == theirs.keys() and ours != theirs:
        more, less = (_join_texts(one.elements()) for one in (ours - theirs, theirs - ours))
        yield Difference(TokenType.SYMBOL.value, more, less)


def _find_negations(older: Claims, newer: Claims) -> Iterator[Difference]:
    """A negation that only one text has, or that denies something else there."""
    ours, theirs = _list_denied(older), _list_denied(newer)
    for one in _diff_keys("negation", ours, theirs):
        is_same_number = len(ours) == len(theirs)
        yield one if is_same_number else Difference("negation", "", one.was or one.now)


def _list_denied(claims: Claims) -> dict[tuple[str, ...], str]:
    """The content words that follow each negation in its clause → the same with the negation."""
    found = {}
    for clause in claims.clauses:
        content = [token for token in clause if token.has_content]
        for at, token in enumerate(content):
            if token.type is TokenType.NEGATION:
                denied = content[at + 1 : at + 1 + _WINDOW_WORDS]
                found[tuple(t.key for t in denied)] = " ".join(t.text for t in (token, *denied))
    return found


def _find_qualified(older: Claims, newer: Claims) -> Iterator[Difference]:
    return _diff_keys("qualifier", _list_qualified(older), _list_qualified(newer))


def _list_qualified(claims: Claims) -> dict[tuple[str, str], str]:
    """Find each binding qualifier with the next content word of its clause → both as text."""
    found = {}
    for clause in claims.clauses:
        for at, token in enumerate(clause):
            if token.key in _BINDING_QUALIFIERS:
                after = next((t for t in clause[at + 1 :] if t.has_content), None)
                # `the only worker` is not `only the worker`.
                is_the_only = token.key == "only" and at > 0 and clause[at - 1].key in _ARTICLES
                key = "the only" if is_the_only else token.key
                text = f"{token.text} {after.text}" if after else token.text
                found[key, after.key if after else ""] = text
    return found


def _find_tenses(older: Claims, newer: Claims) -> Iterator[Difference]:
    """Find a difference of tense: `Fix the login` is to be done, `fixed the login` is done."""
    for one, other in ((older, newer), (newer, older)):
        texts = ((t.key, t.text) for t in other.tokens if t.type is TokenType.WORD)
        done = {key: text for key, text in texts if text.casefold().endswith("ed")}
        asked = _find_imperatives(one)
        for key in sorted(asked.keys() & done.keys() - _find_imperatives(other).keys()):
            was, now = (asked[key], done[key]) if one is older else (done[key], asked[key])
            yield Difference("tense", was, now)


def _find_imperatives(claims: Claims) -> dict[str, str]:
    """The words that begin a sentence as if they asked for something."""
    heads = (sentence[0][0] for sentence in claims.sentences)
    return {
        t.key: t.text
        for t in heads
        if t.type is TokenType.WORD and not t.text.casefold().endswith(("ed", "ing", "s"))
    }


def _find_quotes(older: Claims, newer: Claims) -> Iterator[Difference]:
    """Code that one text quotes and the other does not contain letter by letter."""
    if len(older.quoted) + len(newer.quoted) > _QUOTES_MAX:
        if older.quoted != newer.quoted:
            yield Difference("identifier", "", "other quotes")
        return
    was, now = (
        _join_texts(quote for quote in sorted(one.quoted) if not _has_quote(other, quote))
        for one, other in ((older, newer), (newer, older))
    )
    if was or now:
        yield Difference("identifier", was, now)


def _has_quote(claims: Claims, quote: str) -> bool:
    """Return whether a text quotes this too, or says it without quoting it in another case."""
    if quote in claims.quoted:
        return True
    folded = quote.casefold()
    word = rf"(?<![^\W_]){re.escape(folded)}(?![^\W_])"
    is_quoted = folded in (one.casefold() for one in claims.quoted)
    return not is_quoted and re.search(word, claims.flat_text) is not None


def is_reordered(older: Claims, newer: Claims) -> bool:
    """Return whether clauses stand in another order that matters.

    It matters where a clause says what comes `then`, and where several clauses begin with a place or
    time, such as `in CI, …`: which clause they go with is then a matter of order.
    """
    leading = sum(clause[0].key in _LEADING_WORDS for clause in older.clauses)
    matters = leading > 1 or any(t.key in _SEQUENCE_WORDS for t in older.tokens)
    return matters and _list_clauses(older.clauses) != _list_clauses(newer.clauses)


def _list_clauses(clauses: Iterable[Clause]) -> list[frozenset[str]]:
    """The content words of each clause that has any."""
    found = [frozenset(t.key for t in clause if t.has_content) for clause in clauses]
    return [words for words in found if words]


def _find_uncovered(ours: Claims, theirs: Claims) -> _Uncovered:
    mine, other = set(_list_clauses(ours.clauses)), set(_list_clauses(theirs.clauses))
    if len(mine - other) > _MISSING_CLAUSES_MAX:
        return [(ours.sentences[0], False)]

    def consists_of(whole: frozenset[str], clauses: set[frozenset[str]]) -> bool:
        return whole == frozenset().union(*(part for part in clauses if part <= whole))

    # The other text may have a clause cut into more clauses, or into fewer.
    missing = {
        words
        for words in mine - other
        if not consists_of(words, other)
        and not any(words <= whole and consists_of(whole, mine) for whole in other)
    }
    found = ((sentence, set(_list_clauses(sentence))) for sentence in ours.sentences)
    return [(sentence, clauses <= missing) for sentence, clauses in found if clauses & missing]


def _find_wording(
    older: Claims, newer: Claims, lost: _Uncovered, gained: _Uncovered
) -> Iterator[Difference]:
    """Content words that were exchanged, added or removed inside a sentence."""
    if not (lost and gained) and all(is_whole for _, is_whole in (*lost, *gained)):
        return
    ours = _texts_by_key(older, TokenType.WORD)
    theirs = _texts_by_key(newer, TokenType.WORD)
    was, now = ours.keys() - theirs.keys(), theirs.keys() - ours.keys()
    if not was and not now:
        yield Difference("order", "", _ORDER)
    yield from _diff_keys("value" if len(was) == len(now) == 1 else "wording", ours, theirs)


def _find_directions(older: Claims, newer: Claims) -> Iterator[Difference]:
    """Find a change of direction: `A calls B` against `B calls A`, `from 10 to 30` against `from 30 to 10`."""
    ours, theirs = _find_triples(older), _find_triples(newer)
    for (left, middle, right), text in ours.items():
        turned = (right, middle, left)
        if turned in theirs and turned not in ours and (left, middle, right) not in theirs:
            yield Difference("direction", text, theirs[turned])
            return


def _find_triples(claims: Claims) -> dict[tuple[str, str, str], str]:
    """A word near before and a word near after each token of a clause, as keys → as text."""
    found = {}
    for clause in claims.clauses:
        line = [token for token in clause if token.type is not TokenType.STOP]
        for at, middle in enumerate(line):
            for left in line[max(0, at - _WINDOW_WORDS) : at]:
                for right in line[at + 1 : at + 1 + _WINDOW_WORDS]:
                    text = f"{left.text} {middle.text} {right.text}"
                    found[left.key, middle.key, right.key] = one_line(text, _VALUE_CHARACTERS_MAX)
    return found


def _write_sentences(sentences: _Uncovered) -> tuple[str, ...]:
    texts = (
        " ".join(token.text for clause in sentence for token in clause) for sentence, _ in sentences
    )
    return tuple(one_line(text, 2 * _VALUE_CHARACTERS_MAX) for text in texts)

"""The words of a question in terms of the index: exact, in another language's stem, or nearly so.

A word that no memory has is looked for in the stems of other languages, then as a misspelling: within one edit from
five letters on, two from eight. What is found so counts less than a word as it was asked for.
"""

import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memd.index.memory_index import MemoryIndex
from memd.index.postings import TermStatistics
from memd.languages import LATIN_LANGUAGES, language_mark
from memd.recall.query import QueryTerms, phrase_expression
from memd.store import fulltext
from memd.store.database import Connection
from memd.text import fold, stem_as, terms, unique, words

PHRASE_PASSAGES_MAX = 1_000
"""Passages that FTS5 is asked for per phrase."""
LITERAL_PASSAGES_MAX = 300
"""Passages, the newest, whose text is read to see whether a literal stands there."""
CORRECTED_WORDS_MAX = 5
"""Misspelt words of one question that are looked for."""
CORRECTED_WEIGHT, CORRECTED_SHORT_WEIGHT = 0.5, 0.2
"""What all terms that a misspelt word may have meant count, in exact words; a short word is near many by chance."""
_MEANT_MAX = 3
"""Terms that one misspelt word may have meant."""
_PART_LETTERS_MIN = 3
"""Letters of each of two words that were written as one."""
_LETTERS_MIN, _LETTERS_LONG, _STEM_LONG = 5, 8, 7
_MAY_FOLLOW_WORD = "#/@:(["
"""`owner/name#12` has `#12`, but `up-m` has no `-m`."""

Rows = NDArray[np.int64]
PassageGroup = tuple[Sequence[int], float]
"""The ids of passages that have something of the question, and what it counts, in words."""


@dataclass(frozen=True, slots=True)
class IndexedTerms:
    """A query in the index's own terms."""

    numbers: Mapping[int, float]
    """Term number → weight."""
    groups: tuple[Rows, ...] = ()
    """For each phrase or prefix, and each literal that stands anywhere, the rows that have it."""
    group_weights: tuple[float, ...] = ()
    """What each group counts, in words."""
    unknown: float = 0.0
    """The words that no memory has; one that was found nearly so is a part of a word."""
    spelt_as: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Term of the question → the terms that are the same word to the index: itself, and its stems in other languages."""
    strange: tuple[str, ...] = ()
    """The plain words, and parts of identifiers, that no memory has in any form."""
    corrected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Word that no memory has → the terms that it may have meant, the likeliest first."""


def look_up_terms(
    index: MemoryIndex,
    query: QueryTerms,
    passages: Sequence[PassageGroup],
    among: TermStatistics,
    *,
    is_strict: bool = False,
) -> IndexedTerms:
    """Look up a query; `passages` are those that have each phrase or literal.

    Nothing is corrected if it is strict.
    """
    numbers: dict[int, float] = {}
    spelt_as: dict[str, frozenset[str]] = {}
    missing = []
    for term, weight in query.weights.items():
        found = _find_known(index, (term, *query.alternatives.get(term, ())))
        if not found and (word := query.spelt.get(term)):
            found = _find_foreign(index, word)
        for number in () if term in query.function_words else found:
            numbers[number] = numbers.get(number, 0.0) + weight / len(found)
        spelt_as[term] = frozenset(found.values())
        if not any(among.df(number) for number in found):
            missing.append(term)
    unknown = float(sum(index.vocabulary.number(term) is None for term in missing))
    corrected: dict[str, tuple[str, ...]] = {}
    plain = [term for term in missing if term in query.spelt]
    strange = tuple(query.spelt[t] for t in plain if index.vocabulary.number(t) is None)
    slips = {} if is_strict else {fold(query.spelt[term]): term for term in plain}
    joined = _find_joined(index, query.text, slips, among)
    for word, term in itertools.islice(slips.items(), CORRECTED_WORDS_MAX):
        share = CORRECTED_SHORT_WEIGHT if len(term) < _STEM_LONG else CORRECTED_WEIGHT
        if word in joined:
            meant, share = [joined[word]], 1.0
        elif not (meant := _find_meant(index, word, term, among)):
            meant, share = _split_word(index, word, among), 1.0
        if meant:
            unknown -= share if index.vocabulary.number(term) is None else 0.0
            corrected[word] = tuple(index.vocabulary.term(number) or "" for number in meant)
            for number in meant:
                numbers.setdefault(number, query.weights[term] * share / len(meant))
    groups = [index.columns.rows_with(some) for some, _ in passages]
    groups += [_find_rows_with_prefix(index, prefix) for prefix in query.prefixes]
    weights = (*(weight for _, weight in passages), *[1.0] * len(query.prefixes))
    return IndexedTerms(numbers, tuple(groups), weights, unknown, spelt_as, strange, corrected)


def _find_joined(
    index: MemoryIndex, text: str, strange: Collection[str], among: TermStatistics
) -> dict[str, int]:
    """Word that no memory has → the term that it is together with the word before or after it."""
    found: dict[str, int] = {}
    typed = [fold(word) for word in words(text)] if strange else []
    for one, other in itertools.pairwise(typed):
        is_long = len(one + other) >= 2 * _PART_LETTERS_MIN and min(len(one), len(other)) > 1
        if is_long and (one in strange or other in strange):
            known = [n for n in _find_known(index, terms(one + other)[:1]) if among.df(n)]
            found |= {word: known[0] for word in (one, other) if known and word in strange}
    return found


def _split_word(index: MemoryIndex, word: str, among: TermStatistics) -> list[int]:
    """The two terms that a word joins: the rarest pair that stands in one row."""
    rarest, best = 0.0, []
    for cut in range(_PART_LETTERS_MIN, len(word) - _PART_LETTERS_MIN + 1):
        one, other = (index.vocabulary.number(terms(part)[0]) for part in (word[:cut], word[cut:]))
        if one is None or other is None or among.idf(one) + among.idf(other) <= rarest:
            continue
        is_with = index.postings.contains(other, rows := index.postings.rows_of(one))
        if among.mask[rows[is_with]].any():
            rarest, best = among.idf(one) + among.idf(other), [one, other]
    return best


def _find_known(index: MemoryIndex, alike: Iterable[str]) -> dict[int, str]:
    """The terms among these that the index knows, by their numbers."""
    numbers = ((index.vocabulary.number(term), term) for term in alike)
    return {number: term for number, term in numbers if number is not None}


def _find_foreign(index: MemoryIndex, word: str) -> dict[int, str]:
    """The terms that a word is in the languages of some memories."""
    known = (name for name in LATIN_LANGUAGES if index.vocabulary.number(language_mark(name)))
    stems = unique(stem for name in known for stem in stem_as(name, word))
    return _find_known(index, stems)


def _find_rows_with_prefix(index: MemoryIndex, prefix: str) -> Rows:
    having = np.zeros(index.postings.n, np.bool_)
    for number in index.vocabulary.expand(prefix, index.postings.df):
        having[index.postings.rows_of(number)] = True
    return np.flatnonzero(having)


def _find_meant(index: MemoryIndex, word: str, term: str, among: TermStatistics) -> list[int]:
    """The terms nearest to a word that no memory has, the nearest and most frequent first."""
    letters = min(len(word), len(term) + 1)  # a stem has fewer letters to tell it by
    if letters < _LETTERS_MIN:
        return []
    away = index.vocabulary.find_similar(term, 1 if letters < _LETTERS_LONG else 2)
    away |= dict.fromkeys(_find_known(index, _list_stems_without_typo(word)), 1)
    alike = [number for number in away if (index.vocabulary.term(number) or " ")[0] == term[0]]
    for distance in sorted({away[number] for number in alike}):
        uses = {n: used for n in alike if away[n] == distance and (used := among.df(n))}
        if uses:
            return sorted(uses, key=lambda n: (-uses[n], n))[:_MEANT_MAX]
    return []


def _list_stems_without_typo(word: str) -> set[str]:
    """The stems of a word with two letters swapped, or one of a pair left out: such a typo hides the ending that a stem lacks."""
    pairs = [(i, word[i], word[i + 1]) for i in range(len(word) - 1)]
    forms = [f"{word[:i]}{b}{a}{word[i + 2 :]}" for i, a, b in pairs if a != b]
    forms += [word[:i] + word[i + 1 :] for i, a, b in pairs if a == b]
    return {terms(form)[0] for form in forms if len(form) >= _LETTERS_MIN}


# ── Literals ─────────────────────────────────────────────────────────────────────────────────────


def find_phrases(tx: Connection, query: QueryTerms) -> list[PassageGroup]:
    """The passages that have each phrase of a question."""
    expressions = map(phrase_expression, query.phrases)
    return [
        ([number for number, _ in fulltext.match_passages(tx, one, PHRASE_PASSAGES_MAX)], 1.0)
        for one in expressions
    ]


def find_literals(tx: Connection, query: QueryTerms) -> list[PassageGroup]:
    """The passages that have each literal of a question, but for those that none has.

    A literal counts twice as much as its words, four at least: a text that only repeats them does not outweigh it.
    """
    found = ((_find_literal(tx, one), float(max(2 * len(words(one)), 4))) for one in query.literals)
    return [(passages, weight) for passages, weight in found if passages]


def find_compounds(tx: Connection, query: QueryTerms) -> list[PassageGroup]:
    """The newest passages that have the parts of a word with hyphens side by side; it counts as one word more."""
    expressions = map(phrase_expression, query.compounds)
    found = (fulltext.newest_matches(tx, one, PHRASE_PASSAGES_MAX) for one in expressions)
    return [(passages, 1.0) for passages in found if passages]


def _find_literal(tx: Connection, literal: str) -> list[int]:
    """The ids of passages in which a literal stands as it is, whatever the case of its letters.

    Its words must follow each other in full text; the newest such passages are read.
    """
    expression = phrase_expression(tuple(words(literal)))
    candidates = fulltext.newest_matches(tx, expression, LITERAL_PASSAGES_MAX)
    before = "" if literal[0] in _MAY_FOLLOW_WORD else r"(?<!\w)"
    behind = r"(?!\w)" if literal[-1].isalnum() else ""
    pattern = re.compile(before + re.escape(literal) + behind, re.IGNORECASE)
    texts = fulltext.indexed_texts(tx, candidates) if candidates else {}
    return [number for number, text in texts.items() if pattern.search(text)]


# ── What is said of it ───────────────────────────────────────────────────────────────────────────


def describe_corrections(corrected: Mapping[str, Sequence[str]], texts: Iterable[str]) -> list[str]:
    """A note for each word that was looked for in another spelling, in words of the texts found."""
    if not corrected:
        return []
    written: dict[str, str] = {}
    for text in texts:
        for word in words(text):
            for term in terms(word):
                written.setdefault(term, fold(word))
    return [
        f"no memory has '{word}'; looked for "
        + " or ".join(f"'{one}'" for one in dict.fromkeys(written.get(t, t) for t in meant))
        for word, meant in corrected.items()
    ]

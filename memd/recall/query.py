"""What somebody typed, as terms for the legs. Nothing that can be typed is a syntax error. Pure.

Words are joined by OR: demanding every word is the classic failure of this field. `"a phrase"` is
one term that must stand like that, `prefix*` any word that begins so, and `OR` between words is
what happens anyway. Everything else is taken for words. Stop words are dropped unless nothing
else is left.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from memd.text import content_stems, fold, is_stop_word, words

QUERY_CHARACTERS_MAX = 4_000
_TERMS_MAX = 64
_PHRASES_MAX = 8
_PHRASE = re.compile(r'"([^"]*)"')
_PREFIX = re.compile(r"(?<!\w)_*+([^\W_]\w*+)\*")
_OPERATORS = re.compile(r"\b(?:OR|AND|NOT|NEAR)\b")


@dataclass(frozen=True, slots=True)
class Query:
    """The terms of a question. All are folded; `terms` and the words of `phrases` are stems."""

    text: str
    terms: Mapping[str, float] = field(default_factory=dict)
    """Term → weight: how often it was said."""
    phrases: tuple[tuple[str, ...], ...] = ()
    """Raw words, as FTS5 shall look for them side by side."""
    prefixes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    """The folded words that are not stop words, for whoever compares with a title."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to look for."""
        return not (self.terms or self.phrases or self.prefixes)


def parse(text: str) -> Query:
    """Read a query of any content; what is beyond 4,000 characters is not read."""
    text = text[:QUERY_CHARACTERS_MAX].replace("\x00", " ")
    phrases = [tuple(words(inner)) for inner in _PHRASE.findall(text)]
    rest = _PHRASE.sub(" ", text)
    prefixes = [fold(word) for word in _PREFIX.findall(rest)]
    rest = _OPERATORS.sub(" ", _PREFIX.sub(" ", rest))
    singles = [phrase[0] for phrase in phrases if len(phrase) == 1]
    plain = " ".join([rest, *singles])
    counted = Counter(content_stems(plain) if plain.strip() else [])
    tokens = words(plain)
    kept = [token for token in tokens if not is_stop_word(token)] or tokens
    return Query(
        text=text,
        terms={term: float(n) for term, n in counted.most_common(_TERMS_MAX)},
        phrases=tuple(phrase for phrase in phrases if len(phrase) > 1)[:_PHRASES_MAX],
        prefixes=tuple(dict.fromkeys(prefixes))[:_PHRASES_MAX],
        words=tuple(dict.fromkeys(fold(token) for token in kept))[:_TERMS_MAX],
    )


def fts_expression(query: Query) -> str:
    """The query for FTS5: every term quoted, joined by OR; empty if there is nothing to look for."""
    parts = [_quoted(word) for word in query.words]
    parts += [_quoted(" ".join(phrase)) for phrase in query.phrases]
    parts += [_quoted(prefix) + "*" for prefix in query.prefixes]
    return " OR ".join(parts)


def phrase_expression(phrase: tuple[str, ...]) -> str:
    """One phrase for FTS5."""
    return _quoted(" ".join(phrase))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', " ") + '"'

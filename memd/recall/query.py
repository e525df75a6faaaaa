"""Query syntax, intent, parsed query."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from numpy import float32
from numpy.typing import NDArray

from memd.models import Kind
from memd.recall.profiles import Profile
from memd.recall.types import Question
from memd.text import content_stems, fold, is_stop_word, words

# MERGED from memd.recall.query:
# MERGED What somebody typed, as terms for the legs. Nothing that can be typed is a syntax error. Pure.
# MERGED
# MERGED Words are joined by OR: demanding every word is the classic failure of this field. `"a phrase"` is
# MERGED one term that must stand like that, `prefix*` any word that begins so, and `OR` between words is
# MERGED what happens anyway. Everything else is taken for words. Stop words are dropped unless nothing
# MERGED else is left.


QUERY_CHARACTERS_MAX = 4_000
_TERMS_MAX = 64
_PHRASES_MAX = 8
_PHRASE = re.compile(r'"([^"]*)"')
_PREFIX = re.compile(r"(?<!\w)_*+([^\W_]\w*+)\*")
_OPERATORS = re.compile(r"\b(?:OR|AND|NOT|NEAR)\b")


@dataclass(frozen=True, slots=True)
class QueryTerms:
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


def parse_terms(text: str) -> QueryTerms:
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
    return QueryTerms(
        text=text,
        terms={term: float(n) for term, n in counted.most_common(_TERMS_MAX)},
        phrases=tuple(phrase for phrase in phrases if len(phrase) > 1)[:_PHRASES_MAX],
        prefixes=tuple(dict.fromkeys(prefixes))[:_PHRASES_MAX],
        words=tuple(dict.fromkeys(fold(token) for token in kept))[:_TERMS_MAX],
    )


def fts_expression(query: QueryTerms) -> str:
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


# MERGED from memd.recall.intent:
# MERGED What kind of memory a question asks for, read from its words. Pure.
# MERGED
# MERGED Two intents are told apart. *Recency*: "latest", "last session", "where were we": then the newest
# MERGED matters more than the best worded. *Kind*: "why did … fail" wants a fix or a failure, "how should
# MERGED we …" an instruction, "where do we …", "which … did we choose" a decision. An intent only ever adds
# MERGED a little to what already matches; it hides nothing.


_RECENT = re.compile(
    r"\b(?:latest|newest|most recent(?:ly)?|recent(?:ly)?|just now|yesterday|today|this (?:week|morning)"
    r"|last (?:session|time|night|week|thing|change|commit|prompt)|left off|where (?:was|were) (?:i|we)"
    r"|pick(?:ing)? up where|so far|current(?:ly)?)\b",
    re.IGNORECASE,
)
_KINDS: tuple[tuple[re.Pattern[str], tuple[Kind, ...]], ...] = (
    (
        re.compile(
            r"\b(?:how (?:should|do|must|shall) (?:i|we|you|\w+ (?:be|get))\b|how should\b|should (?:i|we|you)\b"
            r"|(?:rule|convention|guideline|instruction|policy|style)s?\b|always|never|prefer\w*|supposed to)",
            re.IGNORECASE,
        ),
        (Kind.INSTRUCTION, Kind.PREFERENCE),
    ),
    (
        re.compile(
            r"\b(?:why (?:did|does|do|is|was|were|are) .*\b(?:fail\w*|crash\w*|break\w*|broke\w*|error\w*|answer\w*|not)\b"
            r"|[1-5]\d\d\b|\w*(?:Error|Exception)\b|traceback|exception|crash\w*|broken|bug|fix(?:ed)?|fail(?:s|ed|ing|ure)?)",
        ),
        (Kind.FIX, Kind.FAILURE),
    ),
    (
        re.compile(
            r"\b(?:where do we|what do we use|which \w+ (?:do|did|are|should) we|what did we (?:decide|choose|pick|agree)"
            r"|(?:did|have) we (?:decide|choose|chosen|decided)|decision|decid\w+|chose\w*|why (?:did|do|are) we (?:choose|use|using|pick|keep|move)\w*)",
            re.IGNORECASE,
        ),
        (Kind.DECISION,),
    ),
    (
        re.compile(
            r"\b(?:todo|to-do|remind\w*|open tasks?|left to do|next steps?)\b", re.IGNORECASE
        ),
        (Kind.TASK,),
    ),
)


@dataclass(frozen=True, slots=True)
class Intent:
    """What the words of a question ask for."""

    is_recent: bool = False
    kinds: Mapping[Kind, float] = field(default_factory=dict)
    """Kind → how much it is asked for, at most 1."""


def read_intent(text: str) -> Intent:
    """The intent of a question."""
    kinds: dict[Kind, float] = {}
    for pattern, wanted in _KINDS:
        if pattern.search(text):
            kinds.update(dict.fromkeys(wanted, 1.0))
    return Intent(is_recent=bool(_RECENT.search(text)), kinds=kinds)


# MERGED from memd.recall.asked:
# MERGED A question that has been read: its terms, its intent, its profile, its vectors. Pure.


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A question's vector, and the name of the space that it belongs to."""

    space: str
    vector: NDArray[float32]
    unrelated: NDArray[float32] | None = None
    """Its cosines with what it is not about, if they are known; see meaning.py."""


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A question, read."""

    question: Question
    query: QueryTerms
    intent: Intent
    profile: Profile
    """As it is for this question: its legs, its intent."""
    profile_name: str
    k: int
    local: QueryVector | None
    """In the space that is always whole. None: no leg compares vectors, or the other one was brought."""
    learned: QueryVector | None
    """In a learned space. None: there is none, or `degraded` says why not."""
    degraded: Mapping[str, str]

    @property
    def now(self) -> int:
        """From when ages count."""
        return self.question.now if self.question.as_of is None else self.question.as_of

    @property
    def last(self) -> int:
        """The rank after the last hit of the page, from 0."""
        return self.question.offset + self.k

    @property
    def notes(self) -> tuple[str, ...]:
        """What was read between the lines, in words."""
        notes = []
        if self.intent.is_recent and self.profile.when_recent:
            notes.append("the question asks for the latest: recency leads")
        if self.intent.kinds and any(step.signal == "intent" for step in self.profile.steps):
            kinds = " or ".join(self.intent.kinds)
            notes.append(
                f"the question asks for {'an' if kinds[0] in 'aeiou' else 'a'} {kinds}"
            )
        return tuple(notes)

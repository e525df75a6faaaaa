"""A question, parsed: its terms, what kind of memory it asks for, its profile and its vectors.

Nothing that can be typed is a syntax error. Words are joined by OR, because demanding every word finds
too little; `words AND others` demands those two. `"a phrase"` is one term whose words must follow each other, `prefix*`
is any word with this
beginning; everything else is words. Stop words are dropped unless nothing else is left.

An intent adds a little to memories that match anyway; it never hides one.
"""

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from numpy import float32
from numpy.typing import NDArray

from memd.languages import detect_question_languages, has_unspaced, is_function_word
from memd.models import Kind
from memd.patterns import compile_lazily
from memd.recall import Question
from memd.recall.profiles import Profile
from memd.text import WORD, fold, is_stop_word, split_identifier, stem_as, terms, unique, words

QUERY_CHARACTERS_MAX = 4_000
"""Longer queries are cut here."""
_TERMS_MAX = 64
_PHRASES_MAX = 8
_PHRASE = compile_lazily(r'"([^"]*)"')
_PREFIX = compile_lazily(r"(?<!\w)_*+([^\W_]\w*+)\*")
_SIGN = compile_lazily(r"[^\w\s][^\W_]|[^\W_][^\w\s,.;:!?)'\"-]")
"""What every literal has: a sign before a letter, or one behind it that ends no sentence."""
_CHUNK = compile_lazily(r"[!-~\u00c0-\u024f]+")
"""Between spaces, or between characters of a script that has none."""
_PROSE = compile_lazily(
    r"\w+(?:[-'’]\w+)*(?:[,;!?…]+\w+(?:[-'’]\w+)*)*|\w(?:\.\w)+|\$?\d+(?:[.,:]\d+)*%?|-\w"
)
"""A word with hyphens, words whose space is missing, an abbreviation (`e.g`), a number, a time, `-m`."""
_COMPOUND = compile_lazily(r"(?<![\w-])[^\W_]++(?:-[^\W_]++)+(?![\w-])")
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"), ("<", ">"))
_OPERATORS = compile_lazily(r"\b(?:OR|AND|NOT|NEAR)\b")
_CONJUNCTION = compile_lazily(r'("[^"]+"|\S+)\s+AND\s+(?=("[^"]+"|\S+))')


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The terms of a question."""

    text: str
    weights: Mapping[str, float] = field(default_factory=dict)
    """Stem → how often the question has it."""
    phrases: tuple[tuple[str, ...], ...] = ()
    """The raw words of each phrase, in the order in which FTS5 must find them."""
    prefixes: tuple[str, ...] = ()
    """Folded."""
    words: tuple[str, ...] = ()
    """The folded words that are not stop words, to compare with a title."""
    literals: tuple[str, ...] = ()
    """What is written with signs, as it stands: `count=1`, `--no-verify`, `C++`, `.env.local`, `#123`."""
    required: tuple[str, ...] = ()
    """The folded words on both sides of an AND: a memory must have all of them."""
    compounds: tuple[tuple[str, ...], ...] = ()
    """The raw words of each word with hyphens, such as `go-git`: a text that has both parts elsewhere may say another thing."""
    spelt: Mapping[str, str] = field(default_factory=dict)
    """The term of a plain word, or of a part of an identifier → the word as it was typed: it may be misspelt, or of another language."""
    alternatives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """A term → what its word is in other languages' stems."""

    function_words: frozenset[str] = frozenset()
    """The terms that say nothing in the question's language, if that is not English: no reason to find a memory."""

    @property
    def is_empty(self) -> bool:
        """Return whether it has no term at all."""
        return not (self.weights or self.phrases or self.prefixes)


def parse_terms(text: str) -> QueryTerms:
    """Split a query of any content into its terms."""
    text = text[:QUERY_CHARACTERS_MAX].replace("\x00", " ")
    phrases = [tuple(words(inner)) for inner in _PHRASE.findall(text)]
    rest = _PHRASE.sub(" ", text)
    prefixes = []
    if "*" in rest:
        prefixes = [fold(word) for word in _PREFIX.findall(rest)]
        rest = _PREFIX.sub(" ", rest)
    rest = _OPERATORS.sub(" ", rest)
    sides = (side for pair in _CONJUNCTION.findall(text) for side in pair)
    joined = " ".join(side for side in sides if not side.endswith("*"))
    singles = [phrase[0] for phrase in phrases if len(phrase) == 1]
    tokens = words(" ".join([_PRESENT_PATTERN.sub(" ", rest), *singles])) or words(rest)
    languages = detect_question_languages([token.lower() for token in tokens])
    said = [token for token in tokens if not is_stop_word(token)] or tokens
    content = [token for token in said if not is_function_word(token.lower(), languages)] or said
    counted = Counter(term for token in said for term in terms(token))
    return QueryTerms(
        text=text,
        weights={term: float(n) for term, n in counted.most_common(_TERMS_MAX)},
        phrases=tuple(phrase for phrase in phrases if len(phrase) > 1)[:_PHRASES_MAX],
        prefixes=tuple(dict.fromkeys(prefixes))[:_PHRASES_MAX],
        words=tuple(dict.fromkeys(fold(token) for token in content))[:_TERMS_MAX],
        required=tuple(unique(fold(one) for one in words(joined) if not is_stop_word(one))),
        literals=_find_literals(rest),
        compounds=_find_hyphenated(rest),
        spelt=_find_plain_words(content),
        alternatives=_stem_in_languages(content, languages),
        function_words=_list_other_terms(said, content),
    )


def _list_other_terms(said: Sequence[str], content: Sequence[str]) -> frozenset[str]:
    """The terms of those of the words that are not in the other list."""
    if len(said) == len(content):
        return frozenset()
    kept = {term for token in content for term in terms(token)}
    return frozenset(term for token in said for term in terms(token)) - kept


def _stem_in_languages(
    tokens: Sequence[str], languages: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Term → the stems of its word in the languages that the question may be in, and what they are in English: `install` is `instal`."""
    found: dict[str, tuple[str, ...]] = {}
    for token in tokens if languages else ():
        for term in terms(token)[-1:]:
            own = [stem for name in languages for stem in stem_as(name, token)]
            english = [stem for one in own for stem in stem_as("english", one)]
            found[term] = tuple(one for one in unique([*own, *english]) if one != term)
    return {term: others for term, others in found.items() if others}


def _find_literals(text: str) -> tuple[str, ...]:
    """Find the chunks of a text with signs that prose does not have."""
    if not _SIGN.search(text):
        return ()
    found = (_strip_prose(chunk) for chunk in _CHUNK.findall(text))
    return tuple(dict.fromkeys(c for c in found if c and _is_literal(c)))[:_PHRASES_MAX]


def _find_hyphenated(text: str) -> tuple[tuple[str, ...], ...]:
    """The words of letters that hyphens join; a date or a version is none."""
    if "-" not in text:
        return ()
    found = (tuple(words(one)) for one in _COMPOUND.findall(text))
    return tuple(dict.fromkeys(c for c in found if any(map(str.isalpha, c))))[:_PHRASES_MAX]


def _strip_prose(chunk: str) -> str:
    """A chunk without the quotes and the punctuation of the sentence around it."""
    while True:
        bare = chunk.lstrip("\"'`").rstrip(".,;:!?\"'`")
        for opening, closing in _BRACKETS:
            if bare.startswith(opening) and closing not in bare[:-1]:
                bare = bare[1:]
            if bare.endswith(closing) and opening not in bare:
                bare = bare[:-1]
            if bare.startswith(opening) and bare.endswith(closing):
                bare = bare[1:-1]
        if bare == chunk:
            return bare
        chunk = bare


def _is_literal(chunk: str) -> bool:
    """Return whether the chunk has words that index terms leave incomplete."""
    parts = words(chunk)
    return bool(parts) and not _PROSE.fullmatch(chunk) and parts != [chunk]


def _find_plain_words(tokens: Sequence[str]) -> dict[str, str]:
    """Term → word, of those words, and parts of identifiers, that are one term of letters only."""
    spelt = (token for token in tokens if token.isalpha() or not any(map(str.isdigit, token)))
    parts = (part for token in spelt for part in split_identifier(token))
    found = ((terms(part), part) for part in parts if part.isalpha())
    return {own[0]: part for own, part in found if len(own) == 1 and not has_unspaced(part)}


def fts_expression(query: QueryTerms, *, all_words: bool = False) -> str:
    """The query for FTS5, every term quoted and joined by OR, with `all_words` by AND; empty if there is no term."""
    parts = [_quote_for_fts(word) for word in query.words]
    if not all_words:  # stems of words that stand there already
        parts += [_quote_for_fts(term) for term in query.weights if not term.isascii()]
    parts += [_quote_for_fts(" ".join(phrase)) for phrase in query.phrases]
    parts += [_quote_for_fts(prefix) + "*" for prefix in query.prefixes]
    joined = (" AND " if all_words else " OR ").join(parts)
    required = " AND ".join(map(_quote_for_fts, query.required))
    return f"({joined}) AND {required}" if required else joined


def phrase_expression(phrase: tuple[str, ...]) -> str:
    """One phrase for FTS5."""
    return _quote_for_fts(" ".join(phrase))


def _quote_for_fts(text: str) -> str:
    return '"' + text.replace('"', " ") + '"'


_PRESENT = r"right now|as of now|nowadays|these days|at (?:present|the moment)|currently"
_LATELY = (
    r"latest|newest|(?:most )?recent(?:ly)?|just now|yesterday|today|this (?:week|morning)"
    r"|last (?:session|time|night|week|thing|change|commit|prompt)"
)
_LEFT_OFF = r"left off|where (?:was|were) (?:i|we)|pick(?:ing)? up where"
_RECENT_PATTERN = compile_lazily(
    rf"\b(?:{_LATELY}|{_LEFT_OFF}|so far|current|{_PRESENT})\b", re.IGNORECASE
)
_PRESENT_PATTERN = compile_lazily(rf"\b(?:{_PRESENT}|now(?=\W*$))\b", re.IGNORECASE)
"""Adverbs of the present, which are not searched for: `these days` must not find `thirty days`."""
_WHAT_TO_DO = (
    r"how (?:should|do|must|shall) (?:i|we|you|\w+ (?:be|get))\b|how should\b|should (?:i|we|you)\b"
)
_WHY_NOT = r"why (?:did|does|do|is|was|were|are) .*\b(?:fail\w*|crash\w*|break\w*|broke\w*|error\w*|answer\w*|not)\b"
_WHAT_WE_CHOSE = (
    r"where do we|what do we use|which \w+ (?:do|did|are|should) we|what did we (?:decide|choose|pick|agree)"
    r"|(?:did|have) we (?:decide|choose|chosen|decided)"
)
_KIND_PATTERNS: tuple[tuple[re.Pattern[str], tuple[Kind, ...]], ...] = (
    (compile_lazily(
        rf"\b(?:{_WHAT_TO_DO}|(?:rule|convention|guideline|instruction|policy|style)s?\b|always|never|prefer\w*|supposed to)",
        re.IGNORECASE,
    ), (Kind.INSTRUCTION, Kind.PREFERENCE)),
    (compile_lazily(
        rf"\b(?:{_WHY_NOT}|[1-5]\d\d\b|\w*(?:Error|Exception)\b|traceback|exception|crash\w*|broken|bug|fix(?:ed)?"
        r"|fail(?:s|ed|ing|ure)?)",
    ), (Kind.FIX, Kind.FAILURE)),
    (compile_lazily(
        rf"\b(?:{_WHAT_WE_CHOSE}|decision|decid\w+|chose\w*|why (?:did|do|are) we (?:choose|use|using|pick|keep|move)\w*)",
        re.IGNORECASE,
    ), (Kind.DECISION,)),
    (compile_lazily(
        r"\b(?:todo|to-do|remind\w*|open tasks?|left to do|next steps?)\b", re.IGNORECASE
    ), (Kind.TASK,)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Intent:
    """The intents that the words of a question show."""

    is_recent: bool = False
    kinds: tuple[Kind, ...] = ()
    is_present: bool = False
    """Whether it asks how things are now."""


def read_intent(text: str) -> Intent:
    """The intent of a question."""
    found = (kinds for pattern, kinds in _KIND_PATTERNS if pattern.search(text))
    return Intent(
        bool(_RECENT_PATTERN.search(text)),
        tuple(itertools.chain.from_iterable(found)),
        bool(_PRESENT_PATTERN.search(text)),
    )


def without_recency(text: str) -> str:
    """Return the question without its words for the present and the latest, which no memory has."""
    return _RECENT_PATTERN.sub(" ", text)


_ANY_WORD = "it"


def find_intent_words(text: str, kind: Kind) -> frozenset[str]:
    """The folded words of a question that only ask for this kind of memory: `choose` in `why did we choose redis`.

    Where any word may stand, as in `which antenna do we use`, stands what the question is about.
    """
    patterns = [
        pattern for pattern, kinds in _KIND_PATTERNS if kind in kinds and pattern.search(text)
    ]
    return frozenset(
        fold(match[0])
        for match in (WORD.finditer(text) if patterns else ())
        if not is_stop_word(match[0])
        and not any(
            p.search(f"{text[: match.start()]}{_ANY_WORD}{text[match.end() :]}") for p in patterns
        )
    )


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A question's vector in one space."""

    space: str
    vector: NDArray[float32]
    """Empty where the words still have to be weighed by their rarity; see `weigh_by_rarity`."""
    unrelated: NDArray[float32] | None = None
    """Its cosines with sentences that no question is about, if they are known; see semantic.py."""


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A question with everything that is read from it before the index is searched."""

    question: Question
    terms: QueryTerms
    intent: Intent
    profile: Profile
    """As it is for this question: its retrievers, its intent."""
    profile_name: str
    k: int
    hashing_vector: QueryVector | None
    """None: no retriever compares vectors, or the caller gave a vector of the learned space."""
    learned_vector: QueryVector | None
    """None: there is no learned space, or `degraded` says why it cannot be used."""
    degraded: Mapping[str, str]

    @property
    def now(self) -> int:
        """The time from which ages count, UTC ms."""
        return self.question.asked_at

    @property
    def page_end(self) -> int:
        """The rank after the last hit of the page, from 0."""
        return self.question.offset + self.k

    @property
    def notes(self) -> tuple[str, ...]:
        """Describe in words how the wording of the question was understood."""
        notes = []
        if self.intent.is_recent and self.profile.when_recent:
            notes.append("the question asks for the latest: recency leads")
        if self.intent.kinds and any(step.signal == "intent" for step in self.profile.steps):
            kinds = " or ".join(self.intent.kinds)
            article = "an" if kinds[0] in "aeiou" else "a"
            notes.append(f"the question asks for {article} {kinds}")
        return tuple(notes)

"""Verdict on an answer: `found`, `weak` or `nothing`, and the reason in words.

`judge_answer` is called once, when the page is complete, however it was found. It alone sets the verdict, and it alone
takes hits away.

The scores of one answer compare its hits and say nothing by themselves: the best of many bad hits looks as good as the
best of a few good ones. What does say something is *coverage*, the share of the question that a hit has, each word
weighed by how rare it is among the memories that may be seen: 0 to 1 in any vault and with any profile; and how many
words that is, since one word in common is sooner chance than two. Beside it count a name that no memory has, and
whether a learned model finds a memory nearer than sentences about anything. Hits are taken away only if nothing of the
question stands in any of them; in a language whose function words and endings memd does not know well, only if not
even a part of a word does.
"""

import difflib
import operator
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from memd.index.postings import idf
from memd.languages import detect_question_languages, may_be_english, may_share_language
from memd.models import Kind
from memd.recall import Answer, Evidence, Hit, Question, RelevanceGate, TermRarity, VerdictName
from memd.recall.query import find_intent_words, without_recency
from memd.recall.question_words import QuestionWord, ShownText, read_words
from memd.recall.retrievers import VAULT_ROWS_MIN, Floats, IndexedQuery, Rows, contains_rows
from memd.store.filter import Mask
from memd.text import WORD, fold, one_line

QUESTION_WORDS_MAX = 8
"""Coverage counts the rarest words of a question up to this number, or the mere length of a text would sink it."""
FOUND_COVERAGE, NOTHING_COVERAGE = 0.45, 0.15
"""Of the questions with an answer nine in ten have a hit above the first, and one in a hundred has none above the second."""
FOUND_MEANT_COVERAGE = 0.3
"""The same for a memory that a learned model finds nearer than sentences about anything: what was never discussed
is near something, too, in a vault about one thing."""
NAMED_COVERAGE, NAMED_NOTHING_COVERAGE = 0.75, 0.3
"""The same where the question has a name that no memory has: without it the rest of the words must nearly all be there."""
_FOREIGN_NOTHING_COVERAGE = 0.05
"""The second for a question that may be in another language than English."""
_ALONE_COVERAGE = 0.6
"""The least coverage by one word of several."""
_WORDS_MIN = 1.5
"""Words in common that are more than chance; the parts of compounds and of runs without spaces count as parts."""
_PRESENT = 0.5
"""A word is there if so much of it is."""
_CORRECTED = 0.4
"""What a word counts that stands there in another spelling."""
_LIKE_MIN = 0.82
"""The least share of letters in common by which a term may be the one that was meant."""
_SCATTERED = 0.5
"""What a word counts that a long memory has, but not where it has most of the question."""
_UNKNOWN_FORM = 0.6
"""What a word counts that no memory has, if it may be an inflected or a function word of a language other than English."""
_PART_OF_PHRASE = 0.4
"""What `call` counts for `on call` in a memory that is like the question; in another, and in another form, nothing."""
_FORM_ELSEWHERE = 0.4
"""What another form of a word counts in a text of another language: below `_PRESENT`."""
_RUN_RARITY = 0.7
"""The rarity of a run without spaces, as a share of the rarest: which pairs of its characters are words is not known."""
_ASKED_MAX = 40
"""Words of a long text that are compared."""
_WORDS_SHOWN = 4
_TITLE_CHARACTERS_MAX = 60


# ── Coverage ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of a question by each of some rows."""

    shares: Floats
    """Of each row, shape (m,), 0 to 1."""
    has: Mapping[str, Mask]
    """Term of the question → whether each row has it, shape (m,)."""
    rarity: TermRarity

    def list_terms(self, place: int) -> frozenset[str]:
        """The terms of the question that one of the rows has."""
        return frozenset(term for term, mask in self.has.items() if mask[place])


def compute_coverage(query: IndexedQuery, rows: Rows, counted: Mask | None = None) -> Coverage:
    """Measure how much of the question each of `rows` has; `counted` says which of them have which term, (m, terms).

    Σ idf of the words that a row has / Σ idf of the eight rarest of the question, at most 1. Words that
    the vault does not have are the rarest of all. A phrase or prefix counts like a word.
    """
    among, found_terms = query.visible.context_rows.among, query.terms
    count = max(among.count, VAULT_ROWS_MIN)
    having = [among.df(number) for number in found_terms.numbers]
    having += [int(np.count_nonzero(among.mask[group])) for group in found_terms.groups]
    weights = [idf(count, number) for number in having]
    presence: Sequence[Mask]
    if counted is not None:
        presence = list(counted.T)
    else:
        presence = [query.index.postings.contains(number, rows) for number in found_terms.numbers]
        presence += [contains_rows(group, rows) for group in found_terms.groups]
    found = np.zeros(len(rows))
    for weight, is_present in zip(weights, presence, strict=True):
        found += weight * is_present
    unknown = round(found_terms.unknown)
    asked = sorted([*weights, *[idf(count, 0)] * unknown], reverse=True)
    total = sum(asked[:QUESTION_WORDS_MAX])
    shares = np.minimum(found / total, 1.0) if total > 0 else found
    names = [query.index.vocabulary.term(number) or "" for number in found_terms.numbers]
    rarity = TermRarity(dict(zip(names, weights, strict=False)), idf(count, 0))
    return Coverage(shares, dict(zip(names, presence, strict=False)), rarity)


def coverage_of(hit: Hit) -> float:
    """The share of the question that a hit covers; a hit by topic key was asked for by name: 1."""
    return 1.0 if hit.topic_rank is not None else hit.coverage or 0.0


# ── The verdict ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _WeighedWord:
    """A word of the question, and what is the same of it for all hits."""

    word: QuestionWord
    folded: str
    others: frozenset[str]
    """Its stems by the rules of other languages, beside its own terms."""
    weight: float
    is_unspaced: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """The part of a question that a hit covers."""

    shares: Mapping[str, float]
    """Word of the question → how much of it stands there."""
    coverage: float
    """Of the memory."""
    shown: float
    """The same where a word that its title and snippet do not show counts less: two words of one question stand
    somewhere in any long text."""
    is_chance: bool
    """Whether it is one word of several, or in another language: then it may be there by chance."""


def judge_answer(answer: Answer, question: Question, doubt: str = "") -> Answer:
    """The answer with its verdict, and without its hits if that is `nothing`, unless the question wants all.

    `doubt` is a reason for which it is `weak` at most: nothing is from the time, or of the kind, that was asked for.
    """
    name, reason = _decide_verdict(answer, question)
    if doubt and name == "found":
        name, reason = "weak", doubt
    if name == "nothing" and answer.hits and not question.show_all:
        hidden = {**answer.suppressed, "unlikely": len(answer.hits)}
        answer = replace(answer, hits=(), notes=(), contradicted={}, suppressed=hidden)
    return replace(answer, verdict=name, reason=reason)


def _decide_verdict(  # noqa: PLR0911  # the cases in their order
    answer: Answer, question: Question
) -> tuple[VerdictName, str]:
    hits, evidence = answer.hits, answer.evidence
    if evidence is not None and evidence.own_scores:
        hits = tuple(sorted(hits, key=lambda hit: -evidence.own_scores[hit.summary.id]))
    if question.relevance_gate is not None or question.offset:
        # The gate judges hit by hit; and of a later page the first one was judged.
        return ("found" if hits else "nothing"), ""
    if answer.listed:
        return ("found" if hits else "nothing"), answer.listed
    if evidence is None:
        why = "the index is still loading: full text answered alone"
        return ("weak" if hits else "nothing"), why
    asked = read_words(without_recency(evidence.text)) or read_words(evidence.text)
    asked = asked[:_ASKED_MAX]
    if not hits:
        return "nothing", _explain_nothing(asked, evidence.rarity)
    if not asked or hits[0].topic_rank is not None:
        return "found", "the topic or the vector that was asked for is there"

    is_english = may_be_english([token.lower() for token in WORD.findall(evidence.text)])
    weighed = [_weigh_word(word, evidence, is_english=is_english) for word in asked]
    unknown = [one for one in weighed if not _is_known(one, evidence)]
    meant = [hit.summary.id in (evidence.meant or ()) for hit in hits]

    measured = _MeasuredHits(weighed, hits, evidence, is_english)
    has_unknown_name = any(one.word.is_name and measured.lack(one.word) for one in unknown)

    def has_enough(one: _Found, *, is_meant: bool) -> bool:
        least = FOUND_MEANT_COVERAGE if is_meant else FOUND_COVERAGE
        least = NAMED_COVERAGE if has_unknown_name else least
        # To a model of English, what is in the language of the question is near it whatever it says.
        may_be_chance = one.is_chance and not (is_meant and is_english)
        return one.shown >= (max(least, _ALONE_COVERAGE) if may_be_chance else least)

    is_meant = any(meant)
    if any(has_enough(one, is_meant=its) for one, its in zip(measured, meant, strict=True)):
        return "found", _explain_found(asked, hits[0], measured[0], is_meant=is_meant)

    limit = NAMED_NOTHING_COVERAGE if has_unknown_name else NOTHING_COVERAGE
    # A misspelt question, or one in another language, has fewer words of the memories than it means.
    limit = limit if is_english else _FOREIGN_NOTHING_COVERAGE
    is_near = is_meant or evidence.may_be_meant
    may_be_nothing = evidence.meant is not None and not (is_near or evidence.corrected)
    is_nothing = may_be_nothing and max(one.coverage for one in measured) < limit
    missing = [one.word for one in unknown if measured.lack(one.word)]
    why = _explain_weakness(asked, missing, hits[0], measured[0])
    return ("nothing" if is_nothing else "weak"), why


@dataclass(frozen=True)
class _MeasuredHits:
    """The share of a question that each hit has, measured when asked for: most often the first one decides."""

    asked: Sequence[_WeighedWord]
    hits: Sequence[Hit]
    evidence: Evidence
    is_english: bool
    _found: dict[int, _Found] = field(default_factory=dict)
    _of_kind: dict[Kind, Sequence[_WeighedWord]] = field(default_factory=dict)
    """Kind of memory → the words that do not only ask for it."""

    @cached_property
    def _languages(self) -> Sequence[str]:
        return detect_question_languages(self.evidence.text.lower().split())

    def __getitem__(self, place: int) -> _Found:
        if place not in self._found:
            hit = self.hits[place]
            if (kind := hit.summary.kind) not in self._of_kind:
                by_kind = find_intent_words(self.evidence.text, kind)
                about = [one for one in self.asked if one.folded not in by_kind]
                self._of_kind[kind] = about or self.asked
            self._found[place] = _measure_coverage(
                self._of_kind[kind], hit, self.evidence, self._languages, is_english=self.is_english
            )
        return self._found[place]

    def __iter__(self) -> Iterator[_Found]:
        return map(self.__getitem__, range(len(self.hits)))

    def lack(self, word: QuestionWord) -> bool:
        """Return whether no hit has a word."""
        return all(one.shares.get(word.text, 0.0) < _PRESENT for one in self)


def _measure_coverage(
    about: Sequence[_WeighedWord],
    hit: Hit,
    evidence: Evidence,
    languages: Sequence[str],
    *,
    is_english: bool,
) -> _Found:
    has = evidence.terms_of.get(hit.summary.id, frozenset())
    text = f"{hit.summary.title}\n{hit.snippet}"
    shown, is_alike = ShownText(text), may_share_language(languages, text)
    shares: dict[str, float] = {}
    seen: list[float] = []
    count = 0.0
    for one in about:
        word = one.word
        own = 0.0 if one.is_unspaced else word.share_of_terms(has)
        if word.phrase and is_english and not shown.has_phrase(word.phrase):
            is_near = hit.cosine is not None and shown.has_phrase(one.folded)
            share = words = _PART_OF_PHRASE if is_near else 0.0
        elif own == 1.0 or not one.others.isdisjoint(has):
            share = words = 1.0
        elif is_english:
            meant = evidence.corrected.get(one.folded, ())
            share = words = max(own, _CORRECTED if _is_misspelt(one, meant, has, shown) else 0.0)
        else:
            share, words = shown.share_of(word)
            share = max(own, share * (1.0 if is_alike else _FORM_ELSEWHERE))
        is_scattered = is_english and own == 1.0 == share and not shown.has_word(word)
        if is_scattered:
            words = _SCATTERED
        seen.append(share * _SCATTERED if is_scattered else share)
        shares[word.text] = share
        count += words if one.is_unspaced or share >= _PRESENT else 0.0
    weights = [one.weight for one in about]
    total = sum(sorted(weights, reverse=True)[:QUESTION_WORDS_MAX])
    covered, visible = (
        min(sum(map(operator.mul, weights, parts)) / total, 1.0) if total else 0.0
        for parts in (shares.values(), seen)
    )
    is_chance = count < min(_WORDS_MIN, sum(one.word.size for one in about)) or not is_alike
    if evidence.has_phrases and coverage_of(hit) > covered:
        return _Found(shares, coverage_of(hit), coverage_of(hit), is_chance=False)
    return _Found(shares, covered, visible, is_chance)


def _is_misspelt(
    asked: _WeighedWord, meant: Iterable[str], has: Container[str], shown: ShownText
) -> bool:
    """Return whether a hit has what a word was probably meant to be: one like it, one that it is part of, or two that it joins.

    Two letters away stand other words, too: `translations` and `transparent`, and `database` is not `data` and `base`.
    """
    own, stem = asked.folded, asked.word.terms[0]
    is_near = any(
        own in one or difflib.SequenceMatcher(None, stem, one).ratio() >= _LIKE_MIN
        for one in meant
        if one in has
    )
    return is_near or shown.has_parts(own)


def _weigh_word(word: QuestionWord, evidence: Evidence, *, is_english: bool) -> _WeighedWord:
    rarity = evidence.rarity
    others = evidence.spelt_as.get(word.terms[-1], frozenset()).difference(word.terms)
    known = [term for term in (*word.terms, *others) if term in rarity.known]
    is_unspaced = word.is_unspaced
    if is_unspaced:
        weight = rarity.unknown * _RUN_RARITY * word.size
    elif known:
        weight = rarity.of(known)
    else:
        weight = rarity.unknown * (1.0 if word.is_name or is_english else _UNKNOWN_FORM)
    return _WeighedWord(word, fold(word.text), others, weight, is_unspaced)


def _is_known(one: _WeighedWord, evidence: Evidence) -> bool:
    """Return whether some memory has a word, or what it may have been meant to be."""
    known = evidence.rarity.known
    return (
        one.word.is_in(known)
        or not one.others.isdisjoint(known)
        or one.folded in evidence.corrected
    )


# ── In words ─────────────────────────────────────────────────────────────────────────────────────


def _explain_found(
    asked: Sequence[QuestionWord], first: Hit, found: _Found, *, is_meant: bool
) -> str:
    present = [word for word in asked if found.shares.get(word.text, 0.0) >= _PRESENT]
    by_words = f"#{first.summary.id} has {_quote_words(present)}" if present else ""
    by_meaning = "the model finds the same meaning" if is_meant else ""
    return (
        "; ".join(filter(None, (by_words, by_meaning))) or "several hits have the question's words"
    )


def _explain_weakness(
    asked: Sequence[QuestionWord], missing: Sequence[QuestionWord], first: Hit, found: _Found
) -> str:
    present = [word for word in asked if found.shares.get(word.text, 0.0) >= _PRESENT]
    title = one_line(first.summary.title, _TITLE_CHARACTERS_MAX)
    known = f"has only {_quote_words(present)}" if present else "has none of the words"
    lead = f"no memory has {_quote_words(missing)}; " if missing else ""
    return f"{lead}the nearest, “{title}”, {known}"


def _explain_nothing(asked: Sequence[QuestionWord], rarity: TermRarity) -> str:
    missing = [word for word in asked if not word.is_in(rarity.known)]
    return (
        f"no memory has {_quote_words(missing)}"
        if missing
        else "no memory that may be seen matches"
    )


def _quote_words(asked: Sequence[QuestionWord]) -> str:
    shown = ", ".join(f"'{word.text}'" for word in asked[:_WORDS_SHOWN])
    more = len(asked) - _WORDS_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


# ── The relevance gate: close enough to the best, if it covers enough ───────────────────────────────


def keep_relevant(answer: Answer, gate: RelevanceGate, limit: int) -> Answer:
    """The answer with only the hits that pass; the others are counted, and explained in the trace."""
    passing = keep_relevant_hits(answer.hits, gate, limit)
    weak = len(answer.hits) - len(passing)
    if not weak:
        return answer
    why = "weak: too far below the best" if passing else "weak: even the best covers too little"
    ids = {hit.summary.id for hit in passing}
    return replace(
        answer,
        hits=tuple(passing),
        suppressed={**answer.suppressed, "weak": weak},
        trace=tuple(
            replace(one, verdict=why) if one.is_hit and one.summary_id not in ids else one
            for one in answer.trace
        ),
    )


def keep_relevant_hits(hits: Sequence[Hit], gate: RelevanceGate, limit: int) -> list[Hit]:
    """Keep at most `limit` hits close enough to the best; none if none of these covers enough."""
    score_floor = score_floor_of(hits, gate)
    close = [hit for hit in hits if hit.score >= score_floor][:limit]
    return close if best_coverage(close) >= gate.floor else []


def score_floor_of(hits: Sequence[Hit], gate: RelevanceGate) -> float:
    """The least score that is close to the best; below zero the distance counts alike."""
    best = hits[0].score if hits else 0.0
    return best - (1.0 - gate.ratio) * abs(best)


def best_coverage(hits: Sequence[Hit]) -> float:
    """The greatest coverage among them."""
    return max(map(coverage_of, hits), default=0.0)

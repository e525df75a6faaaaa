"""Whether an answer answers: `found`, `weak` or `nothing`, and the reason in words.

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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memd.index.postings import idf
from memd.languages import may_be_english, may_share_language
from memd.recall.query import find_intent_words, without_recency
from memd.recall.question_words import QuestionWord, ShownText, read_words
from memd.recall.retrievers import VAULT_ROWS_MIN, Floats, IndexedQuery, Rows, contains_rows
from memd.recall.types import Answer, Evidence, Hit, Question, TermRarity, VerdictName
from memd.store.filter import Mask
from memd.text import WORD, fold, one_line

QUESTION_WORDS_MAX = 8
"""Coverage counts the rarest words of a question up to this number, or the mere length of a text would sink it."""
FOUND_COVERAGE, NOTHING_COVERAGE = 0.45, 0.15
"""Of the questions with an answer nine in ten have a hit above the first, and one in a hundred has none above the second."""
FOUND_MEANT_COVERAGE = 0.3
"""The same for a page on which a learned model finds a memory nearer than sentences about anything: what was never discussed
is near something, too, in a vault about one thing."""
NAMED_COVERAGE, NAMED_NOTHING_COVERAGE = 0.75, 0.3
"""The same where the question has a name that no memory has: without it the rest of the words must nearly all be there."""
_FOREIGN_NOTHING_COVERAGE = 0.05
"""The second for a question that may be in another language than English."""
_ALONE_COVERAGE = 0.6
"""The least coverage by one word of several."""
_WORDS_MIN = 1.5
"""So many words in common are more than chance; the parts of compounds and of runs without spaces count as parts."""
_PRESENT = 0.5
"""A word is there if so much of it is."""
_CORRECTED = 0.4
"""What a word counts that stands there in another spelling."""
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
    """How much of a question each of some rows has."""

    shares: Floats
    """Of each row, shape (m,), 0 to 1."""
    has: Mapping[str, Mask]
    """Term of the question → whether each row has it, shape (m,)."""

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
    return Coverage(shares, dict(zip(names, presence, strict=False)))


def measure_rarity(query: IndexedQuery) -> TermRarity:
    """How rare the question's terms are among the rows that may be seen."""
    among, vocabulary = query.visible.context_rows.among, query.index.vocabulary
    count = max(among.count, VAULT_ROWS_MIN)
    known = {vocabulary.term(n) or "": idf(count, among.df(n)) for n in query.terms.numbers}
    return TermRarity(known, idf(count, 0))


def coverage_of(hit: Hit) -> float:
    """The share of the question that a hit covers; a hit by topic key was asked for by name: 1."""
    return 1.0 if hit.topic_rank is not None else hit.coverage or 0.0


# ── The verdict ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Found:
    """How much of a question a hit has."""

    shares: Mapping[str, float]
    """Word of the question → how much of it stands there."""
    coverage: float
    is_chance: bool
    """Whether it is one word of several, or in another language: then it may be there by chance."""


def judge_answer(answer: Answer, question: Question, doubt: str = "") -> Answer:
    """The answer with its verdict, and without its hits if that is `nothing`, unless the question wants all.

    `doubt` is a reason for which it is `weak` at most: nothing is from the time, or of the kind, that was asked for.
    """
    name, reason = _decide(answer, question)
    if doubt and name == "found":
        name, reason = "weak", doubt
    if name == "nothing" and answer.hits and not question.show_all:
        hidden = {**answer.suppressed, "unlikely": len(answer.hits)}
        answer = replace(answer, hits=(), notes=(), contradicted={}, suppressed=hidden)
    return replace(answer, verdict=name, reason=reason)


def _decide(  # noqa: PLR0911  # the cases in their order
    answer: Answer, question: Question
) -> tuple[VerdictName, str]:
    hits, evidence = answer.hits, answer.evidence
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
    found = [_measure(asked, hit, evidence, is_english=is_english) for hit in hits]
    best = max(found, key=lambda one: (one.coverage, not one.is_chance))
    missing = [word for word in asked if not _is_known(word, found, evidence)]
    has_unknown_name = any(word.is_name for word in missing)
    is_meant = any(hit.summary.id in (evidence.meant or ()) for hit in hits)

    least = FOUND_MEANT_COVERAGE if is_meant else FOUND_COVERAGE
    least = NAMED_COVERAGE if has_unknown_name else least
    least = max(least, _ALONE_COVERAGE) if best.is_chance and not is_meant else least
    if best.coverage >= least:
        return "found", _explain_found(asked, hits[0], found[0], is_meant=is_meant)

    limit = NAMED_NOTHING_COVERAGE if has_unknown_name else NOTHING_COVERAGE
    # A misspelt question, or one in another language, has fewer words of the memories than it means.
    limit = limit if is_english else _FOREIGN_NOTHING_COVERAGE
    may_be_nothing = evidence.meant is not None and not is_meant and not evidence.corrected
    is_nothing = may_be_nothing and best.coverage < limit
    why = _explain_weakness(asked, missing, hits[0], found[0])
    return ("nothing" if is_nothing else "weak"), why


def _measure(
    asked: Sequence[QuestionWord], hit: Hit, evidence: Evidence, *, is_english: bool
) -> _Found:
    has = evidence.terms_of.get(hit.summary.id, frozenset())
    text = f"{hit.summary.title}\n{hit.snippet}"
    shown, is_alike = ShownText(text), may_share_language(evidence.text, text)
    asked_by_kind = find_intent_words(evidence.text, hit.summary.kind)
    about = [word for word in asked if fold(word.text) not in asked_by_kind] or asked
    shares: dict[str, float] = {}
    weights: list[float] = []
    count = 0.0
    for word in about:
        others = _list_other_stems(word, evidence)
        own = 0.0 if word.is_run else word.share_of_terms(has)
        if word.phrase and is_english and not shown.has_phrase(word.phrase):
            is_near = hit.cosine is not None and shown.has_phrase(fold(word.text))
            share = words = _PART_OF_PHRASE if is_near else 0.0
        elif own == 1.0 or not others.isdisjoint(has):
            share = words = 1.0
        elif is_english:
            is_corrected = has.intersection(evidence.corrected.get(fold(word.text), ()))
            share = words = max(own, _CORRECTED if is_corrected else 0.0)
        else:
            share, words = shown.share_of(word)
            share = max(own, share * (1.0 if is_alike else _FORM_ELSEWHERE))
        shares[word.text] = share
        weights.append(_weigh(word, evidence, others, is_english=is_english))
        count += words if word.is_run or share >= _PRESENT else 0.0
    total = sum(sorted(weights, reverse=True)[:QUESTION_WORDS_MAX])
    covered = sum(weight * share for weight, share in zip(weights, shares.values(), strict=True))
    is_chance = count < min(_WORDS_MIN, sum(w.size for w in about)) or not is_alike
    coverage = min(covered / total, 1.0) if total else 0.0
    if evidence.has_phrases and coverage_of(hit) > coverage:
        return _Found(shares, coverage_of(hit), is_chance=False)
    return _Found(shares, coverage, is_chance)


def _list_other_stems(word: QuestionWord, evidence: Evidence) -> frozenset[str]:
    """What a word is in the stems of other languages, beside its own terms."""
    return evidence.spelt_as.get(word.terms[-1], frozenset()).difference(word.terms)


def _weigh(
    word: QuestionWord, evidence: Evidence, others: Iterable[str], *, is_english: bool
) -> float:
    rarity = evidence.rarity
    if word.is_run:
        return rarity.unknown * _RUN_RARITY * word.size
    known = [term for term in (*word.terms, *others) if term in rarity.known]
    if known:
        return rarity.of(known)
    return rarity.unknown * (1.0 if word.is_name or is_english else _UNKNOWN_FORM)


def _is_known(word: QuestionWord, found: Sequence[_Found], evidence: Evidence) -> bool:
    others = _list_other_stems(word, evidence)
    return (
        word.is_in(evidence.rarity.known)
        or not others.isdisjoint(evidence.rarity.known)
        or fold(word.text) in evidence.corrected
        or any(one.shares.get(word.text, 0.0) >= _PRESENT for one in found)
    )


# ── In words ─────────────────────────────────────────────────────────────────────────────────────


def _explain_found(
    asked: Sequence[QuestionWord], first: Hit, found: _Found, *, is_meant: bool
) -> str:
    present = [word for word in asked if found.shares.get(word.text, 0.0) >= _PRESENT]
    by_words = f"#{first.summary.id} has {_quote(present)}" if present else ""
    by_meaning = "the model finds the same meaning" if is_meant else ""
    return (
        "; ".join(filter(None, (by_words, by_meaning))) or "several hits have the question's words"
    )


def _explain_weakness(
    asked: Sequence[QuestionWord], missing: Sequence[QuestionWord], first: Hit, found: _Found
) -> str:
    present = [word for word in asked if found.shares.get(word.text, 0.0) >= _PRESENT]
    title = one_line(first.summary.title, _TITLE_CHARACTERS_MAX)
    known = f"has only {_quote(present)}" if present else "has none of the words"
    lead = f"no memory has {_quote(missing)}; " if missing else ""
    return f"{lead}the nearest, “{title}”, {known}"


def _explain_nothing(asked: Sequence[QuestionWord], rarity: TermRarity) -> str:
    missing = [word for word in asked if not word.is_in(rarity.known)]
    return f"no memory has {_quote(missing)}" if missing else "no memory that may be seen matches"


def _quote(asked: Sequence[QuestionWord]) -> str:
    shown = ", ".join(f"'{word.text}'" for word in asked[:_WORDS_SHOWN])
    more = len(asked) - _WORDS_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown

"""Whether an answer answers: `found`, `weak` or `nothing`, and the reason in words.

The scores of one answer compare its hits and say nothing by themselves: the best of many bad hits looks as good as the
best of a few good ones. What does say something is *coverage*, the share of the question that a hit has, each word
weighed by how rare it is among the memories that may be seen: 0 to 1 in any vault and with any profile. Beside it count
a name that no memory has, and whether a learned model finds a memory nearer than sentences about anything.

The limits were chosen on questions with and without an answer from five sets: commit messages of two projects,
functions, and two kinds of conversations, each also asked for what only another set knows.
"""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memd.index.postings import idf
from memd.languages import detect_question_languages, is_function_word
from memd.recall.retrievers import VAULT_ROWS_MIN, Floats, IndexedQuery, Rows, contains_rows
from memd.recall.types import Hit, TermRarity, VerdictName
from memd.store.filter import Mask
from memd.text import WORD, fold, is_stop_word, one_line, terms

QUESTION_WORDS_MAX = 8
"""Coverage counts the rarest words of a question up to this number, or the mere length of a text would sink it."""
FOUND_COVERAGE, NOTHING_COVERAGE = 0.45, 0.15
"""Of the questions with an answer nine in ten have a hit above the first, and one in a hundred has none above the second."""
FOUND_MEANT_COVERAGE = 0.3
"""The same for a page on which a learned model finds a memory nearer than sentences about anything: what was never discussed
is near something, too, in a vault about one thing."""
NAMED_COVERAGE, NAMED_NOTHING_COVERAGE = 0.75, 0.3
"""The same where the question has a name that no memory has: without it the rest of the words must nearly all be there."""
_WORDS_SHOWN = 4
_TITLE_CHARACTERS_MAX = 60
_SENTENCE_START = re.compile(r"(?:^|[.!?:]\s)[\s\"'`(¿¡]*$")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer is worth."""

    name: VerdictName
    reason: str


@dataclass(frozen=True, slots=True)
class QuestionWord:
    """A content word as it was typed."""

    text: str
    terms: tuple[str, ...]
    is_name: bool
    """Whether it is written like a name: `Kubernetes` within a sentence, `S3`, `CODEOWNERS`, `retry_max`."""

    def is_in(self, known: Container[str]) -> bool:
        """Whether it is there as a whole, or with all its parts."""
        return self.terms[0] in known or (
            len(self.terms) > 1 and all(term in known for term in self.terms[1:])
        )


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


def judge_answer(
    text: str,
    hits: Sequence[Hit],
    rarity: TermRarity,
    *,
    corrected: Mapping[str, Sequence[str]],
    meant: frozenset[int] | None,
    in_first: frozenset[str],
) -> Verdict:
    """Judge a page of hits, best first, for a question.

    `corrected`: misspelt words that were looked for otherwise. `meant`: the summaries that match by their meaning
    alone; None if that is not known. `in_first`: the terms of the question that the first hit has.
    """
    asked = read_words(text)
    if not hits:
        return Verdict("nothing", _explain_nothing(asked, rarity))
    if not asked or hits[0].topic_rank is not None:
        return Verdict("found", "the topic or the vector that was asked for is there")
    known = rarity.known.keys() | {term for word in corrected for term in terms(word)}
    is_known = [word.is_in(known) for word in asked]
    missing = [word for word, known in zip(asked, is_known, strict=True) if not known]
    best = max(map(coverage_of, hits))
    is_meant = any(hit.summary.id in (meant or ()) for hit in hits)
    has_unknown_name = any(word.is_name for word in missing)
    least = FOUND_MEANT_COVERAGE if is_meant else FOUND_COVERAGE
    if best >= (NAMED_COVERAGE if has_unknown_name else least):
        return Verdict("found", _explain_found(asked, hits[0], in_first, is_meant=is_meant))
    limit = NAMED_NOTHING_COVERAGE if has_unknown_name else NOTHING_COVERAGE
    # A misspelt question, or one in another language, has fewer words of the memories than it means.
    is_readable = meant is not None and not is_meant and not corrected
    is_nothing = is_readable and best < limit and not (missing and _languages_of(text))
    why = _explain_weakness(asked, missing, hits[0], in_first)
    return Verdict("nothing" if is_nothing else "weak", why)


def read_words(text: str) -> list[QuestionWord]:
    """The content words of a question, once each; all its words if it has no others."""
    found: dict[str, QuestionWord] = {}
    matches = list(WORD.finditer(text))
    languages = _languages_of(text)
    content = [
        match
        for match in matches
        if not is_stop_word(match[0]) and not is_function_word(match[0].lower(), languages)
    ] or matches
    for match in content:
        token, known_terms = match[0], terms(match[0])
        if known_terms:
            is_name = _is_name(token, text[: match.start()])
            found.setdefault(fold(token), QuestionWord(token, known_terms, is_name))
    return list(found.values())


def _languages_of(text: str) -> Sequence[str]:
    """The languages that a question may be in, if it is not English: unknown words then say nothing."""
    return detect_question_languages([token.lower() for token in WORD.findall(text)])


def _is_name(token: str, before: str) -> bool:
    inner = token[1:]
    if token.isalpha() and token.islower():
        return False
    if any(c.isupper() for c in inner) or "_" in inner.strip("_"):
        return True
    return token[0].isalpha() and (
        (token[0].isupper() and not _SENTENCE_START.search(before))
        or any(c.isdigit() for c in inner)
    )


# ── In words ─────────────────────────────────────────────────────────────────────────────────────


def _explain_found(
    asked: Sequence[QuestionWord], first: Hit, in_first: frozenset[str], *, is_meant: bool
) -> str:
    present = [word for word in asked if word.is_in(in_first)]
    by_words = f"#{first.summary.id} has {_quote(present)}" if present else ""
    by_meaning = "the model finds the same meaning" if is_meant else ""
    return (
        "; ".join(filter(None, (by_words, by_meaning))) or "several hits have the question's words"
    )


def _explain_weakness(
    asked: Sequence[QuestionWord],
    missing: Sequence[QuestionWord],
    first: Hit,
    in_first: frozenset[str],
) -> str:
    present = [word for word in asked if word.is_in(in_first)]
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

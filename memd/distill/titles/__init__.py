"""The title of a turn: a sentence that the ranker likes best, or two that together say most, within 120 characters. Pure.

A good title joins a subject and an outcome, and one sentence often holds one half. So whole sentences, and sentences cut
where a clause ends, are tried alone and in pairs; what counts is how much of the words that a good title is likely to
have is said, how good the best sentence of it is, and how far its form is from that of a title.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memd.distill.body import find_left
from memd.distill.episodes import EpisodeContext, Story
from memd.distill.proof.objections import claims_fix
from memd.distill.text import format_title, is_question, read_statements
from memd.distill.titles import features
from memd.distill.titles.features import (
    BORDERS,
    TITLE_CHARACTERS,
    Candidate,
    is_closed,
    list_candidates,
    shipped_ranker,
    shorten,
    stem_set,
)
from memd.text import strip_end, unique

UNCHECKED = "Said, not checked: "
_TRIED_MAX = 8
"""The best sentences, from which a title is made."""
_WORDS_OF_TITLE = 12
"""Number of the likeliest words of a turn that a good title has."""
_PART_MIN = 30
_NEW_STEMS_MIN = 2
_WORDS_MIN, _SHORT_WORDS, _FILES_MAX = 4, 5, 3
_REASONS_MAX = 3
_BETWEEN_ITEMS = re.compile(r",\s+|\s\|\s|\s→\s|\s/\s")
_ITEMS_MIN, _ITEM_WORDS, _LISTED_SHARE_MAX = 5, 2, 0.6
_SAYING_WORD = re.compile(r"[(“\"'*]*[A-Za-z][a-z'’-]+[)”\"'*.,;:!?]*")
_SAYING_SHARE_MIN = 1 / 3
_PAIR_PENALTY = 0.05
"""The cost of a form, in shares of the words of a title."""
_NEXT = re.compile(r"^(?:i|let|now|here|ok)\b", re.IGNORECASE)
_AFTER = re.compile(r":\s+|\s[–—-]\s+")


@dataclass(frozen=True, slots=True)
class ChosenTitle:
    """A title, and what made it the one."""

    text: str
    reasons: tuple[tuple[str, float], ...] = ()
    """In words, what spoke most for or against its sentence, each with what it added to its rating; the largest first."""


@dataclass(frozen=True, slots=True)
class _TitlePart:
    """A sentence, or a part of one, that may stand in a title."""

    text: str
    sentence: int
    is_asked: bool
    """Whether it is what was asked for, which is the subject of what came of it."""
    is_left: bool
    """Whether it says what is still to be done, which is joined to nothing that was."""
    stems: frozenset[str]
    rating: float
    penalty: float


def name_turn(
    story: Story, context: EpisodeContext, told: Sequence[str] = (), *, is_proven: bool
) -> ChosenTitle:
    """The title of a turn, at most 120 characters; empty if nothing was said in it.

    `told`: sentences that are memories of their own. `is_proven`: a check that failed passed in the end; otherwise no
    title says that something is fixed without saying that this is unchecked.
    """
    found = list_candidates(story, told)
    if not found:
        return ChosenTitle("")
    ranker, texts = shipped_ranker(), features.read_texts(story)
    table = features.measure_words(texts, found)
    likely = dict(zip(table.stems, ranker.rate_words(table.table).tolist(), strict=True))
    said = features.measure_told(features.list_stems(found), likely)
    rows = np.hstack([features.measure_forms(texts, found), said])
    ratings = ranker.sentences.predict(rows)
    left = frozenset(map(shorten, find_left(read_statements(story.told))))
    parts = list(_list_parts(found, ratings.tolist(), left, is_proven=is_proven))
    best = _choose_best_parts(parts, likely)
    if best is None:
        return ChosenTitle("")
    text = _add_files(_strip_roots(_join_parts(best), context), story)
    if not is_proven and claims_fix(text):
        text = UNCHECKED + shorten(text, TITLE_CHARACTERS - len(UNCHECKED))
    terms = ranker.sentences.trace(rows[best[0].sentence], features.SENTENCE_FEATURES)
    added = {why: sum(terms[name] for name in names) for why, names in features.REASONS.items()}
    largest = sorted(added.items(), key=lambda one: -abs(one[1]))[:_REASONS_MAX]
    return ChosenTitle(text, tuple((why, round(value, 2)) for why, value in largest))


def _list_parts(
    found: Sequence[Candidate], ratings: Sequence[float], left: Collection[str], *, is_proven: bool
) -> Iterator[_TitlePart]:
    """The best sentences, each whole and cut at the ends of its clauses; no list, if anything else was said."""
    order = sorted(range(len(found)), key=lambda number: (-ratings[number], number))
    saying = [number for number in order if not _is_list(found[number].text)] or order
    for number in saying[:_TRIED_MAX]:
        one = found[number]
        for text in _list_shortened(one.text):
            if text != one.text and _is_list(text):
                continue
            is_asked = one.origin in ("prompt", "plan")
            penalty = _rate_form(text, one, is_proven=is_proven)
            stems = stem_set(text)
            is_left = one.text in left
            yield _TitlePart(text, number, is_asked, is_left, stems, ratings[number], penalty)


def _rate_form(text: str, one: Candidate, *, is_proven: bool) -> float:
    """Rate how far a form is from that of a title, in shares of its words."""
    costs = (
        (0.03, text != one.text),
        (0.05, one.origin in ("prompt", "first")),  # not told at the end
        (0.1, one.leads),
        (0.06, _NEXT.match(text)),  # it says what is done next
        (0.15, len(text.split()) < _WORDS_MIN and text.isascii()),
        (0.2, text.endswith("…")),
        (0.5, is_question(text)),
        (0.2, not is_closed(text)),
        (0.1, not is_proven and claims_fix(text)),
    )
    return sum(cost for cost, applies in costs if applies)


def _is_list(text: str) -> bool:
    """Return whether a text is a row of a table or a list of names, which says nothing of them."""
    items, count = _BETWEEN_ITEMS.split(text), len(text.split())
    short = [len(one.split()) for one in items if len(one.split()) <= _ITEM_WORDS]
    named = sum(bool(_SAYING_WORD.fullmatch(word)) for word in text.split())
    is_row = text.isascii() and named < _SAYING_SHARE_MIN * count
    return is_row or (len(items) >= _ITEMS_MIN and sum(short) > _LISTED_SHARE_MAX * count)


def _list_shortened(text: str) -> tuple[str, ...]:
    """A sentence, its beginnings up to the end of a clause, and what follows a colon or dash."""
    found = [text]
    for border in BORDERS:
        heads = (text[: m.start()] for m in border.finditer(text, _PART_MIN, TITLE_CHARACTERS))
        found.extend(head.rstrip(" ,;:") for head in heads if is_closed(head))
    for match in _AFTER.finditer(text):
        rest = text[match.end() :]
        if len(rest) >= _PART_MIN and is_closed(rest):
            found.append(rest)
    return tuple(dict.fromkeys(found))


def _choose_best_parts(
    parts: Sequence[_TitlePart], likely: Mapping[str, float]
) -> tuple[_TitlePart, ...] | None:
    """The part, or the pair in the order in which they were said, that says most in the best form."""
    whole = sum(sorted(likely.values(), reverse=True)[:_WORDS_OF_TITLE]) or 1.0

    def rate(stems: frozenset[str], *of: _TitlePart) -> float:
        told = sum(likely.get(stem, 0.0) for stem in stems) / whole
        return told + max(one.rating for one in of) - sum(one.penalty for one in of)

    best: tuple[_TitlePart, ...] | None = None
    best_rate = float("-inf")
    for one in parts:
        if (rated := rate(one.stems, one)) > best_rate:
            best, best_rate = (one,), rated
        for other in parts:
            if (
                other.sentence > one.sentence
                and one.is_left is other.is_left
                and len(one.text) + len(other.text) + 2 <= TITLE_CHARACTERS
                and len(one.stems - other.stems) >= _NEW_STEMS_MIN
                and len(other.stems - one.stems) >= _NEW_STEMS_MIN
                and (rated := rate(one.stems | other.stems, one, other) - _PAIR_PENALTY) > best_rate
            ):
                best, best_rate = (one, other), rated
    return best


def _join_parts(parts: Sequence[_TitlePart]) -> str:
    """Return what was asked, a colon and what came of it; else the parts in their order."""
    ordered = sorted(parts, key=lambda one: not one.is_asked)
    is_subject = len(parts) > 1 and ordered[0].is_asked and not ordered[1].is_asked
    texts = [strip_end(one.text) if one.text.endswith(".") else one.text for one in ordered]
    if is_subject:
        texts[0] = strip_end(texts[0])
    return (": " if is_subject else "; ").join(texts)


def _add_files(text: str, story: Story) -> str:
    """A title of few words with the names of the files that were changed, as far as there is room."""
    if len(text.split()) >= _SHORT_WORDS or not text.isascii():
        return text
    separator = ": "
    for name in unique(path.rsplit("/", 1)[-1] for path in story.edited)[:_FILES_MAX]:
        if name not in text and len(text) + len(separator) + len(name) <= TITLE_CHARACTERS:
            text, separator = text + separator + name, ", "
    return text


def _strip_roots(text: str, context: EpisodeContext) -> str:
    for root in context.roots:
        if root.strip("/"):
            text = text.replace(root.rstrip("/") + "/", "")
    return strip_end(format_title(text, TITLE_CHARACTERS))

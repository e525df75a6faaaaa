"""The user's own sentences that a start tells: of the last sessions where nothing was noted, and of this very one.

A sentence is left out if it only steers, asks, is bound to its turn or says nothing alone, and if later words, notes or work
ended it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from memd.belief.changes import StandingStatement, find_outdated
from memd.belief.decide import changes_sentence
from memd.belief.rejections import leave_retracted
from memd.distill.episodes import EpisodeContext, read_story
from memd.distill.own_words import VERBS
from memd.distill.text import asks_by_mark, is_question, strip_politeness
from memd.distill.vetoes import is_for_this_time
from memd.injection import lines
from memd.injection.later import LaterWords, find_later, read_later_words, read_taken_back
from memd.injection.learned import (
    LIKELY_MIN,
    PROMPT_CHARACTERS_MAX,
    SAID_CHARACTERS_MAX,
    SaidSentence,
    choose_said,
    is_told,
)
from memd.machine_text import USER, find_prompt_origin
from memd.models import Authority, Event
from memd.store import events, session_context
from memd.store.database import Connection
from memd.text import content_stems, first_word, one_line

_PROMPTS = 40
_LATER_PROMPTS = 400
"""Of so many prompts the later words on what stands are looked for."""
_LATER_CHARACTERS = 60_000
"""Of these prompts, latest first, so much is read at most: it takes a tenth of a second at the first start."""
_WORK_MAX = 200
_LIKELY_READ_MAX = 40
"""Likely sentences that are looked at: some steer, ask, were done or are told as one with what was said later."""
_ANSWER_WORDS_MAX = 4
"""Content words of an answer that says little without its question."""
_CONTENT_MIN = 5
"""Content words from which an order says more than what was at hand. By this and the next, 32 of 525 late sentences of seven
people went, of which none was wanted; of all, one in nine was."""
_CHANGE = (
    r"(?:pr|pull request|merge request|branch|commit|worktree)\b(?! (?:messages?|names?|titles?))"
)
_OF_ONE_CHANGE = re.compile(
    rf"\b(?:the|this|that|my|your|our|current|other)\s+(?:[\w./-]+\s+){{0,2}}{_CHANGE}"
    r"|\bpr (?:feedback|comments?|checks?)\b|\bto (?:main|master|remote|origin|upstream)\b",
    re.IGNORECASE,
)
"""Talk of one change on its way, which arrives."""


def choose_late(  # what is known besides
    tx: Connection,
    project_id: int,
    prompts: Sequence[SaidSentence],
    known: Sequence[str],
    noted: Sequence[StandingStatement],
    *,
    now: int,
) -> tuple[SaidSentence, ...]:
    """Choose the likeliest sentences of these prompts; `noted`: what may overrule them."""
    likely = choose_said(prompts, known, _LIKELY_READ_MAX, LIKELY_MIN)
    chosen = [one for one in likely if may_hold(one.text)]
    since = min((one.at for one in chosen), default=now)
    work = session_context.work_on_prompts(tx, project_id, since, _WORK_MAX)
    closed = session_context.times_of_closed(tx, project_id, since)

    def has_passed(one: SaidSentence) -> bool:
        """Return whether what failed in the turn of a sentence has passed since."""
        following = (p.at for p in prompts if p.session_id == one.session_id and p.at > one.at)
        end = min(following, default=now)
        return any(number == one.session_id and one.at <= at < end for number, at in closed)

    def stands(one: SaidSentence) -> bool:
        own = [(title, body) for at, _, title, body in work if at == one.at]
        later = [(title, body) for at, _, title, body in work if at >= one.at]
        went_on = any(number == one.session_id and at >= one.at for at, number, *_ in work)
        if lines.is_solved(one.text, own, later, went_on=went_on) or _is_answer(tx, one):
            return False
        if lines.names_lack(one.text) and has_passed(one):
            return False
        return lines.limits(one.text) or not lines.is_done(one.text, own)

    standing = _leave_overruled(list(filter(stands, chosen)), noted, project_id)
    return leave_rejected(tx, standing, project_id)


def may_hold(text: str) -> bool:
    """Return whether a sentence may hold beyond its turn: it states something, alone, and asks nothing."""
    return (
        not (is_question(text) or asks_by_mark(text))
        and not is_for_this_time(text)
        and any(map(lines.stands_alone, (text, text.partition(": ")[2])))
        and (lines.limits(text) or _says_enough(text))
    )


def _says_enough(text: str) -> bool:
    """Return whether a sentence that sets no limit says something beyond its turn, as far as its form tells."""
    is_order = first_word(strip_politeness(text)) in VERBS
    is_short = is_order and lines.count_content_words(text) < _CONTENT_MIN
    return not is_short and not _OF_ONE_CHANGE.search(text)


def _leave_overruled(
    said: Sequence[SaidSentence], noted: Sequence[StandingStatement], project_id: int
) -> list[SaidSentence]:
    """Leave the sentences that no later one, and no later note, says otherwise or anew."""
    statements = [
        StandingStatement(-number, project_id, one.text, one.at, Authority.USER_PROMPT)
        for number, one in enumerate(said, 1)
    ]
    later = [*statements, *noted]
    outdated = find_outdated(later)
    stems = {one.text: frozenset(content_stems(one.text)) for one in later}
    return [
        one
        for number, one in enumerate(said, 1)
        if -number not in outdated
        and not any(
            other.at > one.at
            and stems[other.text] & stems[one.text]
            and changes_sentence(one.text, other.text)
            for other in later
        )
    ]


def follow_later(
    tx: Connection, said: Sequence[SaidSentence], later: LaterWords, project_id: int
) -> tuple[SaidSentence, ...]:
    """Put what was said later in the place of what it says otherwise, and before what it may put out of force."""
    found: dict[str, SaidSentence] = {}
    own = read_later_words(tuple(said), is_stated=True)
    for one in said:
        new = find_otherwise(one, later) or find_later(one.text, one.at, later)
        new = new or find_later(one.text, one.at, own)
        if new is None or not leave_rejected(tx, [new], project_id):
            found.setdefault(one.text, one)
            continue
        before = found[new.text].before if new.text in found else ()
        if not changes_sentence(one.text, new.text):
            before = (*before, (one.text, one.at))
        found[new.text] = replace(new, before=before)
    joined = [one.text for one in found.values() if one.before]
    ranks = {text: rank for rank, text in enumerate(found)}

    def rank_best(one: SaidSentence) -> int:
        """Return the best rank of the sentences that are told as this one."""
        return min(rank for text, rank in ranks.items() if text in one.text)

    kept = (
        one for one in found.values() if one.before or not any(one.text in text for text in joined)
    )
    return tuple(sorted(kept, key=rank_best))


def find_otherwise(said: SaidSentence, later: LaterWords) -> SaidSentence | None:
    """The last words that say otherwise than a sentence, for sure."""
    about = later.list_about(said.text, said.at)
    return max(
        (one for one in about if changes_sentence(said.text, one.text)),
        key=lambda one: one.at,
        default=None,
    )


def _is_answer(tx: Connection, said: SaidSentence) -> bool:
    """Return whether a sentence of a few words answers what the agent had asked, and so says little without it."""
    if lines.count_content_words(said.text) > _ANSWER_WORDS_MAX or lines.limits(said.text):
        return False
    heard = events.last_answer(tx, said.session_id, said.at)
    text = "" if heard is None else str(heard.payload.get("last_assistant_message") or heard.payload.get("text"))  # fmt: skip
    return asks_by_mark(text)


def read_later_prompts(
    tx: Connection, project_id: int, besides: int | None, now: int
) -> tuple[SaidSentence, ...]:
    """Read what the user typed in a project, besides in one session, latest first."""
    return _leave_latest(
        _leave_typed(events.last_prompts_in(tx, project_id, besides, now, _LATER_PROMPTS))
    )


def add_new_prompts(
    tx: Connection, typed: Sequence[SaidSentence], project_id: int, after: int, now: int
) -> tuple[SaidSentence, ...]:
    """Add to what the user typed in a project what came after an event."""
    new = _leave_typed(events.prompts_after(tx, project_id, after, now))
    return _leave_latest(sorted((*new, *typed), key=lambda one: -one.at)[:_LATER_PROMPTS])


def _leave_latest(typed: Sequence[SaidSentence]) -> tuple[SaidSentence, ...]:
    """Leave the latest prompts; of one that is too long to be read only as much as tells that it is."""
    lengths = (len(one.text) for one in typed)
    sizes = accumulate(length if length <= PROMPT_CHARACTERS_MAX else 0 for length in lengths)
    return tuple(
        replace(one, text=one.text[: PROMPT_CHARACTERS_MAX + 1])
        for one, size in zip(typed, sizes, strict=True)
        if size <= _LATER_CHARACTERS
    )


def read_own_words(  # noqa: PLR0913  # what is known besides
    tx: Connection,
    session_id: int,
    project_id: int,
    known: Sequence[str],
    *,
    since: int,
    limit: int,
    now: int,
) -> tuple[SaidSentence, ...]:
    """Return what the user said in a session since then that holds for all of it: first the reasons for refused calls."""
    refused = events.refusals(tx, session_id, since, _PROMPTS)
    corrections = [
        SaidSentence(one_line(said.text, SAID_CHARACTERS_MAX), said.at)
        for said in (one.said for one in read_story(refused, EpisodeContext()).refusals)
        if said.text.strip()
    ]
    new = [one for one in reversed(corrections) if not is_told(one.text, known)]
    typed = [one for one in _read_typed(tx, session_id, now, _PROMPTS) if one.at > since]
    said = choose_said(typed, (*known, *(one.text for one in new)), _PROMPTS)
    # What was asked was answered.
    chosen = (*new, *(one for one in said if not asks_by_mark(one.text)))
    return leave_rejected(tx, chosen[:limit], project_id)


def _read_typed(tx: Connection, session_id: int, now: int, limit: int) -> tuple[SaidSentence, ...]:
    """Return the latest prompts of a session that its user typed."""
    return _leave_typed(events.last_prompts(tx, session_id, now, limit))


def read_typed_at(tx: Connection, said: SaidSentence) -> tuple[SaidSentence, ...]:
    """Return the prompts of a sentence's session up to its time, the last two: more than one may have just that time."""
    return _read_typed(tx, said.session_id, said.at, 2)


def is_taken_back(tx: Connection, text: str, session_id: int | None, at: int) -> bool:
    """Return whether the prompt after the one that said a sentence likely takes that back."""
    after = _leave_typed(events.next_prompt(tx, session_id, at)) if session_id else ()
    return any(read_taken_back(text, one) for one in after)


def _leave_typed(prompts: Iterable[Event]) -> tuple[SaidSentence, ...]:
    return tuple(
        SaidSentence(str(one.payload.get("prompt") or ""), one.at, one.session_id)
        for one in prompts
        if find_prompt_origin(one.payload) == USER
    )


def leave_rejected(
    tx: Connection, said: Sequence[SaidSentence], project_id: int
) -> tuple[SaidSentence, ...]:
    """Leave the sentences that the user has not rejected."""
    allowed = set(leave_retracted(tx, [(one.at, one.text) for one in said], project_id))
    return tuple(one for one in said if one.text in allowed)

"""Which memories are worth a line at a session's start, before the session has said what it is about. Pure.

An outcome is one if the record shows that something was changed, whatever words its title has; what one turn decided and
did is told once.
"""

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from memd.belief.scopes import find_other_scope
from memd.injection.choice import DAY_MS, TITLES_CACHED, CandidateGroup, measure_age
from memd.models import Kind
from memd.store.types import ContextCandidate
from memd.text import content_stems, normalised, one_line

OUTCOMES_OF_SESSION = (2, 1, 1)
"""How many outcomes are shown of the last session that achieved something, and of those before it."""
_SESSIONS_MAX = 4
"""Sessions that changed something among which those with an outcome are looked for."""
_OUTCOME_KINDS = {Kind.CHANGE, Kind.FIX}
_TOLD_KINDS = _OUTCOME_KINDS | {Kind.DECISION, Kind.TASK}
_CUT_WORDS = 4
"""The last words of a title that was cut off, by which its place in the body is found."""
_SENTENCE_REST = re.compile(r"(?:[^.!?\n”]|[.!?](?![\s”]|$))+[.!?]?")
_PASSED, _FAILED = "→ ok", "→ failed"
"""How a body notes what came of a command."""
_SHARED_STEMS_MIN = 2
_SHARED_PART = 1 / 3
"""From this share of the shorter of two titles on, two lines of one session tell of the same."""
_COMMIT_RATING = 1.5
"""The subject of a commit tells of all that was done, a sentence often of a part."""
_DECLINED = "Declined: "
"""How distilling begins the title of a proposal that was turned down."""
_LABEL = re.compile(r"^(?:chosen|agreed|declined|decided|to be continued):\s+", re.IGNORECASE)
_SUBJECT = re.compile(r"^[^\s:][^:]{0,60}:\s+(?=\S)")
"""What a title is about, before what it says of it: `Sessions: move them to Redis` says what they are."""
_UNDONE = re.compile(
    r"^(?:let me|let's|heads?[- ]?up\b|implement the|imagine|(?:please )?commit|good|great|perfect|excellent|okay|now (?:let|i|the)|i (?:have|will|need|can|should|see|think)|i'll|i'm|next|run|try|first|then|plus|open|you|changed from:"
    r"|(?:it|this|that|these|those|they|there|here)\b|when\b|if\b|since\b|because\b)"
    r"|\b(?:might|maybe|perhaps|probably|could be|should be|was already|were already|will be|would|seems?|you (?:should|can|will|may|need))\b|\?\W*$",
    re.IGNORECASE,
)
"""What is intended, supposed, was so before, or points back."""
_PROPOSES = re.compile(
    r"\b(?:propos\w+|recommend\w*|suggest\w*|cleanest|simplest|best (?:fix|option|approach|solution)|should|options?\b(?! `))\b",
    re.IGNORECASE,
)
_CHORE = re.compile(
    r"^(?:successfully |all )?(?:committed|pushed|merged|rebased|opened|checked out|switched|branched|logged|staged|on `|pr \W?\d|commit:?\s|(?:\w+ ){0,2}todos? (?:logged|added|created)"
    r"|(?:created|opened|updated) (?:a |the )?(?:new )?(?:pr|pull request|branch|commit|todo|issue)\b)",
    re.IGNORECASE,
)
"""What was done with the work and not in it."""


@functools.lru_cache(TITLES_CACHED)
def complete_title(title: str, body: str, limit: int) -> str:
    """A title that was cut off, with the rest of its sentence from the body, in at most so many characters."""
    if not title.endswith("…"):
        return title
    begun = title[:-1].rstrip()
    words = begun.split()[-_CUT_WORDS:]
    found = re.search(r"\s+".join(map(re.escape, words)), body, re.IGNORECASE)
    if len(words) < _CUT_WORDS or not found:
        return title
    rest = _SENTENCE_REST.match(body, found.end())
    return one_line(begun + rest[0].rstrip(".:"), limit) if rest else title


def find_unfit(
    groups: Iterable[CandidateGroup],
    turn_bodies: Mapping[int, str],
    now: int,
    session_id: int | None = None,
) -> dict[int, str]:
    """Why candidates are not worth a line: id → reason. `turn_bodies`: failure → what its turn came to.

    `session_id` is the session that starts, if the vault knows it.
    """
    candidates = {one.id: one for group in groups for one in group.candidates}.values()
    of_kind = {kind: [one for one in candidates if one.kind is kind] for kind in Kind}
    freshest = sorted(candidates, key=lambda one: (measure_age(one, now), -one.id))
    outcomes = [one for one in freshest if one.kind in _OUTCOME_KINDS]
    last = _find_last_sessions(freshest)
    unfit = {
        one.id: why
        for one in candidates
        if one.episode is not None
        and not one.is_pinned
        and (
            why := _find_other_session(one, session_id)
            or _find_fault(one, outcomes, turn_bodies, last)
        )
    }
    told = [one for one in of_kind[Kind.DECISION] + of_kind[Kind.TASK] if one.id not in unfit]
    for one in outcomes:
        twin = next((other for other in told if tells_the_same(one, other)), None)
        if twin is not None:
            unfit.setdefault(one.id, f"#{twin.id} says it")
    unfit = _find_changed_again(outcomes, now) | unfit
    latest = next((one.session_id for one in outcomes if one.id not in unfit), None)
    unfit |= _find_stale(outcomes, [latest], unfit, now)
    recent = list(dict.fromkeys(one.session_id for one in outcomes))[:_SESSIONS_MAX]
    left = [one for one in outcomes if one.id not in unfit]
    chosen = {one.id for one in choose_outcomes(one for one in left if one.session_id in recent)}
    return unfit | {
        one.id: "others of the last sessions tell more" for one in left if one.id not in chosen
    }


def _find_other_session(one: ContextCandidate, session_id: int | None) -> str | None:
    """Why something that its speaker said for his session alone does not hold in this one; None if it may."""
    return find_other_scope(one.tags, one.session_id, session_id, None)


def _find_fault(
    one: ContextCandidate,
    outcomes: Sequence[ContextCandidate],
    turn_bodies: Mapping[int, str],
    last: Sequence[int | None],
) -> str | None:
    """Why something that was distilled from a turn is not worth a line; None if it is."""
    match one.kind:
        case Kind.INSTRUCTION | Kind.PREFERENCE:
            return _find_gap(one)
        case Kind.DECISION | Kind.TASK:
            if one.title.startswith(_DECLINED):
                return "it tells what was not done"
            return _find_gap(one) or (_find_age(one, last) if one.kind is Kind.TASK else None)
        case Kind.FAILURE:
            return _find_fault_of_failure(one, outcomes, turn_bodies.get(one.id, ""))
        case Kind.CHANGE | Kind.FIX:
            return None if rate_outcome(one) > 0 else "nothing shows that it changed anything"
        case _:
            return None


def _find_stale(
    candidates: Iterable[ContextCandidate],
    latest: Sequence[int | None],
    unfit: Mapping[int, str],
    now: int,
) -> dict[int, str]:
    """What is neither of the latest session nor of the last day: most likely this session is about something else."""
    return {
        one.id: "neither of the latest session nor of the last day"
        for one in candidates
        if one.session_id is not None
        and one.episode is not None
        and one.session_id not in latest
        and measure_age(one, now) > DAY_MS
        and not (one.is_pinned or one.repeats > 0 or one.id in unfit)
    }


def _find_changed_again(outcomes: Sequence[ContextCandidate], now: int) -> dict[int, str]:
    """Outcomes of which a later turn of their session tells again: it may have changed them."""
    return {
        one.id: f"#{later.id} tells of it later"
        for one in outcomes
        if not one.is_pinned
        for later in outcomes
        # What is dated ahead was written while the clock was wrong: nobody knows whether it is later.
        if now >= later.at > one.at and later.episode != one.episode and tells_the_same(one, later)
    }


def _find_age(one: ContextCandidate, last: Sequence[int | None]) -> str | None:
    """Why something is not fresh; what was achieved since then is fresher."""
    is_old = one.session_id is not None and one.session_id not in last
    return "older than the last sessions that achieved something" if is_old else None


def _find_last_sessions(freshest: Iterable[ContextCandidate]) -> list[int | None]:
    """The last few sessions that achieved or settled something, the latest first."""
    told = [one for one in freshest if one.kind in _TOLD_KINDS and one.session_id is not None]
    return list(dict.fromkeys(one.session_id for one in told))[: len(OUTCOMES_OF_SESSION)]


def _find_gap(one: ContextCandidate) -> str | None:
    return "a secret was taken out of it" if "[REDACTED" in one.title else None


def _find_fault_of_failure(
    one: ContextCandidate, outcomes: Sequence[ContextCandidate], turn_body: str
) -> str | None:
    latest = next((other.session_id for other in outcomes), one.session_id)
    if one.session_id != latest:
        # What an earlier session left open was solved since, or is accepted, or belongs to code that is gone.
        return "a later session achieved something"
    turn = [other for other in outcomes if other.episode == one.episode]
    if any(rate_outcome(other) > 0 for other in turn):
        return "its turn came to something"
    if turn_body.rfind(_FAILED) <= turn_body.rfind(_PASSED):
        return "its turn did not end with it"
    return None


def choose_outcomes(outcomes: Iterable[ContextCandidate]) -> list[ContextCandidate]:
    """The outcomes that tell most, few of each of the last sessions, in the order given."""
    by_session: dict[int | None, list[ContextCandidate]] = {}
    for one in outcomes:
        by_session.setdefault(one.session_id, []).append(one)
    last = zip(by_session.values(), OUTCOMES_OF_SESSION, strict=False)
    return [one for found, each in last for one in _choose_of_session(found, each)]


def _choose_of_session(found: Sequence[ContextCandidate], each: int) -> list[ContextCandidate]:
    """Those that tell most; what is in files that a later turn edited again may not be so any more."""

    def is_last(one: ContextCandidate) -> bool:
        later = {path for other in found if other.at > one.at for path in other.edited}
        return not one.edited or not later.issuperset(one.edited)

    chosen: list[ContextCandidate] = []
    for one in sorted(found, key=lambda one: (is_last(one), rate_outcome(one)), reverse=True):
        if len(chosen) < each and not any(tells_the_same(one, other) for other in chosen):
            chosen.append(one)
    return [one for one in found if one in chosen]


def rate_outcome(one: ContextCandidate) -> float:
    """How much a line tells of what was achieved: the subject of a commit tells of all that was done, then what changed more files."""
    return _COMMIT_RATING * _is_commit(one.title, one.commits) + math.log2(1 + len(one.edited))


def _is_commit(title: str, commits: Sequence[str]) -> bool:
    """Whether a title is the subject of one of the turn's commits: what it orders was done."""
    said = normalised(title)
    return any(said and normalised(subject).startswith(said) for subject in commits)


@functools.lru_cache(TITLES_CACHED)
def is_supposition(title: str) -> bool:
    """Whether a title says what is supposed, intended or proposed, or that work was filed, and not what is."""
    said = _SUBJECT.sub("", title) or title
    return any(form.search(said) for form in (_UNDONE, _PROPOSES, _CHORE))


def tells_the_same(one: ContextCandidate, other: ContextCandidate) -> bool:
    """Whether two lines of one session tell of the same: what was decided, and that it was done."""
    if one.session_id is None or one.session_id != other.session_id:
        return False
    mine, others = _list_told_stems(one.title), _list_told_stems(other.title)
    shared = len(mine & others)
    return shared >= _SHARED_STEMS_MIN and shared >= _SHARED_PART * min(len(mine), len(others))


@functools.lru_cache(TITLES_CACHED)
def _list_told_stems(title: str) -> frozenset[str]:
    return frozenset(content_stems(_LABEL.sub("", title)))

"""Which live memories say something like a new one, so that somebody has to say what they are to it. Pure.

Likeness proposes and the guards say what differs; nothing is hidden by it. Left out is what a rule
has decided or is going to: what is hidden or over, what says the same, and every pair that somebody
has judged. Not here: finding what is near (nearest.py), what a judgment does (judging.py).
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from memd.consolidate.guards import Verdict, compare
from memd.models import Kind, Summary
from memd.text import content_stems

NEAR = 0.45
"""Cosine from which a memory is looked at in the space that is always there."""
NEAR_LEARNED = 0.85
"""The same in a learned space; it alone makes a candidate."""
ALIKE = 0.6
"""Cosine, in the space that is always there, from which it is a candidate."""
SHARED = 0.5
"""Or: this part of the words of both."""
SHOWN_MAX = 3
_TELLING = frozenset(
    {Kind.DECISION, Kind.INSTRUCTION, Kind.PREFERENCE, Kind.FACT, Kind.TASK, Kind.NOTE}
)
"""Kinds that state something; what happened in a turn competes with nothing."""


@dataclass(frozen=True, slots=True)
class Near:
    """A memory and its cosine with the new one in both spaces; 0 where they were not compared."""

    summary: Summary
    cosine: float
    learned: float = 0.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that is like the new one, how much (0 to 1), and what the guards say of the two."""

    id: int
    title: str
    kind: Kind
    at: int
    likeness: float
    finding: str
    pinned_at: int | None = None
    """Since when somebody keeps it on top: then nothing hides it."""


def undecided(
    mine: Summary, near: Iterable[Near], judged: Collection[int], now: int
) -> tuple[Candidate, ...]:
    """The most alike of those that no rule and nobody has decided about, the first of them."""
    if mine.kind not in _TELLING:
        return ()
    found = [
        candidate
        for one in near
        if _is_open(mine, one.summary, now) and one.summary.id not in judged
        if (candidate := _candidate(mine, one)) is not None
    ]
    return tuple(sorted(found, key=lambda one: (-one.likeness, -one.id))[:SHOWN_MAX])


def _is_open(mine: Summary, other: Summary, now: int) -> bool:
    is_over = other.expires_at is not None and other.expires_at <= now
    return (
        other.id != mine.id
        and other.kind in _TELLING
        and other.superseded_by is None
        and not is_over
    )


def _candidate(mine: Summary, one: Near) -> Candidate | None:
    ours, theirs = _said(mine), _said(one.summary)
    shared = _shared(ours, theirs)
    if one.cosine < ALIKE and shared < SHARED and one.learned < NEAR_LEARNED:
        return None
    finding = compare(theirs, ours)
    if finding.verdict is Verdict.SAME and one.summary.kind is mine.kind:
        return None
    other = one.summary
    likeness = round(max(one.cosine, shared, one.learned), 3)
    return Candidate(
        other.id,
        other.title,
        other.kind,
        other.at,
        likeness,
        finding.reason,
        other.pinned_at,
    )


def _said(summary: Summary) -> str:
    """What it says, once: a title that only repeats the beginning of the body is left out."""
    if summary.body.startswith(summary.title.rstrip("…")):
        return summary.body
    return f"{summary.title}\n{summary.body}"


def _shared(one: str, other: str) -> float:
    ours, theirs = set(content_stems(one)), set(content_stems(other))
    return len(ours & theirs) / len(ours | theirs) if ours and theirs else 0.0

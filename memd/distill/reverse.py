"""Which earlier decision a new one replaces or gainsays. Pure.

Replacing hides a memory, so it takes three things: the new text says in so many words that it
replaces something, both are about the same subject, and what is given up is what the older one
chose. Anything less is at most a contradiction, which hides nothing. Not here: near-duplicates,
which are the consolidator's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memd.distill.choice import Choice, choice
from memd.models import Draft, Kind, Summary

_SAME_SUBJECT = 0.5
"""Jaccard of the subjects' stems from which two decisions without a reversal are about the same."""


@dataclass(frozen=True, slots=True)
class Reversed:
    """What a new decision does to an older one, and why in words."""

    older_id: int
    relation: Literal["supersedes", "contradicts"]
    reason: str


def find_reversed(draft: Draft, earlier: Sequence[Summary]) -> list[Reversed]:
    """What `draft` does to these earlier live decisions of its project; unrelated ones are left out."""
    if draft.kind is not Kind.DECISION:
        return []
    new = choice(draft.title)
    compared = [
        (older, choice(older.title))
        for older in earlier
        if older.kind is Kind.DECISION and older.at <= draft.at and older.title != draft.title
    ]
    replaced = _replaced(draft, new, compared)
    hidden = {verdict.older_id for verdict in replaced}
    return replaced + [
        Reversed(older.id, "contradicts", reason)
        for older, old in compared
        if older.id not in hidden and (reason := _gainsays(draft, new, old))
    ]


def _replaced(
    draft: Draft, new: Choice, compared: Sequence[tuple[Summary, Choice]]
) -> list[Reversed]:
    reversal = draft.reversal
    if reversal is None:
        return []
    if not reversal.gives_up:
        return _newest_on(reversal.subject, new, compared, reversal.quote)
    matching = [
        (older, old)
        for older, old in compared
        if old.chosen & reversal.gives_up and not old.chosen & new.chosen
    ]
    if not reversal.subject:
        # `we switch from npm to pnpm` names no subject: only clear if one decision alone fits.
        found = matching if len(matching) == 1 else []
        return [_supersedes(older, old, frozenset(), reversal.quote) for older, old in found]
    return [
        _supersedes(older, old, shared, reversal.quote)
        for older, old in matching
        if (shared := old.subject & reversal.subject)
    ]


def _newest_on(
    subject: frozenset[str],
    new: Choice,
    compared: Sequence[tuple[Summary, Choice]],
    quote: str,
) -> list[Reversed]:
    """What is given up is not named, so it is the latest other choice on the very same subject."""
    same = [
        (older, old)
        for older, old in compared
        if _overlap(old.subject, subject) >= _SAME_SUBJECT and not old.chosen & new.chosen
    ]
    newest = max(same, key=lambda pair: (pair[0].at, pair[0].id), default=None)
    return [_supersedes(*newest, newest[1].subject & subject, quote)] if newest else []


def _supersedes(older: Summary, old: Choice, shared: frozenset[str], quote: str) -> Reversed:
    about = f" about {_words(shared)}" if shared else ""
    reason = f"says{about} that {_words(old.chosen) or 'it'} is given up: “{quote}”"
    return Reversed(older.id, "supersedes", reason)


def _gainsays(draft: Draft, new: Choice, old: Choice) -> str:
    """Why the two cannot both hold, in words; empty if they can."""
    if not old.chosen or old.chosen & new.chosen:
        return ""
    given_up = draft.reversal.gives_up if draft.reversal else frozenset[str]()
    is_rejected = bool(old.chosen & (new.rejected | given_up))
    is_same = _overlap(old.subject, new.subject) >= _SAME_SUBJECT
    if is_same and new.chosen:
        return f"both decide about {_words(old.subject & new.subject)}: {_words(old.chosen)} or {_words(new.chosen)}"
    if is_rejected and old.subject & new.subject:
        return f"it passes over {_words(old.chosen & (new.rejected | given_up))}"
    return ""


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


def _words(stems: frozenset[str]) -> str:
    """Stems for people: without the parts of a longer one (`sqlite`, not `sq` and `lite`)."""
    whole = [s for s in stems if not any(s != other and s in other for other in stems)]
    return " ".join(sorted(whole))

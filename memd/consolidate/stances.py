"""What a judgment of two memories does, and why it may not be: decided before anything is written. Pure.

`supersedes` and `duplicate` hide the other memory; the rest show both. A memory is hidden only where
it would be found if it were not: by another of its project, or by one that holds everywhere. What is
pinned is kept by somebody's wish, and only that somebody can end it. Not here: writing (judging.py).
"""

from memd.models import Stance, Summary

HIDES = frozenset({Stance.SUPERSEDES, Stance.DUPLICATE})
"""What lets the first memory hide the other."""
KEEPS_APART = frozenset(Stance) - HIDES
"""After these no rule may hide one of the pair by the other."""


def refusal(one: Summary, other: Summary, relation: Stance, global_id: int | None) -> str:
    """Why `one` cannot be `relation` to `other`, and what to do; empty if it can be."""
    if one.id == other.id:
        return f"other: #{one.id} twice; a judgment is about two memories"
    if relation not in HIDES:
        return ""
    if other.pinned_at is not None:
        return (
            f"#{other.id} is pinned, so it is never hidden: unpin it first"
            f" (mem_pin, or `memd pin --off {other.id}`), or let it supersede #{one.id} instead"
        )
    if one.project_id not in {other.project_id, global_id}:
        return (
            f"#{one.id} and #{other.id} belong to different projects, so neither can hide the other:"
            " judge them compatible or contradicts, or forget the one that is wrong"
        )
    return ""

"""Rules by which one authority may replace another's memory, without I/O.

Authority grows from a tool's output over the agent's text and calls to the user's prompts and hand. A
statement replaces only what has the same or a lesser standing, and a pin of the user's gives way to
nothing but the user's own unpinning.
"""

from dataclasses import dataclass

from memd.models import Authority, Summary
from memd.store.types import MemoryStanding

_VOICES = {"user": Authority.USER_HAND, "agent": Authority.AGENT_CALL}


@dataclass(frozen=True, slots=True)
class Objection:
    """A reason for which a statement may not replace a memory."""

    aspect: str
    """`pinned` or `speaker`."""
    words: str


def authority_of(who: str) -> Authority:
    """Return the authority of a judgment by `user` or `agent`; for any other, the least that may judge."""
    return _VOICES.get(who, Authority.AGENT_CALL)


def is_pinned_by_user(summary: Summary) -> bool:
    """Return whether the user pinned it."""
    return summary.pinned_by is not None and summary.pinned_by.speaker == "user"


def find_objection(voice: Authority, older: Summary, author: str = "") -> Objection | None:
    """Return why this authority may not hide, merge or change a memory; None if it may.

    `author`: the teammate who states it. A teammate replaces nobody else's word, and a teammate's word, which
    stands between the agent's and the user's, is replaced by the user's alone.
    """
    if is_pinned_by_user(older):
        return Objection("pinned", "pinned")
    if author != older.author and (author or voice < Authority.USER_PROMPT):
        speaker = f"{author} of the team" if author else voice.description
        said = f"{older.author} of the team" if older.author else "this vault's own word"
        return Objection("speaker", f"{speaker} does not outrank {said}")
    if voice < older.standing:
        words = f"{voice.description} does not outrank {older.standing.description}"
        return Objection("speaker", words)
    return None


def describe_contradiction(mine: MemoryStanding, other: MemoryStanding) -> str:
    """Describe for one of two memories: `contradicted by #7 (user, pinned)`, or `contradicts #9 (agent)`."""
    is_greater = (mine.rank, mine.at, mine.id) > (other.rank, other.at, other.id)
    author = f"{other.author} of the team" if other.author else other.height.speaker
    pinned = ", pinned" if other.pinned_by is not None else ""
    return f"{'contradicts' if is_greater else 'contradicted by'} #{other.id} ({author}{pinned})"

"""The authority behind a memory, which one may replace it, and where it holds. Pure.

Authority grows from a tool's output over the agent's text and calls to the user's prompts and hand. A statement replaces
only what has the same or a lesser standing, and a pin of the user's gives way to nothing but the user's own unpinning.
Where a statement holds, its tags say: `scope:tests`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from memd.models import Authority, Summary
from memd.store import MemoryStanding

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


def is_later_word(mine: MemoryStanding, other: MemoryStanding) -> bool:
    """Return whether both are the user's own word, nobody pinned either, and mine is later."""
    is_his = min(mine.authority, other.authority) >= Authority.USER_TOLD
    is_plain = not (mine.author or other.author or mine.pinned_by or other.pinned_by)
    return is_his and is_plain and mine.at > other.at


def describe_contradiction(mine: MemoryStanding, other: MemoryStanding) -> str:
    """Describe for one of two memories: `contradicts the earlier #9 (agent)`; of two words of the user's the later one contradicts."""
    author = f"{other.author} of the team" if other.author else other.height.speaker
    pinned = ", pinned" if other.pinned_by is not None else ""
    is_greater = (mine.rank, mine.at, mine.id) > (other.rank, other.at, other.id)
    contradicts = is_later_word(mine, other) or (is_greater and not is_later_word(other, mine))
    when = "" if mine.at == other.at else "earlier " if mine.at > other.at else "later "
    named = f"the {when}#{other.id}" if when else f"#{other.id}"
    return f"{'contradicts' if contradicts else 'contradicted by'} {named} ({author}{pinned})"


# ── Where a statement holds ──────────────────────────────────────────────────────────────────────


PREFIX = "scope:"
OF_FILE, OF_COMMAND = f"{PREFIX}file:", f"{PREFIX}command:"
_WHOLE_PROJECT = frozenset({"", "project", ".", "./", "repository"})
OF_SESSION, OF_BRANCH = f"{PREFIX}session", f"{PREFIX}branch"
_WORDS = {
    "everywhere": "everywhere", "repository": "this repository", "branch": "that branch", "session": "that session",
    "tests": "tests", "for-now": "for now",
}  # fmt: skip


_BRANCH = re.compile(r"branch[: ]\s*(\S+)\Z")


def tag_places(places: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (tags, paths) of the places that a note holds for: a file, a directory with `/` at its end, a command, a branch.

    >>> tag_places(["src/auth/", "git push", "branch exp/ulp"])
    (('scope:file:src/auth/', 'scope:command:git push', 'scope:branch:exp/ulp'), ('src/auth/',))
    """
    tags, paths = [], []
    for place in places:
        name = " ".join(place.split())
        if branch := _BRANCH.match(name):
            tags.append(f"{OF_BRANCH}:{branch[1]}")
        elif name.startswith("command:") or (" " in name and "/" not in name.partition(" ")[0]):
            tags.append(f"{OF_COMMAND}{name.removeprefix('command:').strip()}")
        elif name not in _WHOLE_PROJECT:
            tags.append(f"{OF_FILE}{name.removeprefix('file:')}")
            paths.append(name.removeprefix("file:"))
    return tuple(tags), tuple(paths)


def list_files(tags: Iterable[str]) -> tuple[str, ...]:
    """The files and directories that a memory with these tags holds for."""
    return tuple(tag.removeprefix(OF_FILE) for tag in tags if tag.startswith(OF_FILE))


def list_places(tags: Iterable[str]) -> tuple[str, ...]:
    """The files, directories and commands that a memory with these tags holds for."""
    places = (tag for tag in tags if tag.startswith((OF_FILE, OF_COMMAND)))
    return tuple(one.removeprefix(OF_FILE).removeprefix(OF_COMMAND) for one in places)


def find_branch(tags: Iterable[str]) -> str | None:
    """The branch that a memory with these tags was said for; empty if it is unknown which, None if for none."""
    for tag in tags:
        if tag == OF_BRANCH or tag.startswith(f"{OF_BRANCH}:"):
            return tag.removeprefix(OF_BRANCH).removeprefix(":")
    return None


def holds_alike(tags: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether two statements hold on the same branch, or both on all: others do not repeat or replace one another."""
    return find_branch(tags) == find_branch(others)


def find_other_scope(
    tags: Iterable[str], owner: int | None, session: int | None, branch: str | None
) -> str | None:
    """Return why what was said for one session or branch does not hold here; None if it may.

    `owner`: the session it was said in. `session` and `branch`: those it would hold in, None where unknown.
    """
    known = tuple(tags)
    if OF_SESSION in known and owner is not None and owner != session:
        return "said for another session"
    named = find_branch(known)
    return f"said for branch {named}" if named and branch and named != branch else None


def describe_scope(tags: Iterable[str]) -> str:
    """Describe in words where a memory with these tags holds: `tests, for now`; empty if in all of its project.

    >>> describe_scope(["scope:tests", "red", "scope:file:/src/a.py"])
    'tests, /src/a.py'
    """
    names = (tag.removeprefix(PREFIX) for tag in tags if tag.startswith(PREFIX))
    return ", ".join(
        _WORDS.get(name, name.removeprefix("file:").replace("branch:", "branch ", 1))
        for name in names
    )

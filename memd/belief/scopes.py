"""Scopes in which a statement holds, as its tags give them: `scope:tests`. Pure."""

from collections.abc import Iterable

PREFIX = "scope:"
OF_FILE, OF_COMMAND = f"{PREFIX}file:", f"{PREFIX}command:"
_WHOLE_PROJECT = frozenset({"", "project", ".", "./", "repository"})
OF_SESSION, OF_BRANCH = f"{PREFIX}session", f"{PREFIX}branch"
_WORDS = {
    "everywhere": "everywhere", "repository": "this repository", "branch": "that branch", "session": "that session",
    "tests": "tests", "for-now": "for now",
}  # fmt: skip


def tag_places(places: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(tags, paths) of the places that a note holds for: a file, a directory with `/` at its end, a command.

    >>> tag_places(["src/auth/", "git push"])
    (('scope:file:src/auth/', 'scope:command:git push'), ('src/auth/',))
    """
    tags, paths = [], []
    for place in places:
        name = " ".join(place.split())
        if name.startswith("command:") or (" " in name and "/" not in name.partition(" ")[0]):
            tags.append(f"{OF_COMMAND}{name.removeprefix('command:').strip()}")
        elif name not in _WHOLE_PROJECT:
            tags.append(f"{OF_FILE}{name.removeprefix('file:')}")
            paths.append(name.removeprefix("file:"))
    return tuple(tags), tuple(paths)


def list_files(tags: Iterable[str]) -> tuple[str, ...]:
    """The files and directories that a memory with these tags holds for."""
    return tuple(tag.removeprefix(OF_FILE) for tag in tags if tag.startswith(OF_FILE))


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

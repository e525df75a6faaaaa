"""Where a statement holds, as its tags say it: `scope:tests`. Pure."""

from collections.abc import Iterable

PREFIX = "scope:"
OF_SESSION, OF_BRANCH = f"{PREFIX}session", f"{PREFIX}branch"
_WORDS = {
    "everywhere": "everywhere", "repository": "this repository", "branch": "that branch", "session": "that session",
    "tests": "tests", "for-now": "for now",
}  # fmt: skip


def describe_scope(tags: Iterable[str]) -> str:
    """Where a memory with these tags holds, in words: `tests, for now`; empty if in all of its project.

    >>> describe_scope(["scope:tests", "red", "scope:file:/src/a.py"])
    'tests, /src/a.py'
    """
    names = (tag.removeprefix(PREFIX) for tag in tags if tag.startswith(PREFIX))
    return ", ".join(_WORDS.get(name, name.removeprefix("file:")) for name in names)

"""`.gitignore` patterns, translated by pathspec and compiled so that no path takes exponential time. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

_FINAL_DEEP = re.compile(r"(?<=/)\*\*/(?=\s*$)")
"""To git `a/**/` means the directories below `a`, to pathspec also `a` and the files in it."""
_EARLIER_STAR = re.compile(r"\[\^/\]\*((?:\[\^/\]|[^/])*?)(?=\[\^/\]\*)")
_CLASS = re.compile(r"\\.|\[(\^?)(\]?[^\]]*)\]", re.DOTALL)
_SET_OPERATOR = re.compile(r"[&~|\[]|(?<=-)-")
"""Special in a character class of `re`, now or in a later Python, but not in one of git."""


@dataclass(frozen=True, slots=True)
class PathPattern:
    """One pattern. Paths are relative to the pattern's directory, without a `/` at either end."""

    is_negated: bool
    """Whether it includes what an earlier pattern excluded."""
    is_anchored: bool
    """Whether it matches only from its directory on."""
    directories_only: bool
    regex: re.Pattern[str]

    def matches(self, path: str, *, is_directory: bool) -> bool:
        """Return whether the pattern matches this path or a directory above it."""
        is_marked = is_directory and self.directories_only
        return self.regex.search(f"{path}/" if is_marked else path) is not None


def parse_pattern(line: str) -> PathPattern | None:
    """Parse one line; None if it is empty, a comment or invalid."""
    try:
        source, includes = GitIgnoreSpecPattern.pattern_to_regex(_FINAL_DEEP.sub("**/*/", line))
        if source is None or includes is None:
            return None
        regex = re.compile(_adapt_regex(source), re.DOTALL)
    except (ValueError, re.error):  # the class [z-a], a backslash at the end
        return None
    body = line.strip().removeprefix("!")
    return PathPattern(
        is_negated=not includes,
        is_anchored="/" in body.rstrip("/") and not body.startswith("**/"),
        directories_only=body.endswith("/"),
        regex=regex,
    )


def last_match(
    patterns: Sequence[PathPattern], path: str, *, is_directory: bool
) -> PathPattern | None:
    """Return the last pattern that matches, which decides about a path."""
    return next(
        (one for one in reversed(patterns) if one.matches(path, is_directory=is_directory)), None
    )


def _adapt_regex(source: str) -> str:
    """Change pathspec's regex so that no class matches a `/` and no name takes exponential time.

    The text between two `*` is matched at its first occurrence only: no later one can succeed where it fails.
    """
    return _CLASS.sub(_adapt_class, _EARLIER_STAR.sub(r"(?>[^/]*?\1)", source))


def _adapt_class(found: re.Match[str]) -> str:
    if found[2] in {None, "/"}:
        return found[0]
    members = _SET_OPERATOR.sub(r"\\\g<0>", found[2])
    return f"(?!/)[{found[1]}{members}]"

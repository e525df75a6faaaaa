"""Which paths a `.gitignore` leaves out, as git reads it. Pure.

The last pattern that matches decides, and the file of a folder further down comes after those above
it. Not here: reading the disk (folder.py), which never looks below a folder that is left out.
"""

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"(?P<deep>(?:^|(?<=/))\*\*/)|(?P<rest>(?<=/)\*\*$)|(?P<star>\*+)|(?P<one>\?)"
    r"|\[(?P<not>[!^]?)(?P<class>\]?[^\]]*)\]|\\(?P<escaped>.)|(?P<plain>.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern, compiled to match a path below the folder of its file."""

    matches: re.Pattern[str]
    keeps: bool
    directories_only: bool


Rules = tuple[Rule, ...]
"""The patterns of one file, in order."""


def parse(text: str) -> Rules:
    """The patterns of a `.gitignore`; what is none is passed over."""
    rules = (_rule(line) for line in text.splitlines())
    return tuple(rule for rule in rules if rule is not None)


def decides(rules: Rules, path: str, verdict: bool, *, is_directory: bool) -> bool:
    """Whether a path, relative to the file's folder, is left out, if `verdict` was so far."""
    for rule in rules:
        if (is_directory or not rule.directories_only) and rule.matches.fullmatch(path):
            verdict = not rule.keeps
    return verdict


def _rule(line: str) -> Rule | None:
    pattern = line.rstrip("\r\n")
    if not pattern.endswith("\\ "):
        pattern = pattern.rstrip(" \t")
    if not pattern or pattern.startswith("#"):
        return None
    keeps = pattern.startswith("!")
    pattern = pattern.removeprefix("!")
    directories_only = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    is_anchored = "/" in pattern
    pattern = pattern.removeprefix("/")
    if not pattern:
        return None
    try:
        matches = re.compile(("" if is_anchored else "(?:.*/)?") + _regex(pattern), re.DOTALL)
    except re.error:
        return None
    return Rule(matches, keeps, directories_only)


def _regex(pattern: str) -> str:
    return "".join(_token(found) for found in _TOKEN.finditer(pattern))


def _token(found: re.Match[str]) -> str:
    simple = {"deep": "(?:.*/)?", "rest": ".+", "star": "[^/]*", "one": "[^/]"}
    kind = found.lastgroup or ""
    if kind in simple:
        return simple[kind]
    if kind == "class":
        inside = found["class"].replace("\\", "\\\\").replace("[", "\\[")
        return f"[{'^/' if found['not'] else ''}{inside}]"
    return re.escape(found["escaped"] or found["plain"] or "")

"""Shell commands that do work: what they leave behind stays, as a commit, a renamed file or a restarted service does. Pure.

Looking, building and testing leave nothing that a later session would ask about; neither does what is done in a
directory for temporary files.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from memd.caches import cached
from memd.distill.edits import FileEdit
from memd.distill.episodes import ShellCommand, Story
from memd.distill.proof import checks, shell
from memd.patterns import compile_lazily
from memd.text import unique, words

_CLOUD_VERB = compile_lazily(r"^(?:create|update|delete|put|modify|attach|detach|deploy|add|remove)(?:-|$)")  # fmt: skip
_WRITES_ROWS = compile_lazily(
    r"\b(?:insert\s+into|update\s+\S+\s+set|delete\s+from"
    r"|(?:alter|create|drop|truncate)\s+(?:unique\s+)?(?:table|index|view|role|user|database|schema|extension))\b",
    re.IGNORECASE,
)
_WRITES_FILE = compile_lazily(r"(?<![0-9&>=<-])>{1,2}\s*(?![&>]|/dev/|/tmp/|/var/folders|\$)[\"']?[\w./~-]")  # fmt: skip
_QUOTED = compile_lazily(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_TEMPORARY = compile_lazily(r"^(?:/private)?/(?:tmp|var/folders)(?:/|$)|^\$\{?TE?MP|/tmp\.|^/dev/")
_WRAPPERS = frozenset(words("sudo rtk time nice nohup command npx exec xargs"))
_OPTION_WITH_VALUE = frozenset(("-C", "-c", "-R", "--repo", "-n", "--namespace", "--git-dir"))
_IN_PLACE = compile_lazily(r"-\w*i|--in-place")
_OWN_FILES = compile_lazily(r"/\.claude/(?:plans|projects|todos)/")
_PLAN_FILE = compile_lazily(r"/\.claude/plans/[^/]+\.md$")
_LISTS_TAGS = frozenset(("-l", "--list", "-n", "--contains", "--points-at", "--merged"))
_TOLD_BY_FILES = frozenset(words("git mv rm rmdir cp ln chmod chown patch rsync sed perl"))
"""Tools whose work shows in the commits and files that a memory names anyway; git does for its pushes and merges, too."""
_NO_COMMIT = compile_lazily(r"^(?:nothing|no changes)\b[^\n]* (?:to )?commit\b", re.MULTILINE)
_NESTING_MAX = 2
_RUNS_CACHED = 512
"""Runs of which it is kept whether they did work."""


def changed_something(story: Story) -> bool:
    """Return whether a turn left something: a changed file of the project, a commit, a package, a service."""
    return has_project_edits(story) or any(map(leaves_something, story.commands))


def has_project_edits(story: Story) -> bool:
    """Return whether files were changed with the client's tools, other than those that it keeps for itself: a plan, its memory."""
    return any(_OWN_FILES.search(edit.path) is None for edit in story.edits)


def find_written_plan(edits: Sequence[FileEdit]) -> str:
    """The text of the plan that a turn wrote last; empty if it wrote none."""
    found = (e.new for e in reversed(edits) if e.is_whole_file and _PLAN_FILE.search(e.path))
    return next(found, "")


@cached(_RUNS_CACHED)
def leaves_something(command: ShellCommand) -> bool:
    """Return whether a command succeeded at work that stays."""
    if command.is_interrupted or checks.is_failing(command) or was_not_done(command):
        return False
    return _line_leaves_something(command.command, 0)


def was_not_done(command: ShellCommand) -> bool:
    """Return whether the work at the end of a line failed, even after a check that passed, or git had nothing to commit."""
    parts = [one.words for one in shell.parse_line(command.command)]
    if command.failed and parts and _command_leaves(parts[-1], 0):
        return True
    verbs = {verb for git, verb in (words[:2] for words in parts if len(words) > 1) if git == "git"}
    is_shown = "commit" in verbs and "status" not in verbs
    return is_shown and _NO_COMMIT.search(command.output) is not None


def leaves_untold_work(command: ShellCommand) -> bool:
    """Return whether a command succeeded at work that no changed file and no commit tells: an install, a release, a service, a row."""
    return leaves_something(command) and any(
        _command_leaves(one.words, 0) and _read_tool(one.words)[0] not in _TOLD_BY_FILES
        for one in shell.parse_line(command.command)
    )


def list_moved_files(story: Story) -> tuple[str, ...]:
    """The files that commands have renamed to or deleted, as they were written there, once each."""
    found: list[str] = []
    for command in filter(leaves_something, story.commands):
        for one in shell.parse_line(command.command):
            tool, rest = _read_tool(one.words)
            if tool == "git" and rest[:1] in (["mv"], ["rm"]):
                tool, rest = rest[0], rest[1:]
            paths = [word for word in rest if not word.startswith("-") and "*" not in word]
            if tool == "mv" and paths[-1:] and paths[-1].endswith("/"):
                found.extend(paths[-1] + path.rsplit("/", 1)[-1] for path in paths[:-1])
            elif tool == "mv":
                found.extend(paths[-1:] if len(paths) == 2 else paths[:-1])  # noqa: PLR2004  # one to another
            elif tool == "rm":
                found.extend(paths)
    return unique(path for path in found if not _TEMPORARY.search(path) and "$" not in path)


def _line_leaves_something(line: str, depth: int) -> bool:
    if _WRITES_FILE.search(_QUOTED.sub("''", line.split("<<", 1)[0])):
        return True
    return any(_command_leaves(one.words, depth) for one in shell.parse_line(line))


def _command_leaves(given: Sequence[str], depth: int) -> bool:  # noqa: PLR0911  # a list of cases, in order
    """Return whether one command is work: of a shell elsewhere, its line; of another tool, by its row in the table."""
    tool, rest = _read_tool(given)
    if rest[:2] == ["-m", "pip"]:
        tool, rest = "pip", rest[2:]
    verbs = [word for word in rest if not word.startswith("-")]
    if tool == "ssh":
        return depth < _NESTING_MAX and _line_leaves_something(" ".join(verbs[1:]), depth + 1)
    if tool == "git" and verbs[:1] == ["tag"]:
        return len(verbs) > 1 and not _LISTS_TAGS.intersection(rest)
    row = _read_work().get(tool, {})
    match row.get("how"):
        case "files":
            return bool(verbs) and not _TEMPORARY.search(verbs[-1])
        case "in place":
            return any(map(_IN_PLACE.match, rest))
        case "cloud":
            return any(map(_CLOUD_VERB.match, verbs[:4]))
        case "rows":
            return any(map(_WRITES_ROWS.search, rest))
        case "second verb":
            return verbs[:1] != ["api"] and verbs[1:2] != [] and verbs[1] in row["verbs"]
        case _:
            return any(" ".join(verbs[:count]) in row.get("verbs", ()) for count in (1, 2))


@cache
def _read_work() -> Mapping[str, Mapping[str, Any]]:
    """Each tool that may do work → its row of the table."""
    return {tool: row for row in shell.TOOLS.rows["work"] for tool in row["tools"].split()}


def _read_tool(given: Sequence[str]) -> tuple[str, list[str]]:
    """(name of the program, its arguments) without wrappers and the options before a verb that have a value."""
    left = list(given)
    while left and (left[0] in _WRAPPERS or left[0].startswith("-")):
        left = left[1:]
    if not left:
        return "", []
    rest = left[1:]
    while len(rest) > 1 and rest[0] in _OPTION_WITH_VALUE:
        rest = rest[2:]
    return left[0].rsplit("/", 1)[-1], rest

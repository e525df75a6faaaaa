"""Which events of Claude Code memd listens to, and how: one table for settings and plugin. Pure.

Where something may be injected the hook is waited for, and where the client is about to leave as
well: `claude -p` kills the hooks that run beside it when it ends, so Stop and what comes late would
be lost. Waiting costs about 15 ms. The many that come between, one a tool call, run beside the agent.
Nothing listens to PreToolUse: memd never denies and never alters. All times are seconds.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_TOOLS = (
    "Agent",
    "AskUserQuestion",
    "Bash",
    "Edit",
    "ExitPlanMode",
    "MultiEdit",
    "NotebookEdit",
    "Read",
    "Task",
    "WebFetch",
    "WebSearch",
    "Write",
    "mcp__(?!memd__|plugin_memd_).+",
)
TOOLS = f"^({'|'.join(_TOOLS)})$"
"""Tools whose calls are worth a process. What memd itself answered is never remembered again."""


_STARTER = re.compile(r"env|exec|nice|nohup|(?:ba|da|z|k)?sh|python[\d.]*")
_FETCHERS = {"uv", "uvx", "pipx"}
"""They have words of their own before the program's name."""


@dataclass(frozen=True, slots=True)
class Listening:
    """One event, and how its hook is run."""

    event: str
    timeout_s: int
    """More than the hook waits for its payload and for the daemon together, or it would be killed
    before it has put the event on the spool. SessionEnd has 1.5 s for all hooks of the client."""
    matcher: str | None = None
    is_beside: bool = False
    """Run beside the agent, and nobody waits for it."""


EVENTS = (
    Listening("SessionStart", 5),
    Listening("UserPromptSubmit", 3),
    Listening("PostToolUse", 5, TOOLS, is_beside=True),
    Listening("PostToolUseFailure", 5, TOOLS, is_beside=True),
    Listening("SubagentStop", 3),
    Listening("PreCompact", 3),
    Listening("PostCompact", 3),
    Listening("Stop", 3),
    Listening("SessionEnd", 1),
)


def groups(command: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each event with its group as settings and plugins have it; the event's name ends the command."""
    for listening in EVENTS:
        program, *arguments = command
        hook: dict[str, Any] = {
            "type": "command",
            "command": program,
            "args": [*arguments, listening.event],
            "timeout": listening.timeout_s,
        }
        if listening.is_beside:
            hook["async"] = True
        matcher = {} if listening.matcher is None else {"matcher": listening.matcher}
        yield listening.event, {**matcher, "hooks": [hook]}


def words(entry: Mapping[str, Any]) -> list[str]:
    """What an entry of a hook or a server runs, word by word; empty if it runs nothing."""
    command, arguments = entry.get("command"), entry.get("args")
    if not isinstance(command, str):
        return []
    if not isinstance(arguments, list):
        # A line for a shell. What does more than one thing is somebody's own.
        return [] if set(command) & set(";&|\n") else _split(command)
    return [command, *(word for word in arguments if isinstance(word, str))]


def is_ours(entry: Any) -> bool:
    """Whether a hook runs memd: its hook, its launcher, or the program memd itself."""
    said = words(entry) if isinstance(entry, Mapping) else []
    program = _program(said)
    return runs(said, "hook") or any(f"/{w}".endswith("/memd/hook.py") for w in program[:1])


def runs(said: list[str], command: str) -> bool:
    """Whether these words run `memd COMMAND`, from wherever and for whichever vault."""
    program = _program(said)
    if not program or not _is_memd(program[0]):
        return False
    rest = [one for one in program[1:] if not one.startswith("--vault=")]
    rest = rest[2:] if rest[:1] == ["--vault"] else rest
    return rest[:1] == [command]


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # a quote that does not end
        return []


def _program(said: list[str]) -> list[str]:
    """The words from the program on, without what starts it: to name memd is not to run it."""
    is_fetched = False
    for at, word in enumerate(said):
        name = word.rpartition("/")[2]
        if name in _FETCHERS:
            is_fetched = True
        elif is_fetched:
            if _is_memd(word):
                return said[at:]
        elif not (word.startswith("-") or "=" in word or _STARTER.fullmatch(name)):
            return said[at:]
    return []


def _is_memd(word: str) -> bool:
    return f"/{word}".endswith("/memd")

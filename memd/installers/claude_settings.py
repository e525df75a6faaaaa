"""memd's hooks and MCP server among other entries in the settings of Claude Code and Claude Desktop.

An entry belongs to memd if it runs memd, wherever it stands: an older one is replaced in its place,
everything else stays as it is and in its order.
"""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memd.errors import BadRequest

EVENT_WORD = "{event}"
PLUGIN_NAME = "memd"
SERVER_NAME = "memd"

TOOL_MATCHER = (
    "^(Agent|AskUserQuestion|Bash|Edit|EnterWorktree|ExitPlanMode|ExitWorktree|MultiEdit|NotebookEdit|Read|Task"
    "|WebFetch|WebSearch|Write|mcp__(?!memd__|plugin_memd_).+)$"
)
"""Matches the tools whose calls are captured: not memd's own, whose answers would be remembered again.

Those of worktrees say which repository a worktree belongs to. A hook for WorktreeCreate or WorktreeRemove would take the place
of what the client does."""

GUARDED_TOOLS = "^(Bash|Edit|MultiEdit|NotebookEdit|Write)$"
"""Matches the tools before which a rule of the user's may be told."""
_HOOK_FILES = ("/memd/hook.py", "/memd/hook.sh")
AGENT_HOOK = "memd-agent-hook"
"""The file that starts a hook of agents other than Claude Code; with the name of a vault behind it if it has one."""
_AGENT_HOOK = re.compile(rf"/{AGENT_HOOK}(?:-[A-Za-z0-9_-]+)?\Z")
_OPERATORS = frozenset(";&|")
_STARTER = re.compile(r"env|exec|nice|nohup|(?:ba|da|z|k)?sh|python[\d.]*")
"""Programs that start the program named after them."""
_PACKAGE_RUNNERS = {"uv", "uvx", "pipx"}
"""Programs that start another one too, but take words of their own before its name."""

Settings = Mapping[str, Any]
Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HookEvent:
    """An event of Claude Code that memd listens to, and how its hook runs."""

    name: str
    timeout_s: int
    """Longer than the hook waits for its payload and the daemon together: otherwise Claude Code would
    kill it before it has spooled the event. All SessionEnd hooks of a client share 1.5 s."""
    matcher: str | None = None
    is_async: bool = False
    """Whether the agent goes on while the hook runs."""
    since: Version = ()
    """A version of Claude Code that has the event. Before 2.1.101 an unknown name in the settings, and in a plugin to this
    day, keeps *every* hook from running (tried with 2.1.50, .80, .85, .90, .97, .101, .110 and .332)."""


HOOK_EVENTS = (
    HookEvent("SessionStart", 5),
    HookEvent("UserPromptSubmit", 3),
    HookEvent("PreToolUse", 3, GUARDED_TOOLS),
    HookEvent("PostToolUse", 5, TOOL_MATCHER, is_async=True),
    HookEvent("PostToolUseFailure", 3, TOOL_MATCHER),
    HookEvent("SubagentStart", 3),
    HookEvent("SubagentStop", 3),
    HookEvent("PreCompact", 3),
    HookEvent("PostCompact", 3, since=(2, 1, 80)),
    HookEvent("Stop", 3),
    HookEvent("StopFailure", 3, since=(2, 1, 80)),
    HookEvent("PermissionDenied", 3, since=(2, 1, 90)),
    HookEvent("SessionEnd", 1),
)
"""The agent waits, about 15 ms, for a hook that may inject context and for a late one: `claude -p` kills asynchronous
hooks when it ends. It does not wait for that of a call that succeeded: what this says of the call's file reaches the
model all the same, with its next request (seen with 2.1.332). PreToolUse asks the daemon only about calls that have
the words of a rule (`memd.injection.hook_watch`): else a shell starts, looks and ends; a note of the call's file
would reach the model no sooner than its result. An `mcp_tool` hook would spare that shell (waits of 6 ms instead of
38 at the median of 25 calls on a busy machine, with 2.1.332), but fails where memd's server is not connected, and a
rule that is enforced would not be kept; an `if` is fixed when the session starts, and rules change in it. What is
missing says nothing that another event does not say (`capture.claude_code`), and would cost a process each time."""
EXEC_FORM: Version = (2, 1, 139)
"""The first version that starts a hook's program with `args`, without a shell. An older one drops them: then `/bin/sh` would run
the payload on its input, the user's words, as a script (seen with 2.1.101 and .137)."""
OLDEST_PLUGIN_CLIENT = max(event.since for event in HOOK_EVENTS)
"""The plugin's hooks are a file for all versions."""
CURRENT_CLIENT = max(OLDEST_PLUGIN_CLIENT, EXEC_FORM)
"""The first version that has all events and starts hooks without a shell."""


# ── Hooks of Claude Code ─────────────────────────────────────────────────────────────────────────


def hook_groups(
    command: tuple[str, ...], client: Version | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each event and its entry in settings and plugins; the event's name stands for `{event}`, or ends the command.

    Of a `client` of a known version, only those that it has. One that is old or not known starts them by a shell.
    """
    words = [*command] if EVENT_WORD in command else [*command, EVENT_WORD]
    for event in HOOK_EVENTS:
        if client is not None and client < event.since:
            continue
        program, *arguments = [event.name if word == EVENT_WORD else word for word in words]
        has_exec_form = client is not None and client >= EXEC_FORM
        line = " ".join(("exec", *map(_quote, (program, *arguments))))
        run = {"command": program, "args": arguments} if has_exec_form else {"command": line}
        hook: dict[str, Any] = {"type": "command", **run, "timeout": event.timeout_s}
        if event.is_async:
            hook["async"] = True
        matcher = {} if event.matcher is None else {"matcher": event.matcher}
        yield event.name, {**matcher, "hooks": [hook]}


def _quote(word: str) -> str:
    # The client, or the shell, puts something in the place of these.
    return f'"{word}"' if word.startswith("${") else shlex.quote(word)


def add_hooks(
    settings: Settings, command: tuple[str, ...], client: Version | None = None
) -> dict[str, Any]:
    """Return settings with memd's hooks in place of any older ones. Raises BadRequest."""
    return add_groups(settings, dict(hook_groups(command, client)))


def add_groups(settings: Settings, ours: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return settings with these entries, one for each event, in place of memd's older ones. Raises BadRequest."""
    present = _read_hooks(settings)
    merged = {event: _place_group(groups, ours.get(event)) for event, groups in present.items()}
    merged |= {event: [group] for event, group in ours.items() if event not in present}
    return {**settings, "hooks": _drop_emptied_events(merged, present)}


def remove_hooks(settings: Settings) -> dict[str, Any]:
    """Return settings without memd's hooks and without what held only them. Raises BadRequest."""
    present = _read_hooks(settings)
    left = _drop_emptied_events(
        {event: _place_group(groups, None) for event, groups in present.items()}, present
    )
    if left == present:
        return dict(settings)
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    return {**settings, "hooks": left} if left else rest


_OTHER_PROGRAM_EVENTS = {"session-start", "session-end", "pre-compact"}
"""Events in the hooks of another program called memd (`pip install memd`); those are not ours."""


def memd_hook_commands(settings: Settings) -> Iterator[list[str]]:
    """Yield the command of each hook that runs memd; skip entries that are not well-formed."""
    events = settings.get("hooks")
    for groups in events.values() if isinstance(events, Mapping) else ():
        for group in groups if isinstance(groups, list) else ():
            hooks = group.get("hooks", [group]) if isinstance(group, Mapping) else None
            for hook in hooks if isinstance(hooks, list) else ():
                if is_memd_hook(hook):
                    yield command_words(hook)


def is_memd_hook(entry: Any) -> bool:
    """Return whether a hook runs memd's hook.py or hook.sh, the plugin's launcher, or the program memd."""
    words = command_words(entry)
    program = _skip_starters(words)
    file = f"/{program[0]}" if program else ""
    is_hook_file = file.endswith(_HOOK_FILES) or bool(_AGENT_HOOK.search(file))
    if is_hook_file:
        return True
    return runs_memd(words, "hook") and words[-1] not in _OTHER_PROGRAM_EVENTS


def hook_warnings(settings: Settings) -> tuple[str, ...]:
    """Return what in the settings keeps hooks from running."""
    if settings.get("disableAllHooks") is True:
        return ("disableAllHooks is set: no hook runs, so nothing is captured.",)
    return ()


def enabled_plugins(settings: Settings) -> list[str]:
    """List the enabled plugins that are memd's, as `memd@marketplace`."""
    enabled = settings.get("enabledPlugins")
    if not isinstance(enabled, Mapping):
        return []
    return [
        name for name, is_on in enabled.items() if name.partition("@")[0] == PLUGIN_NAME and is_on
    ]


def _read_hooks(settings: Settings) -> dict[str, list[Any]]:
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise BadRequest("its `hooks` is not an object")
    for event, groups in hooks.items():
        if not isinstance(groups, list):
            raise BadRequest(f"its `hooks.{event}` is not a list")
    return hooks


def _place_group(groups: list[Any], ours: dict[str, Any] | None) -> list[Any]:
    """Put memd's group where its first one stood, else at the end; drop its other hooks."""
    left: list[Any] = []
    at: int | None = None
    for group in groups:
        rest = _without_memd_hooks(group)
        if rest is not None:
            left.append(rest)
        if rest is not group and at is None:
            at = len(left)
    if ours is not None:
        left.insert(len(left) if at is None else at, ours)
    return left


def _without_memd_hooks(group: Any) -> Any:
    """Return the group itself, or one with fewer hooks, or None if all of its hooks are memd's.

    Cursor has no groups: each entry is a hook.
    """
    if is_memd_hook(group):
        return None
    hooks = group.get("hooks") if isinstance(group, Mapping) else None
    if not isinstance(hooks, list) or not any(map(is_memd_hook, hooks)):
        return group
    left = [hook for hook in hooks if not is_memd_hook(hook)]
    return {**group, "hooks": left} if left else None


def _drop_emptied_events(
    events: dict[str, list[Any]], before: dict[str, list[Any]]
) -> dict[str, list[Any]]:
    """Leave out events that have lost their last group; an empty one of the user's stays."""
    return {
        event: groups for event, groups in events.items() if groups or not before.get(event, True)
    }


# ── MCP servers ──────────────────────────────────────────────────────────────────────────────────


def add_server(
    settings: Settings, entry: Mapping[str, Any], replaced_variables: Collection[str]
) -> dict[str, Any]:
    """Return settings with memd's MCP server. Raises BadRequest if another server has its name.

    What the user has added to an older entry stays, but no environment variable that is to be replaced.
    """
    servers = _read_servers(settings)
    old = servers.get(SERVER_NAME, {})
    if SERVER_NAME in servers and not is_memd_server(old):
        raise BadRequest(
            f"it has another MCP server named `{SERVER_NAME}`; rename or remove that one first"
        )
    environment = old.get("env")
    added = environment if isinstance(environment, Mapping) else {}
    left = {name: value for name, value in added.items() if name not in replaced_variables}
    merged = {**old, **entry, "env": {**left, **entry["env"]}}
    return {**settings, "mcpServers": {**servers, SERVER_NAME: merged}}


def remove_server(settings: Settings) -> dict[str, Any]:
    """Return settings without memd's MCP server, and without an empty list of servers."""
    servers = _read_servers(settings)
    if not is_memd_server(servers.get(SERVER_NAME)):
        return dict(settings)
    left = {name: server for name, server in servers.items() if name != SERVER_NAME}
    rest = {name: value for name, value in settings.items() if name != "mcpServers"}
    return {**settings, "mcpServers": left} if left else rest


def is_memd_server(entry: Any) -> bool:
    """Return whether an MCP server runs `memd mcp`, however memd is started."""
    return runs_memd(command_words(entry), "mcp")


def _read_servers(settings: Settings) -> dict[str, Any]:
    servers = settings.get("mcpServers", {})
    if not isinstance(servers, dict):
        raise BadRequest("its `mcpServers` is not an object")
    return servers


# ── Commands in an entry ─────────────────────────────────────────────────────────────────────────


def command_words(entry: Any) -> list[str]:
    """Split the command of a hook or an MCP server into words; empty if it runs nothing."""
    if not isinstance(entry, Mapping):
        return []
    command, arguments = entry.get("command"), entry.get("args")
    if not isinstance(command, str):
        return []
    if isinstance(arguments, list):
        return [command, *(word for word in arguments if isinstance(word, str))]
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:  # a quote that does not end
        return []
    # A shell script that does more than run memd is the user's own.
    does_more = "\n" in command or any(set(word) <= _OPERATORS for word in words if word)
    return [] if does_more else words


def runs_memd(words: list[str], command: str) -> bool:
    """Return whether these words run `memd COMMAND`, from any path and for any vault."""
    program = _skip_starters(words)
    if not program or not _is_memd(program[0]):
        return False
    rest = [word for word in program[1:] if not word.startswith("--vault=")]
    rest = rest[2:] if rest[:1] == ["--vault"] else rest
    return rest[:1] == [command]


def _skip_starters(words: list[str]) -> list[str]:
    """Return the words from the program on, without what starts it: `env X=1 python -m memd` is memd."""
    is_package_run = False
    for at, word in enumerate(words):
        name = word.rpartition("/")[2]
        if name in _PACKAGE_RUNNERS:
            is_package_run = True
        elif is_package_run:
            if _is_memd(word):
                return words[at:]
        elif not (word.startswith("-") or "=" in word or _STARTER.fullmatch(name)):
            return words[at:]
    return []


def _is_memd(word: str) -> bool:
    return f"/{word}".endswith("/memd")

"""Installers for Codex CLI, Copilot CLI and Cursor: hooks and an MCP server in each client's own files.

All hooks run one file of memd's, whose path stays when memd is upgraded or moves: Codex trusts a hash of the command, and
skips a hook silently whose command has changed by one character.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from memd.installers import claude_settings, codex_config
from memd.installers.claude import SERVER_VARIABLES, hook_command, server_entry
from memd.installers.claude_settings import AGENT_HOOK, EVENT_WORD
from memd.installers.host import Host, has_program
from memd.installers.json_file import JsonFile
from memd.installers.plan import FileChange, InstallPlan, read_file
from memd.paths import VAULT_DEFAULT

TRUST_CODEX = "In Codex run /hooks and trust memd: it skips hooks silently until then."
_TIMEOUT_S: Mapping[str, int] = {"SessionStart": 5, "SessionEnd": 2}
_TIMEOUT_DEFAULT_S = 3
"""Longer than the hook waits for its payload and the daemon together."""
_NESTED = (
    "SessionStart", "UserPromptSubmit", "PostToolUse", "SubagentStop", "PreCompact", "PostCompact", "Stop", "SessionEnd",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Agent:
    """A client that memd connects to by two files."""

    name: str
    title: str
    program: str
    home_variable: str | None
    """The environment variable that moves its directory, and"""
    home: str
    """where that is without, in the user's home."""
    hooks_file: str
    servers_file: str
    events: tuple[str, ...]
    """Those that memd listens to. None before a tool runs: Copilot refuses a call whose hook fails, and Codex would have to trust it anew."""
    version: int | None = None
    """The version that its hooks file names."""
    is_flat: bool = False
    """Whether an event's entries are hooks, not groups of hooks."""
    note: str = ""
    """What the user has to do."""

    def directory(self, host: Host) -> Path:
        """Return where its settings are."""
        moved = host.environ.get(self.home_variable) if self.home_variable else None
        return Path(moved) if moved else host.home / self.home

    def is_present(self, host: Host) -> bool:
        """Whether it is on this machine: its directory or its program."""
        return self.directory(host).is_dir() or has_program(host, self.program)

    def command(self, host: Host, event: str) -> str:
        """Return the command of a hook, the same for every version of memd."""
        return shlex.join(("/bin/sh", str(launcher_file(host)), f"{self.name}:{event}"))

    def groups(self, host: Host) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each event and its entry in the hooks file."""
        for event in self.events:
            timeout = _TIMEOUT_S.get(event, _TIMEOUT_DEFAULT_S)
            hook = {"command": self.command(host, event), "timeout": timeout}
            if self.is_flat:
                yield event, hook
            else:
                yield event, {"hooks": [{"type": "command", **hook}]}


AGENTS: Mapping[str, Agent] = {
    one.name: one
    for one in (
        Agent("codex", "Codex CLI", "codex", "CODEX_HOME", ".codex", "hooks.json", "config.toml",
              _NESTED, note=TRUST_CODEX),
        # Its own file: Copilot reads every one in that directory.
        Agent("copilot", "Copilot CLI", "copilot", "COPILOT_HOME", ".copilot", "hooks/memd.json", "mcp-config.json",
              (*_NESTED[:3], "PostToolUseFailure", *_NESTED[3:5], *_NESTED[6:]), version=1),
        Agent("cursor", "Cursor", "cursor-agent", None, ".cursor", "hooks.json", "mcp.json",
              ("sessionStart", "beforeSubmitPrompt", "postToolUse", "postToolUseFailure", "afterAgentResponse",
               "subagentStop", "preCompact", "stop", "sessionEnd"), version=1, is_flat=True),
    )
}  # fmt: skip


def install_agent(host: Host, name: str) -> InstallPlan:
    """Plan hooks and an MCP server for an agent of `AGENTS`. Raises BadRequest for a broken file."""
    agent = AGENTS[name]
    changes = (
        _write_launcher(host),
        _hooks(agent, host).change(lambda value: _add_hooks(value, agent, host)),
        _change_server(agent, host, is_wanted=True),
    )
    if not any(change.is_needed for change in changes):
        return InstallPlan(changes)
    notes = tuple(filter(None, (agent.note, f"Restart running sessions of {agent.title}.")))
    return InstallPlan(changes, notes=notes)


def uninstall_agent(host: Host, name: str) -> InstallPlan:
    """Plan to remove memd from an agent's files. Raises BadRequest for a broken file."""
    agent = AGENTS[name]
    changes = [
        _hooks(agent, host).change(_remove_hooks),
        _change_server(agent, host, is_wanted=False),
    ]
    others = [one for one in AGENTS.values() if one.name != name]
    launcher = launcher_file(host)
    if not any(_runs(one, host, launcher) for one in others):
        content = read_file(launcher)
        changes.append(FileChange(launcher, content, None, is_generated=True))
    is_needed = any(change.is_needed for change in changes)
    note = f"Restart running sessions of {agent.title}."
    return InstallPlan(tuple(changes), notes=(note,) if is_needed else ())


def hooks_path(agent: Agent, host: Host) -> Path:
    """Return the file of an agent's hooks."""
    return agent.directory(host) / agent.hooks_file


def launcher_file(host: Host) -> Path:
    """Return the file that starts the hook."""
    vault = host.paths.vault
    name = AGENT_HOOK if vault == VAULT_DEFAULT else f"{AGENT_HOOK}-{vault}"
    return Path(host.paths.state_dir) / name


def format_launcher(host: Host) -> str:
    """Write the file that starts the hook of the memd that is installed now."""
    command = hook_command(host)
    words = [*command, EVENT_WORD] if EVENT_WORD not in command else list(command)
    line = " ".join('"$1"' if word == EVENT_WORD else shlex.quote(word) for word in words)
    package = shlex.quote(str(host.package / "hook.py"))
    return f"""\
#!/bin/sh
# Starts memd's hook for an agent: this file CLIENT:EVENT. `memd install` writes it, and a daemon of a memd that has moved.
# Its path stays, because Codex CLI trusts the command that names it.
trap '' TERM
[ -f {package} ] && exec {line}
memd=$(command -v memd) && exec "$memd" hook "$1"
command -p cat > /dev/null
exit 0
"""


def refresh_launcher(host: Host) -> None:
    """Write the file again if there is one, and it starts a memd elsewhere."""
    file = launcher_file(host)
    try:
        if str(host.package / "hook.py") not in file.read_text(encoding="utf-8"):
            file.write_text(format_launcher(host), encoding="utf-8")
    except (OSError, ValueError):
        return


def _write_launcher(host: Host) -> FileChange:
    file = launcher_file(host)
    return FileChange(file, read_file(file), format_launcher(host).encode(), is_generated=True)


def _hooks(agent: Agent, host: Host) -> JsonFile:
    return JsonFile.read(hooks_path(agent, host))


def _add_hooks(value: Mapping[str, Any], agent: Agent, host: Host) -> dict[str, Any]:
    head = {} if agent.version is None or "version" in value else {"version": agent.version}
    return claude_settings.add_groups({**head, **value}, dict(agent.groups(host)))


def _remove_hooks(value: Mapping[str, Any]) -> dict[str, Any]:
    left = claude_settings.remove_hooks(value)
    # Without hooks its version says nothing.
    return {} if left != value and set(left) == {"version"} else left


def _change_server(agent: Agent, host: Host, *, is_wanted: bool) -> FileChange:
    file = agent.directory(host) / agent.servers_file
    entry = server_entry(host, agent.name)
    if file.suffix == ".toml":
        return codex_config.change_server(file, entry if is_wanted else None)
    if not is_wanted:
        return JsonFile.read(file).change(claude_settings.remove_server)
    extra: dict[str, Any] = {"type": "local", "tools": ["*"]} if agent.name == "copilot" else {}
    add = partial(
        claude_settings.add_server, entry={**extra, **entry}, replaced_variables=SERVER_VARIABLES
    )
    return JsonFile.read(file).change(add)


def _runs(agent: Agent, host: Host, launcher: Path) -> bool:
    content = read_file(hooks_path(agent, host))
    return content is not None and str(launcher).encode() in content

"""Installers for the agents beside Claude Code: hooks and an MCP server in each client's own files, or a plugin of memd's.

All hooks run one file of memd's, whose path stays when memd is upgraded or moves: Codex trusts a hash of the command, and
skips a hook silently whose command has changed by one character. A plugin is one file that also registers the server, so
nothing of the user's is changed.

Codex's `config.toml` is the user's and Codex's, with comments, so only memd's own lines are added or taken out: the table
`mcp_servers.memd` and those below it, up to the next table. What comes of it is parsed and compared before it is written.
"""

import hashlib
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from memd.errors import BadRequest
from memd.injection.hook_watch import watch_dir
from memd.installers import claude_settings
from memd.installers.claude import SERVER_VARIABLES, hook_command, server_entry
from memd.installers.claude_settings import AGENT_HOOK, EVENT_WORD
from memd.installers.file_changes import (
    FileChange,
    Host,
    InstallPlan,
    JsonFile,
    has_program,
    read_file,
)
from memd.paths import VAULT_DEFAULT

TRUST_CODEX = "In Codex run /hooks and trust memd: it skips hooks silently until then."
_TIMEOUT_S: Mapping[str, int] = {"SessionStart": 5, "SessionEnd": 2}
_TIMEOUT_DEFAULT_S = 3
"""Longer than the hook waits for its payload and the daemon together."""
_PLUGIN_MARK = b"// Written by `memd install "
_NESTED = (
    "SessionStart", "UserPromptSubmit", "PostToolUse", "SubagentStop", "PreCompact", "PostCompact", "Stop", "SessionEnd",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Agent:
    """A client that memd connects to by two files, or by a plugin."""

    name: str
    title: str
    program: str
    home_variable: str | None
    """The environment variable that moves its directory, and"""
    home: str
    """where that is without, in the user's home."""
    hooks_file: str
    """Its file of hooks; the plugin's, if that is a script: the file of the client's name beside this one."""
    servers_file: str = ""
    events: tuple[str, ...] = ()
    """Those that memd listens to. None before a tool runs: Copilot refuses a call whose hook fails, and Codex would have to
    trust it anew."""
    version: int | None = None
    """The version that its hooks file names."""
    is_flat: bool = False
    """Whether an event's entries are hooks, not groups of hooks."""
    note: str = ""
    """What the user has to do."""

    def directory(self, host: Host) -> Path:
        """Return where its settings are."""
        moved = host.environ.get(self.home_variable) if self.home_variable else None
        if moved:
            return Path(moved)
        first, _, rest = self.home.partition("/")
        return (host.config_home / rest) if first == ".config" else host.home / self.home

    @property
    def is_plugin(self) -> bool:
        """Return whether memd is a plugin there."""
        return self.hooks_file.endswith(".js")

    def is_present(self, host: Host) -> bool:
        """Return whether it is on this machine: its directory or its program."""
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
        Agent("opencode", "OpenCode", "opencode", None, ".config/opencode", "plugins/memd.js"),
        Agent("pi", "Pi", "pi", "PI_CODING_AGENT_DIR", ".pi/agent", "extensions/memd.js"),
    )
}  # fmt: skip


def install_agent(host: Host, name: str) -> InstallPlan:
    """Plan hooks and an MCP server for an agent of `AGENTS`. Raises BadRequest for a broken file."""
    agent = AGENTS[name]
    changes = (_write_launcher(host), *_change_files(agent, host, is_wanted=True))
    if not any(change.is_needed for change in changes):
        return InstallPlan(changes)
    notes = tuple(filter(None, (agent.note, f"Restart running sessions of {agent.title}.")))
    return InstallPlan(changes, notes=notes)


def uninstall_agent(host: Host, name: str) -> InstallPlan:
    """Plan to remove memd from an agent's files. Raises BadRequest for a broken file."""
    agent = AGENTS[name]
    changes = [*_change_files(agent, host, is_wanted=False)]
    launcher = launcher_file(host)
    if not any(runs_hooks(one, host) for one in AGENTS.values() if one.name != name):
        content = read_file(launcher)
        changes.append(FileChange(launcher, content, None, is_generated=True))
    is_needed = any(change.is_needed for change in changes)
    note = f"Restart running sessions of {agent.title}."
    return InstallPlan(tuple(changes), notes=(note,) if is_needed else ())


def hooks_path(agent: Agent, host: Host) -> Path:
    """Return the file of an agent's hooks."""
    return agent.directory(host) / agent.hooks_file


def runs_hooks(agent: Agent, host: Host) -> bool:
    """Return whether an agent's hooks, or its plugin, start memd's."""
    content = read_file(hooks_path(agent, host))
    return content is not None and str(launcher_file(host)).encode() in content


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


def _change_files(agent: Agent, host: Host, *, is_wanted: bool) -> tuple[FileChange, ...]:
    file = hooks_path(agent, host)
    if agent.is_plugin:
        return (_change_plugin(agent, host, is_wanted=is_wanted),)
    hooks = JsonFile.read(file)
    change = hooks.change(
        partial(_add_hooks, agent=agent, host=host) if is_wanted else _remove_hooks
    )
    return change, _change_server(agent, host, is_wanted=is_wanted)


def _change_plugin(agent: Agent, host: Host, *, is_wanted: bool) -> FileChange:
    file = hooks_path(agent, host)
    content = read_file(file)
    if content is not None and not content.startswith(_PLUGIN_MARK):
        if is_wanted:
            raise BadRequest(f"{file} is not memd's; move it away first. Nothing was changed")
        return FileChange(file, content, content)
    after = format_plugin(agent, host).encode() if is_wanted else None
    return FileChange(file, content, after, is_generated=True)


def format_plugin(agent: Agent, host: Host) -> str:
    """Write the plugin of an agent for the memd that is installed now."""
    entry = server_entry(host, agent.name)
    if agent.name == "opencode":
        entry = {"command": [entry["command"], *entry["args"]], "environment": entry["env"]}
    known = {
        "client": agent.name,
        "launcher": str(launcher_file(host)),
        "watch": watch_dir(host.paths.socket),
        "server": entry,
    }
    here = Path(__file__).parent
    parts = [(here / f"{name}.js").read_text(encoding="utf-8") for name in ("tell", agent.name)]
    mark = f"{_PLUGIN_MARK.decode()}{agent.name}`; `memd uninstall {agent.name}` removes it."
    return "\n".join((mark, f"const MEMD = {json.dumps(known)}\n", *parts))


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
        return change_server(file, entry if is_wanted else None)
    if not is_wanted:
        return JsonFile.read(file).change(claude_settings.remove_server)
    extra: dict[str, Any] = {"type": "local", "tools": ["*"]} if agent.name == "copilot" else {}
    add = partial(
        claude_settings.add_server, entry={**extra, **entry}, replaced_variables=SERVER_VARIABLES
    )
    return JsonFile.read(file).change(add)


# ── Codex CLI's config.toml: memd's MCP server, and Codex's trust in hooks ────────────────────────

_BYTE_ORDER_MARK = "\ufeff"
_MARK = "# Written by `memd install codex`"
_NO_NEWLINE = ", behind a line without an end"
"""Ends the mark where a newline had to be added, so that it is taken out again."""
_OURS = re.compile(r"\s*\[\s*mcp_servers\s*\.\s*[\"']?memd[\"']?\s*(?:\.[^\]]+)?\]\s*(?:#.*)?")
_TABLE = re.compile(r"\s*\[")


def change_server(file: Path, entry: Mapping[str, Any] | None) -> FileChange:
    """Plan memd's MCP server with this entry, None: without one. Raises BadRequest for a broken file."""
    content = read_file(file)
    text = _decode(file, content)
    before = _parse(file, text)
    servers = before.get("mcp_servers", {})
    old = servers.get(claude_settings.SERVER_NAME) if isinstance(servers, dict) else None
    if old is not None and not claude_settings.is_memd_server(old):
        if entry is None:
            return FileChange(file, content, content)
        raise BadRequest(
            f"{file} has another MCP server named `{claude_settings.SERVER_NAME}`;"
            " rename or remove that one first. Nothing was changed"
        )
    if entry is not None and old is not None and all(old.get(key) == entry[key] for key in entry):
        return FileChange(file, content, content)
    bare = _without_server(text)
    _check(file, bare, before, None)
    if entry is None:
        is_gone = not content or (not bare and not file.is_symlink())
        return FileChange(file, content, None if is_gone else bare.encode())
    written = bare + _format_server(bare, entry)
    _check(file, written, before, entry)
    return FileChange(file, content, written.encode())


def find_untrusted(file: Path, hooks_file: Path, hooks: Mapping[str, Any]) -> list[str]:
    """List the events whose memd hook Codex would skip: not trusted, changed since, or switched off.

    `hooks` is the content of `hooks_file`. Raises BadRequest if `file`, Codex's config.toml, is broken.
    """
    config = _parse(file, _decode(file, read_file(file)))
    states = config.get("hooks", {}).get("state", {})
    features = config.get("features", {})
    if any(features.get(name) is False for name in ("hooks", "codex_hooks")):
        return ["all (features.hooks is false)"]
    missing = []
    for event, group, handler, hook, matcher in _list_hooks(hooks):
        places = {str(hooks_file), str(hooks_file.resolve())}
        label = _make_label(event)
        keys = [f"{place}:{label}:{group}:{handler}" for place in places]
        state: Mapping[str, Any] = next((states[key] for key in keys if key in states), {})
        is_trusted = state.get("trusted_hash") == _hash_hook(label, hook, matcher)
        if not is_trusted or state.get("enabled") is False:
            missing.append(event)
    return missing


def _list_hooks(hooks: Mapping[str, Any]) -> Iterator[tuple[str, int, int, Mapping[str, Any], Any]]:
    """Yield (event, number of its group, number in the group, hook, matcher) of each hook of memd's."""
    events = hooks.get("hooks")
    for event, groups in events.items() if isinstance(events, Mapping) else ():
        for at, group in enumerate(groups if isinstance(groups, Sequence) else ()):
            listed = group.get("hooks") if isinstance(group, Mapping) else None
            for number, hook in enumerate(listed if isinstance(listed, list) else ()):
                if claude_settings.is_memd_hook(hook):
                    yield event, at, number, hook, group.get("matcher")


def _make_label(event: str) -> str:
    """Return Codex's name of an event in its records: `post_tool_use`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()


def _hash_hook(label: str, hook: Mapping[str, Any], matcher: Any) -> str:
    """Return Codex's hash of a hook: of its event, matcher and command as sorted JSON (seen with 0.169.0)."""
    identity: dict[str, Any] = {
        "event_name": label,
        "hooks": [
            {
                "async": False,
                "command": hook.get("command"),
                "timeout": hook.get("timeout", 600),
                "type": "command",
            }
        ],
    }
    if matcher is not None:
        identity["matcher"] = matcher
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _decode(file: Path, content: bytes | None) -> str:
    try:
        return (content or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRequest(f"{file}: byte {error.start} is not UTF-8. Nothing was changed") from error


def _parse(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix(_BYTE_ORDER_MARK))
    except tomllib.TOMLDecodeError as error:
        raise BadRequest(f"{file}: {error}. Nothing was changed; fix the file first") from error


def _without_server(text: str) -> str:
    """Return the text without memd's table, those below it and their mark."""
    kept: list[str] = []
    loose: list[str] = []
    """Blank lines and comments behind memd's table: they belong to what follows."""
    is_ours, added_newline_at = False, None
    for line in text.splitlines(keepends=True):
        if line.startswith(_MARK):
            added_newline_at = len(kept) if _NO_NEWLINE in line else None
            continue
        if _TABLE.match(line):
            is_ours = bool(_OURS.fullmatch(line.rstrip("\r\n")))
        if is_ours and not line.strip().startswith("#") and line.strip():
            loose.clear()
        elif is_ours:
            loose.append(line)
        else:
            kept += [*loose, line]
            loose.clear()
    kept += loose
    bare = "".join(kept)
    return bare.removesuffix("\n") if added_newline_at == len(kept) else bare


def _format_server(text: str, entry: Mapping[str, Any]) -> str:
    # Strings and lists of JSON are TOML, too; all but DEL, which no path has.
    is_open = bool(text) and not text.endswith("\n")
    lines = [
        f"{_MARK}{_NO_NEWLINE if is_open else ''}",
        f"[mcp_servers.{claude_settings.SERVER_NAME}]",
        *(f"{key} = {json.dumps(entry[key], ensure_ascii=False)}" for key in ("command", "args")),
        f"[mcp_servers.{claude_settings.SERVER_NAME}.env]",
        *(f"{key} = {json.dumps(value)}" for key, value in entry["env"].items()),
    ]
    return ("\n" if is_open else "") + "\n".join(lines) + "\n"


def _check(
    file: Path, text: str, before: Mapping[str, Any], entry: Mapping[str, Any] | None
) -> None:
    """Raise BadRequest unless the text says what was said before, but for memd's server."""
    expected = {**before, "mcp_servers": {**before.get("mcp_servers", {})}}
    expected["mcp_servers"].pop(claude_settings.SERVER_NAME, None)
    if entry is not None:
        expected["mcp_servers"][claude_settings.SERVER_NAME] = dict(entry)
    try:
        found = tomllib.loads(text.removeprefix(_BYTE_ORDER_MARK))
    except tomllib.TOMLDecodeError:
        found = {}
    found = {**found, "mcp_servers": found.get("mcp_servers", {})}
    if found != expected:
        raise BadRequest(
            f"{file}: memd cannot change `mcp_servers` as it is written there; add or remove"
            " `mcp_servers.memd` by hand (docs/clients.md). Nothing was changed"
        )

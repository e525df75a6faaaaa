"""Installers for Claude Code and Claude Desktop.

memd is in Claude Code either by its settings (hooks and an MCP server) or as a plugin. With both, every
event would be captured twice, so one is removed when the other is installed. The plugin is the directory
`memd/plugin`, which Claude Code loads in place: a newer memd is a newer plugin at once.

`memd/hook.sh` starts no Python. It needs `timeout`, and a program that connects standard input and output to a Unix
socket and ends when the other side hangs up: that is tried here, not guessed. Else the hook is `memd/hook.py`.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from memd.errors import BadRequest
from memd.installers import claude_settings
from memd.installers.claude_settings import EVENT_WORD
from memd.installers.file_changes import (
    PATH_VARIABLES,
    FileChange,
    Host,
    InstallPlan,
    JsonFile,
    has_program,
)

RESTART_CLAUDE_CODE = "Restart running Claude Code sessions to load the change."
RESTART_CLAUDE_DESKTOP = "Quit Claude Desktop and start it again to load the change."
PLUGIN_ID = "memd@memd"
"""The plugin's name and its marketplace's name; the package's directory is the marketplace."""
_MARKETPLACE = "memd"
_PACKAGE = "@anthropic-ai/claude-code"
_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})")
_ANSWER = re.compile(rf"{_VERSION.pattern} \(Claude Code\)\s*\Z")
_ANSWER_S = 10.0
"""Seconds; a wrapper may look for an update first."""
SERVER_VARIABLES = {"MEMD_CLIENT", *PATH_VARIABLES}
"""Environment variables of an MCP server that an installation sets or removes."""


def install_claude_code(host: Host, assumed: claude_settings.Version | None = None) -> InstallPlan:
    """Plan hooks and an MCP server in the user's settings. Raises BadRequest for a broken file.

    `assumed`: the version of a client that is not found.
    """
    settings = JsonFile.read(settings_file(host))
    if plugins := claude_settings.enabled_plugins(settings.value):
        return _defer_to_plugin(plugins[0], host)
    entry = {"type": "stdio", **server_entry(host, "claude-code")}
    changes = (
        settings.change(
            partial(
                claude_settings.add_hooks,
                command=hook_command(host),
                client=find_version(host) or _ask_version(host) or assumed,
            )
        ),
        _add_server(servers_file(host), entry),
    )
    warnings = claude_settings.hook_warnings(settings.value)
    return InstallPlan(changes, notes=(*warnings, *_restart_notes(changes)))


def install_claude_plugin(host: Host) -> InstallPlan:
    """Plan to install the plugin and to clear the settings. Raises BadRequest for a broken file or an old client."""
    found, needed = find_version(host), claude_settings.OLDEST_PLUGIN_CLIENT
    if found is not None and found < needed:
        this, that = (".".join(map(str, one)) for one in (found, needed))
        raise BadRequest(
            f"Claude Code {this} would run none of the plugin's hooks; update it to {that}, or install without --plugin"
        )
    plan = _plan_claude_commands(
        host, ("plugin", "marketplace", "add", str(host.package)), ("plugin", "install", PLUGIN_ID)
    )
    if plan.is_unfinished:
        return plan  # the settings stay until the user has run the commands
    variables = ", ".join(host.path_environment)
    note = f"The plugin sets no environment: set {variables} where you start Claude Code."
    notes = (*((note,) if variables else ()), RESTART_CLAUDE_CODE)
    return replace(plan, changes=_clear_settings(host), notes=notes)


def uninstall_claude_code(host: Host) -> InstallPlan:
    """Plan to remove memd from the settings and to remove its plugins. Raises BadRequest."""
    plugins = claude_settings.enabled_plugins(JsonFile.read(settings_file(host)).value)
    remove_ours = [("plugin", "marketplace", "remove", _MARKETPLACE)]
    plan = _plan_claude_commands(
        host,
        *(("plugin", "uninstall", name) for name in plugins),
        *(remove_ours if PLUGIN_ID in plugins else ()),
    )
    changes = _clear_settings(host)
    return replace(plan, changes=changes, notes=(*plan.notes, *_restart_notes(changes)))


def install_claude_desktop(host: Host) -> InstallPlan:
    """Plan an MCP server for Claude Desktop, whose chats have no hooks. Raises BadRequest."""
    change = _add_server(desktop_config_file(host), server_entry(host, "claude-desktop"))
    return InstallPlan((change,), notes=(RESTART_CLAUDE_DESKTOP,) if change.is_needed else ())


def uninstall_claude_desktop(host: Host) -> InstallPlan:
    """Plan to remove the MCP server from Claude Desktop. Raises BadRequest for a broken file."""
    change = JsonFile.read(desktop_config_file(host)).change(claude_settings.remove_server)
    return InstallPlan((change,), notes=(RESTART_CLAUDE_DESKTOP,) if change.is_needed else ())


def find_version(host: Host) -> claude_settings.Version | None:
    """Return the version of the user's Claude Code, by where it lies: it is not started. None if that does not say."""
    program = _find_program(host)
    if program is None:
        return None
    file = Path(program).resolve()
    for package in (folder / "package.json" for folder in file.parents[:3]):
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
            named = json.loads(package.read_text(encoding="utf-8"))
            if named.get("name") == _PACKAGE and (found := _VERSION.fullmatch(named["version"])):
                return tuple(map(int, found.groups()))
    found = next(filter(None, map(_VERSION.fullmatch, reversed(file.parts))), None)
    return tuple(map(int, found.groups())) if found else None


def _ask_version(host: Host) -> claude_settings.Version | None:
    """Return the version that Claude Code says of itself, as `2.1.332 (Claude Code)`; None if it does not soon."""
    program = _find_program(host)
    if program is None:
        return None
    try:
        said = subprocess.run(  # noqa: S603  # the user's own program
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
            env=dict(host.environ), timeout=_ANSWER_S, errors="replace",
        ).stdout  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    found = _ANSWER.match(said)
    return tuple(map(int, found.groups())) if found else None


def is_present(host: Host) -> bool:
    """Return whether Claude Code is on this machine: its directory or its program."""
    return settings_file(host).parent.is_dir() or has_program(host, "claude")


def settings_file(host: Host) -> Path:
    """Return the file of Claude Code that holds the user's settings."""
    directory = host.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(directory) if directory else host.home / ".claude") / "settings.json"


def servers_file(host: Host) -> Path:
    """Return the file of Claude Code that holds the user's MCP servers, among other things."""
    directory = host.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(directory) if directory else host.home) / ".claude.json"


def desktop_config_file(host: Host) -> Path:
    """Return the configuration file of Claude Desktop. Raises BadRequest on an unknown platform."""
    if host.platform == "darwin":
        directory = host.home / "Library" / "Application Support"
    elif host.platform == "linux":
        directory = host.config_home
    else:
        raise BadRequest(
            f"memd does not know where Claude Desktop keeps its settings on {host.platform}"
        )
    return directory / "Claude" / "claude_desktop_config.json"


def hook_command(host: Host) -> tuple[str, ...]:
    """Return the command of a hook: without Python if this machine can, else hook.py without site packages."""
    in_python = (host.python, "-I", "-S", str(host.package / "hook.py"))
    command = find_quick_hook(host) or in_python
    variables = [f"{name}={value}" for name, value in host.path_environment.items()]
    return ("/usr/bin/env", *variables, *command) if variables else command


def server_entry(host: Host, client: str) -> dict[str, Any]:
    """Return the entry of memd's MCP server; its paths are absolute, because a desktop's PATH is short."""
    program, *arguments = host.memd_command("mcp")
    environment = {"MEMD_CLIENT": client, **host.path_environment}
    return {"command": program, "args": arguments, "env": environment}


def _add_server(file: Path, entry: dict[str, Any]) -> FileChange:
    add = partial(claude_settings.add_server, entry=entry, replaced_variables=SERVER_VARIABLES)
    return JsonFile.read(file).change(add)


def _clear_settings(host: Host) -> tuple[FileChange, ...]:
    return (
        JsonFile.read(settings_file(host)).change(claude_settings.remove_hooks),
        JsonFile.read(servers_file(host)).change(claude_settings.remove_server),
    )


def _restart_notes(changes: tuple[FileChange, ...]) -> tuple[str, ...]:
    return (RESTART_CLAUDE_CODE,) if any(change.is_needed for change in changes) else ()


def _defer_to_plugin(plugin: str, host: Host) -> InstallPlan:
    """Plan to remove what an earlier installation has left in the settings beside the plugin."""
    changes = _clear_settings(host)
    is_clear = not any(change.is_needed for change in changes)
    done = "Nothing was changed." if is_clear else "memd's entries in the settings are removed."
    note = (
        f"The plugin {plugin} is enabled in {settings_file(host)} and brings hooks and server. {done}"
        " To use the settings instead, run `memd uninstall claude-code` first."
    )
    return InstallPlan(changes, notes=(note,))


def _find_program(host: Host) -> str | None:
    usual = (".local/bin", ".claude/local", "/opt/homebrew/bin", "/usr/local/bin")
    path = [host.environ.get("PATH", ""), *(str(host.home / directory) for directory in usual)]
    return shutil.which("claude", path=":".join(path))


def _plan_claude_commands(host: Host, *commands: tuple[str, ...]) -> InstallPlan:
    """Plan to run `claude` with these arguments; where it is not found, leave that to the user."""
    program = _find_program(host)
    if program is not None:
        return InstallPlan(after=tuple((program, *command) for command in commands))
    if not commands:
        return InstallPlan()
    lines = (f"  {shlex.join(('claude', *command))}" for command in commands)
    note = "The program `claude` was not found. Run these commands where it is:"
    return InstallPlan(notes=(note, *lines), is_unfinished=True)


# ── The hook that starts no Python ────────────────────────────────────────────────────────────────

_REPLY = b"memd ok .\n"
_PROBE_S = "2"
"""Seconds that a program gets to show that it works."""


def find_quick_hook(host: Host) -> tuple[str, ...] | None:
    """The command of a hook without Python, with `{event}` in the event's place; None if this machine cannot run one."""
    script = host.package / "hook.sh"
    timeout = shutil.which("timeout", path=host.environ.get("PATH", os.defpath))
    if timeout is None or not script.is_file():
        return None
    path = host.paths.socket
    for send in _list_senders(host, path):
        if _works(timeout, [word.replace(path, "{socket}") for word in send]):
            place = "in:" + "|".join(
                host.environ.get(name, "") for name in ("MEMD_HOME", "MEMD_VAULT")
            )
            hook = (host.python, str(host.package / "hook.py"))
            return (_find_shell(), str(script), place, path, *hook, timeout, EVENT_WORD, *send)
    return None


def _find_shell() -> str:
    """Dash starts in two thirds of Bash's time; systems whose `sh` is Bash often have it, too."""
    return shutil.which("dash", path="/bin:/usr/bin") or "/bin/sh"


def _list_senders(host: Host, path: str) -> list[tuple[str, ...]]:
    """The commands that may connect to a socket, the quickest first."""
    forms = (
        ("nc", "-w", "1", "-U", path),
        # Nearly every machine has it, also those that have no `nc` or one that cannot.
        ("perl", "-C0", str(host.package / "hook.pl"), path),
        ("ncat", "-i", "1", "-U", path),
        ("socat", "-T1", "-t1", "-", f"UNIX-CONNECT:{path}"),
    )
    found = []
    for name, *arguments in forms:
        program = shutil.which(name, path=host.environ.get("PATH", os.defpath))
        if program is not None:
            found.append((program, *arguments))
    return found


def _works(timeout: str, send: list[str]) -> bool:
    """Return whether a line goes to a socket, and the answer comes back whole when the other side hangs up."""
    with tempfile.TemporaryDirectory(prefix="memd-") as folder:
        path = str(Path(folder) / "s")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.settimeout(float(_PROBE_S))
            listener.bind(path)
            listener.listen(1)
            answering = threading.Thread(target=_answer_once, args=(listener,), daemon=True)
            answering.start()
            command = [timeout, _PROBE_S, *(word.replace("{socket}", path) for word in send)]
            try:
                ended = subprocess.run(  # noqa: S603  # programs found on the user's PATH
                    command, input=b"ping\n", capture_output=True, check=False
                )
            except OSError:
                return False
            answering.join()
    return ended.stdout == _REPLY


def _answer_once(listener: socket.socket) -> None:
    try:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(float(_PROBE_S))
            if connection.recv(64) == b"ping\n":
                connection.sendall(_REPLY)
    except OSError:
        return

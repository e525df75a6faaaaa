"""Installers for systemd and launchd, the service managers of Linux and macOS.

systemd listens at the vault's socket and starts the daemon at the first connection, so no event waits for
a login. launchd runs the daemon from login on; its sockets are not used, because a daemon must ask for
them through a C library. Another vault has units of its own (`memd-NAME`, `local.memd.NAME`).

The last line of an installed file is a comment with a hash of the rest. So memd replaces and removes its
own file without asking, makes a backup of one that was edited, and never removes one that it did not
write. The files in the repository's systemd/ are the units of a memd in ~/.local/bin.
"""

import hashlib
import os
import plistlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from memd.errors import BadRequest
from memd.installers.file_changes import FileChange, Host, InstallPlan, read_file
from memd.paths import VAULT_DEFAULT

LAUNCHD_LABEL = "local.memd"
"""The daemon compares it with its own label to find out that launchd has started it."""
QUERY_TIMEOUT_S = 10.0
"""A service manager that has not answered a question by then counts as not running."""

_SYSTEMCTL = ("systemctl", "--user")
_SYSTEMD = ("systemd", *_SYSTEMCTL, "show-environment")
"""The manager and a query that only its running instance answers."""
_UNQUOTED_WORD = re.compile(r"[A-Za-z0-9_./%@:=+-]+")
_SIGNATURE = re.compile(r"(?:# |<!-- )memd install: sha256 ([0-9a-f]{64})(?: -->)?\n\Z")

Command = tuple[str, ...]
FileAuthor = Literal["memd", "edited", "other"]
"""Of a file: memd wrote all of it, memd wrote it and it was edited since, or another program wrote it."""


# ── systemd ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class DaemonUnit:
    """Values in the systemd units of one vault's daemon; all but `environment` in systemd's own quoting."""

    name: str = "memd"
    start: str = "%h/.local/bin/memd serve"
    listen: str = "%t/memd/memd.sock"
    environment: Mapping[str, str] = field(default_factory=dict)


def install_systemd(host: Host) -> InstallPlan:
    """Plan that systemd starts the daemon from now on. Raises BadRequest on macOS."""
    if host.platform == "darwin":
        raise BadRequest("macOS has no systemd; use `memd install launchd`")
    unit = _describe_unit(host)
    socket, service = _unit_files(host, unit.name)
    changes = (
        write_signed(socket, format_socket_unit(unit)),
        write_signed(service, format_service_unit(unit)),
    )
    is_listening = all(
        query_succeeds(host, *_SYSTEMCTL, question, "--quiet", socket.name)
        for question in ("is-enabled", "is-active")
    )
    if is_listening and not any(change.is_needed for change in changes):
        return InstallPlan(changes)
    commands = (
        stop_command(host),
        (*_SYSTEMCTL, "daemon-reload"),
        (*_SYSTEMCTL, "enable", socket.name),
        (*_SYSTEMCTL, "restart", socket.name),  # it may listen at an older path
    )
    return _add_notes(host, InstallPlan(changes, after=commands), *_SYSTEMD)


def uninstall_systemd(host: Host) -> InstallPlan:
    """Plan that systemd stops the daemon and loses its units."""
    changes = tuple(
        remove_signed(path) for path in _unit_files(host, daemon_name("memd", host, "-"))
    )
    names = [change.path.name for change in changes if change.is_needed]
    before = ((*_SYSTEMCTL, "disable", "--now", *names),) if names else ()
    after = ((*_SYSTEMCTL, "daemon-reload"),) if names else ()
    return _add_notes(host, InstallPlan(changes, before, after), *_SYSTEMD)


def _describe_unit(host: Host) -> DaemonUnit:
    environment = daemon_environment(host, f"/run/user/{os.getuid()}")
    socket = host.paths.socket
    is_elsewhere = {"MEMD_HOME", "XDG_RUNTIME_DIR"} & environment.keys()
    return DaemonUnit(
        name=daemon_name("memd", host, "-"),
        start=" ".join(map(_quote_word, host.memd_command("serve"))),
        listen=_escape_percent(socket) if is_elsewhere else f"%t/memd/{Path(socket).name}",
        environment=environment,
    )


def _unit_files(host: Host, name: str) -> tuple[Path, Path]:
    directory = host.config_home / "systemd" / "user"
    return directory / f"{name}.socket", directory / f"{name}.service"


def format_socket_unit(unit: DaemonUnit) -> str:
    """Write the unit that listens and starts the daemon at the first connection."""
    return f"""\
# For `systemctl --user`. `memd install systemd` writes it with the path that memd has.
[Unit]
Description=Socket of memd, long-term memory for coding agents

[Socket]
ListenStream={unit.listen}
FileDescriptorName=memd
SocketMode=0600
DirectoryMode=0700
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
"""


def format_service_unit(unit: DaemonUnit) -> str:
    """Write the unit that runs the daemon."""
    environment = "".join(
        f"Environment={_quote_word(f'{name}={value}', escape_dollar=False)}\n"
        for name, value in sorted(unit.environment.items())
    )
    return f"""\
# For `systemctl --user`. `memd install systemd` writes it with the path that memd has.
[Unit]
Description=memd, long-term memory for coding agents
Requires={unit.name}.socket
After={unit.name}.socket
# What ten starts did not mend, more will not.
StartLimitIntervalSec=60
StartLimitBurst=10

[Service]
Type=notify
NotifyAccess=main
ExecStart={unit.start}
{environment}Restart=on-failure
RestartSec=2
# A large vault of an older version is brought up to date before the first answer.
TimeoutStartSec=10min
# memd leaves within two seconds of SIGTERM.
TimeoutStopSec=10
# memd gives a sign of life twice in this time.
WatchdogSec=60

# No RuntimeDirectory=: it would take the socket's directory away with the daemon. No ProtectSystem=,
# ProtectHome= or PrivateTmp=: for a user they need namespaces, which many systems forbid, and they
# would hide projects. No capability settings: only root may drop them, so the start would fail.
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
# A core dump would hold memories.
LimitCORE=0
MemoryMax=2G
TasksMax=256

[Install]
Also={unit.name}.socket
WantedBy=default.target
"""


def _quote_word(word: str, *, escape_dollar: bool = True) -> str:
    """Quote a word for a unit. A command needs its `$` doubled: systemd would insert a variable."""
    text = _escape_percent(word)
    text = text.replace("$", "$$") if escape_dollar else text
    if _UNQUOTED_WORD.fullmatch(text):
        return text
    for character, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        text = text.replace(character, escaped)
    return f'"{text}"'


def _escape_percent(text: str) -> str:
    return text.replace("%", "%%")


# ── launchd ──────────────────────────────────────────────────────────────────────────────────────


def install_launchd(host: Host) -> InstallPlan:
    """Plan that launchd runs the daemon from now on. Raises BadRequest where there is no launchd."""
    if host.platform != "darwin":
        raise BadRequest("launchd is part of macOS; use `memd install systemd`")
    label, path = _launchd_agent(host)
    log = Path(host.paths.state_dir) / f"{label}.log"
    environment = daemon_environment(host, None)
    text = format_launchd_agent(label, host.memd_command("serve"), environment, str(log))
    change = write_signed(path, text)
    unload = _unload_commands(host, label)
    if unload and not change.is_needed:
        return InstallPlan((change,))
    plan = InstallPlan(
        (change,),
        # launchd opens the log before memd could create its directory.
        before=(("mkdir", "-p", str(log.parent)), *unload),
        after=(stop_command(host), ("launchctl", "bootstrap", _launchd_domain(), str(path))),
    )
    return _add_notes(host, plan, "launchd", "launchctl", "print", _launchd_domain())


def uninstall_launchd(host: Host) -> InstallPlan:
    """Plan that launchd stops the daemon and loses its agent."""
    label, path = _launchd_agent(host)
    change = remove_signed(path)
    unload = _unload_commands(host, label) if change.is_needed else ()
    plan = InstallPlan((change,), before=unload)
    return _add_notes(host, plan, "launchd", "launchctl", "print", _launchd_domain())


def format_launchd_agent(
    label: str, command: Sequence[str], environment: Mapping[str, str], log: str
) -> str:
    """Write launchd's agent. Every path in it must be absolute: launchd knows no home directory."""
    settings = {
        "Label": label,
        "ProgramArguments": list(command),
        "EnvironmentVariables": dict(environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "ExitTimeOut": 10,
        "ProcessType": "Background",
        "Umask": 0o077,
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }
    return plistlib.dumps(settings, sort_keys=False).decode()


def _unload_commands(host: Host, label: str) -> tuple[Command, ...]:
    """Return the command that unloads the agent if launchd has loaded it."""
    service = f"{_launchd_domain()}/{label}"
    is_loaded = query_succeeds(host, "launchctl", "print", service)
    return (("launchctl", "bootout", service),) if is_loaded else ()


def _launchd_domain() -> str:
    return f"gui/{os.getuid()}"


def _launchd_agent(host: Host) -> tuple[str, Path]:
    label = daemon_name(LAUNCHD_LABEL, host, ".")
    return label, host.home / "Library" / "LaunchAgents" / f"{label}.plist"


# ── Both ─────────────────────────────────────────────────────────────────────────────────────────


def daemon_name(stem: str, host: Host, separator: str) -> str:
    """Return the name of the vault's daemon: `memd`, or `memd-work` for the vault `work`."""
    vault = host.paths.vault
    return stem if vault == VAULT_DEFAULT else f"{stem}{separator}{vault}"


def stop_command(host: Host) -> Command:
    """Return the command that stops the daemon of the vault."""
    vault = host.paths.vault
    option = () if vault == VAULT_DEFAULT else ("--vault", vault)
    return host.memd_command(*option, "stop")


def daemon_environment(host: Host, manager_runtime_dir: str | None) -> dict[str, str]:
    """Return the variables that the daemon needs to listen where its clients connect.

    `manager_runtime_dir` is the XDG_RUNTIME_DIR that the service manager itself sets.
    """
    environment = host.path_environment
    if "MEMD_HOME" in environment:
        environment["MEMD_HOME"] = str(Path(environment["MEMD_HOME"]).absolute())
    runtime_dir = host.environ.get("XDG_RUNTIME_DIR")
    if runtime_dir and runtime_dir != manager_runtime_dir:
        environment["XDG_RUNTIME_DIR"] = runtime_dir
    return environment


def write_signed(path: Path, text: str) -> FileChange:
    """Plan to write a text with memd's signature."""
    before = read_file(path)
    return FileChange(path, before, sign(text).encode(), find_author(before) == "memd")


def remove_signed(path: Path) -> FileChange:
    """Plan to remove a file if memd wrote it."""
    before = read_file(path)
    author = find_author(before)
    return FileChange(path, before, before if author == "other" else None, author == "memd")


def sign(text: str) -> str:
    """Append the signature of a file that memd writes."""
    mark = f"memd install: sha256 {_hash_text(text)}"
    return text + (f"<!-- {mark} -->\n" if text.startswith("<?xml") else f"# {mark}\n")


def find_author(content: bytes | None) -> FileAuthor:
    """Tell from its signature what wrote a file."""
    text = (content or b"").decode("utf-8", "surrogateescape")
    signature = _SIGNATURE.search(text)
    if signature is None:
        return "edited" if "memd install: sha256 " in text else "other"
    return "memd" if _hash_text(text[: signature.start()]) == signature[1] else "edited"


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _add_notes(host: Host, plan: InstallPlan, manager: str, *query: str) -> InstallPlan:
    """Add what the user should know; leave the commands to the user if the manager does not answer."""
    notes = (*filter(None, map(_describe_author, plan.changes)), *plan.notes)
    if not (plan.before or plan.after) or query_succeeds(host, *query):
        return replace(plan, notes=notes)
    commands = (f"  {shlex.join(command)}" for command in (*plan.before, *plan.after))
    note = f"the user's {manager} does not answer here; use `memd start` until then. Where it does, run:"
    return InstallPlan(plan.changes, notes=(note, *commands, *notes))


def _describe_author(change: FileChange) -> str | None:
    """Say that a file is not as memd wrote it, and what happens to it."""
    author = find_author(change.before)
    if change.before is None or author == "memd":
        return None
    reason = "was not written by memd" if author == "other" else "was edited"
    effect = "a backup is kept beside it" if change.is_needed else "it is left alone"
    return f"{change.path} {reason}; {effect}"


def query_succeeds(host: Host, *command: str) -> bool:
    """Return whether a program exists and exits 0 for a question that changes nothing."""
    program = shutil.which(command[0], path=host.environ.get("PATH"))
    if program is None:
        return False
    try:
        ended = subprocess.run(  # noqa: S603  # the command is one of ours
            [program, *command[1:]],
            env=dict(host.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=QUERY_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == os.EX_OK

"""systemd and launchd units."""

import hashlib
import os
import plistlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memd.installers.plan import FileChange, Place, Plan, read
from memd.paths import VAULT_DEFAULT, Paths

# MERGED from memd.setup.units:
# MERGED What service managers read: systemd's two units and launchd's agent, as text. Pure.
# MERGED
# MERGED The files in the repository's systemd/ are the first two for a memd in ~/.local/bin. The last line of
# MERGED what is installed is a comment with a hash of the rest: so memd knows its own work from a file that
# MERGED somebody has edited since. Not here: where they are, and who is told (systemd.py, launchd.py).


LAUNCHD_LABEL = "local.memd"
"""The daemon looks for it to tell who started it."""

Author = Literal["memd", "edited", "somebody"]

_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./%@:=+-]+")
_MARK = re.compile(r"(?:# |<!-- )memd install: sha256 ([0-9a-f]{64})(?: -->)?\n\Z")


@dataclass(frozen=True, slots=True)
class Job:
    """One vault's daemon, as systemd is to run it. All texts are in the language of units."""

    name: str = "memd"
    start: str = "%h/.local/bin/memd serve"
    listen: str = "%t/memd/memd.sock"
    environment: Mapping[str, str] = field(default_factory=dict)
    """These are plain, and quoted here."""


def socket_unit(job: Job) -> str:
    """Write the unit that listens, and starts the daemon when somebody connects."""
    return f"""\
# For `systemctl --user`. `memd install systemd` writes it with the path that memd has.
[Unit]
Description=The door of memd, long-term memory for coding agents

[Socket]
ListenStream={job.listen}
FileDescriptorName=memd
SocketMode=0600
DirectoryMode=0700
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
"""


def service_unit(job: Job) -> str:
    """Write the unit that runs the daemon."""
    environment = "".join(
        f"Environment={quoted([f'{name}={value}'], dollars=False)}\n"
        for name, value in sorted(job.environment.items())
    )
    return f"""\
# For `systemctl --user`. `memd install systemd` writes it with the path that memd has.
[Unit]
Description=memd, long-term memory for coding agents
Requires={job.name}.socket
After={job.name}.socket
# What ten starts did not mend, more will not.
StartLimitIntervalSec=60
StartLimitBurst=10

[Service]
Type=notify
NotifyAccess=main
ExecStart={job.start}
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
Also={job.name}.socket
WantedBy=default.target
"""


def agent(
    label: str, command: Sequence[str], environment: Mapping[str, str], output: str
) -> str:
    """Write launchd's agent. Every path in it must be absolute: launchd knows no home."""
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
        "StandardOutPath": output,
        "StandardErrorPath": output,
    }
    return plistlib.dumps(settings, sort_keys=False).decode()


def quoted(words: Sequence[str], *, dollars: bool = True) -> str:
    """Write words as a unit takes them literally. `dollars`: it would put variables in otherwise."""
    return " ".join(_quoted(word, dollars=dollars) for word in words)


def literal(text: str) -> str:
    """Write a path of which a unit would otherwise read `%` as the start of a name."""
    return text.replace("%", "%%")


def _quoted(word: str, *, dollars: bool) -> str:
    text = literal(word).replace("$", "$$") if dollars else literal(word)
    if _PLAIN_WORD.fullmatch(text):
        return text
    for character, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        text = text.replace(character, written)
    return f'"{text}"'


def signed(text: str) -> str:
    """Put the mark under a file that memd writes."""
    mark = f"memd install: sha256 {_hash(text)}"
    return text + (f"<!-- {mark} -->\n" if text.startswith("<?xml") else f"# {mark}\n")


def author(text: str) -> Author:
    """Tell who wrote a file: memd all of it, memd and then somebody, or somebody else."""
    mark = _MARK.search(text)
    if mark is None:
        return "edited" if "memd install: sha256 " in text else "somebody"
    return "memd" if _hash(text[: mark.start()]) == mark[1] else "edited"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


# MERGED from memd.setup.handover:
# MERGED The daemon changes hands, from people to a service manager and back: what every manager needs for it.
# MERGED
# MERGED A file is memd's own if its mark says so; it is replaced and removed without ado. One that somebody
# MERGED has edited since leaves a dated copy; one that memd never wrote is replaced with a copy, and never
# MERGED removed. Not here: what stands in the files (units.py), and the managers (systemd.py, launchd.py).


ASKED_S = 10.0
"""A manager that has not answered by then does not run."""

Command = tuple[str, ...]


def paths(place: Place) -> Paths:
    """Return the files of the vault that is meant. Raises ValueError for a name that is none."""
    return Paths(dict(place.environ))


def memd(place: Place, *words: str) -> Command:
    """Return the command that runs memd, wherever it is run from."""
    return (place.python, "-P", "-m", "memd", *words)


def stopped(place: Place) -> Command:
    """Return the command after which no daemon has the vault."""
    vault = paths(place).vault
    return memd(place, *(() if vault == VAULT_DEFAULT else ("--vault", vault)), "stop")


def named(stem: str, place: Place, separator: str) -> str:
    """Return what the default vault's daemon is called, or that of another vault beside it."""
    vault = paths(place).vault
    return stem if vault == VAULT_DEFAULT else f"{stem}{separator}{vault}"


def environment(place: Place, runtime: str | None) -> dict[str, str]:
    """Return what the daemon must be told so that it listens where its clients look for it.

    `runtime` is the XDG_RUNTIME_DIR that the manager gives it of itself.
    """
    told = place.carried
    if "MEMD_HOME" in told:
        told["MEMD_HOME"] = str(Path(told["MEMD_HOME"]).absolute())
    mine = place.environ.get("XDG_RUNTIME_DIR")
    return told | ({"XDG_RUNTIME_DIR": mine} if mine and mine != runtime else {})


def written(path: Path, text: str) -> FileChange:
    """Put this text there, with memd's mark."""
    before = read(path)
    return FileChange(path, before, signed(text).encode(), _author(before) == "memd")


def removed(path: Path) -> FileChange:
    """Take the file away if memd wrote it."""
    before = read(path)
    by = _author(before)
    return FileChange(path, before, before if by == "somebody" else None, by == "memd")


def cautions(changes: Sequence[FileChange]) -> tuple[str, ...]:
    """Say which files are not as memd left them, and what becomes of them."""
    said = []
    for change in changes:
        by = _author(change.before)
        if change.before is None or by == "memd":
            continue
        who = "was not written by memd" if by == "somebody" else "was edited"
        fate = "a copy is kept beside it" if change.is_needed else "it is left alone"
        said.append(f"{change.path} {who}; {fate}")
    return tuple(said)


def told(plan: Plan, manager: str, *, answers: bool) -> Plan:
    """Add what the user should know. The commands of a manager that does not answer are for later."""
    notes = (*cautions(plan.changes), *plan.notes)
    if answers or not (plan.before or plan.after):
        return Plan(plan.changes, plan.before, plan.after, notes)
    later = (f"  {shlex.join(command)}" for command in (*plan.before, *plan.after))
    return Plan(
        plan.changes,
        notes=(
            f"{manager} does not answer here; `memd start` starts memd meanwhile. Where it does, run:",
            *later,
            *notes,
        ),
    )


def holds(place: Place, *command: str) -> bool:
    """Whether a program is there and answers this question with yes. Changes nothing."""
    program = shutil.which(command[0], path=place.environ.get("PATH"))
    if program is None:
        return False
    try:
        asked = subprocess.run(  # noqa: S603  # the command is one of ours
            [program, *command[1:]],
            env=dict(place.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ASKED_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == os.EX_OK


def _author(content: bytes | None) -> Author:
    return author((content or b"").decode("utf-8", "surrogateescape"))

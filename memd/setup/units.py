"""What service managers read: systemd's two units and launchd's agent, as text. Pure.

The files in the repository's systemd/ are the first two for a memd in ~/.local/bin. The last line of
what is installed is a comment with a hash of the rest: so memd knows its own work from a file that
somebody has edited since. Not here: where they are, and who is told (systemd.py, launchd.py).
"""

import hashlib
import plistlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

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

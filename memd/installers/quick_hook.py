"""The hook that starts no Python, where this machine has the programs for it: tried here, not guessed.

`memd/hook.sh` needs `timeout`, and a program that connects standard input and output to a Unix socket and ends when the
other side hangs up. Without them the hook is `memd/hook.py`.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

from memd.installers.claude_settings import EVENT_WORD
from memd.installers.host import Host

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
    """Whether a line goes to a socket, and the answer comes back whole when the other side hangs up."""
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

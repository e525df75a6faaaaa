"""How the commands reach the daemon: one call, one result, one error that says what to do."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from memd import client
from memd.cli import output
from memd.errors import Broken, Unreachable
from memd.paths import VAULT_DEFAULT, Paths

QUICK_S = 2.0
"""What a health check may wait."""
PATIENT_S = 60.0
_ADVISED = re.compile(r"`memd (?!--vault )")
"""Exit status of every command that found no daemon."""


def paths() -> Paths:
    """Return where the files of the chosen vault are."""
    return Paths(os.environ)


def call(method: str, timeout_s: float = PATIENT_S, **params: Any) -> dict[str, Any]:
    """Make one control call; what is None is left out. Raises Unreachable and what the daemon says."""
    given = {name: value for name, value in params.items() if value is not None}
    where = paths()
    try:
        with client.Client(where.socket, timeout_s) as daemon:
            result: dict[str, Any] = daemon.call(method, given)
    except Unreachable as error:
        raise Unreachable(for_this_vault(error.message)) from error
    return result


def typed(command: str) -> str:
    """Write a command as it is to be typed for the chosen vault: `memd --vault work pin 12`."""
    vault = os.environ.get("MEMD_VAULT") or VAULT_DEFAULT
    return f"memd {command}" if vault == VAULT_DEFAULT else f"memd --vault {vault} {command}"


def for_this_vault(message: str) -> str:
    """Have every command that stands in `backticks` in a message act on the chosen vault."""
    return _ADVISED.sub(f"`{typed('')}", message)


def answers(timeout_s: float = QUICK_S) -> bool:
    """Whether a daemon answers."""
    try:
        call("memd/ping", timeout_s)
    except Broken:
        return False
    return True


def listens() -> bool:
    """Whether somebody listens at the socket: a daemon, or a service manager that now starts one."""
    try:
        with client.Client(paths().socket, QUICK_S):
            return True
    except Unreachable:
        return False


def here() -> str | None:
    """Return where the user stands, for what `current` means; None if that place is gone."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return None


def place(text: str) -> str:
    """Return a project as the daemon understands it: what looks like a directory is made absolute."""
    if text[:1] not in {".", "/", "~"}:
        return text
    return os.path.abspath(os.path.expanduser(text))  # noqa: PTH100, PTH111  # links are the daemon's to follow


def number(text: str) -> int:
    """Read an id as people write it: 12 or #12. Raises ValueError."""
    return int(text.removeprefix("#"))


def numbers(texts: Sequence[str]) -> list[int]:
    """Read ids; exit with a message if one is none."""
    read = []
    for text in texts:
        try:
            read.append(number(text))
        except ValueError:
            refuse(f"an id is a number such as 12 or #12, not {text!r}")
    return read


def refuse(message: str) -> NoReturn:
    """Say on one line what is wrong, and exit."""
    sys.stdout.flush()  # what was said before stands before it
    sys.stderr.write(f"memd: {output.clean(for_this_vault(message))}\n")
    raise SystemExit(1)

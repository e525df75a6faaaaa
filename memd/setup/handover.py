"""The daemon changes hands, from people to a service manager and back: what every manager needs for it.

A file is memd's own if its mark says so; it is replaced and removed without ado. One that somebody
has edited since leaves a dated copy; one that memd never wrote is replaced with a copy, and never
removed. Not here: what stands in the files (units.py), and the managers (systemd.py, launchd.py).
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from memd.paths import VAULT_DEFAULT, Paths
from memd.setup.files import FileChange, read
from memd.setup.plan import Place, Plan
from memd.setup.units import Author, author, signed

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

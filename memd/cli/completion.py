"""Completions for the shell: kinds, projects, vaults, sources and targets. Never an error, never a wait.

A shell takes what it completes into its command line as it is: bash runs `$(…)` in a name when the line is entered, zsh
while it completes. A project has the name of a directory, which anybody may have chosen, so names are left out that a
shell would read as more than a word.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from memd.cli import daemon_call
from memd.errors import MemdError
from memd.models import Kind
from memd.paths import Paths

_PATIENCE_S = 0.5
_PLAIN_WORD = re.compile(r"[\w./][\w.@%+=/-]*")
Complete = Callable[[str], list[str]]


def complete_kinds(incomplete: str) -> list[str]:
    """The kinds of memories."""
    return _keep(Kind, incomplete)


def complete_projects(incomplete: str) -> list[str]:
    """`current`, `all`, and the projects of the vault, if a daemon answers."""
    names: list[str] = []
    with contextlib.suppress(MemdError, OSError, ValueError):
        found = daemon_call.call("memd/projects", _PATIENCE_S, counts=False)
        names = [str(one["name"]) for one in found["projects"]]
    return _keep(["current", "all", *names], incomplete)


def complete_vaults(incomplete: str) -> list[str]:
    """The vaults that there are."""
    vaults: list[str] = []
    with contextlib.suppress(OSError, ValueError):
        vaults = sorted(path.stem for path in Path(Paths(os.environ).database).parent.glob("*.db"))
    return _keep(vaults, incomplete)


def complete_from(*words: str) -> Complete:
    """Complete a word from these."""
    return lambda incomplete: _keep(words, incomplete)


def _keep(words: Iterable[str], incomplete: str) -> list[str]:
    return [
        word
        for word in dict.fromkeys(words)
        if word.startswith(incomplete) and _PLAIN_WORD.fullmatch(word)
    ]

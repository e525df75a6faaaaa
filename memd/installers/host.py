"""The machine, the user and the memd that an installation is for."""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from memd.paths import Paths, find_config_home, find_home

PACKAGE = Path(__file__).resolve().parent.parent
"""The directory of the package `memd`."""
PATH_VARIABLES = {
    "MEMD_HOME": None,
    "MEMD_VAULT": None,
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}
"""Variables that decide which files memd uses, with the default of each, relative to the home directory."""


@dataclass(frozen=True, slots=True)
class Host:
    """The program that memd runs from, and its user."""

    environ: Mapping[str, str]
    python: str
    """The interpreter that can import memd, as an absolute path."""
    package: Path
    """The directory of the package `memd`."""
    platform: str
    """The value of `sys.platform`."""

    @classmethod
    def current(cls) -> Self:
        """Describe the machine and the memd that this process runs on."""
        return cls(dict(os.environ), interpreter(), PACKAGE, sys.platform)

    @property
    def home(self) -> Path:
        """The user's home directory."""
        return Path(find_home(dict(self.environ)) or "/")

    @property
    def config_home(self) -> Path:
        """The directory of programs' settings."""
        return Path(find_config_home(dict(self.environ), str(self.home)))

    @property
    def paths(self) -> Paths:
        """The files of the selected vault. Raises ValueError if the vault's name is invalid."""
        return Paths(dict(self.environ))

    @property
    def path_environment(self) -> dict[str, str]:
        """The variables that memd needs to find the same files when another program starts it.

        Programs that are started from a desktop do not see the variables of a shell.
        """
        return {
            name: value
            for name, default in PATH_VARIABLES.items()
            if (value := self.environ.get(name))
            and (
                default is None or (Path(value).is_absolute() and value != str(self.home / default))
            )
        }

    def memd_command(self, *arguments: str) -> tuple[str, ...]:
        """Return a command that runs memd from any directory: `-P` ignores the modules there."""
        return (self.python, "-P", "-m", "memd", *arguments)


def has_program(host: Host, name: str) -> bool:
    """Return whether a program is on the user's PATH."""
    return shutil.which(name, path=host.environ.get("PATH", "")) is not None


def interpreter() -> str:
    """Return the path of this interpreter; the link of a virtual environment is not followed."""
    return os.path.abspath(sys.executable)  # noqa: PTH100  # Path.resolve() follows links


def write_location(file: str) -> None:
    """Write the interpreter and the package to a file that the Claude Code plugin starts memd from.

    The plugin is copied to a new directory at every update, and a client that was started from a
    desktop has a short PATH, so neither leads to memd. An error is ignored: memd works without the file.
    """
    path, text = Path(file), f"{interpreter()}\n{PACKAGE}\n"
    with contextlib.suppress(OSError, ValueError):
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return
        descriptor, temporary = tempfile.mkstemp(prefix=".installed.", dir=path.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as output:
            output.write(text)
        Path(temporary).replace(path)

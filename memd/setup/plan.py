"""What an installation needs to know of this machine, and what it would do to it, as frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memd.setup.files import FileChange

CARRIED = {
    "MEMD_HOME": None,
    "MEMD_VAULT": None,
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}
"""What decides which files memd uses, and below the home what each is when it is not set."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where memd runs from, and for whom."""

    environ: Mapping[str, str]
    python: str
    """The interpreter that has memd, as an absolute path."""
    package: Path
    """The directory of the package `memd`."""
    platform: str
    """As `sys.platform` says it."""

    @property
    def home(self) -> Path:
        """The user's home directory."""
        return Path(self.environ.get("HOME") or Path.home())

    @property
    def carried(self) -> dict[str, str]:
        """What must be in memd's environment so that it finds the files it would find now.

        Programs started from a desktop do not see what a shell has set.
        """
        return {
            name: value
            for name, usual in CARRIED.items()
            if (value := self.environ.get(name))
            and (usual is None or value != str(self.home / usual))
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done: commands, then changes to files, then commands; and what to tell."""

    changes: tuple[FileChange, ...] = ()
    before: tuple[tuple[str, ...], ...] = ()
    """Commands that are run before the files change."""
    after: tuple[tuple[str, ...], ...] = ()
    """Commands that are run once they have changed."""
    notes: tuple[str, ...] = ()
    """What the user should know or do next, a line each."""
    is_unfinished: bool = False
    """Whether nothing works before the user has done that."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to do."""
        return not (self.before or self.after or any(c.is_needed for c in self.changes))

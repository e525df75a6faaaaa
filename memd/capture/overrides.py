"""Which directories a person has given to a project by hand: `projects.toml`, beside `config.toml`.

    [projects]
    "~/code/shop" = "shop"        # this directory and all below it
    "~/code/shop-*" = "shop"      # * and ? stay within one name, ** crosses names

The file lies in the user's configuration and never in a repository: a cloned repository must not be
able to choose whose memories it sees. The most specific pattern wins: the one with the most names,
then the one with the fewest wildcards, then the longest. The file is parsed once and again when its
stat changes; one that is broken counts as absent, and says why. Not here: git (identity.py).
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memd import log
from memd.capture.ignore import parse_pattern
from memd.gitignore import PathPattern
from memd.models import GLOBAL_PROJECT, SCRATCH_PROJECT

NAME_CHARACTERS = 100
_BYTES_MAX = 256 * 1024
_DEEP_MAX = 3
"""Every further ** multiplies the time that a deep directory takes."""
_RESERVED = frozenset({GLOBAL_PROJECT, SCRATCH_PROJECT, "current", "all"})
_WILD = re.compile(r"[*?\[]")
_Stamp = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class Override:
    """One line: a directory and all below it, and the project that they belong to."""

    pattern: str
    """As it stands in the file."""
    name: str
    below: PathPattern
    rank: tuple[int, int, int]
    """The larger, the more specific."""


class Overrides:
    """The file as it is now. `path` None: there is none. Asking it looks at the disk."""

    def __init__(self, path: str | None, home: str) -> None:
        self._path = path
        self._home = home
        self._stamp: _Stamp = None
        self._known: tuple[Override, ...] = ()
        self.trouble: str | None = None
        """Why the file counts as absent; None if nothing is wrong with it."""
        self.generation = 0
        """Grows whenever the file has changed."""

    def of(self, directory: str) -> Override | None:
        """The most specific line for an absolute directory, or None."""
        self.refresh()
        fitting = (
            one for one in self._known if one.below.matches(directory[1:], is_directory=True)
        )
        return max(fitting, key=lambda one: one.rank, default=None)

    def refresh(self) -> None:
        """Read the file again if it has changed."""
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._known = () if stamp is None else parse(_text(self._path or ""), self._home)
            self.trouble = None
        except ValueError as error:
            self._known = ()
            self.trouble = f"{self._path} is not used: {error}"
            log.get("capture").warning("projects_file_refused", reason=self.trouble)
        self.generation += 1


def parse(text: str, home: str) -> tuple[Override, ...]:
    """The lines of a `projects.toml`. ValueError says what is wrong, and where."""
    try:
        said = tomllib.loads(text)
    except ValueError as error:  # more than TOMLDecodeError: a number of thousands of digits
        raise ValueError(f"it is not valid TOML: {error}") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if strange := sorted(said.keys() - {"projects"}):
        raise ValueError(f"there is no [{strange[0]}], only [projects]")
    lines = said.get("projects", {})
    if not isinstance(lines, Mapping):
        raise ValueError(  # noqa: TRY004  # of the file, like the rest
            'projects is no table; write [projects], then "~/code/shop" = "shop"'
        )
    return tuple(_override(pattern, name, home) for pattern, name in lines.items())


def _override(pattern: str, name: Any, home: str) -> Override:
    is_name = isinstance(name, str) and 0 < len(name.strip()) <= NAME_CHARACTERS
    if not is_name or "/" in name or not name.isprintable() or name.strip() in _RESERVED:
        raise ValueError(
            f'{pattern!r} needs the name of a project such as "shop": no path, none of'
            f" {', '.join(sorted(_RESERVED))}"
        )
    expanded = home + pattern[1:] if pattern == "~" or pattern.startswith("~/") else pattern
    if not expanded.startswith("/"):
        raise ValueError(f"{pattern!r} must begin with / or ~/")
    names = [part for part in _followed(expanded).split("/") if part not in ("", ".")]
    if ".." in expanded.split("/"):
        raise ValueError(f"{pattern!r} must not go up with ..")
    body = "/".join(names)
    if body.count("**") > _DEEP_MAX:
        raise ValueError(f"{pattern!r} has more than {_DEEP_MAX} times **")
    wild = len(_WILD.findall(body))
    rank = (len([part for part in names if part != "**"]), -wild, len(body))
    below = parse_pattern(f"/{body}")
    if below is None:
        raise ValueError(f"{pattern!r} is no pattern")
    return Override(pattern, name.strip(), below, rank)


def _followed(pattern: str) -> str:
    """The pattern with the links in the part before its first wildcard followed, as directories are."""
    names = pattern.split("/")
    plain = next((n for n, name in enumerate(names) if _WILD.search(name)), len(names))
    try:
        head = str(Path("/".join(names[:plain]) or "/").resolve())
    except (OSError, RuntimeError):  # links that lead in a circle
        return pattern
    return "/".join((head, *names[plain:]))


def _stamp(path: str | None) -> _Stamp:
    try:
        found = os.stat(path) if path is not None else None  # noqa: PTH116  # once for every event
    except OSError:
        return None
    return found and (found.st_mtime_ns, found.st_size, found.st_ino)


def _text(path: str) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            raw = os.read(handle, _BYTES_MAX + 1)
        finally:
            os.close(handle)
        text = raw.decode("utf-8")
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8") from error
    if len(raw) > _BYTES_MAX:
        raise ValueError(f"it is larger than {_BYTES_MAX // 1024} KiB")
    return text

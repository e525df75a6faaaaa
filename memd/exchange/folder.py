"""The notes in a folder: which files are read, which are left out, and why.

Left out are hidden files, what `.gitignore` leaves out, the packages of others, links (a link into the
folder leads to a file that is read anyway, one out of it leads to what was not asked for), and what is
no text. Not here: what the notes say.
"""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memd import gitignore
from memd.gitignore import PathPattern

FILE_BYTES_MAX = 4 * 1024 * 1024
ENDINGS = (".md", ".markdown", ".mdown", ".mkd", ".mdx")
_PACKAGES = frozenset({"node_modules", "bower_components", "site-packages", "__pycache__"})
PathPatterns = tuple[PathPattern, ...]
"""The patterns of one file, in order."""
_IGNORE_BYTES = 256 * 1024
_SNIFFED = 8_192


@dataclass(slots=True)
class Found:
    """The notes, and how many other things were left out for which reason."""

    files: list[Path] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)
    unreadable: dict[str, str] = field(default_factory=dict)
    """Directory → why it could not be looked into."""


def notes(top: Path) -> Found:
    """The notes in a folder and below it, in order of their paths."""
    found = Found()
    top = top.absolute()
    _look(top, _above(top), found)
    found.files.sort()
    return found


@dataclass(frozen=True, slots=True)
class Text:
    """What a file says, or why it was not read."""

    words: str = ""
    encoding: str = "UTF-8"
    unread: str = ""


def text_of(path: Path) -> Text:
    """The text of a file, in whatever it is written. OSError if it cannot be read."""
    if not path.is_file():
        return Text(unread="no regular file")
    if path.stat().st_size > FILE_BYTES_MAX:
        return Text(unread=f"larger than {FILE_BYTES_MAX // 1024 // 1024} MiB")
    raw = path.read_bytes()
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Text(raw.decode("utf-16", "replace"), "UTF-16")
    if b"\0" in raw[:_SNIFFED]:
        return Text(unread="binary")
    try:
        return Text(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return Text(raw.decode("cp1252", "replace"), "Windows-1252")


def _look(here: Path, rules: Sequence[tuple[Path, PathPatterns]], found: Found) -> None:
    own = _rules(here)
    rules = (*rules, (here, own)) if own else rules
    try:
        with os.scandir(here) as listing:
            entries = sorted(listing, key=lambda one: one.name)
    except OSError as error:
        found.unreadable[str(here)] = error.strerror or str(error)
        return
    for one in entries:
        path = Path(one.path)
        is_directory = one.is_dir(follow_symlinks=False)
        why = _left(one, path, rules, is_directory=is_directory)
        if why:
            found.left[why] += 1
        elif why is not None:
            continue
        elif is_directory:
            _look(path, rules, found)
        elif one.is_file(follow_symlinks=False):
            found.files.append(path)


def _left(
    one: "os.DirEntry[str]",
    path: Path,
    rules: Sequence[tuple[Path, PathPatterns]],
    *,
    is_directory: bool,
) -> str | None:
    """Why it is left out; nothing to say if it is no note anyway, None if it is read."""
    if not is_directory and not one.name.lower().endswith(ENDINGS) and not one.is_symlink():
        return ""
    if one.name.startswith("."):
        return "hidden"
    if one.is_symlink():
        return "a link" if path.is_dir() or one.name.lower().endswith(ENDINGS) else ""
    if is_directory and one.name in _PACKAGES:
        return "packages of others"
    return ".gitignore" if _ignored(path, rules, is_directory=is_directory) else None


def _ignored(
    path: Path, rules: Sequence[tuple[Path, PathPatterns]], *, is_directory: bool
) -> bool:
    verdict = False
    for folder, one in rules:
        name = path.relative_to(folder).as_posix()
        last = gitignore.last_match(one, name, is_directory=is_directory)
        verdict = verdict if last is None else not last.is_negated
    return verdict


def _above(top: Path) -> list[tuple[Path, PathPatterns]]:
    """The rules of the folders above, if they belong to the same git repository."""
    if (top / ".git").exists():
        return []
    above: list[tuple[Path, PathPatterns]] = []
    for folder in top.parents:
        own = _rules(folder)
        above += [(folder, own)] if own else []
        if (folder / ".git").exists():
            return above[::-1]
    return []


def _rules(folder: Path) -> PathPatterns | None:
    path = folder / ".gitignore"
    try:
        if not path.is_file() or path.stat().st_size > _IGNORE_BYTES:
            return None
        lines = path.read_text("utf-8", "replace").splitlines()
        return tuple(found for line in lines if (found := gitignore.parse(line)))
    except OSError:
        return None

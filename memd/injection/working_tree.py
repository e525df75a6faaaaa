"""Whether the files that a memory names are still in the working tree of the directory it is shown in.

Looked up when a memory is shown: what was moved or deleted since is told with the line. Where there is no working
tree, or it is too large to be walked, only a path that begins with a folder of it is known to be gone.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from memd.patterns import compile_lazily

_ENTRIES_MAX = 20_000
_DEPTH_MAX = 12
_NAMED_MAX = 2
_NOT_WALKED = frozenset({".git", "node_modules", ".venv", "venv", "target", "__pycache__"})
_PATH = compile_lazily(
    r"(?<![\w./\\~@:*$<-])(?:\./)?((?:[\w.-]+/)*[\w-][\w.-]*\.[A-Za-z]\w{0,4})(?![\w/*@(]|\.\w)"
)
"""A path relative to something, which ends with a file's suffix."""
_NO_FILE = re.compile(
    r"\d+(?:\.\w+)+|(?:[a-z]+\.)*(?:com|org|net|io|dev|example)|e\.g|i\.e", re.IGNORECASE
)
"""A version, a host or an abbreviation."""
_HOST = re.compile(r"(?:[\w-]+\.)+(?:com|org|net|io|dev|example)/", re.IGNORECASE)
_CODE_SPAN = compile_lazily(r"`([^`\n]+)`")


@dataclass
class WorkingTree:
    """The working tree around a directory; nothing is gone from one that is not there."""

    directory: str | None
    _found: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def root(self) -> Path | None:
        """The directory that has the repository; None without one."""
        if not self.directory or not (here := Path(self.directory)).is_absolute():
            return None
        return next(
            (at for at in (here, *here.parents)[:_DEPTH_MAX] if (at / ".git").exists()), None
        )

    @cached_property
    def names(self) -> frozenset[str] | None:
        """Every path in the tree and every end of one; None if there are too many."""
        found: set[str] = set()
        for path in self._walk():
            parts = path.split("/")
            found.update("/".join(parts[n:]) for n in range(len(parts)))
            if len(found) > _ENTRIES_MAX:
                return None
        return frozenset(found)

    def _walk(self) -> Iterator[str]:
        assert self.root is not None
        for at, folders, files in os.walk(self.root):
            folders[:] = [name for name in folders if name not in _NOT_WALKED]
            below = Path(at).relative_to(self.root).as_posix()
            yield from (name if below == "." else f"{below}/{name}" for name in files)

    def note_gone(self, text: str) -> str:
        """In words, which of the files that a text names are gone; empty if none."""
        if text not in self._found:
            self._found[text] = tuple(self._find_gone(text)) if self.root else ()
        gone = self._found[text][:_NAMED_MAX]
        return f"{', '.join(gone)}: no longer there" if gone else ""

    def _find_gone(self, text: str) -> Iterator[str]:
        assert self.root is not None
        marked = {found for span in _CODE_SPAN.findall(text) for found in _PATH.findall(span)}
        for name in dict.fromkeys(_PATH.findall(text)):
            # Prose has names with dots that are no files: only what has a folder, or stands as code, is one.
            is_named = "/" in name or name in marked
            if not is_named or _NO_FILE.fullmatch(name) or _HOST.match(name):
                continue
            if any((at / name).exists() for at in (self.root, Path(self.directory or self.root))):
                continue
            is_gone = (
                (self.root / name.split("/")[0]).is_dir() and "/" in name
                if self.names is None
                else name not in self.names
            )
            if is_gone:
                yield name

"""Whether the files of a copy are still what was written: read through, a little at a time.

The files are read, not the maps of them: what was written to a map is not theirs, and whatever a map has
touched stays in memory. What had to be brought from the disk for this is let go of again; what was in
the system's cache before stays there for the searches. Not here: when that is done (keeper.py).
"""

import os
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, suppress

from memd.index.copy import Mapped, Odd

AT_ONCE = 8 * 1024**2
"""Bytes a step: some milliseconds."""
SMALL = 4 * 1024**2
"""Files up to this size are read through before a copy is used: all that a thousand rows lead through."""
_BUFFER = 1024**2
_CACHED_ONLY = getattr(os, "RWF_NOWAIT", 0)


class Damaged(Odd):
    """A copy with a file that is not what was written."""


def small(found: Mapped) -> list[str]:
    """Name the files that can be read through in no time."""
    return [name for name in found.checks if len(found.maps.get(name, b"")) <= SMALL]


def read_through(found: Mapped, names: Iterable[str]) -> Generator[bool, None, None]:
    """Compare files with what was written; a True after every `AT_ONCE` bytes. Raises Odd, naming the file.

    All of them are opened at once: who takes the copy away meanwhile does not make it odd.
    """
    with ExitStack() as opened:
        try:
            files = [
                (name, opened.enter_context((found.folder / name).open("rb", buffering=0)))
                for name in names
                if name in found.maps
            ]
            yield True
            for name, file in files:
                yield from _read_through(file.fileno(), name, found.checks[name])
        except OSError as error:
            raise Odd(f"it cannot be read: {error}") from error


def _read_through(handle: int, name: str, wanted: int) -> Iterator[bool]:
    buffer = memoryview(bytearray(_BUFFER))
    check = offset = 0
    _advise(handle, 0, "POSIX_FADV_RANDOM")  # what is read ahead would not be let go of
    while got := _some(handle, buffer, offset):
        check = zlib.crc32(buffer[:got], check)
        offset += got
        if offset % AT_ONCE == 0:
            yield True
    if check != wanted:
        raise Damaged(f"{name} is damaged")
    yield True


def _some(handle: int, buffer: memoryview, offset: int) -> int:
    """Read a block; how many bytes."""
    got = 0
    if _CACHED_ONLY:
        with suppress(OSError):
            got = os.preadv(handle, [buffer], offset, _CACHED_ONLY)
    if got < len(buffer) and (more := os.preadv(handle, [buffer[got:]], offset + got)):
        _advise(handle, offset + got, "POSIX_FADV_DONTNEED", more)
        got += more
    return got


def _advise(handle: int, offset: int, what: str, size: int = 0) -> None:
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(handle, offset, size, getattr(os, what))

"""The copy of the index beside the vault: an array a file, written at rest, mapped at a start.

A copy is a directory with a random name. It is whole once its manifest is there, and holds once the
vault names it (store/saved.py); it is never changed, so what is mapped stays what it was. It is mapped
privately: what is written to the arrays goes into pages of our own, and there is room behind the rows
for new ones. Numbers only: no text of anybody. Anything odd about a copy is a reason to do without it.
Not here: what the arrays mean (index.py), when a copy is made (keeper.py), reading its files through
(intact.py).
"""

import contextlib
import hashlib
import json
import mmap
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memd.index.copied import Copy, Draft, Layout
from memd.store import beside

FORMAT = 2
_MANIFEST = "manifest.json"
_AT_ONCE = 8 * 1024**2
"""Bytes that are written, and brought to the disk, before the next: commits and searches go between."""
_REST = 0.5
"""Of the time that this took."""
_ZEROS = bytes(1 << 16)

GiveUp = Callable[[], bool]


class Odd(Exception):
    """A copy that cannot be used; says why."""


class GivenUp(Exception):
    """Somebody waits for what the writing holds up."""


@dataclass(frozen=True, slots=True)
class Mapped(Copy):
    """A copy, mapped."""

    folder: Path
    maps: Mapping[str, mmap.mmap]
    checks: Mapping[str, int]
    """By name of file, the CRC-32 of all its bytes as they were written, the room too."""


def write(vault: str, name: str, draft: Draft, give_up: GiveUp) -> None:
    """Write a copy, slowly. Raises OSError or GivenUp; then nothing of it is left."""
    folder = Path(beside.directory(vault), name)
    try:
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700)
        files = {key: _write(folder / key, one, give_up) for key, one in draft.layouts.items()}
        late = draft.late(partial(_room, folder))
        files |= {key: _write(folder / key, one, give_up) for key, one in late.items()}
        told = {"format": FORMAT, "name": name, "about": draft.about, "files": files}
        text = json.dumps(told)
        with _created(folder / _MANIFEST) as file:
            file.write(f"{_check(text)}\n{text}".encode())
            os.fsync(file.fileno())
        for directory in (folder, folder.parent):
            _flush(directory)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _check(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _created(path: Path) -> Any:
    return os.fdopen(
        os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600), "wb"
    )


def _flush(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write(path: Path, layout: Layout, give_up: GiveUp) -> dict[str, Any]:
    """Write one array to a file that has its room; what the manifest says of it."""
    array, room = layout.array, layout.room()
    size = int(np.prod(room)) * array.itemsize
    check = done = 0
    if isinstance(array, np.memmap):
        array.flush()  # it was made in its place
        check, done = _checked(array, give_up), size
    else:
        with _created(path) as file:
            os.ftruncate(file.fileno(), size)
            for offset, part in _lines(array, room, layout.grows):
                check = _zeros(check, offset - done)
                check = _write_at(file.fileno(), offset, part, check, give_up)
                done = offset + part.nbytes
    check = _zeros(check, size - done)
    return {"dtype": array.dtype.str, "room": room, "bytes": size, "check": check}


def _checked(array: NDArray[Any], give_up: GiveUp) -> int:
    held, check = array.reshape(-1).view(np.uint8).data, 0
    for first in range(0, len(held), _AT_ONCE):
        if give_up():
            raise GivenUp
        check = zlib.crc32(held[first : first + _AT_ONCE], check)
    return check


def _zeros(check: int, count: int) -> int:
    """What a checksum becomes behind so many zeros."""
    for first in range(0, count, len(_ZEROS)):
        check = zlib.crc32(_ZEROS[: count - first], check)
    return check


def _lines(
    array: NDArray[Any], room: tuple[int, ...], grows: int | None
) -> Iterator[tuple[int, NDArray[Any]]]:
    """What of an array lies together in its file, and from which byte on."""
    if grows != 1:
        yield 0, array
        return
    for number, line in enumerate(array):
        yield number * room[1] * array.itemsize, line


def _room(folder: Path, name: str, size: int, kind: np.dtype[Any]) -> NDArray[Any]:
    if not size:
        return np.zeros(0, kind)
    with _created(folder / name) as file:
        os.ftruncate(file.fileno(), size * kind.itemsize)
    return np.memmap(folder / name, kind, "r+", shape=(size,))


def _write_at(
    handle: int, offset: int, array: NDArray[Any], check: int, give_up: GiveUp
) -> int:
    """Write an array, and return what the checksum of all before it becomes."""
    rows = max(1, _AT_ONCE // max(1, array[:1].nbytes))
    for first in range(0, len(array), rows):
        if give_up():
            raise GivenUp
        started = time.perf_counter()
        block = np.ascontiguousarray(array[first : first + rows])
        data, done = block.reshape(-1).view(np.uint8).data, 0
        while done < len(data):
            done += os.pwrite(handle, data[done:], offset + done)
        offset += len(data)
        check = zlib.crc32(data, check)
        os.fdatasync(handle)
        time.sleep(_REST * (time.perf_counter() - started))
    return check


def read(vault: str, name: str) -> Mapped:
    """Map a copy. Raises Odd if there is none, or not a whole one of ours."""
    folder = Path(beside.directory(vault), name)
    try:
        check, _, text = (folder / _MANIFEST).read_text(encoding="utf-8").partition("\n")
        if check != _check(text):
            raise Odd("its manifest is damaged")
        manifest = json.loads(text)
        if manifest["format"] != FORMAT or manifest["name"] != name:
            raise Odd("it is of another format")
        maps: dict[str, mmap.mmap] = {}
        arrays = {
            key: _mapped(folder / key, told, maps) for key, told in manifest["files"].items()
        }
        checks = {key: told["check"] for key, told in manifest["files"].items()}
        return Mapped(manifest["about"], arrays, folder, maps, checks)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SyntaxError) as error:
        raise Odd(f"it cannot be read: {error}") from error


def _mapped(path: Path, told: Mapping[str, Any], maps: dict[str, mmap.mmap]) -> NDArray[Any]:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size != told["bytes"]:
            raise Odd(f"{path.name} has {size} bytes of {told['bytes']}")
        if not size:
            return np.zeros(0, told["dtype"]).reshape(told["room"])
        mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
    maps[path.name] = mapped
    return np.frombuffer(mapped, told["dtype"]).reshape(told["room"])


def sweep(vault: str, keep: str | None) -> None:
    """Take every copy away but this one. What is mapped stays in memory."""
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(beside.directory(vault)):
            if entry.name != keep:
                shutil.rmtree(entry.path, ignore_errors=True)

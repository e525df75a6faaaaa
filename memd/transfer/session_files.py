"""Open a session's file as lines: plain, compressed with Zstandard, or sessions in a database."""

import contextlib
import io
import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from memd.errors import BadRequest

if TYPE_CHECKING:
    from memd.store.foreign_sqlite import ForeignDatabase

COMPRESSED = ".zst"
DATABASE = ".db"
_DECOMPRESS = ("zstd", "--decompress", "--stdout", "--quiet", "--memory=512MB")
"""Python 3.11 cannot decompress Zstandard. A program does that as fast as a library, and memd needs no dependency
for files that few have; the option bounds the memory that a file may ask for."""
_MESSAGE_CHARACTERS = 200


class LineFile(Protocol):
    """A file to read lines from."""

    def readline(self, limit: int, /) -> bytes:
        """Return the next line, or as many of its bytes; nothing at the end."""

    def tell(self) -> int:
        """Return how many bytes of the file are read."""


@contextlib.contextmanager
def open_session_file(path: str) -> Iterator[LineFile]:
    """Open a session's file, of the form that its name says. Raises OSError and MemdError.

    Of a damaged file the lines before the damage are read; then it raises.
    """
    mode = Path(path).stat().st_mode
    if stat.S_ISDIR(mode):
        raise BadRequest("a folder that cannot be read")
    if not stat.S_ISREG(mode):
        raise BadRequest("no regular file")
    if path.endswith(COMPRESSED):
        with _decompress(path) as lines:
            yield lines
    elif path.endswith(DATABASE):
        from memd.store import foreign_sqlite  # noqa: PLC0415  # brings apsw, which `memd --help` need not load

        with foreign_sqlite.open_foreign(path) as database:
            yield _Lines(_list_sessions(database))
    else:
        with Path(path).open("rb") as file:
            yield file


class _Lines:
    """Lines that are made one by one."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._read = 0

    def readline(self, _limit: int, /) -> bytes:
        line = next(self._lines, b"")
        self._read += len(line)
        return line

    def tell(self) -> int:
        return self._read


class _Decompressed:
    """The output of a program that decompresses a file. `tell` says how far it has read."""

    def __init__(self, output: io.BufferedReader, file: io.BufferedReader) -> None:
        self._output, self._file = output, file

    def readline(self, limit: int, /) -> bytes:
        return self._output.readline(limit)

    def tell(self) -> int:
        return os.lseek(self._file.fileno(), 0, os.SEEK_CUR)


@contextlib.contextmanager
def _decompress(path: str) -> Iterator[LineFile]:
    program = shutil.which(_DECOMPRESS[0])
    if program is None:
        raise BadRequest(
            "compressed with Zstandard, and there is no program zstd; install it (apt, dnf or brew install zstd) and import again"
        )
    with Path(path).open("rb", buffering=0) as file:
        running = subprocess.Popen(  # noqa: S603  # a program found on the user's PATH
            [program, *_DECOMPRESS[1:]], stdin=file, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        with running:
            assert isinstance(running.stdout, io.BufferedReader)
            try:
                yield _Decompressed(running.stdout, file)  # type: ignore[arg-type]
            except BaseException:
                running.kill()
                raise
            running.stdout.close()
            told = running.stderr.read() if running.stderr else b""
    if running.returncode != 0:
        reason = " ".join(told.decode("utf-8", "replace").split())[:_MESSAGE_CHARACTERS]
        raise BadRequest(f"damaged; what could be decompressed was read ({reason})")


def _list_sessions(database: "ForeignDatabase") -> Iterator[bytes]:
    """Yield each session of OpenCode's database, as `opencode export` writes it, on a line."""
    columns = database.tables()
    if not {"session", "message", "part"} <= columns.keys():
        raise BadRequest("a database, but not OpenCode's: it has none of its tables")
    for row in database.rows("session"):
        session = row.get("id") or ""
        parts: dict[str, list[Mapping[str, Any]]] = {}
        for part in database.rows("part", session_id=session):
            parts.setdefault(part.get("message_id") or "", []).append(_read_data(part))
        messages = [
            {"info": _read_data(message), "parts": parts.get(message.get("id") or "", [])}
            for message in database.rows("message", session_id=session)
        ]
        info = {
            "id": session,
            "parentID": row.get("parent_id"),
            "directory": row.get("directory"),
            "title": row.get("title"),
            "time": {"created": row.get("time_created"), "updated": row.get("time_updated")},
        }
        yield json.dumps({"info": info, "messages": messages}).encode() + b"\n"


def _read_data(row: Mapping[str, str | None]) -> dict[str, Any]:
    """Return what a row's JSON says, with the row's id; only that if it is damaged, or too large to be read."""
    try:
        found = json.loads(row.get("data") or "")
    except (ValueError, RecursionError):
        found = None
    return {**(found if isinstance(found, dict) else {}), "id": row.get("id")}

"""Open a session's file as lines (plain, compressed with Zstandard, or sessions in a database), and find what lies beside it."""

import contextlib
import io
import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
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


# ── Claude Code: a transcript's session, and the files that the client saved with it ──────────────

_RESULTS_FOLDER = "tool-results"
_SUBAGENTS_FOLDER = "subagents"
_AGENT_FILE = re.compile(r"agent-(.{1,200})\.jsonl")
_SAFE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_RESULT_END_BYTES = 131_072
"""Read from both ends of a long result. More than is stored, so that a secret is redacted before it is cut."""
_META_CHARACTERS_MAX = 65_536
_NEVER_WAIT = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""No link is followed, and no pipe is waited for."""


@dataclass(frozen=True, slots=True)
class TranscriptLocation:
    """The path of a transcript, and its session."""

    project: str
    """The folder of all sessions of a project."""
    session: str
    """The name of the session's own folder in it."""
    agent: str | None = None
    agent_type: str | None = None
    """The type of the subagent, from the `.meta.json` beside its transcript."""


def locate_transcript(path: str) -> TranscriptLocation:
    """Read from a transcript's path, and its `.meta.json`, what its lines do not say."""
    file = Path(path)
    named = _AGENT_FILE.fullmatch(file.name)
    if named is None:
        return TranscriptLocation(str(file.parent), file.stem)
    session = next((p.parent for p in file.parents if p.name == _SUBAGENTS_FOLDER), None)
    text = _read_below(str(file.parent), (f"{file.stem}.meta.json",)) or ""
    try:
        meta = json.loads(text[:_META_CHARACTERS_MAX])
    except (ValueError, RecursionError):
        meta = None
    return TranscriptLocation(
        str(session.parent if session else file.parent),
        session.name if session else "",
        named.group(1),
        _get_type(meta),
    )


def _get_type(meta: Any) -> str | None:
    found = meta.get("agentType") if isinstance(meta, dict) else None
    return found if isinstance(found, str) and found else None


def read_saved_output(location: TranscriptLocation, saved: str) -> str | None:
    """Read the result that the client says it saved at this path; None if it is not where it may be.

    A transcript may come from anywhere, so only the end of the path is trusted: the file must be in a
    `tool-results` folder of a session beside the transcript.
    """
    parts = PurePosixPath(saved.replace("\\", "/")).parts
    name = parts[-1] if parts else ""
    named_session = parts[-3] if parts[-2:-1] == (_RESULTS_FOLDER,) and parts[:-2] else ""
    for session in dict.fromkeys((location.session, named_session)):
        if all(_SAFE_NAME.fullmatch(part) for part in (session, name)):
            text = _read_below(location.project, (session, _RESULTS_FOLDER, name))
            if text is not None:
                return text
    return None


def _read_below(root: str, names: tuple[str, ...]) -> str | None:
    """Read a file below `root` without following a link; None if there is none."""
    handles: list[int] = []
    try:
        handles.append(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        for name in names[:-1]:
            handles.append(os.open(name, _NEVER_WAIT | os.O_DIRECTORY, dir_fd=handles[-1]))
        handles.append(os.open(names[-1], _NEVER_WAIT, dir_fd=handles[-1]))
        return "".join(_read_ends(handles[-1]))
    except (OSError, ValueError):  # ValueError: a name with a NUL
        return None
    finally:
        for handle in handles:
            os.close(handle)


def _read_ends(handle: int) -> Iterator[str]:
    """Yield the text of an open file; of a long one both ends, in whole lines."""
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        raise OSError("not a file")
    with os.fdopen(os.dup(handle), "rb") as file:
        if found.st_size <= 2 * _RESULT_END_BYTES:
            yield file.read(2 * _RESULT_END_BYTES).decode("utf-8", "replace")
            return
        head = file.read(_RESULT_END_BYTES)
        file.seek(found.st_size - _RESULT_END_BYTES)
        tail = file.read(_RESULT_END_BYTES)
    head = head[: head.rfind(b"\n") + 1] or head
    tail = tail[tail.find(b"\n") + 1 :]
    yield head.decode("utf-8", "replace")
    yield f"… [{found.st_size - len(head) - len(tail):,} bytes left in the file] …\n"
    yield tail.decode("utf-8", "replace")

"""The table of clients whose past sessions can be imported: where their files are, what reads them, how they open.

A file is plain, compressed with Zstandard, or a database of sessions.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import stat
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

from memd.errors import BadRequest
from memd.transfer import sources, transcripts
from memd.transfer.readers import PayloadQueue, SessionReader, get_text, read_object
from memd.transfer.readers.aider import AiderReader
from memd.transfer.readers.codex import CodexReader
from memd.transfer.readers.copilot import CopilotReader
from memd.transfer.readers.cursor import CursorReader
from memd.transfer.readers.gemini import GeminiReader
from memd.transfer.readers.opencode import OpencodeReader
from memd.transfer.readers.pi import PiReader
from memd.transfer.sources import (
    ImportSource,
    claude_directories,
    find_directory_by_name,
    home_directory,
)

if TYPE_CHECKING:
    from memd.store.foreign_sqlite import ForeignDatabase

_CLAUDE_HOME_FILES = ("history.jsonl", "settings.json", ".claude.json", "todos", "shell-snapshots")
"""Files beside `projects` in a configuration directory of Claude Code, and in no copy of transcripts."""
_BEGIN_BYTES_MAX = 262_144
"""Bytes of a file in which the first line with a time is looked for."""
_SMALL_FILE_BYTES = 1_048_576
_AIDER_FILE = ".aider.chat.history.md"


@dataclass(slots=True)
class SharedLines:
    """Lines that the readers of several files share."""

    seen: set[int] | None = None
    """Hashes of the ids of lines that were read, if copies are to be left out."""
    places: dict[int, transcripts.LinePlace] = field(default_factory=dict)
    names: dict[Path, Mapping[str, str]] = field(default_factory=dict)
    """File with what sessions are called → session → its name."""


@dataclass(frozen=True, slots=True)
class SessionSource:
    """Past sessions of one client."""

    name: str
    """The client's, as `capture` knows it, and as the user names the source."""
    title: str
    location: str
    """Where its files are by default, for people."""
    find_folders: Callable[[Mapping[str, str]], Iterable[Path]]
    """The folders and files where they are, given the environment."""
    is_session: Callable[[Path], bool]
    """Whether a file in such a folder is of a session."""
    make_reader: Callable[[Path, SharedLines], SessionReader]


def find_sessions(
    source: SessionSource, paths: Iterable[str] | None, environ: Mapping[str, str]
) -> list[str]:
    """List the files of sessions in these files and folders, or where the client has its own, oldest first."""
    given = source.find_folders(environ) if paths is None else map(Path, paths)
    existing = [path for path in given if paths is not None or path.exists()]
    found = {str(file.absolute()) for path in existing for file in _list_files(source, path)}
    plain = {
        path
        for path in found
        if not (path.endswith(COMPRESSED) and path.removesuffix(".zst") in found)
    }
    return sorted(plain, key=lambda path: (_find_begin(path), path))


def _list_files(source: SessionSource, path: Path) -> Iterator[Path]:
    """Yield a file itself; of a folder, every session's at any depth, and folders that cannot be read, to be reported."""
    if not path.is_dir():
        yield path
        return
    projects = path / "projects"
    # In a configuration directory the other folders have logs, which end in .jsonl too.
    if projects.is_dir() and any((path / name).exists() for name in _CLAUDE_HOME_FILES):
        path = projects
    unread: list[OSError] = []
    for parent, _, names in os.walk(path, onerror=unread.append):
        found = (Path(parent, name) for name in names)
        yield from (file for file in found if source.is_session(file) and file.is_file())
    yield from (Path(error.filename) for error in unread)


def _find_begin(path: str) -> int:
    """Return when a session begins, UTC milliseconds. A copy is younger than what is in it, so ask its lines."""
    try:
        found = Path(path).stat()
        if not stat.S_ISREG(found.st_mode):
            return 0  # a pipe is not waited for
        with Path(path).open("rb") as file:
            while file.tell() < _BEGIN_BYTES_MAX and (line := file.readline(_BEGIN_BYTES_MAX)):
                if (at := transcripts.read_line_time(line)) is not None:
                    return at
    except OSError:
        return 0  # importing the file reports it
    return found.st_mtime_ns // 1_000_000


def _find_below(
    variable: str, default: str, *patterns: str
) -> Callable[[Mapping[str, str]], Iterator[Path]]:
    """Return what lists the paths below a client's directory: the one that a variable names, else the default at home."""

    def find(environ: Mapping[str, str]) -> Iterator[Path]:
        top = Path(environ.get(variable) or home_directory(environ) / default)
        for pattern in patterns:
            yield from sorted(top.glob(pattern))

    return find


def _wait_for_place() -> PayloadQueue:
    """Return the queue for a file whose lines, and nothing else, say the directory."""
    return PayloadQueue(waits_for_place=True)


# ── Claude Code ──────────────────────────────────────────────────────────────────────────────────


_AGENT_FILE = re.compile(r"agent-(.{1,200})\.jsonl")
"""The file of a subagent; its type is in the `.meta.json` beside it."""


def _read_claude(path: Path, shared: SharedLines) -> SessionReader:
    named = _AGENT_FILE.fullmatch(path.name)
    meta = _read_json(path.with_suffix(".meta.json")) if named else {}
    return transcripts.TranscriptReader(
        named[1] if named else None,
        get_text(meta, "agentType"),
        seen=shared.seen,
        places=shared.places,
        queue=_wait_for_place(),
    )


# ── Codex CLI, Copilot CLI ───────────────────────────────────────────────────────────────────────


_CODEX_FOLDERS = ("sessions", "archived_sessions")


def _read_codex(path: Path, shared: SharedLines) -> SessionReader:
    """Make a reader of a Codex session; the names that the user gave to sessions lie beside their common folder."""
    tops = (one.parent for one in path.parents if one.name in _CODEX_FOLDERS)
    index = next(tops, path.parent) / "session_index.jsonl"
    if index not in shared.names:
        shared.names[index] = dict(_list_codex_names(_read_small(index) or ""))
    return CodexReader(names=shared.names[index], queue=_wait_for_place())


def _list_codex_names(text: str) -> Iterator[tuple[str, str]]:
    """Yield (session, name); a later name goes before an earlier one."""
    for line in text.splitlines():
        entry = read_object(line, Counter()) or {}
        session, name = get_text(entry, "id"), get_text(entry, "thread_name")
        if session and name:
            yield session, name


def _is_rollout(path: Path) -> bool:
    return path.name.startswith("rollout-") and path.name.endswith((".jsonl", ".jsonl.zst"))


_YAML_LINE = re.compile(r"^(\w+): (.*)$", re.MULTILINE)


def _read_copilot(path: Path, _: SharedLines) -> SessionReader:
    told = dict(_YAML_LINE.findall(_read_small(path.parent / "workspace.yaml") or ""))
    is_named = told.get("user_named") == "true"
    name = told.get("name", "").strip("'\"") if is_named else None
    return CopilotReader(path.parent.name, name, queue=_wait_for_place())


# ── Cursor ───────────────────────────────────────────────────────────────────────────────────────

_CURSOR_FOLDER = "agent-transcripts"
_CURSOR_SUBAGENTS = "subagents"
_ABSOLUTE_PATH = re.compile(r'"(/[^"\\\s]{1,1000})"')


def _read_cursor(path: Path, _: SharedLines) -> SessionReader:
    """Make a reader of a Cursor session; the file or its folder is named after it, subagents' files lie below."""
    folder = next((one for one in path.parents if one.name == _CURSOR_FOLDER), None)
    directory = None if folder is None else _find_cursor_directory(path, folder.parent.name)
    if path.parent.name == _CURSOR_SUBAGENTS:
        return CursorReader(path.parent.parent.name, directory, agent=path.stem)
    return CursorReader(path.stem, directory)


def _find_cursor_directory(path: Path, name: str) -> str | None:
    """Return the project whose folder has this name: its path without the first slash, other signs as dashes.

    The name is ambiguous. The files that the session names say what it means; else a directory that exists does.
    """
    with contextlib.suppress(OSError), path.open("rb") as file:
        text = file.read(_BEGIN_BYTES_MAX).decode("utf-8", "replace")
        for named in dict.fromkeys(_ABSOLUTE_PATH.findall(text)):
            deep = PurePosixPath(named)
            for place in map(str, (deep, *deep.parents)):
                if sources.name_folder(place[1:]) == name:
                    return place
    return find_directory_by_name(f"-{name}")


# ── Gemini CLI ───────────────────────────────────────────────────────────────────────────────────

_GEMINI_CHATS = "chats"


def _is_chat(path: Path) -> bool:
    is_named = path.name.startswith("session-") and path.suffix in (".json", ".jsonl")
    return is_named or (path.suffix == ".jsonl" and path.parent.parent.name == _GEMINI_CHATS)


def _read_gemini(path: Path, _: SharedLines) -> SessionReader:
    chats = next((one for one in path.parents if one.name == _GEMINI_CHATS), path.parent)
    parent = None if path.parent == chats else path.parent.name
    directory = _find_gemini_directory(chats.parent)
    return GeminiReader(directory, parent, is_document=path.suffix == ".json")


def _find_gemini_directory(folder: Path) -> str | None:
    """Return the project that a folder of chats belongs to: it says it, or is named after a hash of it."""
    root = _read_small(folder / ".project_root")
    if root is not None:
        return root.strip() or None
    projects = _read_json(folder.parent.parent / "projects.json").get("projects")
    for path, name in projects.items() if isinstance(projects, dict) else ():
        if folder.name in (name, hashlib.sha256(path.encode()).hexdigest()):
            return str(path)
    return None


def _read_json(path: Path) -> Mapping[str, Any]:
    return read_object(_read_small(path) or "", Counter()) or {}


def _read_small(path: Path) -> str | None:
    try:
        if not path.is_file():
            return None  # a pipe is not waited for
        with path.open("rb") as file:
            return file.read(_SMALL_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


# ── OpenCode, Pi, Aider ──────────────────────────────────────────────────────────────────────────


def _pi_folders(environ: Mapping[str, str]) -> list[Path]:
    home = Path(environ.get("PI_CODING_AGENT_DIR") or home_directory(environ) / ".pi" / "agent")
    return [Path(environ.get("PI_CODING_AGENT_SESSION_DIR") or home / "sessions")]


def _aider_folders(environ: Mapping[str, str]) -> list[Path]:
    """List the folders of Aider's history, which lies in the repository where it runs: here, and at home."""
    here = Path(environ.get("PWD") or ".")
    places = dict.fromkeys([home_directory(environ), here, *here.parents])
    return [place / _AIDER_FILE for place in places]


CLAUDE_CODE = SessionSource(
    "claude-code", "Claude Code", "~/.claude/projects or ~/.config/claude/projects",
    lambda environ: (one / "projects" for one in claude_directories(environ)),
    lambda path: path.suffix == ".jsonl", _read_claude,
)  # fmt: skip
SESSION_SOURCES: Mapping[str, SessionSource] = {
    one.name: one
    for one in (
        CLAUDE_CODE,
        SessionSource(
            "codex", "Codex CLI", "~/.codex/sessions and ~/.codex/archived_sessions",
            _find_below("CODEX_HOME", ".codex", *_CODEX_FOLDERS), _is_rollout, _read_codex,
        ),
        SessionSource(
            "copilot", "Copilot CLI", "~/.copilot/session-state/*/events.jsonl",
            _find_below("COPILOT_HOME", ".copilot", "session-state"),
            lambda path: path.name == "events.jsonl", _read_copilot,
        ),
        SessionSource(
            "cursor", "Cursor", "~/.cursor/projects/*/agent-transcripts",
            _find_below("", ".cursor", f"projects/*/{_CURSOR_FOLDER}"),
            lambda path: path.suffix == ".jsonl", _read_cursor,
        ),
        SessionSource(
            "gemini-cli", "Gemini CLI", "~/.gemini/tmp/*/chats",
            _find_below("GEMINI_CLI_HOME", "", f".gemini/tmp/*/{_GEMINI_CHATS}"), _is_chat, _read_gemini,
        ),
        SessionSource(
            "opencode", "OpenCode", "~/.local/share/opencode/opencode.db",
            _find_below("XDG_DATA_HOME", ".local/share", "opencode/opencode.db"),
            lambda path: path.suffix in (".json", ".db"),
            lambda _path, _shared: OpencodeReader(),
        ),
        SessionSource(
            "pi", "Pi", "~/.pi/agent/sessions",
            _pi_folders, lambda path: path.suffix == ".jsonl",
            lambda _path, _shared: PiReader(queue=_wait_for_place()),
        ),
        SessionSource(
            "aider", "Aider", f"{_AIDER_FILE} at home, here and above",
            _aider_folders, lambda path: path.name == _AIDER_FILE,
            lambda path, _: AiderReader(str(path.parent)),
        ),
    )
}  # fmt: skip
"""Name of a source → source."""

# ── Everything that memd import can read ──────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Memories of another program, or of a client."""

    name: str
    title: str
    find: Callable[[Iterable[Path], Mapping[str, str]], ImportSource]
    """(paths, environment) → its files: these, or where the program keeps them."""
    location: str
    """Where its files are by default; empty: the user must name them."""
    noun: str
    tier: str = "agent"
    hint: str = ""
    """What to know about the project of new memories, if the user has named none."""


Source = SessionSource | MemorySource

_MEMORY_SOURCES = (
    MemorySource(
        "knowledge-graph", "MCP memory server", sources.knowledge_graph_source,
        "$MEMORY_FILE_PATH, Claude's configuration and the npm cache", "memory.jsonl",
    ),
    MemorySource(
        "claude-memory", "Claude Code's memory files", sources.claude_memory_source,
        "~/.claude/projects/*/memory", "memory file", "file",
    ),
    MemorySource(
        "codex-memory", "Codex CLI's memory files", sources.codex_memory_source,
        "~/.codex/memories", "memory file", "file",
    ),
    MemorySource(
        "claude-mem", "claude-mem", sources.claude_mem_source, "~/.claude-mem/claude-mem.db",
        "database",
    ),
    MemorySource(
        "markdown", "notes", sources.markdown_source, "", "note", "file",
        "stored in the project of that folder; with `--project global` they are seen everywhere",
    ),
)  # fmt: skip

CATALOGUE: Mapping[str, Source] = {**SESSION_SOURCES, **{one.name: one for one in _MEMORY_SOURCES}}
"""Name of a source → source."""


# ── Opening a session's file ─────────────────────────────────────────────────────────────────────

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

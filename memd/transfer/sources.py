"""Find the files of each source of foreign memories, and read them."""

import functools
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from memd.errors import BadRequest
from memd.models import GLOBAL_PROJECT
from memd.paths import find_config_home, find_home
from memd.transfer import ForeignMemory, ReadIssues, foreign_memories, git_excludes, markdown
from memd.transfer.git_excludes import Rules

TEXT_FILE_BYTES_MAX = 4 * 1024 * 1024
"""A larger note is left out."""
GRAPH_BYTES_MAX = 64 * 1024 * 1024
"""A larger graph is refused, because it is read into memory."""
NOTE_SUFFIXES = (".md", ".markdown", ".mdown", ".mkd", ".mdx")
WATCHED_SUFFIXES = (*NOTE_SUFFIXES, ".txt", ".rst", ".adoc", ".org")
"""What is followed in a folder that the user has named: other plain texts, too."""
_GRAPH_SUFFIXES = (".jsonl", ".json")
_AGENTS_FOLDERS = ("agent-memory", "agent-memory-local")
"""Where Claude Code's subagents keep their memories: what a repository shares, and what it does not."""
_DEPENDENCY_FOLDERS = {"node_modules", "bower_components", "site-packages", "__pycache__"}
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BINARY_PROBE_BYTES = 8_192
"""A file with a NUL byte in its first bytes is binary."""
_CLIENT_CONFIGS = (
    ".claude.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
)
_CLIENT_CONFIG_BYTES_MAX = 16 * 1024 * 1024
_CODEX_MEMORIES = (foreign_memories.INDEX, foreign_memories.SUMMARY)
_SERVER_FOLDER = "node_modules/@modelcontextprotocol/server-memory/dist"
"""Where the reference memory server keeps its graph in the npm cache."""
_TRANSCRIPTS_READ_MAX = 5
_TRANSCRIPT_LINES_MAX = 100
_TRANSCRIPT_LINE_BYTES_MAX = 1024 * 1024
_DIRECTORIES_SEEN_MAX = 5_000
_NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]")

Stamp = tuple[int, int]
"""Bytes and modification time in µs: JSON's numbers are exact to 2**53, so nanoseconds do not fit."""
ReadMemories = Callable[[ReadIssues], Iterator[tuple[ForeignMemory, float]]]
"""Yields the memories of a file, each with the share of the file, 0 to 1, that is read by then."""


@dataclass(frozen=True, slots=True)
class ImportFile:
    """One file to be read."""

    path: str
    stamp: Stamp
    read: ReadMemories
    """Raises OSError and MemdError."""
    directory: str | None = None
    """The directory of the project of its memories, unless they name another one."""
    project: str | None = None
    """The name of that project if the directory is unknown; None: global."""
    is_complete: bool = True
    """Whether a memory that it does not have any more is withdrawn."""


@dataclass(slots=True)
class ImportSource:
    """The files of one kind that were found."""

    files: list[ImportFile] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    """The folders that were searched."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Reason → number of files that were left out."""
    failed: dict[str, str] = field(default_factory=dict)
    """Path → why it could not be looked at."""
    messages: list[str] = field(default_factory=list)
    """What the user should know."""
    withdraws_missing: bool = False
    """Whether the memories of a deleted file are withdrawn."""
    suffixes: tuple[str, ...] = NOTE_SUFFIXES
    mirrored: list[str] = field(default_factory=list)
    """The directories that were looked through; of a watched folder, which is mirrored: what is ignored by now is
    withdrawn, too, and each of these is watched."""

    def stamp(self, path: Path) -> Stamp | None:
        """Return the stamp of a file; None, with a reason in `failed`, if it has none."""
        try:
            return read_stamp(path)
        except OSError as error:
            self.failed[str(path)] = error.strerror or str(error)
            return None


def read_stamp(path: Path) -> Stamp:
    """Return the stamp of a file. Raises OSError."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns // 1_000


def knowledge_graph_source(paths: Iterable[Path], environ: Mapping[str, str]) -> ImportSource:
    """Find graphs of the reference MCP memory server; a folder stands for the graphs directly in it."""
    source = ImportSource()
    given = list(paths)
    found = [file for path in given for file in _list_graphs(path)]
    for path in found if given else find_knowledge_graphs(environ):
        if stamp := source.stamp(path):
            read = partial(_read_graph, path, stamp)
            source.files.append(ImportFile(str(path), stamp, read, None, GLOBAL_PROJECT))
    return source


def _list_graphs(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path.absolute()]
    found = (file for file in path.absolute().iterdir() if file.name.endswith(_GRAPH_SUFFIXES))
    return sorted(file for file in found if file.is_file())


def _read_graph(
    path: Path, stamp: Stamp, issues: ReadIssues
) -> Iterator[tuple[ForeignMemory, float]]:
    if stamp[0] > GRAPH_BYTES_MAX:
        raise BadRequest(f"larger than {GRAPH_BYTES_MAX // 1024**2} MiB; split it between lines")
    with path.open("rb") as file:
        found = foreign_memories.read_graph(file, stamp[1] // 1_000, issues)
    if not found:
        # The server has emptied its file by accident before, so its memories are not withdrawn.
        issues.broken.append("no entity in it")
    yield from _add_shares(found)


def claude_memory_source(
    paths: Iterable[Path],
    environ: Mapping[str, str],
    find_directory: Callable[[Path], str | None] | None = None,
) -> ImportSource:
    """Find Claude Code's memory files, in folders of them or in its configuration directory.

    `find_directory` returns the directory of a folder in `projects`.
    """
    source = ImportSource(withdraws_missing=True)
    for path in list(paths) or claude_directories(environ):
        is_folder = (path / markdown.MEMORY_INDEX).is_file() or path.name == "memory"
        for folder in [path] if is_folder else find_memory_folders(path):
            own, above = folder.absolute(), folder.absolute().parent
            if folder.name == "memory" and above.parent.name == "projects":
                directory = (find_directory or resolve_project_directory)(above)
                _add_memory_folder(own, source, directory, above.name)
            else:
                _add_memory_folder(own, source)
    return source


def add_agents_folders(source: ImportSource, roots: Iterable[str]) -> None:
    """Add the memory folders that Claude Code's subagents keep in these projects."""
    for root in roots:
        for name in _AGENTS_FOLDERS:
            for folder in sorted(Path(root, ".claude", name).glob("*")):
                if folder.is_dir():
                    _add_memory_folder(folder, source, root, root)


def is_shared_folder(path: str) -> bool:
    """Return whether a memory file may come with a repository, so that anybody may have written it."""
    return Path(path).parent.parent.name == _AGENTS_FOLDERS[0]


def find_memory_folders(path: Path) -> list[Path]:
    """List the folders of memory files in Claude Code's directory, its `projects`, or one of these."""
    if (path / "memory").is_dir():
        return [path / "memory"]
    base = path.parent if path.name == "projects" else path
    found = (*base.glob("projects/*/memory"), *base.glob("agent-memory/*"))
    return sorted(folder for folder in found if folder.is_dir())


def _add_memory_folder(
    folder: Path, source: ImportSource, directory: str | None = None, project: str = GLOBAL_PROJECT
) -> None:
    if folder.is_symlink() or folder.parent.is_symlink():
        source.skipped["a link"] += 1
        return
    files = []
    for path in sorted(folder.glob("*.md")):
        if path.is_symlink():
            source.skipped["a link"] += 1
        elif _is_own_file(path):
            files.append(path)
    if directory is None and project != GLOBAL_PROJECT and files:
        source.messages.append(
            f"the directory of {project} is unknown; its memories are kept under that name"
        )
    source.folders.append(str(folder))
    names = frozenset(path.name for path in files)
    for path in files:
        if stamp := source.stamp(path):
            read = partial(_read_claude_memory, path, names - {path.name}, stamp, source)
            source.files.append(ImportFile(str(path), stamp, read, directory, project))


def _is_own_file(path: Path) -> bool:
    """Return whether the path is a regular file of this user."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def is_client_memory(path: Path) -> bool:
    """Return whether a client keeps its own memory in this file, by its directory."""
    *_, top, above, name, _file = ("", "", "", *path.parts)
    return (name == "memory" and top == "projects") or above in _AGENTS_FOLDERS


def _read_claude_memory(
    path: Path, beside: frozenset[str], stamp: Stamp, source: ImportSource, issues: ReadIssues
) -> Iterator[tuple[ForeignMemory, float]]:
    if path.is_symlink():  # since it was found
        raise BadRequest("a link")
    text = _read_text(path, source, issues)
    found, reason = markdown.read_claude_memory(path.name, text, stamp[1] // 1_000, beside)
    if reason and not issues.unread:
        issues.skipped.append(reason)
    yield from _add_shares(found)


def codex_memory_source(paths: Iterable[Path], environ: Mapping[str, str]) -> ImportSource:
    """Find the memory files of Codex CLI, in folders of them or in its directory."""
    source = ImportSource(withdraws_missing=True)
    own = Path(environ.get("CODEX_HOME") or home_directory(environ) / ".codex") / "memories"
    for given in list(paths) or [own]:
        below = given / "memories"
        folder = (below if below.is_dir() else given).absolute()
        files = [folder] if folder.is_file() else [folder / name for name in _CODEX_MEMORIES]
        source.folders += [str(folder)] if folder.is_dir() else []
        for path in files:
            is_file = path.is_file() if list(paths) else _is_own_file(path)
            if is_file and (stamp := source.stamp(path)):
                read = partial(_read_codex_memory, path, stamp, source)
                source.files.append(ImportFile(str(path), stamp, read, None, GLOBAL_PROJECT))
    return source


def _read_codex_memory(
    path: Path, stamp: Stamp, source: ImportSource, issues: ReadIssues
) -> Iterator[tuple[ForeignMemory, float]]:
    text = _read_text(path, source, issues)
    found = foreign_memories.read_codex_memory(path.name, text, stamp[1] // 1_000)
    if not found and not issues.unread:
        issues.skipped.append("no list of what was learned")
    yield from _add_shares(found)


def claude_mem_source(paths: Iterable[Path], environ: Mapping[str, str]) -> ImportSource:
    """Find claude-mem's databases; a folder stands for the one in it."""
    source = ImportSource()
    given = [path / "claude-mem.db" if path.is_dir() else path for path in paths]
    default = claude_mem_database(environ)
    folders = {
        session: folder
        for base in claude_directories(environ)
        for session, folder in session_folders(base).items()
    }
    for found in given or ([default] if default.exists() else []):
        path = found.absolute()
        stamp = source.stamp(path)
        wal = Path(f"{path}-wal")
        if stamp and wal.exists():
            size, changed = source.stamp(wal) or (0, 0)
            stamp = (stamp[0] + size, max(stamp[1], changed))
        if stamp:
            read = partial(_read_claude_mem, path, folders, source)
            source.files.append(ImportFile(str(path), stamp, read, is_complete=False))
    return source


def _read_claude_mem(
    path: Path, folders: Mapping[str, Path], source: ImportSource, issues: ReadIssues
) -> Iterator[tuple[ForeignMemory, float]]:
    from memd.store import foreign_sqlite  # noqa: PLC0415  # brings apsw, which `memd --help` need not load

    resolve = functools.cache(resolve_project_directory)
    with foreign_sqlite.open_foreign(str(path)) as file:
        columns = file.tables()
        tables = foreign_memories.memory_tables(columns)
        if not tables:
            raise BadRequest("a database, but not claude-mem's: it has none of its tables")
        if "user_prompts" in columns and (count := file.count("user_prompts")):
            source.messages.append(
                f"its prompts ({count:,}) are left out; `memd import claude-code` reads them"
            )
        has_sessions = foreign_memories.SESSION_TABLE in columns
        rows = file.rows(foreign_memories.SESSION_TABLE) if has_sessions else iter(())
        sessions = foreign_memories.read_sessions(rows)
        total = sum(file.count(table) for table in tables)
        done = 0
        for table in tables:
            for row in file.rows(table):
                done += 1
                found = foreign_memories.read_row(table, row, sessions)
                issues.skipped += [] if found else [f"{table} without words"]
                for memory in found:
                    folder = folders.get(memory.session or "")
                    directory = resolve(folder) if folder else None
                    yield replace(memory, directory=directory), min(1.0, done / max(1, total))


def watched_source(folder: Path, environ: Mapping[str, str], *, by_headings: bool) -> ImportSource:
    """Find the notes in a folder that is mirrored: what is gone from it is withdrawn."""
    source = ImportSource(withdraws_missing=True, suffixes=WATCHED_SUFFIXES, mirrored=[str(folder)])
    return markdown_source([folder], environ, source=source, by_headings=by_headings)


def markdown_source(
    paths: Iterable[Path],
    environ: Mapping[str, str],
    *,
    source: ImportSource | None = None,
    by_headings: bool = False,
) -> ImportSource:
    """Find the notes in folders, and single notes. By headings each is a memory of its own, else only of a long note."""
    source = source or ImportSource()
    for given in paths:
        path = given.absolute()
        is_folder = path.is_dir()
        top = path if is_folder else path.parent
        files = [path]
        if is_folder:
            source.folders.append(str(path))
            rules = git_excludes.read_rules_above(path, environ)
            files = sorted(_find_notes(path, rules, source, environ))
        for file in files:
            if stamp := source.stamp(file):
                name = file.relative_to(top).as_posix()
                read = partial(_read_note, file, name, stamp, source, by_headings)
                source.files.append(ImportFile(str(file), stamp, read, str(top)))
    return source


def _find_notes(
    here: Path, rules: Rules, source: ImportSource, environ: Mapping[str, str]
) -> Iterator[Path]:
    """Yield the notes in a folder and below it.

    Links are left out: they lead to a note that is read anyway, or out of the folder.
    """
    rules = (*rules, *git_excludes.read_rules(here, environ))
    if source.mirrored and str(here) not in source.mirrored:
        source.mirrored.append(str(here))
    try:
        with os.scandir(here) as listing:
            entries = list(listing)
    except OSError as error:
        source.failed[str(here)] = error.strerror or str(error)
        return
    for entry in entries:
        path = Path(entry.path)
        is_directory = entry.is_dir(follow_symlinks=False)
        if not (entry.name.lower().endswith(source.suffixes) or entry.is_dir()):
            continue
        if reason := _skip_reason(entry, rules, is_directory=is_directory):
            source.skipped[reason] += 1
        elif is_client_memory(path) and not is_directory:
            source.skipped["a client's own memory: `memd import claude-memory`"] += 1
        elif is_directory:
            yield from _find_notes(path, rules, source, environ)
        elif entry.is_file(follow_symlinks=False):
            yield path


def _skip_reason(entry: "os.DirEntry[str]", rules: Rules, *, is_directory: bool) -> str | None:
    """Return why a note or a folder is left out; None if it is read."""
    if entry.name.startswith("."):
        return "hidden"
    if entry.is_symlink():
        return "a link"
    if is_directory and entry.name in _DEPENDENCY_FOLDERS:
        return "packages of others"
    is_ignored = git_excludes.is_excluded(Path(entry.path), rules, is_directory=is_directory)
    return ".gitignore" if is_ignored else None


def _read_note(
    path: Path, name: str, stamp: Stamp, source: ImportSource, by_headings: bool, issues: ReadIssues
) -> Iterator[tuple[ForeignMemory, float]]:
    text, at = _read_text(path, source, issues), stamp[1] // 1_000
    found = markdown.read_note(name, text, at, by_headings=by_headings)
    if not found and not issues.unread:
        issues.skipped.append("empty")
    yield from _add_shares(found)


def _read_text(path: Path, source: ImportSource, issues: ReadIssues) -> str:
    """Read a text file; say why it was not read, or in which unusual encoding."""
    raw, issues.unread = b"", ""
    if not path.is_file():
        issues.unread = "no regular file"
    elif path.stat().st_size > TEXT_FILE_BYTES_MAX:
        issues.unread = f"larger than {TEXT_FILE_BYTES_MAX // 1024**2} MiB"
    else:
        raw = path.read_bytes()
        if b"\0" in raw[:_BINARY_PROBE_BYTES] and not raw.startswith(_UTF16_MARKS):
            issues.unread = "binary"
    if issues.unread:
        source.messages.append(f"left out: {path}: {issues.unread}")
        return ""
    text, encoding = decode_text(raw)
    if encoding != "UTF-8":
        source.messages.append(f"{path} is not UTF-8; it was read as {encoding}")
    return text


def decode_text(raw: bytes) -> tuple[str, str]:
    """Return a text and its encoding: UTF-8, UTF-16 with a byte order mark, else Windows-1252."""
    if raw.startswith(_UTF16_MARKS):
        return raw.decode("utf-16", "replace"), "UTF-16"
    try:
        return raw.decode("utf-8"), "UTF-8"
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace"), "Windows-1252"


def _add_shares(memories: Sequence[ForeignMemory]) -> Iterator[tuple[ForeignMemory, float]]:
    for number, memory in enumerate(memories, start=1):
        yield memory, number / len(memories)


def claude_directories(environ: Mapping[str, str]) -> list[Path]:
    """Return Claude Code's configuration directories: the chosen one, else both that it has used."""
    if chosen := environ.get("CLAUDE_CONFIG_DIR"):
        directories = [Path(chosen)]
    else:
        home = home_directory(environ)
        settings = Path(find_config_home(dict(environ), str(home)))
        directories = [home / ".claude", settings / "claude"]
    return [path for path in directories if path.is_dir()]


def claude_mem_database(environ: Mapping[str, str]) -> Path:
    """Return the path of claude-mem's database."""
    folder = environ.get("CLAUDE_MEM_DATA_DIR")
    return (Path(folder) if folder else home_directory(environ) / ".claude-mem") / "claude-mem.db"


def find_knowledge_graphs(environ: Mapping[str, str]) -> list[Path]:
    """List the graphs that the environment, a client's configuration or the npm cache name."""
    home = home_directory(environ)
    named = [path for path in [environ.get("MEMORY_FILE_PATH")] if path]
    named += [path for name in _CLIENT_CONFIGS for path in _read_configured_paths(home / name)]
    expanded = [home / path[2:] if path.startswith("~/") else Path(path) for path in named]
    cached = sorted((home / ".npm" / "_npx").glob(f"*/{_SERVER_FOLDER}/memory.json*"))
    found = [path for path in (*expanded, *cached) if path.is_absolute() and path.is_file()]
    return list(dict.fromkeys(found))


def _read_configured_paths(config: Path) -> Iterator[str]:
    """Yield the memory files that a client's configuration passes to its servers."""
    try:
        if config.stat().st_size > _CLIENT_CONFIG_BYTES_MAX:
            return
        found = json.loads(config.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return
    servers = found.get("mcpServers") if isinstance(found, dict) else None
    for server in servers.values() if isinstance(servers, dict) else ():
        environ = server.get("env") if isinstance(server, dict) else None
        path = environ.get("MEMORY_FILE_PATH") if isinstance(environ, dict) else None
        if isinstance(path, str):
            yield path


def home_directory(environ: Mapping[str, str]) -> Path:
    """Return the user's home; the root directory if there is none."""
    return Path(find_home(dict(environ)) or "/")


def session_folders(base: Path) -> dict[str, Path]:
    """Return session → the folder in `projects` that has its transcript."""
    return {path.stem: path.parent for path in base.glob("projects/*/*.jsonl")}


def resolve_project_directory(folder: Path) -> str | None:
    """Return the directory that a folder of Claude Code's `projects` stands for; None if unknown.

    The folder's name is the path with each other character replaced by a dash, so it is ambiguous. The
    transcripts in it have the real path; without one, the name is compared with existing directories.
    """
    return _read_recorded_directory(folder) or find_directory_by_name(folder.name)


def _read_recorded_directory(folder: Path) -> str | None:
    """Return the directory that the newest transcripts were made in."""
    stamped = []
    for path in folder.glob("*.jsonl"):
        try:
            stamped.append((path.stat().st_mtime_ns, path))
        except OSError:
            continue
    for _, path in sorted(stamped, reverse=True)[:_TRANSCRIPTS_READ_MAX]:
        try:
            found = _read_transcript_directory(path, folder.name)
        except OSError:
            continue
        if found:
            return found
    return None


def _read_transcript_directory(path: Path, name: str) -> str | None:
    """Return the first directory in a transcript that the folder is named after, else the first one."""
    first = None
    with path.open("rb") as file:
        for _ in range(_TRANSCRIPT_LINES_MAX):
            line = file.readline(_TRANSCRIPT_LINE_BYTES_MAX)
            if not line:
                break
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            found = record.get("cwd") if isinstance(record, dict) else None
            if isinstance(found, str) and found.startswith("/"):
                if name_folder(found) == name:
                    return found
                first = first or found
    return first


def find_directory_by_name(name: str) -> str | None:
    """Return the one existing directory whose path, with dashes for all signs, is this name; None if there are several."""
    found: list[str] = []
    seen = 0
    frontier = [Path("/")]
    while frontier and seen < _DIRECTORIES_SEEN_MAX:
        try:
            with os.scandir(frontier.pop()) as entries:
                paths = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        seen += len(paths)
        for path in paths:
            if name_folder(path) == name:
                found.append(path)
            elif name.startswith(f"{name_folder(path)}-"):
                frontier.append(Path(path))
    return found[0] if len(found) == 1 else None


def name_folder(path: str) -> str:
    """Return the name of the folder that a client keeps for a directory: its path with dashes for all signs."""
    return _NOT_ALPHANUMERIC.sub("-", path)

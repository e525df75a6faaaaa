"""Locate and read each source."""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from memd import gitignore
from memd.errors import BadRequest
from memd.gitignore import PathPattern
from memd.models import GLOBAL_PROJECT
from memd.store import foreign_sqlite
from memd.transfer import claude_mem, knowledge_graph, markdown
from memd.transfer.record import ForeignMemory, ReadIssues

# MERGED from memd.exchange.homes:
# MERGED Where other memories live on this machine, and which directory a folder of Claude Code's stands for.
# MERGED
# MERGED The client names a project's folder by its path with every sign replaced by a dash, so a name alone is
# MERGED ambiguous. The transcripts in the folder have recorded the real directory; without one, the name is
# MERGED held against the directories that there are. Not here: reading the memories.


_TRANSCRIPTS_MAX = 5
_LINES_MAX = 100
_LINE_BYTES = 1024 * 1024
_LOOKS_MAX = 5_000
_SIGN = re.compile(r"[^A-Za-z0-9]")
_SERVER = "node_modules/@modelcontextprotocol/server-memory/dist"
_CLIENTS = (
    ".claude.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
)
_CONFIG_BYTES = 16 * 1024 * 1024


def claude_directories(environ: Mapping[str, str]) -> list[Path]:
    """Claude Code's own directories; it has had two."""
    given = environ.get("CLAUDE_CONFIG_DIR")
    home = _home_directory(environ)
    both = [home / ".claude", home / ".config" / "claude"]
    return [path for path in ([Path(given)] if given else both) if path.is_dir()]


def claude_mem_database(environ: Mapping[str, str]) -> Path:
    """claude-mem's database."""
    given = environ.get("CLAUDE_MEM_DATA_DIR")
    return (
        Path(given) if given else _home_directory(environ) / ".claude-mem"
    ) / "claude-mem.db"


def find_knowledge_graphs(environ: Mapping[str, str]) -> list[Path]:
    """The files of reference memory servers: as the environment, a client, or the npm cache has them."""
    home = _home_directory(environ)
    given = [path for path in [environ.get("MEMORY_FILE_PATH")] if path]
    given += [path for name in _CLIENTS for path in _read_configured_paths(home / name)]
    named = [home / path[2:] if path.startswith("~/") else Path(path) for path in given]
    cached = sorted((home / ".npm" / "_npx").glob(f"*/{_SERVER}/memory.json*"))
    found = [path for path in (*named, *cached) if path.is_absolute() and path.is_file()]
    return list(dict.fromkeys(found))


def find_memory_folders(base: Path) -> list[Path]:
    """The folders with memory files in Claude Code's own directory."""
    found = (*base.glob("projects/*/memory"), *base.glob("agent-memory/*"))
    return sorted(folder for folder in found if folder.is_dir())


def resolve_project_directory(folder: Path) -> str | None:
    """The directory that a folder of `projects` stands for; None if nothing tells."""
    return _read_recorded_directory(folder) or _decode_folder_name(folder.name)


def session_folders(base: Path) -> dict[str, Path]:
    """Session → the folder in `projects` that has its transcript."""
    return {path.stem: path.parent for path in base.glob("projects/*/*.jsonl")}


def _home_directory(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or Path.home())


def _read_configured_paths(config: Path) -> Iterator[str]:
    """The memory files that the servers of a client's configuration are given."""
    try:
        if config.stat().st_size > _CONFIG_BYTES:
            return
        found = json.loads(config.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return
    servers = found.get("mcpServers") if isinstance(found, dict) else None
    for server in servers.values() if isinstance(servers, dict) else ():
        given = server.get("env") if isinstance(server, dict) else None
        path = given.get("MEMORY_FILE_PATH") if isinstance(given, dict) else None
        if isinstance(path, str):
            yield path


def _read_recorded_directory(folder: Path) -> str | None:
    """The directory that the newest transcripts say that they were made in."""
    stamped = []
    for path in folder.glob("*.jsonl"):
        try:
            stamped.append((path.stat().st_mtime_ns, path))
        except OSError:
            continue
    for _, path in sorted(stamped, reverse=True)[:_TRANSCRIPTS_MAX]:
        try:
            found = _find_directory_in_transcript(path, folder.name)
        except OSError:
            continue
        if found:
            return found
    return None


def _find_directory_in_transcript(path: Path, name: str) -> str | None:
    """The first directory in a transcript; one that the folder is named after, if there is such."""
    first = None
    with path.open("rb") as file:
        for _ in range(_LINES_MAX):
            line = file.readline(_LINE_BYTES)
            try:
                record = json.loads(line) if line else None
            except (ValueError, RecursionError):
                continue
            found = record.get("cwd") if isinstance(record, dict) else None
            if isinstance(found, str) and found.startswith("/"):
                if _SIGN.sub("-", found) == name:
                    return found
                first = first or found
            if not line:
                break
    return first


def _decode_folder_name(name: str) -> str | None:
    """The directory whose path is written like this name; None if there is none, or more than one."""
    found: list[str] = []
    looked = 0
    frontier = [Path("/")]
    while frontier and looked < _LOOKS_MAX:
        here = frontier.pop()
        for path in _list_directories(here):
            looked += 1
            written = _SIGN.sub("-", str(path))
            if written == name:
                found.append(str(path))
            elif name.startswith(f"{written}-"):
                frontier.append(path)
    return found[0] if len(found) == 1 else None


def _list_directories(here: Path) -> Iterator[Path]:
    try:
        with os.scandir(here) as entries:
            yield from (Path(one.path) for one in entries if one.is_dir(follow_symlinks=False))
    except OSError:
        return


# MERGED from memd.exchange.folder:
# MERGED The notes in a folder: which files are read, which are left out, and why.
# MERGED
# MERGED Left out are hidden files, what `.gitignore` leaves out, the packages of others, links (a link into the
# MERGED folder leads to a file that is read anyway, one out of it leads to what was not asked for), and what is
# MERGED no text. Not here: what the notes say.


FILE_BYTES_MAX = 4 * 1024 * 1024
ENDINGS = (".md", ".markdown", ".mdown", ".mkd", ".mdx")
_PACKAGES = frozenset({"node_modules", "bower_components", "site-packages", "__pycache__"})
PathPatterns = tuple[PathPattern, ...]
"""The patterns of one file, in order."""
_IGNORE_BYTES = 256 * 1024
_SNIFFED = 8_192


@dataclass(slots=True)
class NoteFiles:
    """The notes, and how many other things were left out for which reason."""

    files: list[Path] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)
    unreadable: dict[str, str] = field(default_factory=dict)
    """Directory → why it could not be looked into."""


def find_notes(top: Path) -> NoteFiles:
    """The notes in a folder and below it, in order of their paths."""
    found = NoteFiles()
    top = top.absolute()
    _collect_notes(top, _read_parent_rules(top), found)
    found.files.sort()
    return found


@dataclass(frozen=True, slots=True)
class DecodedText:
    """What a file says, or why it was not read."""

    words: str = ""
    encoding: str = "UTF-8"
    unread: str = ""


def read_text(path: Path) -> DecodedText:
    """The text of a file, in whatever it is written. OSError if it cannot be read."""
    if not path.is_file():
        return DecodedText(unread="no regular file")
    if path.stat().st_size > FILE_BYTES_MAX:
        return DecodedText(unread=f"larger than {FILE_BYTES_MAX // 1024 // 1024} MiB")
    raw = path.read_bytes()
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return DecodedText(raw.decode("utf-16", "replace"), "UTF-16")
    if b"\0" in raw[:_SNIFFED]:
        return DecodedText(unread="binary")
    try:
        return DecodedText(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return DecodedText(raw.decode("cp1252", "replace"), "Windows-1252")


def _collect_notes(
    here: Path, rules: Sequence[tuple[Path, PathPatterns]], found: NoteFiles
) -> None:
    own = _read_ignore_rules(here)
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
        why = _skip_reason(one, path, rules, is_directory=is_directory)
        if why:
            found.left[why] += 1
        elif why is not None:
            continue
        elif is_directory:
            _collect_notes(path, rules, found)
        elif one.is_file(follow_symlinks=False):
            found.files.append(path)


def _skip_reason(
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
    return ".gitignore" if _is_git_ignored(path, rules, is_directory=is_directory) else None


def _is_git_ignored(
    path: Path, rules: Sequence[tuple[Path, PathPatterns]], *, is_directory: bool
) -> bool:
    verdict = False
    for folder, one in rules:
        name = path.relative_to(folder).as_posix()
        last = gitignore.last_match(one, name, is_directory=is_directory)
        verdict = verdict if last is None else not last.is_negated
    return verdict


def _read_parent_rules(top: Path) -> list[tuple[Path, PathPatterns]]:
    """The rules of the folders above, if they belong to the same git repository."""
    if (top / ".git").exists():
        return []
    above: list[tuple[Path, PathPatterns]] = []
    for folder in top.parents:
        own = _read_ignore_rules(folder)
        above += [(folder, own)] if own else []
        if (folder / ".git").exists():
            return above[::-1]
    return []


def _read_ignore_rules(folder: Path) -> PathPatterns | None:
    path = folder / ".gitignore"
    try:
        if not path.is_file() or path.stat().st_size > _IGNORE_BYTES:
            return None
        lines = path.read_text("utf-8", "replace").splitlines()
        return tuple(found for line in lines if (found := gitignore.parse_pattern(line)))
    except OSError:
        return None


# MERGED from memd.exchange.shelves:
# MERGED What there is to read of each kind of memory: its files, and how each is read.
# MERGED
# MERGED A cargo is one file with the reader that makes entries of it; what it holds is read only when it is
# MERGED asked for. Not here: what a file means (the readers), where it is by default (homes.py), handing over.


_GRAPH_BYTES_MAX = 64 * 1024 * 1024
_GRAPH_ENDINGS = (".jsonl", ".json")
_MICRO_PER_MS = 1_000
_NANO_PER_MICRO = 1_000
_UNREAD = ("user_prompts",)

ReadMemories = Callable[[ReadIssues], Iterator[tuple[ForeignMemory, float]]]
"""Yields the entries of a file, each with the part of the file, 0 to 1, that was read by then."""


@dataclass(frozen=True, slots=True)
class ImportFile:
    """One file to be read."""

    path: str
    stamp: tuple[int, int]
    """Bytes, modification time in microseconds: the wire's numbers are exact to 2**53."""
    read: ReadMemories
    """Raises OSError and MemdError."""
    directory: str | None = None
    """Whose project its entries belong to unless they say otherwise; None with no `project`: global."""
    project: str | None = None
    is_whole: bool = True
    """Whether what it does not say any more is no longer so."""


@dataclass(slots=True)
class ImportSource:
    """Everything of one kind that was found."""

    cargoes: list[ImportFile] = field(default_factory=list)
    tops: list[str] = field(default_factory=list)
    """The folders that were looked through."""
    left: Counter[str] = field(default_factory=Counter)
    """Why files were left out → how many."""
    failed: dict[str, str] = field(default_factory=dict)
    """Path → why it could not be looked at."""
    notes: list[str] = field(default_factory=list)
    """What the user should know."""
    is_kept_tidy: bool = False
    """Whether a file that is gone was taken away because it was wrong."""


def knowledge_graph_source(paths: Iterable[Path], environ: Mapping[str, str]) -> ImportSource:
    """The graphs of the reference MCP memory server; a folder stands for the graphs right in it."""
    shelf = ImportSource()
    given = list(paths)
    found = [file for path in given for file in _inside(path, _GRAPH_ENDINGS)]
    for path in found if given else find_knowledge_graphs(environ):
        stamp = _stamp(path, shelf)
        if stamp is not None:
            shelf.cargoes.append(
                ImportFile(str(path), stamp, _graph(path, stamp), None, GLOBAL_PROJECT)
            )
    return shelf


def claude_memory_source(paths: Iterable[Path], environ: Mapping[str, str]) -> ImportSource:
    """Claude Code's own memory files: of folders of them, or of its whole directory."""
    shelf = ImportSource(is_kept_tidy=True)
    for path in list(paths) or claude_directories(environ):
        folders = [path] if _is_memory(path) else []
        for one in folders or _memory_folders(path):
            _shelve_memory(one.absolute(), shelf)
    return shelf


def claude_mem_source(paths: Iterable[Path], environ: Mapping[str, str]) -> ImportSource:
    """claude-mem's databases; a folder stands for the one in it."""
    shelf = ImportSource()
    given = [path / "claude-mem.db" if path.is_dir() else path for path in paths]
    default = claude_mem_database(environ)
    for path in given or ([default] if default.exists() else []):
        stamp = _stamp(path.absolute(), shelf)
        log = Path(f"{path.absolute()}-wal")
        if stamp is not None and log.exists():
            more = _stamp(log, shelf) or (0, 0)
            stamp = (stamp[0] + more[0], max(stamp[1], more[1]))
        if stamp is not None:
            read = _database(path.absolute(), _Owners(claude_directories(environ)), shelf)
            shelf.cargoes.append(ImportFile(str(path.absolute()), stamp, read, is_whole=False))
    return shelf


def markdown_source(paths: Iterable[Path], _: Mapping[str, str]) -> ImportSource:
    """The notes of folders, and single notes."""
    shelf = ImportSource()
    for given in paths:
        path = given.absolute()
        found = find_notes(path) if path.is_dir() else NoteFiles([path])
        top = path if path.is_dir() else path.parent
        shelf.tops += [str(path)] if path.is_dir() else []
        shelf.left += found.left
        shelf.failed |= found.unreadable
        for file in found.files:
            stamp = _stamp(file, shelf)
            if stamp is not None:
                name = file.relative_to(top).as_posix()
                read = _note(file, name, stamp, shelf)
                shelf.cargoes.append(ImportFile(str(file), stamp, read, str(top)))
    return shelf


def _shelve_memory(one: Path, shelf: ImportSource) -> None:
    found = sorted(path for path in one.glob("*.md") if path.is_file())
    beside = frozenset(path.name for path in found)
    directory = project = None
    if one.name == "memory" and one.parent.parent.name == "projects":
        directory = resolve_project_directory(one.parent)
        project = one.parent.name
        if directory is None and found:
            shelf.notes.append(
                f"nothing tells which directory {project} is; its memories are kept under that name"
            )
    else:
        project = GLOBAL_PROJECT
    shelf.tops.append(str(one))
    for path in found:
        stamp = _stamp(path, shelf)
        if stamp is not None:
            read = _memory(path, beside - {path.name}, stamp, shelf)
            shelf.cargoes.append(ImportFile(str(path), stamp, read, directory, project))


def _is_memory(path: Path) -> bool:
    return (path / markdown.INDEX).is_file() or path.name == "memory"


def _memory_folders(path: Path) -> list[Path]:
    """The folders of memory files in Claude Code's directory, in its `projects`, or in one of these."""
    base = path.parent if path.name == "projects" else path
    own = [path / "memory"] if (path / "memory").is_dir() else []
    return own or find_memory_folders(base)


def _inside(path: Path, endings: tuple[str, ...]) -> list[Path]:
    if not path.is_dir():
        return [path.absolute()]
    found = (file for file in path.absolute().iterdir() if file.name.endswith(endings))
    return sorted(file for file in found if file.is_file())


def _stamp(path: Path, shelf: ImportSource) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError as error:
        shelf.failed[str(path)] = error.strerror or str(error)
        return None
    return found.st_size, found.st_mtime_ns // _NANO_PER_MICRO


def _evenly(entries: list[ForeignMemory]) -> Iterator[tuple[ForeignMemory, float]]:
    for number, entry in enumerate(entries, start=1):
        yield entry, number / len(entries)


def _graph(path: Path, stamp: tuple[int, int]) -> ReadMemories:
    def read(trouble: ReadIssues) -> Iterator[tuple[ForeignMemory, float]]:
        if stamp[0] > _GRAPH_BYTES_MAX:
            raise BadRequest(
                f"larger than {_GRAPH_BYTES_MAX // 1024 // 1024} MiB; split it, lines at a time"
            )
        with path.open("rb") as file:
            found = knowledge_graph.read_graph(file, stamp[1] // _MICRO_PER_MS, trouble)
        if not found:
            # An accident has emptied such files before: nothing is taken to be gone.
            trouble.broken.append("no entity in it")
        yield from _evenly(found)

    return read


def _note(path: Path, name: str, stamp: tuple[int, int], shelf: ImportSource) -> ReadMemories:
    def read(trouble: ReadIssues) -> Iterator[tuple[ForeignMemory, float]]:
        text = _text(path, shelf, trouble)
        found = markdown.read_note(name, text, stamp[1] // _MICRO_PER_MS)
        trouble.skipped += [] if found or trouble.unread else ["empty"]
        yield from _evenly(found)

    return read


def _memory(
    path: Path, beside: frozenset[str], stamp: tuple[int, int], shelf: ImportSource
) -> ReadMemories:
    def read(trouble: ReadIssues) -> Iterator[tuple[ForeignMemory, float]]:
        text = _text(path, shelf, trouble)
        found, why = markdown.read_claude_memory(
            path.name, text, stamp[1] // _MICRO_PER_MS, beside
        )
        trouble.skipped += [why] if why and not trouble.unread else []
        yield from _evenly(found)

    return read


def _text(path: Path, shelf: ImportSource, trouble: ReadIssues) -> str:
    text = read_text(path)
    trouble.unread = text.unread
    if text.unread:
        shelf.notes.append(f"left out: {path}: {text.unread}")
    elif text.encoding != "UTF-8":
        shelf.notes.append(f"{path} is not UTF-8; it was read as {text.encoding}")
    return text.words


def _database(path: Path, owners: "_Owners", shelf: ImportSource) -> ReadMemories:
    def read(trouble: ReadIssues) -> Iterator[tuple[ForeignMemory, float]]:
        with foreign_sqlite.open_foreign(str(path)) as file:
            there = file.tables()
            tables = claude_mem.memory_tables(there)
            if not tables:
                raise BadRequest("a database, but not claude-mem's: it has none of its tables")
            counts = {table: file.count(table) for table in tables}
            for table in _UNREAD:
                if table in there and (count := file.count(table)):
                    shelf.notes.append(
                        f"its prompts ({count:,}) are left out; `memd import claude-code` reads them"
                    )
            known: dict[str, claude_mem.WatchedSession] = {}
            if claude_mem.SESSION_TABLE in there:
                known = claude_mem.read_sessions(file.rows(claude_mem.SESSION_TABLE))
            total, done = max(1, sum(counts.values())), 0
            for table in tables:
                for row in file.rows(table):
                    done += 1
                    found = claude_mem.read_row(table, row, known)
                    trouble.skipped += [] if found else [f"{table} without words"]
                    for entry in found:
                        yield owners.placed(entry), done / total

    return read


class _Owners:
    """Which directory a session ran in, as its transcript says, while there is one."""

    def __init__(self, bases: Iterable[Path]) -> None:
        self._folders = {s: path for base in bases for s, path in session_folders(base).items()}
        self._directories: dict[Path, str | None] = {}

    def placed(self, entry: ForeignMemory) -> ForeignMemory:
        place = self._folders.get(entry.session or "")
        if place is None:
            return entry
        if place not in self._directories:
            self._directories[place] = resolve_project_directory(place)
        return replace(entry, directory=self._directories[place])

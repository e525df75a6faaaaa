"""What there is to read of each kind of memory: its files, and how each is read.

A cargo is one file with the reader that makes entries of it; what it holds is read only when it is
asked for. Not here: what a file means (the readers), where it is by default (homes.py), handing over.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from memd.errors import BadRequest
from memd.exchange import claude_mem, claude_memory, folder, homes, knowledge_graph, markdown
from memd.exchange.entry import Entry, Trouble
from memd.models import GLOBAL_PROJECT
from memd.store import foreign

_GRAPH_BYTES_MAX = 64 * 1024 * 1024
_GRAPH_ENDINGS = (".jsonl", ".json")
_MICRO_PER_MS = 1_000
_NANO_PER_MICRO = 1_000
_UNREAD = ("user_prompts",)

Read = Callable[[Trouble], Iterator[tuple[Entry, float]]]
"""Yields the entries of a file, each with the part of the file, 0 to 1, that was read by then."""


@dataclass(frozen=True, slots=True)
class Cargo:
    """One file to be read."""

    path: str
    stamp: tuple[int, int]
    """Bytes, modification time in microseconds: the wire's numbers are exact to 2**53."""
    read: Read
    """Raises OSError and MemdError."""
    directory: str | None = None
    """Whose project its entries belong to unless they say otherwise; None with no `project`: global."""
    project: str | None = None
    is_whole: bool = True
    """Whether what it does not say any more is no longer so."""


@dataclass(slots=True)
class Shelf:
    """Everything of one kind that was found."""

    cargoes: list[Cargo] = field(default_factory=list)
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


def knowledge_graph_files(paths: Iterable[Path], environ: Mapping[str, str]) -> Shelf:
    """The graphs of the reference MCP memory server; a folder stands for the graphs right in it."""
    shelf = Shelf()
    given = list(paths)
    found = [file for path in given for file in _inside(path, _GRAPH_ENDINGS)]
    for path in found if given else homes.knowledge_graphs(environ):
        stamp = _stamp(path, shelf)
        if stamp is not None:
            shelf.cargoes.append(
                Cargo(str(path), stamp, _graph(path, stamp), None, GLOBAL_PROJECT)
            )
    return shelf


def claude_memory_files(paths: Iterable[Path], environ: Mapping[str, str]) -> Shelf:
    """Claude Code's own memory files: of folders of them, or of its whole directory."""
    shelf = Shelf(is_kept_tidy=True)
    for path in list(paths) or homes.claude(environ):
        folders = [path] if _is_memory(path) else []
        for one in folders or _memory_folders(path):
            _shelve_memory(one.absolute(), shelf)
    return shelf


def claude_mem_files(paths: Iterable[Path], environ: Mapping[str, str]) -> Shelf:
    """claude-mem's databases; a folder stands for the one in it."""
    shelf = Shelf()
    given = [path / "claude-mem.db" if path.is_dir() else path for path in paths]
    default = homes.claude_mem(environ)
    for path in given or ([default] if default.exists() else []):
        stamp = _stamp(path.absolute(), shelf)
        log = Path(f"{path.absolute()}-wal")
        if stamp is not None and log.exists():
            more = _stamp(log, shelf) or (0, 0)
            stamp = (stamp[0] + more[0], max(stamp[1], more[1]))
        if stamp is not None:
            read = _database(path.absolute(), _Owners(homes.claude(environ)), shelf)
            shelf.cargoes.append(Cargo(str(path.absolute()), stamp, read, is_whole=False))
    return shelf


def markdown_files(paths: Iterable[Path], _: Mapping[str, str]) -> Shelf:
    """The notes of folders, and single notes."""
    shelf = Shelf()
    for given in paths:
        path = given.absolute()
        found = folder.notes(path) if path.is_dir() else folder.Found([path])
        top = path if path.is_dir() else path.parent
        shelf.tops += [str(path)] if path.is_dir() else []
        shelf.left += found.left
        shelf.failed |= found.unreadable
        for file in found.files:
            stamp = _stamp(file, shelf)
            if stamp is not None:
                name = file.relative_to(top).as_posix()
                read = _note(file, name, stamp, shelf)
                shelf.cargoes.append(Cargo(str(file), stamp, read, str(top)))
    return shelf


def _shelve_memory(one: Path, shelf: Shelf) -> None:
    found = sorted(path for path in one.glob("*.md") if path.is_file())
    beside = frozenset(path.name for path in found)
    directory = project = None
    if one.name == "memory" and one.parent.parent.name == "projects":
        directory = homes.directory_of(one.parent)
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
            shelf.cargoes.append(Cargo(str(path), stamp, read, directory, project))


def _is_memory(path: Path) -> bool:
    return (path / claude_memory.INDEX).is_file() or path.name == "memory"


def _memory_folders(path: Path) -> list[Path]:
    """The folders of memory files in Claude Code's directory, in its `projects`, or in one of these."""
    base = path.parent if path.name == "projects" else path
    own = [path / "memory"] if (path / "memory").is_dir() else []
    return own or homes.memory_folders(base)


def _inside(path: Path, endings: tuple[str, ...]) -> list[Path]:
    if not path.is_dir():
        return [path.absolute()]
    found = (file for file in path.absolute().iterdir() if file.name.endswith(endings))
    return sorted(file for file in found if file.is_file())


def _stamp(path: Path, shelf: Shelf) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError as error:
        shelf.failed[str(path)] = error.strerror or str(error)
        return None
    return found.st_size, found.st_mtime_ns // _NANO_PER_MICRO


def _evenly(entries: list[Entry]) -> Iterator[tuple[Entry, float]]:
    for number, entry in enumerate(entries, start=1):
        yield entry, number / len(entries)


def _graph(path: Path, stamp: tuple[int, int]) -> Read:
    def read(trouble: Trouble) -> Iterator[tuple[Entry, float]]:
        if stamp[0] > _GRAPH_BYTES_MAX:
            raise BadRequest(
                f"larger than {_GRAPH_BYTES_MAX // 1024 // 1024} MiB; split it, lines at a time"
            )
        with path.open("rb") as file:
            found = knowledge_graph.read(file, stamp[1] // _MICRO_PER_MS, trouble)
        if not found:
            # An accident has emptied such files before: nothing is taken to be gone.
            trouble.broken.append("no entity in it")
        yield from _evenly(found)

    return read


def _note(path: Path, name: str, stamp: tuple[int, int], shelf: Shelf) -> Read:
    def read(trouble: Trouble) -> Iterator[tuple[Entry, float]]:
        text = _text(path, shelf, trouble)
        found = markdown.read(name, text, stamp[1] // _MICRO_PER_MS)
        trouble.skipped += [] if found or trouble.unread else ["empty"]
        yield from _evenly(found)

    return read


def _memory(path: Path, beside: frozenset[str], stamp: tuple[int, int], shelf: Shelf) -> Read:
    def read(trouble: Trouble) -> Iterator[tuple[Entry, float]]:
        text = _text(path, shelf, trouble)
        found, why = claude_memory.read(path.name, text, stamp[1] // _MICRO_PER_MS, beside)
        trouble.skipped += [why] if why and not trouble.unread else []
        yield from _evenly(found)

    return read


def _text(path: Path, shelf: Shelf, trouble: Trouble) -> str:
    text = folder.text_of(path)
    trouble.unread = text.unread
    if text.unread:
        shelf.notes.append(f"left out: {path}: {text.unread}")
    elif text.encoding != "UTF-8":
        shelf.notes.append(f"{path} is not UTF-8; it was read as {text.encoding}")
    return text.words


def _database(path: Path, owners: "_Owners", shelf: Shelf) -> Read:
    def read(trouble: Trouble) -> Iterator[tuple[Entry, float]]:
        with foreign.opened(str(path)) as file:
            there = file.tables()
            tables = claude_mem.tables(there)
            if not tables:
                raise BadRequest("a database, but not claude-mem's: it has none of its tables")
            counts = {table: file.count(table) for table in tables}
            for table in _UNREAD:
                if table in there and (count := file.count(table)):
                    shelf.notes.append(
                        f"its prompts ({count:,}) are left out; `memd import claude-code` reads them"
                    )
            known: dict[str, claude_mem.Session] = {}
            if claude_mem.SESSION_TABLE in there:
                known = claude_mem.sessions(file.rows(claude_mem.SESSION_TABLE))
            total, done = max(1, sum(counts.values())), 0
            for table in tables:
                for row in file.rows(table):
                    done += 1
                    found = claude_mem.read(table, row, known)
                    trouble.skipped += [] if found else [f"{table} without words"]
                    for entry in found:
                        yield owners.placed(entry), done / total

    return read


class _Owners:
    """Which directory a session ran in, as its transcript says, while there is one."""

    def __init__(self, bases: Iterable[Path]) -> None:
        self._folders = {
            s: path for base in bases for s, path in homes.transcripts(base).items()
        }
        self._directories: dict[Path, str | None] = {}

    def placed(self, entry: Entry) -> Entry:
        place = self._folders.get(entry.session or "")
        if place is None:
            return entry
        if place not in self._directories:
            self._directories[place] = homes.directory_of(place)
        return replace(entry, directory=self._directories[place])

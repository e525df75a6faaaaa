"""import."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from memd.cli import archive, daemon_call, output
from memd.errors import Unreachable

# MERGED from memd.cli.importing:
# MERGED The part of `memd import` that reads the memories of other programs, and says what became of them.


if TYPE_CHECKING:
    from memd.transfer.importer import ImportOptions, MemoryImportReport, Progress
    from memd.transfer.sources import ImportSource

Drawn = Callable[[], AbstractContextManager["Progress"]]
"""Draws how far the import is."""
_PATIENT_S = 300.0
"""A batch is answered once it can be found, and a learned model may have to read it first."""
_SHOWN_MAX = 20
_OUTCOMES = {
    "created": "new",
    "duplicate": "known already",
    "revised": "with another title, or other tags or files",
    "revived": "said again",
    "forgotten": "left out, for they were forgotten on purpose",
    "superseded": "older replaced",
}


@dataclass(frozen=True, slots=True)
class Source:
    """Another memory that can be read."""

    find: str
    """The function of exchange/shelves.py that finds its files."""
    place: str
    """Where it is by default, in words; empty: a path must be given."""
    noun: str
    tier: str = "agent"
    hint: str = ""
    """What to know about where new memories are kept, unless a project was named."""


SOURCES = {
    "knowledge-graph": Source(
        "knowledge_graph_source",
        "$MEMORY_FILE_PATH, Claude's configuration and the npm cache",
        "memory.jsonl",
    ),
    "claude-memory": Source(
        "claude_memory_source", "~/.claude/projects/*/memory", "memory file", "file"
    ),
    "claude-mem": Source("claude_mem_source", "~/.claude-mem/claude-mem.db", "database"),
    "markdown": Source(
        "markdown_source",
        "",
        "note",
        "file",
        "kept in the project of that folder; `--project global` shows them everywhere",
    ),
}
NAMES = ("claude-code", *SOURCES)
"""Everything that `memd import` reads; the first are transcripts (import_.py)."""


def run_importing(
    name: str, paths: Sequence[Path], project: str | None, drawn: Drawn, *, dry_run: bool
) -> None:
    """Import from one of SOURCES. Exits 1 if something could not be read."""
    from memd.transfer import sources

    source = SOURCES[name]
    if not paths and not source.place:
        daemon_call.refuse(f"say which folder: `memd import {name} PATH`")
    find: Callable[..., ImportSource] = getattr(sources, source.find)
    shelf = find([path.expanduser() for path in paths], os.environ)
    if not (shelf.cargoes or shelf.failed or shelf.tops):
        looked = ", ".join(map(str, paths)) or source.place
        print(f"no {source.noun} found in {looked}")
        return
    waybill = _waybill(name, project, dry_run=dry_run)
    try:
        with drawn() as progress:
            report = _bring(shelf, waybill, progress)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here")
        raise
    print("\n".join(_lines(report, shelf, source)))
    if source.hint and project is None and report.outcomes["created"]:
        print(source.hint)
    if report.failed or report.broken:
        raise typer.Exit(1)


def _waybill(name: str, project: str | None, *, dry_run: bool) -> "ImportOptions":
    from memd.transfer.importer import ImportOptions

    where = None if project is None else daemon_call.place(project)
    if where == "current":
        where = daemon_call.here() or daemon_call.refuse(
            "the directory where you stand is gone"
        )
    return ImportOptions(f"import:{name}", SOURCES[name].tier, where, dry_run)


def _bring(
    shelf: "ImportSource", waybill: "ImportOptions", progress: "Progress"
) -> "MemoryImportReport":
    from memd.transfer import importer

    try:
        known = daemon_call.call("memd/imports")["imports"]
    except Unreachable:
        if not waybill.is_dry_run:
            raise
        known = {}
    marks = Marks({key: (int(size), int(at)) for key, (size, at) in known.items()})
    return importer.import_source(shelf, waybill, (_remember, _withdraw), marks, progress)


class Marks(dict[str, tuple[int, int]]):
    """What was read whole: key → (bytes, modification time in µs); told to the daemon as it grows."""

    def __setitem__(self, key: str, stamp: tuple[int, int]) -> None:
        """Mark a file, here and in the vault."""
        daemon_call.call("memd/imports/mark", path=key, size=stamp[0], modified_at=stamp[1])
        super().__setitem__(key, stamp)


def _remember(memories: list[dict[str, Any]]) -> Sequence[Mapping[str, Any]]:
    kept: Sequence[Mapping[str, Any]] = daemon_call.call(
        "memd/remember", _PATIENT_S, memories=memories
    )["remembered"]
    return kept


def _withdraw(path: str, staying: list[int]) -> int:
    gone = daemon_call.call("memd/imports/withdraw", _PATIENT_S, path=path, staying=staying)
    return len(gone["withdrawn"])


def _lines(
    report: "MemoryImportReport", shelf: "ImportSource", source: Source
) -> Iterator[str]:
    verb = "would read" if report.is_dry_run else "read"
    unchanged = f"; {len(report.unchanged):,} unchanged since the last import"
    yield (
        f"{verb} {output.plural(len(report.done), source.noun)}"
        f"{unchanged if report.unchanged else ''}"
    )
    if report.kinds:
        yield f"found: {output.counts(report.kinds)}"
    told = [
        f"{report.outcomes[key]:,} {said}"
        for key, said in _OUTCOMES.items()
        if report.outcomes[key]
    ]
    if told:
        yield f"memories: {'; '.join(told)}"
    if report.withdrawn:
        yield f"hidden: {output.plural(report.withdrawn, 'memory')} that the files do not say any more"
    if report.skipped:
        yield f"left out: {output.counts(report.skipped)}"
    yield from map(output.line, dict.fromkeys(shelf.notes))
    yield from _listed("gone since the last import", report.gone)
    if report.gone and not shelf.is_kept_tidy:
        yield "what was read from them stays; `memd forget` takes it away"
    yield from _listed("could not be read", report.broken)
    for path, why in report.failed.items():
        where = "" if why.startswith(path) else f"{output.line(path)}: "
        yield f"failed: {where}{output.line(why)}"


def _listed(label: str, paths: Sequence[str]) -> Iterator[str]:
    yield from (f"{label}: {output.line(path)}" for path in paths[:_SHOWN_MAX])
    if len(paths) > _SHOWN_MAX:
        yield f"{label}: {len(paths) - _SHOWN_MAX:,} more"


# MERGED from memd.cli.import_:
# MERGED `memd import`: past sessions, and what other memories know. Idempotent and resumable.
# MERGED
# MERGED Not here: the memories of other programs (importing.py).


Progress_import_ = Callable[[str, int, int], None]
_NANO_PER_MICRO = 1_000
_SETTLE_S = 60.0


def run_import(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help=f"One of {', '.join(NAMES)}, {archive.NAME}; or a file of `memd export`.",
        ),
    ],
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Files, or directories of them; if left out, where the source keeps them.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only say what would be stored; with no daemon, only what would be read.",
        ),
    ] = False,
    project: Annotated[
        str | None,
        typer.Option(
            help="Keep all of it in this project: global, current, a name or a directory. "
            "Not for transcripts, which know their own."
        ),
    ] = None,
) -> None:
    """Bring in what was there before memd. A second time, only what is new or has changed counts.

    claude-code: the transcripts of past sessions, from ~/.claude/projects and ~/.config/claude/projects.

    claude-memory: Claude Code's own MEMORY.md and notes, from ~/.claude/projects/*/memory.

    claude-mem: its observations and summaries, from ~/.claude-mem/claude-mem.db.

    knowledge-graph: the reference MCP memory server's memory.jsonl, wherever Claude keeps it.

    markdown: the notes of a folder; PATH says which.

    vault: a file of `memd export`; all of it is taken in, or nothing. - reads standard input.
    """
    if (file := _export(source, paths or ())) is not None:
        if project is not None:
            daemon_call.refuse(
                "what was exported knows its projects; --project is for the other sources"
            )
        archive.run_moved_in(file, _progress, dry_run=dry_run)
        return
    if source not in NAMES:
        _refuse(source)
    for path in paths or ():
        if not path.exists():
            daemon_call.refuse(f"there is no {path}")
    if source in SOURCES:
        run_importing(source, paths or (), project, _progress, dry_run=dry_run)
        return
    if project is not None:
        daemon_call.refuse(
            "transcripts know their projects; --project is for the other sources"
        )
    _transcripts(paths, dry_run=dry_run)


def _refuse(source: str) -> NoReturn:
    """Say what is wrong with a source that is none: most likely it was meant to be a file."""
    knows = f"import knows {', '.join(NAMES)}"
    if Path(source).is_file():
        daemon_call.refuse(
            f"{source} is no file of `memd export`; if another program wrote it, say which: {knows}"
        )
    if os.sep in source:
        daemon_call.refuse(f"there is no file {source}; {knows}, or a file of `memd export`")
    daemon_call.refuse(f"{knows}, not {source!r}")


def _export(source: str, paths: Sequence[Path]) -> Path | None:
    """Return the export that is meant, if one is."""
    if source != archive.NAME:
        is_one = source not in NAMES and not paths and archive.is_export(Path(source))
        return Path(source) if is_one else None
    if len(paths) != 1:
        daemon_call.refuse("say which file: `memd import vault FILE`")
    if str(paths[0]) != archive.STDIN and not paths[0].is_file():
        daemon_call.refuse(f"there is no {paths[0]}")
    return paths[0]


def _transcripts(paths: Sequence[Path] | None, *, dry_run: bool) -> None:
    """Read the transcripts of past sessions."""
    from memd.capture import truncate
    from memd.transfer import transcript_importer

    files = transcript_importer.find_transcripts(
        [str(p) for p in paths] if paths else None, os.environ
    )
    if not files:
        print(f"no transcripts found in {_places(paths)}")
        return
    carried = Carried(dry_run=dry_run)
    is_alone = dry_run and not daemon_call.answers()
    marks: MutableMapping[str, tuple[int, int]] = {} if is_alone else ImportMarks(_known())
    send = None if is_alone else carried.send
    report = transcript_importer.TranscriptImportReport(is_dry_run=dry_run)
    now = time.time_ns() // 1_000_000
    try:
        with _progress() as progress:
            transcript_importer.import_transcripts(
                files,
                send,
                marks,
                progress,
                truncate=truncate.clean_payload,
                report=report,
                now=now,
            )
    except KeyboardInterrupt:
        print("\n".join(_lines_import_(report)))
        print("interrupted; the same command goes on from here")
        raise
    print("\n".join(_lines_import_(report)))
    if carried.last_event:
        print(_settle(carried.last_event))
    if report.failed:
        raise typer.Exit(1)


def _places(paths: Sequence[Path] | None) -> str:
    """Name where was looked."""
    home = os.environ.get("CLAUDE_CONFIG_DIR")
    own = f"{home}/projects" if home else "~/.claude/projects or ~/.config/claude/projects"
    return ", ".join(map(str, paths)) if paths else own


class ImportMarks(dict[str, tuple[int, int]]):
    """What was read to its end: path → (size, modification time in ns); told to the daemon as it grows.

    The wire carries microseconds, for JSON's numbers are exact only to 2**53.
    """

    def __init__(self, known: Mapping[str, tuple[int, int]]) -> None:
        super().__init__(
            {path: (size, _exact(path, micros)) for path, (size, micros) in known.items()}
        )

    def __setitem__(self, path: str, stamp: tuple[int, int]) -> None:
        """Mark a file, here and in the vault."""
        size, nanos = stamp
        daemon_call.call(
            "memd/imports/mark", path=path, size=size, modified_at=nanos // _NANO_PER_MICRO
        )
        super().__setitem__(path, stamp)


def _exact(path: str, micros: int) -> int:
    """Return the file's own time if that is the one meant, else one that equals no file's."""
    with contextlib.suppress(OSError):
        nanos = Path(path).stat().st_mtime_ns
        if nanos // _NANO_PER_MICRO == micros:
            return nanos
    return -1


def _known() -> dict[str, tuple[int, int]]:
    found = daemon_call.call("memd/imports")["imports"]
    return {path: (int(size), int(micros)) for path, (size, micros) in found.items()}


class Carried:
    """What has been handed to the daemon; with a dry run, what it was asked about."""

    def __init__(self, *, dry_run: bool) -> None:
        self.last_event = 0
        self._asked = {"dry_run": True} if dry_run else {}

    def send(self, events: list[dict[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Hand over a batch; one receipt each."""
        answer = daemon_call.call("memd/capture", events=events, **self._asked)
        receipts: Sequence[Mapping[str, Any]] = answer["receipts"]
        stored = [one["seq"] or 0 for one in receipts if one["outcome"] == "stored"]
        self.last_event = max([self.last_event, *stored])
        return receipts


def _settle(last_event: int) -> str:
    """Wait until what was imported can be found, but not for ever; say how much there is."""
    deadline = time.monotonic() + _SETTLE_S
    while time.monotonic() < deadline:
        # A question that insists on an event is the one way to wait for it.
        answer = daemon_call.call(
            "memd/search", query="import", k=1, project="all", min_event=last_event
        )
        if not answer.get("waited"):
            count = daemon_call.call("memd/status")["summaries"]["count"]
            return f"in memory: {output.plural(count, 'memory')}, all of them can be found"
    return "the daemon still distils what was imported; `memd status` tells how far it is"


@contextlib.contextmanager
def _progress() -> Iterator[Progress_import_]:
    """Draw a bar on a terminal; else say each file on stderr once it was read."""
    if not sys.stderr.isatty():
        lines = _Lines()
        yield lines
        lines.end()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def draw(path: str, done: int, total: int) -> None:
            bar.update(task, description=Path(path).name[:40], completed=done, total=total)

        yield draw


class _Lines:
    """A line per file, once it was read."""

    def __init__(self) -> None:
        self._path = self._said = ""

    def __call__(self, path: str, done: int, total: int) -> None:
        if path != self._path:
            self.end()
        self._path = path
        self._said = f"{output.size(done)} of {output.size(total)}  {path}"

    def end(self) -> None:
        """Tell of the last one, too."""
        if self._said:
            print(self._said, file=sys.stderr)


def _lines_import_(report: Any) -> Iterator[str]:
    verb = "would read" if report.is_dry_run else "read"
    unchanged = f"; {len(report.unchanged):,} unchanged since the last import"
    growing = f"; {len(report.growing):,} of them may still grow"
    yield (
        f"{verb} {output.plural(len(report.done), 'file')}"
        f"{growing if report.growing else ''}{unchanged if report.unchanged else ''}"
    )
    yield f"events: {output.counts(report.events) or 'none'}"
    yield from _became(report)
    if report.skipped:
        yield f"lines left out: {output.counts(report.skipped)}"
    for path, why in report.failed.items():
        yield f"failed: {path}: {output.line(why)}"


def _became(report: Any) -> Iterator[str]:
    """Say what became of the events, or would."""
    if report.is_dry_run and not report.outcomes and report.events:
        yield "no daemon runs that could say which of them are stored already"
    elif report.is_dry_run:
        said = {"stored": "would be stored", "duplicate": "known already"}
        told = {said.get(name, name): count for name, count in report.outcomes.items()}
        if told:
            yield f"outcomes: {output.counts(told)}"
    elif report.outcomes:
        yield f"outcomes: {output.counts(report.outcomes)}"
    if report.reasons:
        yield f"not kept: {output.counts(report.reasons)}"

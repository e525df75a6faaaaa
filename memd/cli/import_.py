"""`memd import`: past sessions, and what other memories know. Idempotent and resumable.

Not here: the memories of other programs (importing.py).
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from memd.cli import door, importing, moved_in, show

Progress = Callable[[str, int, int], None]
_NANO_PER_MICRO = 1_000
_SETTLE_S = 60.0


def run(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help=f"One of {', '.join(importing.NAMES)}, {moved_in.NAME}; or a file of `memd export`.",
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
            door.refuse(
                "what was exported knows its projects; --project is for the other sources"
            )
        moved_in.run(file, _progress, dry_run=dry_run)
        return
    if source not in importing.NAMES:
        _refuse(source)
    for path in paths or ():
        if not path.exists():
            door.refuse(f"there is no {path}")
    if source in importing.SOURCES:
        importing.run(source, paths or (), project, _progress, dry_run=dry_run)
        return
    if project is not None:
        door.refuse("transcripts know their projects; --project is for the other sources")
    _transcripts(paths, dry_run=dry_run)


def _refuse(source: str) -> NoReturn:
    """Say what is wrong with a source that is none: most likely it was meant to be a file."""
    knows = f"import knows {', '.join(importing.NAMES)}"
    if Path(source).is_file():
        door.refuse(
            f"{source} is no file of `memd export`; if another program wrote it, say which: {knows}"
        )
    if os.sep in source:
        door.refuse(f"there is no file {source}; {knows}, or a file of `memd export`")
    door.refuse(f"{knows}, not {source!r}")


def _export(source: str, paths: Sequence[Path]) -> Path | None:
    """Return the export that is meant, if one is."""
    if source != moved_in.NAME:
        is_one = (
            source not in importing.NAMES and not paths and moved_in.is_export(Path(source))
        )
        return Path(source) if is_one else None
    if len(paths) != 1:
        door.refuse("say which file: `memd import vault FILE`")
    if str(paths[0]) != moved_in.STDIN and not paths[0].is_file():
        door.refuse(f"there is no {paths[0]}")
    return paths[0]


def _transcripts(paths: Sequence[Path] | None, *, dry_run: bool) -> None:
    """Read the transcripts of past sessions."""
    from memd.capture import bound
    from memd.exchange import carrier

    files = carrier.find_transcripts([str(p) for p in paths] if paths else None, os.environ)
    if not files:
        print(f"no transcripts found in {_places(paths)}")
        return
    carried = Carried(dry_run=dry_run)
    is_alone = dry_run and not door.answers()
    marks: MutableMapping[str, tuple[int, int]] = {} if is_alone else Marks(_known())
    send = None if is_alone else carried.send
    report = carrier.ImportReport(is_dry_run=dry_run)
    now = time.time_ns() // 1_000_000
    try:
        with _progress() as progress:
            carrier.carry(
                files, send, marks, progress, truncate=bound.clean, report=report, now=now
            )
    except KeyboardInterrupt:
        print("\n".join(_lines(report)))
        print("interrupted; the same command goes on from here")
        raise
    print("\n".join(_lines(report)))
    if carried.last_event:
        print(_settle(carried.last_event))
    if report.failed:
        raise typer.Exit(1)


def _places(paths: Sequence[Path] | None) -> str:
    """Name where was looked."""
    home = os.environ.get("CLAUDE_CONFIG_DIR")
    own = f"{home}/projects" if home else "~/.claude/projects or ~/.config/claude/projects"
    return ", ".join(map(str, paths)) if paths else own


class Marks(dict[str, tuple[int, int]]):
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
        door.call(
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
    found = door.call("memd/imports")["imports"]
    return {path: (int(size), int(micros)) for path, (size, micros) in found.items()}


class Carried:
    """What has been handed to the daemon; with a dry run, what it was asked about."""

    def __init__(self, *, dry_run: bool) -> None:
        self.last_event = 0
        self._asked = {"dry_run": True} if dry_run else {}

    def send(self, events: list[dict[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Hand over a batch; one receipt each."""
        answer = door.call("memd/capture", events=events, **self._asked)
        receipts: Sequence[Mapping[str, Any]] = answer["receipts"]
        stored = [one["seq"] or 0 for one in receipts if one["outcome"] == "stored"]
        self.last_event = max([self.last_event, *stored])
        return receipts


def _settle(last_event: int) -> str:
    """Wait until what was imported can be found, but not for ever; say how much there is."""
    deadline = time.monotonic() + _SETTLE_S
    while time.monotonic() < deadline:
        # A question that insists on an event is the one way to wait for it.
        answer = door.call(
            "memd/search", query="import", k=1, project="all", min_event=last_event
        )
        if not answer.get("waited"):
            count = door.call("memd/status")["summaries"]["count"]
            return f"in memory: {show.plural(count, 'memory')}, all of them can be found"
    return "the daemon still distils what was imported; `memd status` tells how far it is"


@contextlib.contextmanager
def _progress() -> Iterator[Progress]:
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
        self._said = f"{show.size(done)} of {show.size(total)}  {path}"

    def end(self) -> None:
        """Tell of the last one, too."""
        if self._said:
            print(self._said, file=sys.stderr)


def _lines(report: Any) -> Iterator[str]:
    verb = "would read" if report.is_dry_run else "read"
    unchanged = f"; {len(report.unchanged):,} unchanged since the last import"
    growing = f"; {len(report.growing):,} of them may still grow"
    yield (
        f"{verb} {show.plural(len(report.done), 'file')}"
        f"{growing if report.growing else ''}{unchanged if report.unchanged else ''}"
    )
    yield f"events: {show.counts(report.events) or 'none'}"
    yield from _became(report)
    if report.skipped:
        yield f"lines left out: {show.counts(report.skipped)}"
    for path, why in report.failed.items():
        yield f"failed: {path}: {show.line(why)}"


def _became(report: Any) -> Iterator[str]:
    """Say what became of the events, or would."""
    if report.is_dry_run and not report.outcomes and report.events:
        yield "no daemon runs that could say which of them are stored already"
    elif report.is_dry_run:
        said = {"stored": "would be stored", "duplicate": "known already"}
        told = {said.get(name, name): count for name, count in report.outcomes.items()}
        if told:
            yield f"outcomes: {show.counts(told)}"
    elif report.outcomes:
        yield f"outcomes: {show.counts(report.outcomes)}"
    if report.reasons:
        yield f"not kept: {show.counts(report.reasons)}"

"""`memd import`: past sessions into memory. Idempotent and resumable; memd's own hook adds to it."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from memd.cli import door, show

Progress = Callable[[str, int, int], None]
_NANO_PER_MICRO = 1_000
_SETTLE_S = 60.0


def run(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="claude-code.")],
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Transcripts or directories of them; if left out, ~/.claude/projects.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be read; needs no daemon.")
    ] = False,
) -> None:
    """Read the transcripts of past sessions: `memd import claude-code`."""
    if source != "claude-code":
        door.refuse(f"import knows claude-code, not {source!r}")
    for path in paths or ():
        if not path.exists():
            door.refuse(f"there is no {path}")
    from memd.exchange import carrier

    files = carrier.find_transcripts([str(p) for p in paths] if paths else None, os.environ)
    if not files:
        print(f"no transcripts found in {_places(paths)}")
        return
    marks: MutableMapping[str, tuple[int, int]] = {} if dry_run else Marks(_known())
    carried = Carried()
    with _progress() as progress:
        report = carrier.carry(files, carried.send, marks, progress, dry_run=dry_run)
    print("\n".join(_lines(report)))
    if carried.last_event:
        print(_settle(carried.last_event))
    if report.failed:
        raise typer.Exit(1)


def _places(paths: Sequence[Path] | None) -> str:
    """Name where was looked."""
    home = os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude"
    return ", ".join(map(str, paths)) if paths else f"{home}/projects"


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
    """What has been handed to the daemon."""

    def __init__(self) -> None:
        self.last_event = 0

    def send(self, events: list[dict[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Hand over a batch; one receipt each."""
        receipts: Sequence[Mapping[str, Any]] = door.call("memd/capture", events=events)[
            "receipts"
        ]
        stored = [one["seq"] for one in receipts if one["outcome"] == "stored"]
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
    """Draw a bar on a terminal; else say each file once on stderr."""
    if not sys.stderr.isatty():
        yield _Lines()
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
    """A line per file."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, path: str, done: int, total: int) -> None:
        if path != self._last:
            self._last = path
            print(f"{show.size(done)} of {show.size(total)}  {path}", file=sys.stderr)


def _lines(report: Any) -> Iterator[str]:
    verb = "would read" if report.is_dry_run else "read"
    unchanged = f"; {len(report.unchanged):,} unchanged since the last import"
    yield f"{verb} {show.plural(len(report.done), 'file')}{unchanged if report.unchanged else ''}"
    yield f"events: {show.counts(report.events) or 'none'}"
    if report.outcomes:
        yield f"outcomes: {show.counts(report.outcomes)}"
    if report.skipped:
        yield f"lines left out: {show.counts(report.skipped)}"
    for path, why in report.failed.items():
        yield f"failed: {path}: {show.line(why)}"

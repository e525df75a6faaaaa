"""`memd import`: past sessions and the memories of other programs. Can be repeated and interrupted."""

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer import Argument, Option

from memd.capture import truncate
from memd.cli import archive, daemon_call, output
from memd.cli.archive import VAULT_SOURCE, FileProgress
from memd.cli.terminal import YesOption, complete_from, confirm, print_result, waiting, wants_json
from memd.errors import Unreachable
from memd.transfer import importer
from memd.transfer.importer import MemoryImportReport, TranscriptImportReport
from memd.transfer.readers.base import is_not_understood
from memd.transfer.session_sources import (
    CATALOGUE,
    MemorySource,
    SessionSource,
    Source,
    find_sessions,
)
from memd.transfer.sources import ImportSource

_BATCH_TIMEOUT_S = 300.0
"""Seconds; a batch is answered when it can be searched, and an embedding model may read it first."""
_SEARCHABLE_TIMEOUT_S = 60.0
"""Seconds to wait after an import until all of it can be searched."""
_LINES_MAX = 20
_OUTCOMES = {
    "created": "new",
    "duplicate": "already known",
    "revised": "with another title, or other tags or files",
    "revived": "repeated",
    "forgotten": "left out because they were forgotten on purpose",
    "rejected": "left out because you rejected what they say",
    "superseded": "older replaced",
}


SOURCES = tuple(CATALOGUE)


def run_import(
    source: str | None = Argument(
        None,
        metavar="SOURCE",
        help=f"One of {', '.join(SOURCES)}, {VAULT_SOURCE}; or a file of `memd export`.",
        autocompletion=complete_from(*SOURCES, VAULT_SOURCE),
    ),
    paths: list[Path] | None = Argument(
        None, metavar="PATH", help="Default: where it keeps its files."
    ),
    everything: bool = Option(False, "--all", help="Import every source on this machine."),
    dry_run: bool = Option(False, "--dry-run", help="Only show what would be imported."),
    project: str | None = Option(
        None, help="Store it here: global, current, a name or a directory."
    ),
    yes: YesOption = False,
) -> None:
    """Import past sessions and other memories. Running it again imports only what is new or changed.

    claude-code: the transcripts of past sessions, from ~/.claude/projects and ~/.config/claude/projects.

    codex: the sessions of Codex CLI, from ~/.codex; those compressed (.zst) with the program zstd.

    copilot: the sessions of Copilot CLI, from ~/.copilot/session-state.

    cursor: what its agent said and changed, from ~/.cursor/projects/*/agent-transcripts.

    gemini-cli: the chats of Gemini CLI, from ~/.gemini/tmp/*/chats.

    opencode: its sessions, from its database, or PATH: files of `opencode export`.

    pi: the sessions of Pi, from ~/.pi/agent/sessions.

    aider: .aider.chat.history.md, from here, above and home, or PATH: the folders of your repositories.

    claude-memory: Claude Code's own MEMORY.md and notes, from ~/.claude/projects/*/memory.

    codex-memory: the memory files of Codex CLI, from ~/.codex/memories.

    claude-mem: its observations and summaries, from ~/.claude-mem/claude-mem.db.

    knowledge-graph: memory.jsonl of the MCP reference memory server, from where Claude keeps it.

    markdown: the notes in the folder PATH.


    vault: a file of `memd export`, all of it or nothing. - reads standard input.
    """
    if everything:
        if source is not None or project is not None:
            daemon_call.fail("--all takes neither a source nor --project")
        _import_everything(dry_run=dry_run, yes=yes)
        return
    if source is None:
        daemon_call.fail(f"name a source ({', '.join(SOURCES)}), a file of `memd export`, or --all")
    if (file := _find_export(source, paths or ())) is not None:
        if project is not None:
            daemon_call.fail("an export has projects of its own; leave out --project")
        archive.import_export(file, dry_run=dry_run)
        return
    found = CATALOGUE.get(source) or _refuse_source(source)
    for path in paths or ():
        if not path.exists():
            daemon_call.fail(f"there is no {path}")
    if isinstance(found, MemorySource):
        _import_memories(found, paths or (), project, dry_run=dry_run)
        return
    if project is not None:
        daemon_call.fail("transcripts have projects of their own; leave out --project")
    _import_sessions(found, paths, dry_run=dry_run)


def _find_export(source: str, paths: Sequence[Path]) -> Path | None:
    """Return the export file that is meant, if one is."""
    if source != VAULT_SOURCE:
        is_file = source not in SOURCES and not paths and archive.is_export(Path(source))
        return Path(source) if is_file else None
    if len(paths) != 1:
        daemon_call.fail("name one file: `memd import vault FILE`")
    if str(paths[0]) != archive.STDIN and not paths[0].is_file():
        daemon_call.fail(f"there is no {paths[0]}")
    return paths[0]


def _refuse_source(source: str) -> NoReturn:
    daemon_call.fail(
        f"{source!r} is neither a source nor a file of `memd export`; the sources are {', '.join(SOURCES)}"
    )


_SESSION_FILE = "session:"
"""Begins the checkpoints of session files; those of memds that could misplace a session had none, and count no more."""


class SavedCheckpoints(dict[str, tuple[int, int]]):
    """Files that were read completely: key → (bytes, modification time in µs). The daemon stores new ones."""

    def __setitem__(self, key: str, stamp: tuple[int, int]) -> None:
        """Store a checkpoint here and in the vault."""
        path = f"{_SESSION_FILE}{key}" if Path(key).is_absolute() else key
        daemon_call.call("memd/imports/mark", path=path, size=stamp[0], modified_at=stamp[1])
        super().__setitem__(key, stamp)


def _load_checkpoints(*, dry_run: bool) -> MutableMapping[str, tuple[int, int]]:
    """Load the daemon's checkpoints; a dry run does without a daemon, and has none."""
    try:
        known = daemon_call.call("memd/imports")["imports"]
    except Unreachable:
        if not dry_run:
            raise
        return {}
    return SavedCheckpoints(
        {
            key.removeprefix(_SESSION_FILE): (int(size), int(micros))
            for key, (size, micros) in known.items()
            if not Path(key).is_absolute()
        }
    )


# ── Memories of other programs ───────────────────────────────────────────────────────────────────


def _import_memories(
    source: MemorySource, paths: Sequence[Path], project: str | None, *, dry_run: bool
) -> None:
    """Import the memories of another program. Exits 1 if something could not be read."""
    if not paths and not source.location:
        daemon_call.fail(f"name a folder: `memd import {source.name} PATH`")
    found = source.find([path.expanduser() for path in paths], os.environ)
    if not (found.files or found.failed or found.folders):
        message = f"no {source.noun} found in {', '.join(map(str, paths)) or source.location}"
        print_result({"done": [], "message": message}, [message])
        return
    target = None if project is None else daemon_call.read_project(project)
    if target == "current":
        target = daemon_call.current_directory() or daemon_call.fail(
            "the working directory was deleted; name a project"
        )
    checkpoints = _load_checkpoints(dry_run=dry_run)
    with _showing_progress() as progress:
        report = _read_memories(source, found, target, checkpoints, progress, dry_run=dry_run)
    print_result(asdict(report), _format_memory_report(report, found, source))
    if not wants_json() and source.hint and project is None and report.outcomes["created"]:
        print(source.hint)
    if report.failed or report.broken:
        raise typer.Exit(1)


def _read_memories(
    source: MemorySource,
    found: ImportSource,
    target: str | None,
    checkpoints: MutableMapping[str, tuple[int, int]],
    progress: FileProgress,
    *,
    dry_run: bool,
) -> MemoryImportReport:
    options = importer.ImportOptions(f"import:{source.name}", source.tier, target, dry_run)
    sink = importer.MemorySink(_remember_batch, _withdraw_missing)
    return importer.import_source(found, options, sink, checkpoints, progress)


def _remember_batch(memories: list[dict[str, Any]]) -> Sequence[Mapping[str, Any]]:
    answer = daemon_call.call("memd/remember", _BATCH_TIMEOUT_S, memories=memories)
    remembered: Sequence[Mapping[str, Any]] = answer["remembered"]
    return remembered


def _withdraw_missing(path: str, staying: list[int]) -> int:
    """Withdraw the memories of a file but these; return how many."""
    answer = daemon_call.call("memd/imports/withdraw", _BATCH_TIMEOUT_S, path=path, staying=staying)
    return len(answer["withdrawn"])


def _format_memory_report(
    report: MemoryImportReport, found: ImportSource, source: MemorySource
) -> Iterator[str]:
    yield _format_read(report, output.plural(len(report.done), source.noun))
    if report.kinds:
        yield f"found: {output.format_counts(report.kinds)}"
    outcomes = [
        f"{report.outcomes[outcome]:,} {label}"
        for outcome, label in _OUTCOMES.items()
        if report.outcomes[outcome]
    ]
    if outcomes:
        yield f"memories: {'; '.join(outcomes)}"
    if report.withdrawn:
        yield f"hidden: {output.plural(report.withdrawn, 'memory')} that the files no longer contain"
    if report.skipped:
        yield f"left out: {output.format_counts(report.skipped)}"
    yield from map(output.one_line, dict.fromkeys(found.messages))
    yield from _shorten_list("removed since the last import", report.missing)
    if report.missing and not found.withdraws_missing:
        yield "their memories stay; `memd forget` erases them"
    yield from _shorten_list("could not be read", report.broken)
    for path, reason in report.failed.items():
        where = "" if reason.startswith(path) else f"{output.one_line(path)}: "
        yield f"failed: {where}{output.one_line(reason)}"


def _format_read(report: MemoryImportReport | TranscriptImportReport, amount: str) -> str:
    verb = "would read" if report.is_dry_run else "read"
    unchanged = f"; {len(report.unchanged):,} unchanged since the last import"
    return f"{verb} {amount}{unchanged if report.unchanged else ''}"


def _shorten_list(label: str, paths: Sequence[str]) -> Iterator[str]:
    yield from (f"{label}: {output.one_line(path)}" for path in paths[:_LINES_MAX])
    if len(paths) > _LINES_MAX:
        yield f"{label}: {len(paths) - _LINES_MAX:,} more"


# ── Transcripts ──────────────────────────────────────────────────────────────────────────────────


def _import_sessions(source: SessionSource, paths: Sequence[Path] | None, *, dry_run: bool) -> None:
    """Import the past sessions of a client. Exits 1 if something could not be read."""
    files = find_sessions(source, [str(path) for path in paths] if paths else None, os.environ)
    if not files:
        where = ", ".join(map(str, paths)) if paths else source.location
        message = f"no transcripts found in {where}"
        print_result({"done": [], "message": message}, [message])
        return
    report = TranscriptImportReport(is_dry_run=dry_run)
    checkpoints = _load_checkpoints(dry_run=dry_run)
    try:
        with _showing_progress() as progress:
            last_event = _read_sessions(source, files, checkpoints, report, progress)
    finally:
        if not wants_json():
            print("\n".join(_format_transcript_report(report)))
    message = _wait_until_searchable(last_event)
    if wants_json() or message:
        print_result({**asdict(report), "message": message}, [message])
    if report.failed:
        raise typer.Exit(1)


def _read_sessions(
    source: SessionSource,
    files: Sequence[str],
    checkpoints: MutableMapping[str, tuple[int, int]],
    report: TranscriptImportReport,
    progress: FileProgress,
) -> int:
    """Import these files and add to the report; return the number of the last event that is new, or 0."""
    last_event = 0
    dry_run = report.is_dry_run

    def send(events: list[dict[str, Any]]) -> Sequence[Mapping[str, Any]]:
        nonlocal last_event
        answer = daemon_call.call("memd/capture", events=events, dry_run=dry_run or None)
        receipts: Sequence[Mapping[str, Any]] = answer["receipts"]
        stored = [receipt["seq"] or 0 for receipt in receipts if receipt["outcome"] == "stored"]
        last_event = max(last_event, *stored, 0)
        return receipts

    importer.import_transcripts(
        files,
        send if isinstance(checkpoints, SavedCheckpoints) else None,
        checkpoints,
        progress,
        truncate=truncate.clean_payload,
        report=report,
        now=time.time_ns() // 1_000_000,
        source=source,
    )
    return last_event


def _wait_until_searchable(last_event: int) -> str:
    """Wait until the imported events can be searched, but not without end; return a message, if there are any."""
    if not last_event:
        return ""
    deadline = time.monotonic() + _SEARCHABLE_TIMEOUT_S
    with waiting("distilling and indexing"):
        while time.monotonic() < deadline:
            # A search with `min_event` waits for that event.
            answer = daemon_call.call(
                "memd/search", query="import", k=1, project="all", min_event=last_event
            )
            if not answer.get("waited"):
                count = daemon_call.call("memd/status")["summaries"]["count"]
                return f"memd now remembers {output.plural(count, 'memory')}; all can be searched"
    return "the daemon is still distilling the import; `memd status` shows the progress"


def _format_transcript_report(report: TranscriptImportReport) -> Iterator[str]:
    growing = f"; {len(report.growing):,} of them may still grow" if report.growing else ""
    yield _format_read(report, output.plural(len(report.done), "file") + growing)
    yield f"events: {output.format_counts(report.events) or 'none'}"
    if report.is_dry_run and not report.outcomes and report.events:
        yield "no daemon runs that could tell which of them are already stored"
    elif report.outcomes:
        labels = {"duplicate": "stored already, or repeated by a resumed session"}
        labels |= {"stored": "would be stored"} if report.is_dry_run else {}
        counts = (f"{count:,} {labels.get(name, name)}" for name, count in report.outcomes.items())
        yield f"of these: {', '.join(counts)}"
    if report.reasons:
        yield f"not stored: {output.format_counts(report.reasons)}"
    for are_odd, why in (
        (False, "they tell nothing of the work"),
        (True, "memd does not understand them"),
    ):
        lines = {k: n for k, n in report.skipped.items() if is_not_understood(k) is are_odd}
        if lines:
            yield f"left out, as {why}: {output.format_counts(lines)}"
    for path, reason in report.failed.items():
        yield f"failed: {path}: {output.one_line(reason)}"


# ── Everything ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class FoundSource:
    """A source of memories or sessions on this machine."""

    source: Source
    name: str
    files: Sequence[str]
    size: int
    """Bytes of the files."""
    new: Mapping[str, int]
    """Those that were not read yet, or have changed since → bytes."""
    memories: ImportSource | None = None

    def as_row(self) -> dict[str, Any]:
        """Return the row that `--json` prints."""
        shown = {"source": self.name, "files": len(self.files), "bytes": self.size}
        return {**shown, "new": len(self.new), "location": self.source.location}


def _import_everything(*, dry_run: bool, yes: bool) -> None:
    """Show what every source has on this machine, ask, and import it. Exits 1 if something could not be read."""
    checkpoints = _load_checkpoints(dry_run=dry_run)
    found = [
        one
        for name, source in CATALOGUE.items()
        if (one := _find_source(name, source, checkpoints))
    ]
    rows = [one.as_row() for one in found]
    if not found:
        message = "nothing found: " + "; ".join(
            f"{name} in {source.location}" for name, source in CATALOGUE.items() if source.location
        )
        print_result({"found": [], "message": message}, [message])
        return
    if not wants_json():
        print("\n".join(map(_format_found, found)))
    if not dry_run and not yes and any(one.new for one in found):
        confirm("Import all of this?", "nothing was imported")
    reports: dict[str, Any] = {}
    told: list[str] = []
    last_event = 0
    is_whole = True
    try:
        with _showing_progress() as progress:
            joined = JoinedProgress(progress, [one.new for one in found])
            for one in found:
                joined.begin_source()
                report, lines, last = _import_found(one, checkpoints, joined, dry_run=dry_run)
                reports[one.name] = asdict(report)
                told += (f"\n{one.source.title}", *(f"  {line}" for line in lines))
                last_event = max(last_event, last)
                is_broken = isinstance(report, MemoryImportReport) and bool(report.broken)
                is_whole &= not (report.failed or is_broken)
    finally:
        # Not before: what is printed while a bar is drawn would not go to standard output.
        if told and not wants_json():
            print("\n".join(told))
    message = _wait_until_searchable(last_event)
    if wants_json() or message:
        result = {"found": rows, "imported": reports, "message": message}
        print_result(result, [message])
    if not is_whole:
        raise typer.Exit(1)


def _find_source(
    name: str, source: Source, checkpoints: Mapping[str, tuple[int, int]]
) -> FoundSource | None:
    """Look where a source keeps its files; None if there are none."""
    if isinstance(source, MemorySource):
        found = source.find([], os.environ) if source.location else ImportSource()
        prefix = f"import:{name}:"
        stamps = {file.path: file.stamp for file in found.files}
        known = {path: checkpoints.get(prefix + path) for path in stamps}
        memories = found if found.files or found.failed else None
    else:
        files = find_sessions(source, None, os.environ)
        stamps = {path: importer.find_stamp(path) for path in files}
        known = {path: checkpoints.get(path) for path in stamps}
        memories = None
    if not stamps and memories is None:
        return None
    new = {path: stamp[0] for path, stamp in stamps.items() if known[path] != stamp}
    size = sum(size for size, _ in stamps.values())
    return FoundSource(source, name, list(stamps), size, new, memories)


def _format_found(one: FoundSource) -> str:
    new = len(one.new)
    news = "all read" if not new else "" if new == len(one.files) else f"{new:,} new"
    amount = f"{output.plural(len(one.files), 'file')}, {output.format_size(one.size)}"
    return f"{one.source.title}: {', '.join(filter(None, (amount, news)))}  ({one.source.location})"


def _import_found(
    one: FoundSource,
    checkpoints: MutableMapping[str, tuple[int, int]],
    progress: FileProgress,
    *,
    dry_run: bool,
) -> tuple[MemoryImportReport | TranscriptImportReport, Iterator[str], int]:
    """Import one source; return its report, that in lines, and the number of the last event that is new, or 0."""
    last_event = 0
    report: MemoryImportReport | TranscriptImportReport
    lines: Iterator[str]
    if isinstance(one.source, MemorySource):
        found = one.memories or ImportSource()
        report = _read_memories(one.source, found, None, checkpoints, progress, dry_run=dry_run)
        lines = _format_memory_report(report, found, one.source)
    else:
        report = TranscriptImportReport(is_dry_run=dry_run)
        last_event = _read_sessions(one.source, one.files, checkpoints, report, progress)
        lines = _format_transcript_report(report)
    return report, lines, last_event


# ── Progress ─────────────────────────────────────────────────────────────────────────────────────


class JoinedProgress:
    """Progress through the files of several sources as one, in bytes of those that are not read yet.

    What an interrupted import has read already is passed over at once, and would promise an end too soon.
    """

    def __init__(self, progress: FileProgress, new: Iterable[Mapping[str, int]]) -> None:
        self._progress = progress
        self._new = {path: size for files in new for path, size in files.items()}
        self._total = sum(self._new.values())
        self._done = self._last = 0

    def begin_source(self) -> None:
        """Begin the files of the next source, which counts its own bytes from zero."""
        self._last = 0

    def __call__(self, path: str, done: int, total: int) -> None:  # noqa: ARG002  # of a FileProgress
        """Show that so many bytes of the files of this source are done."""
        if path in self._new:
            self._done += done - self._last
            self._progress(path, min(self._done, self._total), self._total)
        self._last = done


@contextlib.contextmanager
def _showing_progress() -> Iterator[FileProgress]:
    """Show progress; if it is interrupted, say how to go on."""
    try:
        with archive.show_progress() as progress:
            yield progress
    except KeyboardInterrupt:
        print("interrupted; run the same command again to continue")
        raise

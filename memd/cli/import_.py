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
from memd.transfer.importer import ImportReport, MemoryImportReport, TranscriptImportReport
from memd.transfer.readers import is_not_understood
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
    if project is not None and isinstance(found, SessionSource):
        daemon_call.fail("transcripts have projects of their own; leave out --project")
    _import_source(found, paths or (), project, dry_run=dry_run)


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


# ── One source ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class FoundSource:
    """A source of memories or sessions, and its files."""

    source: Source
    stamps: Mapping[str, tuple[int, int]]
    """Path → (bytes, modification time in µs)."""
    memories: ImportSource | None = None

    def count_new(self, checkpoints: Mapping[str, tuple[int, int]]) -> int:
        """Count the files that were not read yet, or have changed since."""
        prefix = f"import:{self.source.name}:" if isinstance(self.source, MemorySource) else ""
        return sum(checkpoints.get(prefix + path) != one for path, one in self.stamps.items())


def _find_source(source: Source, paths: Sequence[Path] = ()) -> FoundSource:
    """Look for a source's files in these files and folders, or where it keeps them."""
    if isinstance(source, MemorySource):
        found = ImportSource()
        if paths or source.location:
            found = source.find([path.expanduser() for path in paths], os.environ)
        return FoundSource(source, {file.path: file.stamp for file in found.files}, found)
    files = find_sessions(source, [str(path) for path in paths] if paths else None, os.environ)
    return FoundSource(source, {path: importer.find_stamp(path) for path in files})


def _import_source(
    source: Source, paths: Sequence[Path], project: str | None, *, dry_run: bool
) -> None:
    """Import a source. Exits 1 if something could not be read."""
    noun, hint = "transcripts", ""
    if isinstance(source, MemorySource):
        noun, hint = source.noun, source.hint
    if not paths and not source.location:
        daemon_call.fail(f"name a folder: `memd import {source.name} PATH`")
    found = _find_source(source, paths)
    memories = found.memories or ImportSource()
    if not (found.stamps or memories.failed or memories.folders):
        message = f"no {noun} found in {', '.join(map(str, paths)) or source.location}"
        print_result({"done": [], "message": message}, [message])
        return
    target = None if project is None else daemon_call.read_project(project)
    if target == "current":
        target = daemon_call.current_directory() or daemon_call.fail(
            "the working directory was deleted; name a project"
        )
    checkpoints = _load_checkpoints(dry_run=dry_run)
    report, last_event = _import_found(found, target, checkpoints, dry_run=dry_run)
    message = _wait_until_searchable(last_event)
    if hint and project is None and report.outcomes["created"]:
        message = hint
    if wants_json() or message:
        print_result({**asdict(report), "message": message}, [message])
    if not report.is_whole:
        raise typer.Exit(1)


def _import_found(
    found: FoundSource,
    target: str | None,
    checkpoints: MutableMapping[str, tuple[int, int]],
    *,
    dry_run: bool,
) -> tuple[ImportReport, int]:
    """Import what was found and print what became of it; (report, number of the last event that is new, or 0)."""
    source = found.source
    if isinstance(source, MemorySource):
        options = importer.ImportOptions(f"import:{source.name}", source.tier, target, dry_run)
        sink = importer.MemorySink(_remember_batch, _withdraw_missing)
        memories = found.memories or ImportSource()
        with _showing_progress() as progress:
            told = importer.import_source(memories, options, sink, checkpoints, progress)
        _print_lines(_format_memory_report(told, memories, source))
        return told, 0
    report = TranscriptImportReport(is_dry_run=dry_run)
    try:
        with _showing_progress() as progress:
            last_event = _read_sessions(source, [*found.stamps], checkpoints, report, progress)
    finally:
        _print_lines(_format_transcript_report(report))
    return report, last_event


def _print_lines(lines: Iterable[str]) -> None:
    if not wants_json():
        print("\n".join(lines))


# ── Memories of other programs ───────────────────────────────────────────────────────────────────


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


def _format_read(report: ImportReport, amount: str) -> str:
    verb = "would read" if report.is_dry_run else "read"
    unchanged = f"; {len(report.unchanged):,} unchanged since the last import"
    return f"{verb} {amount}{unchanged if report.unchanged else ''}"


def _shorten_list(label: str, paths: Sequence[str]) -> Iterator[str]:
    yield from (f"{label}: {output.one_line(path)}" for path in paths[:_LINES_MAX])
    if len(paths) > _LINES_MAX:
        yield f"{label}: {len(paths) - _LINES_MAX:,} more"


# ── Transcripts ──────────────────────────────────────────────────────────────────────────────────


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


def _import_everything(*, dry_run: bool, yes: bool) -> None:
    """Show what every source has on this machine, ask, and import it. Exits 1 if something could not be read."""
    checkpoints = _load_checkpoints(dry_run=dry_run)
    looked = map(_find_source, CATALOGUE.values())
    found = [one for one in looked if one.stamps or (one.memories and one.memories.failed)]
    if not found:
        message = "nothing found: " + "; ".join(
            f"{name} in {source.location}" for name, source in CATALOGUE.items() if source.location
        )
        print_result({"found": [], "message": message}, [message])
        return
    rows = [_make_row(one, checkpoints) for one in found]
    _print_lines(map(_format_found, found, rows))
    if not dry_run and not yes and any(row["new"] for row in rows):
        confirm("Import all of this?", "nothing was imported")
    reports: dict[str, ImportReport] = {}
    last_event = 0
    for one in found:
        _print_lines(["", one.source.title])
        report, last = _import_found(one, None, checkpoints, dry_run=dry_run)
        reports[one.source.name] = report
        last_event = max(last_event, last)
    message = _wait_until_searchable(last_event)
    if wants_json() or message:
        told = {name: asdict(report) for name, report in reports.items()}
        print_result({"found": rows, "imported": told, "message": message}, [message])
    if not all(report.is_whole for report in reports.values()):
        raise typer.Exit(1)


def _make_row(found: FoundSource, checkpoints: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """Return the row of a source that `--json` prints."""
    return {
        "source": found.source.name,
        "files": len(found.stamps),
        "bytes": sum(size for size, _ in found.stamps.values()),
        "new": found.count_new(checkpoints),
        "location": found.source.location,
    }


def _format_found(found: FoundSource, row: Mapping[str, Any]) -> str:
    new = row["new"]
    news = "all read" if not new else "" if new == row["files"] else f"{new:,} new"
    amount = f"{output.plural(row['files'], 'file')}, {output.format_size(row['bytes'])}"
    return f"{found.source.title}: {', '.join(filter(None, (amount, news)))}  ({row['location']})"


@contextlib.contextmanager
def _showing_progress() -> Iterator[FileProgress]:
    """Show progress; if it is interrupted, say how to go on."""
    try:
        with archive.show_progress() as progress:
            yield progress
    except KeyboardInterrupt:
        print("interrupted; run the same command again to continue")
        raise

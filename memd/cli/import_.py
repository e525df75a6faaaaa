"""`memd import`: past sessions and the memories of other programs. Can be repeated and interrupted."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer import Argument, Option

from memd.cli import archive, daemon_call, output
from memd.cli.archive import VAULT_SOURCE, FileProgress
from memd.cli.completion import complete_from
from memd.cli.terminal import JsonOption, print_result, progress_bar, waiting
from memd.errors import Unreachable

if TYPE_CHECKING:
    from memd.transfer.importer import MemoryImportReport
    from memd.transfer.sources import ImportSource
    from memd.transfer.transcript_importer import TranscriptImportReport

TRANSCRIPTS = "claude-code"
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
    "superseded": "older replaced",
}


@dataclass(frozen=True, slots=True)
class MemoryProgram:
    """Another program's memory that can be imported."""

    find_function: str
    """The function of transfer/sources.py that finds its files."""
    location: str
    """Where its files are by default; empty: the user must name them."""
    noun: str
    tier: str = "agent"
    hint: str = ""
    """What to know about the project of new memories, if the user has named none."""


FOREIGN_MEMORIES = {
    "knowledge-graph": MemoryProgram(
        "knowledge_graph_source",
        "$MEMORY_FILE_PATH, Claude's configuration and the npm cache",
        "memory.jsonl",
    ),
    "claude-memory": MemoryProgram(
        "claude_memory_source", "~/.claude/projects/*/memory", "memory file", "file"
    ),
    "claude-mem": MemoryProgram("claude_mem_source", "~/.claude-mem/claude-mem.db", "database"),
    "markdown": MemoryProgram(
        "markdown_source",
        "",
        "note",
        "file",
        "stored in the project of that folder; with `--project global` they are seen everywhere",
    ),
}
SOURCES = (TRANSCRIPTS, *FOREIGN_MEMORIES)


def run_import(
    source: str = Argument(
        ...,
        metavar="SOURCE",
        help=f"One of {', '.join(SOURCES)}, {VAULT_SOURCE}; or a file of `memd export`.",
        autocompletion=complete_from(*SOURCES, VAULT_SOURCE),
    ),
    paths: list[Path] | None = Argument(
        None, metavar="PATH", help="Default: where the source keeps its files."
    ),
    dry_run: bool = Option(False, "--dry-run", help="Only show what would be imported."),
    project: str | None = Option(
        None, help="Store it all in this project: global, current, a name or a directory."
    ),
    as_json: JsonOption = False,
) -> None:
    """Import past sessions and other memories. Running it again imports only what is new or changed.

    claude-code: the transcripts of past sessions, from ~/.claude/projects and ~/.config/claude/projects.

    claude-memory: Claude Code's own MEMORY.md and notes, from ~/.claude/projects/*/memory.

    claude-mem: its observations and summaries, from ~/.claude-mem/claude-mem.db.

    knowledge-graph: memory.jsonl of the MCP reference memory server, from where Claude keeps it.

    markdown: the notes in the folder PATH.

    vault: a file of `memd export`, all of it or nothing. - reads standard input.
    """
    if (file := _find_export(source, paths or ())) is not None:
        if project is not None:
            daemon_call.fail("an export has projects of its own; leave out --project")
        archive.import_export(file, _show_progress, dry_run=dry_run, as_json=as_json)
        return
    if source not in SOURCES:
        _refuse_source(source)
    for path in paths or ():
        if not path.exists():
            daemon_call.fail(f"there is no {path}")
    if source in FOREIGN_MEMORIES:
        _import_memories(source, paths or (), project, dry_run=dry_run, as_json=as_json)
        return
    if project is not None:
        daemon_call.fail("transcripts have projects of their own; leave out --project")
    _import_transcripts(paths, dry_run=dry_run, as_json=as_json)


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
    known = f"the sources are {', '.join(SOURCES)}"
    if Path(source).is_file():
        daemon_call.fail(
            f"{source} is not a file of `memd export`; if another program wrote it, name that: {known}"
        )
    if os.sep in source:
        daemon_call.fail(f"there is no file {source}; {known}, or a file of `memd export`")
    daemon_call.fail(f"there is no source {source!r}; {known}")


class SavedCheckpoints(dict[str, tuple[int, int]]):
    """Files that were read completely: key → (bytes, modification time in µs). The daemon stores new ones."""

    @classmethod
    def load(cls) -> "SavedCheckpoints":
        """Load those that the daemon has. Raises Unreachable."""
        known = daemon_call.call("memd/imports")["imports"]
        return cls({key: (int(size), int(micros)) for key, (size, micros) in known.items()})

    def __setitem__(self, key: str, stamp: tuple[int, int]) -> None:
        """Store a checkpoint here and in the vault."""
        daemon_call.call("memd/imports/mark", path=key, size=stamp[0], modified_at=stamp[1])
        super().__setitem__(key, stamp)


# ── Memories of other programs ───────────────────────────────────────────────────────────────────


def _import_memories(
    name: str, paths: Sequence[Path], project: str | None, *, dry_run: bool, as_json: bool
) -> None:
    """Import from one of FOREIGN_MEMORIES. Exits 1 if something could not be read."""
    from memd.transfer import importer, sources

    foreign = FOREIGN_MEMORIES[name]
    if not paths and not foreign.location:
        daemon_call.fail(f"name a folder: `memd import {name} PATH`")
    find: Callable[..., ImportSource] = getattr(sources, foreign.find_function)
    found = find([path.expanduser() for path in paths], os.environ)
    if not (found.files or found.failed or found.folders):
        message = f"no {foreign.noun} found in {', '.join(map(str, paths)) or foreign.location}"
        print_result({"done": [], "message": message}, [message], as_json=as_json)
        return
    target = None if project is None else daemon_call.read_project(project)
    if target == "current":
        target = daemon_call.current_directory() or daemon_call.fail(
            "the working directory was deleted; name a project"
        )
    options = importer.ImportOptions(f"import:{name}", foreign.tier, target, dry_run)
    try:
        checkpoints = SavedCheckpoints.load()
    except Unreachable:
        if not dry_run:
            raise
        checkpoints = SavedCheckpoints()
    sink = importer.MemorySink(_remember_batch, _withdraw_missing)
    with _explaining_interrupt(), _show_progress() as progress:
        report = importer.import_source(found, options, sink, checkpoints, progress)
    print_result(asdict(report), _format_memory_report(report, found, foreign), as_json=as_json)
    if not as_json and foreign.hint and project is None and report.outcomes["created"]:
        print(foreign.hint)
    if report.failed or report.broken:
        raise typer.Exit(1)


@contextlib.contextmanager
def _explaining_interrupt() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted; run the same command again to continue")
        raise


def _remember_batch(memories: list[dict[str, Any]]) -> Sequence[Mapping[str, Any]]:
    answer = daemon_call.call("memd/remember", _BATCH_TIMEOUT_S, memories=memories)
    remembered: Sequence[Mapping[str, Any]] = answer["remembered"]
    return remembered


def _withdraw_missing(path: str, staying: list[int]) -> int:
    """Withdraw the memories of a file but these; return how many."""
    answer = daemon_call.call("memd/imports/withdraw", _BATCH_TIMEOUT_S, path=path, staying=staying)
    return len(answer["withdrawn"])


def _format_memory_report(
    report: "MemoryImportReport", found: "ImportSource", foreign: MemoryProgram
) -> Iterator[str]:
    yield _format_read(report, output.plural(len(report.done), foreign.noun))
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


def _format_read(report: "MemoryImportReport | TranscriptImportReport", amount: str) -> str:
    verb = "would read" if report.is_dry_run else "read"
    unchanged = f"; {len(report.unchanged):,} unchanged since the last import"
    return f"{verb} {amount}{unchanged if report.unchanged else ''}"


def _shorten_list(label: str, paths: Sequence[str]) -> Iterator[str]:
    yield from (f"{label}: {output.one_line(path)}" for path in paths[:_LINES_MAX])
    if len(paths) > _LINES_MAX:
        yield f"{label}: {len(paths) - _LINES_MAX:,} more"


_LEFT_OUT = {
    "title of another session": "titles of other sessions",
    "injected by the client": "text that the client added",
    "a call that was not run": "calls that never ran",
    "command": "commands of the client",
    "error of the API": "errors of the model's API",
    "interruption": "interruptions",
    "not conversation": "lines that are no conversation",
}
"""Why a line of a transcript is no event → what such a line is."""


# ── Transcripts ──────────────────────────────────────────────────────────────────────────────────


def _import_transcripts(paths: Sequence[Path] | None, *, dry_run: bool, as_json: bool) -> None:
    """Import the transcripts of past sessions. Exits 1 if something could not be read."""
    from memd.capture import truncate
    from memd.transfer import transcript_importer

    files = transcript_importer.find_transcripts(
        [str(path) for path in paths] if paths else None, os.environ
    )
    if not files:
        message = f"no transcripts found in {_describe_locations(paths)}"
        print_result({"done": [], "message": message}, [message], as_json=as_json)
        return
    last_event = 0

    def send(events: list[dict[str, Any]]) -> Sequence[Mapping[str, Any]]:
        nonlocal last_event
        answer = daemon_call.call("memd/capture", events=events, dry_run=dry_run or None)
        receipts: Sequence[Mapping[str, Any]] = answer["receipts"]
        stored = [receipt["seq"] or 0 for receipt in receipts if receipt["outcome"] == "stored"]
        last_event = max(last_event, *stored, 0)
        return receipts

    has_daemon = not dry_run or daemon_call.answers()
    checkpoints: MutableMapping[str, tuple[int, int]]
    checkpoints = SavedCheckpoints.load() if has_daemon else {}
    report = transcript_importer.TranscriptImportReport(is_dry_run=dry_run)
    try:
        with _explaining_interrupt(), _show_progress() as progress:
            transcript_importer.import_transcripts(
                files,
                send if has_daemon else None,
                checkpoints,
                progress,
                truncate=truncate.clean_payload,
                report=report,
                now=time.time_ns() // 1_000_000,
            )
    finally:
        if not as_json:
            print("\n".join(_format_transcript_report(report)))
    message = ""
    if last_event:
        with waiting("distilling and indexing"):
            message = _wait_until_searchable(last_event)
    if as_json or message:
        print_result({**asdict(report), "message": message}, [message], as_json=as_json)
    if report.failed:
        raise typer.Exit(1)


def _describe_locations(paths: Sequence[Path] | None) -> str:
    home = os.environ.get("CLAUDE_CONFIG_DIR")
    usual = f"{home}/projects" if home else "~/.claude/projects or ~/.config/claude/projects"
    return ", ".join(map(str, paths)) if paths else usual


def _wait_until_searchable(last_event: int) -> str:
    """Wait until the imported events can be searched, but not without end; return a message."""
    deadline = time.monotonic() + _SEARCHABLE_TIMEOUT_S
    while time.monotonic() < deadline:
        # A search with `min_event` waits for that event.
        answer = daemon_call.call(
            "memd/search", query="import", k=1, project="all", min_event=last_event
        )
        if not answer.get("waited"):
            count = daemon_call.call("memd/status")["summaries"]["count"]
            return f"memd now remembers {output.plural(count, 'memory')}; all can be searched"
    return "the daemon is still distilling the import; `memd status` shows the progress"


def _format_transcript_report(report: "TranscriptImportReport") -> Iterator[str]:
    growing = f"; {len(report.growing):,} of them may still grow" if report.growing else ""
    yield _format_read(report, output.plural(len(report.done), "file") + growing)
    yield f"events: {output.format_counts(report.events) or 'none'}"
    if report.is_dry_run and not report.outcomes and report.events:
        yield "no daemon runs that could tell which of them are already stored"
    elif report.outcomes:
        labels = {"duplicate": "already known"}
        labels |= {"stored": "would be stored"} if report.is_dry_run else {}
        counts = (f"{count:,} {labels.get(name, name)}" for name, count in report.outcomes.items())
        yield f"of these: {', '.join(counts)}"
    if report.reasons:
        yield f"not stored: {output.format_counts(report.reasons)}"
    if report.skipped:
        counts = (
            f"{_LEFT_OUT.get(name, name)}: {count:,}" for name, count in report.skipped.items()
        )
        yield f"left out, as they tell nothing of the work: {', '.join(counts)}"
    for path, reason in report.failed.items():
        yield f"failed: {path}: {output.one_line(reason)}"


# ── Progress ─────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def _show_progress() -> Iterator[FileProgress]:
    """Draw a progress bar on a terminal; else print each file to stderr when it was read."""
    if sys.stderr.isatty():
        with progress_bar("reading") as update:
            yield lambda path, done, total: update(done, total, _format_progress(path, done, total))
        return
    last_path = last_line = ""

    def print_finished(path: str, done: int, total: int) -> None:
        nonlocal last_path, last_line
        if last_line and path != last_path:
            print(last_line, file=sys.stderr)
        last_path, last_line = path, _format_progress(path, done, total)

    yield print_finished
    if last_line:
        print(last_line, file=sys.stderr)


def _format_progress(path: str, done: int, total: int) -> str:
    return f"{output.format_size(done)} of {output.format_size(total)}  {path}"

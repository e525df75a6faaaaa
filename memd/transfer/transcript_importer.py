"""Carries the transcripts of past sessions to the ingestor: streamed, resumable, the same rows twice.

A file is marked once it was read to its end and all of it acknowledged, so an import that is broken
off begins again with the file it was in, and the events that were already stored are duplicates. So
are those of a file that has grown: it is read again, and only the rest is new. One bad file never
stops the rest. Not here: what a line means (transcripts.py), or who listens.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memd.errors import MemdError, Unreachable
from memd.paths import LINE_BYTES_MAX
from memd.transfer import claude_markup, transcripts
from memd.transfer.transcripts import ImportedPayload, TranscriptReader

CLIENT = "claude-code"
BATCH_EVENTS_MAX = 200
BATCH_BYTES_MAX = 2 * 1024 * 1024
TRANSCRIPT_LINE_BYTES_MAX = 32 * 1024 * 1024
"""A prompt with a few screenshots is a line of many megabytes; a longer one is an accident."""
REQUEST_BYTES_MAX = LINE_BYTES_MAX - 65_536
"""Bytes of an event's JSON that fit on a line of the wire, with what stands around them."""
REQUEST_VALUES_MAX = 80_000
"""Commas, brackets and surrogate escapes in one request; the wire takes 100,000."""
_COSTLY = (",", "[", "{", "\\ud")
QUIET_MS = 600_000
"""A file that was written to within ten minutes may belong to a session that goes on."""
_SUFFIX = ".jsonl"
_PROJECTS = "projects"
_HOME_SIGNS = ("history.jsonl", "settings.json", ".claude.json", "todos", "shell-snapshots")
"""What lies beside the projects in a configuration directory, and in no copy of transcripts."""

Send = Callable[[list[dict[str, Any]]], Sequence[Mapping[str, Any]]]
"""Hands over captures, in order, and returns a receipt for each."""
Truncate = Callable[[Any], Any]
"""Makes a payload small enough for the wire, and redacts it before it cuts."""
Checkpoints = MutableMapping[str, tuple[int, int]]
"""path → (bytes, modification time in µs) of the files that were read to their end."""
Progress = Callable[[str, int, int], None]
"""Told the file in hand, the bytes read so far and the bytes of all files."""


@dataclass(slots=True)
class TranscriptImportReport:
    """What an import did so far, or with `is_dry_run` would do."""

    is_dry_run: bool = False
    outcomes: Counter[str] = field(default_factory=Counter)
    """stored, duplicate, filtered, refused → how many."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Why events were filtered or refused → how many."""
    events: Counter[str] = field(default_factory=Counter)
    """The client's name of the event → how many were found."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Why lines were left out → how many."""
    done: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    growing: list[str] = field(default_factory=list)
    """Of `done`, those of sessions that seem to be going on: the next import looks at them again."""
    failed: dict[str, str] = field(default_factory=dict)
    """Path → why it could not be read or handed over."""


def find_transcripts(paths: Iterable[str] | None, environ: Mapping[str, str]) -> list[str]:
    """The transcripts in these files and directories, or in Claude Code's own, oldest first."""
    given = _homes(environ) if paths is None else [_transcripts_of(Path(p)) for p in paths]
    found = {str(file.absolute()) for path in given for file in _below(path)}
    return sorted(found, key=lambda path: (_stamp(path)[1], path))


def import_transcripts(  # noqa: PLR0913  # the last three are named wherever it is called
    files: Sequence[str], send: Send | None, marks: Checkpoints, progress: Progress, *,
    truncate: Truncate, report: TranscriptImportReport, now: int,
) -> None:  # fmt: skip
    """Import these files and enter in the report what became of them. `now` is UTC milliseconds.

    Raises Unreachable if nobody listens; every other trouble is in the report. With a dry run,
    `send` only asks what would become of the events; None: nobody is there to ask.
    """
    stamps = {path: _stamp(path) for path in files}
    total = sum(size for size, _ in stamps.values())
    before = 0
    # A rehearsal stores nothing, so nobody but we can tell a line from its copy in another file.
    seen: set[int] | None = set() if report.is_dry_run else None
    for path in files:
        size, written = stamps[path]
        if marks.get(path) == stamps[path]:
            report.unchanged.append(path)
        else:
            reader = TranscriptReader(seen=seen)
            load = _TranscriptImport(path, written // 1_000, send, truncate, report, reader)
            is_read = _carry_one(load, progress, (before, total), now)
            if is_read and not reader.is_open and not report.is_dry_run:
                marks[path] = stamps[path]
        before += size
        progress(path, before, total)


@dataclass(slots=True)
class _TranscriptImport:
    """One file on its way."""

    path: str
    written_at: int
    send: Send | None
    truncate: Truncate
    report: TranscriptImportReport
    reader: TranscriptReader
    batch: list[dict[str, Any]] = field(default_factory=list)
    batch_bytes: int = 0
    batch_values: int = 0

    def add(self, found: ImportedPayload, place: transcripts.TranscriptLocation) -> None:
        """Take one payload along, with the whole of its result."""
        self.report.events[str(found.payload.get("hook_event_name"))] += 1
        if self.send is None:
            return
        capture = {
            "client": CLIENT,
            "payload": claude_markup.limit_for_wire(self._completed(found, place)),
            # A line without a time is at least no younger than its file.
            "at": self.written_at if found.at is None else found.at,
            "directory": found.directory,
            "source": "import",
        }
        size, values = _measure(capture)
        if size > REQUEST_BYTES_MAX or values > REQUEST_VALUES_MAX:
            capture["payload"] = self.truncate(capture["payload"])
            size, values = _measure(capture)
        if size > REQUEST_BYTES_MAX or values > REQUEST_VALUES_MAX:
            self.reader.skipped["too large to hand over"] += 1
            return
        is_full = self.batch_bytes + size > BATCH_BYTES_MAX
        if self.batch and (is_full or self.batch_values + values > REQUEST_VALUES_MAX):
            self.hand_over()
        self.batch.append(capture)
        self.batch_bytes += size
        self.batch_values += values
        if len(self.batch) >= BATCH_EVENTS_MAX:
            self.hand_over()

    def hand_over(self) -> None:
        """Send what was taken along, and count the receipts."""
        if self.batch and self.send is not None:
            batch, self.batch = self.batch, []
            self.batch_bytes = self.batch_values = 0
            for receipt in self.send(batch):
                outcome = str(receipt.get("outcome"))
                self.report.outcomes[outcome] += 1
                if outcome in ("filtered", "refused"):
                    self.report.reasons[str(receipt.get("reason"))] += 1

    def _completed(
        self, found: ImportedPayload, place: transcripts.TranscriptLocation
    ) -> Mapping[str, Any]:
        if found.saved is None:
            return found.payload
        output = transcripts.read_saved_output(place, found.saved)
        if output is None:
            self.reader.skipped["the rest of a long result"] += 1
            return found.payload
        return claude_markup.insert_saved_output(found.payload, output)


def _measure(capture: Mapping[str, Any]) -> tuple[int, int]:
    """Bytes of an event's JSON, and how much of it is costly to parse."""
    text = json.dumps(capture)
    return len(text), sum(map(text.count, _COSTLY))


def _carry_one(
    load: _TranscriptImport, progress: Progress, span: tuple[int, int], now: int
) -> bool:
    """Import one file; whether all of it was read and acknowledged."""
    reader, report = load.reader, load.report
    before, total = span
    try:
        place = transcripts.locate_transcript(load.path)
        reader.agent, reader.agent_type = place.agent, place.agent_type
        is_growing = 0 <= now - load.written_at < QUIET_MS
        for line, offset in _lines(load.path, reader):
            for found in reader.feed(line):
                load.add(found, place)
            progress(load.path, before + offset, total)
        for found in reader.finish(is_growing=is_growing):
            load.add(found, place)
        load.hand_over()
    except Unreachable:
        raise
    except (OSError, MemdError) as error:
        report.failed[load.path] = str(error)
        return False
    finally:
        report.skipped.update(reader.skipped)
    report.done.append(load.path)
    if reader.is_open:
        report.growing.append(load.path)
    return True


def _lines(path: str, reader: TranscriptReader) -> Iterator[tuple[bytes, int]]:
    """The lines of a file and where each ends; what is too long is passed over, never held."""
    with Path(path).open("rb") as file:
        while line := file.readline(TRANSCRIPT_LINE_BYTES_MAX):
            if len(line) == TRANSCRIPT_LINE_BYTES_MAX and not line.endswith(b"\n"):
                reader.skipped["line too long"] += 1
                while line and not line.endswith(b"\n"):
                    line = file.readline(TRANSCRIPT_LINE_BYTES_MAX)
                continue
            yield line, file.tell()


def _homes(environ: Mapping[str, str]) -> list[Path]:
    """Where Claude Code keeps its own: the one that was chosen, else both that it has used."""
    user = Path(environ.get("HOME", ""))
    settings = Path(environ.get("XDG_CONFIG_HOME") or user / ".config")
    chosen = environ.get("CLAUDE_CONFIG_DIR")
    homes = [Path(chosen)] if chosen else [user / ".claude", settings / "claude"]
    return [home / _PROJECTS for home in homes if (home / _PROJECTS).is_dir()]


def _transcripts_of(path: Path) -> Path:
    """Of a configuration directory, the part with the transcripts; the rest is logs and histories."""
    is_home = (path / _PROJECTS).is_dir() and any(
        (path / name).exists() for name in _HOME_SIGNS
    )
    return path / _PROJECTS if is_home else path


def _below(path: Path) -> Iterator[Path]:
    """A file itself; of a directory, every transcript in it, however deep, but no pipe and no device."""
    if not path.is_dir():
        yield path
        return
    for parent, _, names in os.walk(path):
        found = (Path(parent, name) for name in names if name.endswith(_SUFFIX))
        yield from (file for file in found if file.is_file())


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = Path(path).stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns // 1_000

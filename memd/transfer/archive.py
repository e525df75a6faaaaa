"""memd's own JSONL export and import."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from memd.errors import BadRequest
from memd.models import Project
from memd.store import import_rows, projects
from memd.store.backup import read_snapshot, require_current_schema
from memd.store.database import Connection
from memd.store.export_rows import (
    EXPORT_SCHEMA,
    Fields,
    VaultRecords,
    check_record,
    redact_record,
)
from memd.store.import_rows import RecordImporter

# MERGED from memd.exchange.jsonl:
# MERGED memd's own export on lines: a header, a record a line, an end that says what must have come. Pure.
# MERGED
# MERGED A file that was cut off, changed, or written by a newer memd is refused, as is any line that is not what
# MERGED the format says; the reader knows the number of the line. Not here: what is in a record
# MERGED (store/freight.py), files, or what becomes of the records (moving.py).


FORMAT = 1
HEADER = "memd-export"
_END = "end"
LINE_BYTES_MAX = 32 * 1024 * 1024
_NO_EXPORT = "this is not a memd export: it begins with something else than its header"
_REST = "what follows the last line is not part of the export"
_BREAK = b"\n"


class ExportWriter:
    """Makes the lines of one export, in order; each ends in a line break."""

    def __init__(self, version: str, project: str | None, counts: Mapping[str, int]) -> None:
        """Of this memd's version, with this many records of each kind; `project`: its key, or None for all."""
        self._header = {
            "record": HEADER, "format": FORMAT, "memd": version, "project": project,
            "counts": {kind: counts[kind] for kind in EXPORT_SCHEMA},
        }  # fmt: skip
        self._hash = hashlib.sha256()
        self._counts: Counter[str] = Counter()

    def header(self) -> bytes:
        """The first line."""
        return self._hashed(self._header)

    def record(self, kind: str, fields: Fields) -> bytes:
        """One record."""
        self._counts[kind] += 1
        return self._hashed({"record": kind, **fields})

    def end(self) -> bytes:
        """The last line."""
        counts = {kind: self._counts[kind] for kind in EXPORT_SCHEMA}
        return _line({"record": _END, "counts": counts, "sha256": self._hash.hexdigest()})

    def _hashed(self, value: Mapping[str, Any]) -> bytes:
        line = _line(value)
        self._hash.update(line)
        return line


def _line(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace") + _BREAK


def is_header(line: bytes) -> bool:
    """Whether a file that begins with this line is an export, of whatever version."""
    try:
        return bool(_parsed(line)["record"] == HEADER)
    except (BadRequest, KeyError):
        return False


class ExportReader:
    """Takes the lines of one export, in order, and gives its records. Every refusal is a BadRequest."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._counts: Counter[str] = Counter()
        self._announced: Any = None
        self._has_ended = False
        self._order = list(EXPORT_SCHEMA)

    def feed(self, line: bytes) -> tuple[str, Fields] | None:
        """The record on this line as (kind, fields); None for header and end."""
        if self._has_ended:
            raise BadRequest(_REST)
        if len(line) > LINE_BYTES_MAX:
            raise BadRequest(f"longer than {LINE_BYTES_MAX // 1024**2} MiB")
        if self._announced is None:
            self._begin(line)
            return None
        if not line.endswith(_BREAK):
            raise BadRequest("the file ends within this line: it was cut off")
        fields = _parsed(line)
        kind = fields.pop("record", None)
        if kind == _END:
            self._end(fields)
            return None
        if not isinstance(kind, str):
            raise BadRequest("a line that does not say what it records")
        check_record(kind, fields)
        if kind not in self._order:
            raise BadRequest(f"a {kind} after what may speak of it: records are out of order")
        self._order = self._order[self._order.index(kind) :]
        self._hash.update(line)
        self._counts[kind] += 1
        return kind, fields

    def close(self) -> None:
        """There are no more lines. BadRequest if that cannot be all."""
        if self._announced is None:
            raise BadRequest(_NO_EXPORT)
        if not self._has_ended:
            raise BadRequest("the last line is missing: the file was cut off")

    def _begin(self, line: bytes) -> None:
        if not is_header(line):
            raise BadRequest(_NO_EXPORT)
        header = _parsed(line)
        version = header.get("format")
        if type(version) is int and version > FORMAT:
            raise BadRequest(
                f"a newer memd ({str(header.get('memd'))[:20]}) wrote it in format {version}, and this"
                f" one reads up to {FORMAT}; update memd"
            )
        counts = header.get("counts")
        if type(version) is not int or version != FORMAT or not _is_counts(counts):
            raise BadRequest("the header is damaged")
        self._announced = counts
        self._hash.update(line)

    def _end(self, fields: Fields) -> None:
        counts = {kind: self._counts[kind] for kind in EXPORT_SCHEMA}
        if fields.get("counts") != counts or self._announced != counts:
            raise BadRequest("there are not as many records as it says: some are missing")
        if fields.get("sha256") != self._hash.hexdigest():
            raise BadRequest("its SHA-256 is not that of the lines above: they were changed")
        self._has_ended = True


def _is_counts(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == EXPORT_SCHEMA.keys()
        and all(type(count) is int and count >= 0 for count in value.values())
    )


def _parsed(line: bytes) -> Fields:
    """The object on a line."""
    try:
        found = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
        if b"\\u" in line:
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise BadRequest("nested too deep") from None
    except UnicodeError:
        raise BadRequest("not UTF-8, or half of a character") from None
    except ValueError as error:
        raise BadRequest(f"not JSON: {str(error)[:100]}") from None
    if not isinstance(found, dict):
        raise BadRequest("not a JSON object")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


# MERGED from memd.exchange.moving:
# MERGED Moves whole memories from vault to vault: out to lines, in from lines, all of them or none.
# MERGED
# MERGED Out: one snapshot, streamed. In: the lines are checked, redacted and put together in a vault of their
# MERGED own, in the process of whoever imports; only when the last line has proved them whole does the daemon
# MERGED take them over, in one transaction. Not here: the lines (jsonl.py), the rows (store/).


Redact = Callable[[Any], Any]
"""Takes and returns a JSON value without secrets."""


class LineStream(Protocol):
    """A file that is read line by line."""

    def readline(self, limit: int = -1, /) -> bytes:
        """The next line with its break, or a part of it of `limit` bytes; empty at the end."""


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What became of the records of another vault. Kind of record → how many."""

    created: dict[str, int] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    revised: dict[str, int] = field(default_factory=dict)
    forgotten: dict[str, int] = field(default_factory=dict)
    """Left out, for they were forgotten here, or speak of what was."""
    left: dict[str, int] = field(default_factory=dict)
    """Left out, for they cannot stand beside what is here."""
    hidden: int = 0
    """Memories that hide each other from now on, for both vaults had a value of that topic key."""


def export_vault(
    vault: str, version: str, write: Callable[[bytes], object], project: str | None = None
) -> dict[str, int]:
    """Write a vault, or one project of it by name or key, as lines; how many records of each kind.

    Raises BadRequest if there is no such vault or project, and a VaultError.
    """
    with read_snapshot(vault) as connection:
        require_current_schema(connection)
        chosen = None if project is None else _chosen(connection, project)
        departures = VaultRecords(connection, chosen.id if chosen else None)
        counts = departures.counts()
        writer = ExportWriter(version, chosen.key if chosen else None, counts)
        write(writer.header())
        for kind, fields in departures.records():
            write(writer.record(kind, fields))
        write(writer.end())
        return counts


def _chosen(connection: Connection, project: str) -> Project:
    found = projects.find_projects(connection, project)
    if not found:
        raise BadRequest(f"project: there is no {project!r}; `memd project list` shows them")
    if len(found) > 1 and found[0].key != project:
        keys = ", ".join(one.key for one in found)
        raise BadRequest(f"project: {project!r} may be {keys}; give one of these")
    return found[0]


def stage_export(
    file: LineStream, tx: Connection, redact: Redact, progress: Callable[[int], None]
) -> dict[str, int]:
    """Put the lines together in an empty vault; how many records of each kind.

    `progress` is told the bytes read so far. Raises BadRequest with the number of the line.
    """
    reader, importer = ExportReader(), RecordImporter(tx, is_strict=True)
    number = done = 0
    try:
        while line := file.readline(LINE_BYTES_MAX + 1):
            number += 1
            done += len(line)
            record = reader.feed(line)
            if record is not None:
                kind, fields = record
                importer.import_record(kind, redact_record(kind, fields, redact))
            progress(done)
        number += 1
        reader.close()
    except BadRequest as error:
        raise BadRequest(f"line {number}: {error.message}. Nothing was imported.") from error
    return {kind: importer.outcomes[kind, "created"] for kind in EXPORT_SCHEMA}


def merge_staged(tx: Connection, staged: str, now: int) -> MergeResult:
    """Take everything over from a staged vault, in the caller's transaction."""
    importer = RecordImporter(tx)
    with read_snapshot(staged) as other:
        for kind, fields in VaultRecords(other).records():
            importer.import_record(kind, fields)
    hidden, gone = import_rows.resolve_imported(tx, importer, now)
    became: dict[str, dict[str, int]] = {}
    for (kind, outcome), count in sorted(importer.outcomes.items()):
        became.setdefault(outcome, {})[kind] = count
    if gone:
        became["created"]["summary"] -= gone
        forgotten = became.setdefault("forgotten", {})
        forgotten["summary"] = forgotten.get("summary", 0) + gone
    return MergeResult(**became, hidden=hidden)

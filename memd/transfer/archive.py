"""Export a vault as JSON lines, and import such a file: all of it or nothing.

An export is a header, one record a line, and an end with the counts and a checksum. An import puts the
checked and redacted lines into a staged vault of its own, in the importing process; when the last line
has proved them complete, the daemon merges the staged vault in one transaction.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from memd.belief import supersede
from memd.belief.rejections import reject_repeats
from memd.belief.standing import find_objection
from memd.errors import BadRequest, RecordTooNew
from memd.models import EdgeType, Project
from memd.store import Fields, import_rows, links, projects, summaries
from memd.store.backup import read_snapshot, require_current_schema
from memd.store.database import Connection
from memd.store.export_rows import (
    ADDED_KINDS,
    EXPORT_SCHEMA,
    VaultRecords,
    check_record,
    redact_record,
)
from memd.store.import_rows import RecordImporter
from memd.store.queries import json_line, parse_json_line

EXPORT_FORMAT = 3
_FORMER_FORMAT = 2
"""Of an export without what was added since, so that a former memd reads it."""
"""Format 1 did not say whose word a memory is."""
EXPORT_LINE_BYTES_MAX = 32 * 1024 * 1024
IMPORT_RULE = "vault-import"
"""The rule of supersessions and edges that an import makes."""
_SAME_TOPIC = "same topic key in two vaults that became one"
_HEADER = "memd-export"
_END = "end"
_TOO_NEW = "a newer memd wrote this; update memd, then import it again"
_NO_EXPORT = "this is not a memd export: it does not begin with its header"

RedactValue = Callable[[Any], Any]
"""Takes a JSON value and returns it without secrets."""


@dataclass(frozen=True, slots=True)
class MergeResult:
    """Outcomes of merging another vault's records: kind of record → count."""

    created: dict[str, int] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    revised: dict[str, int] = field(default_factory=dict)
    forgotten: dict[str, int] = field(default_factory=dict)
    """Left out because they, or what they refer to, were forgotten in this vault."""
    left: dict[str, int] = field(default_factory=dict)
    """Left out because they contradict a record of this vault."""
    hidden: int = 0
    """Memories that are superseded from now on: both vaults had a value of their topic key."""


class ExportReader:
    """Takes the lines of one export, in order, and returns its records. Raises only BadRequest."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._counts: Counter[str] = Counter()
        self._announced: Any = None
        self._has_ended = False
        self._kinds_to_come = list(EXPORT_SCHEMA)

    def feed(self, line: bytes) -> tuple[str, Fields] | None:
        """Return the record on this line as (kind, fields); None for header and end."""
        if self._has_ended:
            raise BadRequest("what follows the last line is not part of the export")
        if len(line) > EXPORT_LINE_BYTES_MAX:
            raise BadRequest(f"longer than {EXPORT_LINE_BYTES_MAX // 1024**2} MiB")
        if self._announced is None:
            self._read_header(line)
            return None
        if not line.endswith(b"\n"):
            raise BadRequest("the file ends within this line: it was cut off")
        fields = _parse_line(line)
        kind = fields.pop("record", None)
        if kind == _END:
            self._read_end(fields)
            return None
        if not isinstance(kind, str):
            raise BadRequest("a line that does not say what it records")
        self._hash.update(line)
        self._counts[kind] += 1
        try:
            check_record(kind, fields)
        except RecordTooNew as error:
            raise BadRequest(f"{error.message}: {_TOO_NEW}") from None
        if kind not in self._kinds_to_come:
            raise BadRequest(f"a {kind} after what may refer to it: records are out of order")
        self._kinds_to_come = self._kinds_to_come[self._kinds_to_come.index(kind) :]
        return kind, fields

    def close(self) -> None:
        """End the file; BadRequest if lines are missing."""
        if self._announced is None:
            raise BadRequest(_NO_EXPORT)
        if not self._has_ended:
            raise BadRequest("the last line is missing: the file was cut off")

    def _read_header(self, line: bytes) -> None:
        if not is_header(line):
            raise BadRequest(_NO_EXPORT)
        header = _parse_line(line)
        version, counts = header.get("format"), header.get("counts")
        if isinstance(counts, dict):
            counts = {**dict.fromkeys(ADDED_KINDS, 0), **counts}
        is_complete = isinstance(counts, dict) and counts.keys() >= EXPORT_SCHEMA.keys()
        if type(version) is int and version > EXPORT_FORMAT:
            raise BadRequest(_TOO_NEW)
        if type(version) is not int or version < 1 or not is_complete:
            raise BadRequest("the header is damaged")
        self._announced = counts
        self._hash.update(line)

    def _read_end(self, fields: Fields) -> None:
        said = [
            {kind: count for kind, count in one.items() if count} if isinstance(one, dict) else None
            for one in (self._announced, fields.get("counts"))
        ]
        if said != [self._counts, self._counts]:
            raise BadRequest("there are fewer records than it says: some are missing")
        if fields.get("sha256") != self._hash.hexdigest():
            raise BadRequest("its SHA-256 is not that of the lines above: they were changed")
        self._has_ended = True


def is_header(line: bytes) -> bool:
    """Return whether a file that begins with this line is an export, of whatever version."""
    try:
        return bool(_parse_line(line)["record"] == _HEADER)
    except (BadRequest, KeyError):
        return False


def _parse_line(line: bytes) -> Fields:
    try:
        found = parse_json_line(line)
    except RecursionError:
        raise BadRequest("nested too deep") from None
    except UnicodeError:
        raise BadRequest("not UTF-8, or half of a character") from None
    except ValueError as error:
        raise BadRequest(f"not JSON: {str(error)[:100]}") from None
    if not isinstance(found, dict):
        raise BadRequest("not a JSON object")
    return found


def export_lines(
    version: str,
    project: str | None,
    counts: Mapping[str, int],
    records: Iterable[tuple[str, Fields]],
) -> Iterator[bytes]:
    """Yield the lines of an export: memd's version, the project's key (None: all), its records.

    `counts`: the number of records of each kind.
    """
    has_added = any(counts[kind] for kind in ADDED_KINDS)
    kinds = [kind for kind in EXPORT_SCHEMA if has_added or kind not in ADDED_KINDS]
    header = {
        "record": _HEADER, "format": EXPORT_FORMAT if has_added else _FORMER_FORMAT,
        "memd": version, "project": project, "counts": {kind: counts[kind] for kind in kinds},
    }  # fmt: skip
    written = dict.fromkeys(kinds, 0)
    checksum = hashlib.sha256(line := json_line(header))
    yield line
    for kind, fields in records:
        written[kind] += 1
        checksum.update(line := json_line({"record": kind, **fields}))
        yield line
    yield json_line({"record": _END, "counts": written, "sha256": checksum.hexdigest()})


def export_vault(
    vault: str, version: str, write: Callable[[bytes], object], project: str | None = None
) -> dict[str, int]:
    """Write a vault, or one project of it by name or key; return the number of records of each kind.

    Raises BadRequest if there is no such vault or project, and a VaultError.
    """
    with read_snapshot(vault) as connection:
        require_current_schema(connection)
        chosen = None if project is None else find_project(connection, project)
        records = VaultRecords(connection, chosen.id if chosen else None)
        counts = records.counts()
        key = chosen.key if chosen else None
        for line in export_lines(version, key, counts, records.records()):
            write(line)
        return counts


def find_project(connection: Connection, project: str) -> Project:
    """The project of this name or key. BadRequest if there is none, or several."""
    found = projects.find_projects(connection, project)
    if not found:
        raise BadRequest(f"project: there is no {project!r}; `memd project list` shows them")
    if len(found) > 1 and found[0].key != project:
        keys = ", ".join(one.key for one in found)
        raise BadRequest(f"project: {project!r} may be {keys}; name one of these")
    return found[0]


def stage_export(
    file: BinaryIO, tx: Connection, redact: RedactValue, progress: Callable[[int], None]
) -> dict[str, int]:
    """Put an export into an empty vault; return the number of records of each kind.

    `progress` is called with the bytes read so far. Raises BadRequest with the number of the line.
    """
    reader, importer = ExportReader(), RecordImporter(tx, is_strict=True)
    renamed = set[str]()
    """Kinds of which two names that differ only in a secret may have become one."""
    number = done = 0
    try:
        while line := file.readline(EXPORT_LINE_BYTES_MAX + 1):
            number += 1
            done += len(line)
            if (record := reader.feed(line)) is not None:
                kind, fields = record
                redacted = redact_record(kind, fields, redact)
                renamed |= {kind} if redacted != fields else set()
                importer.import_record(kind, redacted, may_repeat=kind in renamed)
            progress(done)
        number += 1
        reader.close()
    except BadRequest as error:
        raise BadRequest(f"line {number}: {error.message}. Nothing was imported.") from error
    return {kind: importer.outcomes[kind, "created"] for kind in EXPORT_SCHEMA}


def merge_staged(tx: Connection, staged: str, now: int) -> MergeResult:
    """Merge a staged vault into this one, in the caller's transaction."""
    importer = RecordImporter(tx)
    with read_snapshot(staged) as other:
        for kind, fields in VaultRecords(other).records():
            importer.import_record(kind, fields)
    hidden, forgotten = resolve_imported(tx, importer, now)
    importer.outcomes["summary", "created"] -= forgotten
    importer.outcomes["summary", "forgotten"] += forgotten
    counts: dict[str, dict[str, int]] = {}
    for (kind, outcome), count in sorted(importer.outcomes.items()):
        if count:
            counts.setdefault(outcome, {})[kind] = count
    return MergeResult(**counts, hidden=hidden)


def resolve_imported(tx: Connection, importer: RecordImporter, now: int) -> tuple[int, int]:
    """Let the newer of two values of a topic key hide the older, and delete memories without a source.

    What hides a memory of this vault must be said by no lesser authority; else both stay, as a contradiction.
    Returns (supersessions, deleted memories).
    """
    deleted = import_rows.delete_orphans(tx, importer)
    import_rows.record_receipts(tx, importer)
    for past in import_rows.imported_supersessions(tx, importer):
        older = summaries.get_summary(tx, past.older_id)
        objection = older and find_objection(supersede.supersession_authority(tx, past), older)
        if objection:
            links.undo_supersession(tx, past.id, now)
            supersede.relate(
                tx, past.newer_id, EdgeType.CONTRADICTS, past.older_id, IMPORT_RULE, now,
                finding=objection.words,
            )  # fmt: skip
    rivals = import_rows.find_rivals(tx, importer, now)
    hidden = [
        supersede.hide(tx, newer, older, IMPORT_RULE, _SAME_TOPIC, now) for newer, older in rivals
    ]
    reject_repeats(tx, import_rows.imported_summaries(tx, importer), now)
    return sum(one is not None for one in hidden), deleted

"""Moves whole memories from vault to vault: out to lines, in from lines, all of them or none.

Out: one snapshot, streamed. In: the lines are checked, redacted and put together in a vault of their
own, in the process of whoever imports; only when the last line has proved them whole does the daemon
take them over, in one transaction. Not here: the lines (jsonl.py), the rows (store/).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from memd.errors import BadRequest
from memd.exchange import jsonl
from memd.models import Project
from memd.store import projects, settling
from memd.store.arrivals import Arrivals
from memd.store.database import Connection
from memd.store.departures import Departures
from memd.store.freight import FREIGHT, cleaned
from memd.store.snapshot import check_current, snapshot

Redact = Callable[[Any], Any]
"""Takes and returns a JSON value without secrets."""


class Lines(Protocol):
    """A file that is read line by line."""

    def readline(self, limit: int = -1, /) -> bytes:
        """The next line with its break, or a part of it of `limit` bytes; empty at the end."""


@dataclass(frozen=True, slots=True)
class Merged:
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


def export(
    vault: str, version: str, write: Callable[[bytes], object], project: str | None = None
) -> dict[str, int]:
    """Write a vault, or one project of it by name or key, as lines; how many records of each kind.

    Raises BadRequest if there is no such vault or project, and a VaultError.
    """
    with snapshot(vault) as connection:
        check_current(connection)
        chosen = None if project is None else _chosen(connection, project)
        departures = Departures(connection, chosen.id if chosen else None)
        counts = departures.counts()
        writer = jsonl.Writer(version, chosen.key if chosen else None, counts)
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


def stage(
    file: Lines, tx: Connection, redact: Redact, progress: Callable[[int], None]
) -> dict[str, int]:
    """Put the lines together in an empty vault; how many records of each kind.

    `progress` is told the bytes read so far. Raises BadRequest with the number of the line.
    """
    reader, arrivals = jsonl.Reader(), Arrivals(tx, is_strict=True)
    number = done = 0
    try:
        while line := file.readline(jsonl.LINE_BYTES_MAX + 1):
            number += 1
            done += len(line)
            record = reader.feed(line)
            if record is not None:
                kind, fields = record
                arrivals.admit(kind, cleaned(kind, fields, redact))
            progress(done)
        number += 1
        reader.close()
    except BadRequest as error:
        raise BadRequest(f"line {number}: {error.message}. Nothing was imported.") from error
    return {kind: arrivals.outcomes[kind, "created"] for kind in FREIGHT}


def merge(tx: Connection, staged: str, now: int) -> Merged:
    """Take everything over from a staged vault, in the caller's transaction."""
    arrivals = Arrivals(tx)
    with snapshot(staged) as other:
        for kind, fields in Departures(other).records():
            arrivals.admit(kind, fields)
    hidden, gone = settling.settle(tx, arrivals, now)
    became: dict[str, dict[str, int]] = {}
    for (kind, outcome), count in sorted(arrivals.outcomes.items()):
        became.setdefault(outcome, {})[kind] = count
    if gone:
        became["created"]["summary"] -= gone
        forgotten = became.setdefault("forgotten", {})
        forgotten["summary"] = forgotten.get("summary", 0) + gone
    return Merged(**became, hidden=hidden)

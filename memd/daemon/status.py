"""memd status."""

import functools
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field

from memd import __version__
from memd.daemon.supervisor import SupervisedWorker, Supervisor
from memd.daemon.systemd import StartedBy
from memd.errors import Broken
from memd.paths import Paths
from memd.store import events as store_events
from memd.store import fulltext, ledger, migrate
from memd.store import summaries as store_summaries
from memd.store.database import Connection, Database, sqlite_version

# MERGED from memd.daemon.embedder:
# MERGED Which space answers questions, and why: the `embedder` part of how memd is.
# MERGED
# MERGED The room of the learned model says how the model is, the room that fills its space how far that is, and
# MERGED the index which space leads; here that becomes one value. Not here: any of these decisions.


class LearnedModelStatus(BaseModel):
    """A model beside the hashing space."""

    provider: str
    model: str
    space: str | None
    """None until it has answered for the first time."""
    state: str
    """`starting`, `absent`, `no model`, `remote refused`, `failing` or `ready`."""
    since: int
    """When it became that."""
    why_not: str
    """Why it is not ready, with what to do; empty if it is."""
    asked: int
    """Questions and batches since the start."""
    failed: int
    """Of these, late ones included."""
    timeouts: int
    p50_ms: float | None
    """What half of the last questions took at most, of those that were answered."""
    coverage: float
    """The share of what is remembered that has a vector in its space."""
    missing: int
    """Passages without one."""


class EmbedderStatus(BaseModel):
    """What turns text into vectors."""

    configured: str
    active: str
    """Whose vectors lead: `hashing`, or the provider of the learned model."""
    space: str
    """What its vectors are comparable within."""
    why: str
    """Why this one is active."""
    since: int | None = None
    """When it was first seen to lead, since the start."""
    learned: LearnedModelStatus | None = None
    """None if the settings want none."""


class EmbedderTracker:
    """Remembers which space was last seen to lead."""

    def __init__(self, configured: str, hashing: str, now: int) -> None:
        self._configured = configured
        self._hashing = hashing
        """The name of the space that is always there."""
        self._seen = hashing, now

    def told(
        self, active: str, said: Mapping[str, Any], filled: Mapping[str, Any], now: int
    ) -> EmbedderStatus:
        """Tell how it is now.

        `active` names the space that leads, `said` and `filled` are what the rooms of the model and of
        its space say of themselves, empty if they do not exist.
        """
        space = active or self._hashing
        if space != self._seen[0]:
            self._seen = space, now
        learned = _read_learned_status(said, filled) if said else None
        is_learned = learned is not None and space != self._hashing
        return EmbedderStatus(
            configured=self._configured,
            active=learned.provider if learned and is_learned else "hashing",
            space=space,
            why=_explain_active_space(learned, is_learned=is_learned),
            since=self._seen[1],
            learned=learned,
        )


def _read_learned_status(
    said: Mapping[str, Any], filled: Mapping[str, Any]
) -> LearnedModelStatus:
    done, missing = filled.get("done", 0), filled.get("missing", 0)
    coverage = round(done / (done + missing), 4) if done + missing else 0.0
    return LearnedModelStatus.model_validate({**said, "coverage": coverage, "missing": missing})


def _explain_active_space(learned: LearnedModelStatus | None, *, is_learned: bool) -> str:
    if learned is None:
        return "the settings want no model"
    if learned.state != "ready":
        return learned.why_not + ("; hashing answers alone until then" if is_learned else "")
    if is_learned:
        return f"{learned.model} answers"
    return f"{learned.model} answers, and {learned.missing:,} passages wait for their vectors"


# MERGED from memd.daemon.status:
# MERGED How memd is, as one documented value: what `memd status --json` prints and health checks read.
# MERGED
# MERGED The models below are the schema: a field is never renamed and never changes its meaning; new ones
# MERGED may appear. Every time is UTC milliseconds, every size bytes. Not here: how a person is shown it.


RECENT_CRASH_S = 60.0
"""A crash is a reason for `degraded` for this long after the room is back."""
_LOOKS_AT_SPOOL = 3
SPOOL_LATE_MS = 60_000
"""The spool is drained within seconds; a file that is older than this is stuck."""
_QUICK_S = 0.005
_KEPT_S = 2.0


class SoftwareVersions(BaseModel):
    """What runs."""

    memd: str
    python: str
    sqlite: str
    mcp: str
    """Of the MCP library."""


class VaultStatus(BaseModel):
    """The one file that holds everything."""

    name: str
    path: str
    bytes: int
    """Write-ahead log included."""
    schema_version: int = Field(serialization_alias="schema")
    """The number of its last migration. Called `schema` in the JSON."""


class LedgerStatus(BaseModel):
    """What became of every event that was handed in, since the vault was made."""

    received: int
    stored: int
    duplicate: int
    filtered: int
    refused: int
    balanced: bool
    """Whether received = stored + duplicate + filtered + refused."""
    reasons: dict[str, dict[str, int]]
    """For `filtered` and `refused`: reason → how many."""


class EventCounts(BaseModel):
    """What agents did."""

    count: int
    pending: int
    """Not distilled yet."""
    last_at: int | None
    """When the latest event happened."""


class SummaryCounts(BaseModel):
    """What is remembered."""

    count: int
    superseded: int
    pinned: int
    to_index: int
    """Written, and not searchable yet."""
    to_consolidate: int
    """Not yet compared with the others."""


class WorkerStatus(BaseModel):
    """One room of the daemon; what it says of itself stands beside these fields."""

    model_config = ConfigDict(extra="allow")
    name: str
    state: Literal["running", "backing off", "stopped"]
    restarts: int
    last_error: str | None


class SpoolStatus(BaseModel):
    """What hooks left while no daemon answered, and what has not been taken in yet."""

    bytes: int
    files: int
    oldest_at: int | None
    """When the file that waits longest was last written to."""


class WorkerError(BaseModel):
    """The last crash of a room."""

    room: str
    error: str
    ago_s: float


class DaemonStatus(BaseModel):
    """How memd is."""

    running: Literal[True] = True
    """False when no daemon answered; then only `health`, `reasons`, `vault`, `socket` and `spool` are told."""
    health: Literal["healthy", "degraded"]
    reasons: list[str]
    """Why it is degraded, in words; empty when healthy."""
    versions: SoftwareVersions
    pid: int
    started_at: int
    started_by: StartedBy
    """The service manager that keeps it; `hand` when it is a person, a hook or the stdio proxy."""
    uptime_s: float
    """By a clock that nobody sets, and that may stand while the machine sleeps."""
    socket: str
    log: str
    vault: VaultStatus
    books: LedgerStatus
    events: EventCounts
    summaries: SummaryCounts
    rooms: list[WorkerStatus]
    embedder: EmbedderStatus
    consolidator: dict[str, Any]
    """The last run and its counts, as the consolidator tells them."""
    spool: SpoolStatus
    errors: list[WorkerError]
    here: dict[str, Any] | None = None
    """Only for who says in which directory: `key`, `name` and `reason` of its project, whether it
    `is_known`, and its `switch`: `captures`, `recalls`, `reason`, `scope`."""


@dataclass(frozen=True, slots=True)
class DaemonFacts:
    """What does not change while a daemon lives."""

    paths: Paths
    started_at: int
    embedder: EmbedderStatus
    started_by: StartedBy = "hand"
    born: float = 0.0
    """When it started by the house's clock, which nobody sets, in seconds."""


@dataclass(frozen=True, slots=True)
class VaultCounts:
    """What the vault says of itself, from one snapshot."""

    books: LedgerStatus
    events: EventCounts
    summaries: SummaryCounts


class VaultCounter:
    """Reads the counts; where that is slow, a count is kept for a moment. Health checks ask often."""

    def __init__(self, db: Database, seconds: Callable[[], float] = time.monotonic) -> None:
        self.db = db
        self._seconds = seconds
        self._kept: VaultCounts | None = None
        self._fresh_until = 0.0
        self.failing: str | None = None
        """Why the counts could not be read when they were last asked for."""

    async def counts(self) -> VaultCounts:
        """Read the counts, or return those of a moment ago if reading them takes long.

        A vault that cannot be read has the counts that it had, or none: its daemon lives, and whoever
        asks how it is must hear of both.
        """
        started = self._seconds()
        if self._kept is None or started >= self._fresh_until:
            try:
                self._kept = await self.db.read(_read_counts)
                self.failing = None
            except Broken as error:
                self.failing = error.message
                return self._kept or _NO_COUNTS
            ended = self._seconds()
            self._fresh_until = ended + (_KEPT_S if ended - started > _QUICK_S else 0.0)
        return self._kept


async def collect_status(
    gauge: VaultCounter, house: Supervisor, about: DaemonFacts, now: int
) -> dict[str, Any]:
    """Tell how memd is, as the JSON of a Status."""
    counts = await gauge.counts()
    # A slow disk may keep these waiting, but nobody else.
    spool = await anyio.to_thread.run_sync(measure_spools, about.paths.spools)
    vault = await anyio.to_thread.run_sync(_read_vault_status, about.paths, gauge.db)
    errors = _list_crashes(house)
    unread = [] if gauge.failing is None else [f"the vault cannot be read: {gauge.failing}"]
    if gauge.db.damage is not None:
        unread = [f"nothing is written any more, events wait in the spool: {gauge.db.damage}"]
    reasons = unread + degraded_reasons(house.rooms, counts.books, spool, errors, now)
    status = DaemonStatus(
        health="degraded" if reasons else "healthy",
        reasons=reasons,
        versions=software_versions(),
        pid=os.getpid(),
        started_at=about.started_at,
        started_by=about.started_by,
        uptime_s=round(house.seconds() - about.born, 1),
        socket=about.paths.socket,
        log=about.paths.log,
        vault=vault,
        books=counts.books,
        events=counts.events,
        summaries=counts.summaries,
        rooms=[_read_worker_status(kept) for kept in house.rooms],
        embedder=about.embedder,
        consolidator=worker_report(house.rooms, "consolidator"),
        spool=spool,
        errors=errors,
    )
    return status.model_dump(mode="json", by_alias=True)


def degraded_reasons(
    rooms: Sequence[SupervisedWorker],
    booked: LedgerStatus,
    spool: SpoolStatus,
    errors: Sequence[WorkerError],
    now: int,
) -> list[str]:
    """Say in words what is wrong, or nothing."""
    reasons = [
        f"{kept.room.name} is {kept.state}: {kept.last_error or 'it ended'}"
        for kept in rooms
        if kept.state != "running"
    ]
    reasons += [
        str(trouble) for kept in rooms if (trouble := kept.room.status().get("trouble"))
    ]
    down = {kept.room.name for kept in rooms if kept.state != "running"}
    reasons += [
        f"{kept.room.name} cannot write: {kept.room.status().get('why_failing') or failing}"
        for kept in rooms
        if kept.room.name not in down and (failing := kept.room.status().get("failing"))
    ]
    reasons += [
        f"{error.room} crashed {error.ago_s:.0f} s ago: {error.error}"
        for error in errors
        if error.ago_s < RECENT_CRASH_S and error.room not in down
    ]
    if not booked.balanced:
        reasons.append("the books do not balance: an event is unaccounted for")
    if spool.oldest_at is not None and now - spool.oldest_at > SPOOL_LATE_MS:
        reasons.append(f"the spool is not being emptied: {spool.files} files wait")
    return reasons


_NO_COUNTS = VaultCounts(
    LedgerStatus(
        received=0, stored=0, duplicate=0, filtered=0, refused=0, balanced=True, reasons={}
    ),
    EventCounts(count=0, pending=0, last_at=None),
    SummaryCounts(count=0, superseded=0, pinned=0, to_index=0, to_consolidate=0),
)


def measure_spools(directories: Sequence[str]) -> SpoolStatus:
    """Count what lies in all of these together."""
    found = [measure_spool(directory) for directory in directories]
    return SpoolStatus(
        bytes=sum(one.bytes for one in found),
        files=sum(one.files for one in found),
        oldest_at=min((one.oldest_at for one in found if one.oldest_at), default=None),
    )


def measure_spool(directory: str) -> SpoolStatus:
    """Count what lies in a spool directory; nothing if there is none."""
    for _ in range(_LOOKS_AT_SPOOL):
        try:
            return _measure_directory(directory)
        except FileNotFoundError:
            # Never spooled; or the ingestor took a file away, or put it aside, while we looked.
            continue
    return SpoolStatus(bytes=0, files=0, oldest_at=None)


def _measure_directory(directory: str) -> SpoolStatus:
    sizes, times = [], []
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                found = entry.stat(follow_symlinks=False)
                sizes.append(found.st_size)
                times += [found.st_mtime_ns // 1_000_000] if found.st_size else []
    return SpoolStatus(
        bytes=sum(sizes), files=sum(map(bool, sizes)), oldest_at=min(times, default=None)
    )


@functools.cache
def software_versions() -> SoftwareVersions:
    """Tell what runs; looked up once, for the files of a package may be replaced under us."""
    return SoftwareVersions(
        memd=__version__,
        python=platform.python_version(),
        sqlite=sqlite_version(),
        mcp=metadata.version("mcp"),
    )


def _read_counts(tx: Connection) -> VaultCounts:
    balance = ledger.balance(tx)
    whole = store_summaries.summary_counts(tx)
    out = balance["stored"] + balance["duplicate"] + balance["filtered"] + balance["refused"]
    happened = store_events.event_counts(tx)
    return VaultCounts(
        books=LedgerStatus(
            **{name: balance[name] for name in ("received", "stored", "duplicate")},
            filtered=balance["filtered"],
            refused=balance["refused"],
            balanced=balance["received"] == out,
            reasons={
                name: ledger.outcome_reasons(tx, name) for name in ("filtered", "refused")
            },
        ),
        events=EventCounts(
            count=happened["events"] or 0,
            pending=happened["pending"] or 0,
            last_at=happened["last_at"],
        ),
        summaries=SummaryCounts(
            count=whole["summaries"],
            superseded=whole["superseded"],
            pinned=whole["pinned"],
            to_index=fulltext.count_changes(tx),
            to_consolidate=whole["to_consolidate"],
        ),
    )


def _read_vault_status(paths: Paths, db: Database) -> VaultStatus:
    return VaultStatus(
        name=paths.vault,
        path=str(Path(db.path)),
        bytes=db.size(),
        schema_version=len(migrate.migrations()),
    )


def _read_worker_status(kept: SupervisedWorker) -> WorkerStatus:
    said: Mapping[str, object] = kept.room.status()
    known = {
        "name": kept.room.name,
        "state": kept.state,
        "restarts": kept.restarts,
        "last_error": kept.last_error,
    }
    return WorkerStatus.model_validate({**said, **known})


def worker_report(rooms: Sequence[SupervisedWorker], name: str) -> dict[str, Any]:
    """Return what a room says of itself; nothing if there is no such room."""
    return next((dict(kept.room.status()) for kept in rooms if kept.room.name == name), {})


def _list_crashes(house: Supervisor) -> list[WorkerError]:
    now = house.seconds()
    return [
        WorkerError(
            room=kept.room.name,
            error=kept.last_error,
            ago_s=round(now - kept.last_error_at, 1),
        )
        for kept in house.rooms
        if kept.last_error is not None and kept.last_error_at is not None
    ]

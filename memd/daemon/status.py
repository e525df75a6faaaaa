"""Report how memd is: the JSON of `memd status --json`, which health checks read.

The models are the schema of that JSON: a field is never renamed and never changes its meaning; new ones
may appear. Times are UTC milliseconds, sizes bytes.
"""

import contextlib
import functools
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field

from memd import __version__
from memd.daemon.supervisor import StartedBy, SupervisedWorker, Supervisor
from memd.errors import Broken
from memd.paths import Paths
from memd.store import database, fulltext
from memd.store import events as store_events
from memd.store import ledger as store_ledger
from memd.store import summaries as store_summaries
from memd.store.database import Connection, Database, sqlite_version

RECENT_CRASH_S = 60.0
"""A crash is a reason for `degraded` for this long after the worker runs again."""
SPOOL_LATE_MS = 60_000
"""The spool is drained within seconds; a file that is older than this is stuck."""
_QUICK_S = 0.005
"""Counts that are read within this time are not cached."""
_CACHE_S = 2.0


class SoftwareVersions(BaseModel):
    """The versions in use."""

    memd: str
    python: str
    sqlite: str
    mcp: str
    """Of the MCP library."""


class VaultStatus(BaseModel):
    """The database file."""

    name: str
    path: str
    bytes: int
    """Write-ahead log included."""
    schema_version: int = Field(serialization_alias="schema")
    """The number of its last migration, called `schema` in the JSON."""


class LedgerStatus(BaseModel):
    """Outcomes of every event that was received since the vault was created."""

    received: int = 0
    stored: int = 0
    duplicate: int = 0
    filtered: int = 0
    refused: int = 0
    balanced: bool = True
    """Whether received = stored + duplicate + filtered + refused."""
    reasons: dict[str, dict[str, int]] = Field(default_factory=dict)
    """For `filtered` and `refused`: reason → count. For `stored`, where there are any: events of an unknown kind, by their name
    with their client and, where that says it, its version → count."""


class EventCounts(BaseModel):
    """The events of the vault."""

    count: int = 0
    pending: int = 0
    """Not distilled yet."""
    sessions: int = 0
    """The sessions that they are of."""
    last_at: int | None = None
    """When the latest event happened."""
    unknown: int = 0
    """Those that no client is known to send. They are kept, and nothing is made of them."""


class SummaryCounts(BaseModel):
    """The memories of the vault."""

    count: int = 0
    superseded: int = 0
    contradictions: int = 0
    """Pairs of visible memories of which only one can hold, and that nobody has judged."""
    pinned: int = 0
    to_index: int = 0
    """Written and not searchable yet."""
    to_consolidate: int = 0
    """Not yet compared with the others."""


class WorkerStatus(BaseModel):
    """A worker of the daemon. What the worker itself reports stands beside these fields."""

    model_config = ConfigDict(extra="allow")
    name: str
    state: Literal["running", "backing off", "stopped"]
    restarts: int
    last_error: str | None


class SpoolStatus(BaseModel):
    """The events that hooks wrote to files and the ingestor has not read yet."""

    bytes: int
    files: int
    oldest_at: int | None
    """When the oldest file was last written to."""


class WorkerError(BaseModel):
    """The last crash of a worker."""

    room: str
    """The name of the worker."""
    error: str
    ago_s: float


class LearnedModelStatus(BaseModel):
    """The embedding model beside the built-in hashing embedder."""

    provider: str
    model: str
    space: str | None
    """None until the model has answered for the first time."""
    state: str
    """`starting`, `absent`, `no model`, `remote refused`, `failing` or `ready`."""
    since: int
    """When it entered this state."""
    why_not: str
    """Why it is not ready and what to do about it; empty if it is ready."""
    asked: int
    """Requests since the start."""
    failed: int
    """Failed requests, late ones included."""
    timeouts: int
    p50_ms: float | None
    """The median latency of recent requests that were answered."""
    coverage: float
    """The share of passages that have a vector in its space."""
    missing: int
    """Passages without one."""


class EmbedderStatus(BaseModel):
    """The engine that turns text into vectors."""

    configured: str
    active: str
    """The embedder that answers questions: `hashing`, or the provider of the learned model."""
    space: str
    """The space of its vectors."""
    why: str
    """Why this one is active."""
    since: int | None = None
    """When it became active, since the start of the daemon."""
    learned: LearnedModelStatus | None = None
    """None if the settings want no model."""


class DaemonStatus(BaseModel):
    """The health of memd."""

    running: Literal[True] = True
    """False when no daemon answers; `health`, `reasons`, `vault`, `socket` and `spool` are all there is then."""
    health: Literal["healthy", "degraded"]
    reasons: list[str]
    """Why it is degraded; empty when healthy."""
    versions: SoftwareVersions
    pid: int
    started_at: int
    started_by: StartedBy
    """The service manager that started it; `hand` for a user, a hook or the stdio proxy."""
    uptime_s: float
    """By the monotonic clock, which may stop while the machine sleeps."""
    socket: str
    log: str
    vault: VaultStatus
    books: LedgerStatus
    events: EventCounts
    summaries: SummaryCounts
    rooms: list[WorkerStatus]
    embedder: EmbedderStatus
    consolidator: dict[str, Any]
    """The last run and its counts, as the consolidator reports them."""
    spool: SpoolStatus
    errors: list[WorkerError]
    told: dict[str, Any] | None = None
    """What agents were told in the last seven days, what came of it and what it cost: `weeks`. None if the vault cannot be read."""
    here: dict[str, Any] | None = None
    """Of the directory that the caller named: `key`, `name` and `reason` of its project, whether it
    `is_known`, and its `switch`: `captures`, `recalls`, `reason`, `scope`."""


class EmbedderTracker:
    """Remembers since when which space answers questions."""

    def __init__(self, configured: str, hashing_space: str, now: int) -> None:
        self._configured = configured
        self._hashing_space = hashing_space
        self._active, self._since = hashing_space, now

    def describe(
        self, active: str, model: Mapping[str, Any], backfill: Mapping[str, Any], now: int
    ) -> EmbedderStatus:
        """Describe the embedder in use.

        `active` is the index's active space, empty before the index is loaded; `model` and `backfill`
        are what these two workers report, empty if the settings want no model.
        """
        active = active or self._hashing_space
        if active != self._active:
            self._active, self._since = active, now
        learned = _describe_model(model, backfill) if model else None
        is_learned = learned is not None and active != self._hashing_space
        return EmbedderStatus(
            configured=self._configured,
            active=learned.provider if learned and is_learned else "hashing",
            space=active,
            why=_explain_active_space(learned, is_learned=is_learned),
            since=self._since,
            learned=learned,
        )


def _describe_model(model: Mapping[str, Any], backfill: Mapping[str, Any]) -> LearnedModelStatus:
    done, missing = backfill.get("done", 0), backfill.get("missing", 0)
    coverage = round(done / (done + missing), 4) if done + missing else 0.0
    return LearnedModelStatus.model_validate({**model, "coverage": coverage, "missing": missing})


def _explain_active_space(learned: LearnedModelStatus | None, *, is_learned: bool) -> str:
    if learned is None:
        return "the settings want no model"
    if learned.state != "ready":
        return learned.why_not + ("; hashing answers alone until then" if is_learned else "")
    if is_learned:
        return f"{learned.model} answers"
    return f"{learned.model} answers, and {learned.missing:,} passages wait for their vectors"


@dataclass(frozen=True, slots=True)
class VaultCounts:
    """The counts of the vault, from one snapshot."""

    ledger: LedgerStatus = field(default_factory=LedgerStatus)
    events: EventCounts = field(default_factory=EventCounts)
    summaries: SummaryCounts = field(default_factory=SummaryCounts)


@dataclass(slots=True)
class StatusReporter:
    """Collects the status of the daemon."""

    db: Database
    supervisor: Supervisor
    paths: Paths
    clock: Callable[[], int]
    """Returns UTC milliseconds."""
    embedder: EmbedderTracker
    active_space: Callable[[], str] = str
    started_by: StartedBy = "hand"
    started_at: int = field(init=False)
    _started_s: float = field(init=False)
    _counts: VaultCounts | None = None
    _counts_valid_until_s: float = 0.0

    def __post_init__(self) -> None:
        """Take now as the start."""
        self.started_at, self._started_s = self.clock(), self.supervisor.seconds()

    async def report(self) -> dict[str, Any]:
        """Return the JSON of a DaemonStatus."""
        counts, read_error = await self._read_counts()
        # In a thread, because a slow disk may keep these waiting.
        spool = await anyio.to_thread.run_sync(measure_spools, self.paths.spools)
        vault = await anyio.to_thread.run_sync(self._describe_vault)
        reasons = [] if read_error is None else [f"the vault cannot be read: {read_error}"]
        if self.db.damage is not None:
            reasons = [f"nothing is written any more, events wait in the spool: {self.db.damage}"]
        workers, now = self.supervisor.workers, self.clock()
        crashes = _list_crashes(self.supervisor)
        reasons += degraded_reasons(workers, counts.ledger, spool, crashes, now)
        status = DaemonStatus(
            health="degraded" if reasons else "healthy",
            reasons=reasons,
            versions=software_versions(),
            pid=os.getpid(),
            started_at=self.started_at,
            started_by=self.started_by,
            uptime_s=round(self.supervisor.seconds() - self._started_s, 1),
            socket=self.paths.socket,
            log=self.paths.log,
            vault=vault,
            books=counts.ledger,
            events=counts.events,
            summaries=counts.summaries,
            rooms=[_describe_worker(one) for one in workers],
            embedder=self.embedder.describe(
                self.active_space(),
                _worker_report(workers, "embedder"),
                _worker_report(workers, "backfill"),
                now,
            ),
            consolidator=_worker_report(workers, "consolidator"),
            spool=spool,
            errors=crashes,
        )
        return status.model_dump(mode="json", by_alias=True)

    async def _read_counts(self) -> tuple[VaultCounts, str | None]:
        """Return the counts, and why they could not be read: then they are the last known ones.

        Counts that took long to read are returned again for a moment: health checks ask often.
        """
        seconds = self.supervisor.seconds
        started = seconds()
        if self._counts is None or started >= self._counts_valid_until_s:
            try:
                self._counts = await self.db.read(_count_rows)
            except Broken as error:
                return self._counts or VaultCounts(), error.message
            ended = seconds()
            is_slow = ended - started > _QUICK_S
            self._counts_valid_until_s = ended + (_CACHE_S if is_slow else 0.0)
        return self._counts, None

    def _describe_vault(self) -> VaultStatus:
        return VaultStatus(
            name=self.paths.vault,
            path=str(Path(self.db.path)),
            bytes=self.db.size(),
            schema_version=len(database.migrations()),
        )


def _count_rows(tx: Connection) -> VaultCounts:
    outcomes = store_ledger.balance(tx)
    received = outcomes.pop("received")
    events, unknown = store_events.event_counts(tx), store_ledger.unknown_kinds(tx)
    summaries = store_summaries.summary_counts(tx)
    return VaultCounts(
        LedgerStatus(
            received=received,
            **outcomes,
            balanced=received == sum(outcomes.values()),
            reasons={
                name: store_ledger.outcome_reasons(tx, name) for name in ("filtered", "refused")
            }
            | ({"stored": unknown} if unknown else {}),
        ),
        EventCounts(
            count=events["events"] or 0,
            pending=events["pending"] or 0,
            sessions=events["sessions"] or 0,
            last_at=events["last_at"],
            unknown=events["unknown"] or 0,
        ),
        SummaryCounts(
            count=summaries.pop("summaries"), to_index=fulltext.count_changes(tx), **summaries
        ),
    )


def measure_spools(directories: Sequence[str]) -> SpoolStatus:
    """Measure the files that wait in these directories; one that does not exist is empty."""
    found: list[os.stat_result] = []
    for directory in directories:
        with contextlib.suppress(FileNotFoundError), os.scandir(directory) as entries:
            for entry in entries:
                # The ingestor may take a file away meanwhile.
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file(follow_symlinks=False):
                        found.append(entry.stat(follow_symlinks=False))
    waiting = [one for one in found if one.st_size]
    return SpoolStatus(
        bytes=sum(one.st_size for one in waiting),
        files=len(waiting),
        oldest_at=min((one.st_mtime_ns // 1_000_000 for one in waiting), default=None),
    )


@functools.cache
def software_versions() -> SoftwareVersions:
    """Return the versions in use. Looked up once, because an upgrade may replace a package's files."""
    return SoftwareVersions(
        memd=__version__,
        python=platform.python_version(),
        sqlite=sqlite_version(),
        mcp=metadata.version("mcp"),
    )


def degraded_reasons(
    workers: Sequence[SupervisedWorker],
    entries: LedgerStatus,
    spool: SpoolStatus,
    crashes: Sequence[WorkerError],
    now: int,
) -> list[str]:
    """List in words what is wrong; empty if memd is healthy."""
    running = [(one.worker.name, one.worker.status()) for one in workers if one.state == "running"]
    reasons = [
        f"{one.worker.name} is {one.state}: {one.last_error or 'it ended'}"
        for one in workers
        if one.state != "running"
    ]
    reasons += [str(trouble) for one in workers if (trouble := one.worker.status().get("trouble"))]
    reasons += [
        f"{name} fails: {report.get('why_failing') or failing}"
        for name, report in running
        if (failing := report.get("failing"))
    ]
    reasons += [
        f"{crash.room} crashed {crash.ago_s:.0f} s ago: {crash.error}"
        for crash in crashes
        if crash.ago_s < RECENT_CRASH_S and crash.room in dict(running)
    ]
    if not entries.balanced:
        reasons.append("the ledger of events does not balance: an event is unaccounted for")
    if spool.oldest_at is not None and now - spool.oldest_at > SPOOL_LATE_MS:
        reasons.append(f"the spool is not being emptied: {spool.files} files wait")
    return reasons


def _describe_worker(supervised: SupervisedWorker) -> WorkerStatus:
    known = {
        "name": supervised.worker.name,
        "state": supervised.state,
        "restarts": supervised.restarts,
        "last_error": supervised.last_error,
    }
    return WorkerStatus.model_validate({**supervised.worker.status(), **known})


def _worker_report(workers: Sequence[SupervisedWorker], name: str) -> dict[str, Any]:
    """Return what a worker reports of itself; nothing if there is no such worker."""
    return next((dict(one.worker.status()) for one in workers if one.worker.name == name), {})


def _list_crashes(supervisor: Supervisor) -> list[WorkerError]:
    now = supervisor.seconds()
    return [
        WorkerError(
            room=one.worker.name, error=one.last_error, ago_s=round(now - one.last_error_at_s, 1)
        )
        for one in supervisor.workers
        if one.last_error is not None and one.last_error_at_s is not None
    ]

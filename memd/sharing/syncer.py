"""One sync of a vault with a place: note, read and merge, erase, append.

Whatever is interrupted is done again the next time: a batch is merged and its position noted in one
transaction, and what was appended without being noted is read back as one's own.
"""

import json
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from memd import log
from memd.sharing.records import (
    FORGET,
    KINDS,
    UNDERSTOOD,
    LogBatch,
    LogLost,
    Record,
    RefusedChunk,
    Transport,
    redact_value,
)
from memd.sharing.replica import MergeOutcome, Replica
from memd.store import erasure, ledger, session_context, sharing, statements
from memd.store.database import Connection, Database
from memd.time_expressions import DAY_MS

_T = TypeVar("_T")
_PART = 200
"""Memories or records in one transaction: a tenth of a second in which nothing else is written."""
_WAIT_DAYS_MAX = 7
"""How long a batch is merged again because it refers to memories that have not come."""
_ERASED_MAX = 500
"""Memories that are forgotten in one request."""
_DEVICE_NOTE = "sync device"
_FORM_NOTE = "sync form of "
"""With the name of a place: the form in which our log was written there."""
_FORM = "2"
"""Part of every form: a log of this form has all that anybody has forgotten."""
_LOG_NOTE = "sync log at "
"""With the name of a place: a hash of our log as we left it there."""
_SETTLED_NOTE = "sync settled"
"""The last register that was considered when it was decided which supersessions hold, and by which rules."""
_SETTLED_BY = 3
"""The version of those rules: a vault that was decided by former ones is decided again."""


@dataclass(frozen=True, slots=True)
class SameRemote:
    """Two projects that are clones of one repository; the user says whether they are one."""

    here: str
    """Key of the project in which sessions ran on this device, or of the older one."""
    there: str
    remote: str


@dataclass(slots=True)
class SyncReport:
    """Report of a sync, or of its dry run."""

    place: str
    is_dry_run: bool
    sent: int = 0
    """Records that were appended to our log."""
    received: dict[str, int] = field(default_factory=dict)
    """Kind of record → how many changed something here."""
    forgotten: int = 0
    """Memories that were erased here because they were forgotten elsewhere."""
    rewritten: bool = False
    """Whether our log was rewritten, without what was forgotten."""
    newer: dict[str, int] = field(default_factory=dict)
    """Id of a device → how many records of its log are for a newer memd: they are left where they are."""
    broken: int = 0
    """Logs that are read from their beginning next time, because they are not what was read so far."""
    waiting: int = 0
    """Batches that refer to what has not come yet."""
    refused: list[RefusedChunk] = field(default_factory=list)
    devices: dict[str, str] = field(default_factory=dict)
    """Id → name of every other device whose records were read."""
    same: list[SameRemote] = field(default_factory=list)
    """Projects that are clones of one repository, and that the user may let be one."""


@dataclass(eq=False)
class Syncer:
    """Syncs one vault; one sync at a time."""

    db: Database
    redact: Callable[[Any], Any]
    clock: Callable[[], int]
    on_written: Callable[[], None]
    forget: Callable[[Sequence[int]], Awaitable[object]]
    """Erases memories from the vault, its log and its index."""
    new_device: Callable[[], str]
    """Makes the id of a new device."""
    read_remote: Callable[[str], str | None]
    """Reads the git remote of a repository as `host/path`."""
    finish_erasing: Callable[[], Awaitable[object]] = anyio.lowlevel.checkpoint
    """Leaves no word of what was redacted elsewhere in the vault's files."""
    host: str = ""
    """What tells this machine from another, so that a copied vault becomes a device of its own."""
    skips_unchanged: bool = False
    """Whether what was only said here is not looked at again, and not decided again: what relates memories travels later."""
    _lock: anyio.Lock = field(default_factory=anyio.Lock, init=False)
    _noted_at: int = field(default=-1, init=False)
    """The last change that was noted."""

    async def identify(self) -> str:
        """Return the id of this device; a new one on a new machine."""

        def read_or_make(tx: Connection) -> str:
            noted = json.loads(ledger.read_note(tx, _DEVICE_NOTE) or "{}")
            if noted.get("host") != self.host:
                noted = {"id": self.new_device(), "host": self.host}
                ledger.write_note(tx, _DEVICE_NOTE, json.dumps(noted))
            return str(noted["id"])

        return await self.db.write(read_or_make)

    def find_remote(self, directory: str) -> str:
        """Return the git remote by which a project is known on other machines; "" if there is none, or it is a path of this one."""
        remote = self.read_remote(directory) or ""
        return "" if remote.startswith(("/", ".")) else remote

    async def sync(
        self,
        place: str,
        transport: Transport,
        *,
        dry_run: bool = False,
        view: Callable[..., Replica] = Replica,
    ) -> SyncReport:
        """Sync with a place. Raises PlaceUnreachable or OSError if it cannot be read or written.

        `view`: what of the vault is shared there.
        """
        async with self._lock:
            report = SyncReport(place, dry_run)
            run = _Run(self, place, transport, await self.identify(), report, view)
            return await run.rehearse() if dry_run else await run.run()

    async def note(self, note: Callable[[], Awaitable[None]]) -> None:
        """Note what was changed in the vault, unless nothing was."""
        last = await self.db.read(session_context.count_changes)
        if not self.skips_unchanged or last != self._noted_at:
            await note()
        self._noted_at = last


@dataclass(eq=False)
class _Run:
    """One sync."""

    syncer: Syncer
    place: str
    transport: Transport
    device: str
    report: SyncReport
    view: Callable[..., Replica]
    _remotes: Mapping[str, str] = field(default_factory=dict)
    _cursors: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Device → (how far its log was read before, since when)."""
    _logs: Collection[str] = frozenset()
    """The devices that have a log there."""
    _ends: dict[str, str] = field(default_factory=dict)
    """Device → how far its log was read now."""
    _waiting: list[LogBatch] = field(default_factory=list)
    _said: set[str] = field(default_factory=set)
    """Memories that others said."""
    _newer: dict[str, dict[str, int]] = field(default_factory=dict)
    """Device → position in its log → how many records there are for a newer memd."""

    async def run(self) -> SyncReport:
        """Sync, in transactions that each leave vault and target in order."""
        db = self.syncer.db
        await self._prepare()
        await self.syncer.note(self._note_changes)
        # What is forgotten is known before what still says it: a log there may be an old one.
        async for batch in self._read(only_erasures=True):
            await self._write_parts(batch.records, self._merge_part)
        async for batch in self._read():
            await self._merge(batch)
        await db.write(self._finish_merging)
        await self._erase()
        await self._append()
        if await db.read(erasure.pending_marks):
            await self.syncer.finish_erasing()
        self.report.same = await db.read(self._find_clones)
        if self.report.received or self.report.forgotten:
            self.syncer.on_written()
        counts = {
            "sent": self.report.sent, "received": sum(self.report.received.values()),
            "forgotten": self.report.forgotten, "refused": len(self.report.refused),
        }  # fmt: skip
        if not self.syncer.skips_unchanged or any(counts.values()):
            log.get("sync").info("place_synced", **counts)
        return self.report

    async def rehearse(self) -> SyncReport:
        """Do all of it in one transaction, which is then rolled back."""
        await self._prepare()
        erasures = [batch async for batch in self._read(only_erasures=True)]
        found = [batch async for batch in self._read()]

        def try_out(tx: Connection) -> None:
            self._replica(tx).note_changes()
            for batch in erasures:
                self._merge_part(tx, batch.records)
            for batch in found:
                self._merge_batch(tx, batch, batch.records)
            self._finish_merging(tx)
            self.report.forgotten = len(statements.forgotten_but_there(tx))
            sent = sharing.read_target(tx, self.place).sent
            self.report.sent = sum(
                1 for _ in self._replica(tx).own_records(sent, self._find_gone(tx))
            )
            self.report.same = self._find_clones(tx)

        await self.syncer.db.rehearse(try_out)
        return self.report

    # ── Reading ──────────────────────────────────────────────────────────────────────────────────

    async def _prepare(self) -> None:
        db = self.syncer.db
        keys = await db.read(statements.project_keys)
        found = await anyio.to_thread.run_sync(
            lambda: {key: self.syncer.find_remote(key) for key in {*keys.values()} if key[0] == "/"}
        )
        self._remotes = {key: remote for key, remote in found.items() if remote}
        self._logs = await anyio.to_thread.run_sync(self.transport.list_logs)
        self._cursors = await db.read(lambda tx: sharing.read_cursors(tx, self.place))
        noted = await db.read(lambda tx: ledger.read_note(tx, statements.NEWER_NOTE + self.place))
        newer = json.loads(noted or "{}")
        known_newer = {
            one: found for one, found in newer.get("logs", {}).items() if one in self._logs
        }
        if newer.get("understood") == UNDERSTOOD:
            self._newer = known_newer
        else:
            # This memd may understand what a former one left.
            afresh = {device: ("", self.syncer.clock()) for device in known_newer}
            self._cursors = {**self._cursors, **afresh}

    async def _read(self, *, only_erasures: bool = False) -> AsyncIterator[LogBatch]:
        """Yield each batch, redacted by the rules of this vault."""
        positions = {device: position for device, (position, _) in self._cursors.items()}
        found = self.transport.read(positions, only_erasures=only_erasures)
        while (batch := await anyio.to_thread.run_sync(self._read_next, found)) is not None:
            if isinstance(batch, LogBatch):
                yield batch
            elif not only_erasures:
                self.report.refused.append(batch)

    def _find_gone(self, tx: Connection) -> list[str]:
        """Find the devices whose logs are gone: this device passes on their records."""
        known = sharing.read_cursors(tx, self.place)
        return sorted(known.keys() - self._logs - {self.device})

    def _read_next(
        self, found: Iterator[LogBatch | RefusedChunk]
    ) -> LogBatch | RefusedChunk | None:
        batch = next(found, None)
        if not isinstance(batch, LogBatch):
            return batch
        redacted = (redact_value(record, self.syncer.redact) for record in batch.records)
        order = {kind: number for number, kind in enumerate(KINDS)}
        return replace(batch, records=tuple(sorted(redacted, key=lambda one: order[one.kind])))

    def _replica(self, tx: Connection) -> Replica:
        return self.view(tx, self.device, self.syncer.clock(), remotes=self._remotes)

    async def _note_changes(self) -> None:
        """Note what was changed here, in transactions that are short: finding it takes longer."""
        db = self.syncer.db
        changed = await db.read(lambda tx: self._replica(tx).find_changed_memories())
        await self._write_parts(changed, lambda tx, uids: self._replica(tx).note_memories(uids))
        await db.write(lambda tx: self._replica(tx).note_rest())

    async def _write_parts(
        self, items: Sequence[_T], work: Callable[[Connection, Sequence[_T]], object]
    ) -> None:
        for part in _slice(items):
            await self.syncer.db.write(lambda tx: work(tx, part))  # noqa: B023  # it is awaited

    def _merge_part(
        self, tx: Connection, records: Sequence[Record], batch: LogBatch | None = None
    ) -> MergeOutcome:
        return self._count_outcome(self._replica(tx).merge(records, batch))

    def _count_outcome(self, outcome: MergeOutcome) -> MergeOutcome:
        for kind, count in outcome.applied.items():
            self.report.received[kind] = self.report.received.get(kind, 0) + count
        self._said |= outcome.memories
        return outcome

    async def _merge(self, batch: LogBatch) -> None:
        """Merge a batch in transactions that are short; merging a part of it twice changes nothing."""
        parts = list(_slice(batch.records)) or [()]
        for number, part in enumerate(parts, start=1):
            work = partial(self._merge_batch, batch=batch, part=part, is_last=number == len(parts))
            await self.syncer.db.write(work)

    def _merge_batch(
        self, tx: Connection, batch: LogBatch, part: Sequence[Record], *, is_last: bool = True
    ) -> None:
        outcome = self._merge_part(tx, part, batch)
        self.report.refused += [
            RefusedChunk(batch.device, row.name, row.reason)
            for row in batch.rows if row.problem == "refused"
        ]  # fmt: skip
        if outcome.is_waiting and batch not in self._waiting:
            self._waiting.append(batch)
        if not is_last:
            return
        for device in _find_speakers(batch) - {self.device}:
            sharing.note_device(tx, self.place, device, self.syncer.clock())
        self._ends[batch.device] = batch.position
        self._note_newer(batch)
        if batch.device != self.device:
            self.report.devices[batch.device] = batch.label
        self.report.broken += int(outcome.is_broken)
        self._move_cursor(tx, batch.device, "" if outcome.is_broken else batch.position)

    def _note_newer(self, batch: LogBatch) -> None:
        """Note how many records of a log this memd does not understand, until it or the log has changed."""
        if batch.is_first:
            self._newer.pop(batch.device, None)
        if batch.newer:
            self._newer.setdefault(batch.device, {})[batch.position] = len(batch.newer)

    def _tell_newer(self, tx: Connection) -> None:
        self.report.newer = {one: sum(found.values()) for one, found in self._newer.items()}
        noted = {"understood": UNDERSTOOD, "logs": self._newer}
        if self._newer or ledger.read_note(tx, statements.NEWER_NOTE + self.place):
            ledger.write_note(tx, statements.NEWER_NOTE + self.place, json.dumps(noted))

    def _move_cursor(self, tx: Connection, device: str, position: str) -> None:
        """Note how far a log was read; not beyond a batch that waits, but for a week at most."""
        before, since = self._cursors.get(device, ("", self.syncer.clock()))
        waits = any(batch.device == device for batch in self._waiting)
        if not waits or self.syncer.clock() - since > _WAIT_DAYS_MAX * DAY_MS:
            sharing.write_cursor(tx, self.place, device, position, self.syncer.clock())
        elif not before:
            sharing.write_cursor(tx, self.place, device, "", since)

    def _finish_merging(self, tx: Connection) -> None:
        """Merge again the batches that referred to memories that came later, and apply what all statements decide."""
        waiting, self._waiting = self._waiting, []
        for batch in waiting:
            self._merge_batch(tx, batch, batch.records)
        for device in {batch.device for batch in waiting}:
            self._move_cursor(tx, device, self._ends[device])
        self.report.waiting = len(self._waiting)
        self._count_outcome(self._replica(tx).leave_logs(self._find_gone(tx)))
        self._tell_newer(tx)
        self._settle(tx)

    def _settle(self, tx: Connection, *, is_due: bool = False) -> None:
        """Apply what all statements decide, if there are new ones since the last time or it `is_due`."""
        replica = self._replica(tx)
        replica.note_relations()
        last = f"{sharing.last_register_id(tx)} by {_SETTLED_BY}"
        is_new = not self.syncer.skips_unchanged and ledger.read_note(tx, _SETTLED_NOTE) != last
        if is_due or is_new or self._said:
            replica.settle(self._said)
            last = f"{sharing.last_register_id(tx)} by {_SETTLED_BY}"
            ledger.write_note(tx, _SETTLED_NOTE, last)

    def _find_clones(self, tx: Connection) -> list[SameRemote]:
        replica = self._replica(tx)
        found = {key: replica.remote_of(key) for key in statements.projects_with_memories(tx)}
        own = {key: statements.count_own_sessions(tx, key) for key in found}
        return find_clones(found, own)

    # ── Writing ──────────────────────────────────────────────────────────────────────────────────

    async def _erase(self) -> None:
        """Forget here what was forgotten elsewhere, as if the user did it here."""
        db = self.syncer.db
        while pending := await db.read(statements.forgotten_but_there):
            await self.syncer.forget(pending[:_ERASED_MAX])
            self.report.forgotten += len(pending[:_ERASED_MAX])
        if self.report.forgotten:
            await self._note_changes()
            await db.write(partial(self._settle, is_due=True))

    async def _append(self) -> None:
        """Append the records that the target lacks, or rewrite our log if it has records that it should not have."""
        db = self.syncer.db
        state = await db.read(lambda tx: sharing.read_target(tx, self.place))
        unsent = await db.read(partial(self._read_unsent, after=state.sent))
        form = await db.read(lambda tx: ledger.read_note(tx, _FORM_NOTE + self.place)) or ""
        is_outdated = unsent.erasures != state.erasures or form != unsent.form
        is_refused = any(one.device == self.device for one in self.report.refused)
        is_there = unsent.position or is_refused or unsent.speaks_for_others
        if (is_outdated and is_there) or await self._is_put_back(unsent.position):
            unsent = await self._rewrite()
        elif unsent.records:
            try:
                unsent = await self._write(self.transport.append, unsent)
            except LogLost:
                unsent = await self._rewrite()
        self.report.sent = len(unsent.records)
        there = await anyio.to_thread.run_sync(self.transport.describe_own, unsent.position)
        await db.write(partial(self._note_sent, sent=unsent, there=there))

    async def _is_put_back(self, position: str) -> bool:
        """Return whether our log there differs from the one we left: an older state, or one that lacks a part."""
        there = await anyio.to_thread.run_sync(self.transport.describe_own, position)
        noted = await self.syncer.db.read(lambda tx: ledger.read_note(tx, _LOG_NOTE + self.place))
        # What a killed sync had appended was read back a moment ago.
        is_new = self.device in self._ends
        return not there or (noted is not None and noted != there and not is_new)

    async def _rewrite(self) -> "_Unsent":
        everything = await self.syncer.db.read(partial(self._read_unsent, after=0))
        self.report.rewritten = True
        return await self._write(self.transport.rewrite, everything)

    async def _write(self, write: Callable[..., str], unsent: "_Unsent") -> "_Unsent":
        now = self.syncer.clock()
        work = partial(write, unsent.records, unsent.position, now)
        return replace(unsent, position=await anyio.to_thread.run_sync(work))

    def _read_unsent(self, tx: Connection, after: int) -> "_Unsent":
        gone = self._find_gone(tx)
        found = self._replica(tx).own_records(after, gone)
        position, _ = sharing.read_cursors(tx, self.place).get(self.device, ("", 0))
        return _Unsent(
            [record for _, record in found], position, sharing.last_register_id(tx),
            statements.count_erasures(tx), " ".join([self.transport.form, *gone, _FORM]).strip(), bool(gone),
        )  # fmt: skip

    def _note_sent(self, tx: Connection, sent: "_Unsent", there: str) -> None:
        now = self.syncer.clock()
        sharing.write_cursor(tx, self.place, self.device, sent.position, now)
        state = sharing.TargetState(self.place, sent.last_id, sent.erasures, now)
        sharing.write_target(tx, state)
        ledger.write_note(tx, _FORM_NOTE + self.place, sent.form)
        ledger.write_note(tx, _LOG_NOTE + self.place, there)


@dataclass(frozen=True, slots=True)
class _Unsent:
    """Records for our log, as of one moment."""

    records: Sequence[Record]
    position: str
    """Where our log ends."""
    last_id: int
    erasures: int
    form: str
    """Whom it is encrypted for, and which other devices it stands for."""
    speaks_for_others: bool


def _find_speakers(batch: LogBatch) -> set[str]:
    """Find the devices whose records a log passes on because their own logs are gone."""
    said = (one for one in batch.records if one.kind != FORGET)
    return {record.stamp.device for record in said} - {batch.device}


def _slice(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    return (items[start : start + _PART] for start in range(0, len(items), _PART))


def find_clones(remotes: Mapping[str, str], own_sessions: Mapping[str, int]) -> list[SameRemote]:
    """Pairs of projects (key → remote) with one remote; `own_sessions`: key → sessions on this device."""
    groups: dict[str, list[str]] = {}
    for key, remote in remotes.items():
        if remote:
            groups.setdefault(remote, []).append(key)
    pairs = []
    for remote, keys in sorted(groups.items()):
        here, *others = sorted(keys, key=lambda key: (-own_sessions.get(key, 0), key))
        pairs += [SameRemote(here, there, remote) for there in others]
    return pairs

"""One sync of a vault with a place: note, read and merge, erase, append.

Whatever is interrupted is done again the next time: a batch is merged and its position noted in one
transaction, and what was appended without being noted is read back as one's own.
"""

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

import anyio
import anyio.to_thread

from memd import log
from memd.store import ledger
from memd.store.database import Connection, Database
from memd.store.sync import registers, statements
from memd.sync import remotes
from memd.sync.records import Record
from memd.sync.remotes import SameRemote
from memd.sync.replica import Replica
from memd.sync.transport import LogBatch, LogLost, RefusedChunk, Transport

_BATCHES_MAX = 8
"""Batches that are merged in one transaction, during which nothing else is written."""
_WAIT_DAYS_MAX = 7
"""How long a batch is merged again because it speaks of memories that have not come."""
_DAY_MS = 86_400_000
_ERASED_MAX = 500
"""Memories that are forgotten in one request."""
_DEVICE_NOTE = "sync device"


@dataclass(slots=True)
class SyncReport:
    """What a sync did, or would do."""

    place: str
    is_dry_run: bool
    sent: int = 0
    """Records that were appended to our log."""
    received: dict[str, int] = field(default_factory=dict)
    """Kind of record → how many changed something here."""
    forgotten: int = 0
    """Memories that were erased here because they were forgotten elsewhere."""
    rewritten: bool = False
    """Whether our log was written anew, without what was forgotten."""
    waiting: int = 0
    """Batches that speak of what has not come yet."""
    refused: list[RefusedChunk] = field(default_factory=list)
    devices: dict[str, str] = field(default_factory=dict)
    """Id → name of every other device whose records were read."""
    same: list[SameRemote] = field(default_factory=list)
    """Projects that are clones of one repository, and that the user may let be one."""


class _Rehearsed(Exception):  # it ends a rehearsal, and is no error
    """Ends the transaction of a dry run, so that nothing of it stays."""


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
    host: str = ""
    """What tells this machine from another, so that a copied vault becomes a device of its own."""
    _lock: anyio.Lock = field(default_factory=anyio.Lock, init=False)

    async def identify(self) -> str:
        """Return the id of this device; a new one on a new machine."""

        def read_or_make(tx: Connection) -> str:
            noted = json.loads(ledger.read_note(tx, _DEVICE_NOTE) or "{}")
            if noted.get("host") != self.host:
                noted = {"id": self.new_device(), "host": self.host}
                ledger.write_note(tx, _DEVICE_NOTE, json.dumps(noted))
            return str(noted["id"])

        return await self.db.write(read_or_make)

    async def sync(self, place: str, transport: Transport, *, dry_run: bool = False) -> SyncReport:
        """Sync with a place. Raises PlaceUnreachable or OSError if it cannot be read or written."""
        async with self._lock:
            run = _Run(self, place, transport, await self.identify(), SyncReport(place, dry_run))
            return await run.rehearse() if dry_run else await run.run()


@dataclass(eq=False)
class _Run:
    """One sync."""

    syncer: Syncer
    place: str
    transport: Transport
    device: str
    report: SyncReport
    _remotes: Mapping[str, str] = field(default_factory=dict)
    _cursors: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Device → (how far its log was read before, since when)."""
    _ends: dict[str, str] = field(default_factory=dict)
    """Device → how far its log was read now."""
    _waiting: list[LogBatch] = field(default_factory=list)

    async def run(self) -> SyncReport:
        """Do it, in transactions that each leave vault and place in order."""
        db = self.syncer.db
        await self._prepare()
        await db.write(self._note)
        async for batches in self._read():
            await db.write(partial(self._merge, batches=batches))
        await db.write(self._finish_merging)
        await self._erase()
        await self._append()
        self.report.same = await db.read(self._find_clones)
        if self.report.received or self.report.forgotten:
            self.syncer.on_written()
        log.get("sync").info(
            "place_synced", sent=self.report.sent, received=sum(self.report.received.values()),
            forgotten=self.report.forgotten, refused=len(self.report.refused),
        )  # fmt: skip
        return self.report

    async def rehearse(self) -> SyncReport:
        """Do all of it in one transaction, which is then rolled back."""
        await self._prepare()
        found = [batch async for batches in self._read() for batch in batches]

        def try_out(tx: Connection) -> None:
            self._note(tx)
            self._merge(tx, found)
            self._finish_merging(tx)
            self.report.forgotten = len(statements.forgotten_but_there(tx))
            sent = registers.read_place(tx, self.place).sent
            self.report.sent = sum(1 for _ in self._replica(tx).own_records(sent))
            self.report.same = self._find_clones(tx)
            raise _Rehearsed

        with contextlib.suppress(_Rehearsed):
            await self.syncer.db.write(try_out)
        return self.report

    # ── Reading ──────────────────────────────────────────────────────────────────────────────────

    async def _prepare(self) -> None:
        db = self.syncer.db
        keys = await db.read(statements.project_keys)
        self._remotes = await anyio.to_thread.run_sync(remotes.read_remotes, set(keys.values()))
        self._cursors = await db.read(lambda tx: registers.read_cursors(tx, self.place))

    async def _read(self) -> AsyncIterator[list[LogBatch]]:
        """Yield a few batches at a time."""
        positions = {device: position for device, (position, _) in self._cursors.items()}
        found = self.transport.read(positions)
        while batches := await anyio.to_thread.run_sync(_take_few, found):
            self.report.refused += [one for one in batches if isinstance(one, RefusedChunk)]
            yield [one for one in batches if isinstance(one, LogBatch)]

    def _replica(self, tx: Connection) -> Replica:
        return Replica(
            tx, self.device, self.syncer.clock(), redact=self.syncer.redact, remotes=self._remotes
        )

    def _note(self, tx: Connection) -> None:
        self._replica(tx).note_changes()

    def _merge(self, tx: Connection, batches: Sequence[LogBatch]) -> None:
        replica = self._replica(tx)
        replica.note_relations()
        for batch in batches:
            self._merge_batch(tx, replica, batch)

    def _merge_batch(self, tx: Connection, replica: Replica, batch: LogBatch) -> None:
        outcome = replica.merge(batch.records)
        for kind, count in outcome.applied.items():
            self.report.received[kind] = self.report.received.get(kind, 0) + count
        self._ends[batch.device] = batch.position
        if batch.device != self.device:
            self.report.devices[batch.device] = batch.label
        if outcome.is_waiting:
            self._waiting.append(batch)
        self._move_cursor(tx, batch.device, batch.position)

    def _move_cursor(self, tx: Connection, device: str, position: str) -> None:
        """Note how far a log was read; not beyond a batch that waits, but for a week at most."""
        before, since = self._cursors.get(device, ("", self.syncer.clock()))
        waits = any(batch.device == device for batch in self._waiting)
        if not waits or self.syncer.clock() - since > _WAIT_DAYS_MAX * _DAY_MS:
            registers.write_cursor(tx, self.place, device, position, self.syncer.clock())
        elif not before:
            registers.write_cursor(tx, self.place, device, "", since)

    def _finish_merging(self, tx: Connection) -> None:
        """Merge again what spoke of memories that came later, and let hold what holds of all."""
        waiting, self._waiting = self._waiting, []
        replica = self._replica(tx)
        replica.note_relations()
        for batch in waiting:
            self._merge_batch(tx, replica, batch)
        for device in {batch.device for batch in waiting}:
            self._move_cursor(tx, device, self._ends[device])
        self.report.waiting = len(self._waiting)
        replica.settle()

    def _find_clones(self, tx: Connection) -> list[SameRemote]:
        replica = self._replica(tx)
        found = {key: replica.remote_of(key) for key in statements.projects_with_memories(tx)}
        own = {key: statements.count_own_sessions(tx, key) for key in found}
        return remotes.find_clones(found, own)

    # ── Writing ──────────────────────────────────────────────────────────────────────────────────

    async def _erase(self) -> None:
        """Forget here what was forgotten elsewhere, as if the user did it here."""
        db = self.syncer.db
        while pending := await db.read(statements.forgotten_but_there):
            await self.syncer.forget(pending[:_ERASED_MAX])
            self.report.forgotten += len(pending[:_ERASED_MAX])
        if self.report.forgotten:
            await db.write(self._note_and_settle)

    def _note_and_settle(self, tx: Connection) -> None:
        replica = self._replica(tx)
        replica.note_changes()
        replica.settle()

    async def _append(self) -> None:
        """Append what the place does not have, or write our log anew if it has what was erased here."""
        db = self.syncer.db
        state = await db.read(lambda tx: registers.read_place(tx, self.place))
        unsent = await db.read(partial(self._read_unsent, after=state.sent))
        if unsent.position and unsent.erasures != state.erasures:
            unsent = await self._rewrite()
        elif unsent.records:
            try:
                unsent = await self._write(self.transport.append, unsent)
            except LogLost:
                unsent = await self._rewrite()
        self.report.sent = len(unsent.records)
        await db.write(partial(self._note_sent, sent=unsent))

    async def _rewrite(self) -> "_Unsent":
        everything = await self.syncer.db.read(partial(self._read_unsent, after=0))
        self.report.rewritten = True
        return await self._write(self.transport.rewrite, everything)

    async def _write(self, write: Callable[..., str], unsent: "_Unsent") -> "_Unsent":
        now = self.syncer.clock()
        work = partial(write, unsent.records, unsent.position, now)
        return replace(unsent, position=await anyio.to_thread.run_sync(work))

    def _read_unsent(self, tx: Connection, after: int) -> "_Unsent":
        found = self._replica(tx).own_records(after)
        position, _ = registers.read_cursors(tx, self.place).get(self.device, ("", 0))
        return _Unsent(
            [record for _, record in found], position, registers.last_register_id(tx),
            statements.count_erasures(tx),
        )  # fmt: skip

    def _note_sent(self, tx: Connection, sent: "_Unsent") -> None:
        now = self.syncer.clock()
        registers.write_cursor(tx, self.place, self.device, sent.position, now)
        state = registers.PlaceState(self.place, sent.last_id, sent.erasures, now)
        registers.write_place(tx, state)


@dataclass(frozen=True, slots=True)
class _Unsent:
    """Records for our log, as of one moment."""

    records: Sequence[Record]
    position: str
    """Where our log ends."""
    last_id: int
    erasures: int


def _take_few(found: Iterator[LogBatch | RefusedChunk]) -> list[LogBatch | RefusedChunk]:
    return list(islice(found, _BATCHES_MAX))

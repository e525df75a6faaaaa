"""Ingestor: group commit of captured events; drains the spool."""

import contextlib
import functools
import json
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from memd import log
from memd.capture import spool, truncate
from memd.capture.claude_code import Refused
from memd.capture.prepare import UNEXPECTED, CaptureRequest, IngestItem, Preparer, is_small
from memd.capture.project import ProjectResolver
from memd.capture.write import LookupCache, PreparedItem, Receipt, rehearse, store_items
from memd.config import CaptureConfig
from memd.errors import Broken, MemdError, SpoolBroken, VaultError
from memd.store import erasure, ledger
from memd.store.database import Connection, Database
from memd.store.erasure import ErasureMarks
from memd.wakeup import AutoResetEvent

# MERGED from memd.capture.sharing:
# MERGED One commit for many: calls that arrive while one is under way share the next.
# MERGED
# MERGED Whoever finds nobody at work leads: prepares and stores its own call and all that wait, hands each its
# MERGED receipts, and appoints the next leader. So an fsync and a change of thread are paid once for many,
# MERGED nobody is acknowledged early, and a client that goes away takes nobody with it. Not here: what
# MERGED preparing and storing mean.


BATCH_EVENTS = 200
"""Events in one transaction, unless a single call brings more."""


@dataclass(slots=True, eq=False)
class QueuedCall:
    """One call that waits for a commit."""

    items: Sequence[IngestItem]
    prepared: Sequence[PreparedItem] | None
    called: anyio.Event | None = None
    """Set once it is settled, or is to lead; None for who waits for nobody."""
    is_settled: bool = False
    receipts: Sequence[Receipt] = ()
    error: Exception | None = None

    def settle(self, receipts: Sequence[Receipt], error: Exception | None = None) -> None:
        """Hand over what became of it."""
        self.receipts, self.error, self.is_settled = receipts, error, True
        self.call()

    def call(self) -> None:
        """Have it go on."""
        if self.called is not None:
            self.called.set()


class GroupCommit:
    """Admits calls; all on the event loop's thread, `prepare` in another."""

    def __init__(
        self,
        prepare: Callable[[Sequence[IngestItem]], list[PreparedItem]],
        store: Callable[[Callable[[], list[PreparedItem]], int], Awaitable[list[Receipt]]],
    ) -> None:
        """`store` is given what prepares, to be called in its thread, and for how many calls.

        It raises a MemdError.
        """
        self._prepare = prepare
        self._store = store
        self._queue: deque[QueuedCall] = deque()
        self._is_led = False

    @property
    def pending(self) -> int:
        """Events that wait for their commit to begin."""
        return sum(len(ticket.items) for ticket in self._queue)

    async def enqueue(
        self, items: Sequence[IngestItem], prepared: Sequence[PreparedItem] | None = None
    ) -> list[Receipt]:
        """A receipt each, after the commit. `prepared`: if that is done already.

        Raises the MemdError that kept them from being stored, or what preparing raised.
        """
        ticket = QueuedCall(items, prepared)
        self._queue.append(ticket)
        await self._called(ticket)
        if not ticket.is_settled:
            # Others wait for this commit too: it may not end with its first caller.
            with anyio.CancelScope(shield=True):
                await self._lead()
        if isinstance(ticket.error, MemdError):
            raise type(ticket.error)(ticket.error.message) from ticket.error
        if ticket.error is not None:
            raise ticket.error
        return list(ticket.receipts)

    async def _called(self, ticket: QueuedCall) -> None:
        """Wait for the turn to lead, or until another has settled this; a caller may give up."""
        if not self._is_led:
            self._is_led = True
            return
        ticket.called = anyio.Event()
        try:
            await ticket.called.wait()
        except anyio.get_cancelled_exc_class():
            if ticket in self._queue:
                self._queue.remove(ticket)
                if ticket.called.is_set():
                    self._appoint()
            raise

    async def _lead(self) -> None:
        # Others may have come in the same round of the event loop: they are taken along.
        await anyio.lowlevel.checkpoint()
        batch = self._next_batch()
        try:
            await self._work(batch)
        finally:
            for ticket in batch:
                if not ticket.is_settled:
                    ticket.settle((), Broken("the capture was interrupted"))
            self._appoint()

    def _appoint(self) -> None:
        if self._queue:
            self._queue[0].call()
        else:
            self._is_led = False

    def _next_batch(self) -> list[QueuedCall]:
        """Those that wait, the leader first, as far as they fit a transaction."""
        batch = [self._queue.popleft()]
        room = BATCH_EVENTS - len(batch[0].items)
        while self._queue and len(self._queue[0].items) <= room:
            batch.append(self._queue.popleft())
            room -= len(batch[-1].items)
        return batch

    async def _work(self, batch: Sequence[QueuedCall]) -> None:
        try:
            stored = await self._store(lambda: self._prepared(batch), len(batch))
        except MemdError as error:
            for ticket in batch:
                ticket.settle((), ticket.error or error)
            return
        receipts = iter(stored)
        for ticket in batch:
            if ticket.error is None:
                ticket.settle([next(receipts) for _ in ticket.items])
            else:
                ticket.settle((), ticket.error)

    def _prepared(self, batch: Sequence[QueuedCall]) -> list[PreparedItem]:
        """All of these, prepared where they were not; a call that cannot be prepared fails alone."""
        for ticket in batch:
            if ticket.prepared is None:
                try:
                    ticket.prepared = self._prepare(ticket.items)
                except UNEXPECTED as error:
                    ticket.error = error
        return [one for ticket in batch for one in ticket.prepared or ()]


# MERGED from memd.capture.outage:
# MERGED Whether the vault can be written just now; while it cannot, asked again and again with one small write.
# MERGED
# MERGED So a disk that has room again is noticed where no agent says anything, and a spool that cannot be taken
# MERGED in costs one row at a time. Not here: what to do about it (the intake), or what went wrong (the store).


class WriteCircuit:
    """Begins with a write that failed, ends with one that did not."""

    def __init__(self, db: Database, spool_dir: str) -> None:
        self._db = db
        self._spool_dir = spool_dir
        self._failing: MemdError | None = None
        self._is_reserve_due = True

    def record_failure(self, error: MemdError) -> None:
        """Take note of a write that failed."""
        if self._failing is None:
            log.get("intake").error("vault_not_written", error=error.message)
        self._failing = error

    def record_success(self) -> None:
        """Take note of a write that did not fail."""
        if self._failing is not None:
            log.get("intake").info("vault_written_again")
            self._is_reserve_due = True
        self._failing = None

    async def is_writable(self) -> bool:
        """Whether the vault can be written: by trying, if it could not be before."""
        if self._failing is not None:
            try:
                await self._db.write(ledger.probe_write)
            except MemdError as error:
                self.record_failure(error)
                return False
            self.record_success()
        if self._is_reserve_due:
            # Where there is no room for it now, there may be after the next outage.
            self._is_reserve_due = False
            keep = functools.partial(spool.keep_reserve, self._spool_dir)
            await anyio.to_thread.run_sync(keep)
        return True

    def status(self) -> dict[str, str | None]:
        """Its error's name as `failing`, and `why_failing` in words; None when there is none."""
        error = self._failing
        return {
            "failing": type(error).__name__ if error is not None else None,
            "why_failing": error.message if error is not None else None,
        }


# MERGED from memd.capture.cleanup:
# MERGED Cleans up behind what was erased, also behind a daemon that was killed before it could.
# MERGED
# MERGED What a private prompt took out: at once, and again when what had been distilled of it is gone. What was
# MERGED forgotten is cleaned up by whoever forgets it (consolidate/eraser.py); here only if that did not come to
# MERGED its end. Not here: the marks (store/cleaning.py).


class ErasureCleaner:
    """Over one vault; looks whenever it is told to."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._seen: ErasureMarks | None = None
        """The marks of the last look; None before the first, when all are a predecessor's."""
        self._done = 0
        """The mark of private turns up to which it was cleaned up once."""

    async def clean_up(self) -> None:
        """Clean up what is due. Raises a VaultError; then it is due again."""
        marks, has_faded = await self._db.read(_read_marks)
        private = marks.get("private", self._done)
        is_left = "forgotten" in marks and (self._seen is None or self._seen == marks)
        if is_left or private != self._done or (has_faded and "private" in marks):
            over = {what: n for what, n in marks.items() if what != "private" or has_faded}
            await erasure.clean_up(self._db, over)
            self._done = private
        self._seen = marks


def _read_marks(tx: Connection) -> tuple[ErasureMarks, bool]:
    marks = erasure.pending_marks(tx)
    return marks, bool(marks) and erasure.has_redistilled_private(tx)


# MERGED from memd.capture.intake:
# MERGED Takes what agents say and acknowledges it once it is committed; drains the spool.
# MERGED
# MERGED Not here: how an event is made ready (prepare.py), how calls share a commit (sharing.py), and what one
# MERGED transaction writes (record.py).


__all__ = ["CaptureRequest", "Ingestor", "Receipt"]

CONCURRENT_CALLS_MAX = 64
"""Calls that may be in hand at once; the others wait their turn."""
SPOOL_POLL_S = 2.0
_BATCH_BYTES = 4 * 1024 * 1024


class Ingestor:
    """The doer of the room. `on_stored` is called, on the event loop, after new events are stored."""

    name = "intake"

    def __init__(  # noqa: PLR0913  # what an intake rests on
        self,
        db: Database,
        config: CaptureConfig,
        clock: Callable[[], int],
        spool_dir: str,
        on_stored: Callable[[], None],
        redact: truncate.RedactValue | None = None,
        *,
        spool_fallbacks: Sequence[str] = (),
        projects: ProjectResolver | None = None,
    ) -> None:
        self._db = db
        self._config = config
        self._clock = clock
        self._spools = (spool_dir, *spool_fallbacks)
        self._on_stored = on_stored
        self._projects = projects or ProjectResolver(clock)
        self._preparer = Preparer(config, clock, self._projects, redact)
        self._group_commit = GroupCommit(self._preparer.prepare_all, self._store)
        self._call_slots = anyio.Semaphore(CONCURRENT_CALLS_MAX, fast_acquire=True)
        self._prepare_limiter = anyio.CapacityLimiter(2)
        self._draining = anyio.Lock()
        self._wakeup = AutoResetEvent()
        self._commit: dict[str, int] = {"events": 0, "captures": 0, "total": 0}
        self._waiting: dict[str, spool.Measure] = {}
        self._lookup_cache = LookupCache()
        self._write_circuit = WriteCircuit(db, spool_dir)
        self._eraser = ErasureCleaner(db)

    async def capture(self, requests: Sequence[CaptureRequest]) -> list[Receipt]:
        """Store these in order; a receipt each, given only after the commit.

        Raises the VaultError that kept them from being stored. Then nothing since the last whole
        batch of `BATCH` is stored, and asking again is safe.
        """
        receipts: list[Receipt] = []
        for start in range(0, len(requests), BATCH_EVENTS):
            receipts += await self._admit(requests[start : start + BATCH_EVENTS])
        return receipts

    async def rehearse(self, requests: Sequence[CaptureRequest]) -> list[Receipt]:
        """What `capture` would answer now, with nothing stored."""
        prepared = await anyio.to_thread.run_sync(
            self._preparer.prepare_all, requests, limiter=self._prepare_limiter
        )
        work = functools.partial(rehearse, everything=prepared, now=self._clock())
        return await self._db.write(work)

    async def run(self) -> None:
        """Drain the spool, now and whenever something is in it, and clean up behind private turns."""
        while True:
            if await self._write_circuit.is_writable():
                await self._catch_up()
            await self._wakeup.wait(SPOOL_POLL_S)

    async def _catch_up(self) -> None:
        try:
            await self.scrub()
            await self.drain()
        except VaultError as error:
            # Told in the status; and asked again, with one small write, until it is over.
            self._write_circuit.record_failure(error)

    def wake(self) -> None:
        """Look into the spool now."""
        self._wakeup.set()

    async def scrub(self) -> None:
        """Take the words of what was erased from the full texts and the log, too; if it fails, it is due again."""
        await self._eraser.clean_up()

    async def drain(self) -> int:
        """Store what the spool holds, file by file in order; how many lines that was.

        Raises SpoolBroken if a place of it cannot be read; the others are drained first.
        """
        total, broken = 0, []
        for directory in self._spools:
            try:
                async with self._draining:
                    total += await self._drain_directory(directory)
            except SpoolBroken as error:
                broken.append(error)
        if total:
            log.get(self.name).info("spool_drained", count=total)
        if broken:
            raise broken[0]
        return total

    def status(self) -> dict[str, object]:
        """`pending` events, the last `commit`'s size and how many there were, what the `spool` held when last looked at.

        `failing` is the error that the last commit ended with, `why_failing` says it in words; None
        if it succeeded. `trouble` is what is wrong with projects.toml; None if nothing is.
        """
        waiting = self._waiting.values()
        return {
            "pending": self._group_commit.pending,
            "commit": dict(self._commit),
            "spool": {
                "files": sum(one.files for one in waiting),
                "bytes": sum(one.bytes for one in waiting),
                "lines": sum(one.lines for one in waiting),
            },
            "trouble": self._projects.trouble,
            **self._write_circuit.status(),
        }

    async def _drain_directory(self, directory: str) -> int:
        total = 0
        with _spool_errors():
            self._waiting[directory] = await self._in_thread(spool.measure, directory)
            if not self._waiting[directory].files:
                return 0
            for path in await self._in_thread(spool.drainable, directory):
                total += await self._drain_file(path)
                # Only now: until its events are committed, the file is the promise.
                await self._in_thread(spool.remove, path)
            self._waiting[directory] = await self._in_thread(spool.measure, directory)
        return total

    async def _drain_file(self, path: str) -> int:
        lines = _read_batches(path)
        total = 0
        while batch := await self._in_thread(next, lines, None):
            await self._admit(batch)
            total += len(batch)
        return total

    async def _in_thread(self, work: Callable[..., Any], *args: Any) -> Any:
        return await anyio.to_thread.run_sync(functools.partial(work, *args))

    async def _admit(self, items: Sequence[IngestItem]) -> list[Receipt]:
        async with self._call_slots:
            if is_small(items):
                return await self._group_commit.enqueue(items)
            # What takes long to prepare is prepared beside the others, not before them.
            prepared = await anyio.to_thread.run_sync(
                self._preparer.prepare_all, items, limiter=self._prepare_limiter
            )
            return await self._group_commit.enqueue(items, prepared)

    async def _store(
        self, prepare: Callable[[], list[PreparedItem]], captures: int
    ) -> list[Receipt]:
        """One transaction for all that so many calls brought; prepared just before it begins."""
        everything: list[PreparedItem] = []
        known, self._lookup_cache = self._lookup_cache, LookupCache()
        try:
            receipts = await self._db.write(
                lambda tx: store_items(tx, everything, self._clock(), known),
                before=lambda: everything.extend(prepare()),
            )
        except MemdError as failed:
            self._write_circuit.record_failure(failed)
            raise
        self._lookup_cache = known  # only now: what failed may have been rolled back
        self._write_circuit.record_success()
        total = self._commit["total"] + 1
        self._commit = {"events": len(everything), "captures": captures, "total": total}
        for reason, count in _count_refusals(receipts).items():
            log.get(self.name).warning("event_refused", reason=reason, count=count)
        if any(receipt.outcome == "stored" for receipt in receipts):
            self._on_stored()
        if any(receipt.has_erased for receipt in receipts):
            self._wakeup.set()
        return receipts


def _count_refusals(receipts: Sequence[Receipt]) -> Counter[str]:
    return Counter(receipt.reason or "" for receipt in receipts if receipt.outcome == "refused")


@contextlib.contextmanager
def _spool_errors() -> Iterator[None]:
    """Turn what the file system says of the spool into memd's word for it."""
    try:
        yield
    except OSError as error:
        raise SpoolBroken(f"{SpoolBroken.__doc__} ({error.strerror})") from error


def _read_batches(path: str) -> Iterator[list[IngestItem]]:
    """A spool file's requests, in batches that fit a transaction and the memory."""
    batch: list[IngestItem] = []
    size = 0
    for line in spool.read(path):
        batch.append(_parse_line(line))
        size += len(line or b"")
        if len(batch) >= BATCH_EVENTS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _parse_line(line: bytes | None) -> IngestItem:
    try:
        said = json.loads(line) if line is not None else None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict) or "payload" not in said:
        return Refused("torn spool line")
    client, at, directory = said.get("client"), said.get("at"), said.get("directory")
    return CaptureRequest(
        client=client if isinstance(client, str) else "",
        payload=said["payload"],
        at=at if isinstance(at, int) else None,
        directory=directory if isinstance(directory, str) else None,
        source="spool",
        capture=said.get("capture") is not False,
    )

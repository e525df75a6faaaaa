"""Ingestor: stores the payloads of calls and of the spool as events.

The pipeline, in the order of this file:

    capture, drain    the requests of a call, or the lines of a spool file, in batches that fit a transaction
    _enqueue          a large request is prepared at once, in a thread beside the other calls
    GroupCommit       calls that arrive while a commit is under way share the next one; the first of them leads
    Preparer          recognizes the client, filters, truncates, redacts, finds the project; no database (prepare.py)
    _store            one transaction: drops duplicates and private turns, writes rows and ledger (write.py)
    receipts          then the distiller, and all that wait for the end of a turn, are woken

A receipt is given only after the commit, so killing the process at any point loses no acknowledged event. The leader
prepares and stores all that wait, and wakes the next leader: many calls pay for one fsync and one change of thread, and a
client that disconnects takes no other call with it.
"""

import contextlib
import functools
import itertools
import json
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from memd import log
from memd.capture import spool, truncate
from memd.capture.claude_code import Refused
from memd.capture.prepare import (
    UNEXPECTED,
    CaptureRequest,
    IngestItem,
    KnownSecrets,
    Preparer,
    is_small,
)
from memd.capture.project import ProjectResolver
from memd.capture.redact import forget_words
from memd.capture.write import LookupCache, PreparedItem, Receipt, store_items
from memd.config import CaptureConfig
from memd.errors import Broken, MemdError, SpoolBroken, VaultError
from memd.models import EventKind, NewEvent
from memd.store import erasure, ledger
from memd.store.database import Connection, Database
from memd.store.erasure import ErasureMarks
from memd.wakeup import AutoResetEvent

__all__ = ["CaptureRequest", "Ingestor", "Receipt"]

BATCH_EVENTS = 200
"""Events in one transaction, unless a single call brings more."""
CONCURRENT_CALLS_MAX = 64
"""Calls that are prepared or wait for a commit at once; further ones wait before they are prepared."""
SPOOL_POLL_S = 2.0
"""Seconds until the spool is read after a client connects: it spools what is not acknowledged in time."""
SPOOL_REST_S = 60.0
"""Seconds between two looks while no client connects."""
_BATCH_BYTES = 4 * 1024 * 1024
"""Bytes of spool lines that are read into memory at once."""
_PREPARE_THREADS = 2
"""Threads that prepare large requests."""
_HOOK_SOURCES = frozenset({"live", "spool"})
_BOUNDARY_KINDS = frozenset({
    EventKind.SESSION_START, EventKind.PROMPT, EventKind.STOP, EventKind.COMPACT_START,
    EventKind.COMPACT_END, EventKind.SESSION_END,
})  # fmt: skip
_LOG_NAME = "intake"
"""The ingestor's name in the log and in `memd status --json`, where it is a contract."""


class Ingestor:
    """Stores captured events. Calls `on_stored`, on the event loop, after new events are stored."""

    name = _LOG_NAME

    def __init__(  # noqa: PLR0913  # the composition root passes each dependency by name
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
        writer_dirs: tuple[str, ...] = (),
        on_boundary: Callable[[NewEvent, Receipt], None] | None = None,
    ) -> None:
        """`writer_dirs`: the directories of memd's own writer, whose sessions are not captured.

        `on_boundary` is called, before `on_stored`, with each event of a hook that begins or ends a turn.
        """
        self._on_boundary = on_boundary
        self._db = db
        self._clock = clock
        self._spools = (spool_dir, *spool_fallbacks)
        self._on_stored = on_stored
        self._projects = projects or ProjectResolver(clock)
        self.secrets = KnownSecrets()
        self._preparer = Preparer(config, clock, self._projects, redact, writer_dirs, self.secrets)
        self._group_commit = GroupCommit(self._preparer.prepare_all, self._store)
        self._call_slots = anyio.Semaphore(CONCURRENT_CALLS_MAX, fast_acquire=True)
        self._prepare_limiter = anyio.CapacityLimiter(_PREPARE_THREADS)
        self._draining = anyio.Lock()
        self._wakeup = AutoResetEvent()
        self._next_look_s = 0.0
        """When to look into the spool, in seconds of the event loop's clock."""
        self._has_erased = False
        """Whether text of erased events is to be removed now."""
        self._last_commit: dict[str, int] = {"events": 0, "captures": 0, "total": 0}
        self._spooled: dict[str, spool.SpoolSize] = {}
        self._lookup_cache = LookupCache()
        self._write_circuit = WriteCircuit(db, spool_dir)
        self._erasure_cleaner = ErasureCleaner(db)

    async def capture(self, requests: Sequence[CaptureRequest]) -> list[Receipt]:
        """Store requests in order and return a receipt for each, after the commit.

        Raises the VaultError that prevented it. Then whole batches of `BATCH_EVENTS` before the failure are
        stored, and asking again is safe.
        """
        receipts: list[Receipt] = []
        for start in range(0, len(requests), BATCH_EVENTS):
            receipts += await self._enqueue(requests[start : start + BATCH_EVENTS])
        return receipts

    async def _enqueue(self, items: Sequence[IngestItem]) -> list[Receipt]:
        async with self._call_slots:
            if is_small(items):
                return await self._group_commit.enqueue(items)
            # A large request is prepared beside the other calls, not before them.
            return await self._group_commit.enqueue(items, await self._prepare_in_thread(items))

    async def _prepare_in_thread(self, items: Sequence[IngestItem]) -> list[PreparedItem]:
        return await anyio.to_thread.run_sync(
            self._preparer.prepare_all, items, limiter=self._prepare_limiter
        )

    async def _store(
        self, prepare: Callable[[], list[PreparedItem]], captures: int
    ) -> list[Receipt]:
        """Store what the calls of one group brought, in one transaction; prepare it just before that begins."""
        items: list[PreparedItem] = []
        cache, self._lookup_cache = self._lookup_cache, LookupCache()
        try:
            receipts = await self._db.write(
                lambda tx: store_items(tx, items, self._clock(), cache),
                before=lambda: items.extend(prepare()),
            )
        except MemdError as error:
            self._write_circuit.record_failure(error)
            raise
        self._lookup_cache = cache  # only now: after a rollback it would be wrong
        self._write_circuit.record_success()
        total = self._last_commit["total"] + 1
        self._last_commit = {"events": len(items), "captures": captures, "total": total}
        refused = Counter(one.reason or "" for one in receipts if one.outcome == "refused")
        for reason, count in refused.items():
            log.get(self.name).warning("event_refused", reason=reason, count=count)
        if self._on_boundary is not None:
            for item, receipt in zip(items, receipts, strict=True):
                event = item.verdict
                if (
                    isinstance(event, NewEvent)
                    and event.kind in _BOUNDARY_KINDS
                    and (item.source in _HOOK_SOURCES)
                ):
                    self._on_boundary(event, receipt)
        if any(one.outcome == "stored" or one.is_vouched for one in receipts):
            self._on_stored()
        if any(receipt.has_erased for receipt in receipts):
            self._has_erased = True
            self._wakeup.set()
        return receipts

    async def rehearse(self, requests: Sequence[CaptureRequest]) -> list[Receipt]:
        """Return what `capture` would answer now, without the numbers of events, and store nothing."""
        items = await self._prepare_in_thread(requests)
        store = functools.partial(store_items, items=items, now=self._clock())
        return [replace(receipt, seq=None) for receipt in await self._db.rehearse(store)]

    async def run(self) -> None:
        """Drain the spool and clean up erased text, now and again, until cancelled."""
        commits = 0
        while True:
            self._has_erased = False
            if await self._write_circuit.is_writable():
                try:
                    await self.scrub()
                    await self.drain()
                except VaultError as error:
                    # `status` shows it; one small write is tried again until it succeeds.
                    self._write_circuit.record_failure(error)
            pause_s = SPOOL_POLL_S if self._is_work_left() else SPOOL_REST_S
            if self._last_commit["total"] == commits:
                forget_words()  # nothing was captured since the last look
            commits = self._last_commit["total"]
            self._next_look_s = anyio.current_time() + pause_s
            while not self._has_erased and (left := self._next_look_s - anyio.current_time()) > 0:
                await self._wakeup.wait(left)

    def notice_client(self) -> None:
        """Look into the spool soon: a client has connected, which spools what is not acknowledged in time."""
        soon = anyio.current_time() + SPOOL_POLL_S
        if soon < self._next_look_s:
            self._next_look_s = soon
            self._wakeup.set()

    def _is_work_left(self) -> bool:
        is_spooled = any(size.files for size in self._spooled.values())
        return is_spooled or self._write_circuit.is_open or self._erasure_cleaner.is_waiting

    async def scrub(self) -> None:
        """Remove the words of erased events from full text and log. If it fails, the next call tries again."""
        await self._erasure_cleaner.clean_up()

    async def drain(self) -> int:
        """Store what the spool holds, file by file in order; return the number of lines.

        Raises SpoolBroken if one of its directories cannot be read, after the others are drained.
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
        """Return `pending` events, the last `commit`, the `spool` as last seen, and what is wrong.

        `failing` is the name of the error that the last commit ended with and `why_failing` its text; None if
        it succeeded. `trouble` is what is wrong with projects.toml; None if nothing is.
        """
        sizes = self._spooled.values()
        return {
            "pending": self._group_commit.pending,
            "commit": dict(self._last_commit),
            "spool": {
                "files": sum(size.files for size in sizes),
                "bytes": sum(size.bytes for size in sizes),
                "lines": sum(size.lines for size in sizes),
            },
            "trouble": self._projects.trouble,
            **self._write_circuit.status(),
        }

    async def _drain_directory(self, directory: str) -> int:
        total = 0
        with _translate_spool_errors():
            self._spooled[directory] = await _run_in_thread(spool.measure, directory)
            if not self._spooled[directory].files:
                return 0
            for path in await _run_in_thread(spool.drainable, directory):
                batches = _read_batches(path)
                while batch := await _run_in_thread(next, batches, None):
                    await self._enqueue(batch)
                    total += len(batch)
                # Only now: until its events are committed, the file is the only copy.
                await _run_in_thread(spool.remove, path)
            self._spooled[directory] = await _run_in_thread(spool.measure, directory)
        return total


@dataclass(slots=True, eq=False)
class QueuedCall:
    """One call that waits for a commit."""

    items: Sequence[IngestItem]
    prepared: Sequence[PreparedItem] | None
    woken: anyio.Event | None = None
    """Set when the call is finished or becomes the leader; None if it was the leader from the start."""
    is_settled: bool = False
    receipts: Sequence[Receipt] = ()
    error: Exception | None = None

    def settle(self, receipts: Sequence[Receipt], error: Exception | None = None) -> None:
        """Set the outcome and wake the caller."""
        self.receipts, self.error, self.is_settled = receipts, error, True
        self.wake()

    def wake(self) -> None:
        """Let the caller continue."""
        if self.woken is not None:
            self.woken.set()


class GroupCommit:
    """Stores the items of many calls in one transaction. All on the event loop's thread, but for `prepare`."""

    def __init__(
        self,
        prepare: Callable[[Sequence[IngestItem]], list[PreparedItem]],
        store: Callable[[Callable[[], list[PreparedItem]], int], Awaitable[list[Receipt]]],
    ) -> None:
        """`store` receives a function that prepares all items, to be called in its thread, and the number of calls.

        It raises a MemdError.
        """
        self._prepare = prepare
        self._store = store
        self._queue: deque[QueuedCall] = deque()
        self._has_leader = False

    @property
    def pending(self) -> int:
        """Events whose commit has not begun."""
        return sum(len(call.items) for call in self._queue)

    async def enqueue(
        self, items: Sequence[IngestItem], prepared: Sequence[PreparedItem] | None = None
    ) -> list[Receipt]:
        """Return a receipt for each item, after the commit. Pass `prepared` if the items already are.

        Raises the MemdError that prevented the commit, or what preparing raised.
        """
        call = QueuedCall(items, prepared)
        self._queue.append(call)
        await self._wait_for_turn(call)
        if not call.is_settled:
            # Other calls wait for this commit too: cancelling its first caller must not end it.
            with anyio.CancelScope(shield=True):
                await self._lead()
        if isinstance(call.error, MemdError):
            raise type(call.error)(call.error.message) from call.error
        if call.error is not None:
            raise call.error
        return list(call.receipts)

    async def _wait_for_turn(self, call: QueuedCall) -> None:
        """Wait until this call is to lead, or was finished by another; it may be cancelled meanwhile."""
        if not self._has_leader:
            self._has_leader = True
            return
        call.woken = anyio.Event()
        try:
            await call.woken.wait()
        except anyio.get_cancelled_exc_class():
            if call in self._queue:
                self._queue.remove(call)
                if call.woken.is_set():
                    self._wake_next_leader()
            raise

    async def _lead(self) -> None:
        # Calls of the same round of the event loop join this commit.
        await anyio.lowlevel.checkpoint()
        batch = self._take_batch()
        try:
            await self._commit(batch)
        finally:
            for call in batch:
                if not call.is_settled:
                    call.settle((), Broken("the capture was interrupted"))
            self._wake_next_leader()

    def _wake_next_leader(self) -> None:
        if self._queue:
            self._queue[0].wake()
        else:
            self._has_leader = False

    def _take_batch(self) -> list[QueuedCall]:
        """Take waiting calls off the queue, the leader first, up to the size of a transaction."""
        batch = [self._queue.popleft()]
        room = BATCH_EVENTS - len(batch[0].items)
        while self._queue and len(self._queue[0].items) <= room:
            batch.append(self._queue.popleft())
            room -= len(batch[-1].items)
        return batch

    async def _commit(self, batch: Sequence[QueuedCall]) -> None:
        try:
            stored = await self._store(lambda: self._prepare_batch(batch), len(batch))
        except MemdError as error:
            for call in batch:
                call.settle((), call.error or error)
            return
        receipts = iter(stored)
        for call in batch:
            if call.error is None:
                call.settle([next(receipts) for _ in call.items])
            else:
                call.settle((), call.error)

    def _prepare_batch(self, batch: Sequence[QueuedCall]) -> list[PreparedItem]:
        """Prepare the items that are not prepared yet; a call that cannot be prepared fails alone."""
        due = [call for call in batch if call.prepared is None]
        try:
            prepared = iter(self._prepare([item for call in due for item in call.items]))
        except UNEXPECTED:
            self._prepare_apart(due)
        else:
            for call in due:
                call.prepared = list(itertools.islice(prepared, len(call.items)))
        return [item for call in batch for item in call.prepared or ()]

    def _prepare_apart(self, calls: Sequence[QueuedCall]) -> None:
        for call in calls:
            try:
                call.prepared = self._prepare(call.items)
            except UNEXPECTED as error:
                call.error = error


class WriteCircuit:
    """Circuit breaker for writes to the vault. Opens with a failed write and closes with a successful one.

    While it is open one small write is tried at a time: so free space is noticed although no agent
    sends anything, and a spool that cannot be stored costs one row per attempt.
    """

    def __init__(self, db: Database, spool_dir: str) -> None:
        self._db = db
        self._spool_dir = spool_dir
        self._failure: MemdError | None = None
        self._is_reserve_due = True

    @property
    def is_open(self) -> bool:
        """Return whether the last write failed."""
        return self._failure is not None

    def record_failure(self, error: MemdError) -> None:
        """Open the circuit after a failed write."""
        if self._failure is None:
            log.get(_LOG_NAME).error("vault_not_written", error=error.message)
        self._failure = error

    def record_success(self) -> None:
        """Close the circuit after a successful write."""
        if self._failure is not None:
            log.get(_LOG_NAME).info("vault_written_again")
            self._is_reserve_due = True
        self._failure = None

    async def is_writable(self) -> bool:
        """Return whether the vault can be written; if the last write failed, try one."""
        if self._failure is not None:
            try:
                await self._db.write(ledger.probe_write)
            except MemdError as error:
                self.record_failure(error)
                return False
            self.record_success()
        if self._is_reserve_due:
            # If there is no space for the reserve now, it is tried again after the next outage.
            self._is_reserve_due = False
            await _run_in_thread(spool.keep_reserve, self._spool_dir)
        return True

    def status(self) -> dict[str, str | None]:
        """Return the error's name as `failing` and its text as `why_failing`; None if there is none."""
        error = self._failure
        return {
            "failing": type(error).__name__ if error is not None else None,
            "why_failing": error.message if error is not None else None,
        }


class ErasureCleaner:
    """Removes erased text from full text, log and file, also after a daemon that was killed before it did.

    It cleans up after private prompts at once, and again when the memories distilled from them are deleted.
    A `forget` cleans up after itself; its marks are handled here only if it did not finish.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._seen: ErasureMarks | None = None
        """Marks seen by the previous call; None before the first, whose marks are of an earlier process."""
        self._private_done = 0
        """The mark of private turns up to which text was removed once."""

    @property
    def is_waiting(self) -> bool:
        """Return whether erased text could not be removed yet."""
        return bool(self._seen)

    async def clean_up(self) -> None:
        """Remove what is due. If it raises a VaultError, the next call tries again."""
        marks, has_faded = await self._db.read(_read_marks)
        private = marks.get("private", self._private_done)
        has_new_private = private != self._private_done
        is_unfinished = "forgotten" in marks and (self._seen is None or self._seen == marks)
        if is_unfinished or has_new_private or (has_faded and "private" in marks):
            over = {what: n for what, n in marks.items() if what != "private" or has_faded}
            is_rewritten = await self._db.read(lambda tx: erasure.is_rewritten(tx, over))
            if is_rewritten and not has_new_private:
                # A reader still has the old text in the log; looking for its end costs little.
                await erasure.empty_log(self._db, over)
            else:
                await erasure.clean_up(self._db, over)
            self._private_done = private
        self._seen = marks


def _read_marks(tx: Connection) -> tuple[ErasureMarks, bool]:
    marks = erasure.pending_marks(tx)
    return marks, bool(marks) and erasure.has_redistilled_private(tx)


async def _run_in_thread(work: Callable[..., Any], *args: Any) -> Any:
    return await anyio.to_thread.run_sync(functools.partial(work, *args))


@contextlib.contextmanager
def _translate_spool_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SpoolBroken(f"{SpoolBroken.__doc__} ({error.strerror})") from error


def _read_batches(path: str) -> Iterator[list[IngestItem]]:
    """Read a spool file's requests in batches that fit a transaction and the memory."""
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
        request = json.loads(line) if line is not None else None
    except (ValueError, RecursionError):
        request = None
    if not isinstance(request, dict) or "payload" not in request:
        return Refused("torn spool line")
    client, at, directory, event = (
        request.get(key) for key in ("client", "at", "directory", "event")
    )
    return CaptureRequest(
        client=client if isinstance(client, str) else "",
        payload=request["payload"],
        at=at if isinstance(at, int) else None,
        directory=directory if isinstance(directory, str) else None,
        source="spool",
        capture=request.get("capture") is not False,
        event=event if isinstance(event, str) else None,
    )

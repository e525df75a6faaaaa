"""Takes what agents say and acknowledges it once it is committed; drains the spool.

Not here: how an event is made ready (prepare.py), how calls share a commit (sharing.py), and what one
transaction writes (record.py).
"""

import contextlib
import functools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import anyio
import anyio.to_thread

from memd import log
from memd.capture import bound, spool
from memd.capture.adapters import Refused
from memd.capture.cleanup import Cleanup
from memd.capture.identity import Identities
from memd.capture.known import Known
from memd.capture.outage import Outage
from memd.capture.prepare import CaptureRequest, Item, Preparer, is_small
from memd.capture.record import Prepared, Receipt, record, rehearse
from memd.capture.sharing import BATCH, Sharing
from memd.config import CaptureConfig
from memd.errors import MemdError, SpoolBroken, VaultError
from memd.store.database import Database
from memd.wakeup import AutoResetEvent

__all__ = ["BATCH", "WAITING", "CaptureRequest", "Intake", "Receipt"]

WAITING = 64
"""Calls that may be in hand at once; the others wait their turn."""
SPOOL_POLL_S = 2.0
_BATCH_BYTES = 4 * 1024 * 1024


class Intake:
    """The doer of the room. `on_stored` is called, on the event loop, after new events are stored."""

    name = "intake"

    def __init__(  # noqa: PLR0913  # what an intake rests on
        self,
        db: Database,
        config: CaptureConfig,
        clock: Callable[[], int],
        spool_dir: str,
        on_stored: Callable[[], None],
        redact: bound.Redact | None = None,
        *,
        spool_fallbacks: Sequence[str] = (),
        identities: Identities | None = None,
    ) -> None:
        self._db = db
        self._config = config
        self._clock = clock
        self._spools = (spool_dir, *spool_fallbacks)
        self._on_stored = on_stored
        self._identities = identities or Identities(clock)
        self._preparer = Preparer(config, clock, self._identities, redact)
        self._sharing = Sharing(self._preparer.all, self._store)
        self._door = anyio.Semaphore(WAITING, fast_acquire=True)
        self._hands = anyio.CapacityLimiter(2)
        self._draining = anyio.Lock()
        self._wakeup = AutoResetEvent()
        self._commit: dict[str, int] = {"events": 0, "captures": 0, "total": 0}
        self._waiting: dict[str, spool.Measure] = {}
        self._known = Known()
        self._outage = Outage(db, spool_dir)
        self._cleanup = Cleanup(db)

    async def capture(self, requests: Sequence[CaptureRequest]) -> list[Receipt]:
        """Store these in order; a receipt each, given only after the commit.

        Raises the VaultError that kept them from being stored. Then nothing since the last whole
        batch of `BATCH` is stored, and asking again is safe.
        """
        receipts: list[Receipt] = []
        for start in range(0, len(requests), BATCH):
            receipts += await self._admit(requests[start : start + BATCH])
        return receipts

    async def rehearse(self, requests: Sequence[CaptureRequest]) -> list[Receipt]:
        """What `capture` would answer now, with nothing stored."""
        prepared = await anyio.to_thread.run_sync(
            self._preparer.all, requests, limiter=self._hands
        )
        work = functools.partial(rehearse, everything=prepared, now=self._clock())
        return await self._db.write(work)

    async def run(self) -> None:
        """Drain the spool, now and whenever something is in it, and clean up behind private turns."""
        while True:
            if await self._outage.is_over():
                await self._catch_up()
            await self._wakeup.wait(SPOOL_POLL_S)

    async def _catch_up(self) -> None:
        try:
            await self.scrub()
            await self.drain()
        except VaultError as error:
            # Told in the status; and asked again, with one small write, until it is over.
            self._outage.begin(error)

    def wake(self) -> None:
        """Look into the spool now."""
        self._wakeup.set()

    async def scrub(self) -> None:
        """Take the words of what was erased from the full texts and the log, too; if it fails, it is due again."""
        await self._cleanup.look()

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
            "pending": self._sharing.pending,
            "commit": dict(self._commit),
            "spool": {
                "files": sum(one.files for one in waiting),
                "bytes": sum(one.bytes for one in waiting),
                "lines": sum(one.lines for one in waiting),
            },
            "trouble": self._identities.trouble,
            **self._outage.told(),
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
        lines = _batches(path)
        total = 0
        while batch := await self._in_thread(next, lines, None):
            await self._admit(batch)
            total += len(batch)
        return total

    async def _in_thread(self, work: Callable[..., Any], *args: Any) -> Any:
        return await anyio.to_thread.run_sync(functools.partial(work, *args))

    async def _admit(self, items: Sequence[Item]) -> list[Receipt]:
        async with self._door:
            if is_small(items):
                return await self._sharing.admit(items)
            # What takes long to prepare is prepared beside the others, not before them.
            prepared = await anyio.to_thread.run_sync(
                self._preparer.all, items, limiter=self._hands
            )
            return await self._sharing.admit(items, prepared)

    async def _store(
        self, prepare: Callable[[], list[Prepared]], captures: int
    ) -> list[Receipt]:
        """One transaction for all that so many calls brought; prepared just before it begins."""
        everything: list[Prepared] = []
        known, self._known = self._known, Known()
        try:
            receipts = await self._db.write(
                lambda tx: record(tx, everything, self._clock(), known),
                before=lambda: everything.extend(prepare()),
            )
        except MemdError as failed:
            self._outage.begin(failed)
            raise
        self._known = known  # only now: what failed may have been rolled back
        self._outage.end()
        total = self._commit["total"] + 1
        self._commit = {"events": len(everything), "captures": captures, "total": total}
        for reason, count in _refusals(receipts).items():
            log.get(self.name).warning("event_refused", reason=reason, count=count)
        if any(receipt.outcome == "stored" for receipt in receipts):
            self._on_stored()
        if any(receipt.has_erased for receipt in receipts):
            self._wakeup.set()
        return receipts


def _refusals(receipts: Sequence[Receipt]) -> Counter[str]:
    return Counter(receipt.reason or "" for receipt in receipts if receipt.outcome == "refused")


@contextlib.contextmanager
def _spool_errors() -> Iterator[None]:
    """Turn what the file system says of the spool into memd's word for it."""
    try:
        yield
    except OSError as error:
        raise SpoolBroken(f"{SpoolBroken.__doc__} ({error.strerror})") from error


def _batches(path: str) -> Iterator[list[Item]]:
    """A spool file's requests, in batches that fit a transaction and the memory."""
    batch: list[Item] = []
    size = 0
    for line in spool.read(path):
        batch.append(_request(line))
        size += len(line or b"")
        if len(batch) >= BATCH or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _request(line: bytes | None) -> Item:
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

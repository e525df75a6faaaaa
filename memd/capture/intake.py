"""Takes what agents say and acknowledges it once it is committed; drains the spool.

Captures that arrive while a commit is under way share the next one: whoever gets the turn writes for
everybody who waits. So an fsync is paid once for many, nobody is acknowledged early, and a client
that goes away takes nobody with it.
"""

import contextlib
import functools
import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.to_thread

from memd import log
from memd.bell import Bell
from memd.capture import bound, ignore, spool
from memd.capture.adapters import Ignored, Refused, adapter
from memd.capture.identity import Identities
from memd.capture.record import Prepared, Receipt, faded, record, rehearse
from memd.capture.redact import redact_value
from memd.config import CaptureConfig
from memd.errors import Broken, MemdError, SpoolBroken
from memd.store import fulltext, turns
from memd.store.database import Database

__all__ = ["BATCH", "WAITING", "CaptureRequest", "Intake", "Receipt"]

BATCH = 200
"""Events in one transaction, unless a single call brings more."""
WAITING = 64
"""Calls that may be in hand at once; the others wait their turn."""
SPOOL_POLL_S = 2.0
_UNEXPECTED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What only a mistake of ours raises while a payload is prepared."""
_SOURCES = frozenset({"live", "spool", "import"})
_AT_MAX = 253_402_300_800_000
"""The year 10000: nobody can be shown a later time."""
_BATCH_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """One payload as its client sent it. `at` is UTC ms; None: when it arrives.

    `capture=False`: its sender wants it counted and not kept.
    """

    client: str
    payload: Any
    at: int | None = None
    directory: str | None = None
    source: str = "live"
    capture: bool = True


@dataclass(slots=True, eq=False)
class _Ticket:
    """One call that waits for a commit."""

    prepared: Sequence[Prepared]
    receipts: list[Receipt] = field(default_factory=list)
    error: MemdError | None = None
    is_settled: bool = False


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
        self._redact = redact or functools.partial(redact_value, entropy=config.entropy)
        self._limits = bound.Limits(field_bytes=config.field_bytes)
        self._ignore = ignore.compile_ignore(config.ignore_paths, config.ignore_tools)
        self._identities = identities or Identities(clock)
        self._door = anyio.Semaphore(WAITING)
        self._hands = anyio.CapacityLimiter(2)
        self._turn = anyio.Lock()
        self._draining = anyio.Lock()
        self._queue: deque[_Ticket] = deque()
        self._bell = Bell()
        self._commit: dict[str, int] = {"events": 0, "captures": 0, "total": 0}
        self._waiting: dict[str, spool.Measure] = {}
        self._failing: str | None = None
        self._erased: set[int] = set()
        """Private prompts for which events were erased, and"""
        self._fading: set[int] = set()
        """those of them of whose events memories may still be there."""

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
            self._prepare_all, requests, limiter=self._hands
        )
        work = functools.partial(rehearse, everything=prepared, now=self._clock())
        return await self._db.write(work)

    async def run(self) -> None:
        """Drain the spool, now and whenever something is in it, and clean up behind private turns."""
        while True:
            await self.scrub()
            await self.drain()
            await self._bell.wait(SPOOL_POLL_S)

    def wake(self) -> None:
        """Look into the spool now."""
        self._bell.ring()

    async def scrub(self) -> None:
        """Take the words of what was erased from the full texts and the log, too.

        At once, and again when what had been distilled of it is gone. If it fails, it is due again.
        """
        if not self._erased and not self._fading:
            return
        erased = set(self._erased)
        gone = await self._db.read(functools.partial(faded, seqs=set(self._fading)))
        if erased or gone:
            await self._db.write(fulltext.purge)
            await self._db.write(turns.purge)
            await self._db.scrub()
        self._erased -= erased
        self._fading = (self._fading - gone) | erased

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

        `failing` is the error that the last commit ended with; None if it succeeded. `trouble` is
        what is wrong with projects.toml; None if nothing is.
        """
        waiting = self._waiting.values()
        return {
            "pending": sum(len(ticket.prepared) for ticket in self._queue),
            "commit": dict(self._commit),
            "spool": {
                "files": sum(one.files for one in waiting),
                "bytes": sum(one.bytes for one in waiting),
                "lines": sum(one.lines for one in waiting),
            },
            "failing": self._failing,
            "trouble": self._identities.trouble,
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

    async def _admit(self, items: Sequence[CaptureRequest | Refused]) -> list[Receipt]:
        async with self._door:
            prepared = await anyio.to_thread.run_sync(
                self._prepare_all, items, limiter=self._hands
            )
            return await self._commit_shared(prepared)

    def _prepare_all(self, items: Sequence[CaptureRequest | Refused]) -> list[Prepared]:
        return [self._prepare_safely(item) for item in items]

    def _prepare_safely(self, item: CaptureRequest | Refused) -> Prepared:
        """`_prepare`; a line of the spool that nothing can be made of must not block those behind it."""
        try:
            return self._prepare(item)
        except _UNEXPECTED as error:
            if not isinstance(item, CaptureRequest) or item.source != "spool":
                raise
            log.get(self.name).exception("spool_line_failed")
            return Prepared("spool", Refused(f"memd failed on it: {type(error).__name__}"))

    def _prepare(self, item: CaptureRequest | Refused) -> Prepared:
        """Everything that needs no database: filter, cut, redact, adapt, find the project."""
        if isinstance(item, Refused):
            return Prepared("spool", item)
        source = item.source if item.source in _SOURCES else "live"
        adapt = adapter(item.client)
        if adapt is None:
            return Prepared(source, Refused("unknown client"))
        if not item.capture:
            return Prepared(source, Ignored("switched off by its sender"))
        # An import is a person's own act; this is about what comes by itself.
        if not self._config.enabled and source != "import":
            return Prepared(source, Ignored("switched off in config.toml"))
        directory = item.directory or _own_directory(item.payload)
        if reason := self._ignore.reason(item.payload, directory):
            return Prepared(source, Ignored(reason))
        slim = bound.trim(item.payload, keep_reads=self._config.keep_reads)
        payload = bound.clean(slim, self._limits, self._redact)
        project = self._identities.of(directory)
        shown = None if directory is None else _storable(directory)
        verdict = adapt(payload, self._time(item.at), directory=shown, source=source)
        return Prepared(source, verdict, project)

    def _time(self, at: int | None) -> int:
        is_sane = isinstance(at, int) and not isinstance(at, bool) and 0 < at < _AT_MAX
        return at if at is not None and is_sane else self._clock()

    async def _commit_shared(self, prepared: Sequence[Prepared]) -> list[Receipt]:
        """Wait until somebody has committed this: another call, or this one for all that wait."""
        ticket = _Ticket(prepared)
        self._queue.append(ticket)
        try:
            while not ticket.is_settled:
                async with self._turn:
                    if not ticket.is_settled:
                        # Others wait for this commit too: it may not end with its first caller.
                        with anyio.CancelScope(shield=True):
                            await self._write(self._next_batch())
        finally:
            if ticket in self._queue:
                self._queue.remove(ticket)
        if ticket.error is not None:
            raise type(ticket.error)(ticket.error.message) from ticket.error
        return ticket.receipts

    def _next_batch(self) -> list[_Ticket]:
        batch = [self._queue.popleft()]
        room = BATCH - len(batch[0].prepared)
        while self._queue and len(self._queue[0].prepared) <= room:
            batch.append(self._queue.popleft())
            room -= len(batch[-1].prepared)
        return batch

    async def _write(self, tickets: Sequence[_Ticket]) -> None:
        """One transaction for all of these; each gets its receipts, or the error."""
        everything = [prepared for ticket in tickets for prepared in ticket.prepared]
        error: MemdError = Broken("the capture was interrupted")
        receipts: list[Receipt] | None = None
        try:
            work = functools.partial(record, everything=everything, now=self._clock())
            receipts = await self._db.write(work)
        except MemdError as failed:
            error = failed
            self._failing = type(failed).__name__
        finally:
            _settle(tickets, receipts, error)
        if receipts is not None:
            self._failing = None
            total = self._commit["total"] + 1
            self._commit = {"events": len(everything), "captures": len(tickets), "total": total}
            for reason, count in _refusals(receipts).items():
                log.get(self.name).warning("event_refused", reason=reason, count=count)
            if any(receipt.outcome == "stored" for receipt in receipts):
                self._on_stored()
            if erased := {r.seq for r in receipts if r.has_erased and r.seq is not None}:
                self._erased |= erased
                self._bell.ring()


def _settle(
    tickets: Sequence[_Ticket], receipts: list[Receipt] | None, error: MemdError
) -> None:
    at = 0
    for ticket in tickets:
        if receipts is None:
            ticket.error = error
        else:
            ticket.receipts = receipts[at : at + len(ticket.prepared)]
            at += len(ticket.prepared)
        ticket.is_settled = True


def _refusals(receipts: Sequence[Receipt]) -> Counter[str]:
    return Counter(receipt.reason or "" for receipt in receipts if receipt.outcome == "refused")


def _own_directory(payload: Any) -> str | None:
    cwd = payload.get("cwd") if isinstance(payload, dict) else None
    return cwd if isinstance(cwd, str) and cwd else None


def _storable(text: str) -> str:
    """Valid UTF-8: a directory's name may be any bytes."""
    return text.encode("utf-8", "replace").decode("utf-8")


@contextlib.contextmanager
def _spool_errors() -> Iterator[None]:
    """Turn what the file system says of the spool into memd's word for it."""
    try:
        yield
    except OSError as error:
        raise SpoolBroken(f"{SpoolBroken.__doc__} ({error.strerror})") from error


def _batches(path: str) -> Iterator[list[CaptureRequest | Refused]]:
    """A spool file's requests, in batches that fit a transaction and the memory."""
    batch: list[CaptureRequest | Refused] = []
    size = 0
    for line in spool.read(path):
        batch.append(_request(line))
        size += len(line or b"")
        if len(batch) >= BATCH or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _request(line: bytes | None) -> CaptureRequest | Refused:
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

"""One commit for many: calls that arrive while one is under way share the next.

Whoever finds nobody at work leads: prepares and stores its own call and all that wait, hands each its
receipts, and appoints the next leader. So an fsync and a change of thread are paid once for many,
nobody is acknowledged early, and a client that goes away takes nobody with it. Not here: what
preparing and storing mean.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio
import anyio.lowlevel

from memd.capture.prepare import UNEXPECTED, Item
from memd.capture.record import Prepared, Receipt
from memd.errors import Broken, MemdError

BATCH = 200
"""Events in one transaction, unless a single call brings more."""


@dataclass(slots=True, eq=False)
class Ticket:
    """One call that waits for a commit."""

    items: Sequence[Item]
    prepared: Sequence[Prepared] | None
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


class Sharing:
    """Admits calls; all on the event loop's thread, `prepare` in another."""

    def __init__(
        self,
        prepare: Callable[[Sequence[Item]], list[Prepared]],
        store: Callable[[Callable[[], list[Prepared]], int], Awaitable[list[Receipt]]],
    ) -> None:
        """`store` is given what prepares, to be called in its thread, and for how many calls.

        It raises a MemdError.
        """
        self._prepare = prepare
        self._store = store
        self._queue: deque[Ticket] = deque()
        self._is_led = False

    @property
    def pending(self) -> int:
        """Events that wait for their commit to begin."""
        return sum(len(ticket.items) for ticket in self._queue)

    async def admit(
        self, items: Sequence[Item], prepared: Sequence[Prepared] | None = None
    ) -> list[Receipt]:
        """A receipt each, after the commit. `prepared`: if that is done already.

        Raises the MemdError that kept them from being stored, or what preparing raised.
        """
        ticket = Ticket(items, prepared)
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

    async def _called(self, ticket: Ticket) -> None:
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

    def _next_batch(self) -> list[Ticket]:
        """Those that wait, the leader first, as far as they fit a transaction."""
        batch = [self._queue.popleft()]
        room = BATCH - len(batch[0].items)
        while self._queue and len(self._queue[0].items) <= room:
            batch.append(self._queue.popleft())
            room -= len(batch[-1].items)
        return batch

    async def _work(self, batch: Sequence[Ticket]) -> None:
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

    def _prepared(self, batch: Sequence[Ticket]) -> list[Prepared]:
        """All of these, prepared where they were not; a call that cannot be prepared fails alone."""
        for ticket in batch:
            if ticket.prepared is None:
                try:
                    ticket.prepared = self._prepare(ticket.items)
                except UNEXPECTED as error:
                    ticket.error = error
        return [one for ticket in batch for one in ticket.prepared or ()]

"""Distils what sessions did into summaries, in the background. By rules alone; so it waits for nobody.

It asks the vault what is pending, works one bounded batch of one session at a time, and sleeps until
it is nudged or an open turn may have gone idle. Whoever needs an event to be remembered now calls
`settle`, which distils open turns too; what happens later revises the same summaries.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

import anyio
import anyio.lowlevel
import anyio.to_thread

from memd import log
from memd.bell import Bell
from memd.config import DistillConfig
from memd.distill import pending
from memd.distill.pending import Due, Request
from memd.distill.record import record_all
from memd.errors import MemdError
from memd.store import events
from memd.store.database import Database

_EPISODES = 8
"""In one transaction: of an import's many, each would wait for the disk; more would hold a capture up."""
_WRITTEN = ("created", "revised", "strengthened", "deleted")
_REST_S = 0.1
"""Between two looks at what is pending; or, for a look costs more the more is pending,"""
_REST_SHARE = 5
"""times as long as the last one took, up to"""
_REST_MAX_S = 1.0


class Distiller:
    """Turns events into summaries."""

    name = "distiller"

    def __init__(
        self,
        db: Database,
        config: DistillConfig,
        clock: Callable[[], int],
        on_written: Callable[[], None],
    ) -> None:
        """`clock` tells UTC ms; `on_written` is called, quickly, after summaries have changed."""
        self._db = db
        self._config = config
        self._clock = clock
        self._on_written = on_written
        self._bell = Bell()
        self._lock = anyio.Lock()
        self._log = log.get(self.name)
        self._episodes = 0
        self._outcomes: Counter[str] = Counter()
        self._pending = 0
        self._last_error: str | None = None

    async def run(self) -> None:
        """Distil whatever has ended, for ever."""
        while True:
            began = anyio.current_time()
            await self._sweep()
            # What comes alone is looked at at once; a storm of events may not be looked at after each.
            took = anyio.current_time() - began
            await anyio.sleep(min(max(_REST_S, _REST_SHARE * took), _REST_MAX_S))
            await self._bell.wait(self._config.interval_s)

    def nudge(self) -> None:
        """There may be something new."""
        self._bell.ring()

    async def settle(self, through: int) -> None:
        """Distil every event up to this sequence number now, open turns included.

        It may be cancelled at any time; what it has written by then is whole.
        """
        await self._drain(through)

    def status(self) -> dict[str, object]:
        """What `memd status` shows of this room. `pending` is as of the last sweep."""
        return {
            "pending": self._pending,
            "episodes": self._episodes,
            "summaries": self._outcomes["created"],
            "revised": self._outcomes["revised"],
            "strengthened": self._outcomes["strengthened"],
            "last_error": self._last_error,
        }

    async def _sweep(self) -> None:
        try:
            await self._drain(None)
            self._pending = await self._db.read(events.pending_count)
        except MemdError as error:
            self._last_error = error.message
            raise

    async def _drain(self, through: int | None) -> None:
        if through is not None and not await self._db.read(
            partial(events.any_pending_through, event_id=through)
        ):
            return
        for session_id in await self._db.read(partial(pending.sessions, through=through)):
            while await self._distil_batch(session_id, through):
                await anyio.lowlevel.checkpoint()

    async def _distil_batch(self, session_id: int, through: int | None) -> bool:
        """One batch of one session; whether there was any. The lock is let go in between."""
        async with self._lock:
            request = Request(
                session_id, self._clock(), self._config.idle_s * 1000,
                self._config.body_characters, through, self._config.task_days,
            )  # fmt: skip
            due = await self._db.read(partial(pending.load, request=request))
            if due is None:
                return False
            await self._write(due)
            return True

    async def _write(self, due: Due) -> None:
        now = self._clock()
        plans = await anyio.to_thread.run_sync(pending.plans, due)
        if due.loose:
            await self._db.write(partial(events.mark_distilled, event_ids=due.loose))
        for start in range(0, len(plans), _EPISODES):
            some = plans[start : start + _EPISODES]
            work = partial(record_all, plans=some, session=due.session, now=now)
            for plan, outcomes in zip(some, await self._db.write(work), strict=True):
                self._count(outcomes, len(plan.event_ids))

    def _count(self, outcomes: Mapping[str, int], event_count: int) -> None:
        self._episodes += 1
        self._outcomes.update(outcomes)
        written = {name: outcomes[name] for name in _WRITTEN if outcomes.get(name)}
        self._log.info("episode_distilled", events=event_count, **written)
        if written:
            self._on_written()

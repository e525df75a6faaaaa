"""Background worker: pending episodes to summaries, by rules alone.

It reads what is pending, works through bounded batches of one session each, and sleeps until it is nudged
or an open turn may have become idle. Distilling an exchange may close a failure of an earlier one, or dispute its fix:
the turns that are told otherwise now are distilled again after all that is new, once, and then change nothing else.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import anyio
import anyio.lowlevel
import anyio.to_thread

from memd import log
from memd.config import DistillConfig
from memd.distill import proving, turn
from memd.distill.due import DueBatch, DueRequest, find_pending_sessions, load_due
from memd.distill.episodes import Episode, find_project_key, read_story
from memd.distill.proof import reopening
from memd.distill.transaction import EpisodePlan, write_episodes
from memd.errors import MemdError
from memd.import_graph import find_file_links
from memd.store import events, summaries
from memd.store.database import Database
from memd.wakeup import AutoResetEvent

_EPISODES_PER_TRANSACTION = 8
"""Fewer would make an import wait for the disk after each; more would delay a capture."""
_CHANGES_REPORTED = ("created", "revised", "strengthened", "deleted")
REST_S = 300.0
"""Seconds between two looks for events while nothing waits."""
_PAUSE_MIN_S, _PAUSE_MAX_S = 0.1, 1.0
"""Bounds of the pause between two sweeps."""
_PAUSE_SHARE, _PAUSE_SHARE_IN_VAIN = 5, 20
"""The pause is so many times the duration of the last sweep, which costs more the more is pending; the second number
after one that found nothing due."""


def plan_episodes(due: DueBatch) -> list[EpisodePlan]:
    """Return what to write for each episode that is due. Takes time in proportion to the text."""
    return [_plan_episode(episode, due) for episode in due.episodes]


def _plan_episode(episode: Episode, due: DueBatch) -> EpisodePlan:
    story = read_story(episode.events, due.context)
    return EpisodePlan(
        episode.key,
        tuple(turn.distill_episode(episode, due.context, story)),
        tuple(event.id for event in episode.events if event.id in due.pending),
        () if due.is_again else reopening.find_passed_checks(story),
        find_file_links(episode.events, due.known_files),
        denials=reopening.find_denials_of_earlier(story)
        if episode.is_due and not due.is_again
        else (),
        project_key=find_project_key(episode.events),
    )


@dataclass(eq=False)
class Distiller:
    """Turns events into summaries."""

    db: Database
    config: DistillConfig
    clock: Callable[[], int]
    """Returns UTC milliseconds."""
    on_written: Callable[[], None]
    """Called after summaries have changed."""
    name: str = "distiller"
    _wakeup: AutoResetEvent = field(default_factory=AutoResetEvent)
    _turn_end: AutoResetEvent = field(default_factory=AutoResetEvent)
    _lock: anyio.Lock = field(default_factory=anyio.Lock)
    _episodes: int = 0
    _outcomes: Counter[str] = field(default_factory=Counter)
    _again: set[int] = field(default_factory=set)
    """Pending events of turns that are distilled again. After a restart they are as new, and close nothing twice."""
    _pending: int = 0
    _last_error: str | None = None

    async def run(self) -> None:
        """Distil the episodes that have ended, until cancelled."""
        while True:
            began, episodes = anyio.current_time(), self._episodes
            await self._distil_ended()
            # A single event is distilled at once; a storm of events is not swept after each.
            sweep_s = anyio.current_time() - began
            share = _PAUSE_SHARE_IN_VAIN if self._episodes == episodes else _PAUSE_SHARE
            pause_s = min(max(_PAUSE_MIN_S, share * sweep_s), _PAUSE_MAX_S)
            if await self._turn_end.wait(pause_s):
                continue
            # Only an open turn ends by time alone.
            rest_s = self.config.interval_s if self._pending else REST_S
            await self._wakeup.wait(rest_s)

    def nudge(self) -> None:
        """Look for new events soon."""
        self._wakeup.set()

    def hurry(self) -> None:
        """Look for new events now: a turn has ended, which somebody may ask for next."""
        self._turn_end.set()
        self._wakeup.set()

    async def settle(self, through: int) -> None:
        """Distil every event up to this sequence number now, open turns included.

        It may be cancelled at any time; what it has written by then is whole.
        """
        if await self.db.read(partial(events.has_pending_through, event_id=through)):
            await self._distil_pending(through)

    def status(self) -> dict[str, object]:
        """Return what `memd status` shows of this worker; `pending` is as of the last sweep."""
        return {
            "pending": self._pending,
            "episodes": self._episodes,
            "summaries": self._outcomes["created"],
            "revised": self._outcomes["revised"],
            "strengthened": self._outcomes["strengthened"],
            "last_error": self._last_error,
        }

    async def _distil_ended(self) -> None:
        try:
            await self._distil_pending(None)
            self._pending = await self.db.read(events.count_pending)
        except MemdError as error:
            self._last_error = error.message
            raise

    async def _distil_pending(self, through: int | None) -> None:
        """Distil what is new, then again what that has closed or disputed: a turn once for each new exchange."""
        for is_again in (False, True):
            if is_again and not self._again:
                return
            for session_id in await self.db.read(partial(find_pending_sessions, through=through)):
                while await self._distil_batch(session_id, through, is_again=is_again):
                    await anyio.lowlevel.checkpoint()

    async def _distil_batch(self, session_id: int, through: int | None, *, is_again: bool) -> bool:
        """Distil one batch of one session and return whether there was one; the lock is released in between."""
        async with self._lock:
            now = self.clock()
            request = DueRequest(
                session_id, now, self.config.idle_s * 1000, through, self.config.task_days,
                again=frozenset(self._again), is_again=is_again,
            )  # fmt: skip
            due = await self.db.read(partial(load_due, request=request))
            if due is None:
                return False
            plans = await anyio.to_thread.run_sync(plan_episodes, due)
            if due.loose:
                await self.db.write(partial(events.mark_distilled, event_ids=due.loose))
            for start in range(0, len(plans), _EPISODES_PER_TRANSACTION):
                some = plans[start : start + _EPISODES_PER_TRANSACTION]
                work = partial(write_episodes, plans=some, session=due.session, now=now)
                for plan, (counts, again) in zip(some, await self.db.write(work), strict=True):
                    self._again.difference_update(plan.event_ids)
                    self._again.update(again)
                    self._report_episode(counts, len(plan.event_ids))
            self._again.difference_update(due.loose)
            await self._prove_notes(due.session.id, now)
            return True

    async def _prove_notes(self, session_id: int, now: int) -> None:
        """Prove notes of a session whose words have arrived by now."""
        since = now - proving.WAIT_MS
        if not await self.db.read(lambda tx: summaries.unproved_notes(tx, session_id, since)):
            return
        if await self.db.write(lambda tx: proving.prove_waiting(tx, session_id, now)):
            self.on_written()

    def _report_episode(self, outcomes: Mapping[str, int], event_count: int) -> None:
        self._episodes += 1
        self._outcomes.update(outcomes)
        written = {name: outcomes[name] for name in _CHANGES_REPORTED if outcomes.get(name)}
        log.get(self.name).info("episode_distilled", events=event_count, **written)
        if written:
            self.on_written()

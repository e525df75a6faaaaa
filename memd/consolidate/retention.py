"""Age-based compaction and expiry."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from memd import log
from memd.config import RetentionConfig
from memd.models import EventKind
from memd.store import erasure, ledger, vectors
from memd.store.database import Connection, Database
from memd.store.queries import compact_json
from memd.text import digest
from memd.wakeup import AutoResetEvent

# MERGED from memd.consolidate.compacting:
# MERGED What is left of an event once its memories are old: what they cite, and what tells what it was. Pure.
# MERGED
# MERGED What a person or an agent said stays whole: prompts, closing messages, compaction summaries. Of what a
# MERGED tool was given and answered, short values and the beginnings of telling ones stay. Compacting twice is
# MERGED compacting once. Not here: which events are old enough (retention.py).


SPOKEN_KINDS = frozenset(
    {EventKind.PROMPT, EventKind.STOP, EventKind.SUBAGENT_STOP, EventKind.COMPACT_END}
)
"""Kinds that are never compacted."""
CITED_KEY = "cited"
"""The key under which what memories cite is kept."""
_SHORT = 200
_TELLING = frozenset(
    {"command", "description", "error", "file_path", "message", "pattern", "url"}
)
_TELLING_CHARACTERS = 400
_DEPTH = 3


def compact_payload(payload: Mapping[str, Any], quotes: Sequence[str]) -> dict[str, Any]:
    """The payload cut down, with those quotes that would else be lost from it."""
    kept = {
        name: short
        for name, value in payload.items()
        if (short := _shortened(name, value, _DEPTH)) is not None
    }
    had = list(payload.get(CITED_KEY, ()))
    whole = "\n".join(_texts(kept))
    cited = [quote for quote in dict.fromkeys((*had, *quotes)) if quote and quote not in whole]
    if cited:
        kept[CITED_KEY] = cited
    return kept


def _shortened(name: str, value: Any, depth: int) -> Any:
    """The value if it is short; None if nothing of it stays."""
    if name == CITED_KEY:
        return None
    if isinstance(value, str):
        if name in _TELLING:
            return value[:_TELLING_CHARACTERS]
        return value if len(value) <= _SHORT else None
    if isinstance(value, Mapping) and depth:
        inner = {
            key: short
            for key, one in value.items()
            if (short := _shortened(key, one, depth - 1)) is not None
        }
        return inner or None
    return value if isinstance(value, bool | int | float) else None


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for inner in value.values() for text in _texts(inner)]
    return []


# MERGED from memd.consolidate.retention:
# MERGED Keeps the vault from growing without end, and loses nothing that a person would miss.
# MERGED
# MERGED Once a day: events whose memories are old are cut down to what these cite, memories that expired long
# MERGED ago go, and, if the settings want it, what no answer ever returned is put away. Before the first time
# MERGED that this would change anything there is a day in which only a preview is shown; so it is again when
# MERGED the settings change. When the clock has leapt there is a week of it: what it calls old may not be. Work is
# MERGED done in small transactions. Not here: what is left of an event (compacting.py).


DAY_MS = 86_400_000
_LOOK_S = 600.0
_SLICE = 50
_PAUSE_S = 0.01
"""Between two transactions: others want to write, too."""
_SPARED_DAYS = 14
"""Even over the ceiling, younger events stay whole."""
_WARN_FROM = 0.8
_WEEK = 7 * DAY_MS
_LEAP = 14 * DAY_MS
"""If so long has gone by unseen, the machine was off, or its clock is wrong."""
_NOTE = "retention"
_KINDS = tuple(sorted(kind.value for kind in SPOKEN_KINDS))


@dataclass(frozen=True, slots=True)
class RetentionRound:
    """What a round did, or would do. Times: UTC milliseconds."""

    at: int
    is_dry_run: bool
    compacted: int = 0
    """Events cut down to what is cited of them."""
    bytes: int = 0
    """How many that takes out of them."""
    expired: int = 0
    archived: int = 0
    days: int = 0
    """Events older than this are meant; fewer than the settings say if the ceiling is reached."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.compacted or self.expired or self.archived)


@dataclass(frozen=True, slots=True)
class RetentionState:
    """What the vault notes of it: for which settings a preview was made, when, and the last round."""

    settings: str = ""
    preview: RetentionRound | None = None
    has_run: bool = False
    """Whether a round by these settings has changed something."""
    last: RetentionRound | None = None


class Retention:
    """Looks every few minutes whether a round is due."""

    name = "retention"

    def __init__(
        self,
        db: Database,
        config: RetentionConfig,
        clock: Callable[[], int],
        on_written: Callable[[], None],
    ) -> None:
        self._db = db
        self._config = config
        self._clock = clock
        self._on_written = on_written
        self._settings = digest("retention", config.model_dump_json())[:16]
        self._lock = anyio.Lock()
        self._wakeup = AutoResetEvent()
        self._used = 0
        self._state = RetentionState(self._settings)

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            await self.run_due()
            await self._wakeup.wait(_LOOK_S)

    async def run_due(self) -> None:
        """Do what is due now: nothing, a preview, or a round."""
        self._state = await self._db.read(partial(_noted, settings=self._settings))
        self._used = await self._db.read(self._measure)
        if not self._config.enabled:
            return
        now, state = self._clock(), self._state
        if state.preview is not None and not 0 <= now - state.preview.at < _LEAP:
            state = replace(state, preview=None)
            await self._keep(state)
        if state.last is not None and 0 <= now - state.last.at < DAY_MS:
            return
        preview, is_first = state.preview, not state.has_run
        if not is_first and state.last is not None and 0 <= now - state.last.at < _LEAP:
            await self.apply()
        elif preview is None:
            await self._keep(replace(state, preview=await self.preview()))
        elif now - preview.at >= (DAY_MS if is_first else _WEEK):
            if is_first and preview.is_empty:
                await self._keep(replace(state, preview=await self.preview()))
            else:
                await self.apply()

    async def preview(self) -> RetentionRound:
        """What a round would do now. Changes nothing."""
        return await self._round(is_dry_run=True)

    async def apply(self) -> RetentionRound:
        """Do a round now."""
        async with self._lock:
            done = await self._round(is_dry_run=False)
            if not done.is_empty:
                await self._db.truncate_wal()
                self._on_written()
                counts = done.compacted + done.expired + done.archived
                log.get(self.name).info("round_ended", count=counts)
            has_run = self._state.has_run or not done.is_empty
            await self._keep(replace(self._state, last=done, has_run=has_run, preview=None))
        return done

    def status(self) -> dict[str, object]:
        """The `size` with `used` bytes and `ceiling`, `preview` and `last` as rounds.

        `why` is what a person should know of it.
        """
        return {
            "size": {"used": self._used, "ceiling": self._config.size_bytes},
            "preview": self._state.preview and asdict(self._state.preview),
            "last": self._state.last and asdict(self._state.last),
            "why": "; ".join(self._told()),
        }

    def _told(self) -> list[str]:
        told = []
        ceiling = self._config.size_bytes
        if ceiling and self._used >= _WARN_FROM * ceiling:
            told.append(
                f"the vault fills {self._used / ceiling:.0%} of its ceiling"
                " (retention.size_bytes); `memd vacuum --dry-run` shows what can go"
            )
        preview = self._state.preview
        if preview is not None and not preview.is_empty:
            comes = (
                "the next round after so long a pause comes a week"
                if self._state.has_run
                else "the first round comes a day"
            )
            told.append(
                f"{comes} after its preview: {preview.compacted:,} events"
                f" compacted ({preview.bytes:,} bytes), {preview.expired:,} expired memories"
                f" dropped, {preview.archived:,} put away; `memd vacuum --dry-run` shows it,"
                " retention.enabled = false keeps it from happening"
            )
        return told

    async def _keep(self, state: RetentionState) -> None:
        self._state = state
        work = partial(ledger.write_note, key=_NOTE, value=json.dumps(asdict(state)))
        await self._db.write(work)

    def _measure(self, tx: Connection) -> int:
        return max(0, self._db.size() - vectors.free_bytes(tx))

    async def _round(self, *, is_dry_run: bool) -> RetentionRound:
        now = self._clock()
        used = await self._db.read(self._measure)
        days = self._config.events_days
        if self._config.size_bytes and used > self._config.size_bytes:
            days = min(days or _SPARED_DAYS, _SPARED_DAYS)
        done = RetentionRound(now, is_dry_run, days=days)
        if days:
            done = await self._compact(done, now - days * DAY_MS)
        return await self._memories(done, now)

    async def _compact(self, done: RetentionRound, before: int) -> RetentionRound:
        after = 0
        run = self._db.read if done.is_dry_run else self._db.write
        while (
            last := await self._db.read(partial(erasure.next_window, after=after))
        ) is not None:
            while after < last:
                work = partial(_compact_some, window=(after, last), before=before, round_=done)
                after, count, size = await run(work)
                done = replace(done, compacted=done.compacted + count, bytes=done.bytes + size)
                await anyio.sleep(_PAUSE_S if count else 0)
        return done

    async def _memories(self, done: RetentionRound, now: int) -> RetentionRound:
        config = self._config
        if config.expired_days:
            expired = partial(
                erasure.expired_summaries, before=now - config.expired_days * DAY_MS
            )
            count = await self._each(expired, erasure.delete_expired, done.is_dry_run)
            done = replace(done, expired=count)
        if config.archive_days:
            which = erasure.IdleCriteria(
                now - config.archive_days * DAY_MS, config.archive_quality
            )
            archive = partial(erasure.archive_summaries, now=now)
            count = await self._each(
                partial(erasure.idle_summaries, idle=which), archive, done.is_dry_run
            )
            done = replace(done, archived=count)
        return done

    async def _each(
        self,
        find: Callable[..., list[int]],
        change: Callable[[Connection, list[int]], None],
        is_dry_run: bool,
    ) -> int:
        """How many there are; without a dry run they are changed, some at a time."""
        if is_dry_run:
            return len(await self._db.read(partial(find, limit=-1)))

        def some(tx: Connection) -> int:
            found = find(tx, limit=_SLICE)
            change(tx, found)
            return len(found)

        total = 0
        while count := await self._db.write(some):
            total += count
            self._on_written()
            await anyio.sleep(_PAUSE_S)
        return total


def _compact_some(
    tx: Connection, window: tuple[int, int], before: int, round_: RetentionRound
) -> tuple[int, int, int]:
    """(looked at up to this id, events cut down, bytes that went). Reads what it writes over."""
    found = erasure.events_to_compact(tx, window, before, _KINDS, _SLICE)
    count = size = 0
    for old in found:
        text = compact_json(compact_payload(old.payload, old.quotes))
        gone = old.bytes - len(text.encode())
        count, size = count + (gone > 0), size + max(0, gone)
        if not round_.is_dry_run:
            erasure.compact_event(tx, old, text, round_.at)
    return (found[-1].id if len(found) == _SLICE else window[1]), count, size


def _noted(tx: Connection, settings: str) -> RetentionState:
    """What is noted for these settings; for others only when the last round was."""
    said = json.loads(ledger.read_note(tx, _NOTE) or "{}")
    known = {field.name for field in fields(RetentionRound)}
    preview, last = (
        RetentionRound(**{key: value for key, value in said[name].items() if key in known})
        if said.get(name)
        else None
        for name in ("preview", "last")
    )
    if said.get("settings") != settings:
        return RetentionState(settings, last=last)
    return RetentionState(settings, preview, bool(said.get("has_run")), last)

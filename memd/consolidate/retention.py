"""Background worker: compact old tool events, delete memories that expired long ago, archive idle ones.

It works once a day in small transactions. A preview is displayed for a day before the first round that
would change anything, and again when the settings change. After a jump of the clock it is displayed for
a week, because what the clock calls old may not be old.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from pydantic import TypeAdapter

from memd import log
from memd.config import RetentionConfig
from memd.models import EventKind
from memd.store import erasure, ledger, vectors
from memd.store.database import Connection, Database
from memd.store.queries import compact_json
from memd.text import digest
from memd.time_expressions import DAY_MS, WEEK_MS
from memd.wakeup import AutoResetEvent

_SPOKEN_KINDS = (
    EventKind.AGENT_TEXT.value, EventKind.COMPACT_END.value, EventKind.PROMPT.value,
    EventKind.STOP.value, EventKind.SUBAGENT_STOP.value,
)  # fmt: skip
"""Kinds of events that are never compacted: the words of users and agents."""
CITED_KEY = "cited"
"""The key of the quotes in a compacted payload."""
_SAID_KEY = "said"
"""The key of the user's words in a refused tool call, which stay."""
_SHORT_CHARACTERS_MAX = 200
_TELLING_KEYS = frozenset(
    {"command", "description", "error", "file_path", "message", "pattern", "url"}
)
"""Keys of which the beginning stays, even of a long value."""
_TELLING_CHARACTERS_MAX = 400
_DEPTH_MAX = 3

_CLOCK_JUMP_MS = 14 * DAY_MS
"""If the last round was so long ago, the machine was off or its clock is wrong."""
_CHECK_INTERVAL_S = 600.0
_ROWS_PER_TRANSACTION = 50
_PAUSE_S = 0.01
"""Pause between two transactions, for other writers."""
_ARCHIVE_QUALITY = 0.3
"""Quality below which an unused memory is archived: a short text that names no file and gives no reason (`score_quality`)."""
_OVERSIZE_EVENTS_DAYS = 14
"""Events younger than this stay whole, even in a vault that is larger than its limit."""
_WARN_SHARE = 0.8
"""Share of the size limit from which `memd status` warns."""
_NOTE = "retention"


@dataclass(frozen=True, slots=True)
class RetentionRound:
    """Results of a retention round, or of its dry run. Times are UTC milliseconds."""

    at: int
    is_dry_run: bool
    compacted: int = 0
    """Events compacted."""
    bytes: int = 0
    """Bytes removed from them."""
    expired: int = 0
    archived: int = 0
    days: int = 0
    """Older events are compacted; fewer days than configured if the vault is larger than its limit."""

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to do."""
        return not (self.compacted or self.expired or self.archived)

    def is_within(self, span_ms: int, now: int) -> bool:
        """Return whether it was less than this span ago, by a clock that was not set back since."""
        return 0 <= now - self.at < span_ms


@dataclass(frozen=True, slots=True)
class RetentionState:
    """The vault's record of retention: the settings of the preview, the preview and the last round."""

    settings: str = ""
    preview: RetentionRound | None = None
    has_run: bool = False
    """Whether a round with these settings has changed something."""
    last: RetentionRound | None = None


_STATE = TypeAdapter(RetentionState)


@dataclass(eq=False)
class Retention:
    """Checks every few minutes whether a round is due."""

    name: str = field(default="retention", init=False)
    db: Database
    config: RetentionConfig
    clock: Callable[[], int]
    on_written: Callable[[], None]
    _lock: anyio.Lock = field(default_factory=anyio.Lock, init=False)
    _wakeup: AutoResetEvent = field(default_factory=AutoResetEvent, init=False)
    _used_bytes: int = field(default=0, init=False)
    _state: RetentionState = field(default_factory=RetentionState, init=False)

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            await self.run_due()
            await self._wakeup.wait(_CHECK_INTERVAL_S)

    async def run_due(self) -> None:
        """Do what is due now: nothing, a preview, or a round."""
        settings = self._digest_settings()
        self._state = await self.db.read(partial(_read_state, settings=settings))
        self._used_bytes = await self.db.read(self._measure_vault)
        if not self.config.enabled:
            return
        now, last, preview = self.clock(), self._state.last, self._state.preview
        if preview is not None and not preview.is_within(_CLOCK_JUMP_MS, now):
            preview = None
            self._state = replace(self._state, preview=None)
        if last is not None and last.is_within(DAY_MS, now):
            return
        is_first = not self._state.has_run
        if not is_first and last is not None and last.is_within(_CLOCK_JUMP_MS, now):
            await self.apply()
            return
        is_over = preview and not preview.is_within(DAY_MS if is_first else WEEK_MS, now)
        if preview is None or (is_over and is_first and preview.is_empty):
            await self._save_state(replace(self._state, preview=await self.preview()))
        elif is_over:
            await self.apply()

    async def preview(self) -> RetentionRound:
        """Return what a round would do now, without changing anything."""
        return await self._run_round(is_dry_run=True)

    async def apply(self) -> RetentionRound:
        """Do a round now."""
        async with self._lock:
            done = await self._run_round(is_dry_run=False)
            if not done.is_empty:
                await self.db.truncate_wal()
                self.on_written()
                log.get(self.name).info(
                    "round_ended", count=done.compacted + done.expired + done.archived
                )
            has_run = self._state.has_run or not done.is_empty
            state = replace(self._state, last=done, has_run=has_run, preview=None)
            await self._save_state(state)
        return done

    def status(self) -> dict[str, object]:
        """The `size` with `used` bytes and `ceiling`, `preview` and `last` as rounds, `why` in words."""
        return {
            "size": {"used": self._used_bytes, "ceiling": self.config.size_bytes},
            "preview": self._state.preview and asdict(self._state.preview),
            "last": self._state.last and asdict(self._state.last),
            "why": "; ".join(self._list_notices()),
        }

    def _list_notices(self) -> Iterator[str]:
        limit = self.config.size_bytes
        if limit and self._used_bytes >= _WARN_SHARE * limit:
            yield (
                f"the vault fills {self._used_bytes / limit:.0%} of its ceiling"
                " (retention.size_bytes); `memd vacuum --dry-run` shows what can go"
            )
        preview = self._state.preview
        if preview is not None and not preview.is_empty:
            when = "the first round comes a day"
            if self._state.has_run:
                when = "the next round after so long a pause comes a week"
            yield (
                f"{when} after its preview: {preview.compacted:,} events"
                f" compacted ({preview.bytes:,} bytes), {preview.expired:,} expired memories"
                f" dropped, {preview.archived:,} put away; `memd vacuum --dry-run` shows it,"
                " retention.enabled = false keeps it from happening"
            )

    def _digest_settings(self) -> str:
        return digest("retention", self.config.model_dump_json())[:16]

    async def _save_state(self, state: RetentionState) -> None:
        self._state = replace(state, settings=self._digest_settings())
        value = _STATE.dump_json(self._state).decode()
        await self.db.write(partial(ledger.write_note, key=_NOTE, value=value))

    def _measure_vault(self, tx: Connection) -> int:
        return max(0, self.db.size() - vectors.free_bytes(tx))

    async def _run_round(self, *, is_dry_run: bool) -> RetentionRound:
        config, now = self.config, self.clock()
        days = config.events_days
        if config.size_bytes and await self.db.read(self._measure_vault) > config.size_bytes:
            days = min(days or _OVERSIZE_EVENTS_DAYS, _OVERSIZE_EVENTS_DAYS)
        done = RetentionRound(now, is_dry_run, days=days)
        if days:
            done = await self._compact_events(done, now - days * DAY_MS)
        if config.expired_days:
            before = now - config.expired_days * DAY_MS
            find = partial(erasure.expired_summaries, before=before)
            count = await self._change_all(find, _delete_memories, is_dry_run)
            done = replace(done, expired=count)
        if config.archive_days:
            before = now - config.archive_days * DAY_MS
            idle = erasure.IdleCriteria(before, _ARCHIVE_QUALITY)
            find = partial(erasure.idle_summaries, idle=idle)
            archive = partial(erasure.archive_summaries, now=now)
            count = await self._change_all(find, archive, is_dry_run)
            done = replace(done, archived=count)
        return done

    async def _compact_events(self, done: RetentionRound, before: int) -> RetentionRound:
        after = 0
        run = self.db.read if done.is_dry_run else self.db.write
        while last := await self.db.read(partial(erasure.next_window, after=after)):
            while after < last:
                work = partial(_compact_some, window=(after, last), before=before, round_=done)
                after, count, size = await run(work)
                done = replace(done, compacted=done.compacted + count, bytes=done.bytes + size)
                await anyio.sleep(_PAUSE_S if count else 0)
        return done

    async def _change_all(
        self,
        find: Callable[..., list[int]],
        change: Callable[[Connection, list[int]], None],
        is_dry_run: bool,
    ) -> int:
        """Change all that is found, some at a time; a dry run counts them only."""
        if is_dry_run:
            return len(await self.db.read(partial(find, limit=-1)))

        def change_some(tx: Connection) -> int:
            found = find(tx, limit=_ROWS_PER_TRANSACTION)
            change(tx, found)
            return len(found)

        total = 0
        while count := await self.db.write(change_some):
            total += count
            self.on_written()
            await anyio.sleep(_PAUSE_S)
        return total


def _delete_memories(tx: Connection, summary_ids: Sequence[int]) -> None:
    for number in summary_ids:
        erasure.delete_memory(tx, number)


def _read_state(tx: Connection, settings: str) -> RetentionState:
    """The recorded state; after a change of the settings only its last round."""
    state = _STATE.validate_json(ledger.read_note(tx, _NOTE) or "{}")
    return state if state.settings == settings else RetentionState(settings, last=state.last)


def _compact_some(
    tx: Connection, window: tuple[int, int], before: int, round_: RetentionRound
) -> tuple[int, int, int]:
    """(last id looked at, events compacted, bytes removed)."""
    found = erasure.events_to_compact(tx, window, before, _SPOKEN_KINDS, _ROWS_PER_TRANSACTION)
    count = size = 0
    for old in found:
        text = compact_json(compact_payload(old.payload, old.quotes))
        removed = max(0, old.bytes - len(text.encode()))
        count, size = count + (removed > 0), size + removed
        if not round_.is_dry_run:
            erasure.compact_event(tx, old, text, round_.at)
    return (found[-1].id if len(found) == _ROWS_PER_TRANSACTION else window[1]), count, size


def compact_payload(payload: Mapping[str, Any], quotes: Sequence[str]) -> dict[str, Any]:
    """Return the short values of a payload, the beginnings of informative ones, and quotes that are in neither.

    Compacting twice is the same as compacting once.
    """
    compacted = _shorten_value("", payload, _DEPTH_MAX + 1) or {}
    text = "\n".join(_list_texts(compacted))
    wanted = dict.fromkeys((*payload.get(CITED_KEY, ()), *quotes))
    cited = [quote for quote in wanted if quote and quote not in text]
    return {**compacted, CITED_KEY: cited} if cited else compacted


def _shorten_value(key: str, value: Any, depth: int) -> Any:
    """The value if it is short; None if nothing of it stays."""
    if isinstance(value, str) and key == _SAID_KEY:
        return value
    if isinstance(value, str) and key in _TELLING_KEYS:
        return value[:_TELLING_CHARACTERS_MAX]
    if isinstance(value, str):
        return value if len(value) <= _SHORT_CHARACTERS_MAX else None
    if isinstance(value, Mapping) and depth:
        inner = {
            name: short
            for name, one in value.items()
            if name != CITED_KEY
            if (short := _shorten_value(name, one, depth - 1)) is not None
        }
        return inner or None
    return value if isinstance(value, bool | int | float) else None


def _list_texts(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [text for inner in value.values() for text in _list_texts(inner)]
    return [value] if isinstance(value, str) else []

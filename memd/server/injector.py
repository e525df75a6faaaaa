"""Shows agents what they did not ask for: within a deadline, never twice, and never in the way.

Looking happens in a task of this room's own, so that who waits for it can stop waiting at the
deadline, whatever a thread is still busy with; what comes late is dropped. A failure is told in the
log once, until it works again. One session is looked for once at a time: two hooks of the same moment
would both find the same. What was shown counts at once in memory, and is written down before the
reply if that can be done in time, else behind it: a crash right after a reply must not show it again.
A session that is not kept (somebody switched that off) is remembered in memory alone.
Not here: what is chosen (looking.py), and the words around it (fence.py).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakValueDictionary

import anyio
import anyio.abc

from memd import log
from memd.config import InjectConfig
from memd.errors import MemdError
from memd.server import jsonrpc
from memd.server.context_builder import Known, Looker
from memd.server.injection_types import Looked, Opening
from memd.store import projects, usage
from memd.store.database import Connection, Database
from memd.store.usage import Injection, NewInjection
from memd.wakeup import AutoResetEvent

LOOKS_MAX = 16
"""Looks at a time; while so many are stuck, nothing more is shown."""
SESSIONS_MAX = 256
"""Sessions that are remembered in memory."""
PENDING_MAX = 2_000
RETRY_S = 5.0
_Session = tuple[str, str]
"""(client, the client's own id of it)."""


@dataclass(slots=True)
class _Look:
    """One look on its way."""

    done: anyio.Event = field(default_factory=anyio.Event)
    written: anyio.Event = field(default_factory=anyio.Event)
    """Whether what is shown was written down, as far as that can be."""
    looked: Looked | None = None
    error: str | None = None
    is_awaited: bool = True


@dataclass(slots=True)
class _Memory:
    """What is remembered of a session here. Times are UTC milliseconds."""

    shown: dict[int, int] = field(default_factory=dict)
    broke_at: int | None = None


class Injector:
    """The doer of the room."""

    name = "injector"

    def __init__(
        self, db: Database, looker: Looker, config: InjectConfig, clock: Callable[[], int]
    ) -> None:
        self._db = db
        self._looker = looker
        self._config = config
        self._clock = clock
        self._tasks: anyio.abc.TaskGroup | None = None
        self._looks = 0
        self._sessions: dict[_Session, _Memory] = {}
        self._turns: WeakValueDictionary[_Session, anyio.Lock] = WeakValueDictionary()
        """Of the sessions that are being looked for."""
        self._pending: list[tuple[_Session, NewInjection]] = []
        self._homeless: list[tuple[_Session, NewInjection]] = []
        """Shown to sessions that the vault does not know, perhaps not yet."""
        self._writing = anyio.Lock()
        self._wakeup = AutoResetEvent()
        self._failing: str | None = None
        self._counts = {"asked": 0, "shown": 0, "late": 0, "failed": 0}

    async def run(self) -> None:
        """Let looks happen, and write down for ever what was shown."""
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                await self._write_for_ever()
        finally:
            self._tasks = None
            with anyio.move_on_after(1, shield=True):
                await self._try_to_flush()

    def status(self) -> dict[str, object]:
        """How often it was `asked`, had something `shown`, was `late` or `failed` since the start.

        `pending` is what was shown and not written down yet; `failing` the last error, None if the
        last look worked.
        """
        return {**self._counts, "pending": len(self._pending), "failing": self._failing}

    async def offer(self, asked: Opening, event_id: int | None) -> str | None:
        """The text for this moment, in time; None if there is none. Never raises for what goes wrong."""
        if self._tasks is None or self._looks >= LOOKS_MAX:
            return None
        self._counts["asked"] += 1
        look = _Look()
        self._tasks.start_soon(self._look, asked, event_id, look)
        limit = self._config.prompt_s if asked.moment == "prompt" else self._config.session_s
        with anyio.move_on_after(limit):
            await look.done.wait()
            await look.written.wait()
        look.is_awaited = False
        if look.looked is None:
            self._fail(look.error or f"looking took longer than {limit:g} s", look)
            return None
        self._failing = None
        return look.looked.text

    async def rehearse(self, asked: Opening, *, explain: bool) -> Looked:
        """What would be shown, whenever that is known; nothing of it is remembered."""
        return await self._looker.look(asked, None, self._known(asked), explain=explain)

    async def flush(self) -> None:
        """Write down what was shown until now; raises a VaultError and keeps it if that fails.

        What was shown to a session that the vault does not know waits for it to be known.
        """
        # Who asks for what was shown must not overtake a write that is under way.
        async with self._writing:
            pending = [*self._homeless, *self._pending]
            self._homeless, self._pending = [], []
            if not pending:
                return
            try:
                with anyio.CancelScope(shield=True):
                    self._homeless = await self._db.write(partial(_record, pending=pending))
            except MemdError:
                self._pending = [*pending, *self._pending][-PENDING_MAX:]
                raise

    async def injected(self, session_id: int) -> list[Injection]:
        """What a session was shown, oldest first."""
        await self.flush()
        return await self._db.read(partial(usage.session_injections, session_id=session_id))

    async def _write_for_ever(self) -> None:
        while True:
            await self._wakeup.wait(RETRY_S if self._pending else None)
            await self._try_to_flush()

    async def _try_to_flush(self) -> None:
        try:
            await self.flush()
        except MemdError as error:
            log.get(self.name).warning("injections_not_written", error=error.message)

    async def _look(self, asked: Opening, event_id: int | None, look: _Look) -> None:
        self._looks += 1
        try:
            async with self._turns.setdefault((asked.client, asked.session), anyio.Lock()):
                await self._look_in_turn(asked, event_id, look)
        except MemdError as error:
            look.error = error.message
        except jsonrpc.UNEXPECTED_ERRORS as error:
            look.error = type(error).__name__
            log.get(self.name).exception("look_failed")
        finally:
            self._looks -= 1
            look.done.set()
        if look.looked is not None and look.looked.text is not None:
            await self._try_to_flush()
        look.written.set()

    async def _look_in_turn(self, asked: Opening, event_id: int | None, look: _Look) -> None:
        """Nobody else looks for this session meanwhile. What nobody waits for any more is dropped."""
        if not look.is_awaited:
            return
        looked = await self._looker.look(asked, event_id, self._known(asked))
        if not look.is_awaited:
            return
        look.looked = looked
        if looked.text is not None:
            self._remember(asked, looked)

    def _fail(self, why: str, look: _Look) -> None:
        self._counts["failed" if look.error else "late"] += 1
        if self._failing is None:
            log.get(self.name).warning("context_left_out", error=why)
        self._failing = why

    def _known(self, asked: Opening) -> Known:
        known = self._sessions.get((asked.client, asked.session))
        return Known(dict(known.shown), known.broke_at) if known else Known({})

    def _remember(self, asked: Opening, looked: Looked) -> None:
        """From now on these have been shown to this session."""
        now = self._clock()
        key = (asked.client, asked.session)
        memory = self._sessions.pop(key, None) or _Memory()
        self._sessions[key] = memory
        while len(self._sessions) > SESSIONS_MAX:
            del self._sessions[next(iter(self._sessions))]
        if asked.moment in ("compact", "clear"):
            memory.broke_at = now
        self._counts["shown"] += len(looked.shown)
        for one in looked.shown:
            memory.shown[one.id] = now
            reason = f"{one.group}: {one.why}" if one.group else one.why
            self._pending.append((key, NewInjection(0, one.id, asked.moment, now, reason)))
        self._wakeup.set()


def _record(
    tx: Connection, pending: list[tuple[_Session, NewInjection]]
) -> list[tuple[_Session, NewInjection]]:
    """Write these down, and hand back those of sessions that are not known (yet)."""
    known: dict[_Session, int] = {}
    for client, key in {session for session, _ in pending}:
        found = projects.session_of_client(tx, client, key)
        if found is not None:
            known[client, key] = found.id
    usage.record_injections(
        tx,
        [
            NewInjection(known[session], s.summary_id, s.moment, s.at, s.reason)
            for session, s in pending
            if session in known
        ],
    )
    return [(session, s) for session, s in pending if session not in known][-PENDING_MAX:]

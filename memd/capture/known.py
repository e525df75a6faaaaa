"""What the intake has looked up in the vault, kept from one transaction to the next. Knows no waiting.

Events come by the dozen from few sessions, and every statement is a moment in which another thread may
take the interpreter: one that is not asked twice counts for more than the microseconds it takes. What
is kept is true while nobody but `record` has written: the writer's count of changed rows says so. Of a
transaction that failed nothing is true: whoever runs it drops what was known with it.
"""

from memd.capture.identity import Identity
from memd.models import EventKind, NewEvent
from memd.store import books, events, projects, switches
from memd.store.database import Connection
from memd.text import is_private

_SESSIONS_MAX = 256
_OF_THE_SESSION = frozenset({EventKind.SESSION_START, EventKind.SESSION_END, EventKind.PROMPT})
"""They belong to no turn that could make them private, whatever id they carry."""


class Known:
    """`begin` and `end` it with every transaction; in between, ask it."""

    def __init__(self) -> None:
        self._tx: Connection
        self._changes: int | None = None
        """How many rows the writer had changed when this was true last."""
        self._empty()

    def _empty(self) -> None:
        self.forgets = False
        """Whether anything was forgotten on purpose."""
        self._has_switches = False
        self._sessions: dict[tuple[str, str], tuple[int, str]] = {}
        self._switches: dict[tuple[str, str], switches.Switch] = {}
        self._turns: dict[int, dict[str, bool]] = {}
        """Session → turn with a prompt of its own → whether that is private."""
        self._unprompted: set[int] = set()
        """Sessions without any prompt."""

    def begin(self, tx: Connection) -> None:
        """Take note of a new transaction, and forget what may not be true any more."""
        self._tx = tx
        if self._changes != tx.total_changes() or len(self._sessions) > _SESSIONS_MAX:
            self._empty()
            self.forgets = books.has_forgotten(tx)
            self._has_switches = switches.has_said(tx)

    def end(self) -> None:
        """All that this transaction writes is written."""
        self._changes = self._tx.total_changes()

    def is_forgotten(self, event: NewEvent) -> bool:
        """Whether an event was forgotten on purpose."""
        keys = (event.key, *event.former_keys) if self.forgets else ()
        return any(books.is_forgotten(self._tx, key) for key in keys)

    def session(self, event: NewEvent) -> tuple[int, str] | None:
        """(id, key of its project) of an event's session; None if it is new."""
        ref = (event.session.client, event.session.key)
        if ref not in self._sessions:
            found = projects.known_session(self._tx, event.session)
            if found is None:
                return None
            self._sessions[ref] = found
        return self._sessions[ref]

    def begun(self, event: NewEvent, project: Identity, now: int) -> int:
        """The id of an event's session; made if it is new. One that is there keeps its project."""
        found = self.session(event)
        if found is not None:
            return found[0]
        project_id = projects.ensure_project(
            self._tx, project.key, project.name, project.reason, now
        )
        return projects.ensure_session(self._tx, event.session, project_id, event.at)

    def switch(self, project_key: str, session_key: str) -> switches.Switch:
        """What a person said of this session of this project."""
        if not self._has_switches:
            return switches.ON
        asked = (project_key, session_key)
        if asked not in self._switches:
            self._switches[asked] = switches.effective(self._tx, *asked)
        return self._switches[asked]

    def is_in_private_turn(self, event: NewEvent, session_id: int) -> bool:
        """Whether this followed a prompt in which everything was private."""
        if event.kind in _OF_THE_SESSION or self._is_unprompted(session_id):
            return False
        if event.kind is EventKind.COMPACT_END:
            # It tells the whole session again, the private turns too.
            return any(map(is_private, events.prompts_before(self._tx, session_id, event.at)))
        turns = self._turns.setdefault(session_id, {})
        if event.turn in turns:
            return turns[event.turn]
        own = event.turn and events.prompt_of_turn(self._tx, session_id, event.turn)
        if event.turn and own is not None:
            turns[event.turn] = is_private(own)
            return turns[event.turn]
        return is_private(events.prompt_before(self._tx, session_id, event.turn, event.at))

    def prompted(self, session_id: int) -> None:
        """A prompt of a session was stored."""
        self._unprompted.discard(session_id)
        self._turns.pop(session_id, None)

    def _is_unprompted(self, session_id: int) -> bool:
        if session_id not in self._unprompted and session_id not in self._turns:
            if events.has_prompt(self._tx, session_id):
                self._turns[session_id] = {}
            else:
                self._unprompted.add(session_id)
        return session_id in self._unprompted

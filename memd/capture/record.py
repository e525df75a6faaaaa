"""One transaction of the intake: events, the sessions they belong to, and the books. Knows no waiting.

Nothing is entered that is not counted, and nothing counted that is not entered: received is always
stored + duplicate + filtered + refused, even after a crash in mid-commit. What a person switched off
for a project or session is filtered here, whoever brings it: hook, spool or import. So is all that
follows a prompt in which everything was private; that prompt is kept as a bare mark, so that the
turn stays private when an import brings it again.
"""

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from memd.capture.adapters import Ignored, Refused
from memd.capture.identity import Identity
from memd.models import EventKind, NewEvent
from memd.store import books, cleaning, events, links, projects, summaries, switches
from memd.store.database import Connection
from memd.text import PRIVATE, is_private, one_line

Outcome = Literal["stored", "duplicate", "filtered", "refused"]
_TITLE_CHARACTERS = 80
_PRIVATE_TURN = "private turn"
_OF_THE_SESSION = frozenset({EventKind.PROMPT, EventKind.SESSION_START, EventKind.SESSION_END})
"""They belong to no turn that could make them private, whatever id they carry."""
_BARE = ("session_id", "hook_event_name", "prompt_id", "uuid", "cwd")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a request; `seq` is the event's number if it is stored (now or before)."""

    outcome: Outcome
    seq: int | None = None
    reason: str | None = None
    has_erased: bool = False
    """Whether what had been stored before was taken out again because of it."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request ready to be stored: redacted, with its project."""

    source: str
    verdict: NewEvent | Ignored | Refused
    project: Identity | None = None


def record(tx: Connection, everything: Sequence[Prepared], now: int) -> list[Receipt]:
    """Store what is to be stored, in order, and enter all of it in the books."""
    known = _Known(tx, now)
    receipts = [_record_one(tx, prepared, known, now) for prepared in everything]
    known.note_sessions()
    for source in sorted({prepared.source for prepared in everything}):
        entries: Counter[tuple[str, str]] = Counter()
        for prepared, receipt in zip(everything, receipts, strict=True):
            if prepared.source == source:
                entries["received", ""] += 1
                entries[receipt.outcome, receipt.reason or ""] += 1
        books.enter(tx, source, entries)
    return receipts


class _Undone(Exception):
    """Ends a rehearsal."""


def rehearse(tx: Connection, everything: Sequence[Prepared], now: int) -> list[Receipt]:
    """What `record` would answer, with nothing entered: its numbers are not kept."""
    receipts: list[Receipt] = []
    with contextlib.suppress(_Undone), tx:
        receipts = [replace(receipt, seq=None) for receipt in record(tx, everything, now)]
        raise _Undone
    return receipts


class _Known:
    """What one transaction has looked up: events come by the dozen from few sessions.

    Every statement is a moment in which another thread may take the interpreter, so each that is not
    asked twice counts for more than the microseconds it takes.
    """

    def __init__(self, tx: Connection, now: int) -> None:
        self._tx = tx
        self._now = now
        self.forgets = books.has_forgotten(tx)
        """Whether anything was forgotten on purpose."""
        self._sessions: dict[tuple[str, str], tuple[int, str]] = {}
        self._switches: dict[tuple[str, str], switches.Switch] = {}
        self._happened: dict[int, tuple[int, int, str | None]] = {}
        """Session → when its first and its last event here were, and what titles it."""

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

    def switch(self, project_key: str, session_key: str) -> switches.Switch:
        """What a person said of this session of this project."""
        asked = (project_key, session_key)
        if asked not in self._switches:
            self._switches[asked] = switches.effective(self._tx, *asked)
        return self._switches[asked]

    def begun(self, event: NewEvent, project: Identity) -> int:
        """The id of an event's session; made if it is new. One that is there keeps its project."""
        found = self.session(event)
        if found is not None:
            return found[0]
        project_id = projects.ensure_project(
            self._tx, project.key, project.name, project.reason, self._now
        )
        return projects.ensure_session(self._tx, event.session, project_id, event.at)

    def happened(self, session_id: int, at: int, title: str | None) -> None:
        """Take note of a new event of a session."""
        first, last, known = self._happened.get(session_id, (at, at, None))
        self._happened[session_id] = (min(first, at), max(last, at), known or title)

    def note_sessions(self) -> None:
        """Write down what happened in the sessions."""
        for session_id, (first, last, title) in self._happened.items():
            projects.session_happened(self._tx, session_id, first, title, last)


def _record_one(tx: Connection, prepared: Prepared, known: _Known, now: int) -> Receipt:
    event, project = prepared.verdict, prepared.project
    if isinstance(event, Refused):
        return Receipt("refused", reason=event.reason)
    if isinstance(event, Ignored):
        return Receipt("filtered", reason=event.reason)
    assert project is not None  # an event is only made where its project is known
    if known.is_forgotten(event):
        return Receipt("filtered", reason="forgotten")
    if reason := _unwanted(tx, event, project, known):
        return Receipt("filtered", reason=reason)
    session_id = known.begun(event, project)
    is_bare = event.kind is EventKind.PROMPT and is_private(event.payload.get("prompt"))
    seq, is_new = events.append(tx, _bare(event) if is_bare else event, session_id)
    if not is_new:
        return Receipt("duplicate", seq)
    known.happened(session_id, event.at, None if is_bare else _title(event))
    has_erased = bool(is_bare and event.turn and _erase_rest(tx, session_id, event.turn, now))
    if has_erased:
        cleaning.mark(tx, "private")
        known.forgets = True
    return Receipt("stored", seq, has_erased=has_erased)


def _unwanted(tx: Connection, event: NewEvent, project: Identity, known: _Known) -> str | None:
    """Why a person does not want this event kept; None if nothing speaks against it."""
    session = known.session(event)
    switch = known.switch(session[1] if session else project.key, event.session.key)
    if not switch.captures:
        return f"switched off for this {switch.scope}"
    return _PRIVATE_TURN if session and _is_in_private_turn(tx, event, session[0]) else None


def _is_in_private_turn(tx: Connection, event: NewEvent, session_id: int) -> bool:
    """Whether this followed a prompt in which everything was private."""
    if event.kind in _OF_THE_SESSION:
        return False
    if event.kind is EventKind.COMPACT_END:
        # It tells the whole session again, the private turns too.
        return any(map(is_private, events.prompts_before(tx, session_id, event.at)))
    return is_private(events.prompt_of(tx, session_id, event.turn, event.at))


def _bare(event: NewEvent) -> NewEvent:
    """The prompt without anything that may have come with it."""
    kept = {name: event.payload[name] for name in _BARE if name in event.payload}
    return replace(event, payload={**kept, "prompt": PRIVATE})


def _erase_rest(tx: Connection, session_id: int, turn: str, now: int) -> int:
    """Take out what came before its private prompt did, which had to wait in the spool; how much.

    With it go the memories that come from nothing else. What comes from more goes when the turn is
    distilled again, with its prompt.
    """
    early = events.rest_of_turn(tx, session_id, turn)
    derived = {number for event_id in early for number in links.derived_from(tx, event_id)}
    nodes: set[tuple[str, str]] = set()
    for summary in summaries.by_ids(tx, sorted(derived)).values() if derived else ():
        sources = {event_id for event_id, _ in links.sources_of(tx, summary.id)}
        if sources <= set(early) and summary.pinned_at is None:
            nodes |= links.neighbours(tx, "summary", str(summary.id))
            summaries.delete(tx, summary.id)
    links.drop_adrift(tx, nodes)
    for event_id in early:
        links.drop_node(tx, "event", str(event_id))
    return events.forget(tx, early, now)


def _title(event: NewEvent) -> str | None:
    prompt = event.payload.get("prompt")
    if event.kind is not EventKind.PROMPT or not isinstance(prompt, str):
        return None
    return one_line(prompt, _TITLE_CHARACTERS) or None

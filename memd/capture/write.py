"""The ingest transaction: events, sessions, receipts."""

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from memd.capture.claude_code import Ignored, Refused
from memd.capture.project import ProjectIdentity
from memd.models import EventKind, NewEvent
from memd.store import erasure, events, ledger, links, projects, summaries
from memd.store.database import Connection
from memd.text import PRIVATE, is_private, one_line

# MERGED from memd.capture.known:
# MERGED What the intake has looked up in the vault, kept from one transaction to the next. Knows no waiting.
# MERGED
# MERGED Events come by the dozen from few sessions, and every statement is a moment in which another thread may
# MERGED take the interpreter: one that is not asked twice counts for more than the microseconds it takes. What
# MERGED is kept is true while nobody but `record` has written: the writer's count of changed rows says so. Of a
# MERGED transaction that failed nothing is true: whoever runs it drops what was known with it.


_SESSIONS_MAX = 256
_OF_THE_SESSION = frozenset({EventKind.SESSION_START, EventKind.SESSION_END, EventKind.PROMPT})
"""They belong to no turn that could make them private, whatever id they carry."""


class LookupCache:
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
        self._switches: dict[tuple[str, str], projects.Switch] = {}
        self._turns: dict[int, dict[str, bool]] = {}
        """Session → turn with a prompt of its own → whether that is private."""
        self._unprompted: set[int] = set()
        """Sessions without any prompt."""

    def begin(self, tx: Connection) -> None:
        """Take note of a new transaction, and forget what may not be true any more."""
        self._tx = tx
        if self._changes != tx.total_changes() or len(self._sessions) > _SESSIONS_MAX:
            self._empty()
            self.forgets = ledger.has_forgotten(tx)
            self._has_switches = projects.has_switches(tx)

    def end(self) -> None:
        """All that this transaction writes is written."""
        self._changes = self._tx.total_changes()

    def is_forgotten(self, event: NewEvent) -> bool:
        """Whether an event was forgotten on purpose."""
        keys = (event.key, *event.former_keys) if self.forgets else ()
        return any(ledger.is_forgotten(self._tx, key) for key in keys)

    def session(self, event: NewEvent) -> tuple[int, str] | None:
        """(id, key of its project) of an event's session; None if it is new."""
        ref = (event.session.client, event.session.key)
        if ref not in self._sessions:
            found = projects.session_and_project(self._tx, event.session)
            if found is None:
                return None
            self._sessions[ref] = found
        return self._sessions[ref]

    def begun(self, event: NewEvent, project: ProjectIdentity, now: int) -> int:
        """The id of an event's session; made if it is new. One that is there keeps its project."""
        found = self.session(event)
        if found is not None:
            return found[0]
        project_id = projects.ensure_project(
            self._tx, project.key, project.name, project.reason, now
        )
        return projects.ensure_session(self._tx, event.session, project_id, event.at)

    def switch(self, project_key: str, session_key: str) -> projects.Switch:
        """What a person said of this session of this project."""
        if not self._has_switches:
            return projects.SWITCHED_ON
        asked = (project_key, session_key)
        if asked not in self._switches:
            self._switches[asked] = projects.effective_switch(self._tx, *asked)
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


# MERGED from memd.capture.record:
# MERGED One transaction of the intake: events, the sessions they belong to, and the books. Knows no waiting.
# MERGED
# MERGED Nothing is entered that is not counted, and nothing counted that is not entered: received is always
# MERGED stored + duplicate + filtered + refused, even after a crash in mid-commit. What a person switched off
# MERGED for a project or session is filtered here, whoever brings it: hook, spool or import. So is all that
# MERGED follows a prompt in which everything was private; that prompt is kept as a bare mark, so that the
# MERGED turn stays private when an import brings it again.


ReceiptOutcome = Literal["stored", "duplicate", "filtered", "refused"]
_TITLE_CHARACTERS = 80
_PRIVATE_TURN = "private turn"
_BARE = ("session_id", "hook_event_name", "prompt_id", "uuid", "cwd")


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a request; `seq` is the event's number if it is stored (now or before)."""

    outcome: ReceiptOutcome
    seq: int | None = None
    reason: str | None = None
    has_erased: bool = False
    """Whether what had been stored before was taken out again because of it."""


@dataclass(frozen=True, slots=True)
class PreparedItem:
    """A request ready to be stored: redacted, with its project."""

    source: str
    verdict: NewEvent | Ignored | Refused
    project: ProjectIdentity | None = None


def store_items(
    tx: Connection,
    everything: Sequence[PreparedItem],
    now: int,
    known: LookupCache | None = None,
) -> list[Receipt]:
    """Store what is to be stored, in order, and enter all of it in the books.

    `known`: what the transaction before this one had looked up.
    """
    known = known or LookupCache()
    known.begin(tx)
    spans = _SessionSpans()
    receipts = [_store_item(tx, prepared, known, spans, now) for prepared in everything]
    spans.write(tx)
    for source in sorted({prepared.source for prepared in everything}):
        entries: Counter[tuple[str, str]] = Counter()
        for prepared, receipt in zip(everything, receipts, strict=True):
            if prepared.source == source:
                entries["received", ""] += 1
                entries[receipt.outcome, receipt.reason or ""] += 1
        ledger.record_receipts(tx, source, entries)
    known.end()
    return receipts


class _RolledBack(Exception):
    """Ends a rehearsal."""


def rehearse(tx: Connection, everything: Sequence[PreparedItem], now: int) -> list[Receipt]:
    """What `record` would answer, with nothing entered: its numbers are not kept."""
    receipts: list[Receipt] = []
    with contextlib.suppress(_RolledBack), tx:
        receipts = [replace(receipt, seq=None) for receipt in store_items(tx, everything, now)]
        raise _RolledBack
    return receipts


class _SessionSpans:
    """When the first and the last event of each session in a transaction were, and what titles it."""

    def __init__(self) -> None:
        self._sessions: dict[int, tuple[int, int, str | None]] = {}

    def widen(self, session_id: int, at: int, title: str | None) -> None:
        """Take note of a new event of a session."""
        first, last, known = self._sessions.get(session_id, (at, at, None))
        self._sessions[session_id] = (min(first, at), max(last, at), known or title)

    def write(self, tx: Connection) -> None:
        """Write down what happened in the sessions."""
        for session_id, (first, last, title) in self._sessions.items():
            projects.extend_session(tx, session_id, first, title, last)


def _store_item(
    tx: Connection, prepared: PreparedItem, known: LookupCache, spans: _SessionSpans, now: int
) -> Receipt:
    event, project = prepared.verdict, prepared.project
    if isinstance(event, Refused):
        return Receipt("refused", reason=event.reason)
    if isinstance(event, Ignored):
        return Receipt("filtered", reason=event.reason)
    assert project is not None  # an event is only made where its project is known
    if known.is_forgotten(event):
        return Receipt("filtered", reason="forgotten")
    if reason := _filter_reason(event, project, known):
        return Receipt("filtered", reason=reason)
    session_id = known.begun(event, project, now)
    is_bare = event.kind is EventKind.PROMPT and is_private(event.payload.get("prompt"))
    seq, is_new = events.append_event(
        tx, _strip_private_prompt(event) if is_bare else event, session_id
    )
    if not is_new:
        return Receipt("duplicate", seq)
    spans.widen(session_id, event.at, None if is_bare else _session_title(event))
    if event.kind is EventKind.PROMPT:
        known.prompted(session_id)
    has_erased = bool(
        is_bare and event.turn and _erase_private_turn(tx, session_id, event.turn, now)
    )
    if has_erased:
        erasure.mark_erased(tx, "private")
        known.forgets = True
    return Receipt("stored", seq, has_erased=has_erased)


def _filter_reason(event: NewEvent, project: ProjectIdentity, known: LookupCache) -> str | None:
    """Why a person does not want this event kept; None if nothing speaks against it."""
    session = known.session(event)
    switch = known.switch(session[1] if session else project.key, event.session.key)
    if not switch.captures:
        return f"switched off for this {switch.scope}"
    return _PRIVATE_TURN if session and known.is_in_private_turn(event, session[0]) else None


def _strip_private_prompt(event: NewEvent) -> NewEvent:
    """The prompt without anything that may have come with it."""
    kept = {name: event.payload[name] for name in _BARE if name in event.payload}
    return replace(event, payload={**kept, "prompt": PRIVATE})


def _erase_private_turn(tx: Connection, session_id: int, turn: str, now: int) -> int:
    """Take out what came before its private prompt did, which had to wait in the spool; how much.

    With it go the memories that come from nothing else. What comes from more goes when the turn is
    distilled again, with its prompt.
    """
    early = events.turn_ids_except_prompt(tx, session_id, turn)
    derived = {number for event_id in early for number in links.derived_from(tx, event_id)}
    nodes: set[tuple[str, str]] = set()
    for summary in summaries.summaries_by_ids(tx, sorted(derived)).values() if derived else ():
        sources = {event_id for event_id, _ in links.sources_of(tx, summary.id)}
        if sources <= set(early) and summary.pinned_at is None:
            nodes |= links.neighbours(tx, "summary", str(summary.id))
            summaries.delete_summary(tx, summary.id)
    links.drop_orphan_nodes(tx, nodes)
    for event_id in early:
        links.drop_node(tx, "event", str(event_id))
    return events.forget_events(tx, early, now)


def _session_title(event: NewEvent) -> str | None:
    prompt = event.payload.get("prompt")
    if event.kind is not EventKind.PROMPT or not isinstance(prompt, str):
        return None
    return one_line(prompt, _TITLE_CHARACTERS) or None

"""The ingest transaction: events, sessions, receipts; and which two payloads with one id are copies of one event.

Every request gets one receipt and is counted in the ledger by the same transaction, so received is always
stored + duplicate + filtered + refused, even after a crash. What a user switched off for a project or session
is filtered here, whether a hook, the spool or an import brings it. So is everything that follows a prompt in
which all was private; that prompt is stored as a bare mark, so that a later import filters its turn again.

A second hook, the spool and an import bring copies, which are shortened, redacted and formatted in slightly
different ways. A client may also give one id to two events: a gateway that counts its calls from one again, a prompt
that is sent again with other words. A copy must not become a second row, and no event may be lost.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from memd.capture import clients
from memd.capture.claude_code import Ignored, Refused, describe_unknown
from memd.capture.project import ProjectIdentity
from memd.capture.redact import redact
from memd.capture.truncate import FINGERPRINT
from memd.directories import is_below
from memd.machine_text import ORIGIN, read_plan, strip_blocks
from memd.models import (
    AGENTS_IMPORT,
    ELSEWHERE,
    SCRATCH_PROJECT,
    TITLE_EVENT,
    Event,
    EventKind,
    NewEvent,
)
from memd.store import erasure, events, ledger, links, projects, summaries
from memd.store.database import Connection
from memd.text import PRIVATE, digest, is_private, normalised, one_line

_END_CHARACTERS = 1_500
"""Characters at each end of a shortened text that are compared; every limit keeps as many."""
COPIES_MS = 60_000
"""Milliseconds within which events without words of their own are copies: hooks run at the same time."""
_TRANSCRIPT_SOURCES = frozenset({"import", "transcript", AGENTS_IMPORT})
_SIMILAR_SHARE = 0.9
"""Share of the shorter text's words from which a transcript's text is a hook's, formatted differently."""
_CUT_MARK = re.compile(r"… \[[^\]]{1,60}\] …")
_WORDS_OF: Mapping[str, tuple[str, ...]] = {
    "UserPromptSubmit": ("prompt",),
    "PreToolUse": ("tool_name", "tool_input"),
    "PostToolUse": ("tool_name", "tool_input", "tool_response"),
    "PostToolUseFailure": ("tool_name", "tool_input", "error"),
    "Stop": ("last_assistant_message",),
    "AgentText": ("text",),
    "ToolRefused": ("tool_name", "tool_input", "said"),
    "SubagentStop": ("last_assistant_message",),
    "PostCompact": ("compact_summary",),
}
"""Event → the fields that say what happened."""
_REFORMATTED = frozenset({"tool_response", "error", "last_assistant_message", "compact_summary"})
"""Fields that a transcript writes in its own way, so that they only tell two events of one source apart."""
_TIMED = frozenset({"PreCompact", "SubagentStart"})
"""Events that only their time tells apart, and that no transcript has."""
_MEASURED = frozenset({"bytes", "lines", FINGERPRINT})
"""What became of a file's text; measured before or after it was shortened."""
_NESTED_MAX = 20
_Leaf = tuple[tuple[str, ...], Any]


def is_copy(new: NewEvent, stored: Event) -> bool:
    """Return whether `new` repeats `stored`, which has the same name and id. In doubt, True."""
    if new.name in _TIMED:
        return abs(new.at - stored.at) < COPIES_MS
    is_reformatted = _is_of_transcript(new) != _is_of_transcript(stored)
    fields = [
        name
        for name in _WORDS_OF.get(new.name, ())
        if name in new.payload and name in stored.payload
        and not (is_reformatted and name in _REFORMATTED)
    ]  # fmt: skip
    is_same = _is_similar if is_reformatted else _is_equal
    for name in fields:
        known = dict(_list_leaves(stored.payload[name]))
        for path, value in _list_leaves(new.payload[name]):
            if path in known and not is_same(known[path], value):
                return False
    return True


def is_same_from_other_source(new: NewEvent, stored: Event) -> bool:
    """Return whether one of two events is of a hook and the other of a transcript, with the same words but other ids.

    An older client names no prompt to its hooks, and a transcript none of a prompt typed while the agent worked.
    """
    if new.name != stored.name or _is_of_transcript(new) == _is_of_transcript(stored):
        return False
    if new.turn and stored.turn:
        return False
    names = [name for name in _WORDS_OF[new.name] if name not in ("tool_response", "error")]
    texts = [
        (_to_text(new.payload.get(name)), _to_text(stored.payload.get(name))) for name in names
    ]
    return all(one and other and _has_same_words(one, other) for one, other in texts)


def _to_text(value: Any) -> str:
    """Return a text as it is, and what was given to a tool as one."""
    return " ".join(f"{'.'.join(path)} {leaf}" if path else str(leaf) for path, leaf in sorted(
        _list_leaves(value), key=lambda one: one[0]
    ))  # fmt: skip


def _is_of_transcript(event: NewEvent | Event) -> bool:
    return event.source in _TRANSCRIPT_SOURCES


def _has_same_words(one: str, other: str) -> bool:
    """Return whether two texts have nearly the same words, or are shortened and begin and end alike."""
    first, second = normalised(redact(one)).split(), normalised(redact(other)).split()
    if first == second:
        return True
    if _CUT_MARK.search(one) or _CUT_MARK.search(other):
        return _is_equal(one, other)
    common = (Counter(first) & Counter(second)).total()
    return common >= _SIMILAR_SHARE * max(len(first), len(second))


def fingerprint(event: NewEvent) -> str:
    """Digest what an event says, for the key of a second event of one id; equal for copies of one source."""
    if event.name in _TIMED:
        return digest("time", str(event.at // COPIES_MS))
    said: list[str] = []
    for name in _WORDS_OF.get(event.name, ()):
        for path, value in _list_leaves(event.payload.get(name)):
            head, *rest = _CUT_MARK.split(_flatten(str(value)))
            said += [name, *path, head[:_END_CHARACTERS] if rest else head]
    return digest(*said)


def _list_leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[_Leaf]:
    """Yield every text and number in a value with the way to it."""
    if len(path) > _NESTED_MAX:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _MEASURED:
                yield from _list_leaves(inner, (*path, str(key)))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _list_leaves(inner, (*path, str(number)))
    elif value is not None:
        yield path, value


def _is_equal(one: Any, other: Any) -> bool:
    """Return whether two values of one source are the same, apart from redaction and shortening."""
    if not (isinstance(one, str) and isinstance(other, str)):
        # A text in the place of a number says that it was too large.
        return one == other or isinstance(one, str) or isinstance(other, str)
    if one == other:
        return True
    first, second = _CUT_MARK.split(_flatten(one)), _CUT_MARK.split(_flatten(other))
    if len(first) == len(second) == 1:
        return first == second
    return _have_equal_ends(first, second)


def _have_equal_ends(first: list[str], second: list[str]) -> bool:
    """Return whether two texts, of which at least one was shortened, begin and end alike."""
    head = min(len(first[0]), len(second[0]), _END_CHARACTERS)
    tail = min(len(first[-1]), len(second[-1]), _END_CHARACTERS)
    return first[0][:head] == second[0][:head] and (
        first[-1][len(first[-1]) - tail :] == second[-1][len(second[-1]) - tail :]
    )


def _flatten(text: str) -> str:
    """Return a text redacted by all rules, whatever is configured, in single blanks."""
    return " ".join(redact(text).split())


def _is_similar(one: Any, other: Any) -> bool:
    """Return whether a hook's value and a transcript's are the same, apart from how they are formatted."""
    if not (isinstance(one, str) and isinstance(other, str)) or one == other:
        return True
    first, second = normalised(redact(one)).split(), normalised(redact(other)).split()
    if first == second or _CUT_MARK.search(one) or _CUT_MARK.search(other):
        return True
    common = (Counter(first) & Counter(second)).total()
    return common >= _SIMILAR_SHARE * min(len(first), len(second))


SessionSpans = dict[int, tuple[int, int, str | None]]
"""Session → (first, last) event time of this batch, and the title that the batch gives it."""
ReceiptOutcome = Literal["stored", "duplicate", "filtered", "refused"]

_SESSIONS_CACHED_MAX = 256
_TITLE_CHARACTERS = 80
_UNKNOWN_KINDS_MAX = 50
_FURTHER_KINDS = "of further names"
_SESSION_KINDS = frozenset({EventKind.SESSION_START, EventKind.SESSION_END, EventKind.PROMPT})
"""Events of no turn that could make them private, whatever id they carry."""
_PLACING_KINDS = frozenset({EventKind.SESSION_START, EventKind.PROMPT})
"""Events that place a session where its agent is, if the client names no directory of the session."""
_TWIN_NAMES = frozenset({"UserPromptSubmit", "Stop", "PostCompact"})
"""Events that have no id in the hooks of older clients."""
_WORDED_NAMES = _TWIN_NAMES | {"PostToolUse", "PostToolUseFailure", "AgentText"}
"""Events that have no id in the hooks or transcripts of the clients in `clients.WITHOUT_IDS`."""
_IMPORT_SOURCES = frozenset({"import", AGENTS_IMPORT})
_TIME_MAX = 2**62
"""UTC milliseconds later than any event."""
_PRIVATE_PROMPT_FIELDS = ("session_id", "hook_event_name", "prompt_id", "uuid", "cwd")


@dataclass(frozen=True, slots=True)
class Receipt:
    """The outcome of a request; `seq` is the event's number if it is stored (now or before)."""

    outcome: ReceiptOutcome
    seq: int | None = None
    reason: str | None = None
    has_erased: bool = False
    """Whether events stored before were erased because of it."""
    is_vouched: bool = False
    """Whether only an agent's import had reported it until now."""


@dataclass(frozen=True, slots=True)
class PreparedItem:
    """A request ready to be stored: redacted, with its project."""

    source: str
    verdict: NewEvent | Ignored | Refused
    project: ProjectIdentity | None = None
    has_root: bool = True
    """Whether the client named the directory of the session, not only the one where its agent is now."""
    hide: Callable[[Any], Any] | None = None
    """Removes the secrets that it was the first to tell from what was stored before; None if there are none."""


class LookupCache:
    """Cache of what earlier transactions looked up in the vault: sessions, switches, private turns.

    It is valid while only `store_items` writes, which the writer's count of changed rows shows. After a
    transaction that failed, discard it. Events come in bursts from few sessions, and each statement that is
    saved is one moment less in which another thread may take the interpreter.
    """

    def __init__(self) -> None:
        self._tx: Connection
        self._changes: int | None = None
        """The writer's count of changed rows at the end of the last transaction."""
        self._reset()

    def _reset(self) -> None:
        self.has_forgotten = False
        """Whether anything was forgotten on purpose."""
        self._has_switches = False
        self._sessions: dict[tuple[str, str], tuple[int, str]] = {}
        self._switches: dict[tuple[str, str], projects.EffectiveSwitch] = {}
        self._project_keys: dict[str, str] = {}
        """Key of a project → that of the project which it was merged into, or itself."""
        self._turns: dict[int, dict[str, list[tuple[int, bool]]]] = {}
        """Session → turn → (time, whether it is private) of each of its prompts, oldest first."""
        self._unprompted: set[int] = set()
        """Sessions without any prompt."""

    def begin(self, tx: Connection) -> None:
        """Start a transaction; drop everything if another writer changed the vault."""
        self._tx = tx
        if self._changes != tx.total_changes() or len(self._sessions) > _SESSIONS_CACHED_MAX:
            self._reset()
            self.has_forgotten = ledger.has_forgotten(tx)
            self._has_switches = projects.has_switches(tx)

    def end(self) -> None:
        """Finish the transaction, after its last write."""
        self._changes = self._tx.total_changes()

    def is_forgotten(self, event: NewEvent) -> bool:
        """Return whether an event was forgotten on purpose."""
        keys = (event.key, *event.former_keys) if self.has_forgotten else ()
        return any(ledger.is_forgotten(self._tx, key) for key in keys)

    def find_session(self, event: NewEvent) -> tuple[int, str] | None:
        """Return (id, key of its project) of an event's session; None if it is new."""
        ref = (event.session.client, event.session.key)
        if ref not in self._sessions:
            found = projects.session_and_project(self._tx, event.session)
            if found is None:
                return None
            self._sessions[ref] = found
        return self._sessions[ref]

    def is_told_by_hooks(self, event: NewEvent, session_id: int) -> bool:
        """Return whether an imported event, without id or time, is of a session that hooks have captured."""
        is_untimed = (
            event.source in _IMPORT_SOURCES and event.session.client in clients.WITHOUT_TIMES
        )
        return is_untimed and events.has_hook_events(self._tx, session_id)

    def find_elsewhere(self, item: PreparedItem, event: NewEvent) -> ProjectIdentity | None:
        """Return the project of an event whose session has moved there from its own; None if it has not.

        An agent that only changes its directory, or a directory below the project, moves no session.
        """
        session, project = self.find_session(event), item.project
        if session is None or project is None or project.key == SCRATCH_PROJECT:
            return None
        if not (item.has_root or event.kind in _PLACING_KINDS):
            return None
        if project.key not in self._project_keys:
            found = projects.project_by_key(self._tx, project.key)
            self._project_keys[project.key] = found.key if found else project.key
        key, home = self._project_keys[project.key], session[1]
        is_in_home = is_below(key, home) and project.is_plain_directory
        return None if key == home or is_in_home else project

    def ensure_session(self, event: NewEvent, project: ProjectIdentity, now: int) -> int:
        """Return the id of an event's session, created if it is new. An existing one keeps its project."""
        found = self.find_session(event)
        if found is not None:
            return found[0]
        project_id = projects.ensure_project(
            self._tx, project.key, project.name, project.reason, now
        )
        return projects.ensure_session(self._tx, event.session, project_id, event.at)

    def find_switch(self, project_key: str, session_key: str) -> projects.EffectiveSwitch:
        """Return the user's switch for this session of this project."""
        if not self._has_switches:
            return projects.SWITCHED_ON
        keys = (project_key, session_key)
        if keys not in self._switches:
            self._switches[keys] = projects.effective_switch(self._tx, *keys)
        return self._switches[keys]

    def is_in_private_turn(self, event: NewEvent, session_id: int) -> bool:
        """Return whether this event followed a prompt in which everything was private."""
        if event.kind in _SESSION_KINDS or self._is_unprompted(session_id):
            return False
        if event.kind is EventKind.COMPACT_END or event.name == TITLE_EVENT:
            # It sums up the whole session, private turns included.
            return any(map(is_private, events.prompts_before(self._tx, session_id, event.at)))
        if event.turn and (own := self._find_prompts(session_id, event.turn)):
            return next((private for at, private in reversed(own) if at <= event.at), own[0][1])
        return is_private(events.prompt_before(self._tx, session_id, event.turn, event.at))

    def _find_prompts(self, session_id: int, turn: str) -> list[tuple[int, bool]]:
        turns = self._turns.setdefault(session_id, {})
        if turn not in turns:
            found = events.prompts_of_turn(self._tx, session_id, turn)
            turns[turn] = [(at, is_private(prompt)) for at, prompt in found]
        return turns[turn]

    def forget_turns(self, session_id: int) -> None:
        """Drop what is cached of a session's turns, after a prompt of it was stored."""
        self._unprompted.discard(session_id)
        self._turns.pop(session_id, None)

    def _is_unprompted(self, session_id: int) -> bool:
        if session_id not in self._unprompted and session_id not in self._turns:
            if events.has_prompt(self._tx, session_id):
                self._turns[session_id] = {}
            else:
                self._unprompted.add(session_id)
        return session_id in self._unprompted


def store_items(
    tx: Connection, items: Sequence[PreparedItem], now: int, cache: LookupCache | None = None
) -> list[Receipt]:
    """Store items in order, record their outcomes in the ledger and return a receipt for each."""
    cache = cache or LookupCache()
    cache.begin(tx)
    spans: SessionSpans = {}
    receipts = [_store_item(tx, item, cache, spans, now) for item in items]
    for session_id, (first, last, title) in spans.items():
        projects.extend_session(tx, session_id, first, title, last)
    _apply_client_titles(tx, items, receipts, cache)
    for source in sorted({item.source for item in items}):
        entries: Counter[tuple[str, str]] = Counter()
        for item, receipt in zip(items, receipts, strict=True):
            if item.source == source:
                entries["received", ""] += 1
                entries[receipt.outcome, _find_reason(tx, item, receipt)] += 1
        ledger.record_receipts(tx, source, entries)
    cache.end()
    return receipts


def _find_reason(tx: Connection, item: PreparedItem, receipt: Receipt) -> str:
    """Return the reason for the ledger; for a stored event of an unknown kind, a description of it."""
    if receipt.outcome != "stored" or not isinstance(item.verdict, NewEvent):
        return receipt.reason or ""
    unknown = describe_unknown(item.verdict)
    if unknown and unknown not in (listed := ledger.unknown_kinds(tx)):
        return unknown if len(listed) < _UNKNOWN_KINDS_MAX else _FURTHER_KINDS
    return unknown


def _apply_client_titles(
    tx: Connection, items: Sequence[PreparedItem], receipts: Sequence[Receipt], cache: LookupCache
) -> None:
    """Give sessions the titles that were stored; memories of their compactions take the title, too."""
    titled = {
        found[0]
        for item, receipt in zip(items, receipts, strict=True)
        if receipt.outcome == "stored" and isinstance(item.verdict, NewEvent)
        and item.verdict.name == TITLE_EVENT and (found := cache.find_session(item.verdict))
    }  # fmt: skip
    for session_id in sorted(titled):
        if projects.apply_client_title(tx, session_id, _TITLE_CHARACTERS):
            events.mark_compactions_pending(tx, session_id)


def _store_item(
    tx: Connection, item: PreparedItem, cache: LookupCache, spans: SessionSpans, now: int
) -> Receipt:
    """Store one item; widen its session's span: first event, last event, title."""
    event, project = item.verdict, item.project
    if isinstance(event, Refused):
        return Receipt("refused", reason=event.reason)
    if isinstance(event, Ignored):
        return Receipt("filtered", reason=event.reason)
    assert project is not None  # an event is only made where its project is known
    elsewhere = cache.find_elsewhere(item, event)
    if reason := _filter_reason(event, project, cache, elsewhere):
        return Receipt("filtered", reason=reason)
    session_id = cache.ensure_session(event, project, now)
    is_mark = event.kind is EventKind.PROMPT and is_private(event.payload.get("prompt"))
    stored = _strip_private_prompt(event) if is_mark else event
    if elsewhere is not None:
        projects.ensure_project(tx, elsewhere.key, elsewhere.name, elsewhere.reason, now)
        stored = replace(stored, payload={**stored.payload, ELSEWHERE: elsewhere.key})
    seq, is_new, is_vouched = _append_event(tx, stored, session_id, cache)
    if seq is None:
        return Receipt("filtered", reason="forgotten")
    if not is_new:
        _take_from_user(tx, seq, stored, cache, spans)
        return Receipt("duplicate", seq, is_vouched=is_vouched)
    first, last, title = spans.get(session_id, (event.at, event.at, None))
    if not is_mark:
        title = title or _session_title(event)
    spans[session_id] = (min(first, event.at), max(last, event.at), title)
    if event.kind is EventKind.PROMPT:
        cache.forget_turns(session_id)
    has_erased = _erase_earlier(tx, item, event, session_id, now)
    if has_erased:
        cache.has_forgotten = True
    return Receipt("stored", seq, has_erased=has_erased)


def _erase_earlier(
    tx: Connection, item: PreparedItem, event: NewEvent, session_id: int, now: int
) -> bool:
    """Erase what should not have been stored before this event: its turn if it makes it private, the secrets that it tells.

    A command may have had a secret before the prompt said what it is. What was distilled before keeps it.
    """
    is_mark = event.kind is EventKind.PROMPT and is_private(event.payload.get("prompt"))
    has_erased = (
        is_mark
        and event.turn is not None
        and (_erase_private_turn(tx, session_id, event.turn, event.at, now) > 0)
    )
    if item.hide is not None and events.rewrite_pending(tx, session_id, item.hide):
        has_erased = True
    if has_erased:
        erasure.mark_erased(tx, "private")
    return has_erased


def _find_duplicate_by_words(tx: Connection, event: NewEvent, session_id: int) -> int | None:
    """Return the id of the same event from the other side, hook or transcript, if only its words tell."""
    without_ids = event.session.client in clients.WITHOUT_IDS
    if (
        event.name not in (_WORDED_NAMES if without_ids else _TWIN_NAMES)
        or event.agent
        or is_private(event.payload.get("prompt"))
    ):
        return None
    since, until = event.at - COPIES_MS, event.at + COPIES_MS
    kind = EventKind.PROMPT if ORIGIN in event.payload else event.kind
    around = events.spoken_around(tx, session_id, kind, since, until)
    found = [stored for stored in around if is_same_from_other_source(event, stored)]
    return min(found, key=lambda one: abs(one.at - event.at)).id if found else None


def _append_event(
    tx: Connection, event: NewEvent, session_id: int, cache: LookupCache
) -> tuple[int | None, bool, bool]:
    """Store an event unless it is there; return its id, whether it is new, and whether it is vouched for now.

    The id is None if the event was forgotten on purpose. An event that has the id of another, but other words, is stored
    under a key with its words.
    """
    seq, is_new = _find_or_append_event(tx, event, session_id, cache)
    is_vouched = seq is not None and not is_new and event.source != AGENTS_IMPORT
    return seq, is_new, is_vouched and events.attribute_to_source(tx, seq or 0, event.source)


def _find_or_append_event(
    tx: Connection, event: NewEvent, session_id: int, cache: LookupCache
) -> tuple[int | None, bool]:
    duplicate = _find_duplicate_by_words(tx, event, session_id)
    if duplicate is not None:
        return duplicate, False
    seq, is_new = events.append_event(tx, event, session_id)
    if is_new or events.is_compacted(tx, seq):
        return seq, is_new
    stored = events.events_by_ids(tx, [seq])[seq]
    if stored.name != event.name or is_copy(event, stored):
        return seq, False
    another = replace(event, key=digest(event.key, fingerprint(event)), former_keys=())
    if cache.is_forgotten(another):
        return None, False
    return events.append_event(tx, another, session_id)


def _take_from_user(
    tx: Connection, seq: int, copy: NewEvent, cache: LookupCache, spans: SessionSpans
) -> None:
    """Turn a prompt that was stored as the user's into a notification if its copy says that no person typed it.

    A hook does not say who a prompt comes from, and its transcript does.
    """
    if ORIGIN not in copy.payload:
        return
    prompt = events.events_by_ids(tx, [seq])[seq]
    if prompt.kind is not EventKind.PROMPT or prompt.name != copy.name:
        return
    if is_private(prompt.payload.get("prompt")):
        return  # it makes its turn private
    payload = {**prompt.payload, ORIGIN: copy.payload[ORIGIN]}
    events.make_notification(tx, seq, payload)
    cache.forget_turns(prompt.session_id)
    title = _read_prompt_title(prompt.payload.get("prompt"))
    if (span := spans.get(prompt.session_id)) and span[2] == title:
        spans[prompt.session_id] = (*span[:2], None)
    session = projects.session(tx, prompt.session_id)
    if session and session.title == title:
        projects.clear_title(tx, session.id)


def _filter_reason(
    event: NewEvent, project: ProjectIdentity, cache: LookupCache, elsewhere: ProjectIdentity | None
) -> str | None:
    """Return why this event is not to be stored; None if nothing speaks against it."""
    if cache.is_forgotten(event):
        return "forgotten"
    session = cache.find_session(event)
    is_home = session is not None and elsewhere is None
    switch = cache.find_switch(
        session[1] if session and is_home else project.key, event.session.key
    )
    if not switch.captures:
        return f"switched off for this {switch.scope}"
    if session and cache.is_in_private_turn(event, session[0]):
        return "private turn"
    if session and cache.is_told_by_hooks(event, session[0]):
        return "told by the client's hooks"
    return None


def _strip_private_prompt(event: NewEvent) -> NewEvent:
    """Return the prompt's mark, without anything that came with it."""
    fields = {k: event.payload[k] for k in _PRIVATE_PROMPT_FIELDS if k in event.payload}
    return replace(event, payload={**fields, "prompt": PRIVATE})


def _erase_private_turn(
    tx: Connection, session_id: int, turn: str, prompted_at: int, now: int
) -> int:
    """Erase the events of a turn that were stored before its private prompt, which came late from the spool.

    Of a turn with several prompts, those that followed this one.

    Memories that come from nothing else are deleted too. Those with other sources are corrected when the turn
    is distilled again with its prompt. Returns the number of events.
    """
    times = [at for at, _ in events.prompts_of_turn(tx, session_id, turn)]
    since = prompted_at if min(times) < prompted_at else 0
    until = min((at for at in times if at > prompted_at), default=_TIME_MAX)
    early = events.turn_ids_except_prompt(tx, session_id, turn, since, until)
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
    is_users = event.kind is EventKind.PROMPT and not event.agent
    return _read_prompt_title(event.payload.get("prompt")) if is_users else None


def _read_prompt_title(prompt: object) -> str | None:
    if not isinstance(prompt, str):
        return None
    text = strip_blocks(prompt)
    plan = read_plan(text)
    return one_line(plan.subject if plan else text, _TITLE_CHARACTERS) or None

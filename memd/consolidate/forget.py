"""Forget for good: plan what goes with memories, words, a session or a project, then erase it from the vault.

With a memory go its text, full text, vectors, edges, and the events that only it derives from. An event
that another memory also derives from stays, and the report names that memory. What is selected by words is
every row that says them: events too, whoever derives from them, titles, reasons, quotes and links. A hash of
everything erased remains, so that no import brings it back. A small plan is applied in one transaction, a large
one in slices that each leave the vault consistent.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from memd.belief import supersede
from memd.belief.rejections import note_forgotten_words
from memd.belief.supersede import active_supersessions
from memd.consolidate import sources
from memd.consolidate.wanted_words import WantedWords
from memd.errors import BadRequest, UnknownId
from memd.models import TITLE_EVENT, Event, EventKind, Session, Summary, Supersession
from memd.store import erasure, ledger, links, projects
from memd.store import events as store_events
from memd.store import summaries as store_summaries
from memd.store.database import Connection
from memd.store.erasure import ErasureBounds, TextRow
from memd.text import digest, one_line

_IDS_MAX = 1_000
_SHOWN_MAX = 200
"""The report shows at most as many memories, and the count of all."""
_SUMMARIES_PER_SLICE = 200
_EVENTS_PER_SLICE = 500
_EXCERPT_CHARACTERS = 100
_FIELDS_WITHOUT_WORDS = frozenset({
    "session_id", "hook_event_name", "permission_mode", "prompt_id", "tool_name", "tool_use_id", "agent_id",
    "agent_type", "uuid", "source", "trigger", "reason", "model", "effort", "stop_hook_active",
})  # fmt: skip
"""Fields of every payload of a kind, which say nothing."""
_NUMBER_MIN = 1_000
"""Smaller numbers are counts and sizes, not what somebody wrote."""
_FIELD_NAME = re.compile(r"[A-Za-z_]+")
"""The name of a field of a tool; another key of a JSON object may be what somebody wrote."""
_EXCERPT_FIELDS = (
    "prompt", "last_assistant_message", "said", "text", "command", "file_path", "query", "url",
)  # fmt: skip
"""The fields that say best what an event was."""
_ROW_ID_MAX = 2**63 - 1
_UNKNOWN_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class ForgetSelection:
    """Selection of what to forget: by ids, or by words and bounds."""

    ids: tuple[int, ...] = ()
    words: WantedWords = field(default_factory=WantedWords)
    """All of them stand in every row that goes, be it a memory, an event or what repeats their text."""
    bounds: ErasureBounds = field(default_factory=ErasureBounds)
    spares_prompts: bool = False
    """Whether what the user wrote stays: prompts, and the titles and reasons beside them."""


@dataclass(frozen=True, slots=True)
class EventExcerpt:
    """An event that goes, as a preview shows it. `at` is UTC milliseconds."""

    id: int
    session_id: int
    kind: EventKind
    tool: str | None
    at: int
    text: str
    """Its beginning, on one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenRows:
    """The rows that go, and the changes that follow."""

    ids: tuple[int, ...] = ()
    """All of the memories."""
    event_ids: tuple[int, ...] = ()
    """Events that only forgotten memories derive from, or that say the words."""
    event_excerpts: tuple[EventExcerpt, ...] = ()
    """The first of the events."""
    revived: tuple[int, ...] = ()
    """Memories that were hidden by a forgotten one and are visible again."""
    also_in: tuple[int, ...] = ()
    """Memories that stay and derive from the same events."""
    uncited: tuple[int, ...] = ()
    """Memories that stay, and lose an event that they derive from."""
    unknown: tuple[int, ...] = ()
    rows: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """What repeats the words, a remnant of `erasure.SOURCES` → the ids of its rows."""
    imported_files: tuple[str, ...] = ()
    """Paths of files whose mark as imported goes."""
    attached: Mapping[str, int] = field(default_factory=dict)
    """Table → how many rows of it go with the memories and events."""
    stays: Mapping[str, int] = field(default_factory=dict)
    """Table and column of names of projects and sessions → how many contain the words, and stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetResult(ForgottenRows):
    """Counts of what was erased, or would be."""

    summaries: tuple[Summary, ...]
    """The first of the memories."""
    events: int
    is_dry_run: bool
    count: int = 0
    """The number of memories."""
    kept_events: int = 0
    """Selected events that stay, because a memory in `also_in` derives from them."""
    sessions: tuple[str, ...] = ()
    """Titles of sessions erased as a whole."""
    token: str = ""
    """The name of this plan: with it, exactly this is erased, or nothing."""
    backups: tuple[str, ...] = ()
    """Files that may still contain what was forgotten."""
    kept_prompts: int = 0
    """The user's own prompts, which an agent cannot erase."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """`log` or `spool` → how many of its lines go."""
    leftovers: tuple[str, ...] = ()
    """Files that a killed backup, restore or import has left, which go."""
    pending: str = ""
    """Who reads the vault, and so keeps the last bytes in its files; empty once nothing is left."""
    refused: str = ""
    """Why nothing was erased, though it was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetPlan(ForgottenRows):
    """The rows to erase, and what follows from it."""

    shown: tuple[Summary, ...] = ()
    handed_on: tuple[tuple[int, Supersession], ...] = ()
    """(the memory that hides from now on, the supersession by a forgotten memory in between)."""
    kept_events: tuple[int, ...] = ()
    kept_prompts: tuple[int, ...] = ()
    sessions: tuple[Session, ...] = ()
    project_id: int | None = None
    """The project to erase with its last session."""
    since: int | None = None
    """When the first of all this was written, UTC milliseconds; None if nothing is erased."""

    @property
    def token(self) -> str:
        """Return a token of this plan; another plan has another."""
        sessions = tuple(one.id for one in self.sessions)
        rows = sorted(self.rows.items())
        content = (self.ids, self.event_ids, sessions, rows, self.imported_files)
        return digest("forget", repr(content))[:16]

    @property
    def is_empty(self) -> bool:
        """Return whether it erases nothing in the vault."""
        return not (self.ids or self.event_ids or self.sessions or self.rows or self.imported_files)

    def report(self, *, is_dry_run: bool) -> ForgetResult:
        """The plan as a result."""
        return ForgetResult(
            summaries=self.shown, events=len(self.event_ids), is_dry_run=is_dry_run, count=len(self.ids),
            kept_events=len(self.kept_events), kept_prompts=len(self.kept_prompts), token=self.token,
            sessions=tuple(one.title or one.key for one in self.sessions),
            **{one.name: getattr(self, one.name) for one in fields(ForgottenRows)},
        )  # fmt: skip

    def split(self) -> list["ForgetPlan"]:
        """The plan in slices for one transaction each, in the order in which to apply them."""
        if len(self.ids) <= _SUMMARIES_PER_SLICE and len(self.event_ids) <= _EVENTS_PER_SLICE:
            return [self]
        slices = []
        for start in range(0, len(self.ids), _SUMMARIES_PER_SLICE):
            ids = self.ids[start : start + _SUMMARIES_PER_SLICE]
            handed_on = tuple(one for one in self.handed_on if one[1].newer_id in ids)
            slices.append(ForgetPlan(ids=ids, handed_on=handed_on))
        for start in range(0, len(self.event_ids), _EVENTS_PER_SLICE):
            part = self.event_ids[start : start + _EVENTS_PER_SLICE]
            slices.append(ForgetPlan(event_ids=part))
        rest = ForgetPlan(
            sessions=self.sessions, project_id=self.project_id, rows=self.rows,
            imported_files=self.imported_files,
        )  # fmt: skip
        return [*slices, rest]


def find_memories(tx: Connection, ids: Sequence[int]) -> dict[int, Summary]:
    """Return these memories by id; numbers that cannot be an id are ignored."""
    possible = sorted({number for number in ids if 0 < number <= _ROW_ID_MAX})
    return store_summaries.summaries_by_ids(tx, possible) if possible else {}


def require_memory(tx: Connection, number: int) -> Summary:
    """One memory. UnknownId if there is none of this number."""
    for found in find_memories(tx, [number]).values():
        return found
    raise UnknownId(f"there is no memory #{number}")


def plan_selection(tx: Connection, selection: ForgetSelection) -> ForgetPlan:
    """Plan to forget a selection. BadRequest if it is empty, UnknownId if no id exists."""
    bounds = selection.bounds
    if selection.ids:
        plan = _plan_ids(tx, selection.ids)
    elif selection.words.terms:
        plan = _plan_words(tx, selection.words, bounds)
    elif bounds == ErasureBounds():
        raise BadRequest("say what to forget: ids, words (query), a session, a project or a time")
    else:
        found, happened = (erasure.ids_within(tx, one, bounds) for one in ("summaries", "events"))
        plan = _plan_deletion(tx, found, happened)
        sessions = projects.sessions(tx, erasure.sessions_within(tx, bounds))
        is_project = bounds.is_whole and bounds.session_id is None
        project_id = bounds.project_id if is_project else None
        plan = replace(plan, sessions=tuple(sessions.values()), project_id=project_id)
    if selection.spares_prompts:
        plan = _spare_prompts(tx, plan)
    session_ids = [session.id for session in plan.sessions]
    since = erasure.oldest_time(tx, plan.ids, plan.event_ids, session_ids, plan.rows)
    shown = store_events.events_by_ids(tx, plan.event_ids[:_SHOWN_MAX])
    return replace(
        plan,
        since=0 if plan.imported_files else since,
        attached=erasure.count_attached(tx, plan.ids, plan.event_ids),
        event_excerpts=tuple(_make_excerpt(shown[one]) for one in sorted(shown)),
    )


def _spare_prompts(tx: Connection, plan: ForgetPlan) -> ForgetPlan:
    """Return the plan without the user's prompts, and so without whole sessions."""
    kept = erasure.prompts_among(tx, plan.event_ids)
    others = tuple(sorted(set(plan.event_ids).difference(kept)))
    return replace(
        plan, event_ids=others, kept_prompts=tuple(kept),
        sessions=(), project_id=None, rows={}, imported_files=(),
    )  # fmt: skip


def _plan_ids(tx: Connection, ids: Sequence[int]) -> ForgetPlan:
    wanted = tuple(dict.fromkeys(ids))
    if len(wanted) > _IDS_MAX:
        raise BadRequest(f"ids: give between 1 and {_IDS_MAX} ids of memories")
    found = find_memories(tx, wanted)
    unknown = tuple(number for number in wanted if number not in found)
    if not found:
        numbers = ", ".join(f"#{number}" for number in unknown[:_UNKNOWN_SHOWN_MAX])
        raise UnknownId(f"there is no memory {numbers}")
    plan = _plan_deletion(tx, [number for number in wanted if number in found], ())
    return replace(plan, unknown=unknown)


def _plan_words(tx: Connection, words: WantedWords, bounds: ErasureBounds) -> ForgetPlan:
    """Plan to erase every row within these bounds that says the words."""
    wanted = words.with_names(erasure.directories(tx))
    said = {
        source: tuple(
            row.id
            for row in erasure.texts_within(tx, source, bounds, wanted.may_be_in)
            if wanted.are_in(list(_words_of_row(row)))
        )
        for source in erasure.SOURCES
    }
    plan = _plan_deletion(tx, said.pop("summaries"), (), said=said.pop("events"))
    rows = {table: found for table, found in said.items() if found}
    names = erasure.names_that_stay(tx)
    stays = dict(Counter(column for column, name in names if words.are_in([name])))
    files = _find_imported_files(tx, wanted, bounds)
    return replace(plan, rows=rows, imported_files=files, stays=stays)


def _find_imported_files(
    tx: Connection, wanted: WantedWords, bounds: ErasureBounds
) -> tuple[str, ...]:
    """Find imported files whose path has the words; within a project, those whose path lies in it."""
    if bounds != ErasureBounds(project_id=bounds.project_id):
        return ()
    place = None if bounds.project_id is None else projects.project(tx, bounds.project_id)
    key = place.key if place else ""
    # Below its directory, or in the folder that a client names after it.
    folder = f"/{re.sub(r'[^A-Za-z0-9]', '-', key)}/"
    return tuple(
        path
        for path in erasure.imported_paths(tx)
        if wanted.are_in([path]) and (not key or path.startswith(f"{key}/") or folder in path)
    )


def _words_of_row(row: TextRow) -> Iterator[str]:
    """Yield the words of a row: the payload of an event and the details of an edge are JSON."""
    for column, text in row.texts.items():
        if column == "payload":
            yield from words_of_payload(json.loads(text))
        elif column == "detail":
            yield from _identifying_texts(json.loads(text))
        elif column != "tool" or text.startswith("mcp__"):
            yield text


def words_of_payload(payload: Any) -> Iterator[str]:
    """Yield the texts of an event's payload, without the names of fields and what every event has."""
    if isinstance(payload, dict):
        payload = [one for name, one in payload.items() if name not in _FIELDS_WITHOUT_WORDS]
    yield from _identifying_texts(payload)


def _identifying_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, int) and abs(value) >= _NUMBER_MIN:
        yield str(value)
    elif isinstance(value, dict):
        yield from (key for key in value if not _FIELD_NAME.fullmatch(key))
        yield from _identifying_texts(list(value.values()))
    elif isinstance(value, list):
        for inner in value:
            yield from _identifying_texts(inner)


def _make_excerpt(event: Event) -> EventExcerpt:
    payload = event.payload
    tool_input = payload.get("tool_input")
    given = {**(tool_input if isinstance(tool_input, dict) else {}), **payload}
    said = [one for name in _EXCERPT_FIELDS if isinstance(one := given.get(name), str)]
    rest = words_of_payload({k: v for k, v in payload.items() if k != "cwd"})
    text = next(filter(str.strip, said), None) or " ".join(rest)
    excerpt = one_line(text, _EXCERPT_CHARACTERS)
    return EventExcerpt(event.id, event.session_id, event.kind, event.tool, event.at, excerpt)


def _plan_deletion(
    tx: Connection, ids: Sequence[int], event_ids: Sequence[int], said: Iterable[int] = ()
) -> ForgetPlan:
    """Plan to erase memories, and events unless another memory needs them; those in `said` anyway."""
    forgotten, anyway = frozenset(ids), frozenset(said)
    shown = find_memories(tx, ids[:_SHOWN_MAX])
    erased, kept, also_in, uncited = set[int](), set[int](), set[int](), set[int]()
    derived = {event for number in forgotten for event, _ in links.sources_of(tx, number)}
    for event_id in derived.union(event_ids, anyway):
        staying = set(links.derived_from(tx, event_id)).difference(forgotten)
        if event_id in anyway:
            uncited |= staying
            erased.add(event_id)
        else:
            also_in |= staying
            (kept if staying else erased).add(event_id)
    revived, handed_on = _find_hidden(tx, forgotten)
    return ForgetPlan(
        ids=tuple(ids),
        shown=tuple(shown[number] for number in ids if number in shown),
        event_ids=tuple(sorted(erased)),
        revived=tuple(revived),
        handed_on=tuple(handed_on),
        also_in=tuple(sorted(also_in)),
        uncited=tuple(sorted(uncited)),
        kept_events=tuple(sorted(kept)),
    )


def _find_hidden(
    tx: Connection, forgotten: Collection[int]
) -> tuple[list[int], list[tuple[int, Supersession]]]:
    """(memories that are visible again, those that another memory hides from now on)."""
    revived, handed_on = [], []
    for number in sorted(forgotten):
        for past in active_supersessions(tx, number):
            if past.newer_id != number or past.older_id in forgotten:
                continue
            above = _find_staying_superseder(tx, number, forgotten)
            if above is None:
                revived.append(past.older_id)
            else:
                # Forgetting the middle of a chain must not bring its stale beginning back.
                handed_on.append((above, past))
    return revived, handed_on


def _find_staying_superseder(
    tx: Connection, summary_id: int, forgotten: Collection[int]
) -> int | None:
    """The nearest memory that hides this one, directly or through others, and that stays."""
    current: int | None = summary_id
    while current is not None and current in forgotten:
        above = store_summaries.get_summary(tx, current)
        current = above.superseded_by if above else None
    return current


def apply_plan(tx: Connection, plan: ForgetPlan, now: int) -> None:
    """Erase what was planned in this transaction, or one slice of it."""
    nodes: set[tuple[str, str]] = set()
    # A judgment goes with its memory, so whose word it was is read first.
    voices = [supersede.supersession_authority(tx, past) for _, past in plan.handed_on]
    for number in plan.ids:
        nodes |= links.neighbours(tx, "summary", str(number))
        summary = store_summaries.get_summary(tx, number)
        if summary is not None:
            sources.forget_origins(tx, number, now)
            note_forgotten_words(tx, summary, now)
            ledger.note_forgotten(tx, summary.project_id, now)
            erasure.delete_memory(tx, number)
            ledger.record_forgotten(tx, summary.uid, now)
    guard = "handed on: what stood between was forgotten"
    for (newer_id, past), voice in zip(plan.handed_on, voices, strict=True):
        supersede.hide(tx, newer_id, past.older_id, past.rule, guard, now, voice=voice)
    for start in range(0, len(plan.event_ids), _EVENTS_PER_SLICE):
        nodes |= _erase_events(tx, plan.event_ids[start : start + _EVENTS_PER_SLICE], now)
    links.drop_orphan_nodes(tx, nodes)
    for session in plan.sessions:
        ledger.note_forgotten(tx, session.project_id, now)
        if projects.forget_session(tx, session.id):
            ledger.record_forgotten(tx, session.uid, now)
    if plan.project_id is not None:
        projects.forget_project(tx, plan.project_id)
    erasure.erase_remnants(tx, plan.rows, now)
    erasure.forget_imported_files(tx, plan.imported_files, now)
    erasure.mark_erased(tx, "forgotten")


def _erase_events(tx: Connection, event_ids: Sequence[int], now: int) -> set[tuple[str, str]]:
    """Erase these events; returns the nodes that they were linked with."""
    nodes: set[tuple[str, str]] = set()
    found = store_events.events_by_ids(tx, event_ids)
    for session in projects.sessions(tx, {one.session_id for one in found.values()}).values():
        ledger.note_forgotten(tx, session.project_id, now)
    for event in found.values():
        nodes |= links.neighbours(tx, "event", str(event.id))
        links.drop_node(tx, "event", str(event.id))
        if event.kind is EventKind.PROMPT or event.name == TITLE_EVENT:
            # The title of a session has the words of a prompt or of its client; of which is not recorded.
            projects.clear_title(tx, event.session_id)
    store_events.forget_events(tx, event_ids, now)
    return nodes

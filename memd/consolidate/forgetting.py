"""What goes when memories are forgotten, what shows again, and what stays: first as a plan, then done.

With a memory go its text, full text, vectors, edges, and the events that it alone came from. An event
that a staying memory also came from stays, and the report says which memories those are. Of everything
erased only a hash remains, so that no import brings it back. A plan is done whole, or in slices that
each leave the vault consistent. Not here: the WAL, spool, log and backups (eraser.py).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from memd.consolidate import origins
from memd.errors import BadRequest, UnknownId
from memd.models import EventKind, Session, Summary, Supersession
from memd.store import books, events, fulltext, links, projects, selecting, summaries
from memd.store.database import Connection
from memd.store.selecting import Bounds
from memd.text import digest

IDS_MAX = 1_000
SHOWN_MAX = 200
"""Of more memories than these the report tells the number alone."""
_SLICE = 200
_EVENTS_SLICE = 500
_CHUNK = 500
_INT_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Selection:
    """What somebody wants forgotten: by ids, or by words and bounds."""

    ids: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    """Each stands in every memory that goes; then no event goes that no such memory came from."""
    bounds: Bounds = field(default_factory=Bounds)

    @property
    def is_empty(self) -> bool:
        """Whether it would mean everything."""
        return not self.ids and not self.words and self.bounds == Bounds()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a `forget` erased, or would erase."""

    summaries: tuple[Summary, ...]
    """The first of those that go."""
    events: int
    revived: tuple[int, ...]
    """Memories that were hidden by a forgotten one and show again."""
    also_in: tuple[int, ...]
    """Memories that stay and derive from the same events."""
    unknown: tuple[int, ...]
    is_dry_run: bool
    count: int = 0
    """How many memories go."""
    kept_events: int = 0
    """Events that were meant and stay, for a memory in `also_in` comes from them."""
    sessions: tuple[str, ...] = ()
    """Titles of sessions that go whole."""
    token: str = ""
    """What this plan is called: doing it with this token does exactly this, or nothing."""
    backups: tuple[str, ...] = ()
    """Files that may still hold what was forgotten: nothing rewrites a backup."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a `forget` is going to do."""

    ids: tuple[int, ...]
    shown: tuple[Summary, ...]
    event_ids: tuple[int, ...]
    """Events that only forgotten memories derive from."""
    revived: tuple[int, ...] = ()
    handed_on: tuple[tuple[int, Supersession], ...] = ()
    """(who hides from now on, the supersession that goes with a forgotten memory in between)."""
    also_in: tuple[int, ...] = ()
    kept_events: tuple[int, ...] = ()
    sessions: tuple[Session, ...] = ()
    project_id: int | None = None
    """The project that goes with its last session."""
    unknown: tuple[int, ...] = ()
    since: int | None = None
    """When the first of what goes was kept, UTC milliseconds; None if nothing goes."""

    @property
    def token(self) -> str:
        """What it is called: another plan has another."""
        said = (self.ids, self.event_ids, tuple(one.id for one in self.sessions))
        return digest("forget", repr(said))[:16]

    @property
    def is_small(self) -> bool:
        """Whether one transaction does all of it quickly."""
        return len(self.ids) <= _SLICE and len(self.event_ids) <= _EVENTS_SLICE

    def report(self, *, is_dry_run: bool) -> Forgotten:
        """The plan in the words of its result."""
        return Forgotten(
            self.shown,
            len(self.event_ids),
            self.revived,
            self.also_in,
            self.unknown,
            is_dry_run,
            count=len(self.ids),
            kept_events=len(self.kept_events),
            sessions=tuple(one.title or one.key for one in self.sessions),
            token=self.token,
        )

    def slices(self) -> Iterator["Plan"]:
        """The plan in parts, in the order in which they are to be done."""
        for start in range(0, len(self.ids), _SLICE):
            ids = self.ids[start : start + _SLICE]
            mine = tuple(one for one in self.handed_on if one[1].newer_id in ids)
            yield Plan(ids, (), (), handed_on=mine)
        for start in range(0, len(self.event_ids), _EVENTS_SLICE):
            yield Plan((), (), self.event_ids[start : start + _EVENTS_SLICE])
        if self.sessions or self.project_id is not None:
            yield Plan((), (), (), sessions=self.sessions, project_id=self.project_id)


def known(tx: Connection, ids: Sequence[int]) -> dict[int, Summary]:
    """These memories by id; whatever cannot be an id is left out, too."""
    possible = sorted({number for number in ids if 0 < number <= _INT_MAX})
    return summaries.by_ids(tx, possible) if possible else {}


def plan(tx: Connection, ids: Sequence[int]) -> Plan:
    """What forgetting these would do. BadRequest without ids, UnknownId if none of them exists."""
    wanted = tuple(dict.fromkeys(ids))
    if not wanted or len(wanted) > IDS_MAX:
        raise BadRequest(f"ids: give between 1 and {IDS_MAX} ids of memories")
    found = known(tx, wanted)
    unknown = tuple(number for number in wanted if number not in found)
    if not found:
        raise UnknownId(
            f"there is no memory {', '.join(f'#{number}' for number in unknown[:20])}"
        )
    going = tuple(number for number in wanted if number in found)
    return replace(_planned(tx, going, ()), unknown=unknown)


def plan_selection(tx: Connection, selection: Selection) -> Plan:
    """What forgetting all of this would do. BadRequest for a selection that would mean everything."""
    found = _selected(tx, selection)
    begun = [session.id for session in found.sessions]
    return replace(found, since=selecting.oldest(tx, found.ids, found.event_ids, begun))


def _selected(tx: Connection, selection: Selection) -> Plan:
    if selection.ids:
        return plan(tx, selection.ids)
    if selection.is_empty:
        raise BadRequest("say what to forget: ids, a query, a session, a project or a time")
    if selection.words:
        return _planned(tx, selecting.saying(tx, selection.bounds, selection.words), ())
    bounds = selection.bounds
    found = _planned(tx, selecting.memories(tx, bounds), selecting.happened(tx, bounds))
    whole = projects.sessions(tx, selecting.sessions(tx, bounds))
    gone = bounds.project_id if bounds.is_whole and bounds.session_id is None else None
    return replace(found, sessions=tuple(whole.values()), project_id=gone)


def _planned(tx: Connection, ids: Sequence[int], event_ids: Sequence[int]) -> Plan:
    going = frozenset(ids)
    erased, kept, also_in = _events(tx, going, event_ids)
    revived, handed_on = _hidden(tx, going)
    shown = known(tx, ids[:SHOWN_MAX])
    return Plan(
        tuple(ids),
        tuple(shown[number] for number in ids[:SHOWN_MAX] if number in shown),
        erased,
        revived,
        handed_on,
        also_in,
        kept,
    )


def _events(
    tx: Connection, going: Collection[int], meant: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(events to erase, events that stay, memories that keep them)."""
    erased: set[int] = set()
    kept: set[int] = set()
    also_in: set[int] = set()
    sources = {event for number in going for event, _ in links.sources_of(tx, number)}
    for event_id in sources.union(meant):
        staying = set(links.derived_from(tx, event_id)).difference(going)
        also_in |= staying
        (kept if staying else erased).add(event_id)
    return tuple(sorted(erased)), tuple(sorted(kept)), tuple(sorted(also_in))


def _hidden(
    tx: Connection, going: Collection[int]
) -> tuple[tuple[int, ...], tuple[tuple[int, Supersession], ...]]:
    """(memories that show again, those that somebody else goes on hiding)."""
    revived, handed_on = [], []
    for number in sorted(going):
        hides = [
            one
            for one in links.supersessions_of(tx, number)
            if one.newer_id == number and one.undone_at is None and one.older_id not in going
        ]
        above = _staying_above(tx, number, going) if hides else None
        for one in hides:
            if above is None:
                revived.append(one.older_id)
            else:
                # Forgetting the middle of a chain must not bring its stale beginning back.
                handed_on.append((above, one))
    return tuple(revived), tuple(handed_on)


def _staying_above(tx: Connection, summary_id: int, going: Collection[int]) -> int | None:
    """The nearest memory that hides this one, directly or through others, and that stays."""
    current: int | None = summary_id
    while current is not None and current in going:
        above = summaries.get(tx, current)
        current = above.superseded_by if above else None
    return current


def apply(tx: Connection, plan: Plan, now: int) -> Forgotten:
    """Erase what was planned in this same transaction, or one slice of it."""
    nodes: set[tuple[str, str]] = set()
    for number in plan.ids:
        nodes |= links.neighbours(tx, "summary", str(number))
        _erase(tx, number, now)
    for newer_id, one in plan.handed_on:
        links.supersede(
            tx,
            newer_id=newer_id,
            older_id=one.older_id,
            rule=one.rule,
            cosine=None,
            guard="handed on: what stood between was forgotten",
            at=now,
        )
    nodes |= _erase_events(tx, plan.event_ids, now)
    links.drop_adrift(tx, nodes)
    for session in plan.sessions:
        if projects.forget_session(tx, session.id):
            books.forget(tx, session.uid, now)
    if plan.project_id is not None:
        projects.forget_project(tx, plan.project_id)
    return plan.report(is_dry_run=False)


def _erase(tx: Connection, summary_id: int, now: int) -> None:
    summary = summaries.get(tx, summary_id)
    if summary is None:
        return
    origins.forget(tx, summary.id, now)
    fulltext.remove(tx, summary.id)
    summaries.delete(tx, summary.id)
    books.forget(tx, summary.uid, now)


def _erase_events(tx: Connection, event_ids: Sequence[int], now: int) -> set[tuple[str, str]]:
    """Erase these; the nodes that they were linked with."""
    nodes: set[tuple[str, str]] = set()
    for start in range(0, len(event_ids), _CHUNK):
        for event in events.by_ids(tx, event_ids[start : start + _CHUNK]).values():
            nodes |= links.neighbours(tx, "event", str(event.id))
            links.drop_node(tx, "event", str(event.id))
            if event.kind is EventKind.PROMPT:
                # A session is titled with the words of a prompt; nobody knows of which one.
                projects.untitle(tx, event.session_id)
    if event_ids:
        events.forget(tx, event_ids, now)
    return nodes

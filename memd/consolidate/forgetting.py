"""What goes when a memory is forgotten, what shows again, and what stays: first as a plan, then done.

With a memory go its text, full text, vectors, edges, and the events that it alone came from. An event
that a staying memory also came from stays, and the report says which memories those are. Of everything
erased only a hash remains, so that no import brings it back. Not here: the WAL, spool and backups.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memd.consolidate import origins
from memd.errors import BadRequest, UnknownId
from memd.models import EventKind, Summary, Supersession
from memd.store import books, events, fulltext, links, projects, summaries
from memd.store.database import Connection

IDS_MAX = 1_000
_INT_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a `forget` erased, or would erase."""

    summaries: tuple[Summary, ...]
    events: int
    revived: tuple[int, ...]
    """Memories that were hidden by a forgotten one and show again."""
    also_in: tuple[int, ...]
    """Memories that stay and derive from the same events."""
    unknown: tuple[int, ...]
    is_dry_run: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What a `forget` is going to do."""

    summaries: tuple[Summary, ...]
    event_ids: tuple[int, ...]
    """Events that only forgotten memories derive from."""
    revived: tuple[int, ...]
    handed_on: tuple[tuple[int, Supersession], ...]
    """(who hides from now on, the supersession that goes with a forgotten memory in between)."""
    also_in: tuple[int, ...]
    unknown: tuple[int, ...]

    def report(self, *, is_dry_run: bool) -> Forgotten:
        """The plan in the words of its result."""
        return Forgotten(
            self.summaries,
            len(self.event_ids),
            self.revived,
            self.also_in,
            self.unknown,
            is_dry_run,
        )


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
    erased, also_in = _events(tx, found)
    revived, handed_on = _hidden(tx, found)
    going = tuple(found[number] for number in wanted if number in found)
    return Plan(going, erased, revived, handed_on, also_in, unknown)


def _events(
    tx: Connection, going: Mapping[int, Summary]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(events to erase, memories that keep the others)."""
    erased, also_in = set(), set()
    for event_id in {event for number in going for event, _ in links.sources_of(tx, number)}:
        staying = set(links.derived_from(tx, event_id)) - going.keys()
        also_in |= staying
        if not staying:
            erased.add(event_id)
    return tuple(sorted(erased)), tuple(sorted(also_in))


def _hidden(
    tx: Connection, going: Mapping[int, Summary]
) -> tuple[tuple[int, ...], tuple[tuple[int, Supersession], ...]]:
    """(memories that show again, those that somebody else goes on hiding)."""
    revived, handed_on = [], []
    for number in sorted(going):
        above = _staying_above(tx, number, going)
        for one in links.supersessions_of(tx, number):
            if one.newer_id != number or one.undone_at is not None or one.older_id in going:
                continue
            if above is None:
                revived.append(one.older_id)
            else:
                # Forgetting the middle of a chain must not bring its stale beginning back.
                handed_on.append((above, one))
    return tuple(revived), tuple(handed_on)


def _staying_above(tx: Connection, summary_id: int, going: Mapping[int, Summary]) -> int | None:
    """The nearest memory that hides this one, directly or through others, and that stays."""
    current: int | None = summary_id
    while current is not None and current in going:
        above = summaries.get(tx, current)
        current = above.superseded_by if above else None
    return current


def apply(tx: Connection, plan: Plan, now: int) -> Forgotten:
    """Erase what was planned in this same transaction."""
    for summary in plan.summaries:
        origins.forget(tx, summary.id, now)
        fulltext.remove(tx, summary.id)
        summaries.delete(tx, summary.id)
        books.forget(tx, summary.uid, now)
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
    _erase_events(tx, plan.event_ids, now)
    return plan.report(is_dry_run=False)


def _erase_events(tx: Connection, event_ids: Sequence[int], now: int) -> None:
    if not event_ids:
        return
    for event in events.by_ids(tx, event_ids).values():
        links.drop_node(tx, "event", str(event.id))
        if event.kind is EventKind.PROMPT:
            # A session is titled with the words of a prompt; nobody knows of which one.
            projects.untitle(tx, event.session_id)
    events.forget(tx, event_ids, now)

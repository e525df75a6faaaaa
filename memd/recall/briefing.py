"""Where a session stands, and the candidates for its beginning, each read in one transaction.

What the agent sees already is left out with its reason: what it was shown since it last lost its
context, and what it did itself since then. After a compaction what it lost leads: its own decisions,
rules and open failures, and what it had been shown before. Knows no waiting and no wording for agents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memd.models import GLOBAL_PROJECT, Kind, Project, Session
from memd.recall.digest import DAY_MS, Choice, Group
from memd.store import cards, events, injections, projects, switches
from memd.store.database import Connection
from memd.store.rows import Card

RULES = "Preferences, instructions, pinned"
DECISIONS = "Decisions"
FAILURES = "Failures without a known fix"
LAST = "Last session"
OWN = "From this session, before it was compacted"
AGAIN = "Recalled in this session, before it was compacted"
_KIND_MAX = 40
"""Cards of a kind and project that are looked at."""
_FAILURE_DAYS = 30
"""An older failure has most likely been lived with, or is of a world that is gone."""
_OWN_KINDS = (Kind.DECISION, Kind.INSTRUCTION, Kind.PREFERENCE, Kind.FAILURE)
_PROMPTS_MAX = 50


@dataclass(frozen=True, slots=True)
class Place:
    """Which session it is, as its client names it, and where. Without a session: any new one."""

    client: str = ""
    session: str | None = None
    project_key: str | None = None
    """Where it is, if the vault does not know the session; None: nowhere in particular."""
    project_name: str = ""


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known of a session before anything is looked for. Times are UTC milliseconds."""

    session: Session | None
    project_ids: tuple[int, ...]
    """Its project, if it is known, and `global`."""
    project: Project | None
    name: str
    """What the project is called."""
    switch: switches.Switch
    last_at: int | None = None
    """The last event before this one."""
    broke_at: int | None = None
    """When the agent last lost what it had seen."""
    shown: Mapping[int, int] = field(default_factory=dict)
    """Summary id → when it was last shown."""
    prompts: tuple[str, ...] = ()
    """What was asked in it before, latest first."""

    def seen(self, summary_id: int, session_id: int | None, at: int) -> str | None:
        """Why the agent has a memory before it already; None if it has not."""
        since = self.broke_at or 0
        if self.shown.get(summary_id, -1) >= since:
            return "shown to this session already"
        is_own = session_id is not None and self.session and session_id == self.session.id
        # The turn that was compacted may have lasted until that very moment.
        if is_own and at > since:
            return "from this very session"
        return None


def situate(
    tx: Connection, place: Place, event_id: int | None, *, with_prompts: bool
) -> Situation:
    """Where a session stands; `event_id` is the event that asks, which does not count."""
    session = (
        projects.session_of_client(tx, place.client, place.session)
        if place.session is not None
        else None
    )
    project = _project(tx, session, place)
    everywhere = projects.by_key(tx, GLOBAL_PROJECT)
    ids = tuple(dict.fromkeys(p.id for p in (project, everywhere) if p is not None))
    key = project.key if project else place.project_key or ""
    switch = switches.effective(tx, key, place.session)
    name = project.name if project else place.project_name
    if session is None:
        return Situation(None, ids, project, name, switch)
    return Situation(
        session=session,
        project_ids=ids,
        project=project,
        name=name,
        switch=switch,
        last_at=events.last_besides(tx, session.id, event_id),
        broke_at=events.last_break(tx, session.id),
        shown=injections.times(tx, session.id),
        prompts=tuple(events.prompts_besides(tx, session.id, event_id, _PROMPTS_MAX))
        if with_prompts
        else (),
    )


def _project(tx: Connection, session: Session | None, place: Place) -> Project | None:
    if session is not None:
        return projects.project(tx, session.project_id)
    return None if place.project_key is None else projects.by_key(tx, place.project_key)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a session may begin with, and what it may not."""

    groups: tuple[Group, ...]
    left_out: tuple[Choice, ...]
    last: Session | None = None
    """The session that the group of the last session is about."""


def candidates(tx: Connection, here: Situation, moment: str, now: int) -> Candidates:
    """The candidates for `startup`, `clear`, `resume` or `compact`, in groups as they are to stand."""
    groups, last = _everywhere(tx, here, now)
    if moment == "compact":
        groups = [*_lost(tx, here, now), *groups]
    since = here.last_at if moment == "resume" else None
    kept: list[Group] = []
    left_out: list[Choice] = []
    for group in groups:
        verdicts = {card.id: _why_not(card, here, since) for card in group.cards}
        left_out += [
            Choice(card, group.name, False, why)
            for card in group.cards
            if (why := verdicts[card.id])
        ]
        allowed = tuple(card for card in group.cards if not verdicts[card.id])
        kept.append(Group(group.name, allowed, group.leads))
    return Candidates(tuple(kept), tuple(left_out), last)


def _why_not(card: Card, here: Situation, since: int | None) -> str | None:
    if why := here.seen(card.id, card.session_id, card.at):
        return why
    if since is not None and card.created_at <= since:
        return "not new since this session was left"
    return None


def _everywhere(
    tx: Connection, here: Situation, now: int
) -> tuple[list[Group], Session | None]:
    """The index of a project, and of what holds everywhere."""
    ids = here.project_ids
    pinned = cards.pinned(tx, ids, now, _KIND_MAX)
    rules = [
        *(card for card in pinned if card.kind is not Kind.DECISION),
        *cards.newest(tx, ids, Kind.INSTRUCTION, now, _KIND_MAX),
        *cards.newest(tx, ids, Kind.PREFERENCE, now, _KIND_MAX),
    ]
    decisions = [
        *(card for card in pinned if card.kind is Kind.DECISION),
        *cards.newest(tx, ids, Kind.DECISION, now, _KIND_MAX),
    ]
    failures = cards.open_failures(tx, ids, now - _FAILURE_DAYS * DAY_MS, now, _KIND_MAX)
    besides = here.session.id if here.session else None
    found = (
        cards.last_session(tx, here.project.id, besides=besides, now=now)
        if here.project
        else None
    )
    groups = [
        Group(RULES, _once(rules)),
        Group(DECISIONS, _once(decisions)),
        Group(FAILURES, tuple(failures)),
        Group(LAST, (found[1],) if found else ()),
    ]
    return groups, found[0] if found else None


def _once(cards: Sequence[Card]) -> tuple[Card, ...]:
    return tuple({card.id: card for card in cards}.values())


def _lost(tx: Connection, here: Situation, now: int) -> list[Group]:
    """What a compaction took from the agent: its own choices, and what it had been shown."""
    if here.session is None:
        return []
    own = cards.of_session(tx, here.session.id, _OWN_KINDS, now, _KIND_MAX)
    shown = cards.by_ids(tx, list(here.shown)[-_KIND_MAX:], now)
    return [Group(OWN, tuple(own), leads=True), Group(AGAIN, tuple(shown), leads=True)]

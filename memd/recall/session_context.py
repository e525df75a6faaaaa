"""What a session starts with."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from memd.models import CLOCK_SKEW_MAX_MS, GLOBAL_PROJECT, Kind, Project, Session
from memd.store import events, projects, session_context, usage
from memd.store.database import Connection
from memd.store.types import ContextCandidate

# MERGED from memd.recall.digest:
# MERGED What of a project's memories a session begins with: worth, fair shares, one verdict each. Pure.
# MERGED
# MERGED Candidates come in groups. Groups that lead may take half of the room before the others begin. Then
# MERGED whoever has used least of the room puts its next best down, so that no group fills the page while
# MERGED another waits, and what one does not need is the others'. Within a group what is pinned comes first,
# MERGED then what is worth most: how recent it is for its kind, how often it was said again, how often it was
# MERGED asked for. What was only shown unasked counts for nothing: it would keep itself on top.


DAY_MS = 86_400_000
_HALF_LIFE_DAYS = {
    Kind.INSTRUCTION: 365.0,
    Kind.PREFERENCE: 365.0,
    Kind.DECISION: 120.0,
    Kind.FAILURE: 7.0,
}
_HALF_LIFE_OTHERS = 30.0
_REPEATS_WEIGHT = 0.15
_USES_WEIGHT = 0.1
_LEADING_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class CandidateGroup:
    """Candidates under one heading."""

    name: str
    cards: tuple[ContextCandidate, ...]
    leads: bool = False


@dataclass(frozen=True, slots=True)
class CandidateChoice:
    """One candidate, whether it is shown, and in words why."""

    card: ContextCandidate
    group: str
    is_shown: bool
    why: str


@dataclass(slots=True)
class _Queue:
    """A group while its cards are put down."""

    group: CandidateGroup
    waiting: list[ContextCandidate]
    kept: list[ContextCandidate]
    used: int = 0


Cost = Callable[[ContextCandidate], int]
"""What a card's line takes of the room."""


def rate_candidate(card: ContextCandidate, now: int) -> float:
    """What a card is worth beside others of its group; recency is 1 now and ½ after a half-life."""
    half = _HALF_LIFE_DAYS.get(card.kind, _HALF_LIFE_OTHERS)
    age = _age(card, now) / DAY_MS
    return float(
        0.5 ** (age / half)
        + _REPEATS_WEIGHT * math.log2(1 + max(card.repeats, 0))
        + _USES_WEIGHT * math.log2(1 + card.uses)
    )


def choose_candidates(
    groups: Sequence[CandidateGroup],
    room: int,
    now: int,
    cost: Cost,
    heading: Callable[[str], int],
) -> list[CandidateChoice]:
    """A verdict for every card, in the order in which they are to stand: by group, best first.

    `cost` and `heading` say in the unit of `room` what a card's line and a group's heading take.
    A card of two groups belongs to the first.
    """
    queues, twins = _queues(groups, now)
    leading = [queue for queue in queues if queue.group.leads]
    left = room
    if leading:
        share = int(room * _LEADING_SHARE)
        left = room - share + _fill(leading, share, cost, heading)
    _fill(queues, left, cost, heading)
    chosen: list[CandidateChoice] = []
    for queue in queues:
        name = queue.group.name
        chosen += [CandidateChoice(card, name, True, _why(card, now)) for card in queue.kept]
        chosen += [CandidateChoice(card, name, False, "no room left") for card in queue.waiting]
        chosen += [CandidateChoice(card, name, False, why) for card, why in twins[name]]
    return chosen


def _queues(
    groups: Sequence[CandidateGroup], now: int
) -> tuple[list[_Queue], dict[str, list[tuple[ContextCandidate, str]]]]:
    """Each group's cards in order, once each; and those that say what another one says."""
    queues: list[_Queue] = []
    twins: dict[str, list[tuple[ContextCandidate, str]]] = {}
    ids: set[int] = set()
    titles: dict[tuple[Kind, str], int] = {}
    for group in groups:
        waiting: list[ContextCandidate] = []
        same = twins.setdefault(group.name, [])
        for card in sorted(
            group.cards, key=lambda c: (not c.is_pinned, -rate_candidate(c, now), -c.at, -c.id)
        ):
            if card.id in ids:
                continue
            ids.add(card.id)
            said = (card.kind, " ".join(card.title.lower().split()).rstrip(".!… "))
            if said in titles:
                same.append((card, f"says the same as #{titles[said]}"))
                continue
            titles[said] = card.id
            waiting.append(card)
        queues.append(_Queue(group, waiting, []))
    return queues, twins


def _fill(
    queues: Sequence[_Queue], room: int, cost: Cost, heading: Callable[[str], int]
) -> int:
    """Put down what fits; the room that is left."""
    open_ = [queue for queue in queues if queue.waiting]
    while open_:
        queue = min(open_, key=lambda one: one.used)
        price = cost(queue.waiting[0]) + (0 if queue.kept else heading(queue.group.name))
        if price > room:
            open_ = [one for one in open_ if one is not queue]
            continue
        queue.kept.append(queue.waiting.pop(0))
        queue.used += price
        room -= price
        if not queue.waiting:
            open_ = [one for one in open_ if one is not queue]
    return room


def _age(card: ContextCandidate, now: int) -> int:
    """In ms. What a wrong clock dated ahead is as old as it lies ahead: else it would lead for years."""
    gone = now - card.at
    return -gone if gone <= -CLOCK_SKEW_MAX_MS else max(gone, 0)


def _why(card: ContextCandidate, now: int) -> str:
    days = _age(card, now) // DAY_MS
    parts = ["pinned"] if card.is_pinned else []
    parts.append("today" if days == 0 else f"{days} d old")
    if card.repeats > 0:
        parts.append(f"said again {card.repeats}×")
    if card.uses:
        parts.append(f"asked for {card.uses}×")
    return ", ".join(parts)


# MERGED from memd.recall.briefing:
# MERGED Where a session stands, and the candidates for its beginning, each read in one transaction.
# MERGED
# MERGED What the agent sees already is left out with its reason: what it was shown since it last lost its
# MERGED context, and what it did itself since then. After a compaction what it lost leads: its own decisions,
# MERGED rules and open failures, and what it had been shown before. Knows no waiting and no wording for agents.


RULES_HEADING = "Preferences, instructions, pinned"
DECISIONS_HEADING = "Decisions"
FAILURES_HEADING = "Failures without a known fix"
LAST_SESSION_HEADING = "Last session"
OWN_HEADING = "From this session, before it was compacted"
INJECTED_HEADING = "Recalled in this session, before it was compacted"
_KIND_MAX = 40
"""Cards of a kind and project that are looked at."""
_FAILURE_DAYS = 30
"""An older failure has most likely been lived with, or is of a world that is gone."""
_OWN_KINDS = (Kind.DECISION, Kind.INSTRUCTION, Kind.PREFERENCE, Kind.FAILURE)
_PROMPTS_MAX = 50


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """Which session it is, as its client names it, and where. Without a session: any new one."""

    client: str = ""
    session: str | None = None
    project_key: str | None = None
    """Where it is, if the vault does not know the session; None: nowhere in particular."""
    project_name: str = ""


@dataclass(frozen=True, slots=True)
class SessionState:
    """What is known of a session before anything is looked for. Times are UTC milliseconds."""

    session: Session | None
    project_ids: tuple[int, ...]
    """Its project, if it is known, and `global`."""
    project: Project | None
    name: str
    """What the project is called."""
    switch: projects.Switch
    last_at: int | None = None
    """The last event before this one."""
    context_lost_at: int | None = None
    """When the agent last lost what it had seen."""
    injected_at: Mapping[int, int] = field(default_factory=dict)
    """Summary id → when it was last shown."""
    prompts: tuple[str, ...] = ()
    """What was asked in it before, latest first."""

    def why_seen(self, summary_id: int, session_id: int | None, at: int) -> str | None:
        """Why the agent has a memory before it already; None if it has not."""
        since = self.context_lost_at or 0
        if self.injected_at.get(summary_id, -1) >= since:
            return "shown to this session already"
        is_own = session_id is not None and self.session and session_id == self.session.id
        # The turn that was compacted may have lasted until that very moment.
        if is_own and at > since:
            return "from this very session"
        return None


def read_session_state(
    tx: Connection, place: SessionPlace, event_id: int | None, *, with_prompts: bool
) -> SessionState:
    """Where a session stands; `event_id` is the event that asks, which does not count."""
    session = (
        projects.session_of_client(tx, place.client, place.session)
        if place.session is not None
        else None
    )
    project = _project(tx, session, place)
    everywhere = projects.project_by_key(tx, GLOBAL_PROJECT)
    ids = tuple(dict.fromkeys(p.id for p in (project, everywhere) if p is not None))
    key = project.key if project else place.project_key or ""
    switch = projects.effective_switch(tx, key, place.session)
    name = project.name if project else place.project_name
    if session is None:
        return SessionState(None, ids, project, name, switch)
    return SessionState(
        session=session,
        project_ids=ids,
        project=project,
        name=name,
        switch=switch,
        last_at=events.last_time_except(tx, session.id, event_id),
        context_lost_at=events.last_context_loss(tx, session.id),
        injected_at=usage.last_injected(tx, session.id),
        prompts=tuple(events.prompts_except(tx, session.id, event_id, _PROMPTS_MAX))
        if with_prompts
        else (),
    )


def _project(tx: Connection, session: Session | None, place: SessionPlace) -> Project | None:
    if session is not None:
        return projects.project(tx, session.project_id)
    return None if place.project_key is None else projects.project_by_key(tx, place.project_key)


@dataclass(frozen=True, slots=True)
class SessionCandidates:
    """What a session may begin with, and what it may not."""

    groups: tuple[CandidateGroup, ...]
    left_out: tuple[CandidateChoice, ...]
    last: Session | None = None
    """The session that the group of the last session is about."""


def read_candidates(
    tx: Connection, here: SessionState, moment: str, now: int
) -> SessionCandidates:
    """The candidates for `startup`, `clear`, `resume` or `compact`, in groups as they are to stand."""
    groups, last = _everywhere(tx, here, now)
    if moment == "compact":
        groups = [*_lost(tx, here, now), *groups]
    since = here.last_at if moment == "resume" else None
    kept: list[CandidateGroup] = []
    left_out: list[CandidateChoice] = []
    for group in groups:
        verdicts = {card.id: _why_not(card, here, since) for card in group.cards}
        left_out += [
            CandidateChoice(card, group.name, False, why)
            for card in group.cards
            if (why := verdicts[card.id])
        ]
        allowed = tuple(card for card in group.cards if not verdicts[card.id])
        kept.append(CandidateGroup(group.name, allowed, group.leads))
    return SessionCandidates(tuple(kept), tuple(left_out), last)


def _why_not(card: ContextCandidate, here: SessionState, since: int | None) -> str | None:
    if why := here.why_seen(card.id, card.session_id, card.at):
        return why
    if since is not None and card.created_at <= since:
        return "not new since this session was left"
    return None


def _everywhere(
    tx: Connection, here: SessionState, now: int
) -> tuple[list[CandidateGroup], Session | None]:
    """The index of a project, and of what holds everywhere."""
    ids = here.project_ids
    pinned = session_context.pinned_candidates(tx, ids, now, _KIND_MAX)
    rules = [
        *(card for card in pinned if card.kind is not Kind.DECISION),
        *session_context.newest_candidates(tx, ids, Kind.INSTRUCTION, now, _KIND_MAX),
        *session_context.newest_candidates(tx, ids, Kind.PREFERENCE, now, _KIND_MAX),
    ]
    decisions = [
        *(card for card in pinned if card.kind is Kind.DECISION),
        *session_context.newest_candidates(tx, ids, Kind.DECISION, now, _KIND_MAX),
    ]
    failures = session_context.open_failures(
        tx, ids, now - _FAILURE_DAYS * DAY_MS, now, _KIND_MAX
    )
    besides = here.session.id if here.session else None
    found = (
        session_context.last_session(tx, here.project.id, besides=besides, now=now)
        if here.project
        else None
    )
    groups = [
        CandidateGroup(RULES_HEADING, _once(rules)),
        CandidateGroup(DECISIONS_HEADING, _once(decisions)),
        CandidateGroup(FAILURES_HEADING, tuple(failures)),
        CandidateGroup(LAST_SESSION_HEADING, (found[1],) if found else ()),
    ]
    return groups, found[0] if found else None


def _once(cards: Sequence[ContextCandidate]) -> tuple[ContextCandidate, ...]:
    return tuple({card.id: card for card in cards}.values())


def _lost(tx: Connection, here: SessionState, now: int) -> list[CandidateGroup]:
    """What a compaction took from the agent: its own choices, and what it had been shown."""
    if here.session is None:
        return []
    own = session_context.session_candidates(tx, here.session.id, _OWN_KINDS, now, _KIND_MAX)
    shown = session_context.candidates_by_ids(tx, list(here.injected_at)[-_KIND_MAX:], now)
    return [
        CandidateGroup(OWN_HEADING, tuple(own), leads=True),
        CandidateGroup(INJECTED_HEADING, tuple(shown), leads=True),
    ]

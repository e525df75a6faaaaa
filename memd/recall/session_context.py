"""What a session starts with: where the session stands, the candidates, and a choice within a size budget.

Candidates come in groups. Leading groups may use half of the budget before the others start. Then the group
that has used least adds its next best, so that no group fills the page while another waits, and what one
group does not need goes to the others. Within a group pinned memories come first, then the best rated: by
recency for their kind, by repetition, by use. Injections count for nothing: they would keep a memory on top.

What the agent sees already is left out with its reason: memories injected since it last lost its context, and
its own work since then. After a compaction, what was lost leads: its own decisions, rules and open failures,
and what had been injected before.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from memd.models import CLOCK_SKEW_MAX_MS, GLOBAL_PROJECT, Authority, Kind, Project, Session
from memd.store import events, projects, session_context, usage
from memd.store.database import Connection
from memd.store.types import ContextCandidate

RULES_HEADING = "Preferences, instructions, pinned"
DECISIONS_HEADING = "Decisions"
FAILURES_HEADING = "Failures without a known fix"
LAST_SESSION_HEADING = "Last session"
OWN_HEADING = "From this session, before it was compacted"
INJECTED_HEADING = "Recalled in this session, before it was compacted"
DAY_MS = 86_400_000
_CANDIDATES_MAX = 40
"""Candidates that are read of a kind and project."""
_FAILURE_DAYS_MAX = 30
"""An older failure is most likely accepted, or belongs to code that no longer exists."""
_OWN_KINDS = (Kind.DECISION, Kind.INSTRUCTION, Kind.PREFERENCE, Kind.FAILURE)
_PROMPTS_MAX = 50
_HALF_LIFE_DAYS = {
    Kind.INSTRUCTION: 365.0,
    Kind.PREFERENCE: 365.0,
    Kind.DECISION: 120.0,
    Kind.FAILURE: 7.0,
}
_HALF_LIFE_DAYS_OTHERS = 30.0
_REPEATS_WEIGHT = 0.15
_USES_WEIGHT = 0.1
_LEADING_SHARE = 0.5


# ── Where a session stands ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """Which session it is, as its client names it, and in which project. Without a session: any new one."""

    client: str = ""
    session: str | None = None
    project_key: str | None = None
    """The project, if the vault does not know the session; None: no project."""
    project_name: str = ""


@dataclass(frozen=True, slots=True)
class SessionState:
    """What is known of a session before anything is searched for. Times are UTC milliseconds."""

    session: Session | None
    project_ids: tuple[int, ...]
    """Its project, if it is known, and `global`."""
    project: Project | None
    name: str
    """The name of the project."""
    switch: projects.Switch
    last_at: int | None = None
    """The last event before this one."""
    context_lost_at: int | None = None
    """When the agent last lost its context."""
    injected_at: Mapping[int, int] = field(default_factory=dict)
    """Summary id → when it was last injected."""
    prompts: tuple[str, ...] = ()
    """The session's earlier prompts, latest first."""

    def why_seen(self, summary_id: int, session_id: int | None, at: int) -> str | None:
        """Why the agent sees a memory already; None if it does not."""
        since = self.context_lost_at or 0
        if self.injected_at.get(summary_id, -1) >= since:
            return "shown to this session already"
        is_own = session_id is not None and self.session and session_id == self.session.id
        # The turn that was compacted may have lasted until that very moment.
        return "from this very session" if is_own and at > since else None


def read_session_state(
    tx: Connection, place: SessionPlace, event_id: int | None, *, with_prompts: bool
) -> SessionState:
    """Read where a session stands; `event_id` is the event that asks, which does not count."""
    session, project = None, None
    if place.session is not None:
        session = projects.session_of_client(tx, place.client, place.session)
    if session is not None:
        key = None if event_id is None else events.project_key_elsewhere(tx, event_id)
        moved_to = None if key is None else projects.project_by_key(tx, key)
        project = moved_to or projects.project(tx, session.project_id)
    elif place.project_key is not None:
        project = projects.project_by_key(tx, place.project_key)
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


# ── The candidates ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class CandidateGroup:
    """Candidates under one heading."""

    name: str
    candidates: tuple[ContextCandidate, ...]
    leads: bool = False


@dataclass(frozen=True, slots=True)
class CandidateChoice:
    """One candidate, whether it is shown, and in words why."""

    candidate: ContextCandidate
    group: str
    is_shown: bool
    why: str


@dataclass(frozen=True, slots=True)
class SessionCandidates:
    """What a session may start with, and what it may not."""

    groups: tuple[CandidateGroup, ...]
    left_out: tuple[CandidateChoice, ...]
    last: Session | None = None
    """The session that the group of the last session is about."""


def read_candidates(tx: Connection, here: SessionState, moment: str, now: int) -> SessionCandidates:
    """The candidates for `startup`, `clear`, `resume` or `compact`, in groups in their order."""
    groups, last = _read_project_groups(tx, here, now)
    if moment == "compact":
        groups = [*_read_lost_groups(tx, here, now), *groups]
    since = here.last_at if moment == "resume" else None
    allowed: list[CandidateGroup] = []
    left_out: list[CandidateChoice] = []
    for group in groups:
        new = []
        for one in group.candidates:
            why = here.why_seen(one.id, one.session_id, one.at)
            if why is None and since is not None and one.created_at <= since:
                why = "not new since this session was left"
            if why is None:
                new.append(one)
            else:
                left_out.append(CandidateChoice(one, group.name, False, why))
        allowed.append(CandidateGroup(group.name, tuple(new), group.leads))
    return SessionCandidates(tuple(allowed), tuple(left_out), last)


def _read_project_groups(
    tx: Connection, here: SessionState, now: int
) -> tuple[list[CandidateGroup], Session | None]:
    """The groups of a project and of `global`, and the session that was last before this one."""
    ids = here.project_ids

    def read_newest(kind: Kind) -> list[ContextCandidate]:
        return session_context.newest_candidates(tx, ids, kind, now, _CANDIDATES_MAX)

    pinned = session_context.pinned_candidates(tx, ids, now, _CANDIDATES_MAX)
    rules = [one for one in pinned if one.kind is not Kind.DECISION]
    rules += read_newest(Kind.INSTRUCTION) + read_newest(Kind.PREFERENCE)
    decisions = [one for one in pinned if one.kind is Kind.DECISION]
    decisions += read_newest(Kind.DECISION)
    since = now - _FAILURE_DAYS_MAX * DAY_MS
    failures = session_context.open_failures(tx, ids, since, now, _CANDIDATES_MAX)
    last = None
    if here.project:
        besides = here.session.id if here.session else None
        last = session_context.last_session(tx, here.project.id, besides=besides, now=now)
    groups = [
        CandidateGroup(RULES_HEADING, tuple({one.id: one for one in rules}.values())),
        CandidateGroup(DECISIONS_HEADING, tuple({one.id: one for one in decisions}.values())),
        CandidateGroup(FAILURES_HEADING, tuple(failures)),
        CandidateGroup(LAST_SESSION_HEADING, (last[1],) if last else ()),
    ]
    return groups, last[0] if last else None


def _read_lost_groups(tx: Connection, here: SessionState, now: int) -> list[CandidateGroup]:
    """What a compaction took from the agent: its own choices, and what had been injected."""
    if here.session is None:
        return []
    own = session_context.session_candidates(tx, here.session.id, _OWN_KINDS, now, _CANDIDATES_MAX)
    injected = session_context.candidates_by_ids(tx, list(here.injected_at)[-_CANDIDATES_MAX:], now)
    return [
        CandidateGroup(OWN_HEADING, tuple(own), leads=True),
        CandidateGroup(INJECTED_HEADING, tuple(injected), leads=True),
    ]


# ── The choice ───────────────────────────────────────────────────────────────────────────────────


CandidateCost = Callable[[ContextCandidate], int]
HeadingCost = Callable[[str], int]


@dataclass(slots=True)
class _GroupQueue:
    """A group while its candidates are chosen."""

    group: CandidateGroup
    waiting: list[ContextCandidate] = field(default_factory=list)
    chosen: list[ContextCandidate] = field(default_factory=list)
    repeated: list[tuple[ContextCandidate, str]] = field(default_factory=list)
    """Candidates that say what another one says, and why they are left out."""
    used: int = 0


def choose_candidates(
    groups: Sequence[CandidateGroup],
    budget: int,
    now: int,
    cost: CandidateCost,
    heading_cost: HeadingCost,
) -> list[CandidateChoice]:
    """A verdict for every candidate, by group, best first.

    `cost` and `heading_cost` measure a candidate's line and a group's heading in the unit of `budget`.
    A candidate of two groups belongs to the first.
    """
    queues = _queue_candidates(groups, now)
    leading = [queue for queue in queues if queue.group.leads]
    left = budget
    if leading:
        share = int(budget * _LEADING_SHARE)
        left = budget - share + _fill_budget(leading, share, cost, heading_cost)
    _fill_budget(queues, left, cost, heading_cost)
    choices: list[CandidateChoice] = []
    for queue in queues:
        name = queue.group.name
        choices += [CandidateChoice(c, name, True, _explain_choice(c, now)) for c in queue.chosen]
        choices += [CandidateChoice(c, name, False, "no room left") for c in queue.waiting]
        choices += [CandidateChoice(c, name, False, why) for c, why in queue.repeated]
    return choices


def _queue_candidates(groups: Sequence[CandidateGroup], now: int) -> list[_GroupQueue]:
    """Each group's candidates in order, once each."""
    queues: list[_GroupQueue] = []
    ids: set[int] = set()
    titles: dict[tuple[Kind, str], int] = {}
    greatest: dict[tuple[Kind, str], Authority] = {}
    for one in (one for group in groups for one in group.candidates):
        title = _title_key(one)
        greatest[title] = max(one.authority, greatest.get(title, one.authority))
    for group in groups:
        queue = _GroupQueue(group)
        queues.append(queue)
        for one in sorted(
            group.candidates, key=lambda c: (not c.is_pinned, -rate_candidate(c, now), -c.at, -c.id)
        ):
            if one.id in ids:
                continue
            ids.add(one.id)
            title = _title_key(one)
            if one.authority < greatest[title]:
                queue.repeated.append((one, "a greater speaker says the same"))
                continue
            if title in titles:
                queue.repeated.append((one, f"says the same as #{titles[title]}"))
                continue
            titles[title] = one.id
            queue.waiting.append(one)
    return queues


def _title_key(candidate: ContextCandidate) -> tuple[Kind, str]:
    """Equal for memories of one kind that say the same in a list."""
    return candidate.kind, " ".join(candidate.title.lower().split()).rstrip(".!… ")


def _fill_budget(
    queues: Sequence[_GroupQueue], budget: int, cost: CandidateCost, heading_cost: HeadingCost
) -> int:
    """Choose what fits; return the budget that is left."""
    open_queues = [queue for queue in queues if queue.waiting]
    while open_queues:
        queue = min(open_queues, key=lambda one: one.used)
        price = cost(queue.waiting[0]) + (0 if queue.chosen else heading_cost(queue.group.name))
        fits = price <= budget
        if fits:
            queue.chosen.append(queue.waiting.pop(0))
            queue.used += price
            budget -= price
        if not (fits and queue.waiting):
            open_queues = [one for one in open_queues if one is not queue]
    return budget


def rate_candidate(candidate: ContextCandidate, now: int) -> float:
    """Rate a candidate within its group; recency is 1 now and ½ after a half-life."""
    half_life_days = _HALF_LIFE_DAYS.get(candidate.kind, _HALF_LIFE_DAYS_OTHERS)
    return float(
        0.5 ** (_measure_age(candidate, now) / DAY_MS / half_life_days)
        + _REPEATS_WEIGHT * math.log2(1 + max(candidate.repeats, 0))
        + _USES_WEIGHT * math.log2(1 + candidate.uses)
    )


def _measure_age(candidate: ContextCandidate, now: int) -> int:
    """In ms. A memory dated far ahead is as old as it lies ahead: else it would lead for years."""
    elapsed = now - candidate.at
    return -elapsed if elapsed <= -CLOCK_SKEW_MAX_MS else max(elapsed, 0)


def _explain_choice(candidate: ContextCandidate, now: int) -> str:
    days = _measure_age(candidate, now) // DAY_MS
    parts = ["pinned"] if candidate.is_pinned else []
    parts.append("today" if days == 0 else f"{days} d old")
    if candidate.repeats > 0:
        parts.append(f"said again {candidate.repeats}×")
    if candidate.uses:
        parts.append(f"asked for {candidate.uses}×")
    return ", ".join(parts)

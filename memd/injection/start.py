"""The context of a session's start: where the session stands, and the candidates in groups.

The groups are what stands (rules, decisions, facts, open tasks) and the work that was left open or done last;
`choice.py` chooses among them. Little stands in a project, and nobody can tell beforehand which of it a session will
want: so all of it is told if there is room. Only tasks that nobody noted go by age, and what was distilled from a
turn has to mean something without that turn (`lines.py`).

What the agent sees already is left out with its reason: memories injected since it last lost its context, and
its own work since then. After a compaction and at a resume its own leads: what its user said, its rules and decisions,
and what it left open; after a compaction also what had been injected before.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, filterfalse
from typing import Literal

from memd.belief.changes import StandingStatement, find_corrections, find_outdated
from memd.belief.standing import describe_contradiction, find_other_scope, is_later_word
from memd.belief.values import describe_line, find_line, read_set_values
from memd.distill.proof.reopening import leave_passed
from memd.distill.proving import find_upheld
from memd.injection import lines, spoken
from memd.injection.choice import (
    DAY_MS,
    CandidateChoice,
    CandidateGroup,
    is_his_statement,
    tell_heard,
)
from memd.injection.later import read_later_words
from memd.injection.learned import SAID_MAX, SaidSentence
from memd.injection.moments import STARTS
from memd.injection.since import STANDING_KINDS, drop_undone, find_twin, is_followed, tell_since
from memd.injection.working_tree import NO_GUIDES, Guides
from memd.models import GLOBAL_PROJECT, RULE_KINDS, Authority, Kind, Project, Session, Summary
from memd.store import (
    ContextCandidate,
    MemoryStanding,
    events,
    judgments,
    projects,
    session_context,
    usage,
)
from memd.store.database import Connection
from memd.text import unique

RULES_HEADING = "Rules"
_WORK_KINDS = (Kind.CHANGE, Kind.FIX, Kind.DISCOVERY, Kind.FAILURE)
"""Of what is pinned, these are no rules: they are told as known."""
DECISIONS_HEADING = "Decisions"
FACTS_HEADING = "Known"
TASKS_HEADING = "Open tasks"
QUOTED_HEADING = "Said by the user, noted by an agent in words that do not surely say it"
UNPROVED_HEADING = "Claimed by an agent, not proved to be the user's word"
_NOT_PROVED = (QUOTED_HEADING, UNPROVED_HEADING)
WORK_HEADING = "Left open or done last"
DONE_HEADING = "Done before that"
OWN_HEADING = "From this session"
OPEN_HEADING = "Left open in this session"
INJECTED_HEADING = "Recalled in this session, before it was compacted"
_CANDIDATES_MAX = 200
"""Candidates that are read of a kind and project."""
_WORK_MAX = 3
"""Lines of the work that was left open or done last."""
_WENT_ON = "its session, or others since, went on from it"
_DONE_MAX = 7
"""Short lines of the work before it, where little was noted. Of 238 things wanted at starts, weights fitted without the person, 50 %
are told with them and 42 % with sentences said lately in their place."""
_JUDGED_KINDS = (*RULE_KINDS, Kind.DECISION, Kind.FACT)
"""What supersedes one of these by a judgment is told in its place, of whatever kind it is itself."""
_KNOWN_KINDS = (Kind.NOTE, Kind.DISCOVERY, Kind.FIX)
"""What stands beside facts if somebody asked to remember it."""
_SESSIONS_READ_MAX, _OUTCOMES_READ_MAX = 5, 12
"""Sessions whose statements are fresh, and outcomes of each among which to choose."""
_FAILURE_DAYS_MAX = 30
"""An older failure is most likely accepted, or belongs to code that no longer exists."""
_OWN_KINDS = (Kind.INSTRUCTION, Kind.PREFERENCE, Kind.DECISION)
_OPEN_KINDS = (Kind.TASK, Kind.FAILURE)
OWN_SAID_MAX = 8
"""Sentences of the user's in this very session that it is told again."""
_PROMPTS_MAX = 50
_CAVEATS_MAX = 3
"""Memories that say otherwise which are named with one."""


# ── Where a session stands ───────────────────────────────────────────────────────────────────────


Seen = Literal["all", "later", "nothing"]
"""How much of what a session was told counts: of a fix not the start, which does not say which error it fixed; of a subagent
nothing, because it has seen nothing of it."""


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """The session, as its client names it, and its project. Without a session: any new one."""

    client: str = ""
    session: str | None = None
    project_key: str | None = None
    """The project, if the vault does not know the session; None: no project."""
    project_name: str = ""


@dataclass(frozen=True, slots=True)
class SessionState:
    """Facts on a session before anything is searched for. Times are UTC milliseconds."""

    session: Session | None
    project_ids: tuple[int, ...]
    """Its project, if it is known, and `global`."""
    project: Project | None
    name: str
    """The name of the project."""
    switch: projects.EffectiveSwitch
    last_at: int | None = None
    """The last event before this one."""
    begun_at: int | None = None
    """When it last began or went on, before this event."""
    context_lost_at: int | None = None
    """When the agent last lost its context."""
    injected_at: Mapping[int, tuple[int, str]] = field(default_factory=dict)
    """Summary id → when it was last injected, and at which moment."""
    prompts: tuple[str, ...] = ()
    """The session's earlier prompts, latest first."""
    branch: str | None = None
    """The git branch that is checked out in its directory; None if unknown."""

    @property
    def seen_at(self) -> frozenset[str]:
        """The moments at which it was shown something that it still sees."""
        since = self.context_lost_at or 0
        return frozenset(moment for at, moment in self.injected_at.values() if at >= since)

    def why_elsewhere(self, tags: Iterable[str], session_id: int | None) -> str | None:
        """Return why what was said for one session or branch does not hold in this session; None if it may."""
        own = self.session.id if self.session else None
        return find_other_scope(tags, session_id, own, self.branch)

    def why_seen(
        self, summary_id: int, session_id: int | None, at: int, seen: Seen = "all"
    ) -> str | None:
        """Return why the agent sees a memory already; None if it does not."""
        if seen == "nothing":
            return None
        since = self.context_lost_at or 0
        shown_at, moment = self.injected_at.get(summary_id, (-1, ""))
        if shown_at >= since and not (seen == "later" and moment in STARTS):
            return "shown to this session already"
        is_own = session_id is not None and self.session and session_id == self.session.id
        # The turn that was compacted may have lasted until that very moment.
        return "from this very session" if is_own and at > since else None


def read_session_state(
    tx: Connection, place: SessionPlace, event_id: int | None, *, with_prompts: bool
) -> SessionState:
    """Read where a session stands; `event_id` is the event that asks, which does not count."""
    here = read_session_place(tx, place, event_id)
    session = here.session
    if session is None:
        return here
    return replace(
        here,
        last_at=events.last_time_except(tx, session.id, event_id),
        begun_at=events.last_start_except(tx, session.id, event_id),
        context_lost_at=events.last_context_loss(tx, session.id),
        injected_at=usage.last_injected(tx, session.id),
        prompts=tuple(events.prompts_except(tx, session.id, event_id, _PROMPTS_MAX))
        if with_prompts
        else (),
    )


def read_session_place(tx: Connection, place: SessionPlace, event_id: int | None) -> SessionState:
    """Read which session and projects those are, and their switch, without what the session was shown so far."""
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
    return SessionState(session, ids, project, name, switch)


# ── The candidates ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SessionCandidates:
    """The memories that a session may start with, and those that it may not."""

    groups: tuple[CandidateGroup, ...]
    left_out: tuple[CandidateChoice, ...]
    prompts: tuple[SaidSentence, ...] | None = None
    """The prompts among which `said` was chosen; None if that was not wanted."""
    said: tuple[SaidSentence, ...] = ()
    """What the user said lately, best first; the less the more was noted."""
    own: tuple[SaidSentence, ...] = ()
    """What the user said in this very session, best first."""


def read_candidates(
    tx: Connection, here: SessionState, moment: str, now: int, guides: Guides = NO_GUIDES
) -> SessionCandidates:
    """The candidates for `startup`, `clear`, `resume` or `compact`, in groups in their order."""
    groups, unfit = _read_project_groups(tx, here, now)
    if moment in ("compact", "resume"):
        groups = [*_read_own_groups(tx, here, moment, now), *groups]
    since = here.last_at if moment == "resume" else None
    groups, outdated = _read_caveats(tx, here, groups, now)

    def find_objection(one: ContextCandidate, group: CandidateGroup) -> str | None:
        why = outdated.get(one.id) or here.why_seen(
            one.id, None if group.leads else one.session_id, one.at
        )
        if why is None and not group.leads:
            if since is not None and one.created_at <= since:
                return "not new since this session was left"
            elsewhere = None if one.is_pinned else here.why_elsewhere(one.tags, one.session_id)
            why = unfit.get(one.id) or elsewhere
        return why

    allowed, left_out = _split_allowed(groups, find_objection, guides)
    # A start that is told in two parts, or again, has told them.
    is_first = moment != "resume" and here.seen_at.isdisjoint(STARTS)
    room = max(0, _count_said(allowed)) if is_first else 0
    allowed = tuple(_limit_done(group, room) for group in allowed)
    prompts = read_late_prompts(tx, here, now) if is_first else None
    late = _choose_said(tx, here, allowed, left_out, prompts, now) if prompts and room else ()
    own = _read_own_words(tx, here, allowed, moment, now) if moment in ("compact", "resume") else ()
    late, own = (tuple(one for one in some if not guides.say(one.text)) for some in (late, own))
    said = read_later_words(prompts or ())
    if is_first and here.project:
        allowed = tell_since(tx, here.project.id, said, allowed, now)
        late = spoken.follow_later(tx, late, said, here.project.id)[:room]
    allowed = tuple(
        lines.drop_spoken(drop_undone(tx, one, said), late)
        if one.name in (WORK_HEADING, DONE_HEADING)
        else one
        for one in allowed
    )
    return SessionCandidates(allowed, left_out, prompts, late, own)


def _limit_done(group: CandidateGroup, room: int) -> CandidateGroup:
    """Limit the earlier work to as many lines as what was noted leaves."""
    return replace(group, limit=min(_DONE_MAX, room)) if group.name == DONE_HEADING else group


def read_version(tx: Connection, here: SessionState) -> tuple[object, ...]:
    """Read what changes with anything in the vault that the start of a new session here may tell, but for prompts."""
    besides = here.session.id if here.session else None
    return session_context.read_version(tx, here.project_ids, besides)


def read_evidence(
    tx: Connection, here: SessionState, group: CandidateGroup, now: int, guides: Guides, seen: Seen
) -> SessionCandidates:
    """Return what of a group that was found for a moment may be shown: what no later or greater authority contradicts."""
    groups, outdated = _read_caveats(tx, here, [group], now)

    def find_objection(one: ContextCandidate, _: CandidateGroup) -> str | None:
        if why := outdated.get(one.id):
            return why
        if one.overruled_by:
            return f"#{one.overruled_by[0]} says otherwise"
        why = here.why_seen(one.id, one.session_id, one.at, seen)
        return why or (None if one.is_pinned else here.why_elsewhere(one.tags, one.session_id))

    allowed, left_out = _split_allowed(groups, find_objection, guides)
    return SessionCandidates(allowed, left_out)


def read_rules(tx: Connection, here: SessionState, now: int) -> tuple[ContextCandidate, ...]:
    """Read the rules and preferences of a project and of `global`, and other pinned memories except decisions and facts."""
    pinned = session_context.pinned_candidates(tx, here.project_ids, now, _CANDIDATES_MAX)
    standing = [
        one
        for kind in (Kind.INSTRUCTION, Kind.PREFERENCE)
        for one in session_context.standing_candidates(
            tx, here.project_ids, kind, now, _CANDIDATES_MAX
        )
    ]
    rules = [one for one in pinned if one.kind not in (Kind.DECISION, Kind.FACT, *_WORK_KINDS)]
    return _once_each((*rules, *standing))


def is_unproved(one: ContextCandidate) -> bool:
    """Return whether a rule or decision is only what an agent of this machine says: nobody proved it, and the user did not pin it."""
    is_of_team = bool(one.author)
    return one.authority < Authority.USER_TOLD and not (one.is_pinned_by_user or is_of_team)


def _vouch(tx: Connection, *groups: Iterable[ContextCandidate]) -> list[list[ContextCandidate]]:
    """Return these memories; those that the user judged to hold in words that he typed, or kept in a review, as his own."""
    found = [list(group) for group in groups]
    claimed = {one.id: one.title for one in chain(*found) if one.authority < Authority.USER_TOLD}
    upheld = find_upheld(tx, claimed)
    return [
        [replace(one, authority=upheld.get(one.id, one.authority)) for one in group]
        for group in found
    ]


_STATED = "a file that the client reads says it"


def _split_allowed(
    groups: Sequence[CandidateGroup],
    find_objection: Callable[[ContextCandidate, CandidateGroup], str | None],
    guides: Guides,
) -> tuple[tuple[CandidateGroup, ...], tuple[CandidateChoice, ...]]:
    """Split groups into (those with what may be shown, the rest by id with the reason).

    What is left out because a file says it takes along what it overrules: no lesser side is told alone.
    """
    allowed: list[CandidateGroup] = []
    left_out: list[CandidateChoice] = []
    candidates = [one for group in groups for one in group.candidates]
    greater = {number for one in candidates for number in one.overruled_by}
    stated = {one.id for one in candidates if one.id in greater and guides.say(one.title)}
    for group in groups:
        new: list[ContextCandidate] = []
        for one, refuted in map(tell_heard, group.candidates):
            why = find_objection(one, group) or refuted or None
            if why is None and (others := stated.intersection(one.overruled_by)):
                why = f"#{min(others)} says otherwise: {_STATED}"
            if why is None and guides.say(one.title):
                why = _STATED
            if why is None:
                new.append(one)
            else:
                left_out.append(CandidateChoice(one, group.name, False, why))
        allowed.append(replace(group, candidates=tuple(new)))
    return tuple(allowed), tuple(left_out)


def _list_noted(groups: Iterable[CandidateGroup]) -> list[ContextCandidate]:
    return [one for group in groups for one in group.candidates if one.episode is None]


def _list_typed(groups: Iterable[CandidateGroup]) -> list[ContextCandidate]:
    """List what the user stated that a form of words kept."""
    return [
        one
        for group in groups
        for one in group.candidates
        if one.episode is not None and is_followed(one)
    ]


def _count_said(groups: Iterable[CandidateGroup]) -> int:
    """Count how many of the user's own sentences are told: the fewer, the more was noted that is more than a claim.

    What a form of words kept tells nothing of whether the rest was noted.
    """
    return SAID_MAX - len(_list_noted(one for one in groups if one.name not in _NOT_PROVED))


def read_late_prompts(tx: Connection, here: SessionState, now: int) -> tuple[SaidSentence, ...]:
    """Read what the user typed in the project besides in this session, latest first."""
    besides = here.session.id if here.session else None
    return spoken.read_later_prompts(tx, here.project.id, besides, now) if here.project else ()


def _choose_said(
    tx: Connection,
    here: SessionState,
    groups: Sequence[CandidateGroup],
    left_out: Sequence[CandidateChoice],
    prompts: Sequence[SaidSentence],
    now: int,
) -> tuple[SaidSentence, ...]:
    """Choose the user's own likeliest sentences, best first, because there are few notes."""
    noted, typed = _list_noted(groups), _list_typed(groups)
    unfit = [one.candidate for one in left_out if one.candidate.kind in STANDING_KINDS]
    number = here.project.id if here.project else 0
    statements = _list_statements(
        one for one in (*noted, *typed) if one.authority >= Authority.USER_TOLD
    )
    # What is left out as a memory, because it is outdated or holds elsewhere, is not told as words either.
    known = [f"{one.title} {one.body}" for one in (*noted, *unfit)] + [one.title for one in typed]
    return spoken.choose_late(tx, number, prompts, known, statements, now=now)


def _read_own_words(
    tx: Connection, here: SessionState, groups: Sequence[CandidateGroup], moment: str, now: int
) -> tuple[SaidSentence, ...]:
    """Return what the user said in this very session, at a resume only since it last began: the rest was shown then."""
    if here.session is None or here.project is None:
        return ()
    leading = (one for group in groups if group.leads for one in group.candidates)
    known = [f"{one.title} {one.body}" for one in leading if one.episode is None]
    since = 0 if moment == "compact" else here.begun_at or 0
    limit = OWN_SAID_MAX if moment == "compact" else OWN_SAID_MAX // 2
    return spoken.read_own_words(
        tx, here.session.id, here.project.id, known, since=since, limit=limit, now=now
    )


def _read_project_groups(
    tx: Connection, here: SessionState, now: int
) -> tuple[list[CandidateGroup], Mapping[int, str]]:
    """The groups of a project and of `global`, and why some of their candidates are not worth a line."""
    ids = here.project_ids

    def read_standing(kind: Kind) -> list[ContextCandidate]:
        return session_context.standing_candidates(tx, ids, kind, now, _CANDIDATES_MAX)

    pinned = session_context.pinned_candidates(tx, ids, now, _CANDIDATES_MAX)
    noted = session_context.noted_candidates(tx, ids, _KNOWN_KINDS, now, _CANDIDATES_MAX)
    instead = session_context.judged_instead(tx, ids, _JUDGED_KINDS, now)
    decisions = [one for one in (*pinned, *instead) if one.kind is Kind.DECISION]
    decisions += read_standing(Kind.DECISION)
    known = [one for one in pinned if one.kind in _WORK_KINDS]
    known += [one for one in instead if one.kind is Kind.FACT] + read_standing(Kind.FACT) + noted
    since = now - _FAILURE_DAYS_MAX * DAY_MS
    failures = session_context.open_failures(tx, ids, since, now, _CANDIDATES_MAX)
    outcomes = _read_outcomes(tx, here, now)
    rules = [*(one for one in instead if one.kind in RULE_KINDS), *read_rules(tx, here, now)]
    rules, decisions, known = _vouch(tx, rules, decisions, known)
    told = {one.id for one in instead}
    outcomes = tuple(one for one in outcomes if one.id not in told)
    stood = lines.drop_turned(outcomes, (*rules, *decisions, *known))
    work = _once_each(
        (*failures, *_drop_passed(tx, here, lines.gather_open(lines.drop_done(stood))))
    )
    decided = _once_each(decisions)
    unproved = tuple(filter(is_unproved, (*rules, *decided)))
    groups = [
        CandidateGroup(RULES_HEADING, tuple(filterfalse(is_unproved, rules)), stands=True),
        CandidateGroup(DECISIONS_HEADING, tuple(filterfalse(is_unproved, decided)), stands=True),
        CandidateGroup(QUOTED_HEADING, tuple(filter(is_his_statement, unproved)), stands=True),
        CandidateGroup(FACTS_HEADING, _once_each(known), stands=True),
        CandidateGroup(TASKS_HEADING, tuple(read_standing(Kind.TASK)), stands=True),
        CandidateGroup(
            UNPROVED_HEADING, tuple(filterfalse(is_his_statement, unproved)), stands=True
        ),
        CandidateGroup(WORK_HEADING, work, is_by_time=True, limit=_WORK_MAX),
    ]
    bodies = session_context.turn_bodies(tx, [one.id for one in failures])
    own = here.session.id if here.session else None
    unfit, earlier = lines.find_unfit(groups, bodies, now, own)
    left = replace(groups[-1], candidates=tuple(one for one in work if one.id not in earlier))
    before = tuple(one for one in work if one.id in earlier)
    done = CandidateGroup(DONE_HEADING, before, is_by_time=True, is_brief=True)
    # Work that stands under another heading and went on is not told there either.
    unfit |= dict.fromkeys(earlier.difference(one.id for one in before), _WENT_ON)
    return [*groups[:-1], left, done], unfit


def _drop_passed(
    tx: Connection, here: SessionState, outcomes: Sequence[ContextCandidate]
) -> list[ContextCandidate]:
    """Drop from what each piece of work left open the checks that passed later."""
    return [
        replace(one, left_open=leave_passed(tx, one.left_open, here.project_ids, one.at))
        if one.left_open
        else one
        for one in outcomes
    ]


def _overrules(other: MemoryStanding, one: MemoryStanding) -> bool:
    """Return whether a memory that contradicts another is the greater word, and not an earlier one of the user's."""
    return other.rank > one.rank and not is_later_word(one, other)


def _read_caveats(
    tx: Connection, here: SessionState, groups: Sequence[CandidateGroup], now: int
) -> tuple[list[CandidateGroup], Mapping[int, str]]:
    """Return the groups with the objections to each candidate, and why some state nothing that holds.

    Of a contradiction both sides are there: the greater one is read for a lesser one that is.
    """
    candidates = {one.id: one for group in groups for one in group.candidates}
    ids = list(candidates)
    values = [one for one in read_set_values(tx, ids).replaced if one.is_replaced]
    # What is pinned stays, and what contradicts each other is told together.
    free = [one for one in candidates.values() if not (one.is_pinned or one.contradicted_by)]
    outdated = find_outdated_cards(free) | {one.older_id: str(one) for one in values if one.is_only}
    gone = [one for one in candidates.values() if one.id in outdated]
    outdated |= {
        one.id: outdated[note.id] for one in candidates.values() if (note := find_twin(one, gone))
    }
    corrected = find_corrections(_list_statements(candidates.values()))
    against = judgments.visible_contradictions(tx, ids, here.project_ids)
    standings = judgments.standings_of(tx, {*against, *chain.from_iterable(against.values())})
    greater = {
        other: one
        for one, others in against.items()
        for other in others
        if standings[other].rank > standings[one].rank and other not in candidates
    }
    brought = {
        one.id: one
        for one in session_context.candidates_by_ids(tx, list(greater), now)
        if one.project_id in here.project_ids
    }
    against |= judgments.visible_contradictions(tx, list(brought), here.project_ids)
    standings |= judgments.standings_of(tx, {*brought, *chain.from_iterable(against.values())})

    replaced = {one.older_id for one in values}

    def add_caveat(one: ContextCandidate) -> ContextCandidate:
        has_line = find_line(one.body) is not None
        later = corrected.get(one.id)
        is_corrected = later is not None and later not in outdated
        if one.id not in against and one.id not in replaced and not has_line and not is_corrected:
            return one  # as nearly all
        said = [str(value) for value in values if value.older_id == one.id]
        if has_line and (place := projects.project(tx, one.project_id)):
            said.append(describe_line(one.body, place.key))
        said += [f"see #{later}"] if is_corrected and later not in against.get(one.id, ()) else []
        said += [
            describe_contradiction(standings[one.id], standings[other])
            for other in sorted(against.get(one.id, ()), key=lambda n: standings[n].rank)[
                -_CAVEATS_MAX:
            ]
        ]
        others = (standings[other] for other in against.get(one.id, ()))
        overruled = tuple(other.id for other in others if _overrules(other, standings[one.id]))
        return replace(one, caveat="; ".join(filter(None, unique(said))), overruled_by=overruled)

    def complete(group: CandidateGroup) -> CandidateGroup:
        own = {one.id for one in group.candidates}
        added = [
            brought[other] for other, one in greater.items() if one in own and other in brought
        ]
        return replace(group, candidates=tuple(map(add_caveat, (*group.candidates, *added))))

    return [complete(group) for group in groups], outdated


def find_outdated_cards(memories: Iterable[ContextCandidate | Summary]) -> dict[int, str]:
    """Find the memories that a later one of these outdates: id → reason."""
    found = find_outdated(_list_statements(memories))
    return {older: f"#{later} says what holds of it since" for older, later in found.items()}


def _list_statements(memories: Iterable[ContextCandidate | Summary]) -> list[StandingStatement]:
    return [
        StandingStatement(one.id, one.project_id, one.title, one.at, one.authority, one.tags)
        for one in memories
        if one.kind in STANDING_KINDS
    ]


def _once_each(candidates: Iterable[ContextCandidate]) -> tuple[ContextCandidate, ...]:
    return tuple({one.id: one for one in candidates}.values())


def _read_outcomes(tx: Connection, here: SessionState, now: int) -> tuple[ContextCandidate, ...]:
    if here.project is None:
        return ()
    besides = here.session.id if here.session else None
    return tuple(
        session_context.last_outcomes(
            tx,
            here.project.id,
            besides=besides,
            sessions=_SESSIONS_READ_MAX,
            each=_OUTCOMES_READ_MAX,
            now=now,
        )
    )


def _read_own_groups(
    tx: Connection, here: SessionState, moment: str, now: int
) -> list[CandidateGroup]:
    """Read this session's own decisions and open work; after a compaction also what had been injected and was lost."""
    if here.session is None:
        return []
    number = here.session.id
    own = session_context.session_candidates(tx, number, _OWN_KINDS, now, _CANDIDATES_MAX)
    left = session_context.session_candidates(tx, number, _OPEN_KINDS, now, _CANDIDATES_MAX)
    groups = [
        CandidateGroup(OWN_HEADING, tuple(own), leads=True),
        CandidateGroup(OPEN_HEADING, tuple(left), leads=True),
    ]
    if moment == "compact":
        ids = list(here.injected_at)[-_CANDIDATES_MAX:]
        injected = session_context.candidates_by_ids(tx, ids, now)
        groups.append(CandidateGroup(INJECTED_HEADING, tuple(injected), leads=True))
    return groups

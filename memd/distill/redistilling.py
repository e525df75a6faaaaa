"""Distil a session again by today's rules: which old memory is which new one, what stays, and the writing.

A memory keeps its id, and with it its judgments, uses and supersessions, where today's rules say the same of the
same turn, in whatever slot. What a person pinned or judged, and what a model wrote, stays word for word. What
the rules no longer say is deleted, unless an earlier version asserted it, which is marked and shown after others, a question was answered with it, it was said elsewhere, too, or its
events are not all there: then nobody can say what the rules would make of them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from memd.belief.claims import statement_text
from memd.belief.compare import compare
from memd.belief.decide import VALUE_KINDS
from memd.distill.distiller import DueBatch, DueRequest, read_context
from memd.distill.edits import text_at
from memd.distill.episodes import Episode, find_sender, slot_uid, split_episodes, uid_beside
from memd.distill.pieces import join_all
from memd.distill.transaction import EpisodePlan, delete_summaries, write_episode
from memd.models import Authority, Draft, EventKind, Kind, Session, Summary
from memd.store import events, judgments, ledger, links, projects, summaries, usage
from memd.store.database import Connection
from memd.text import content_stems

RULES_VERSION = 31
"""The rules that make memories of events. It grows with every release in which they change."""
SESSION_EVENTS_MAX = 20_000
"""A session with more events is left as it is."""
_FORGOTTEN_SLOTS = (
    "turn", "session", "fix", "failure", "decision", "instruction", "preference", "fact", "task", "note",
    "retraction", "standing",
)  # fmt: skip
_FORGOTTEN_NUMBERS = 20
_WHOLE_TURN_SLOTS = ("turn", "session")
"""Slots that hold the same memory whatever it says."""
_SAME_PLACE, _SAME_TEXT, _SAME_STATEMENT, _SAME_SOURCE = 8, 6, 4, 2
_STATEMENT_KINDS = VALUE_KINDS | {Kind.TASK}
_ASSERTED_KINDS = _STATEMENT_KINDS | {Kind.INSTRUCTION, Kind.PREFERENCE}
ASSERTED_EARLIER = "an earlier version asserted it"
"""Why something is kept, marked and shown after others."""
_SIMILAR_JACCARD = 0.5
"""Jaccard of the stems of two titles from the same event from which they are the same memory."""

Change = Literal["created", "revised", "deleted", "kept"]


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """What happens to one memory when its session is distilled again."""

    change: Change
    id: int
    kind: str
    title: str
    was: str = ""
    """The former title of a revised one; why one is kept that the rules no longer say."""


@dataclass(frozen=True, slots=True)
class SessionDue:
    """A session as it is read to be distilled again."""

    batch: DueBatch
    """The episodes whose events are all there."""
    state: tuple[int, int]
    """Another one once any of its events has come or gone."""
    old: tuple[Summary, ...]
    """What was made of these episodes, and of turns that are no longer episodes."""
    sources: Mapping[int, frozenset[int]]
    """Memory → the events that it derives from."""
    gone: frozenset[int]
    """Memories of which an event is gone, or only a part of it is left."""


@dataclass(frozen=True, slots=True)
class SessionRewrite:
    """What to write for a session."""

    session: Session
    state: tuple[int, int]
    plans: tuple[EpisodePlan, ...]
    matches: Mapping[tuple[str, str], int]
    """(episode, slot) → the memory that it is already."""
    old: frozenset[int]
    """The memories that were read."""
    gone: frozenset[int]
    """Memories of which an event is gone, or only a part of it is left."""
    orphans: tuple[int, ...]
    """Memories of turns that are no longer episodes and that nothing continues."""


class SessionChanged(Exception):
    """Events have come or gone since the session was read."""


# ── Reading ──────────────────────────────────────────────────────────────────────────────────────


def read_session(tx: Connection, session: Session, request: DueRequest) -> SessionDue | None:
    """Read a session whole; None if it is too long, or nothing in it can be distilled again."""
    state = events.events_state(tx, session.id)
    if not 0 < state[0] <= SESSION_EVENTS_MAX:
        return None
    found = events.session_events(tx, session.id, -1, SESSION_EVENTS_MAX)
    episodes = split_episodes(found, request.now, request.idle_ms)
    partial = events.compacted_ids(tx, session.id) | events.pending_ids(tx, session.id)
    forgotten = _find_forgotten(tx, session, episodes)
    whole = [
        one
        for one in episodes
        if one.key not in forgotten and not any(event.id in partial for event in one.events)
    ]
    left = {one.key for one in episodes} - {one.key for one in whole}
    whole = join_all(found, whole)
    known = [s for s in summaries.captured_summaries(tx, session.id) if s.episode not in left]
    sources = {s.id: frozenset(event for event, _ in links.sources_of(tx, s.id)) for s in known}
    # An event that was forgotten took its edge along.
    gone = {number for number, found in sources.items() if not found or found & partial}
    prompted = {
        e.key
        for e in episodes
        if any(v.kind is EventKind.PROMPT or find_sender(v) for v in e.events)
    }
    gone.update(s.id for s in known if _is_turn(session, s) and s.episode not in prompted)
    context = read_context(tx, session, whole, request)
    shown = any(text_at(e.payload, "tool_input", "file_path") for ep in whole for e in ep.events)
    files = tuple(links.files_of_session(tx, session.id)) if shown else ()
    batch = DueBatch(session, tuple(whole), context, frozenset(), (), files)
    return SessionDue(batch, state, tuple(known), sources, frozenset(gone)) if whole else None


def _is_turn(session: Session, one: Summary) -> bool:
    """Whether this is the memory of a whole turn, which nothing yields without a prompt."""
    return one.uid == slot_uid(session, one.episode or "", "turn")


def _find_forgotten(
    tx: Connection, session: Session, episodes: Sequence[Episode]
) -> frozenset[str]:
    """The episodes of which a memory was forgotten: in another slot it would come back."""
    if not ledger.has_forgotten(tx):
        return frozenset()
    slots = [
        f"{name}/{number}" for name in _FORGOTTEN_SLOTS for number in range(_FORGOTTEN_NUMBERS)
    ]
    return frozenset(
        one.key
        for one in episodes
        if any(
            ledger.is_forgotten(tx, slot_uid(session, one.key, slot))
            for slot in (*_FORGOTTEN_SLOTS, *slots)
        )
    )


# ── Matching (pure) ──────────────────────────────────────────────────────────────────────────────


def plan_rewrite(due: SessionDue, plans: Sequence[EpisodePlan]) -> SessionRewrite:
    """Find which old memory is which draft. Each is matched once, the surest matches first."""
    present = {plan.episode for plan in plans}
    session = due.batch.session
    rated = sorted(
        (-score, old.id, (plan.episode, draft.slot))
        for plan in plans
        for draft in plan.drafts
        for old in due.old
        if old.episode == plan.episode or old.episode not in present
        if (score := _rate_match(old, draft, plan.episode, session, due.sources[old.id]))
    )
    matches: dict[tuple[str, str], int] = {}
    taken: set[int] = set()
    for _, number, place in rated:
        if number not in taken and place not in matches:
            matches[place] = number
            taken.add(number)
    orphans = (s.id for s in due.old if s.id not in taken and s.episode not in present)
    read = frozenset(one.id for one in due.old)
    return SessionRewrite(session, due.state, tuple(plans), matches, read, due.gone, tuple(orphans))


def _rate_match(
    old: Summary, draft: Draft, episode: str, session: Session, sources: frozenset[int]
) -> int:
    """How surely an old memory and a draft are the same one; 0 if they are not."""
    uid = slot_uid(session, episode, draft.slot)
    is_own_place = old.uid in (uid, uid_beside(uid))
    if is_own_place and draft.slot.partition("/")[0] in _WHOLE_TURN_SLOTS:
        return _SAME_PLACE + 1
    are_statements = {old.kind, draft.kind} <= _STATEMENT_KINDS
    if old.kind is not draft.kind and not are_statements:
        return 0
    score = 0
    if (old.title, old.body) == (draft.title, draft.body):
        score = _SAME_TEXT
    elif are_statements and _states_the_same(old, draft):
        score = _SAME_STATEMENT
    elif (
        old.kind is draft.kind
        and sources & {one.event_id for one in draft.sources}
        and _are_similar(old, draft)
    ):
        score = _SAME_SOURCE
    return score + is_own_place if score else 0


def _states_the_same(old: Summary, draft: Draft) -> bool:
    texts = (statement_text(one.title, one.body) for one in (old, draft))
    return compare(*texts).is_equal


def _are_similar(old: Summary, draft: Draft) -> bool:
    one, other = (frozenset(content_stems(text)) for text in (old.title, draft.title))
    return bool(one | other) and len(one & other) >= _SIMILAR_JACCARD * len(one | other)


# ── Writing ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class RewriteReport:
    """What distilling again did, or would do."""

    counts: Counter[str] = field(default_factory=Counter)
    """A change → how many memories."""
    changes: list[MemoryChange] = field(default_factory=list)

    def add(self, changes: Sequence[MemoryChange], limit: int) -> None:
        """Count these and list them, up to so many in all."""
        self.counts.update(one.change for one in changes)
        self.changes += changes[: max(0, limit - len(self.changes))]


def rewrite_episodes(
    tx: Connection, rewrite: SessionRewrite, plans: Sequence[EpisodePlan], now: int
) -> list[MemoryChange]:
    """Write some episodes of a session again. Raises SessionChanged if it is not as it was read."""
    session = _check_state(tx, rewrite)
    before = _snapshot(tx, session)
    kept: dict[int, str] = {}
    for plan in plans:
        kept |= _rewrite_episode(tx, rewrite, plan, session, now)
    return _list_changes(before, _snapshot(tx, session), kept)


def delete_orphans(tx: Connection, rewrite: SessionRewrite) -> list[MemoryChange]:
    """Delete the memories of turns that are no longer episodes, but what stays."""
    session = _check_state(tx, rewrite)
    before = _snapshot(tx, session)
    found = list(summaries.summaries_by_ids(tx, rewrite.orphans).values())
    kept = _explain_kept(tx, found, rewrite.gone)
    delete_summaries(tx, [one for one in found if one.id not in kept])
    return _list_changes(before, _snapshot(tx, session), kept)


def _check_state(tx: Connection, rewrite: SessionRewrite) -> Session:
    session = projects.session(tx, rewrite.session.id)
    if session is None or events.events_state(tx, session.id) != rewrite.state:
        raise SessionChanged
    return session


def _rewrite_episode(
    tx: Connection, rewrite: SessionRewrite, plan: EpisodePlan, session: Session, now: int
) -> dict[int, str]:
    """Write one episode again; memory that the rules no longer say → why it is kept."""
    matched = {
        draft.slot: rewrite.matches[plan.episode, draft.slot]
        for draft in plan.drafts
        if (plan.episode, draft.slot) in rewrite.matches
    }
    there = {one.id: one for one in summaries.episode_summaries(tx, session.id, plan.episode)}
    known = {**there, **summaries.summaries_by_ids(tx, tuple(matched.values()))}
    fixed = _explain_fixed(tx, list(known.values()), rewrite.gone)
    # What stays word for word is not written again, and what the rules no longer say goes or is kept.
    drafts = tuple(d for d in plan.drafts if matched.get(d.slot) not in fixed)
    moving = {d.slot: known[matched[d.slot]] for d in drafts if matched.get(d.slot) in known}
    rest = [one for i, one in there.items() if i in rewrite.old and i not in matched.values()]
    unread = there.keys() - rewrite.old
    kept = _explain_kept(tx, rest, rewrite.gone)
    summaries.mark_earlier(tx, [i for i, why in kept.items() if why == ASSERTED_EARLIER], now)
    delete_summaries(tx, [one for one in rest if one.id not in kept])
    stays = frozenset((*kept, *fixed, *unread))
    _move_to_slots(tx, session, plan.episode, moving, stays)
    write_episode(tx, replace(plan, drafts=drafts), session, now, stays)
    return kept


def _move_to_slots(
    tx: Connection,
    session: Session,
    episode: str,
    moving: Mapping[str, Summary],
    stays: frozenset[int],
) -> None:
    """Give each memory the uid of the slot that it is in now, or the one beside what stays there."""
    known = summaries.episode_summaries(tx, session.id, episode)
    occupied = {one.uid for one in known if one.id in stays}
    targets = {}
    for slot, one in moving.items():
        uid = slot_uid(session, episode, slot)
        targets[one.id] = uid_beside(uid) if uid in occupied else uid
    changed = {
        i: uid for i, uid in targets.items() if uid not in {o.uid for o in known if o.id == i}
    }
    for number, uid in changed.items():
        # First out of the way: two may change places.
        summaries.move_summary(tx, number, uid_beside(f"{uid} {number}"), episode)
    for number, uid in changed.items():
        summaries.move_summary(tx, number, uid, episode)


def _explain_fixed(
    tx: Connection, known: Sequence[Summary], gone: frozenset[int]
) -> dict[int, str]:
    """Memory → why it stays word for word."""
    judged = judgments.judged_ids(tx, [one.id for one in known])
    reasons = {}
    for one in known:
        if one.rejected_at is not None:
            reasons[one.id] = "rejected"
        elif one.pinned_at is not None:
            reasons[one.id] = "pinned"
        elif one.id in judged:
            reasons[one.id] = "judged"
        elif one.authority is Authority.USER_HAND:
            reasons[one.id] = "by hand"
        elif one.id in gone:
            reasons[one.id] = "its events are gone"
        elif one.rule.startswith(summaries.MODEL_RULE_PREFIX):
            reasons[one.id] = "written by a model"
    return reasons


def _explain_kept(tx: Connection, stale: Sequence[Summary], gone: frozenset[int]) -> dict[int, str]:
    """Memory that the rules no longer say → why it is kept."""
    used = usage.uses_of(tx, [one.id for one in stale])
    reasons = {}
    for one in stale:
        if one.id in used:
            reasons[one.id] = "a question was answered with it"
        elif one.duplicates > 1:
            reasons[one.id] = "said elsewhere, too"
        elif one.kind in _ASSERTED_KINDS:
            reasons[one.id] = ASSERTED_EARLIER
    return {**reasons, **_explain_fixed(tx, stale, gone)}


_Snapshot = Mapping[int, Summary]


def _snapshot(tx: Connection, session: Session) -> _Snapshot:
    return {one.id: one for one in summaries.captured_summaries(tx, session.id)}


def _list_changes(
    before: _Snapshot, after: _Snapshot, kept: Mapping[int, str]
) -> list[MemoryChange]:
    found = []
    for number, one in after.items():
        was = before.get(number)
        if was is None:
            found.append(MemoryChange("created", number, one.kind, one.title))
        elif (was.kind, was.title, was.body) != (one.kind, one.title, one.body):
            found.append(MemoryChange("revised", number, one.kind, one.title, was.title))
    for number, one in before.items():
        if number not in after:
            found.append(MemoryChange("deleted", number, one.kind, one.title))
        elif number in kept:
            found.append(MemoryChange("kept", number, one.kind, one.title, kept[number]))
    return found

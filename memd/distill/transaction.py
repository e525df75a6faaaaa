"""The distill transaction: drafts, edges, superseded decisions, closed failures.

All that one episode yields is written together with the mark that its events are distilled, so a crash
repeats an episode or finds it done. Writing the same drafts again changes nothing: a row is identified by its
session, episode and slot, an edge by its ends, and a repeat by the event that repeated it.

Superseding hides a memory, so it takes three things: the new text states that it replaces something, both
are about the same subject, and what is given up is what the older one chose. Anything less is at most a
contradiction, which hides nothing.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from memd.belief import rejections, supersede
from memd.belief.authority import find_objection
from memd.belief.decide import VALUE_KINDS
from memd.belief.scopes import holds_alike
from memd.belief.settle import find_equal, find_similar, settle_changed_values
from memd.distill import reversals
from memd.distill.endings import end_done_tasks, end_earlier_choices, end_rules, find_ended_rules
from memd.distill.episodes import slot_uid, uid_beside
from memd.distill.proof.disputes import Denial
from memd.distill.proof.failures import PassedCheck
from memd.distill.proof.reopening import close_failures, dispute_fixes, settle_failures
from memd.distill.reversals import DecisionChoice, parse_choice
from memd.import_graph import FileLink
from memd.models import CLOCK_SKEW_MAX_MS, Draft, EdgeType, Kind, Session, Summary
from memd.store import events, judgments, links, projects, summaries
from memd.store.database import Connection
from memd.store.session_context import DISPUTED_LATER, PASSED_LATER

_SAME_SUBJECT_JACCARD = 0.5
"""Jaccard of the subjects' stems from which two decisions without a reversal are about the same."""
STATED_REVERSAL = "stated-reversal"
OTHER_CHOICE = "other-choice"
REPEAT = "repeat"
STATEMENT = "statement"
"""The rule of an edge between files: a statement in the one names the other."""
_REPEATABLE = frozenset({Kind.INSTRUCTION, Kind.PREFERENCE, Kind.DECISION, Kind.FACT})
_JUDGMENT_EDGES = frozenset({EdgeType.CONTRADICTS, EdgeType.SIMILAR_TO, EdgeType.SUPERSEDES})
"""Edges that a user or the consolidator may have written; a revision of the text keeps them."""
_KEPT_RULES = (REPEAT, PASSED_LATER, DISPUTED_LATER)
"""Rules of edges that other turns have written."""
_RELATED_MAX = 500
_QUOTED_STATEMENT = re.compile(r"^(?:(\S[^“\n]{0,99}?): )?“(.+?)”$", re.MULTILINE)
"""A speaker, if known, and what they said."""


@dataclass(frozen=True, slots=True)
class DecisionVerdict:
    """What a new decision does to an older one, and why in words."""

    older_id: int
    relation: Literal["supersedes", "contradicts"]
    reason: str


def judge_decision(draft: Draft, earlier: Sequence[Summary]) -> list[DecisionVerdict]:
    """What `draft` does to these earlier live decisions of its project; unrelated ones are left out."""
    if draft.kind is not Kind.DECISION:
        return []
    new = parse_choice(draft.title)
    compared = [
        (older, parse_choice(older.title))
        for older in earlier
        if older.kind is Kind.DECISION and older.at <= draft.at and older.title != draft.title
    ]
    replaced = _find_replaced(draft, new, compared)
    hidden = {verdict.older_id for verdict in replaced}
    return replaced + [
        DecisionVerdict(older.id, "contradicts", reason)
        for older, old in compared
        if older.id not in hidden and (reason := _explain_contradiction(draft, new, old))
    ]


def _find_replaced(
    draft: Draft, new: DecisionChoice, compared: Sequence[tuple[Summary, DecisionChoice]]
) -> list[DecisionVerdict]:
    reversal = draft.reversal
    if reversal is None:
        return []
    if not reversal.gives_up:
        return _find_newest(reversal.subject, new, compared, reversal.quote)
    matching = [
        (older, old)
        for older, old in compared
        if old.chosen & reversal.gives_up and not old.chosen & new.chosen
    ]
    if not reversal.subject:
        # `we switch from npm to pnpm` names no subject: only clear if one decision alone fits.
        found = matching if len(matching) == 1 else []
        return [_make_supersession(older, old, frozenset(), reversal.quote) for older, old in found]
    return [
        _make_supersession(older, old, shared, reversal.quote)
        for older, old in matching
        if (shared := old.subject & reversal.subject)
    ]


def _find_newest(
    subject: frozenset[str],
    new: DecisionChoice,
    compared: Sequence[tuple[Summary, DecisionChoice]],
    quote: str,
) -> list[DecisionVerdict]:
    """What is given up is not named, so it is the latest other choice on the very same subject."""
    same = [
        (older, old)
        for older, old in compared
        if _jaccard_index(old.subject, subject) >= _SAME_SUBJECT_JACCARD
        and not old.chosen & new.chosen
    ]
    newest = max(same, key=lambda pair: (pair[0].at, pair[0].id), default=None)
    return [_make_supersession(*newest, newest[1].subject & subject, quote)] if newest else []


def _make_supersession(
    older: Summary, old: DecisionChoice, shared: frozenset[str], quote: str
) -> DecisionVerdict:
    about = f" about {_list_stems(shared)}" if shared else ""
    reason = f"says{about} that {_list_stems(old.chosen) or 'it'} is given up: “{quote}”"
    return DecisionVerdict(older.id, "supersedes", reason)


def _explain_contradiction(draft: Draft, new: DecisionChoice, old: DecisionChoice) -> str:
    """Why the two cannot both hold, in words; empty if they can."""
    if not old.chosen or old.chosen & new.chosen:
        return ""
    given_up = draft.reversal.gives_up if draft.reversal else frozenset[str]()
    is_rejected = bool(old.chosen & (new.rejected | given_up))
    is_same = _jaccard_index(old.subject, new.subject) >= _SAME_SUBJECT_JACCARD
    if is_same and new.chosen:
        return f"both decide about {_list_stems(old.subject & new.subject)}: {_list_stems(old.chosen)} or {_list_stems(new.chosen)}"
    if is_rejected and old.subject & new.subject:
        return f"it passes over {_list_stems(old.chosen & (new.rejected | given_up))}"
    return ""


def _jaccard_index(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


def _list_stems(stems: frozenset[str]) -> str:
    """Stems for people: without the parts of a longer one (`sqlite`, not `sq` and `lite`)."""
    whole = [s for s in stems if not any(s != other and s in other for other in stems)]
    return " ".join(sorted(whole))


@dataclass(frozen=True, slots=True)
class EpisodePlan:
    """What is to be written for one episode."""

    episode: str
    drafts: tuple[Draft, ...]
    event_ids: tuple[int, ...]
    """The pending events that it accounts for."""
    passed: tuple[PassedCheck, ...] = ()
    """The checks that passed in it: what failed of them before is no longer open."""
    files: tuple[FileLink, ...] = ()
    """Which files name which, as its events show."""
    project_key: str | None = None
    """Of the project where it happened, if that is not its session's."""
    denials: tuple[Denial, ...] = ()
    """What it says against fixes of earlier turns."""


def write_episodes(
    tx: Connection, plans: Sequence[EpisodePlan], session: Session, now: int
) -> list[Mapping[str, int]]:
    """Write several episodes of a session, in order; the outcomes of each."""
    return [write_episode(tx, plan, session, now) for plan in plans]


def write_episode(
    tx: Connection,
    plan: EpisodePlan,
    session: Session,
    now: int,
    stays: frozenset[int] | None = None,
) -> Mapping[str, int]:
    """Write an episode; how many summaries were created, revised, strengthened or deleted.

    `stays`, where it is distilled again: the summaries that stay as they are, beside what is written.
    """
    session = _place_session(tx, session, plan.project_key)
    known = {s.uid: s for s in summaries.episode_summaries(tx, session.id, plan.episode)}
    owner = summaries.SummaryOwner(session.project_id, session.id, session.client, plan.episode)
    outcomes: Counter[str] = Counter()
    ids: dict[str, int] = {}
    written: list[Draft] = []
    ended = find_ended_rules(tx, plan.drafts, session.project_id)
    uids = _choose_uids(session, plan, known, ended, stays)
    for uid, draft in uids.items():
        twin = None if uid in known else _find_twin(tx, draft, session.project_id)
        if twin is not None:
            ids[draft.slot] = twin.id
            outcomes["strengthened"] += _count_repeat(tx, twin, draft, now)
            continue
        if uid in known and _is_written_up(known[uid], draft):
            number, outcome = known[uid].id, "unchanged"
        else:
            begun = replace(draft, confidence=judgments.captured_confidence(draft.confidence))
            number, outcome = summaries.put_summary(tx, uid, begun, owner, now)
        outcomes[outcome] += 1
        if outcome == "forgotten":
            continue
        ids[draft.slot] = number
        written.append(draft)
        if outcome == "revised":
            _drop_own_edges(tx, number)
    outcomes["deleted"] += _delete_stale(tx, known, uids.keys(), stays or frozenset())
    _link_written(tx, written, ids, now)
    settle_failures(tx, plan.drafts, ids, now)
    for draft in written:
        end_rules(tx, ids[draft.slot], draft, ended.get(draft.slot, ()))
        end_done_tasks(tx, ids[draft.slot], draft, session.project_id)
        end_earlier_choices(tx, ids[draft.slot], session)
        _settle_value(tx, ids[draft.slot], session.project_id, now)
        if draft.kind is Kind.DECISION:
            _judge_decisions(tx, ids[draft.slot], draft, session.project_id, now)
    links.add_edges(tx, _make_file_edges(plan.files, written))
    if disputed := _dispute(tx, plan, session):
        outcomes["disputed"] = disputed
    events.mark_distilled(tx, plan.event_ids)
    outcomes.update(_close(tx, plan, session, ids.get("turn")))
    return outcomes


def _link_written(
    tx: Connection, written: Sequence[Draft], ids: Mapping[str, int], now: int
) -> None:
    """Write the edges of drafts, and hide those that say again what the user rejected."""
    for draft in written:
        links.add_edges(tx, _make_draft_edges(draft, ids))
    rejections.reject_repeats(tx, (ids[draft.slot] for draft in written), now)


def _close(tx: Connection, plan: EpisodePlan, session: Session, turn: int | None) -> dict[str, int]:
    """Close the failures whose checks passed, and have the turn tell of them; by how many runs."""
    closing = close_failures(tx, plan.passed, session, plan.episode, turn)
    if turn is None or not closing:
        return {}
    events.mark_pending(tx, closing)
    return {"closed": len(closing)}


def _dispute(tx: Connection, plan: EpisodePlan, session: Session) -> int:
    """Have what this episode denies distilled again; how many memories it is about."""
    return dispute_fixes(tx, plan.denials, session, plan.episode)


def _choose_uids(
    session: Session,
    plan: EpisodePlan,
    known: Mapping[str, Summary],
    ended: Mapping[str, Sequence[Summary]],
    stays: frozenset[int] | None,
) -> dict[str, Draft]:
    """The uid of each draft; without a new note that takes back no rule, since the turn says as much."""
    chosen = {
        _choose_uid(session, plan.episode, draft, known, stays): draft for draft in plan.drafts
    }
    return {uid: d for uid, d in chosen.items() if uid in known or ended.get(d.slot, True)}


def _choose_uid(
    session: Session,
    episode: str,
    draft: Draft,
    known: Mapping[str, Summary],
    stays: frozenset[int] | None,
) -> str:
    """The uid of a draft's slot; beside what stays there, or has another text and a greater standing."""
    uid = slot_uid(session, episode, draft.slot)
    there = known.get(uid)
    if there is not None and stays is not None:
        return uid_beside(uid) if there.id in stays else uid
    if there is None or (there.title, there.body) == (draft.title, draft.body):
        return uid
    return uid if find_objection(draft.authority, there) is None else uid_beside(uid)


def _place_session(tx: Connection, session: Session, project_key: str | None) -> Session:
    """Return the session with the project that an episode belongs to, its own or the one it had moved to."""
    # Its project may have been merged into another since the episode was read.
    session = projects.session(tx, session.id) or session
    moved = projects.project_by_key(tx, project_key) if project_key is not None else None
    return session if moved is None else replace(session, project_id=moved.id)


def _is_written_up(known: Summary, draft: Draft) -> bool:
    """Whether a model has improved just this draft: distilling it again must not undo that."""
    return (
        known.rule.startswith(summaries.MODEL_RULE_PREFIX)
        and (known.kind, known.files, known.tags) == (draft.kind, draft.files, draft.tags)
        and (known.body == draft.body or known.body.endswith("\n\n" + draft.body))
    )


def _find_twin(tx: Connection, draft: Draft, project_id: int) -> Summary | None:
    """A live memory of the project and kind that states the same, no more and no less."""
    if draft.kind not in _REPEATABLE:
        return None
    same = find_equal(tx, project_id, draft.kind, draft.title, draft.body)
    return next((one for one in same if holds_alike(one.tags, draft.tags)), None)


def _settle_value(tx: Connection, summary_id: int, project_id: int, now: int) -> None:
    """Let a captured statement replace, or be replaced by, what gives the same thing another value."""
    mine = summaries.get_summary(tx, summary_id)
    if mine is None or mine.kind not in VALUE_KINDS or _is_hidden(mine):
        return
    others = find_similar(tx, project_id, VALUE_KINDS, mine.title, mine.body)
    # A date in the future comes from a wrong clock: that was said before.
    dated = [replace(o, at=0) if o.at >= now + CLOCK_SKEW_MAX_MS else o for o in others]
    rivals = [one for one in dated if one.id != mine.id and holds_alike(one.tags, mine.tags)]
    settle_changed_values(tx, mine, rivals, now)


def _is_hidden(memory: Summary) -> bool:
    return memory.superseded_by is not None or memory.rejected_at is not None


def _count_repeat(tx: Connection, twin: Summary, draft: Draft, now: int) -> int:
    """Count a repeat once per event that repeated it; 1 if it was new."""
    new = links.add_edges(tx, _make_source_edges(draft, twin.id, REPEAT))
    if new:
        supersede.repeat(tx, twin, draft.authority, now, draft.body)
    return int(new > 0)


def _delete_stale(
    tx: Connection, known: Mapping[str, Summary], uids: Iterable[str], stays: frozenset[int]
) -> int:
    """Delete what the episode no longer yields, unless it is pinned or was said elsewhere, too."""
    yielded = set(uids)
    stale = [
        s
        for uid, s in known.items()
        if uid not in yielded
        and s.pinned_at is None
        and s.duplicates == 1
        and s.id not in stays
        and s.rejected_at is None
        and summaries.EARLIER_VERSION not in s.tags
    ]
    return delete_summaries(tx, stale)


def delete_summaries(tx: Connection, stale: Sequence[Summary]) -> int:
    """Delete these memories and what only they were linked with; how many."""
    nodes = {node for s in stale for node in links.neighbours(tx, "summary", str(s.id))}
    for summary in stale:
        summaries.delete_summary(tx, summary.id)
    links.drop_orphan_nodes(tx, nodes)
    return len(stale)


def _drop_own_edges(tx: Connection, summary_id: int) -> None:
    """Drop the edges that the revision writes again; keep verdicts and repeats."""
    start = ("summary", str(summary_id))
    staying = [
        links.NewEdge(*start, e.type, e.to_kind, e.to_id, e.rule, e.at, e.confidence, e.detail)
        for e in links.edges_at(tx, *start)
        if (e.from_kind, e.from_id) == start
        and (e.type in _JUDGMENT_EDGES or e.rule in _KEPT_RULES)
    ]
    links.drop_edges_from(tx, summary_id)
    links.add_edges(tx, staying)


def _make_source_edges(draft: Draft, summary_id: int, rule: str) -> list[links.NewEdge]:
    return [
        links.NewEdge(
            "summary", str(summary_id), EdgeType.DERIVES_FROM, "event", str(source.event_id), rule,
            draft.at, detail={"quote": source.quote, "authority": source.authority.code},
        )
        for source in draft.sources
    ]  # fmt: skip


def _make_draft_edges(draft: Draft, ids: Mapping[str, int]) -> list[links.NewEdge]:
    """The edges of one draft; those to a slot that was not written are left out."""
    here = str(ids[draft.slot])
    found = _make_source_edges(draft, ids[draft.slot], draft.rule)
    for edge in draft.edges:
        to_kind, to_id = edge.to_kind, edge.to_id
        if to_kind == "slot":
            if to_id not in ids:
                continue
            to_kind, to_id = "summary", str(ids[to_id])
        found.append(
            links.NewEdge(
                "summary", here, edge.type, to_kind, to_id, draft.rule, draft.at, detail=edge.detail
            )
        )
    return found


def _make_file_edges(found: Sequence[FileLink], written: Sequence[Draft]) -> list[links.NewEdge]:
    """Return the edges between files, only from files that a draft refers to: they are shown and forgotten with it."""
    referred = {e.to_id for draft in written for e in draft.edges if e.to_kind == "file"}
    return [
        links.NewEdge(
            "file", one.path, EdgeType.IMPORTS, "file", one.target, STATEMENT, one.at, detail={"as": one.name}
        )
        for one in found
        if one.path in referred
    ]  # fmt: skip


def _judge_decisions(
    tx: Connection, summary_id: int, draft: Draft, project_id: int, now: int
) -> None:
    """Let a decision replace or contradict others of its project, whichever was written first."""
    mine = summaries.get_summary(tx, summary_id)
    if mine is None or mine.rejected_at is not None:
        return
    # A date in the future comes from a wrong clock: that decision was made before this one.
    others = [
        replace(one, at=0) if one.at >= now + CLOCK_SKEW_MAX_MS else one
        for one in _find_related(tx, summary_id, draft, project_id)
    ]
    for verdict in judge_decision(draft, others):
        _apply_verdict(tx, summary_id, verdict.older_id, verdict, draft.at)
    itself = summaries.get_summary(tx, summary_id)
    if itself is None or _is_hidden(itself):
        return
    for later in others:
        # An import may bring the older decision last.
        if later.at > draft.at:
            for verdict in judge_decision(_restore_draft(later), [itself]):
                _apply_verdict(tx, later.id, summary_id, verdict, later.at)


def _find_related(tx: Connection, summary_id: int, draft: Draft, project_id: int) -> list[Summary]:
    """The live decisions that a verdict is possible with, newest first: each needs a word in common."""
    stems = reversals.telling_stems(draft.title)
    if draft.reversal is not None:
        stems |= draft.reversal.subject | draft.reversal.gives_up
    ids = summaries.ids_sharing_keys(tx, project_id, draft.kind, stems, limit=_RELATED_MAX)
    found = summaries.summaries_by_ids(tx, ids)
    return [found[number] for number in ids if number != summary_id]


def _restore_draft(summary: Summary) -> Draft:
    """A stored decision as it was drafted, with what it reverses read from its words again."""
    quotes: Sequence[tuple[str, str]] = _QUOTED_STATEMENT.findall(summary.body)
    # The agent's copy of the user's decision reverses nothing in the user's name.
    is_users = summary.authority.speaker == "user"
    statements = [quote for speaker, quote in quotes if not is_users or speaker in ("User", "")]
    return Draft(
        slot="", kind=summary.kind, title=summary.title, body=summary.body, at=summary.at,
        rule=summary.rule, sources=(), reversal=reversals.find_reversal(tuple(statements)) if statements else None,
    )  # fmt: skip


def _apply_verdict(
    tx: Connection, newer_id: int, older_id: int, verdict: DecisionVerdict, at: int
) -> None:
    if judgments.stance_between(tx, newer_id, older_id) is not None:
        return  # a person has judged the two
    if verdict.relation == "contradicts":
        edge = links.NewEdge(
            "summary", str(newer_id), EdgeType.CONTRADICTS, "summary", str(older_id), OTHER_CHOICE, at,
            detail={"reason": verdict.reason},
        )  # fmt: skip
        links.add_edges(tx, [edge])
        return
    judged = {(s.newer_id, s.older_id) for s in links.supersessions_of(tx, newer_id)}
    if (newer_id, older_id) not in judged:  # what a person undid stays undone
        supersede.hide(tx, newer_id, older_id, STATED_REVERSAL, verdict.reason, at)

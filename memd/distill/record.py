"""One transaction of the distiller: an episode's drafts, their edges, what they replace. Knows no waiting.

Everything that one episode yields is written together with the mark that its events are distilled,
so a crash repeats an episode or finds it done. Writing the same drafts again changes nothing: a row
is known by its session, episode and slot, an edge by its ends, and a repeat by the event that
repeated it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from memd.distill import choice
from memd.distill.closing import close
from memd.distill.passing import Passed
from memd.distill.reverse import Reversed, find_reversed
from memd.distill.rewriting import stands
from memd.import_graph import FileLink
from memd.models import AHEAD_MS, Draft, EdgeType, Kind, Session, Summary
from memd.store import confidence, cues, events, judgments, links, projects, summaries
from memd.store.cards import PASSED_LATER
from memd.store.database import Connection
from memd.text import digest

STATED_REVERSAL = "stated-reversal"
OTHER_CHOICE = "other-choice"
REPEAT = "repeat"
STATEMENT = "statement"
"""The rule of an edge between files: a statement in the one names the other."""

_REPEATABLE = frozenset({Kind.INSTRUCTION, Kind.PREFERENCE, Kind.DECISION, Kind.FACT})
_JUDGED = frozenset({EdgeType.CONTRADICTS, EdgeType.SIMILAR_TO, EdgeType.SUPERSEDES})
"""Edges that somebody else may have written; a revision of the text keeps them."""
_KEPT = (REPEAT, PASSED_LATER)
"""Rules of edges that other turns have written."""
_AKIN_MAX = 500
_QUOTED = re.compile(r"“(.+?)”$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be written for one episode."""

    episode: str
    drafts: tuple[Draft, ...]
    event_ids: tuple[int, ...]
    """The pending events that it accounts for."""
    passed: tuple[Passed, ...] = ()
    """The checks that passed in it: what failed of them before is no longer open."""
    files: tuple[FileLink, ...] = ()
    """Which files name which, as its events show."""


def record_all(
    tx: Connection, plans: Sequence[Plan], session: Session, now: int
) -> list[Mapping[str, int]]:
    """Write several episodes of a session, in order; for each what `record` says."""
    return [record(tx, plan, session, now) for plan in plans]


def record(tx: Connection, plan: Plan, session: Session, now: int) -> Mapping[str, int]:
    """Write an episode; how many summaries were created, revised, strengthened or deleted."""
    # Its project may have been merged into another since the episode was read.
    session = projects.session(tx, session.id) or session
    known = {s.uid: s for s in summaries.of_episode(tx, session.id, plan.episode)}
    owner = summaries.Owner(session.project_id, session.id, session.client, plan.episode)
    outcomes: Counter[str] = Counter()
    ids: dict[str, int] = {}
    written: list[Draft] = []
    uids = {digest(session.uid, plan.episode, draft.slot): draft for draft in plan.drafts}
    for uid, draft in uids.items():
        twin = None if uid in known else _twin(tx, draft, session.project_id)
        if twin is not None:
            ids[draft.slot] = twin.id
            outcomes["strengthened"] += _strengthen(tx, twin, draft, now)
            continue
        if uid in known and stands(known[uid], draft):
            number, outcome = known[uid].id, "unchanged"
        else:
            begun = replace(draft, confidence=confidence.captured(draft.confidence))
            number, outcome = summaries.put(tx, uid, begun, owner, now)
        outcomes[outcome] += 1
        if outcome == "forgotten":
            continue
        ids[draft.slot] = number
        written.append(draft)
        if outcome == "revised":
            _unlink(tx, number)
    outcomes["deleted"] += _drop_stale(tx, known, uids.keys())
    for draft in written:
        links.link(tx, _edges(draft, ids))
    for draft in written:
        if draft.kind is Kind.DECISION:
            _relate(tx, ids[draft.slot], draft, session.project_id, now)
    links.link(tx, _between_files(plan.files, written))
    close(tx, plan.passed, session.project_id)
    events.mark_distilled(tx, plan.event_ids)
    return outcomes


def _twin(tx: Connection, draft: Draft, project_id: int) -> Summary | None:
    """A live memory of the project that says the same already."""
    if draft.kind not in _REPEATABLE:
        return None
    same = cues.titled(tx, project_id, draft.kind, draft.title)
    return summaries.get(tx, same[0]) if same else None


def _strengthen(tx: Connection, twin: Summary, draft: Draft, now: int) -> int:
    """Count a repeat once per event that repeated it; 1 if it was new."""
    new = links.link(tx, _sources(draft, twin.id, REPEAT))
    if new:
        summaries.strengthen(tx, twin.id, now)
    return int(new > 0)


def _drop_stale(tx: Connection, known: Mapping[str, Summary], uids: Iterable[str]) -> int:
    """Delete what the episode no longer yields, unless somebody pinned it."""
    kept = set(uids)
    stale = [s for uid, s in known.items() if uid not in kept and s.pinned_at is None]
    nodes = {node for s in stale for node in links.neighbours(tx, "summary", str(s.id))}
    for summary in stale:
        summaries.delete(tx, summary.id)
    links.drop_adrift(tx, nodes)
    return len(stale)


def _unlink(tx: Connection, summary_id: int) -> None:
    """Drop the edges that the revision writes anew; keep verdicts and repeats."""
    begins = [
        e
        for e in links.edges_at(tx, "summary", str(summary_id))
        if (e.from_kind, e.from_id) == ("summary", str(summary_id))
    ]
    kept = [e for e in begins if e.type in _JUDGED or e.rule in _KEPT]
    links.unlink_from(tx, summary_id)
    links.link(
        tx,
        [
            links.NewEdge(
                e.from_kind, e.from_id, e.type, e.to_kind, e.to_id, e.rule, e.at, e.confidence, e.detail
            )
            for e in kept
        ],
    )  # fmt: skip


def _sources(draft: Draft, summary_id: int, rule: str) -> list[links.NewEdge]:
    return [
        links.NewEdge(
            "summary", str(summary_id), EdgeType.DERIVES_FROM, "event", str(source.event_id), rule,
            draft.at, detail={"quote": source.quote},
        )
        for source in draft.sources
    ]  # fmt: skip


def _edges(draft: Draft, ids: Mapping[str, int]) -> list[links.NewEdge]:
    """The edges of one draft; those to a slot that was not written are left out."""
    here = str(ids[draft.slot])
    found = _sources(draft, ids[draft.slot], draft.rule)
    for edge in draft.edges:
        to_kind, to_id = edge.to_kind, edge.to_id
        if to_kind == "slot":
            if to_id not in ids:
                continue
            to_kind, to_id = "summary", str(ids[to_id])
        found.append(
            links.NewEdge("summary", here, edge.type, to_kind, to_id, draft.rule, draft.at)
        )
    return found


def _between_files(found: Sequence[FileLink], written: Sequence[Draft]) -> list[links.NewEdge]:
    """The edges between files; only from one that a memory tells of: by that it is seen and forgotten."""
    told = {e.to_id for draft in written for e in draft.edges if e.to_kind == "file"}
    return [
        links.NewEdge(
            "file", one.path, EdgeType.IMPORTS, "file", one.target, STATEMENT, one.at, detail={"as": one.name}
        )
        for one in found
        if one.path in told
    ]  # fmt: skip


def _relate(tx: Connection, summary_id: int, draft: Draft, project_id: int, now: int) -> None:
    """Let a decision replace or contradict others of its project, whichever was written first."""
    others = [_dated(one, now) for one in _akin(tx, summary_id, draft, project_id)]
    for verdict in find_reversed(draft, others):
        _apply(tx, summary_id, verdict.older_id, verdict, draft.at)
    itself = summaries.get(tx, summary_id)
    if itself is None or itself.superseded_by is not None:
        return
    for later in others:
        # An import may bring the older decision last.
        if later.at > draft.at:
            for verdict in find_reversed(_as_draft(later), [itself]):
                _apply(tx, later.id, summary_id, verdict, later.at)


def _akin(tx: Connection, summary_id: int, draft: Draft, project_id: int) -> list[Summary]:
    """The live decisions that a verdict is possible with, newest first: each needs a word in common."""
    stems = choice.telling(draft.title)
    if draft.reversal is not None:
        stems |= draft.reversal.subject | draft.reversal.gives_up
    ids = cues.sharing(tx, project_id, draft.kind, stems, limit=_AKIN_MAX)
    found = summaries.by_ids(tx, ids)
    return [found[number] for number in ids if number != summary_id]


def _dated(summary: Summary, now: int) -> Summary:
    """What a wrong clock dated ahead was said before, nobody knows when: it replaces nothing that is said now."""
    return replace(summary, at=0) if summary.at >= now + AHEAD_MS else summary


def _as_draft(summary: Summary) -> Draft:
    """A stored decision as it was drafted, with what it reverses read from its words again."""
    statements: Sequence[str] = _QUOTED.findall(summary.body)
    return Draft(
        slot="", kind=summary.kind, title=summary.title, body=summary.body, at=summary.at,
        rule=summary.rule, sources=(), reversal=choice.reversal(tuple(statements)) if statements else None,
    )  # fmt: skip


def _apply(tx: Connection, newer_id: int, older_id: int, verdict: Reversed, at: int) -> None:
    if judgments.verdict(tx, newer_id, older_id) is not None:
        return  # somebody has said what the two are
    if verdict.relation == "contradicts":
        edge = links.NewEdge(
            "summary", str(newer_id), EdgeType.CONTRADICTS, "summary", str(older_id), OTHER_CHOICE, at,
            detail={"reason": verdict.reason},
        )  # fmt: skip
        links.link(tx, [edge])
        return
    judged = {(s.newer_id, s.older_id) for s in links.supersessions_of(tx, newer_id)}
    if (newer_id, older_id) not in judged:  # what somebody undid stays undone
        links.supersede(
            tx, newer_id=newer_id, older_id=older_id, rule=STATED_REVERSAL, cosine=None,
            guard=verdict.reason, at=at,
        )  # fmt: skip

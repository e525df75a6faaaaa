"""Write what an episode yields: drafts, edges, and what they end: rules, tasks, choices, failures, older decisions.

All that one episode yields is written together with the mark that its events are distilled, so a crash
repeats an episode or finds it done. Writing the same drafts again changes nothing: a row is identified by its
session, episode and slot, an edge by its ends, and a repeat by the event that repeated it.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from memd.belief import rejections, supersede
from memd.belief.decide import VALUE_KINDS, ends
from memd.belief.standing import find_objection, holds_alike
from memd.belief.supersede import find_equal, find_similar, settle_changed_values
from memd.distill.assertions import TITLE_CHARACTERS, pick_ended, related_stems
from memd.distill.episodes import slot_uid, uid_beside
from memd.distill.proof.objections import Denial
from memd.distill.proof.reopening import PassedCheck, close_failures, dispute_fixes, settle_failures
from memd.distill.proving import find_taken_back
from memd.import_graph import FileLink
from memd.models import (
    CLOCK_SKEW_MAX_MS,
    RETRACTED,
    TAKEN_BACK,
    TURNED,
    Authority,
    Draft,
    EdgeType,
    Kind,
    Session,
    Summary,
)
from memd.store import events, judgments, links, projects, summaries
from memd.store.database import Connection
from memd.store.session_context import DISPUTED_LATER, PASSED_LATER
from memd.text import content_stems, one_line

REPEAT = "repeat"
STATEMENT = "statement"
"""The rule of an edge between files: a statement in the one names the other."""
_REPEATABLE = frozenset({Kind.INSTRUCTION, Kind.PREFERENCE, Kind.DECISION, Kind.FACT})
_JUDGMENT_EDGES = frozenset({EdgeType.CONTRADICTS, EdgeType.SIMILAR_TO, EdgeType.SUPERSEDES})
"""Edges that a user or the consolidator may have written; a revision of the text keeps them."""
_KEPT_RULES = (REPEAT, PASSED_LATER, DISPUTED_LATER)
"""Rules of edges that other turns have written."""
_RULES_EXAMINED_MAX, _TASKS_EXAMINED_MAX = 100, 50
_KEPT_IF_ENDING = frozenset({TURNED, TAKEN_BACK})
"""Rules of sentences that are kept only if they end something."""
TASK_DONE = "task-done"
"""The rule of the supersession of a task by the turn that did it."""
_DONE_KINDS = (Kind.CHANGE, Kind.FIX)
_DONE_STEMS_MIN, _DONE_SHARE = 3, 0.6
"""Stems of a task that the outcome of a turn, or what was asked for in it, must have."""
_SAID = re.compile(r"^User: “([^”]{20,})”", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class EpisodePlan:
    """Drafts and links to be written for one episode."""

    episode: str
    drafts: tuple[Draft, ...]
    event_ids: tuple[int, ...]
    """The pending events that it accounts for."""
    passed: tuple[PassedCheck, ...] = ()
    """The checks that passed in it: what failed of them before is no longer open."""
    files: tuple[FileLink, ...] = ()
    """Which files name which, as its events show."""
    project_key: str | None = None
    """The key of the project where it happened, if that is not its session's."""
    denials: tuple[Denial, ...] = ()
    """Claims of it against fixes of earlier turns."""


def write_episodes(
    tx: Connection, plans: Sequence[EpisodePlan], session: Session, now: int
) -> list[tuple[Counter[str], frozenset[int]]]:
    """Write several episodes of a session, in order."""
    return [write_episode(tx, plan, session, now) for plan in plans]


def write_episode(  # noqa: PLR0915  # what happens, in order
    tx: Connection,
    plan: EpisodePlan,
    session: Session,
    now: int,
    stays: frozenset[int] | None = None,
) -> tuple[Counter[str], frozenset[int]]:
    """Write an episode: its drafts, their edges, what they end, what its checks close and its words dispute.

    Return the number of summaries by change, and the events of turns that are told otherwise now: these are marked
    pending, to be distilled again.

    `stays`, where it is distilled again: the summaries that stay as they are, beside what is written.
    """
    # Its project may have been merged into another since it was read; or it happened in one that the session moved to.
    session = projects.session(tx, session.id) or session
    moved = projects.project_by_key(tx, plan.project_key) if plan.project_key is not None else None
    session = session if moved is None else replace(session, project_id=moved.id)
    known = {s.uid: s for s in summaries.episode_summaries(tx, session.id, plan.episode)}
    owner = summaries.SummaryOwner(session.project_id, session.id, session.client, plan.episode)
    counts: Counter[str] = Counter()
    ids: dict[str, int] = {}
    written: list[Draft] = []
    ended = _find_ended_rules(tx, plan.drafts, session, now)
    uids = {_choose_uid(session, plan.episode, one, known, stays): one for one in plan.drafts}
    # Without a new note that ends no rule: the turn says as much.
    uids = {
        uid: _take_kind(d, known.get(uid), ended)
        for uid, d in uids.items()
        if uid in known or ended.get(d.slot, d.rule not in _KEPT_IF_ENDING)
    }
    for uid, draft in uids.items():
        same = None if uid in known else _find_duplicate(tx, draft, session.project_id)
        if same is not None:
            ids[draft.slot] = same.id
            # It is counted once per event that repeats it.
            if links.add_edges(tx, _make_source_edges(draft, same.id, REPEAT)):
                supersede.repeat(tx, same, draft.authority, now, draft.body)
                counts["strengthened"] += 1
            continue
        if uid in known and _is_improved_by_model(known[uid], draft):
            number, change = known[uid].id, "unchanged"
        else:
            begun = replace(draft, confidence=judgments.captured_confidence(draft.confidence))
            number, change = summaries.put_summary(tx, uid, begun, owner, now)
        counts[change] += 1
        if change == "forgotten":
            continue
        ids[draft.slot] = number
        written.append(draft)
        if change == "revised":
            _drop_own_edges(tx, number)
    stale = [s for uid, s in known.items() if uid not in uids and s.id not in (stays or ())]
    counts["deleted"] += delete_summaries(tx, [one for one in stale if not _must_stay(one)])
    for draft in written:
        links.add_edges(tx, _make_draft_edges(draft, ids))
    rejections.reject_repeats(tx, (ids[draft.slot] for draft in written), now)
    settle_failures(tx, plan.drafts, ids, now)
    _end_rules(tx, written, ids, ended)
    for draft in written:
        _supersede_what_it_ends(tx, ids[draft.slot], draft, session, now)
    links.add_edges(tx, _make_file_edges(plan.files, written, ids.get("turn")))
    events.mark_distilled(tx, plan.event_ids)
    # First what it denies: a check that passes after that closes it again.
    again = dispute_fixes(tx, plan.denials, session, plan.episode)
    turn = ids.get("turn")
    closing = close_failures(tx, plan.passed, session, plan.episode, turn)
    again |= closing if turn is not None else frozenset()  # else nothing tells of them
    events.mark_pending(tx, again)
    return counts, again


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
    if there is None:
        return uid
    if stays is not None:
        return uid_beside(uid) if there.id in stays else uid
    is_same = (there.title, there.body) == (draft.title, draft.body)
    return uid if is_same or find_objection(draft.authority, there) is None else uid_beside(uid)


def _is_improved_by_model(known: Summary, draft: Draft) -> bool:
    """Return whether a model has improved just this draft: distilling it again must not undo that."""
    return (
        known.rule.startswith(summaries.MODEL_RULE_PREFIX)
        and (known.kind, known.files, known.tags) == (draft.kind, draft.files, draft.tags)
        and (known.body == draft.body or known.body.endswith("\n\n" + draft.body))
    )


def _must_stay(one: Summary) -> bool:
    """Return whether a memory stays though its episode no longer yields it."""
    has_hand = one.pinned_at is not None or one.rejected_at is not None
    return has_hand or one.duplicates != 1 or summaries.EARLIER_VERSION in one.tags


def _find_duplicate(tx: Connection, draft: Draft, project_id: int) -> Summary | None:
    """A live memory of the project and kind that states the same, no more and no less."""
    if draft.kind not in _REPEATABLE:
        return None
    same = find_equal(tx, (project_id,), draft.kind, draft.title, draft.body)
    return next((one for one in same if holds_alike(one.tags, draft.tags)), None)


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
    """Return an edge to each event that a draft is based on; the first one tells why its title was chosen."""
    chosen = {"title": draft.title_reasons} if draft.title_reasons else {}
    return [
        links.NewEdge(
            "summary", str(summary_id), EdgeType.DERIVES_FROM, "event", str(source.event_id), rule, draft.at,
            detail={"quote": source.quote, "authority": source.authority.code, **({} if number else chosen)},
        )
        for number, source in enumerate(draft.sources)
    ]  # fmt: skip


def _make_draft_edges(draft: Draft, ids: Mapping[str, int]) -> list[links.NewEdge]:
    """The edges of one draft; those to a slot that was not written are left out."""
    number = ids[draft.slot]
    found = _make_source_edges(draft, number, draft.rule)
    for edge in draft.edges:
        to_kind, to_id = edge.to_kind, edge.to_id
        if to_kind == "slot":
            to_kind, to_id = "summary", str(ids.get(to_id, ""))
        new = links.NewEdge("summary", str(number), edge.type, to_kind, to_id, draft.rule, draft.at, detail=edge.detail)  # fmt: skip
        found += [new] if to_id else []
    return found


def _make_file_edges(
    found: Sequence[FileLink], written: Sequence[Draft], turn: int | None
) -> list[links.NewEdge]:
    """Return the edges between files, only from files that a draft refers to: they are shown and forgotten with it.

    What a command ran is called by the memory of its turn.
    """
    referred = {e.to_id for draft in written for e in draft.edges if e.to_kind == "file"}
    start = ("summary", str(turn))
    return [
        links.NewEdge(
            *(("file", one.path) if one.path else start), EdgeType.CALLS if one.is_call else EdgeType.IMPORTS,
            "file", one.target, STATEMENT, one.at, detail={"as": one.name},
        )
        for one in found
        if one.path in referred or (not one.path and turn is not None)
    ]  # fmt: skip


# ── What it ends ──────────────────────────────────────────────────────────────────────────────────


def _end_rules(
    tx: Connection,
    written: Sequence[Draft],
    ids: Mapping[str, int],
    ended: Mapping[str, Sequence[Summary]],
) -> None:
    """Let each stored retraction hide the rules that it takes back."""
    for draft in (one for one in written if one.rule in (RETRACTED, TAKEN_BACK)):
        for rule in ended.get(draft.slot, ()):
            reason = f"it was taken back: {draft.body}"
            _supersede(tx, ids[draft.slot], rule.id, draft.rule, reason, draft.at)


def _supersede_what_it_ends(
    tx: Connection, number: int, draft: Draft, session: Session, now: int
) -> None:
    """Let a stored memory hide what it ends, or be hidden by what ended it."""
    _end_done_tasks(tx, number, draft, session.project_id)
    mine = summaries.get_summary(tx, number)
    if mine is not None and mine.kind in VALUE_KINDS and not _is_hidden(mine):
        others = find_similar(tx, (session.project_id,), VALUE_KINDS, mine.title, mine.body)
        alike = (one for one in others if one.id != number and holds_alike(one.tags, mine.tags))
        settle_changed_values(tx, mine, [_ignore_future_time(one, now) for one in alike], now)


def _is_hidden(memory: Summary) -> bool:
    return memory.superseded_by is not None or memory.rejected_at is not None


def _ignore_future_time(one: Summary, now: int) -> Summary:
    """The memory as of a time before all others if it is from the future: that comes from a wrong clock."""
    return replace(one, at=0) if one.at >= now + CLOCK_SKEW_MAX_MS else one


def _supersede(  # noqa: PLR0913, PLR0917  # one argument a column
    tx: Connection,
    newer_id: int,
    older_id: int,
    rule: str,
    reason: str,
    at: int,
    voice: Authority | None = None,
) -> None:
    """Hide the older of two memories, unless a person has judged the two or undone that before."""
    if not supersede.is_judged(tx, newer_id, older_id):
        supersede.hide(tx, newer_id, older_id, rule, reason, at, voice=voice)


def _find_ended_rules(
    tx: Connection, drafts: Sequence[Draft], session: Session, now: int
) -> dict[str, list[Summary]]:
    """The live memories of a project that each retraction or turning sentence among these drafts ends, by its slot."""
    project_id = session.project_id
    ended: dict[str, list[Summary]] = {
        one.slot: find_taken_back(tx, session.id, one.sources[0].event_id)
        for one in drafts
        if one.rule == TAKEN_BACK
    }
    for draft in (one for one in drafts if one.rule == RETRACTED):
        stems = related_stems(draft)
        ids: list[int] = []
        for kind in (Kind.INSTRUCTION, Kind.PREFERENCE):
            ids += summaries.ids_sharing_keys(
                tx, project_id, kind, stems, limit=_RULES_EXAMINED_MAX
            )
        rules = [_ignore_future_time(r, now) for r in summaries.summaries_by_ids(tx, ids).values()]
        ended[draft.slot] = pick_ended(draft, rules) if stems else []
    taken = {one.body for one in drafts if ended.get(one.slot)}
    for draft in (one for one in drafts if one.rule == TURNED and one.body not in taken):
        similar = find_similar(tx, (project_id,), VALUE_KINDS, draft.title, draft.body)
        ended[draft.slot] = [
            one
            for one in (_ignore_future_time(one, now) for one in similar)
            if one.at <= draft.at and holds_alike(one.tags, draft.tags) and ends(draft, one)
        ]
    return ended


def _take_kind(
    draft: Draft, known: Summary | None, ended: Mapping[str, Sequence[Summary]]
) -> Draft:
    """Give a sentence that is kept because it ends something the kind of that."""
    if draft.rule not in _KEPT_IF_ENDING:
        return draft
    if known:
        return replace(draft, kind=known.kind, title=known.title)
    first = ended[draft.slot][0]
    if draft.rule == TURNED:
        return replace(draft, kind=first.kind)
    title = one_line(f"No longer: {first.title} (“{draft.title}”)", TITLE_CHARACTERS)
    return replace(draft, kind=first.kind, title=title)


def _end_done_tasks(tx: Connection, turn_id: int, draft: Draft, project_id: int) -> None:
    """Let a stored turn hide the earlier tasks of its project that it has done."""
    turn = summaries.get_summary(tx, turn_id)
    if turn is None or draft.slot != "turn" or draft.kind not in _DONE_KINDS:
        return
    asked = draft.body.partition("\n")[0]
    done = frozenset(content_stems(f"{draft.title} {asked}"))
    ids = summaries.ids_sharing_keys(tx, project_id, Kind.TASK, done, limit=_TASKS_EXAMINED_MAX)
    for task in summaries.summaries_by_ids(tx, ids).values():
        # What a turn leaves open it has not done, though its outcome says the same; of a prompt that was broken
        # off, the turn after it tells what was asked.
        is_own = task.episode == turn.episode or any(s in asked for s in _SAID.findall(task.body))
        wanted = frozenset(content_stems(task.title))
        is_done = len(wanted & done) >= max(_DONE_STEMS_MIN, _DONE_SHARE * len(wanted))
        if is_done and task.at < draft.at and not is_own:
            reason = f"a later turn did it: {draft.title}"
            # The user had the turn do it, whoever words its outcome.
            _supersede(tx, turn_id, task.id, TASK_DONE, reason, draft.at, Authority.USER_PROMPT)

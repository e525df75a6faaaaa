"""Hide, show again, strengthen and pin memories: only by who may do that, and nowhere else.

Every path that replaces something comes through here: distilling, remembering, consolidating, judging,
merging projects, reading a file again, importing. Where the authority is too weak, nothing is hidden: an edge
relates the two, both stay visible, and it is for the user to judge.
"""

import re
from collections.abc import Iterable, Sequence

from memd.belief.changes import CHANGED_VALUE_RULE, CHOICE_WORDS
from memd.belief.claims import parse_statement, statement_text
from memd.belief.compare import compare_claims
from memd.belief.decide import (
    VALUE_KINDS,
    CandidatePair,
    are_twins,
    changes_sentence,
    decide,
    find_change,
)
from memd.belief.ending import turns_words
from memd.belief.later import find_contradiction
from memd.belief.notes import Backing, Proof, split_note
from memd.belief.proof import count_turns
from memd.belief.standing import Objection, authority_of, find_objection, holds_alike
from memd.belief.turns import name_ended, name_placed
from memd.errors import BadRequest
from memd.models import NOTED, Authority, EdgeType, EventKind, Kind, Summary, Supersession
from memd.store import events, judgments, links, summaries
from memd.store.database import Connection
from memd.store.judgments import JUDGED_RULE
from memd.text import content_stems, one_line

STOOD_RULE = "stood"
"""The rule of the edge from a note to a proposal of the agent's that the user let stand."""
SAID_AGAIN_RULE = "said-again"
"""The rule by which a value that returns hides what had been judged to replace it."""
TOPIC_KEY_RULE = "topic-key"
"""The rule by which the value of a topic that was said last hides the others."""
TWIN_RULE = "judged-twin"
"""The rule by which what hides a memory as judged hides what says the same, from another source."""
NEAR_DUPLICATE_RULE = "near-duplicate"
"""The rule by which a memory hides another that says the same."""


def active_supersessions(tx: Connection, summary_id: int) -> list[Supersession]:
    """The supersessions of this memory that hold now, whether it hides or is hidden."""
    return [one for one in links.supersessions_of(tx, summary_id) if one.undone_at is None]


def hide(  # noqa: PLR0913  # one argument a column
    tx: Connection,
    newer_id: int,
    older_id: int,
    rule: str,
    guard: str,
    now: int,
    *,
    voice: Authority | None = None,
    cosine: float | None = None,
    otherwise: EdgeType = EdgeType.CONTRADICTS,
) -> int | None:
    """Let `newer` hide `older`, if `voice` may; the supersession's id.

    `voice` says so; without it, the newer memory does. None if the authority is too weak, and then they have
    an edge of type `otherwise`; or if `older` is hidden already or would hide itself through others.
    """
    newer, older = summaries.get_summary(tx, newer_id), summaries.get_summary(tx, older_id)
    if newer is None or older is None or newer.rejected_at is not None:
        return None
    objection = find_objection(
        voice or newer.authority, older, newer.author if voice is None else ""
    )
    if objection is None and voice is None and rule != NEAR_DUPLICATE_RULE:
        objection = find_quoted_objection(newer, older)
    if objection is not None:
        relate(tx, newer_id, otherwise, older_id, rule, now, finding=objection.words, because=guard)
        return None
    return links.supersede(
        tx, newer_id=newer_id, older_id=older_id, rule=rule, cosine=cosine, guard=guard, at=now
    )


def find_quoted_objection(newer: Summary, older: Summary) -> Objection | None:
    """Return why a note that is not proved does not replace one whose quote the user typed; None if its own quote ends that."""
    note, heard = split_note(newer.body), split_note(older.body).heard
    if newer.authority >= Authority.USER_TOLD or not heard:
        return None
    ends = note.heard and (
        turns_words(note.heard, note.text, heard) or changes_sentence(heard, note.heard)
    )
    return None if ends else Objection("speaker", "what it quotes does not end what the user said")


def supersession_authority(tx: Connection, past: Supersession) -> Authority:
    """Return the authority of a supersession: of who judged the pair, else of the newer memory."""
    if past.rule == JUDGED_RULE:
        judgment = judgments.judgment_between(tx, past.newer_id, past.older_id)
        return authority_of(judgment.who) if judgment else Authority.AGENT_CALL
    if past.rule == TWIN_RULE:
        of_newer = judgments.judgments_of(tx, past.newer_id)
        who = next((one.who for one in of_newer if one.at == past.at), "agent")
        return authority_of(who)
    newer = summaries.get_summary(tx, past.newer_id)
    return newer.authority if newer else Authority.TOOL_OUTPUT


def show(tx: Connection, summary_id: int, now: int) -> list[Supersession]:
    """Undo the supersessions that hide this memory; the caller has asked whether it may."""
    hiding = find_hiding(tx, summary_id)
    for one in hiding:
        links.undo_supersession(tx, one.id, now)
    return hiding


def find_hiding(tx: Connection, summary_id: int) -> list[Supersession]:
    """The supersessions that hide this memory now."""
    return [one for one in active_supersessions(tx, summary_id) if one.older_id == summary_id]


def may_revive(tx: Connection, voice: Authority, known: Summary) -> bool:
    """Return whether this authority, saying a hidden memory again, may show it.

    Not what a greater speaker has said and replaced, and not what a greater one has judged. What only a
    greater statement hides returns beside it, as the contradiction that it is.
    """
    if voice < known.authority:
        return False
    judged = (one for one in find_hiding(tx, known.id) if one.rule in (JUDGED_RULE, TWIN_RULE))
    return all(voice >= supersession_authority(tx, one) for one in judged)


def repeat(
    tx: Connection, known: Summary, voice: Authority, now: int, body: str | None = None
) -> None:
    """Count that this authority says a memory again. A greater authority than any before makes it its own.

    `body` is what it says; it then stands before what the others said.
    """
    summaries.strengthen_summary(tx, known.id, now if voice >= known.authority else None)
    if voice > known.authority:
        said = known.body
        if body is not None and body not in said:
            said = "\n".join((body, *(line for line in said.splitlines() if line not in body)))
        summaries.raise_authority(tx, known, voice, said, now)


def pin(tx: Connection, summary: Summary, voice: Authority, now: int) -> None:
    """Pin a memory, or let a greater authority pin what is pinned; it keeps its time."""
    if summary.pinned_by is None or voice > summary.pinned_by:
        summaries.pin_summary(tx, summary.id, summary.pinned_at or now, voice)


def unpin(tx: Connection, summary: Summary, voice: Authority) -> None:
    """Unpin a memory. BadRequest if a greater authority has pinned it."""
    if summary.pinned_by is not None and voice < summary.pinned_by:
        raise BadRequest(
            f"#{summary.id} was pinned by {summary.pinned_by.description}; only the user unpins it:"
            f" `memd pin --off {summary.id}`"
        )
    summaries.pin_summary(tx, summary.id, None)


def relate(  # noqa: PLR0913  # one argument a column
    tx: Connection,
    newer_id: int,
    type_: EdgeType,
    older_id: int,
    rule: str,
    now: int,
    *,
    confidence: float = 1.0,
    **detail: object,
) -> bool:
    """Add an edge between two memories; return False if there was one."""
    edge = links.NewEdge(
        "summary", str(newer_id), type_, "summary", str(older_id), rule, now, confidence, detail
    )
    return links.add_edges(tx, [edge]) > 0


def prove_note(tx: Connection, note: Summary, body: str, proof: Proof, now: int) -> None:
    """Raise an agent's note to the user's word, with the words that prove it in its body."""
    summaries.raise_authority(tx, note, Authority.USER_TOLD, body, now)
    links.add_edges(tx, [make_proof_edge(note.id, proof)])


def mark_note(tx: Connection, note: Summary, body: str, now: int) -> None:
    """Put into an agent's note what is known of the words that do not prove it."""
    summaries.raise_authority(tx, note, note.authority, body, now)


def make_proof_edge(number: int, proof: Proof) -> links.NewEdge:
    """The edge from a note to the event in which the user said the words that prove it."""
    about = {"about": proof.about, "about_event": proof.about_event_id} if proof.about else {}
    return _make_quote_edge(number, proof, NOTED, Authority.USER_PROMPT, **about)


def make_stood_edge(number: int, found: Backing) -> links.NewEdge:
    """The edge from a note to the agent's own words, which the user let stand."""
    return _make_quote_edge(number, found, STOOD_RULE, Authority.AGENT_TEXT)


def _make_quote_edge(
    number: int, found: Proof | Backing, rule: str, voice: Authority, **detail: object
) -> links.NewEdge:
    return links.NewEdge(
        "summary", str(number), EdgeType.DERIVES_FROM, "event", str(found.event_id), rule, found.at,
        detail={"quote": found.quote, "authority": voice.code, **detail},
    )  # fmt: skip


def drop_contradiction(tx: Connection, newer_id: int, older_id: int, rule: str) -> None:
    """Drop the contradiction that a rule found between two memories."""
    newer, older = ("summary", str(newer_id)), ("summary", str(older_id))
    links.drop_edge(tx, newer, EdgeType.CONTRADICTS, older, rule)


# ── A new statement replaces those to whose value it gives another ───────────────────────────────


_SIMILAR_MAX = 8
"""Memories with which a new statement is compared; each takes about a millisecond."""
_STEMS_MAX = 60


def find_similar(
    tx: Connection, projects: Sequence[int], kinds: Iterable[Kind], title: str, body: str
) -> list[Summary]:
    """The live memories of some projects that share most words with this statement, the most alike first."""
    stems = dict.fromkeys(content_stems(f"{title}\n{statement_text(title, body)}"))
    # `go with Valkey, not Redis` shares the one word with `use Redis for the cache`.
    keys = [one for one in stems if one not in CHOICE_WORDS][:_STEMS_MAX] or list(stems)
    # `move the docs to GitHub Pages` shares the thing alone with `keep the docs on Netlify`.
    claims = parse_statement(title, body)
    # `we moved off Redis, and Valkey is much faster` shares what it ends.
    named = (name_placed(claims), *name_ended(claims))
    others = (list(dict.fromkeys(content_stems(one))) for one in named)
    ids: dict[int, None] = {}
    for some in filter(None, (keys, *others)):
        ids |= dict.fromkeys(
            summaries.ids_sharing_most_keys(tx, projects, tuple(kinds), some, limit=_SIMILAR_MAX)
        )
    found = summaries.summaries_by_ids(tx, list(ids)) if ids else {}
    return [found[number] for number in ids]


def find_equal(
    tx: Connection, projects: Sequence[int], kind: Kind, title: str, body: str
) -> list[Summary]:
    """The live memories of these projects and of this kind that state the same, no more and no less."""
    mine = parse_statement(title, body)
    found = []
    for other in find_similar(tx, projects, (kind,), title, body):
        theirs = parse_statement(other.title, other.body)
        # The comparison costs ten times as much.
        is_alike = not other.author and mine.content_keys == theirs.content_keys
        if is_alike and compare_claims(theirs, mine).is_equal:
            found.append(other)
    return found


def find_twins(tx: Connection, memory: Summary) -> list[Summary]:
    """The live memories of its project that say the same as a memory: notes of the same words, or equal statements."""
    similar = find_similar(tx, (memory.project_id,), VALUE_KINDS, memory.title, memory.body)
    sources = links.sources_of(tx, memory.id)
    beside = [number for event, _ in sources for number in links.derived_from(tx, event)]
    known = {one.id: one for one in similar} | summaries.summaries_by_ids(tx, beside)
    mine = memory.title, memory.body
    return [
        one
        for one in known.values()
        if one.id != memory.id
        and one.kind in VALUE_KINDS
        and one.superseded_by is None
        and holds_alike(one.tags, memory.tags)
        and are_twins(mine, (one.title, one.body))
    ]


def settle_changed_values(
    tx: Connection, mine: Summary, others: Sequence[Summary], now: int
) -> tuple[int, ...]:
    """Let a new memory replace those whose value it changes; the ids of those that it hides.

    What was said later replaces what was said before, whichever was written first. Where the later one
    may not replace the other, or would lose a part of it, an edge says that the two contradict each other.
    """
    hidden = []
    changed = (other for other in others if _is_changed(mine, other))
    for decision in decide(CandidatePair(mine, other, None) for other in changed):
        if decision.change is None or is_judged(tx, *decision.pair):
            continue
        newer_id, older_id = decision.pair
        if decision.type is not EdgeType.SUPERSEDES:
            relate(
                tx, newer_id, EdgeType.CONTRADICTS, older_id, CHANGED_VALUE_RULE, now,
                reason=decision.reason,
            )  # fmt: skip
        elif hide(tx, newer_id, older_id, CHANGED_VALUE_RULE, decision.reason, now) is not None:
            hidden += [older_id] if newer_id == mine.id else []
            older = next(one for one in (mine, *others) if one.id == older_id)
            for twin in (one for one in find_twins(tx, older) if one.id != newer_id):
                hide(tx, newer_id, twin.id, CHANGED_VALUE_RULE, decision.reason, now)
    return tuple(hidden)


def find_changed(tx: Connection, mine: Summary) -> set[tuple[int, int]]:
    """Pairs of this memory and another of which one changes a value of the other, the smaller id first."""
    if mine.kind not in VALUE_KINDS:
        return set()
    similar = find_similar(tx, (mine.project_id,), VALUE_KINDS, mine.title, mine.body)
    return {
        (min(mine.id, other.id), max(mine.id, other.id))
        for other in similar
        if _is_changed(mine, other)
    }


def _is_changed(one: Summary, other: Summary) -> bool:
    """Return whether the later one of two memories changes a value of the earlier one."""
    older, newer = sorted((one, other), key=lambda memory: (memory.at, memory.id))
    return one.id != other.id and find_change(newer, older) is not None


def is_judged(tx: Connection, one: int, other: int) -> bool:
    """Return whether this pair was judged, or a decision about it was undone."""
    if judgments.stance_between(tx, one, other) is not None:
        return True
    return any(
        past.undone_at is not None and {past.newer_id, past.older_id} == {one, other}
        for past in links.supersessions_of(tx, one)
    )


# ── How long a proposal of the agent's stood ─────────────────────────────────────────────────────


_UNDOES = re.compile(r"\bgit\s+(?:revert|reset\s+--hard|restore|checkout\s+--)(?=\s|$)")
_COMMITS = re.compile(r"\bgit\b[^|;&]*\bcommit\b")


def describe_standing(tx: Connection, proposal: str, event_id: int) -> str:
    """Describe how long the user let a proposal stand, or objected to or undid since; empty if it is not here."""
    event = events.events_by_ids(tx, [event_id]).get(event_id)
    if event is None:
        return ""
    prompts = [
        str(one.payload.get("prompt", ""))
        for one in events.spoken_record(tx, event.session_id)
        if one.kind is EventKind.PROMPT and (one.at, one.id) > (event.at, event.id)
    ]
    if turned := find_contradiction(proposal, prompts):
        return f"the agent proposed it, and the user contradicted: “{one_line(turned, 120)}”"
    commands = events.commands_since(tx, event.session_id, event.at)
    if any(_UNDOES.search(command) for command in commands):
        return "the agent proposed it, and it was undone later"
    built = " and a commit" if any(_COMMITS.search(command) for command in commands) else ""
    return f"the agent proposed it, and it stood for {count_turns(len(prompts))}{built}"

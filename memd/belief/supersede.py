"""Hide, show again, strengthen and pin memories: only by who may do that, and nowhere else.

Every path that replaces something comes through here: distilling, remembering, consolidating, judging,
merging projects, reading a file again, importing. Where the authority is too weak, nothing is hidden: an edge
relates the two, both stay visible, and it is for the user to judge.
"""

from memd.belief.authority import authority_of, find_objection
from memd.belief.proof import Backing, Proof
from memd.errors import BadRequest
from memd.models import NOTED, Authority, EdgeType, Summary, Supersession
from memd.store import judgments, links, summaries
from memd.store.database import Connection

STOOD_RULE = "stood"
"""The rule of the edge from a note to a proposal of the agent's that the user let stand."""
JUDGED_RULE = "judged"
"""The rule of the supersessions and edges that a judgment writes."""
SAID_AGAIN_RULE = "said-again"
"""The rule by which a value that returns hides what had been judged to replace it."""
TOPIC_KEY_RULE = "topic-key"
"""The rule by which the value of a topic that was said last hides the others."""
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
    if objection is not None:
        relate(tx, newer_id, otherwise, older_id, rule, now, finding=objection.words, because=guard)
        return None
    return links.supersede(
        tx, newer_id=newer_id, older_id=older_id, rule=rule, cosine=cosine, guard=guard, at=now
    )


def supersession_authority(tx: Connection, past: Supersession) -> Authority:
    """Return the authority of a supersession: of who judged the pair, else of the newer memory."""
    if past.rule == JUDGED_RULE:
        judgment = judgments.judgment_between(tx, past.newer_id, past.older_id)
        return authority_of(judgment.who) if judgment else Authority.AGENT_CALL
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
    judged = (one for one in find_hiding(tx, known.id) if one.rule == JUDGED_RULE)
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


def make_proof_edge(number: int, proof: Proof) -> links.NewEdge:
    """The edge from a note to the event in which the user said the words that prove it."""
    detail: dict[str, object] = {"quote": proof.quote, "authority": Authority.USER_PROMPT.code}
    if proof.about:
        detail |= {"about": proof.about, "about_event": proof.about_event_id}
    start, end = ("summary", str(number)), ("event", str(proof.event_id))
    return links.NewEdge(*start, EdgeType.DERIVES_FROM, *end, NOTED, proof.at, detail=detail)


def make_stood_edge(number: int, found: Backing) -> links.NewEdge:
    """The edge from a note to the agent's own words, which the user let stand."""
    detail = {"quote": found.quote, "authority": Authority.AGENT_TEXT.code}
    start, end = ("summary", str(number)), ("event", str(found.event_id))
    return links.NewEdge(*start, EdgeType.DERIVES_FROM, *end, STOOD_RULE, found.at, detail=detail)


def drop_contradiction(tx: Connection, newer_id: int, older_id: int, rule: str) -> None:
    """Drop the contradiction that a rule found between two memories."""
    newer, older = ("summary", str(newer_id)), ("summary", str(older_id))
    links.drop_edge(tx, newer, EdgeType.CONTRADICTS, older, rule)

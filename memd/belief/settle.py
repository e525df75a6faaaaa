"""Let a new statement replace those to whose value it gives another, as soon as it is written.

Consolidation does the same for what it finds later; both ask `memd.belief.decide`.
"""

from collections.abc import Iterable, Sequence

from memd.belief.changes import CHANGED_VALUE_RULE, find_value_change
from memd.belief.claims import Claims, parse_claims, statement_text
from memd.belief.compare import compare_claims
from memd.belief.decide import VALUE_KINDS, CandidatePair, decide
from memd.belief.supersede import hide, relate
from memd.caches import cached
from memd.models import EdgeType, Kind, Summary
from memd.store import judgments, links, summaries
from memd.store.database import Connection
from memd.text import content_stems

_SIMILAR_MAX = 8
"""Memories with which a new statement is compared; each takes about a millisecond."""
_STEMS_MAX = 60
_PARSED_MAX = 64
"""Statements that are kept parsed: one is compared with several in a row."""


def find_similar(
    tx: Connection, project_id: int, kinds: Iterable[Kind], title: str, body: str
) -> list[Summary]:
    """The live memories of a project that share most words with this statement, the most alike first."""
    stems = dict.fromkeys(content_stems(f"{title}\n{statement_text(title, body)}"))
    keys = list(stems)[:_STEMS_MAX]
    ids = summaries.ids_sharing_most_keys(tx, project_id, tuple(kinds), keys, limit=_SIMILAR_MAX)
    found = summaries.summaries_by_ids(tx, ids) if ids else {}
    return [found[number] for number in ids]


def find_equal(tx: Connection, project_id: int, kind: Kind, title: str, body: str) -> list[Summary]:
    """The live memories of this project and kind that state the same, no more and no less."""
    mine = _parse_statement(title, body)
    content = {token.key for token in mine.tokens if token.has_content}
    found = []
    for other in find_similar(tx, project_id, (kind,), title, body):
        theirs = _parse_statement(other.title, other.body)
        # The comparison costs ten times as much.
        is_alike = not other.author and content == {
            token.key for token in theirs.tokens if token.has_content
        }
        if is_alike and compare_claims(theirs, mine).is_equal:
            found.append(other)
    return found


@cached(_PARSED_MAX)
def _parse_statement(title: str, body: str) -> Claims:
    return parse_claims(statement_text(title, body))


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
    return tuple(hidden)


def find_changed(tx: Connection, mine: Summary) -> set[tuple[int, int]]:
    """Pairs of this memory and another of which one changes a value of the other, the smaller id first."""
    if mine.kind not in VALUE_KINDS:
        return set()
    similar = find_similar(tx, mine.project_id, VALUE_KINDS, mine.title, mine.body)
    return {
        (min(mine.id, other.id), max(mine.id, other.id))
        for other in similar
        if _is_changed(mine, other)
    }


def _is_changed(one: Summary, other: Summary) -> bool:
    """Return whether the later one of two memories changes a value of the earlier one."""
    older, newer = sorted((one, other), key=lambda memory: (memory.at, memory.id))
    if one.id == other.id or not {one.kind, other.kind} <= VALUE_KINDS:
        return False
    parsed = (_parse_statement(memory.title, memory.body) for memory in (older, newer))
    return find_value_change(*parsed) is not None


def is_judged(tx: Connection, one: int, other: int) -> bool:
    """Return whether this pair was judged, or a decision about it was undone."""
    if judgments.stance_between(tx, one, other) is not None:
        return True
    return any(
        past.undone_at is not None and {past.newer_id, past.older_id} == {one, other}
        for past in links.supersessions_of(tx, one)
    )

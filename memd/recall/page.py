"""The hits of one page, fetched from the vault. Knows no ranking."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from memd.models import Project, Session, Summary
from memd.recall.answer import Hit, Part, apply_parts
from memd.recall.pack import snippet
from memd.recall.query import Query
from memd.recall.rank import Scored
from memd.store import fulltext, links, projects, summaries
from memd.store.database import Connection


def known(value: float) -> float | None:
    """The value, or None for NaN."""
    return None if math.isnan(value) else float(value)


def hits(
    tx: Connection,
    query: Query,
    scored: Scored,
    passage_ids: Sequence[int],
    page: Mapping[int, int],
) -> tuple[Hit, ...]:
    """A hit for each entry of `page`: summary id → index of the candidate, in the order to be shown."""
    rows = links.flattened(tx, summaries.by_ids(tx, list(page)))
    beside = look_beside(tx, rows.values(), [passage_ids[i] for i in page.values()])
    ranks = {leg: ranking.ranks(len(scored.rows)) for leg, ranking in scored.rankings.items()}
    found = []
    for number, i in page.items():
        standing = {leg: int(values[i]) for leg, values in ranks.items() if values[i]}
        measured = Measured(standing, known(scored.cosines[i]), known(scored.recency[i]))
        told = hit(query, rows[number], passage_ids[i], scored.parts(i), beside, measured)
        found.append(told)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands beside the summaries of a page, each by its id."""

    spans: Mapping[int, tuple[int, int]]
    projects: Mapping[int, Project | None]
    sessions: Mapping[int, Session]


def look_beside(
    tx: Connection, rows: Collection[Summary], passage_ids: Sequence[int]
) -> Beside:
    """Fetch what the hits of a page need, all of them at once."""
    return Beside(
        fulltext.spans(tx, passage_ids),
        {number: projects.project(tx, number) for number in {s.project_id for s in rows}},
        projects.sessions(tx, {s.session_id for s in rows if s.session_id}),
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """Where a hit stands in each leg that found it, and how near and recent it is, as far as known."""

    ranks: Mapping[str, int] = field(default_factory=dict)
    cosine: float | None = None
    recency: float | None = None


_UNMEASURED = Measured()


def hit(  # all that a hit is made of
    query: Query,
    summary: Summary,
    passage_id: int,
    parts: tuple[Part, ...],
    beside: Beside,
    measured: Measured = _UNMEASURED,
) -> Hit:
    """A summary as a hit by one of its passages."""
    start, stop = beside.spans.get(passage_id, (0, len(summary.body)))
    project = beside.projects.get(summary.project_id)
    session = beside.sessions.get(summary.session_id or 0)
    return Hit(
        summary=summary,
        project=project.name if project else "",
        session_title=session.title if session else None,
        snippet=snippet(summary.title, summary.body[start:stop], query),
        score=apply_parts(parts),
        parts=parts,
        channels=tuple(measured.ranks),
        lexical_rank=measured.ranks.get("lexical"),
        vector_rank=measured.ranks.get("vector"),
        topic_rank=measured.ranks.get("topic"),
        cosine=measured.cosine,
        recency=measured.recency,
    )

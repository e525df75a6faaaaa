"""The hits of one page, fetched from the vault. Knows no ranking."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from memd.models import Summary
from memd.recall.answer import Hit, Part, apply_parts
from memd.recall.pack import snippet
from memd.recall.query import Query
from memd.recall.rank import Scored
from memd.store import fulltext, projects, summaries
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
    rows = summaries.by_ids(tx, list(page))
    ranks = {leg: ranking.ranks(len(scored.rows)) for leg, ranking in scored.rankings.items()}
    found = []
    for number, i in page.items():
        standing = {leg: int(values[i]) for leg, values in ranks.items() if values[i]}
        found.append(
            replace(
                hit(tx, query, rows[number], passage_ids[i], scored.parts(i)),
                channels=tuple(standing),
                lexical_rank=standing.get("lexical"),
                vector_rank=standing.get("vector"),
                topic_rank=standing.get("topic"),
                cosine=known(scored.cosines[i]),
                recency=known(scored.recency[i]),
            )
        )
    return tuple(found)


def hit(
    tx: Connection, query: Query, summary: Summary, passage_id: int, parts: tuple[Part, ...]
) -> Hit:
    """A summary as a hit by one of its passages; ranks are left open."""
    start, stop = fulltext.spans(tx, [passage_id]).get(passage_id, (0, len(summary.body)))
    project = projects.project(tx, summary.project_id)
    session = projects.session(tx, summary.session_id) if summary.session_id else None
    return Hit(
        summary=summary,
        project=project.name if project else "",
        session_title=session.title if session else None,
        snippet=snippet(summary.title, summary.body[start:stop], query),
        score=apply_parts(parts),
        parts=parts,
        channels=(),
    )

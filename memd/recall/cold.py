"""The answer while the shelf is being loaded, or is doubted: FTS5 alone, and it says so.

Not here: profiles, signals, vectors. The next second's answer has them.
"""

from dataclasses import replace

from memd.models import Summary
from memd.recall.answer import Answer, Part, Question
from memd.recall.asked import Asked
from memd.recall.page import hit, look_beside
from memd.recall.query import fts_expression
from memd.store import fulltext, summaries
from memd.store.database import Connection

_PASSAGES_PER_HIT = 20


def answer(tx: Connection, asked: Asked, why: str = "") -> Answer:
    """The summaries that full text ranks best, filtered as the question asks; `why` it alone answers."""
    expression = fts_expression(asked.query)
    limit = _PASSAGES_PER_HIT * asked.profile.pool
    found = fulltext.match(tx, expression, limit) if expression else []
    owners = fulltext.owners(tx, [passage_id for passage_id, _ in found])
    best: dict[int, tuple[int, float]] = {}
    for passage_id, bm25 in found:
        best.setdefault(owners[passage_id], (passage_id, bm25))
    rows = summaries.by_ids(tx, list(best))
    kept = [number for number in best if is_wanted(rows[number], asked.question)]
    page = range(asked.question.offset, min(asked.last, len(kept)))
    beside = look_beside(tx, rows.values(), [best[kept[rank]][0] for rank in page])
    hits = []
    for rank in page:
        passage_id, bm25 = best[kept[rank]]
        shown = hit(asked.query, rows[kept[rank]], passage_id, (Part("bm25", bm25),), beside)
        hits.append(replace(shown, channels=("lexical",), lexical_rank=rank + 1))
    return Answer(
        hits=tuple(hits),
        profile=asked.profile_name,
        space=None,
        took_ms=0.0,
        candidates=len(kept),
        degraded={
            **asked.degraded,
            "index": f"{why or 'still loading'}; full text answered alone",
        },
        notes=asked.notes if hits else (),
    )


def is_wanted(summary: Summary, question: Question) -> bool:
    """Whether a summary passes the question's filters; `legs.masks` tells it for the shelf."""
    q = question
    return (
        (q.project_ids is None or summary.project_id in q.project_ids)
        and (not q.kinds or summary.kind in q.kinds)
        and (q.session_id is None or summary.session_id == q.session_id)
        and (q.source is None or summary.source == q.source)
        and _is_in_time(summary, q)
        and set(q.tags) <= set(summary.tags)
        and (q.include_superseded or summary.superseded_by is None)
    )


def _is_in_time(summary: Summary, q: Question) -> bool:
    bounds = (q.until, q.as_of)
    return (
        (q.since is None or summary.at >= q.since)
        and all(bound is None or summary.at <= bound for bound in bounds)
        and (summary.expires_at is None or summary.expires_at > q.now)
    )

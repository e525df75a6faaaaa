"""Answers while the index loads: SQLite's full-text search alone, without a profile."""

from dataclasses import replace

from memd.recall.hits import fetch_page_data, make_hit
from memd.recall.query import ParsedQuery, fts_expression
from memd.recall.types import Answer, ScorePart
from memd.store import fulltext, summaries
from memd.store.database import Connection

_PASSAGES_PER_HIT = 20


def search_fulltext(tx: Connection, asked: ParsedQuery) -> Answer:
    """The wanted summaries that FTS5 ranks best."""
    expression = fts_expression(asked.query)
    limit = _PASSAGES_PER_HIT * asked.profile.pool
    found = fulltext.match_passages(tx, expression, limit) if expression else []
    owners = fulltext.passage_owners(tx, [passage_id for passage_id, _ in found])
    best: dict[int, tuple[int, float]] = {}
    for passage_id, bm25 in found:
        best.setdefault(owners[passage_id], (passage_id, bm25))
    rows = summaries.summaries_by_ids(tx, list(best))
    heads = summaries.summary_heads(tx, list(best))
    wanted = asked.question.filter
    kept = [
        number
        for number in best
        if wanted.matches(rows[number])
        and not wanted.was_superseded(heads[number].superseded_at)
    ]
    page = range(asked.question.offset, min(asked.last, len(kept)))
    beside = fetch_page_data(tx, rows.values(), [best[kept[rank]][0] for rank in page])
    hits = []
    for rank in page:
        passage_id, bm25 = best[kept[rank]]
        shown = make_hit(
            asked.query, rows[kept[rank]], passage_id, (ScorePart("bm25", bm25),), beside
        )
        hits.append(replace(shown, channels=("lexical",), lexical_rank=rank + 1))
    return Answer(
        hits=tuple(hits),
        profile=asked.profile_name,
        space=None,
        took_ms=0.0,
        candidates=len(kept),
        degraded={
            **asked.degraded,
            "index": "still loading; full text answered alone",
        },
        notes=asked.notes if hits else (),
    )

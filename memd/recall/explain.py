"""The trace of an explained search: every candidate, then what matches and was not to be seen.

Near misses are superseded, expired or left out by a filter. Nothing later than `as_of` and nothing of
another project is among them: the explanation shows no memory that the question must not see.
"""

from collections.abc import Collection

import numpy as np

from memd.recall.hits import CandidateOrder, none_if_nan
from memd.recall.query import ParsedQuery
from memd.recall.ranking import ScoredCandidates
from memd.recall.retrievers import IndexedQuery, Scores, first_row_per_summary, sort_rows
from memd.recall.types import TracedCandidate, apply_parts
from memd.store import summaries
from memd.store.database import Connection
from memd.text import one_line

NEAR_MISSES_MAX = 20
_TITLE_CHARACTERS_MAX = 90


def find_terms(query: IndexedQuery, row: int) -> tuple[str, ...]:
    """The terms of the question that a row has."""
    found = query.index.postings.terms_in(row, query.terms.numbers)
    return tuple(query.index.vocabulary.term(number) or "?" for number in found)


def trace_near_misses(
    tx: Connection, query: IndexedQuery, scores: Scores, candidates: Collection[int]
) -> list[TracedCandidate]:
    """The 20 that match best by their words, best first, with no score; `candidates` are summary ids."""
    index, question = query.index, query.parsed.question
    chosen = question.filter.chosen(index.columns)
    known = question.filter.known(index.columns)
    rows = np.flatnonzero(known & ~query.visible.wanted & (scores > 0))
    best_first = rows[sort_rows(index, rows, scores[rows])]
    firsts = first_row_per_summary(index, best_first).tolist()
    numbered = ((int(index.columns.summary_id[row]), row) for row in firsts)
    missed = [(number, row) for number, row in numbered if number not in candidates]
    missed = missed[:NEAR_MISSES_MAX]
    heads = summaries.summary_heads(tx, [number for number, _ in missed])
    traced = []
    for number, row in missed:
        if (head := heads.get(number)) is None:
            continue
        criteria = [name for name, mask in chosen.items() if not mask[row]]
        if criteria:
            verdict = f"filtered: {', '.join(criteria)}"
        elif index.columns.expires_at[row] <= question.now:
            verdict = "expired"
        elif head.superseded_by is not None:
            verdict = f"superseded by #{head.superseded_by}"
        else:
            verdict = "archived"
        traced.append(
            TracedCandidate(
                summary_id=number,
                title=one_line(head.title, _TITLE_CHARACTERS_MAX),
                score=0.0,
                parts=(),
                ranks={},
                cosine=None,
                terms=find_terms(query, row),
                verdict=verdict,
            )
        )
    return traced


def trace_candidates(
    parsed: ParsedQuery,
    candidates: ScoredCandidates,
    order: CandidateOrder,
    terms: list[tuple[str, ...]],
) -> list[TracedCandidate]:
    """Every candidate in the order of the answer, then the dropped ones; `terms` of each candidate."""
    all_ranks = candidates.ranks()
    place = {number: i for i, number in enumerate(candidates.ids)}
    in_order = set(order.ids)
    dropped = [number for number in candidates.ids if number not in in_order]
    traced = []
    for position, number in enumerate([*order.ids, *dropped]):
        i, head = place[number], order.heads.get(number)
        is_hit = parsed.question.offset <= position < min(parsed.page_end, len(order.ids))
        moved = order.dropped.get(number) or order.demoted.get(number)
        verdict = moved or f"rank {position + 1}"
        if is_hit:
            verdict = f"hit; {moved}" if moved else "hit"
        parts = candidates.parts(i)
        traced.append(
            TracedCandidate(
                summary_id=number,
                title=one_line(head.title, _TITLE_CHARACTERS_MAX) if head else "",
                score=apply_parts(parts),
                parts=parts,
                ranks={name: int(values[i]) for name, values in all_ranks.items() if values[i]},
                cosine=none_if_nan(candidates.cosines[i]),
                terms=terms[i],
                verdict=verdict,
            )
        )
    return traced

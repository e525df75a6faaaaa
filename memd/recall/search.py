"""One search in one read transaction: by the index, or by full text alone while the index loads.

    look up     the question's words, phrases and literals in the index; the rows that it may see      lookup, retrievers
    retrieve    the best rows by topic key, by words, by vectors of one or two spaces                  retrievers, semantic
    rank        their union: own scores or ranks fused, then the profile's steps one by one            ranking, signals
                (words in context: likelihood; a formula over the texts, focus, boosts: rerank)
    what holds  lift a memory above the one that it replaces or has authority over                    precedence
    order       drop what is hidden, below a threshold or said twice; one hit of each turn first       hits
    page        titles, snippets and remarks of `k` hits; with `explain` a trace of all others         hits

The recaller parses the question before and judges the answer after (verdict). The index's lock is held throughout.
"""

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memd.errors import VaultError
from memd.index.columns import KIND_CODES
from memd.index.memory_index import MemoryIndex
from memd.recall import (
    Answer,
    Evidence,
    ScorePart,
    TracedCandidate,
    apply_parts,
    precedence,
    ranking,
    retrievers,
    semantic,
)
from memd.recall.hits import (
    CandidateOrder,
    Match,
    fetch_hits,
    make_hits,
    none_if_nan,
    order_candidates,
)
from memd.recall.likelihood import QueryLikelihood
from memd.recall.lookup import describe_corrections, find_compounds, find_literals, find_phrases
from memd.recall.precedence import Precedence, Relations
from memd.recall.query import ParsedQuery, QueryVector, fts_expression
from memd.recall.ranking import CandidateFacts, Retrieved, ScoredCandidates
from memd.recall.retrievers import (
    NO_ROWS,
    NO_SCORES,
    Floats,
    IndexedQuery,
    Rows,
    Scores,
    first_row_per_summary,
    sort_rows,
)
from memd.recall.verdict import Coverage, compute_coverage
from memd.store import fulltext, judgments, links, summaries, usage
from memd.store.database import Connection, translate_errors
from memd.text import fold, one_line

NEAR_MISSES_MAX = 20
_TITLE_CHARACTERS_MAX = 90
_FULLTEXT_PASSAGES_PER_HIT = 20
_TOO_FAR = "score too far below the best"
_BELOW = "score below"
"""Reason shown for a candidate below `min_score`, which is appended."""


def search_index(tx: Connection, index: MemoryIndex, parsed: ParsedQuery) -> Answer:
    """Answer a question; the caller sets `took_ms`."""
    passages = find_phrases(tx, parsed.terms)
    if parsed.question.relevance_gate is None:
        passages += find_literals(tx, parsed.terms)
        passages += find_compounds(tx, parsed.terms)
    with index.lock:
        return _answer_query(tx, retrievers.look_up_query(index, parsed, passages))


def _answer_query(tx: Connection, query: IndexedQuery) -> Answer:
    index, parsed, question = query.index, query.parsed, query.parsed.question
    found, spaces = _ask_retrievers(tx, query)
    candidates, in_order, relations, failed = _score_with_leading(tx, query, found)
    rows = candidates.rows
    counted = found.likelihood.find_terms(rows) if found.likelihood is not None else None
    coverage = compute_coverage(query, rows, counted)
    own_scores = candidates.scores_by_id()
    best_rows = rows[in_order]
    hidden = _count_hidden(query, found, best_rows[: parsed.k])
    near = retrievers.find_near_pairs(query, best_rows[: 2 * parsed.page_end])
    candidates = replace(candidates, coverage=coverage.shares)
    place = dict(zip(candidates.ids, range(len(rows)), strict=True))
    best = [candidates.ids[i] for i in in_order[: max(precedence.DEPTH, parsed.page_end)].tolist()]
    # What is told unasked has no time to read the texts.
    heads = {} if question.relevance_gate else summaries.summary_heads(tx, best)
    relations = precedence.join_twins(tx, relations, list(heads.values()))
    pairs, remarks = precedence.find_precedence(
        parsed,
        relations,
        [heads[n] for n in best if n in heads],
        place.keys(),
        lambda number: coverage.list_terms(place[number]),
    )
    scores, best_first = own_scores, index.columns.summary_id[best_rows].tolist()
    if pairs:
        candidates = _lift(candidates, pairs)
        scores = candidates.scores_by_id()
        best_first.sort(key=lambda number: -scores[number])
    order = order_candidates(tx, parsed, best_first, near, heads)
    order = _drop_below(order, question.min_score, candidates)
    if parsed.profile.diversity.jaccard is None:
        order = _sort_page(order, parsed, scores)
    page = {n: place[n] for n in order.ids[question.offset : parsed.page_end]}
    hits = fetch_hits(tx, parsed, candidates, page, remarks, order.alike)
    texts = (f"{hit.summary.title}\n{hit.summary.body}" for hit in hits)
    notes = (*parsed.notes, *describe_corrections(query.terms.corrected, texts))
    for reason in ("superseded", _BELOW, _TOO_FAR):
        if count := sum(why.startswith(reason) for why in order.dropped.values()):
            hidden[reason] = hidden.get(reason, 0) + count
    trace = (*_trace(tx, query, found, candidates, order),) if question.explain else ()
    degraded = _find_missing_vectors(index, parsed.hashing_vector)
    degraded |= {"rerank": failed} if failed else {}
    is_lifted = pairs and hits and not coverage.list_terms(place[hits[0].summary.id])
    return Answer(
        hits=hits,
        profile=parsed.profile_name,
        space=" + ".join(spaces) or None,
        candidates=len(candidates.ids) - len(order.dropped),
        suppressed=hidden,
        degraded={**degraded, **parsed.degraded},
        notes=notes if hits else (),
        trace=trace,
        contradicted={n: tuple(ids) for n in page if (ids := relations.against.get(n))},
        precedence=tuple(pairs),
        # A first hit that was lifted but has no term itself is judged by the scores before lifting.
        evidence=_gather_evidence(query, found, coverage, page, own_scores if is_lifted else {}),
    )


def _gather_evidence(
    query: IndexedQuery,
    found: Retrieved,
    coverage: Coverage,
    page: Mapping[int, int],
    own_scores: Mapping[int, float],
) -> Evidence:
    """Gather what the verdict on a page needs to know of a search; `page`: memory id → its place among the candidates."""
    return Evidence(
        text=query.parsed.terms.text,
        rarity=coverage.rarity,
        terms_of={n: coverage.list_terms(i) for n, i in page.items()},
        spelt_as=query.terms.spelt_as,
        has_phrases=bool(query.parsed.terms.phrases or query.parsed.terms.prefixes),
        corrected=query.terms.corrected,
        meant=_find_meant(query, found),
        may_be_meant=found.learned is not None and found.learned.may_be_meant,
        own_scores=own_scores,
    )


def _trace(
    tx: Connection,
    query: IndexedQuery,
    found: Retrieved,
    candidates: ScoredCandidates,
    order: CandidateOrder,
) -> list[TracedCandidate]:
    """Say of each candidate how it was scored, and why the others are not there."""
    terms = [find_terms(query, row) for row in candidates.rows.tolist()]
    traced = trace_candidates(query.parsed, candidates, order, terms)
    return traced + trace_near_misses(tx, query, found.lexical_scores, frozenset(candidates.ids))


def _score_with_leading(
    tx: Connection, query: IndexedQuery, found: Retrieved
) -> tuple[ScoredCandidates, NDArray[np.intp], Relations, str | None]:
    """Score the candidates and what comes before one of them, and sort them; also say why the vault could not be read, if so."""
    rows = ranking.collect_candidates(query, found)
    candidates, failed = _score(tx, query, found, rows)
    order = retrievers.sort_rows(query.index, rows, candidates.scores)
    depth = max(precedence.DEPTH, query.parsed.page_end)
    best = [candidates.ids[i] for i in order[:depth].tolist()]
    relations = precedence.read_relations(tx, query.parsed, best)
    if not (relations.values.replaced or relations.against):
        return candidates, order, relations, failed
    row_of = dict(zip(candidates.ids, rows.tolist(), strict=True))
    leading = relations.list_leading(
        # A memory may have set many values, and each asks for its terms.
        functools.cache(
            lambda number: frozenset(find_terms(query, row_of[number]) if number in row_of else ())
        )
    )
    if len(brought := _find_rows(query, found, leading - set(candidates.ids))):
        rows = np.concatenate([rows, brought])
        candidates, failed = _score(tx, query, found, rows)
        order = retrievers.sort_rows(query.index, rows, candidates.scores)
    return candidates, order, relations, failed


def _drop_below(
    order: CandidateOrder, least: float | None, candidates: ScoredCandidates
) -> CandidateOrder:
    """The order without what scores less than the question asks for, or than the profile's threshold."""
    low: dict[int, str] = {}
    if not candidates.is_passing.all():
        low |= dict.fromkeys(np.array(candidates.ids)[~candidates.is_passing].tolist(), _TOO_FAR)
    if least is not None:
        scores = candidates.scores_by_id()
        low |= {n: f"{_BELOW} {least:g}" for n in order.ids if scores[n] < least}
    low = {number: low[number] for number in order.ids if number in low}
    if not low:
        return order
    kept = [number for number in order.ids if number not in low]
    return replace(order, ids=kept, dropped={**order.dropped, **low})


def _lift(candidates: ScoredCandidates, pairs: Sequence[Precedence]) -> ScoredCandidates:
    """The candidates with the scores that precedence gives them."""
    lifts = precedence.compute_lifts(candidates.scores_by_id(), pairs)
    names = sorted({name for own in lifts.values() for name in own})
    steps = [
        (name, "+", np.array([lifts.get(n, {}).get(name, 0.0) for n in candidates.ids]))
        for name in names
    ]
    return candidates.with_steps(steps)


def _sort_page(
    order: CandidateOrder, parsed: ParsedQuery, scores: Mapping[int, float]
) -> CandidateOrder:
    """Sort the page by descending score: repeats of a turn went to later pages, and move no further within one."""
    first, last = parsed.question.offset, parsed.page_end
    page = sorted(order.ids[first:last], key=lambda number: -scores[number])
    if page == order.ids[first:last]:
        return order
    return replace(order, ids=[*order.ids[:first], *page, *order.ids[last:]])


def _score(
    tx: Connection, query: IndexedQuery, found: Retrieved, rows: Rows
) -> tuple[ScoredCandidates, str | None]:
    """Score the candidates; also return why the facts that the profile needs could not be read, if so."""
    facts = read_facts(tx, query.index.columns.summary_id[rows].tolist(), query.parsed)
    candidates = ranking.score_candidates(query, rows, found, facts)
    return _rerank_by_text(tx, query, candidates), facts.failed


def _find_rows(query: IndexedQuery, found: Retrieved, summary_ids: Collection[int]) -> Rows:
    """The row of each of these memories that matches best, of those that may be seen."""
    if not summary_ids:
        return NO_ROWS
    rows = query.index.columns.rows_of_any(sorted(summary_ids))
    rows = rows[query.visible.wanted[rows]]
    best = rows[np.argsort(-found.lexical_scores[rows], kind="stable")]
    return first_row_per_summary(query.index, best)


def _find_meant(query: IndexedQuery, found: Retrieved) -> frozenset[int] | None:
    hashing = query.parsed.hashing_vector
    if found.learned is not None:
        return frozenset(query.index.columns.summary_id[found.learned.meant].tolist())
    if found.compared is None or (hashing is not None and found.compared.space == hashing.space):
        return frozenset()
    return None


def _ask_retrievers(tx: Connection, query: IndexedQuery) -> tuple[Retrieved, Sequence[str]]:
    """Ask each retriever of the profile; also return the spaces whose vectors were compared."""
    index, parsed, visible = query.index, query.parsed, query.visible
    weights, pool = parsed.profile.legs, max(parsed.profile.pool, parsed.page_end)
    lexical_settings, likelihood = parsed.profile.lexical, None
    if lexical_settings.model == "likelihood":
        likelihood = QueryLikelihood(query, lexical_settings)
        scores = likelihood.score_rows()
    else:
        among = visible.context_rows.among
        scores = retrievers.score_words(index, query.terms, lexical_settings, among)
    lexical, topic = NO_ROWS, NO_ROWS
    if weights.get("lexical", 0.0) > 0:
        lexical = retrievers.best_rows(index, scores, visible, pool)
    if parsed.question.topic_key is not None and weights.get("topic", 0.0) > 0:
        numbers = summaries.ids_on_topic(tx, parsed.question.topic_key)
        topic = retrievers.find_topic(index, numbers, visible.wanted)[:pool]
    (vector, cosines), learned, compared = _compare_vectors(query, pool)
    spaces = [one.space for one in compared]
    found = Retrieved(
        lexical, scores, topic, vector, cosines, learned, likelihood,
        compared[0] if compared and not (learned is not None and learned.leads) else None,
    )  # fmt: skip
    return found, spaces


def _compare_vectors(
    query: IndexedQuery, pool: int
) -> tuple[tuple[Rows, Floats], semantic.LearnedMatch | None, Sequence[QueryVector]]:
    """Return the vector retriever's rows with cosines, the match in a learned space, and the vectors compared."""
    index, profile, mask = query.index, query.parsed.profile, query.visible.wanted
    if profile.vector_without:
        left_out = [KIND_CODES[kind.value] for kind in profile.vector_without]
        mask = mask & ~np.isin(index.columns.kind, left_out)
    given = query.parsed.hashing_vector
    if given is not None and profile.weigh_words and query.parsed.question.embedding is None:
        given = retrievers.weigh_by_rarity(query, given)
    # A space may have been dropped since the question was parsed: then it is ignored.
    hashing, learned = (
        vector if vector is not None and vector.space in index.matrices else None
        for vector in (given, query.parsed.learned_vector)
    )
    compared, match = hashing, None
    if learned is not None and profile.learned is not None:
        match = semantic.match_learned(index, learned, mask, profile.learned, pool, hashing)
        if match is not None and hashing is not None:
            match = semantic.find_misspelt(query, match, hashing, mask, pool)
        if match is not None and match.leads:
            return (match.rows, match.cosines), match, [learned]
    elif learned is not None and learned.space == index.active:
        compared = learned
    nearest = NO_ROWS, NO_SCORES
    if compared is not None:
        nearest = retrievers.find_nearest(query, compared, mask, pool)
    vectors = (compared, None if match is None else match.query)
    return nearest, match, [vector for vector in vectors if vector is not None]


def read_facts(tx: Connection, summary_ids: Sequence[int], parsed: ParsedQuery) -> CandidateFacts:
    """Read what the profile's steps need and the index does not have; a failure is stated in `failed`."""
    steps, as_of = parsed.profile.steps, parsed.question.as_of
    signals = {step.shape if step.signal == "recency" else step.signal for step in steps}
    if not summary_ids:
        return CandidateFacts()
    try:
        with translate_errors():
            has_uses = signals & {"half_life", "reinforcement"}
            uses = usage.uses_of(tx, summary_ids) if has_uses else {}
            # The time of a co-activation is not stored: with `as_of` it is ignored.
            has_pairs = "coactivation" in signals and as_of is None
            start = next((step.start for step in steps if step.start is not None), None)
            heads = summaries.summary_heads(tx, summary_ids) if "title_all" in signals else {}
            return CandidateFacts(
                uses={i: u for i, u in uses.items() if as_of is None or u.last_at <= as_of},
                together=usage.coactivations_of(tx, summary_ids) if has_pairs else {},
                entities=links.entities_of(tx, summary_ids) if "entity" in signals else {},
                confidences=judgments.confidences_from(tx, summary_ids, start) if start else {},
                titles={number: fold(head.title) for number, head in heads.items()},
            )
    except VaultError as error:
        return CandidateFacts(failed=error.message)


def _rerank_by_text(
    tx: Connection, query: IndexedQuery, candidates: ScoredCandidates
) -> ScoredCandidates:
    """Apply the steps that read the candidates' texts: `focus`, `boost` and `rerank = terms`."""
    parsed = query.parsed
    question, profile = parsed.question, parsed.profile
    boosts: list[tuple[Sequence[str], float, str]] = [
        ((pattern,), factor, "boost") for pattern, factor in question.boost
    ]
    if question.focus:
        boosts.append((question.focus, precedence.FOCUS_FACTOR, "focus"))
    if not candidates.ids or not (boosts or profile.rerank == "terms"):
        return candidates
    known = summaries.summaries_by_ids(tx, candidates.ids)
    found = [known.get(number) for number in candidates.ids]  # None: forgotten a moment ago
    if profile.rerank == "terms":
        spans = fulltext.passage_spans(tx, candidates.passage_ids)
        texts = [
            f"{one.title}\n{one.body[slice(*spans[passage_id])]}" if one else ""
            for one, passage_id in zip(found, candidates.passage_ids, strict=True)
        ]
        vocabulary, among = query.index.vocabulary, query.visible.context_rows.among
        idfs = {vocabulary.term(n) or "": among.idf(n) for n in query.terms.numbers}
        candidates = candidates.with_steps(
            precedence.rerank_by_terms(parsed.terms.text, idfs, texts, profile.reranking)
        )
    origins = links.origin_paths(tx, candidates.ids) if boosts else {}
    for patterns, factor, name in boosts:
        matching = [
            one is not None and precedence.matches_focus(one, patterns, origins.get(one.id, ()))
            for one in found
        ]
        factors = precedence.focus_factors(matching, candidates.scores, factor)
        candidates = candidates.with_steps([(name, "*", factors)])
    return candidates


def _find_missing_vectors(index: MemoryIndex, vector: QueryVector | None) -> dict[str, str]:
    """Explain why the hashing space is incomplete: after some starts, rows are loaded before their vectors."""
    if vector is None or vector.space not in index.matrices:
        return {}
    done, rows = index.counts(vector.space)
    if done >= rows:
        return {}
    return {"vector": f"{rows - done} of {rows} passages have no vector yet"}


def _count_hidden(query: IndexedQuery, found: Retrieved, best: Rows) -> dict[str, int]:
    """Count the hidden memories that match about as well as the best that are not."""
    if not query.visible.hidden:
        return {}
    scores = found.lexical_worth(best)
    matching = scores[scores > 0]
    weakest = min(float(matching.min()), float(matching.max()) / 2) if len(matching) else 0.0
    counts = {}
    for reason, hidden in query.visible.hidden.items():
        own = found.lexical_worth(hidden.rows)
        if count := hidden.count_summaries((own > 0) & (own >= weakest)):
            counts[reason] = count
    return counts


def search_fulltext(tx: Connection, parsed: ParsedQuery) -> Answer:
    """Answer by FTS5's own ranking, without the profile, while the index loads."""
    expression = fts_expression(parsed.terms, all_words=parsed.question.all_words)
    limit = _FULLTEXT_PASSAGES_PER_HIT * parsed.profile.pool
    passages = fulltext.match_passages(tx, expression, limit) if expression else []
    owners = fulltext.passage_owners(tx, [passage_id for passage_id, _ in passages])
    best: dict[int, tuple[int, float]] = {}
    for passage_id, bm25 in passages:
        best.setdefault(owners[passage_id], (passage_id, bm25))
    known = summaries.summaries_by_ids(tx, list(best))
    heads = summaries.summary_heads(tx, list(best))
    wanted = parsed.question.filter
    ids = [
        number
        for number in best
        if wanted.matches(known[number]) and not wanted.was_superseded(heads[number].superseded_at)
    ]
    offset = parsed.question.offset
    matches = [
        Match(known[n], best[n][0], (ScorePart("bm25", best[n][1]),), {"lexical": rank})
        for rank, n in enumerate(ids[offset : parsed.page_end], offset + 1)
    ]
    hits = tuple(make_hits(tx, parsed, matches))
    shown = [hit.summary.id for hit in hits]
    return Answer(
        hits=hits,
        profile=parsed.profile_name,
        candidates=len(ids),
        degraded={**parsed.degraded, "index": "still loading; full text answered alone"},
        contradicted=judgments.visible_contradictions(tx, shown, parsed.question.project_ids),
        notes=parsed.notes if hits else (),
    )


# The trace of an explained search: every candidate, then near misses, which are superseded, expired or left out
# by a filter. It shows no memory that the question must not see: none later than `as_of`, none of another project.


def find_terms(query: IndexedQuery, row: int) -> tuple[str, ...]:
    """The terms of the question that a row has."""
    found = query.index.postings.terms_in(row, query.terms.numbers)
    return tuple(query.index.vocabulary.term(number) or "?" for number in found)


def trace_near_misses(
    tx: Connection, query: IndexedQuery, scores: Scores, candidates: Collection[int]
) -> list[TracedCandidate]:
    """Return the `NEAR_MISSES_MAX` non-candidates that match best by words, best first; `candidates`: summary ids."""
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
        elif index.columns.expires_at[row] <= question.asked_at:
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

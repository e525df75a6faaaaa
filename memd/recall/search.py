"""One search in one read transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memd.errors import VaultError
from memd.index.memory_index import MemoryIndex
from memd.recall import explain, filters, prompt_gate, rerank, retrievers, semantic
from memd.recall import hits as recall_hits
from memd.recall import ranking as recall_ranking
from memd.recall.profiles import Profile
from memd.recall.query import ParsedQuery, QueryVector, phrase_expression
from memd.recall.ranking_context import CandidateFacts, RankingQuestion
from memd.recall.types import Answer, TracedCandidate, apply_parts
from memd.store import fulltext, links, summaries, usage
from memd.store.database import Connection, translate_errors
from memd.store.types import SummaryUse
from memd.text import fold, one_line

# MERGED from memd.recall.background:
# MERGED Looks up what the index does not know of the candidates, and only what some step asks for.


_NOTHING = CandidateFacts()


def read_facts(
    tx: Connection, summary_ids: Sequence[int], asked: ParsedQuery
) -> CandidateFacts:
    """Uses, co-activations, entities and titles of these. A failure is told in `failed`, and nothing else."""
    wanted = _wanted(asked.profile)
    if not wanted or not summary_ids:
        return _NOTHING
    try:
        with translate_errors():
            return CandidateFacts(
                uses=_uses(tx, summary_ids, asked) if "uses" in wanted else {},
                together=_together(tx, summary_ids, asked) if "together" in wanted else {},
                entities=links.entities_of(tx, summary_ids) if "entities" in wanted else {},
                titles=_titles(tx, summary_ids) if "titles" in wanted else {},
            )
    except VaultError as error:
        return CandidateFacts(failed=error.message)


_NEEDS = {
    "coactivation": "together",
    "entity": "entities",
    "reinforcement": "uses",
    "title_all": "titles",
}


def _wanted(profile: Profile) -> set[str]:
    wanted = {_NEEDS[step.signal] for step in profile.steps if step.signal in _NEEDS}
    return wanted | {
        "uses"
        for step in profile.steps
        if step.signal == "recency" and step.shape == "half_life"
    }


def _uses(
    tx: Connection, summary_ids: Sequence[int], asked: ParsedQuery
) -> dict[int, SummaryUse]:
    """With `as_of`, only the uses that were all before it: nothing later is seen."""
    found = usage.uses_of(tx, summary_ids)
    as_of = asked.question.as_of
    return {i: use for i, use in found.items() if as_of is None or use.last_at <= as_of}


def _titles(tx: Connection, summary_ids: Sequence[int]) -> dict[int, str]:
    return {
        number: fold(head.title)
        for number, head in summaries.summary_heads(tx, summary_ids).items()
    }


def _together(
    tx: Connection, summary_ids: Sequence[int], asked: ParsedQuery
) -> dict[tuple[int, int], int]:
    """With `as_of`, nothing: when two were returned together is not kept."""
    return {} if asked.question.as_of is not None else usage.coactivations_of(tx, summary_ids)


# MERGED from memd.recall.search:
# MERGED One search over the index, in one read transaction: find, score, order, fetch, explain.
# MERGED
# MERGED The index's lock is held while rows are used, and let go before anything is fetched for the page.


PHRASE_PASSAGES_MAX = 1_000
_READ_AHEAD = 4
"""So many times the hits of a page are looked at in the vault, since some make room for others."""
_NO_ROWS: retrievers.Rows = np.empty(0, dtype=np.int64)
_NO_SCORES: retrievers.Floats = np.empty(0)


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The candidates with everything that was looked up while the index was locked."""

    scored: recall_ranking.ScoredCandidates
    ids: tuple[int, ...]
    """Summary id per candidate."""
    passage_ids: tuple[int, ...]
    best_first: tuple[int, ...]
    """Candidate indexes."""
    hidden: dict[str, int]
    matched: Sequence[tuple[str, ...]]
    """Per candidate the terms that stand there; empty unless somebody wants to know."""
    spaces: Sequence[str]
    """Whose vectors were compared, the leading one first."""
    degraded: Mapping[str, str]
    missed: Sequence[TracedCandidate] = ()
    """What matches and was not to be seen; empty unless somebody wants to know."""
    coverage: retrievers.Floats | None = None
    """Per candidate; None unless somebody wants to know."""


def search_index(tx: Connection, index: MemoryIndex, asked: ParsedQuery) -> Answer:
    """Answer a question; `took_ms` is left to the caller."""
    phrases = [_standing(tx, phrase) for phrase in asked.query.phrases]
    with index.lock:
        ranked = _rank(tx, index, asked, phrases)
    ordered = _order(tx, asked, ranked)
    order = ordered.ids
    place = {number: i for i, number in enumerate(ranked.ids)}
    shown = {number: place[number] for number in order[asked.question.offset : asked.last]}
    hits = recall_hits.fetch_hits(tx, asked.query, ranked.scored, ranked.passage_ids, shown)
    if (share := ranked.coverage) is not None:
        hits = tuple(replace(hit, coverage=float(share[place[hit.summary.id]])) for hit in hits)
    return Answer(
        hits=hits,
        profile=asked.profile_name,
        space=" + ".join(ranked.spaces) or None,
        took_ms=0.0,
        candidates=ordered.candidates,
        suppressed=ordered.hidden,
        degraded={**ranked.degraded, **asked.degraded},
        notes=asked.notes if hits else (),
        trace=_trace(asked, ranked, ordered) if asked.question.explain else (),
    )


def _standing(tx: Connection, phrase: tuple[str, ...]) -> list[int]:
    """The passages in which a phrase stands."""
    found = fulltext.match_passages(tx, phrase_expression(phrase), PHRASE_PASSAGES_MAX)
    return [passage_id for passage_id, _ in found]


def _rank(
    tx: Connection, index: MemoryIndex, asked: ParsedQuery, phrases: Sequence[Sequence[int]]
) -> _Ranked:
    seen = filters.find_visible_rows(index, asked.question)
    terms = retrievers.look_up_terms(index, asked.query, phrases)
    found, spaces = _find(tx, index, asked, seen, terms)
    rows = recall_ranking.collect_candidates(index, found, seen, asked.profile)
    ids = tuple(index.columns.summary_id[rows].tolist())
    known = read_facts(tx, ids, asked)
    about = RankingQuestion(asked.query, asked.intent, terms, seen, asked.now, known)
    scored = recall_ranking.score_candidates(index, rows, found, asked.profile, about)
    passage_ids = tuple(index.columns.passage_id[rows].tolist())
    scored = _looked_at_again(tx, index, asked, about, scored, (ids, passage_ids))
    best_first = _best_first(index, scored)
    return _Ranked(
        scored=scored,
        ids=ids,
        passage_ids=passage_ids,
        best_first=best_first,
        hidden=_hidden(seen, found, scored.rows[list(best_first[: asked.k])]),
        matched=_matched(index, scored, terms) if asked.question.explain else (),
        spaces=spaces,
        degraded=_lacking(index, asked) | ({"rerank": known.failed} if known.failed else {}),
        missed=_missed(tx, index, asked, about, (found.lexical_all, set(ids)))
        if asked.question.explain
        else (),
        coverage=_coverage(index, rows, about) if asked.question.relevance_gate else None,
    )


def _lacking(index: MemoryIndex, asked: ParsedQuery) -> dict[str, str]:
    """What the vector leg cannot see yet: after some starts vectors are worked out behind the rows."""
    if asked.local is None or asked.local.space not in index.matrices:
        return {}
    done, rows = index.counts(asked.local.space)
    return (
        {"vector": f"{rows - done} of {rows} passages have no vector yet"}
        if done < rows
        else {}
    )


def _missed(
    tx: Connection,
    index: MemoryIndex,
    asked: ParsedQuery,
    about: RankingQuestion,
    found: tuple[retrievers.Scores, set[int]],
) -> list[TracedCandidate]:
    """What matches by its words and was not to be seen, with no score; `found`: of all rows, and ids."""
    ones = explain.find_near_misses(index, asked.question, about.masks, *found)
    heads = summaries.summary_heads(tx, [one.summary_id for one in ones])
    traced = []
    for one in ones:
        head = heads.get(one.summary_id)
        if head is None:
            continue
        by = f" by #{head.superseded_by}" if head.superseded_by is not None else ""
        is_archived = one.why == "superseded" and not by
        traced.append(
            TracedCandidate(
                summary_id=one.summary_id,
                title=one_line(head.title, 90),
                score=0.0,
                parts=(),
                ranks={},
                cosine=None,
                terms=_terms(index, one.row, about.terms),
                verdict="archived" if is_archived else one.why + by * (one.why == "superseded"),
            )
        )
    return traced


def _coverage(
    index: MemoryIndex, rows: retrievers.Rows, about: RankingQuestion
) -> retrievers.Floats:
    unknown = len(about.query.terms) - len(about.terms.numbers)
    return prompt_gate.compute_coverage(
        index, rows, about.terms, unknown, about.masks.evidence.among
    )


def _looked_at_again(
    tx: Connection,
    index: MemoryIndex,
    asked: ParsedQuery,
    about: RankingQuestion,
    scored: recall_ranking.ScoredCandidates,
    ids: tuple[tuple[int, ...], tuple[int, ...]],
) -> recall_ranking.ScoredCandidates:
    """The scores after the steps that read the candidates' texts, if the question asks for any.

    `ids` are the summary ids and the passage ids of the candidates.
    """
    patterns, profile = asked.question.focus, asked.profile
    if not ids[0] or not (patterns or profile.rerank == "terms"):
        return scored
    known = summaries.summaries_by_ids(tx, ids[0])
    found = [known.get(number) for number in ids[0]]  # None: forgotten a moment ago
    if profile.rerank == "terms":
        spans = fulltext.passage_spans(tx, ids[1])
        texts = [
            f"{one.title}\n{one.body[slice(*spans[passage_id])]}" if one else ""
            for one, passage_id in zip(found, ids[1], strict=True)
        ]
        rarities = retrievers.idf_of_terms(index, about.terms, about.masks.evidence.among)
        scored = recall_ranking.apply_more_steps(
            scored, rerank.rerank_by_terms(about.query.text, rarities, texts, profile.reranking)
        )
    if patterns:
        fitting = [one is not None and rerank.matches_focus(one, patterns) for one in found]
        factors = rerank.focus_factors(fitting, scored.scores)
        scored = recall_ranking.apply_more_steps(scored, [("focus", "*", factors)])
    return scored


def _find(
    tx: Connection,
    index: MemoryIndex,
    asked: ParsedQuery,
    seen: filters.VisibleRows,
    terms: retrievers.IndexedTerms,
) -> tuple[recall_ranking.Retrieved, Sequence[str]]:
    """Ask each leg that the profile has; also the spaces that were asked."""
    profile = asked.profile
    pool = max(profile.pool, asked.last)
    scores = retrievers.score_words(index, terms, profile.lexical, seen.evidence.among)
    lexical, topic = _NO_ROWS, _NO_ROWS
    if profile.legs.get("lexical", 0.0) > 0:
        lexical = retrievers.best_rows(index, scores, seen, pool)
    if asked.question.topic_key is not None and profile.legs.get("topic", 0.0) > 0:
        numbers = summaries.ids_on_topic(tx, asked.question.topic_key)
        topic = retrievers.find_topic(index, numbers, seen.wanted)[:pool]
    (vector, cosines), near, spaces = _by_meaning(index, asked, seen.wanted, pool)
    return recall_ranking.Retrieved(lexical, vector, topic, scores, cosines, near), spaces


def _by_meaning(
    index: MemoryIndex, asked: ParsedQuery, wanted: retrievers.Mask, pool: int
) -> tuple[
    tuple[retrievers.Rows, retrievers.Floats], semantic.LearnedEvidence | None, Sequence[str]
]:
    """The vector leg, what a learned space says beside or as it, and the spaces that were asked.

    A space may have gone since the question was read: then it is as if it had not been asked.
    """
    local, learned = (
        aim if aim is not None and aim.space in index.matrices else None
        for aim in (asked.local, asked.learned)
    )
    weighed = asked.profile.learned
    near = None
    if learned is not None and weighed is not None:
        near = semantic.find_learned_evidence(index, learned, wanted, weighed, pool)
    if near is not None and near.leads:
        return (near.rows, near.cosines), near, [near.aim.space]
    is_leg = learned is not None and weighed is None and learned.space == index.active
    leading = learned if is_leg else local
    found = _vector_leg(index, leading, asked.profile.cosine_floor, wanted, pool)
    asked_of = (leading, None if near is None else near.aim)
    return found, near, [aim.space for aim in asked_of if aim is not None]


def _vector_leg(
    index: MemoryIndex,
    aim: QueryVector | None,
    floor: float,
    wanted: retrievers.Mask,
    pool: int,
) -> tuple[retrievers.Rows, retrievers.Floats]:
    if aim is None:
        return _NO_ROWS, _NO_SCORES
    rows, cosines = retrievers.search_vectors(index, aim.space, aim.vector, wanted, pool)
    kept = (cosines >= floor) & (cosines != 0.0)
    return retrievers.nearest_summaries(index, rows[kept], cosines[kept], pool)


def _best_first(index: MemoryIndex, scored: recall_ranking.ScoredCandidates) -> tuple[int, ...]:
    """Candidate indexes by falling score; ties: the newer first, then the higher id."""
    c = index.columns
    order = np.lexsort((-c.summary_id[scored.rows], -c.at[scored.rows], -scored.scores))
    return tuple(order.tolist())


def _hidden(
    seen: filters.VisibleRows, found: recall_ranking.Retrieved, shown: retrievers.Rows
) -> dict[str, int]:
    """How many hidden memories match about as well as what is shown."""
    scores = found.lexical_all
    matching = scores[shown][scores[shown] > 0]
    weakest = min(float(matching.min()), float(matching.max()) / 2) if len(matching) else 0.0
    result = {}
    for reason, rows in seen.hidden.items():
        own = scores[rows.rows]
        if count := rows.summaries((own > 0) & (own >= weakest)):
            result[reason] = count
    return result


def _matched(
    index: MemoryIndex, scored: recall_ranking.ScoredCandidates, terms: retrievers.IndexedTerms
) -> list[tuple[str, ...]]:
    return [_terms(index, int(row), terms) for row in scored.rows]


def _terms(index: MemoryIndex, row: int, terms: retrievers.IndexedTerms) -> tuple[str, ...]:
    return tuple(
        index.vocabulary.term(number) or "?"
        for number in index.postings.terms_in(row, terms.numbers)
    )


@dataclass(frozen=True, slots=True)
class _Ordered:
    """What is shown, in which order, as far as anybody looks."""

    ids: Sequence[int]
    verdicts: Mapping[int, str]
    """For each that was moved or dropped."""
    heads: Mapping[int, summaries.SummaryHead]
    candidates: int
    hidden: Mapping[str, int]


def _order(tx: Connection, asked: ParsedQuery, ranked: _Ranked) -> _Ordered:
    """Put in order as many of the best as the page needs, or all if somebody wants to know."""
    depth = _READ_AHEAD * asked.last
    if asked.question.explain or asked.question.as_of is not None:
        depth = len(ranked.ids)
    while True:
        best = [ranked.ids[i] for i in ranked.best_first[:depth]]
        ordered = _ordered(tx, asked, ranked, best)
        in_place = sum(number not in ordered.verdicts for number in ordered.ids)
        if depth >= len(ranked.ids) or in_place >= asked.last:
            return ordered
        depth *= 2


def _ordered(
    tx: Connection, asked: ParsedQuery, ranked: _Ranked, best: Sequence[int]
) -> _Ordered:
    heads = summaries.summary_heads(tx, best)
    found = ((number, _dropped(asked, heads.get(number))) for number in best)
    verdicts = {number: verdict for number, verdict in found if verdict is not None}
    kept = [number for number in best if number not in verdicts]
    late = sum(verdict.startswith("superseded") for verdict in verdicts.values())
    hidden = dict(ranked.hidden)
    if late:
        hidden["superseded"] = hidden.get("superseded", 0) + late
    diversity = asked.profile.diversity
    texts = {}
    if diversity.jaccard is not None:
        texts = {
            n: f"{s.title}\n{s.body}" for n, s in summaries.summaries_by_ids(tx, kept).items()
        }
    episodes = {number: heads[number].episode for number in kept}
    order, demoted = recall_hits.diversify(kept, episodes, texts, diversity)
    rest = len(ranked.ids) - len(verdicts)
    return _Ordered(order, {**verdicts, **demoted}, heads, rest, hidden)


def _dropped(asked: ParsedQuery, head: summaries.SummaryHead | None) -> str | None:
    """Why a candidate that the legs returned is not to be seen after all."""
    if head is None:
        return "forgotten"
    is_superseded = asked.question.filter.was_superseded(head.superseded_at)
    return f"superseded by #{head.superseded_by}" if is_superseded else None


def _trace(
    asked: ParsedQuery, ranked: _Ranked, ordered: _Ordered
) -> tuple[TracedCandidate, ...]:
    """Every candidate in the order in which it is shown or would be, then the dropped, then the missed."""
    scored, order, verdicts = ranked.scored, ordered.ids, ordered.verdicts
    ranks = {leg: ranking.ranks(len(scored.rows)) for leg, ranking in scored.rankings.items()}
    place = {number: i for i, number in enumerate(ranked.ids)}
    dropped = [number for number in ranked.ids if number not in set(order)]
    trace = []
    for position, number in enumerate([*order, *dropped]):
        i = place[number]
        head = ordered.heads.get(number)
        is_hit = asked.question.offset <= position < min(asked.last, len(order))
        moved = verdicts.get(number)
        hit = f"hit; {moved}" if moved else "hit"
        parts = scored.parts(i)
        trace.append(
            TracedCandidate(
                summary_id=number,
                title=one_line(head.title, 90) if head else "",
                score=apply_parts(parts),
                parts=parts,
                ranks={leg: int(values[i]) for leg, values in ranks.items() if values[i]},
                cosine=recall_hits.none_if_nan(scored.cosines[i]),
                terms=ranked.matched[i],
                verdict=hit if is_hit else moved or f"rank {position + 1}",
            )
        )
    return (*trace, *ranked.missed)

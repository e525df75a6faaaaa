"""Diversify, page, fetch, snippet."""

import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from memd.models import Project, Session, Summary
from memd.recall.profiles import DiversitySettings
from memd.recall.query import ParsedQuery, QueryTerms, fts_expression
from memd.recall.ranking import ScoredCandidates
from memd.recall.types import Hit, ScorePart, Turn, apply_parts
from memd.store import fulltext, links, summaries, turns
from memd.store import projects as store_projects
from memd.store.database import Connection
from memd.text import fold, normalised, one_line, stem

# MERGED from memd.recall.pack:
# MERGED From an order to an answer: diversity, the page, and a snippet that shows why. Pure.


SNIPPET_CHARACTERS_MAX = 150
_LABEL = re.compile(r"^(?:asked|answered|while|user|assistant): [“\"]?")
_SENTENCE_END = re.compile(r"(?<=[^\n])[.!?]+[\"')”’]*(?=\s|$)|\n")
"""Looked for alone: a pattern of whole sentences walks every character of them."""
_TOKEN = re.compile(r"[^\W_]+(?:\.\d+)*")
"""What may be a word or a version, found twice as quickly as by the index's own rules."""
_FAR = 3
"""Times a line: spaces that are taken out may not make it too short."""


def diversify(
    order: Sequence[int],
    episodes: Mapping[int, str | None],
    texts: Mapping[int, str],
    diversity: DiversitySettings,
) -> tuple[list[int], dict[int, str]]:
    """Reorder summary ids, best first, so that no story fills the answer; and why each was demoted."""
    kept: list[int] = []
    demoted: dict[int, str] = {}
    seen: dict[str, list[int]] = {}
    pairs: list[tuple[int, frozenset[str]]] = []
    for number in order:
        episode = episodes.get(number)
        same = seen.setdefault(episode, []) if episode else []
        if diversity.per_episode and len(same) >= diversity.per_episode:
            demoted[number] = f"diversity: same turn as #{same[0]}"
            continue
        if diversity.jaccard is not None:
            mine = bigrams(texts.get(number, ""))
            like = next(
                (other for other, its in pairs if jaccard(mine, its) > diversity.jaccard), None
            )
            if like is not None:
                demoted[number] = f"diversity: like #{like}"
                continue
            pairs.append((number, mine))
        same.append(number)
        kept.append(number)
    return kept + [number for number in order if number in demoted], demoted


def bigrams(text: str) -> frozenset[str]:
    """The pairs of neighbouring words of a text."""
    tokens = normalised(text).split()
    return frozenset(f"{a} {b}" for a, b in itertools.pairwise(tokens))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """|a ∩ b| / |a ∪ b|; 0 if both are empty."""
    union = len(a | b)
    return len(a & b) / union if union else 0.0


def make_snippet(
    title: str, passage: str, query: QueryTerms, limit: int = SNIPPET_CHARACTERS_MAX
) -> str:
    """The sentences of a passage that say most about the question, on one line."""
    known = fold(title)
    sentences = [(s, fold(s)) for s in map(str.strip, _sentences(passage)) if s]
    fresh = [pair for pair in sentences if not _says_no_more(pair[1], known)] or sentences
    if not fresh:
        return ""
    start = 0
    if len(fresh) > 1:
        wanted = frozenset((*map(stem, query.words), *query.terms))
        weights = [_weight(folded, wanted) for _, folded in fresh]
        start = weights.index(max(weights))
    return _beginning((sentence for sentence, _ in fresh[start:]), limit)


def _sentences(text: str) -> Iterator[str]:
    first = 0
    for end in _SENTENCE_END.finditer(text):
        yield text[first : end.end()]
        first = end.end()
    yield text[first:]


def _says_no_more(sentence: str, title: str) -> bool:
    label = _LABEL.match(sentence)
    return sentence[label.end() if label else 0 :].rstrip(".!?") in title


def _weight(sentence: str, wanted: frozenset[str]) -> int:
    """How many of the wanted stems stand in a folded sentence."""
    # Stemming is what costs here, and a word begins as its stem does, but for its last letter.
    begins = tuple(term[: max(len(term) - 1, 2)] for term in wanted)
    tokens = {token for token in _TOKEN.findall(sentence) if token.startswith(begins)}
    return len(wanted & {stem(token) for token in tokens})


def _beginning(sentences: Iterable[str], limit: int) -> str:
    """As many of these as fill a line of `limit` characters; what is far beyond it is not looked at."""
    taken, length = [], 0
    for sentence in sentences:
        taken.append(sentence)
        length += len(sentence) + 1
        if length > _FAR * limit:
            break
    return one_line(" ".join(taken), limit)


# MERGED from memd.recall.page:
# MERGED The hits of one page, fetched from the vault. Knows no ranking.


def none_if_nan(value: float) -> float | None:
    """The value, or None for NaN."""
    return None if math.isnan(value) else float(value)


def fetch_hits(
    tx: Connection,
    query: QueryTerms,
    scored: ScoredCandidates,
    passage_ids: Sequence[int],
    page: Mapping[int, int],
) -> tuple[Hit, ...]:
    """A hit for each entry of `page`: summary id → index of the candidate, in the order to be shown."""
    rows = links.with_final_superseders(tx, summaries.summaries_by_ids(tx, list(page)))
    beside = fetch_page_data(tx, rows.values(), [passage_ids[i] for i in page.values()])
    ranks = {leg: ranking.ranks(len(scored.rows)) for leg, ranking in scored.rankings.items()}
    found = []
    for number, i in page.items():
        standing = {leg: int(values[i]) for leg, values in ranks.items() if values[i]}
        measured = HitPosition(
            standing, none_if_nan(scored.cosines[i]), none_if_nan(scored.recency[i])
        )
        told = make_hit(query, rows[number], passage_ids[i], scored.parts(i), beside, measured)
        found.append(told)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class PageData:
    """What stands beside the summaries of a page, each by its id."""

    spans: Mapping[int, tuple[int, int]]
    projects: Mapping[int, Project | None]
    sessions: Mapping[int, Session]


def fetch_page_data(
    tx: Connection, rows: Collection[Summary], passage_ids: Sequence[int]
) -> PageData:
    """Fetch what the hits of a page need, all of them at once."""
    return PageData(
        fulltext.passage_spans(tx, passage_ids),
        {number: store_projects.project(tx, number) for number in {s.project_id for s in rows}},
        store_projects.sessions(tx, {s.session_id for s in rows if s.session_id}),
    )


@dataclass(frozen=True, slots=True)
class HitPosition:
    """Where a hit stands in each leg that found it, and how near and recent it is, as far as known."""

    ranks: Mapping[str, int] = field(default_factory=dict)
    cosine: float | None = None
    recency: float | None = None


_UNMEASURED = HitPosition()


def make_hit(  # all that a hit is made of
    query: QueryTerms,
    summary: Summary,
    passage_id: int,
    parts: tuple[ScorePart, ...],
    beside: PageData,
    measured: HitPosition = _UNMEASURED,
) -> Hit:
    """A summary as a hit by one of its passages."""
    start, stop = beside.spans.get(passage_id, (0, len(summary.body)))
    project = beside.projects.get(summary.project_id)
    session = beside.sessions.get(summary.session_id or 0)
    return Hit(
        summary=summary,
        project=project.name if project else "",
        session_title=session.title if session else None,
        snippet=make_snippet(summary.title, summary.body[start:stop], query),
        score=apply_parts(parts),
        parts=parts,
        channels=tuple(measured.ranks),
        lexical_rank=measured.ranks.get("lexical"),
        vector_rank=measured.ranks.get("vector"),
        topic_rank=measured.ranks.get("topic"),
        cosine=measured.cosine,
        recency=measured.recency,
    )


# MERGED from memd.recall.verbatim:
# MERGED What was said about it, word for word: passages of conversations beside the hits, never among them.


TURNS_MAX = 20
TURN_SNIPPET_CHARACTERS_MAX = 200
_TITLE_CHARACTERS = 90


def find_turns(tx: Connection, asked: ParsedQuery) -> tuple[Turn, ...]:
    """The turns that full text ranks best, as many as hits were asked for, at most 20.

    Filtered by project, session and time; a turn has no kind, tag or source. A question without
    words has none.
    """
    expression = fts_expression(asked.query)
    if not expression:
        return ()
    question = asked.question
    bounds = [bound for bound in (question.until, question.as_of) if bound is not None]
    where = turns.TurnFilter(
        project_ids=question.project_ids,
        session_id=question.session_id,
        since=question.since,
        until=min(bounds, default=None),
    )
    found = turns.match_turns(tx, expression, where, min(asked.k, TURNS_MAX))
    return tuple(_turn(spoken, rank, asked) for rank, spoken in enumerate(found, start=1))


def _turn(spoken: turns.SpokenTurn, rank: int, asked: ParsedQuery) -> Turn:
    title = spoken.session_title
    return Turn(
        event_id=spoken.event_id,
        session_title=None if title is None else one_line(title, _TITLE_CHARACTERS),
        role=spoken.role,
        at=spoken.at,
        snippet=make_snippet("", spoken.text, asked.query, TURN_SNIPPET_CHARACTERS_MAX),
        rank=rank,
    )

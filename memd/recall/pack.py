"""From an order to an answer: diversity, the page, and a snippet that shows why. Pure."""

import itertools
import re
from collections.abc import Mapping, Sequence

from memd.recall.profiles import Diversity
from memd.recall.query import Query
from memd.text import fold, normalised, one_line, stem, words

SNIPPET_CHARACTERS = 150
_LABEL = re.compile(r"^(?:asked|answered|while|user|assistant): [“\"]?")
_SENTENCE = re.compile(r".+?(?:[.!?]+[\"')”’]*(?=\s|$)|$)", re.MULTILINE)


def diversify(
    order: Sequence[int],
    episodes: Mapping[int, str | None],
    texts: Mapping[int, str],
    diversity: Diversity,
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


def snippet(title: str, passage: str, query: Query, limit: int = SNIPPET_CHARACTERS) -> str:
    """The sentences of a passage that say most about the question, on one line."""
    sentences = [s.strip() for s in _SENTENCE.findall(passage) if s.strip()]
    wanted = {stem(word) for word in query.words} | set(query.terms)
    known = fold(title)
    fresh = [
        s for s in sentences if _LABEL.sub("", fold(s)).rstrip(".!?") not in known
    ] or sentences
    if not fresh:
        return ""
    # Stemming is what costs here, and a stem begins as its word does.
    begins = {term[:2] for term in wanted}
    weights = [
        len(wanted & {stem(token) for token in words(fold(s)) if token[:2] in begins})
        for s in fresh
    ]
    start = max(range(len(fresh)), key=lambda i: (weights[i], -i))
    return one_line(" ".join(fresh[start:]), limit)

"""From an order to an answer: diversity, the page, and a snippet that shows why. Pure."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from memd.recall.profiles import Diversity
from memd.recall.query import Query
from memd.text import fold, normalised, one_line, stem

SNIPPET_CHARACTERS = 150
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

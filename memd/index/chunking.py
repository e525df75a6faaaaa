"""A summary's text as passages: where to cut, and which words each is found by. Pure.

A passage is at most so many words, cut where a paragraph ends if one does in its second half, else
at a line, a sentence or a word. The spans of a body's passages cover it without gap or overlap. What
names the summary as a whole (its title, tags, topic and the names of its files) is repeated with
every passage, because a hit is ranked by its best passage alone. Not here: how a word weighs.
"""

import re
from collections import Counter
from collections.abc import Iterator

from memd.models import UNTITLED, Summary
from memd.store.types import NewPassage, Posting
from memd.text import WORD, split_identifier, stems, terms, unique, words

TOKENS_MAX = 400
_COUNT_MAX = 255
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_BORDERS = (
    re.compile(r"\n\s*\n"),
    re.compile(r"\n"),
    re.compile(r"[.!?]['\")\]]*\s+|[\u3002\uff01\uff1f]"),
)
"""Where a paragraph, a line and a sentence end."""


def split_into_passages(summary: Summary, *, tokens_max: int = TOKENS_MAX) -> list[NewPassage]:
    """Cut a summary into passages, in order; one at least, however empty its body."""
    # A title that is only the beginning of the text would count those words twice.
    title = Counter(() if summary.rule == UNTITLED else stems(summary.title))
    about = _about(summary)
    return [
        _passage(summary, seq, span, title, about)
        for seq, span in enumerate(passage_spans(summary.body, tokens_max=tokens_max))
    ]


def embedded(summary: Summary, span: tuple[int, int]) -> str:
    """Return the text that stands for a passage, [start, stop) of the body, in a vector space."""
    return passage_text(summary.title, summary.body, *span)


def passage_text(title: str, body: str, start: int, stop: int) -> str:
    """Do what `embedded` does, of a memory's title and body."""
    return f"{title}\n{body[start:stop]}"


def passage_spans(body: str, *, tokens_max: int = TOKENS_MAX) -> list[tuple[int, int]]:
    """Where to cut: [start, stop) in characters, one after the other, from 0 to the end."""
    units = list(_units(body))
    cuts, first = [0], 0
    while len(units) - first > tokens_max:
        earliest, latest = units[first + max(tokens_max // 2, 1)], units[first + tokens_max]
        cuts.append(_cut(body, earliest, latest))
        while units[first] < cuts[-1]:
            first += 1
    return list(zip(cuts, [*cuts[1:], len(body)], strict=True))


def _units(body: str) -> Iterator[int]:
    """Where each word begins; where no spaces stand between words, each character."""
    for word in WORD.finditer(body):
        if _UNSPACED.search(word[0]):
            yield from range(*word.span())
        else:
            yield word.start()


def _cut(body: str, earliest: int, latest: int) -> int:
    """Find the last good border in (earliest, latest], where a word begins at `latest`."""
    for border in _BORDERS:
        ends = [found.end() for found in border.finditer(body, earliest, latest)]
        if ends:
            return ends[-1]
    return latest


def _passage(
    summary: Summary, seq: int, span: tuple[int, int], title: Counter[str], about: str
) -> NewPassage:
    start, stop = span
    text = summary.body[start:stop]
    body = Counter(stems(text))
    body.update(stems(about))
    return NewPassage(
        summary_id=summary.id, seq=seq, start=start, stop=stop,
        title=summary.title, text=f"{text}\n{about}" if about else text,
        identifiers=_identifiers(f"{summary.title}\n{text}\n{about}"),
        postings=tuple(
            Posting(term, min(title[term], _COUNT_MAX), min(body[term], _COUNT_MAX))
            for term in (title | body)
        ),
    )  # fmt: skip


def _identifiers(text: str) -> str:
    """List the parts of the identifiers in a text: FTS5 splits `decode_token`, but not `decodeToken`.

    Where no spaces stand between words, the pairs of characters, as the query has them.
    """
    found: list[str] = []
    for token in words(text):
        if _UNSPACED.search(token):
            found.extend(terms(token))
        elif len(parts := split_identifier(token)) > 1:
            found.extend(parts)
    return " ".join(unique(found))


def _about(summary: Summary) -> str:
    """Return what names the summary beside its title, a line each."""
    names = (*summary.tags, *map(_file_name, summary.files), summary.topic_key or "")
    return "\n".join(name for name in unique(names) if name)


def _file_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]

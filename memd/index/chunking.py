"""Split summaries into passages, and list the terms that each is found by. Pure.

A passage has a limited number of words and ends where a paragraph ends if one does in its second half, else at a
line, a sentence or a word. The spans of a body's passages cover it without gap or overlap. What names the whole
summary (title, tags, topic, file names) is repeated in every passage, because a hit is ranked by its best passage.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from memd.languages import has_unspaced, language_mark, split_scripts
from memd.models import SIGNIFICANCE_TAG, UNTITLED_RULES, Summary
from memd.store.types import NewPassage, Posting
from memd.text import WORD, languages_of, split_identifier, stems, terms, unique, words

TOKENS_MAX = 400
"""Words of a passage: most memories are one passage, and a long one is found by the part that is about the question."""
_COUNT_MAX = 255
_BOUNDARIES = (
    re.compile(r"\n\s*\n"),
    re.compile(r"\n"),
    re.compile(r"[.!?]['\")\]]*\s+|[\u3002\uff01\uff1f]"),
)
"""Where a paragraph, a line and a sentence end."""


def split_into_passages(summary: Summary, *, tokens_max: int = TOKENS_MAX) -> list[NewPassage]:
    """Split a summary into passages, in order; at least one, even of an empty body."""
    # A title that repeats the beginning of the text would count those words twice.
    languages = languages_of(f"{summary.title}\n{summary.body}")
    title = Counter(() if summary.rule in UNTITLED_RULES else stems(summary.title, languages))
    about = _summary_names(summary)
    return [
        _make_passage(summary, (seq, *span), title, about, languages)
        for seq, span in enumerate(passage_spans(summary.body, tokens_max=tokens_max))
    ]


def passage_text(title: str, body: str, start: int, stop: int) -> str:
    """Return the text to embed for a passage of a memory with this title and body."""
    return f"{title}\n{body[start:stop]}"


def passage_spans(body: str, *, tokens_max: int = TOKENS_MAX) -> list[tuple[int, int]]:
    """Return consecutive [start, stop) in characters, from 0 to the end."""
    units = list(_find_words(body))
    cuts, first = [0], 0
    while len(units) - first > tokens_max:
        earliest, latest = units[first + max(tokens_max // 2, 1)], units[first + tokens_max]
        cuts.append(_find_cut(body, earliest, latest))
        while units[first] < cuts[-1]:
            first += 1
    return list(zip(cuts, [*cuts[1:], len(body)], strict=True))


def _find_words(body: str) -> Iterator[int]:
    """Yield where each word begins; in scripts without spaces, each character."""
    for word in WORD.finditer(body):
        if not word[0].isascii() and has_unspaced(word[0]):
            yield from range(*word.span())
        else:
            yield word.start()


def _find_cut(body: str, earliest: int, latest: int) -> int:
    """Return the last good boundary in (earliest, latest]; a word begins at `latest`."""
    for boundary in _BOUNDARIES:
        ends = [found.end() for found in boundary.finditer(body, earliest, latest)]
        if ends:
            return ends[-1]
    return latest


def _make_passage(
    summary: Summary,
    place: tuple[int, int, int],
    title: Counter[str],
    about: str,
    languages: Sequence[str],
) -> NewPassage:
    seq, start, stop = place
    text = summary.body[start:stop]
    body = Counter(stems(text, languages))
    body.update(stems(about))
    body.update(map(language_mark, languages))
    return NewPassage(
        summary_id=summary.id, seq=seq, start=start, stop=stop,
        title=summary.title, text=f"{text}\n{about}" if about else text,
        identifiers=_split_identifiers(f"{summary.title}\n{text}\n{about}"),
        postings=tuple(
            Posting(term, min(title[term], _COUNT_MAX), min(body[term], _COUNT_MAX))
            for term in (title | body)
        ),
    )  # fmt: skip


def _split_identifiers(text: str) -> str:
    """Return the parts of the identifiers in a text: FTS5 splits `decode_token`, but not `decodeToken`.

    Of words in scripts without spaces or in several scripts, the terms, as queries have them.
    """
    found: list[str] = []
    for token in words(text):
        if not token.isascii() and (has_unspaced(token) or len(split_scripts(token)) > 1):
            found.extend(terms(token))
        elif len(parts := split_identifier(token)) > 1:
            found.extend(parts)
    return " ".join(unique(found))


def _summary_names(summary: Summary) -> str:
    """Return what names the summary beside its title, a line each."""
    names = (
        *(tag for tag in summary.tags if not tag.startswith(SIGNIFICANCE_TAG)),
        *(path.rstrip("/").rpartition("/")[2] for path in summary.files),
        summary.topic_key or "",
    )
    return "\n".join(name for name in unique(names) if name)

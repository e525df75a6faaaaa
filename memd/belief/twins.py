"""Find the twins of a memory: what another one says of the same words of the user's. Pure."""

from memd.belief.claims import statement_text
from memd.belief.compare import compare
from memd.belief.notes import split_note
from memd.belief.polarity import WORDS
from memd.text import content_stems, normalised

_SHARED_MIN = 0.6
"""The share of the words of each of two texts of one quote that the other has, too: else they are two parts of it."""


def are_twins(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Return whether two memories, (title, body), say the same, or one is a proved note of the words that the other has."""
    texts = [statement_text(*each) for each in (one, other)]
    if compare(*texts).is_equal:
        return True
    said = [split_note(body).said for _, body in (one, other)]
    if not any(said):
        return False
    quotes = [f" {normalised(quote or text)} " for quote, text in zip(said, texts, strict=True)]
    if not (quotes[0] in quotes[1] or quotes[1] in quotes[0]):
        return False
    mains = (WORDS["reason"].split(title, maxsplit=1)[0] for title, _ in (one, other))
    mine, theirs = (frozenset(content_stems(main)) for main in mains)
    return len(mine & theirs) >= _SHARED_MIN * max(len(mine), len(theirs))

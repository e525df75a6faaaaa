"""Texts cut to what a model can take, by an estimate of its tokens that is rather too high. Pure.

No tokenizer is at hand, and every model has another; so a word counts a token for each four letters,
digits one for each two, and everything else one a character, which is more than the usual
vocabularies need. Where it is still too few, the server says so and the text is halved.
Not here: passages (index/chunk.py), which are far shorter than this as a rule.
"""

import re

CONTEXT_TOKENS = 2_048
"""What nomic-embed-text was trained for, and its builds allow."""
_SPECIAL_TOKENS = 8
"""For what a model puts around a text."""
_PIECE = re.compile(r"[A-Za-z]+|[0-9]+|[^\sA-Za-z0-9]")
_LETTERS, _DIGITS = 4, 2
_SHORTEST = 16


def tokens(text: str) -> int:
    """Estimate how many tokens a text has.

    >>> tokens("decode_token(7)")
    8
    """
    return sum(_weight(piece) for piece in _PIECE.findall(text))


def fitted(text: str, prefix: str = "", context: int = CONTEXT_TOKENS) -> str:
    """Return the prefix and as much of the text as a context of so many tokens holds."""
    limit = max(context - _SPECIAL_TOKENS - tokens(prefix), _SPECIAL_TOKENS)
    if len(text) <= limit:
        return prefix + text
    left = limit
    for match in _PIECE.finditer(text):
        piece = match.group()
        if _weight(piece) > left:
            return prefix + text[: match.start() + left * _a_token(piece)]
        left -= _weight(piece)
    return prefix + text


def halved(text: str, prefix: str = "") -> str | None:
    """Return the first half of a text that was still too long; None if there is too little left.

    `prefix` is what the text begins with and keeps.
    """
    rest = text.removeprefix(prefix)
    return prefix + rest[: len(rest) // 2] if len(rest) >= _SHORTEST else None


def _weight(piece: str) -> int:
    return -(-len(piece) // _a_token(piece))


def _a_token(piece: str) -> int:
    """Return how many characters of such a piece make a token."""
    if not piece.isascii() or not piece.isalnum():
        return 1
    return _DIGITS if piece.isdigit() else _LETTERS

"""How good a memory a text makes, from its form alone. Pure.

    quality = 0.15
            + 0.25 · min(1, words / 60)      long enough to say something
            + 0.15 if it names a file or a path
            + 0.10 if it names an identifier, a command or a number with a unit
            + 0.15 if it has a list, a heading or labelled lines
            + 0.20 if it gives a reason or a decision

after ClawMem's recipe (structure, lists, decision words, length), without its front matter, which
nothing here has. Between 0 and 1; a bare sentence is near 0.2, a fix with its cause near 0.9.
"""

import re

from memd.text import words

_WORDS_ENOUGH = 60
_FILE = re.compile(r"(?<![\w-])(?:[\w-]++/[\w.-]|-*+\w[\w-]*+\.[a-z]{1,5}\b)")
_NAME = re.compile(
    r"`[^`\n]+`|\b\w+_\w+|\b[a-z]+[A-Z]\w*|\b\d+(?:\.\d+)? ?(?:ms|s|min|h|KB|MB|GB|%)(?!\w)"
)
_STRUCTURE = re.compile(r"^(?:#{1,6} |\s*(?:[-*•+]|\d+[.)]) |[A-Z][\w ]{1,20}: )", re.MULTILINE)
_REASON = re.compile(
    r"\b(?:because|since|due to|so that|decided|decision|chose|chosen|rather than|instead of|trade-?offs?"
    r"|in favou?r of|caused?|root cause|therefore|reason)\b",
    re.IGNORECASE,
)  # fmt: skip


def of(body: str) -> float:
    """The quality of a body, 0 to 1, by the formula above."""
    score = 0.15 + 0.25 * min(1.0, len(words(body)) / _WORDS_ENOUGH)
    score += 0.15 if _FILE.search(body) else 0.0
    score += 0.10 if _NAME.search(body) else 0.0
    score += 0.15 if _STRUCTURE.search(body) else 0.0
    score += 0.20 if _REASON.search(body) else 0.0
    return round(min(score, 1.0), 3)

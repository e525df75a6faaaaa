"""What a session is about: words and globs that weigh the hits up which they fit. Pure.

A pattern with `*`, `?`, `[` or `/` is a glob over the paths of a memory's files, of which it may fit
any end: `auth/*.py` fits `src/auth/tokens.py`. Any other is a word or several, to stand in a title, a
body or a path where a word begins: `report` fits `reports`, not `reporting-line`'s second half. The
factor is ClawMem's 1.4; what does not fit is left as it is, and where nothing fits, so is everything.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np

from memd.models import Summary
from memd.recall.legs import Floats
from memd.text import fold

FACTOR = 1.4
_GLOB = re.compile(r"[*?\[/]")


def fits(summary: Summary, patterns: Sequence[str]) -> bool:
    """Whether any of the patterns fits."""
    paths = [fold(path) for path in summary.files]
    text = fold("\n".join((summary.title, summary.body, *paths)))
    return any(
        _in_paths(pattern, paths) if _GLOB.search(pattern) else _in_text(pattern, text)
        for pattern in map(fold, patterns)
        if pattern.strip()
    )


def _in_paths(pattern: str, paths: Sequence[str]) -> bool:
    # A folder means all that is in it.
    pattern = (pattern + "*" if pattern.endswith("/") else pattern).lstrip("/")
    return any(
        fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern}") for path in paths
    )


def _in_text(pattern: str, text: str) -> bool:
    words = r"\s+".join(re.escape(word) for word in pattern.split())
    return re.search(rf"(?<![^\W_]){words}", text) is not None


def factors(fitting: Sequence[bool], scores: Floats) -> Floats:
    """1.4 for what fits, else 1; a score below zero is divided, so that it rises too. Shape (m,)."""
    raised = np.where(scores >= 0, FACTOR, 1.0 / FACTOR)
    return np.where(np.asarray(fitting, dtype=np.bool_), raised, 1.0)

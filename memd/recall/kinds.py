"""memd's kinds in the words of the published systems, each with its reason. Pure.

ClawMem forgets by the type of a document, MemU weighs by how much a memory matters; both name kinds
of things that memd does not have. This is the one table that maps ours to theirs.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memd.index.columns import KIND_CODES
from memd.models import Kind


@dataclass(frozen=True, slots=True)
class Likeness:
    """What a kind is like in the published systems."""

    clawmem: str
    significance: str
    """MemU's level."""
    why: str


NEVER = math.inf
HALF_LIVES: Mapping[str, float] = {
    "decision": NEVER, "preference": NEVER, "antipattern": NEVER, "hub": NEVER, "project": 120.0,
    "research": 90.0, "problem": 60.0, "milestone": 60.0, "note": 60.0, "conversation": 45.0,
    "progress": 45.0, "handoff": 30.0,
}  # fmt: skip
"""ClawMem's types and their half-lives in days, as the seed published them."""

LEVELS: Mapping[str, float] = {"routine": 3, "noteworthy": 5, "important": 8, "core": 10}
"""MemU's levels on its scale from 1 to 10. The publication has the levels and the scale, but not which
is where: the example of an important fact has 8, a default of 5 is what an unrated one gets."""

KINDS: Mapping[Kind, Likeness] = {
    Kind.DECISION: Likeness("decision", "important", "the same word, and it governs later work"),
    Kind.FIX: Likeness("problem", "noteworthy", "ClawMem files a bug with its solution as a problem"),
    Kind.FAILURE: Likeness(
        "problem", "noteworthy", "it went wrong once; only a rule against it is an antipattern"
    ),
    Kind.CHANGE: Likeness("progress", "routine", "work that was done, overtaken by the next"),
    Kind.DISCOVERY: Likeness("research", "noteworthy", "what was found out by looking"),
    Kind.PREFERENCE: Likeness("preference", "important", "the same word"),
    Kind.INSTRUCTION: Likeness("preference", "important", "a standing wish, until it is replaced"),
    Kind.FACT: Likeness("hub", "noteworthy", "said on purpose, to be looked up for ever"),
    Kind.TASK: Likeness("progress", "routine", "an open end; done or stale after some weeks"),
    Kind.NOTE: Likeness("note", "noteworthy", "the same word, and the default of both"),
    Kind.SESSION: Likeness("handoff", "routine", "ClawMem writes one when a session stops"),
}  # fmt: skip


def half_lives() -> NDArray[np.float64]:
    """ClawMem's half-life in days by kind code; infinite for what never fades."""
    return _by_code({kind: HALF_LIVES[like.clawmem] for kind, like in KINDS.items()})


def significances() -> NDArray[np.float64]:
    """MemU's significance by kind code, 1 to 10."""
    return _by_code({kind: LEVELS[like.significance] for kind, like in KINDS.items()})


def _by_code(values: Mapping[Kind, float]) -> NDArray[np.float64]:
    row = np.zeros(len(KIND_CODES))
    for kind, value in values.items():
        row[KIND_CODES[kind.value]] = value
    return row

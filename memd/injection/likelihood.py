"""Likelihood that an exchange left something that will hold beyond the work at hand. Pure.

A logistic regression on the form of an exchange alone; `scripts/train-ask` makes the weights from labelled sessions
and prints how they do on people who were left out.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from memd.belief.polarity import has_negation
from memd.caches import cached
from memd.text import words

_TINY, _LONG = 4, 150
"""Words of a prompt that says next to nothing, and of one that is mostly pasted."""


@dataclass(frozen=True, slots=True)
class ExchangeForm:
    """The parts of an exchange from which its features are measured."""

    prompt: str
    answered: str = ""
    """What the user answered in dialogues and said to refused calls."""
    closing: str = ""
    """The agent's closing message."""
    asked_before: bool = False
    """Whether the agent's message before the prompt ended with a question."""
    tools: int = 0
    edits: int = 0


def measure_exchange(form: ExchangeForm) -> dict[str, float]:
    """The features of an exchange: counts as logarithms, the rest 0 or 1."""
    length = len(words(form.prompt))
    return {
        "length": math.log1p(length),
        "length squared": math.log1p(length) ** 2 / 10,
        "answered": float(bool(form.answered)),
        "answered length": math.log1p(len(words(form.answered))),
        "asks": float("?" in form.prompt),
        "lower": float(form.prompt[:1].islower()),
        "lines": float("\n" in form.prompt.strip()),
        "code": float("`" in form.prompt),
        "link": float("://" in form.prompt),
        "tools": math.log1p(form.tools),
        "edits": float(form.edits > 0),
        "closing length": math.log1p(len(form.closing)),
        "was asked": float(form.asked_before),
        "tiny": float(length < _TINY),
        "long": float(length > _LONG),
        "denies": float(has_negation(form.prompt)),
    }


@cached(1)
def _read_weights(name: str) -> Mapping[str, float]:
    text = (resources.files(__package__) / name).read_text(encoding="utf-8")
    weights: Mapping[str, float] = json.loads(text)["weights"]
    return weights


def estimate(form: ExchangeForm) -> float:
    """The probability, 0 to 1, that the exchange holds something worth noting."""
    weights = _read_weights("likelihood.json")
    score = weights["bias"] + sum(
        weights[name] * value for name, value in measure_exchange(form).items()
    )
    return 1 / (1 + math.exp(-score))

"""Weights of small linear models, which a script fitted on labelled data and wrote into a JSON file beside its module."""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources

from memd.caches import cached

_FILES = 8


@cached(_FILES)
def read_weights(package: str, name: str, part: str = "") -> Mapping[str, float]:
    """Read the weights in a package's file, or in a part of that file."""
    content = json.loads((resources.files(package) / name).read_text(encoding="utf-8"))
    weights: Mapping[str, float] = (content[part] if part else content)["weights"]
    return weights


def weigh(weights: Mapping[str, float], features: Mapping[str, float]) -> float:
    """The logarithm of the odds; a feature that was too rare to have a weight counts nothing."""
    return weights["bias"] + sum(weights.get(name, 0.0) * value for name, value in features.items())


def list_runs(mark: str, tokens: Sequence[str]) -> Iterator[str]:
    """Yield the names of the features of a text's words: each word, and each two that follow each other, behind a mark."""
    pairs = (" ".join(pair) for pair in itertools.pairwise(tokens))
    return (mark + one for one in itertools.chain(tokens, pairs))

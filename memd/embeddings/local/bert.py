"""BERT sentence encoders in plain numpy: tokens to one vector per text, equal to sentence-transformers'.

The weights stay in their file. What every text needs is mapped into memory, so that processes share it and the
system may take it back; of the word vectors, half of the file, only those of a text's tokens are read.
"""

import json
import mmap
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memd.embeddings.local.wordpiece import WordPiece

Floats = NDArray[np.float32]
TOKENS_AT_ONCE = 256
"""Padded tokens in one pass, unless one text has more: they fit into the processor's caches."""
_HEADER_BYTES_MAX = 1 << 20
_NUMBER_BYTES = 4
_WORDS = "embeddings.word_embeddings.weight"
_EPSILON = np.float32(1e-12)
"""Added to a variance, as the model was trained."""
_MASKED = np.float32(-1e9)
_GELU_ROWS = 16
_GELU_SCALE = np.float32(0.3275911 * 0.5**0.5)
_GELU_FACTORS = tuple(
    np.float32(factor / 2)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
)


class SafeTensors:
    """The float32 tensors of a safetensors file: a length, that much JSON of names and offsets, the numbers."""

    def __init__(self, path: Path) -> None:
        """Open and map the file. Raises OSError, and ValueError if it is not whole."""
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._handle)
        size = os.fstat(self._handle).st_size
        length = int.from_bytes(os.read(self._handle, 8), "little")
        if not 0 < length <= min(size - 8, _HEADER_BYTES_MAX):
            raise ValueError("it does not begin as a safetensors file")
        self._start = 8 + length
        self._entries = _parse_header(os.read(self._handle, length), size - self._start)
        self._map = mmap.mmap(self._handle, 0, access=mmap.ACCESS_READ)

    @property
    def names(self) -> list[str]:
        """The names of the tensors."""
        return list(self._entries)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor. Raises ValueError if there is none of this name."""
        if name not in self._entries:
            raise ValueError(f"it has no tensor {name}")
        return tuple(self._entries[name]["shape"])

    def view(self, name: str) -> Floats:
        """Return a tensor that shares the file's memory. Raises ValueError if there is none of this name."""
        shape = self.shape(name)
        first = self._start + self._entries[name]["data_offsets"][0]
        found = np.frombuffer(self._map, "<f4", int(np.prod(shape)), first)
        return found.reshape(shape)

    def read_rows(self, name: str, rows: NDArray[np.int64]) -> Floats:
        """Read some rows of a matrix, (n, columns), without mapping the rest of it."""
        columns = self.shape(name)[1]
        first = self._start + self._entries[name]["data_offsets"][0]
        found = np.empty((len(rows), columns), np.float32)
        for at, row in enumerate(rows.tolist()):
            place = first + row * columns * _NUMBER_BYTES
            found[at] = np.frombuffer(os.pread(self._handle, columns * _NUMBER_BYTES, place), "<f4")
        return found


def _parse_header(raw: bytes, room: int) -> dict[str, Any]:
    """Return the entries of the float32 tensors; `room` is the bytes after the header."""
    header = json.loads(raw)
    if not isinstance(header, Mapping):
        raise ValueError("its header is not a table")  # noqa: TRY004  # one kind of error for a bad file
    found = {
        name: entry
        for name, entry in header.items()
        if name != "__metadata__" and entry["dtype"] == "F32"
    }
    for name, entry in found.items():
        first, end = entry["data_offsets"]
        if (
            end - first != _NUMBER_BYTES * int(np.prod(entry["shape"]))
            or not 0 <= first <= end <= room
        ):
            raise ValueError(f"its tensor {name} is not whole")
    return found


class SentenceEncoder:
    """Text to vectors of length 1: the mean over the last layer's states of a text's tokens."""

    def __init__(self, folder: Path, *, heads: int, context: int) -> None:
        """Open `model.safetensors` and `vocab.txt` in a folder. Raises OSError, ValueError."""
        self._heads = heads
        self._weights = SafeTensors(folder / "model.safetensors")
        vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        self._tokens = WordPiece(vocabulary, context)
        words, self.dimensions = self._weights.shape(_WORDS)
        if len(vocabulary) != words:
            raise ValueError(
                f"the vocabulary has {len(vocabulary)} tokens, the weights have {words}"
            )
        self._layers = len(
            {name.split(".")[2] for name in self._weights.names if name.startswith("encoder.")}
        )
        self._w = {name: self._weights.view(name) for name in self._weights.names if name != _WORDS}

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return one row per text; texts of similar length share a pass, so that little is padded."""
        ids = [self._tokens.encode(text) for text in texts]
        rows = np.zeros((len(ids), self.dimensions), np.float32)
        for group in group_by_length(ids):
            rows[group] = self._embed_group([ids[at] for at in group])
        return scale_to_unit(rows)

    def _embed_group(self, ids: Sequence[Sequence[int]]) -> Floats:
        """Return the mean states of a few texts, (texts, dimensions)."""
        lengths = np.array([len(one) for one in ids])
        tokens = np.zeros((len(ids), lengths.max()), np.int64)
        for row, one in enumerate(ids):
            tokens[row, : len(one)] = one
        is_token = np.arange(tokens.shape[1]) < lengths[:, None]
        states = self._encode(tokens, None if is_token.all() else is_token)
        states *= is_token[:, :, None]
        found: Floats = states.sum(1) / lengths[:, None].astype(np.float32)
        return found

    def _encode(self, tokens: NDArray[np.int64], is_token: NDArray[np.bool_] | None) -> Floats:
        """Return the last layer's state of each token, (texts, tokens, dimensions)."""
        numbers, places = np.unique(tokens, return_inverse=True)
        x = self._weights.read_rows(_WORDS, numbers)[places.reshape(tokens.shape)]
        x += self._w["embeddings.position_embeddings.weight"][: tokens.shape[1]]
        x += self._w["embeddings.token_type_embeddings.weight"][0]
        x = self._normalize(x, "embeddings.LayerNorm")
        mask = (
            None if is_token is None else np.where(is_token, np.float32(0), _MASKED)[:, None, None]
        )
        for number in range(self._layers):
            layer = f"encoder.layer.{number}."
            x += self._attend(x, mask, layer)
            x = self._normalize(x, layer + "attention.output.LayerNorm")
            wide = self._multiply(x, layer + "intermediate.dense")
            apply_gelu(wide.reshape(-1, wide.shape[-1]))
            x += self._multiply(wide, layer + "output.dense")
            x = self._normalize(x, layer + "output.LayerNorm")
        return x

    def _attend(self, x: Floats, mask: Floats | None, layer: str) -> Floats:
        texts, length, _ = x.shape

        def split(name: str) -> Floats:
            whole = self._multiply(x, f"{layer}attention.self.{name}")
            return whole.reshape(texts, length, self._heads, -1).transpose(0, 2, 1, 3)

        query, key, value = split("query"), split("key"), split("value")
        scores: Floats = query @ key.transpose(0, 1, 3, 2)
        scores *= np.float32(query.shape[-1] ** -0.5)
        if mask is not None:
            scores += mask
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        mixed = np.matmul(scores, value).transpose(0, 2, 1, 3).reshape(x.shape)
        return self._multiply(mixed, layer + "attention.output.dense")

    def _multiply(self, x: Floats, name: str) -> Floats:
        flat = x.reshape(-1, x.shape[-1]) @ self._w[name + ".weight"].T
        flat += self._w[name + ".bias"]
        return flat.reshape(*x.shape[:-1], -1)

    def _normalize(self, x: Floats, name: str) -> Floats:
        x -= x.mean(-1, keepdims=True)
        x /= np.sqrt(
            np.einsum("...i,...i->...", x, x)[..., None] / np.float32(x.shape[-1]) + _EPSILON
        )
        x *= self._w[name + ".weight"]
        x += self._w[name + ".bias"]
        return x


def apply_gelu(x: Floats) -> Floats:
    """Make each number of (n, m) x · Φ(x), in place; return the array. Gaussian error linear units.

    It is max(x, 0) - |x| · Φ(-|x|), with Φ by Abramowitz and Stegun's 7.1.26 (off by 1.5e-7 at most), a few rows
    at a time, so that they stay in the processor's cache.
    """
    for start in range(0, len(x), _GELU_ROWS):
        rows = x[start : start + _GELU_ROWS]
        size = np.abs(rows)
        t = np.reciprocal(size * _GELU_SCALE + np.float32(1))
        tail = t * _GELU_FACTORS[0]
        for factor in _GELU_FACTORS[1:]:
            tail += factor
            tail *= t
        tail *= size
        size *= size
        size *= np.float32(-0.5)
        tail *= np.exp(size, out=size)
        np.maximum(rows, np.float32(0), out=rows)
        rows -= tail
    return x


def scale_to_unit(rows: Floats) -> Floats:
    """Return each row scaled to length 1; a row of zeros is unchanged."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    found: Floats = np.divide(rows, np.maximum(lengths, 1e-9), dtype=np.float32)
    return found


def group_by_length(ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the numbers of the texts, shortest first, in groups that fit into one pass."""
    group: list[int] = []
    for at in sorted(range(len(ids)), key=lambda at: len(ids[at])):
        if group and (len(group) + 1) * len(ids[at]) > TOKENS_AT_ONCE:
            yield group
            group = []
        group.append(at)
    if group:
        yield group

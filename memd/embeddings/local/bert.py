"""BERT sentence encoders in plain numpy: tokens to one vector per text, equal to sentence-transformers'.

The weights stay in their file. What every text needs is mapped into memory, so that processes share it and the
system may take it back; of the word vectors, half of the file, only those of a text's tokens are read.

Tokens are those of an uncased model, as Hugging Face's tokenizers make them: control characters go, Chinese characters
and punctuation stand alone, accents are stripped, letters become lower case; then each word is split greedily into the
longest pieces that the vocabulary has (Devlin et al., 2018).

`main` is the process that computes the vectors for one daemon, and ends by itself when it is idle.
"""

import functools
import hashlib
import json
import mmap
import os
import re
import select
import sys
import unicodedata
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


WORD_CHARACTERS_MAX = 100
"""A longer word is one unknown token."""
# ── Word pieces ──────────────────────────────────────────────────────────────────────────────────

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_LITERAL_SPECIAL = re.compile("|".join(f"({re.escape(token)})" for token in _SPECIAL))
"""Special tokens that stand in a text are themselves, whatever their letters would make."""
_CONTINUED = "##"
_WORDS_CACHED = 8_192
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip
"""First and last code points of what BERT calls Chinese characters."""
_NO_CHARACTERS = (0x0, 0xFFFD)
_ASCII_PUNCTUATION = frozenset(r"""!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~""")


class WordPiece:
    """The tokenizer of one vocabulary."""

    def __init__(self, vocabulary: Sequence[str], limit: int) -> None:
        """Take the tokens in the order of their ids, and the most ids that a text may have.

        Raises ValueError if a special token is missing.
        """
        self._ids = {token: number for number, token in enumerate(vocabulary)}
        missing = [token for token in _SPECIAL if token not in self._ids]
        if missing:
            raise ValueError(f"the vocabulary lacks {', '.join(missing)}")
        self._limit = limit
        self._unknown = self._ids["[UNK]"]
        self._split_word = functools.lru_cache(_WORDS_CACHED)(self._find_pieces)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text: `[CLS]`, at most `limit` - 2 pieces, `[SEP]`."""
        found: list[int] = []
        for ids in self._pieces_of(text):
            found += ids
            if len(found) >= self._limit - 2:
                break
        return [self._ids["[CLS]"], *found[: self._limit - 2], self._ids["[SEP]"]]

    def _pieces_of(self, text: str) -> Iterator[Sequence[int]]:
        for part in _LITERAL_SPECIAL.split(text):
            if part in _SPECIAL:
                yield (self._ids[part],)
            elif part:
                yield from map(self._split_word, split_words(part))

    def _find_pieces(self, word: str) -> tuple[int, ...]:
        """Return the ids of a word's pieces, longest first; one unknown token if there are none for all of it."""
        if len(word) > WORD_CHARACTERS_MAX:
            return (self._unknown,)
        found: list[int] = []
        start = 0
        while start < len(word):
            prefix = _CONTINUED if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self._ids), None)
            if end is None:
                return (self._unknown,)
            found.append(self._ids[prefix + word[start:end]])
            start = end
        return tuple(found)


def split_words(text: str) -> list[str]:
    """Return the words and punctuation marks of a text, cleaned, without accents, in lower case.

    >>> split_words("Größe:  naïve_码x")
    ['große', ':', 'naive', '_', '码', 'x']
    """
    cleaned = text.translate(_CLEANED)
    # Of ASCII there is nothing to decompose.
    decomposed = cleaned if cleaned.isascii() else unicodedata.normalize("NFD", cleaned)
    return decomposed.translate(_LOWERED).split()


class _CharacterTable(dict[int, str]):
    """The replacement of each character; computed when it first occurs."""

    def __init__(self, convert: Callable[[str], str]) -> None:
        super().__init__()
        self._convert = convert

    def __missing__(self, code: int) -> str:
        self[code] = found = self._convert(chr(code))
        return found


def _clean(character: str) -> str:
    """Drop a control character, make every blank a space, set a Chinese character apart."""
    if ord(character) in _NO_CHARACTERS:
        return ""
    if character in "\t\n\r" or (character.isspace() and not _is_control(character)):
        return " "
    if _is_control(character):
        return ""
    return f" {character} " if _is_ideograph(ord(character)) else character


def _lower(character: str) -> str:
    """Drop an accent, set punctuation apart, make each letter lower case by itself, final sigma included."""
    if unicodedata.category(character) == "Mn":
        return ""
    is_mark = character in _ASCII_PUNCTUATION or unicodedata.category(character)[0] == "P"
    return f" {character} " if is_mark else character.lower()


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs")


def _is_ideograph(code: int) -> bool:
    return any(first <= code <= last for first, last in _IDEOGRAPHS)


_CLEANED, _LOWERED = _CharacterTable(_clean), _CharacterTable(_lower)


VECTORS, ERROR = b"\x00", b"\x01"
_STDIN, _STDOUT = 0, 1


def main(arguments: Sequence[str]) -> None:
    """Answer requests until stdin is closed or nothing was asked for a while.

    A request is a length of four bytes and JSON, a list of texts. A reply on stdout is a length, one byte, 0 for
    vectors as float32 or 1 for the words of an error, after which the process ends. With a digest the weights are
    checked once before they are used.
    """
    folder, heads, context, idle_s, nice, *digest = arguments
    os.nice(int(nice))
    try:
        check_weights(Path(folder), *digest)
        encoder = SentenceEncoder(Path(folder), heads=int(heads), context=int(context))
        while (texts := _read_request(float(idle_s))) is not None:
            _reply(VECTORS, encoder.embed(texts).astype("<f4").tobytes())
    except (OSError, ValueError, KeyError, TypeError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        _reply(ERROR, reason.encode())


def check_weights(folder: Path, digest: str = "") -> None:
    """Raise ValueError if the weights do not have this SHA-256; OSError if they cannot be read."""
    if digest:
        with (folder / "model.safetensors").open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise ValueError("the weights are damaged, their SHA-256 differs")


def _read_request(idle_s: float) -> list[str] | None:
    """Return the texts of the next request; None at the end of stdin, or if none comes in time."""
    if not select.select([_STDIN], [], [], idle_s)[0]:
        return None
    length = _read(4)
    whole = _read(int.from_bytes(length, "little")) if len(length) == 4 else b""  # noqa: PLR2004  # bytes of a length
    return [str(text) for text in json.loads(whole)] if whole else None


def _read(count: int) -> bytes:
    """Read this many bytes of stdin; fewer at its end."""
    whole = bytearray()
    while len(whole) < count and (part := os.read(_STDIN, count - len(whole))):
        whole += part
    return bytes(whole)


def _reply(kind: bytes, body: bytes) -> None:
    whole = memoryview(len(kind + body).to_bytes(4, "little") + kind + body)
    try:
        while whole:
            whole = whole[os.write(_STDOUT, whole) :]
    except ConnectionError:
        sys.exit(0)  # the daemon has gone

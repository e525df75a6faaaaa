"""The process that computes a local model's vectors for one daemon. It ends by itself when it is idle.

    python -c BOOT PATHS FOLDER HEADS CONTEXT IDLE_S NICE [DIGEST]

A request on stdin is a length of four bytes and JSON, a list of texts. A reply on stdout is a length, one byte,
0 for vectors as float32 or 1 for the words of an error, after which the process ends. With a digest the weights
are checked once before they are used.
"""

import hashlib
import json
import os
import select
import sys
from collections.abc import Sequence
from pathlib import Path

from memd.embeddings.local.bert import SentenceEncoder

VECTORS, ERROR = b"\x00", b"\x01"
_STDIN, _STDOUT = 0, 1


def main(arguments: Sequence[str]) -> None:
    """Answer requests until stdin is closed or nothing was asked for a while."""
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

"""Ollama's protocol on 127.0.0.1 for the models of minilm.py: a learned model without Ollama.

Prints its URL, then serves /api/embed, /api/tags and /api/show until it is killed. A text is
computed once: its vector is cached. Another --digest is another model: the same vectors with their dimensions
rotated, so that the two cannot be compared. GET /spent returns what computing took. Ollama's queue and its errors
are in tests/fakes/ollama.py.
"""

import argparse
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import minilm
from benchmarks.minilm import CACHE, Floats


class VectorCache:
    """Vectors by the hash of their text, in memory and, if there is a file, across runs."""

    def __init__(self, file: Path | None, dimensions: int) -> None:
        self._rows: dict[bytes, Floats] = {}
        self._file = file
        if file is not None and file.exists():
            record = np.dtype([("key", "V32"), ("row", np.float32, dimensions)])
            # What was written when it was killed may be half a record.
            os.truncate(file, file.stat().st_size // record.itemsize * record.itemsize)
            for one in np.fromfile(file, record):
                self._rows[one["key"].tobytes()] = one["row"]

    def get(self, text: str) -> Floats | None:
        """The vector of a text, if it was computed before."""
        return self._rows.get(hashlib.sha256(text.encode()).digest())

    def put(self, texts: Sequence[str], rows: Floats) -> None:
        """Add these."""
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        self._rows.update(zip(keys, rows, strict=True))
        if self._file is not None:
            pairs = zip(keys, rows, strict=True)
            with self._file.open("ab", buffering=0) as file:
                file.write(b"".join(key + row.tobytes() for key, row in pairs))


class StubModel:
    """A model as Ollama serves it: with a name and a digest."""

    def __init__(self, name: str, salt: str, rate: float, *, is_cached: bool) -> None:
        self.weights = minilm.load(name)
        self.name = name
        self.digest = digest(self.weights, salt)
        self._salt = salt
        self._text_s = 1 / rate if rate else 0.0
        file = CACHE / f"{name}-{self.weights.digest[:12]}.vectors" if is_cached else None
        self._cache = VectorCache(file, self.weights.dimensions)
        self._computing = threading.Lock()
        self.spent = {"asked": 0, "computed": 0, "seconds": 0.0}

    def embed(self, texts: Sequence[str]) -> Floats:
        """One row per text; texts that are not cached are computed, one request at a time."""
        self.spent["asked"] += len(texts)
        if any(self._cache.get(text) is None for text in texts):
            with self._computing:
                new = [text for text in dict.fromkeys(texts) if self._cache.get(text) is None]
                self._compute(new)
        found = [row for text in texts if (row := self._cache.get(text)) is not None]
        return rotate(np.array(found, np.float32).reshape(-1, self.weights.dimensions), self._salt)

    def _compute(self, texts: Sequence[str]) -> None:
        began = time.perf_counter()
        self._cache.put(texts, self.weights.vectors(texts))
        time.sleep(max(0.0, began + self._text_s * len(texts) - time.perf_counter()))
        self.spent["computed"] += len(texts)
        self.spent["seconds"] += time.perf_counter() - began


def digest(model: minilm.Model, salt: str) -> str:
    """The digest of a model; with a salt, of the other model that rotates its vectors."""
    return hashlib.sha256((model.digest + salt).encode()).hexdigest() if salt else model.digest


def rotate(rows: Floats, salt: str) -> Floats:
    """The rows as the model with this salt computes them; unchanged without a salt."""
    places = int(hashlib.sha256(salt.encode()).hexdigest(), 16) % (rows.shape[1] - 1) + 1
    return np.roll(rows, places, axis=1) if salt else rows


class Handler(BaseHTTPRequestHandler):
    """Ollama's endpoints, as far as embeddings need them."""

    protocol_version = "HTTP/1.1"
    model: StubModel
    # Headers and body leave in two writes; the second would wait for the first one's receipt.
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its name in the base class
        """Log nothing."""

    def do_GET(self) -> None:
        """List the model, or return what computing took."""
        tags = {"models": [{"name": f"{self.model.name}:latest", "digest": self.model.digest}]}
        self._answer({"/api/tags": tags, "/spent": self.model.spent}.get(self.path))

    def do_POST(self) -> None:
        """Embed, or describe the model."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
        answer: dict[str, Any] | None = None
        if self.path == "/api/embed":
            given = request.get("input") or []
            rows = self.model.embed([given] if isinstance(given, str) else given)
            rows = rows[:, : request.get("dimensions") or None]
            answer = {"embeddings": np.round(rows.astype(np.float64), 7).tolist()}
        elif self.path == "/api/show":
            weights = self.model.weights
            sizes = {"context_length": weights.context, "embedding_length": weights.dimensions}
            answer = {"model_info": {f"bert.{name}": size for name, size in sizes.items()}}
        self._answer(answer)

    def _answer(self, body: dict[str, Any] | None) -> None:
        data = json.dumps(body or {"error": f"no such path: {self.path}"}).encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Server(ThreadingHTTPServer):
    """One thread per connection; none of them delays the exit."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that went away; anything else is an error of this stub."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(prog="benchmarks.ollama_stub")
    parser.add_argument("--model", choices=minilm.MODELS, required=True)
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument("--digest", default="", help="serve a model with another digest")
    parser.add_argument("--rate", type=float, default=0.0, help="texts per second at most")
    options = parser.parse_args()
    is_cached = options.model in minilm.SLOW
    Handler.model = StubModel(options.model, options.digest, options.rate, is_cached=is_cached)
    with Server(("127.0.0.1", options.port), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()

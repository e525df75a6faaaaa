"""A stand-in for Ollama: a real HTTP server on 127.0.0.1 with its routes, statuses and faults.

    with Ollama() as server:                 # port chosen; one model, nomic-embed-text
        config = server.engines(embedder="ollama")      # an EnginesConfig that points here
        server.fault = "hang"                # see FAULTS; None heals it. Effective at once.
        server.delay_s = 0.2                 # every answer that much later
        server.models.clear()                # the model is not pulled (404, not in /api/tags)
        server.pull("nomic-embed-text", seed=2)         # another digest, other vectors
        server.kill(); server.start()        # connections cut and refused; then back, on the same port
        server.texts                         # every text that was asked for, prefix included
        server.calls("/api/embed")           # bodies of the requests to a route
        server.replies = ["a", "b"]          # what its chat models say next; the last for ever
    vectors = Model(seed=1).vectors(["a text"])         # what it would answer, without HTTP

Vectors are deterministic and carry some meaning: the hashing embedder's, in which the words of each
line of SYNONYMS are one word ("automobile" is found by "car": only the learned leg can do that),
with signs and places shuffled by the model's seed, so two digests or two spaces never agree, and a
part that all share: two unrelated texts have a cosine of about .36, as with real models.
As a program: `python -m tests.fakes.ollama PORT`.
"""

import contextlib
import functools
import hashlib
import json
import math
import socket
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from memd.config import EnginesConfig
from memd.embeddings.hashing import DIMENSIONS, HashingEmbedder
from memd.text import words

SYNONYMS = (
    ("car", "automobile", "vehicle"),
    ("login", "signin", "authentication", "auth"),
    ("crash", "outage", "downtime"),
    ("delete", "erase", "wipe"),
    ("fast", "speedy", "latency", "performance"),
    ("database", "postgres", "sqlite", "persistence"),
    ("deploy", "rollout", "shipping"),
    ("doctor", "physician"),
    ("holiday", "vacation"),
)
FAULTS = {
    "hang": "accepts, reads and never answers",
    "hang embed": "the same for vectors; what it has is still told",
    "busy": "503, as with a full queue",
    "broken": "500, as when the runner dies",
    "disconnect": "cuts the connection in the middle of the reply",
    "not json": "200 with a page of HTML",
    "wrong count": "a vector too few",
    "wrong dimension": "all vectors a value short",
    "mixed dimensions": "the last vector a value short",
    "reversed": "/v1/embeddings: the last first, each with its index",
    "nan": "a NaN in the last vector",
    "infinite": "a value too large for float32",
    "zero": "the last vector all zeros",
    "null": "values that are not numbers",
    "endless": "a reply without an end",
    "redirect": "sends the client elsewhere",
    "too long": "400: the input length exceeds the context length, whatever its length",
}
_MEANING, _COMMON = 0.8, 0.6
_PREFIXES = ("search_query: ", "search_document: ")
_CANONICAL = {word: line[0] for line in SYNONYMS for word in line}


@dataclass
class Model:
    """A model that was pulled."""

    seed: int = 1
    dimensions: int = DIMENSIONS
    context_tokens: int = 2_048
    """At four characters each; a longer text is refused, as by versions that ignore `truncate`."""
    family: str = "nomic-bert"
    remote_host: str = ""
    """Set: the model runs in somebody's cloud, and this server only passes texts on."""

    @property
    def digest(self):
        return hashlib.sha256(f"model {self.seed}".encode()).hexdigest()

    def vectors(self, texts, dimensions=0):
        """(n, dimensions) float64 of length one; cut and made one again if `dimensions` says so."""
        wide = max(self.dimensions, DIMENSIONS)
        places, signs, common = _shuffle(self.seed, wide)
        rows = np.zeros((len(texts), wide))
        rows[:, :DIMENSIONS] = _MEANING * HashingEmbedder().embed([_plain(t) for t in texts])
        rows = rows[:, places] * signs + _COMMON * common
        rows = rows[:, : min(dimensions or self.dimensions, self.dimensions)]
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@dataclass
class Ollama:
    """The server; what is set here counts from the next request on."""

    port: int = 0
    fault: str | None = None
    delay_s: float = 0.0
    models: dict[str, Model] = field(default_factory=lambda: {"nomic-embed-text:latest": Model()})
    ignores_truncate: bool = True
    replies: list[str] = field(default_factory=list)
    """What is said at /api/chat, in turn; the last one again and again."""
    requests: list[tuple[str, dict]] = field(default_factory=list)
    """(route, body) of every request, in order."""
    headers: list[dict[str, str]] = field(default_factory=list)
    """Of every request, names in lower case."""

    def __post_init__(self):
        self._server = None
        self._released = threading.Event()
        self._embedded, self._embedded_max = 0, math.inf

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()

    def start(self):
        """Listen; on the port that it had, if it was killed before."""
        self._released.clear()
        self._server = _Server(("127.0.0.1", self.port), self)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def hold_after(self, texts):
        """Embed so many more texts, then answer no such request until this is called again; None: no limit."""
        self._embedded, self._embedded_max = 0, math.inf if texts is None else texts

    def embeds(self, texts):
        """Whether these may be embedded now."""
        if self._embedded + len(texts) > self._embedded_max:
            return False
        self._embedded += len(texts)
        return True

    def kill(self):
        """Stop listening and cut every connection."""
        server, self._server = self._server, None
        if server is not None:
            self._released.set()
            server.shutdown()
            server.cut()
            server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def engines(self, **settings):
        """The settings that make memd ask this server."""
        return EnginesConfig(**({"embedder": "ollama", "url": self.url} | settings))

    def pull(self, name="nomic-embed-text", **model):
        """Have a model, or another version of it (`seed=2`)."""
        self.models[_tagged(name)] = Model(**model)

    def calls(self, route):
        """The bodies of the requests to a route."""
        return [body for path, body in list(self.requests) if path == route]

    @property
    def texts(self):
        """Every text that was to be embedded, in order, as it came."""
        return [text for body in self.calls("/api/embed") + self.calls("/v1/embeddings")
                for text in _inputs(body)]  # fmt: skip

    def wait(self, seconds=None):
        """Wait as long, or until killed; whether it lives."""
        return not self._released.wait(seconds)


def _tagged(name):
    return name if ":" in name else f"{name}:latest"


def _inputs(body):
    given = body.get("input", [])
    return [given] if isinstance(given, str) else list(given)


def _plain(text):
    for prefix in _PREFIXES:
        text = text.removeprefix(prefix)
    return " ".join(_CANONICAL.get(word.lower(), word) for word in words(text))


@functools.lru_cache
def _shuffle(seed, wide):
    chance = np.random.default_rng(seed)
    common = chance.standard_normal(wide)
    return (
        chance.permutation(wide),
        chance.choice([-1.0, 1.0], wide),
        common / np.linalg.norm(common),
    )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address, owner):
        self.owner = owner
        self.open = set()
        super().__init__(address, _Handler)

    def cut(self):
        for connection in list(self.open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request, client_address):
        """A client that went away is no error here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.server.open.add(self.connection)

    def finish(self):
        self.server.open.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, *_):
        """Nothing on stderr."""

    def do_GET(self):
        self._serve({})

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        try:
            body = json.loads(self.rfile.read(length))
        except ValueError:
            return self._say({"error": "invalid JSON"}, 400)
        return self._serve(body)

    def _serve(self, body):
        owner = self.server.owner
        owner.headers.append({name.lower(): value for name, value in self.headers.items()})
        owner.requests.append((self.path, body))
        is_embedding = self.path in ("/api/embed", "/v1/embeddings")
        lives = owner.wait(owner.delay_s) if owner.delay_s else True
        while is_embedding and lives and not owner.embeds(_inputs(body)):
            lives = owner.wait(0.01)
        if not lives:
            return self._hang_up()
        if owner.fault == "hang" or (owner.fault == "hang embed" and is_embedding):
            owner.wait()
            return self._hang_up()
        if owner.fault in _BEFORE:
            return _BEFORE[owner.fault](self)
        if self.path == "/":
            return self._send(b"Ollama is running", "text/plain")
        routes = {"/api/version": self._version, "/api/tags": self._tags, "/api/show": self._show,
                  "/api/embed": self._embed, "/api/chat": self._chat, "/v1/models": self._list,
                  "/v1/embeddings": self._embed}  # fmt: skip
        if self.path not in routes:
            return self._send(b"404 page not found", "text/plain", 404)
        return routes[self.path](body)

    def _version(self, _):
        self._say({"version": "0.15.2"})

    def _tags(self, _):
        self._say({"models": [
            {"name": name, "model": name, "digest": model.digest, "size": 274_302_450,
             "details": {"format": "gguf", "family": model.family, "parameter_size": "137M"},
             **({"remote_host": model.remote_host} if model.remote_host else {})}
            for name, model in self.server.owner.models.items()
        ]})  # fmt: skip

    def _show(self, body):
        model = self._model(body)
        if model is not None:
            self._say({
                "details": {"family": model.family, "quantization_level": "F16"},
                "model_info": {
                    "general.architecture": model.family,
                    f"{model.family}.context_length": model.context_tokens,
                    f"{model.family}.embedding_length": model.dimensions,
                },
                "capabilities": ["embedding"],
            })  # fmt: skip

    def _chat(self, body):
        if self._model(body) is None:
            return
        replies = self.server.owner.replies
        said = replies.pop(0) if len(replies) > 1 else "".join(replies)
        self._say({"model": body["model"], "message": {"role": "assistant", "content": said},
                   "done_reason": "stop", "done": True})  # fmt: skip

    def _list(self, _):
        self._say({"object": "list", "data": [
            {"id": name.removesuffix(":latest"), "object": "model", "owned_by": "library"}
            for name in self.server.owner.models
        ]})  # fmt: skip

    def _model(self, body):
        name = body.get("model") or body.get("name") or ""
        model = self.server.owner.models.get(_tagged(name))
        if model is None:
            self._say({"error": f'model "{name}" not found, try pulling it first'}, 404)
        return model

    def _embed(self, body):
        owner, model = self.server.owner, self._model(body)
        if model is None:
            return None
        texts = _inputs(body)
        limit = 4 * model.context_tokens
        is_refused = owner.ignores_truncate or body.get("truncate") is False
        if owner.fault == "too long" or (is_refused and any(len(t) > limit for t in texts)):
            return self._say({"error": "the input length exceeds the context length"}, 400)
        rows = model.vectors([t[:limit] for t in texts], body.get("dimensions") or 0)
        vectors = _spoilt(np.round(rows, 7).tolist(), owner.fault)
        if self.path == "/api/embed":
            if texts == [""]:
                vectors = []
            return self._say({"model": body["model"], "embeddings": vectors,
                              "prompt_eval_count": sum(map(len, texts)) // 4})  # fmt: skip
        data = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)]
        if owner.fault == "reversed":
            data.reverse()
        return self._say({"object": "list", "data": data, "model": body["model"]})

    def _say(self, value, status=200):
        self._send(json.dumps(value).encode(), "application/json", status)

    def _send(self, content, kind, status=200, **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _hang_up(self):
        self.close_connection = True

    def _cut_short(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.wfile.write(b'{"embeddings": [[0.1, 0.2')
        self._hang_up()

    def _go_on_for_ever(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        with contextlib.suppress(OSError):
            while self.server.owner.wait(0):
                self.wfile.write(b" " * 1_000_000)
        self._hang_up()


_BEFORE = {
    "busy": lambda it: it._say(
        {"error": "server busy, please try again.  maximum pending requests exceeded"}, 503
    ),
    "broken": lambda it: it._say({"error": "llama runner process has terminated"}, 500),
    "not json": lambda it: it._send(b"<html>It works!</html>", "text/html"),
    "redirect": lambda it: it._send(b"", "text/plain", 302, Location="http://127.0.0.1:9/"),
    "disconnect": _Handler._cut_short,
    "endless": _Handler._go_on_for_ever,
}


_SPOILT = {
    "wrong count": lambda rows: rows[:-1],
    "wrong dimension": lambda rows: [row[:-1] for row in rows],
    "mixed dimensions": lambda rows: [*rows[:-1], rows[-1][:-1]],
    "nan": lambda rows: [*rows[:-1], [float("nan"), *rows[-1][1:]]],
    "infinite": lambda rows: [*rows[:-1], [1e300, *rows[-1][1:]]],
    "zero": lambda rows: [*rows[:-1], [0.0] * len(rows[-1])],
    "null": lambda rows: [*rows[:-1], [None, *rows[-1][1:]]],
}


def _spoilt(rows, fault):
    return _SPOILT[fault](rows) if rows and fault in _SPOILT else rows


if __name__ == "__main__":
    with Ollama(port=int(sys.argv[1])) as running, contextlib.suppress(KeyboardInterrupt):
        sys.stdout.write(f"{running.url} answers as Ollama would; Ctrl-C ends it\n")
        sys.stdout.flush()
        running.wait()

"""A Messages API on 127.0.0.1 that answers by a script, and records its requests.

For running the real Claude Code without a model and without a network. `POST /v1/messages` is
answered as a stream, turn by turn; everything else is 404, which the client takes in its stride. A
client that asks too often is refused: a hook that makes it continue would never end. Not here:
what the turns are, and what the requests should carry.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

REQUESTS_MAX = 100
"""Of one API in its life."""
USAGE = {"input_tokens": 100, "output_tokens": 10}


@dataclass(frozen=True, slots=True)
class Say:
    """The model's turn is a text, and with it the client's turn is over."""

    text: str

    stop = "end_turn"

    def block(self, _: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """The content block as it starts, and all of it as one delta."""
        return {"type": "text", "text": ""}, {"type": "text_delta", "text": self.text}


@dataclass(frozen=True, slots=True)
class Use:
    """The model calls a tool, and gets the result."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)

    stop = "tool_use"

    def block(self, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """The content block as it starts, and all of its input as one delta."""
        start = {
            "type": "tool_use",
            "id": f"toolu_scripted_{number:04}",
            "name": self.tool,
            "input": {},
        }
        return start, {"type": "input_json_delta", "partial_json": json.dumps(self.arguments)}


Turn = Say | Use


class ScriptedApi:
    """The API itself; a context manager. `requests` holds every body, in the order of arrival."""

    def __init__(self, requests_max: int = REQUESTS_MAX, think_s: float = 0.0) -> None:
        """Listen on a free port, and take `think_s` for every turn."""
        self.requests: list[dict[str, Any]] = []
        self.unscripted: list[dict[str, Any]] = []
        """Those that came when no turn was left."""
        self.think_s = think_s
        self._requests_max = requests_max
        self._turns: deque[Turn] = deque()
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """What ANTHROPIC_BASE_URL has to say."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def play(self, *turns: Turn) -> None:
        """Answer the next requests with these, and forget what is left of the script before."""
        with self._lock:
            self._turns = deque(turns)

    @property
    def left(self) -> Sequence[Turn]:
        """The turns that were not requested yet."""
        with self._lock:
            return tuple(self._turns)

    def answer(self, body: dict[str, Any]) -> tuple[int, Turn] | None:
        """The request's number and its turn; None once there have been too many."""
        with self._lock:
            if len(self.requests) >= self._requests_max:
                return None
            self.requests.append(body)
            if self._turns:
                return len(self.requests), self._turns.popleft()
            self.unscripted.append(body)
            return len(self.requests), Say("There is nothing more to say.")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, api: ScriptedApi) -> None:
        self.api = api
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.partition("?")[0] != "/v1/messages":
            self._refuse(404, "not_found_error", "only /v1/messages is scripted")
            return
        body = json.loads(raw)
        answer = self.server.api.answer(body)
        if answer is None:
            self._refuse(400, "invalid_request_error", "more requests than the script allows")
            return
        time.sleep(self.server.api.think_s)
        text = "".join(
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
            for event in stream(*answer, str(body.get("model", "scripted")))
        )
        self._reply(200, "text/event-stream", text.encode())

    def do_GET(self) -> None:
        self._refuse(404, "not_found_error", "only /v1/messages is scripted")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _refuse(self, status: int, kind: str, message: str) -> None:
        body = {"type": "error", "error": {"type": kind, "message": message}}
        self._reply(status, "application/json", json.dumps(body).encode())

    def _reply(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: the client reports what matters."""


def stream(number: int, turn: Turn, model: str) -> Iterator[dict[str, Any]]:
    """The events of one streamed message, from message_start to message_stop."""
    start, delta = turn.block(number)
    message = {
        "id": f"msg_scripted_{number:04}", "type": "message", "role": "assistant", "model": model,
        "content": [], "stop_reason": None, "stop_sequence": None, "usage": USAGE,
    }  # fmt: skip
    yield {"type": "message_start", "message": message}
    yield {"type": "content_block_start", "index": 0, "content_block": start}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": turn.stop, "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 10}}
    yield {"type": "message_stop"}


def texts(body: dict[str, Any]) -> Iterator[str]:
    """Every text that a request's messages carry, results of tools included, in order."""
    for message in body.get("messages", ()):
        yield from _texts(message.get("content"))


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "text":
            yield block["text"]
        elif block.get("type") == "tool_result":
            yield from _texts(block.get("content"))


def results(body: dict[str, Any]) -> Iterator[tuple[str, bool, str]]:
    """Every result of a tool in a request: the call's id, whether it failed, its text."""
    for message in body.get("messages", ()):
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_result":
                text = "\n".join(_texts(block.get("content")))
                yield block["tool_use_id"], bool(block.get("is_error")), text

"""An OpenAI-compatible API on 127.0.0.1 that answers by a script: responses for Codex, chat completions for Copilot.

Not here: what the turns are, and what the requests should carry.
"""

import itertools
import json
import threading
from collections import deque
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from e2e.scripted_api import REQUESTS_MAX, Say, Turn, Use


class ScriptedOpenAi:
    """The API; a context manager. `requests` holds every body, in the order of arrival."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.turns: deque[Turn] = deque()
        self._numbers = itertools.count()
        api = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Say nothing."""

            def do_GET(self) -> None:
                self.send_error(404)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                answer = api.answer(self.path, body)
                if answer is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        """Serve."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._server.shutdown()
        self._server.server_close()

    def script(self, *turns: Turn) -> None:
        """What is answered from now on; forget what was asked."""
        self.turns = deque(turns)
        self.requests.clear()

    def answer(self, path: str, body: bytes) -> bytes | None:
        """The stream for one request; None if it is none for a model, or one too many."""
        number = next(self._numbers)
        if not path.endswith(("/responses", "/chat/completions")) or number > REQUESTS_MAX:
            return None
        self.requests.append(json.loads(body))
        turn = self.turns.popleft() if self.turns else Say("Nothing more to say.")
        write = _write_response if path.endswith("/responses") else _write_completion
        return "".join(write(turn, number)).encode()


def _call_id(number: int) -> str:
    return f"call_Scripted{number:016}"


def _write_response(turn: Turn, number: int) -> Iterator[str]:
    item: dict[str, Any]
    if isinstance(turn, Use):
        namespace, _, name = turn.tool.rpartition("/")
        item = {
            "type": "function_call", "id": f"fc_{number}", "call_id": _call_id(number), "name": name,
            "arguments": json.dumps(turn.arguments), **({"namespace": namespace} if namespace else {}),
        }  # fmt: skip
    else:
        text = {"type": "output_text", "text": turn.text}
        item = {"type": "message", "role": "assistant", "id": f"msg_{number}", "content": [text]}
    ended = {
        "id": f"resp_{number}",
        "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
    }
    for event in (
        {"type": "response.created", "response": {"id": f"resp_{number}"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": ended},
    ):
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def _write_completion(turn: Turn, number: int) -> Iterator[str]:
    delta: dict[str, Any] = {"role": "assistant"}
    if isinstance(turn, Use):
        called = {"name": turn.tool, "arguments": json.dumps(turn.arguments)}
        call = {"index": 0, "id": _call_id(number), "type": "function", "function": called}
        delta |= {"content": None, "tool_calls": [call]}
    else:
        delta["content"] = turn.text
    reason = "tool_calls" if isinstance(turn, Use) else "stop"
    for part, ended in ((delta, None), ({}, reason)):
        choice = {"index": 0, "delta": part, "finish_reason": ended}
        chunk = {
            "id": f"c{number}",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"

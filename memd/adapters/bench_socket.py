"""agent-memory-bench's challenge protocol (`amb-challenge-adapter-v1`) on memd: `python -m memd.adapters.bench_socket`.

A Unix socket; on each connection one line of JSON with a request and one with the answer. `health` says whether all
of the corpus can be found, `search` returns ranked memories, `reset` ends what a task's session has set. A search
whose verdict is `nothing` abstains and has no hits. memd asks no model, so no tokens are used.
Protocol: `docs/CHALLENGE.md` and `harness/challenge_protocol.py` of GiulioDER/agent-memory-bench.
"""

import argparse
import json
import os
import socketserver
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memd.client import Client
from memd.errors import MemdError
from memd.paths import Paths

API = "amb-challenge-adapter-v1"
_MESSAGE_BYTES_MAX = 1_048_576
_QUERY_CHARACTERS_MAX = 32_768
_HITS_MAX = 100
_TEXT_CHARACTERS_MAX = 8_000
"""A hundred hits of this size stay below the size of a message."""
_ASKED_CHARACTERS_MAX = 2_000
"""So much of a query is searched for."""


class BadCall(Exception):
    """The request is not of the protocol's form."""


class BenchAdapter:
    """Answers requests about the memories of all projects of a daemon."""

    def __init__(self, memd: Client) -> None:
        self._memd = memd

    def answer(self, line: bytes) -> bytes:
        """Return the answer to one line; it says what is wrong with a line that is no request."""
        number: Any = ""
        try:
            request = _read_request(line)
            number = request["id"]
            answered: dict[str, Any] = {"ok": True, "result": self._run(request)}
        except (BadCall, MemdError) as error:
            answered = {"ok": False, "error": {"type": type(error).__name__, "message": str(error)}}
        said = json.dumps({"api": API, "id": number, **answered}, ensure_ascii=False)
        return said.encode("utf-8", "replace") + b"\n"

    def _run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        method, params = request["method"], request["params"]
        if method == "health":
            status = self._memd.call("memd/status")
            waiting = status["summaries"]["to_index"] + status["events"]["pending"]
            return {"ready": not waiting}
        if not isinstance(params.get("task_id"), str) or not params["task_id"].strip():
            raise BadCall(f"{method}: params need a task_id")
        if method == "reset":
            # A search of this adapter belongs to no session: it sets no focus and counts no use.
            return {}
        if method == "search":
            return self._search(params)
        raise BadCall(f"there is no method {str(method)[:60]!r}; there are health, search, reset")

    def _search(self, params: Mapping[str, Any]) -> dict[str, Any]:
        query, limit = params.get("query"), params.get("limit", 10)
        if not isinstance(query, str) or not query.strip() or len(query) > _QUERY_CHARACTERS_MAX:
            raise BadCall(
                f"search: query must be text of at most {_QUERY_CHARACTERS_MAX} characters"
            )
        if type(limit) is not int or not 1 <= limit <= _HITS_MAX:
            raise BadCall(f"search: limit must be a whole number from 1 to {_HITS_MAX}")
        asked = {"query": query[:_ASKED_CHARACTERS_MAX], "k": limit, "project": "all"}
        found = self._memd.call("memd/search", asked)
        hits = [
            {
                "source_id": hit["session_title"] or hit["uid"],
                "text": f"{hit['title']}\n{hit['body']}"[:_TEXT_CHARACTERS_MAX],
                "score": float(hit["score"]),
                "rank": rank,
            }
            for rank, hit in enumerate(found["hits"], 1)
        ]
        usage = {"input_tokens": 0, "output_tokens": 0}
        return {"hits": hits, "abstained": found["verdict"] == "nothing", "usage": usage}


def _read_request(line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadCall(f"a request is one line of JSON: {error}") from error
    if not isinstance(request, dict) or request.get("api") != API:
        raise BadCall(f"a request is an object with api {API!r}")
    if not isinstance(request.get("id"), str) or not request["id"]:
        raise BadCall("a request needs an id")
    params = request.get("params", {})
    if not isinstance(params, dict):
        raise BadCall("params must be an object")
    return {"id": request["id"], "method": request.get("method"), "params": params}


def serve(adapter: BenchAdapter, path: Path) -> socketserver.UnixStreamServer:
    """Return a server that answers at this socket, one connection after the other; `serve_forever` runs it."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            line = self.rfile.readline(_MESSAGE_BYTES_MAX + 1)
            if len(line) <= _MESSAGE_BYTES_MAX:
                self.wfile.write(adapter.answer(line))

    return socketserver.UnixStreamServer(str(path), Handler)


def main(arguments: Sequence[str]) -> None:
    """Serve the running daemon's memories until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "socket", type=Path, help="/challenge/runtime/adapter.sock in the challenge"
    )
    path = parser.parse_args(arguments).socket
    path.unlink(missing_ok=True)
    with Client(Paths(os.environ).socket) as memd, serve(BenchAdapter(memd), path) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])

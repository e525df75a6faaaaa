"""A real daemon fuzzed from outside: every control call, every tool, and hooks, as lines and as processes.

No line goes unanswered, no answer is a fault of memd's own, nothing stands in the log as an error, the
ledger balances, and `memd status` stays healthy.
"""

import collections
import contextlib
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import memd
from benchmarks import corpus, harness
from memd import hook
from memd.capture import spool
from memd.server import jsonrpc
from memd.server.control import BATCHES, Control
from tests.forked_memd import PATIENT
from tests.stress import support
from tests.stress.fuzz import generators
from tests.stress.fuzz.generators import Generator, dumped
from tests.stress.support import as_event, wait_until

ANSWER_S = 60.0
"""How long until a line is answered, where others compute on the same processors."""
TUNING = {"distill.idle_s": 1, "distill.interval_s": 1, "consolidate.interval_s": 2, **PATIENT}
_LINES = 12
_OURS = (jsonrpc.INTERNAL_ERROR_MESSAGE.encode(), b"breaks its own schema", b'"code":-32603')
_COSTLY = {f"memd/{name}" for name in ("reindex", "vacuum", "doctor", "consolidate", "scrub")}
_NAMED = {
    "project": ("all", "current", "global", "/", "no such"),
    "directory": ("/", "/home/dev/project", "", "\x00", "a" * 5_000),
    "session": ("session-1", "41b15690-1857-433f-b1d0-04d3f26c9ad2"),
    "profile": ("memd", "no such"),
    "id": tuple(range(1, 60)),
    "other": tuple(range(1, 60)),
    "relation": ("compatible", "supersedes", "contradicts"),
    "what": ("r1", "#2", "1,2", "r", "0,0"),
    "pattern": ("cache", "(", "a{99999}", "\\d+ times"),
}


@functools.cache
def calls() -> dict[str, list[dict[str, Any]]]:
    """Every control call → the JSON schemas that its parameters may have."""
    methods = Control(mock.MagicMock()).methods  # only their models are read
    schemas = {name: [call.request.model_json_schema()] for name, call in methods.items()}
    for name, (_, batch) in BATCHES.items():
        schemas[name].append(batch.model_json_schema())
    for schema in schemas["memd/capture"]:
        schema["properties"].pop(
            "plain", None
        )  # answers a shell, and hangs up: no more lines are read
    return schemas


@contextlib.contextmanager
def daemon() -> Iterator[harness.Daemon]:
    """A daemon that does everything soon, with some memories; it ends well, and its log holds no error."""
    with harness.daemon(support.HASHING, tuning=TUNING) as running:
        memories = corpus.Corpus(seed=1).memories(60, int(time.time() * 1_000))
        with running.client() as client:
            client.call("memd/remember", {"memories": list(memories)})
        yield running
        found = [*complaints(running), *logged_errors(running)]
        assert not found, found


class Wire:
    """Lines to a daemon, and what is wrong with the answers."""

    def __init__(self, daemon: harness.Daemon) -> None:
        self._daemon = daemon
        self.tools = _tools(daemon.paths.socket)

    def batch(self, generator: Generator) -> tuple[bool, list[bytes]]:
        """Whether it is for MCP, and lines."""
        generator.named = _NAMED
        is_mcp = generator.chance(0.4)
        if is_mcp:
            return True, [self._tool_line(generator, n) for n in range(1, _LINES)]
        if generator.chance(0.3):
            start = generator.random.randrange(60)
            return False, [
                _line(n, "memd/capture", _captured(generator, start + n)) for n in range(1, _LINES)
            ]
        return False, [self._call_line(generator, n) for n in range(1, _LINES)]

    def _call_line(self, generator: Generator, number: int) -> bytes:
        method = generator.random.choice(list(calls()))
        if method in _COSTLY and generator.chance(0.8):
            method = "memd/search"
        if method == "memd/shutdown":
            return _line(number, method, {"when": generator.scalar()})
        params = generator.fitting(generator.random.choice(calls()[method]))
        return self._bent(generator, _message(number, method, params))

    def _tool_line(self, generator: Generator, number: int) -> bytes:
        if generator.chance(0.1):
            methods = ("ping", "tools/list", "resources/list", generator.word())
            method = generator.random.choice(methods)
            return self._bent(generator, _message(number, method, {}))
        name = generator.random.choice(list(self.tools))
        given = generator.fitting(self.tools[name])
        return self._bent(
            generator, _message(number, "tools/call", {"name": name, "arguments": given})
        )

    def _bent(self, generator: Generator, message: dict[str, Any]) -> bytes:
        kind = generator.random.choices(("fits", "member", "all", "bytes"), (8, 8, 1, 1))[0]
        if kind == "member":
            message["params"] = generator.changed(message["params"])
        if kind == "all":
            method = message["method"]
            message = generator.changed(message, 0.5)
            if isinstance(message, dict) and message.get("method") != method:
                message.pop("method", None)
        data = dumped(message)
        data = generator.torn(data) if kind == "bytes" else data
        return data.replace(b"\n", b" ").replace(b"\r", b" ")

    def fault(self, is_mcp: bool, lines: Sequence[bytes]) -> tuple[str, bytes] | None:
        """What went wrong with a batch, and the line that it went wrong with."""
        wanted: collections.Counter[str] = collections.Counter()
        owner: dict[str, bytes] = {}
        for line in lines:
            said = jsonrpc.parse_line(line)
            if isinstance(said, jsonrpc.Call | jsonrpc.InvalidLine | jsonrpc.Preface):
                key = repr(getattr(said, "id", None))
                is_answered = not (isinstance(said, jsonrpc.Call) and said.id is None)
                wanted[key] += is_answered
                owner.setdefault(key, line)
        begun = _line(0, "initialize", harness.HELLO) if is_mcp else _line(0, "memd/ping", {})
        wanted["0"] += 1
        received = _exchanged(self._daemon.paths.socket, [begun, *lines], wanted.total())
        for answer in received:
            key = repr(_id(answer))
            wanted[key] -= 1
            if found := _fault(answer):
                return found, owner.get(key, b"")
        odd = {key: count for key, count in wanted.items() if count}
        return (f"answers missing (or, negative, too many) by id: {odd}", owner.get(next(iter(odd)), b"")) if odd else None  # fmt: skip


_HOOK = Path(memd.__file__).with_name("hook.py")


class Hooks:
    """Gives payloads to hooks and lines to the spool; counts what the daemon must receive."""

    def __init__(self, daemon: harness.Daemon) -> None:
        self._daemon = daemon
        self.given = 0

    def fault(self, generator: Generator) -> str | None:
        """Run one hook, perhaps write one line into the spool; what was wrong."""
        payload = dumped(_altered(generator, 0.1))
        payload = generator.torn(payload) if generator.chance(0.2) else payload
        place = generator.word().replace("\x00", "").encode("utf-8", "replace").decode()
        environ = {**self._daemon.environ, "MEMD_START": "0"}
        environ |= {"CLAUDE_PROJECT_DIR": place} if generator.chance(0.3) else {}
        run = _run_process if generator.chance(0.1) else _run_here
        self.given += bool(payload.strip()) + (generator.chance(0.2) and self._spool(generator))
        return _hook_fault(*run(payload, environ))

    def _spool(self, generator: Generator) -> bool:
        """Whether a line that no hook would write was put into the spool."""
        said = as_event(_altered(generator, 0.1), at=1, directory="/p")
        data = dumped(generator.changed(said, 0.3))
        data = generator.torn(data) if generator.chance(0.2) else data
        data = data.replace(b"\n", b" ").strip()
        if data:
            spool.append(self._daemon.paths.spool_dir, data)
        return bool(data)

    def are_received(self) -> bool:
        """Whether the daemon has received all of it, and its ledger balances."""
        with self._daemon.client() as client:
            ledger = client.call("memd/status")["books"]
        return bool(ledger["received"] >= self.given and ledger["balanced"])

    def wait(self) -> None:
        """Wait until all of it was received; AssertionError after a minute."""
        assert wait_until(self.are_received), f"{self.given} payloads were not received"


def _altered(generator: Generator, share: float) -> Any:
    return generator.changed(generator.random.choice(payloads()), share)


def _run_here(payload: bytes, environ: dict[str, str]) -> tuple[int, bytes, bytes]:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as shown:
        given.write(payload)
        given.seek(0)
        sys.stdout.flush()
        real = os.dup(1)
        os.dup2(shown.fileno(), 1)
        try:
            code = hook.main([], given.fileno(), environ)
        finally:
            os.dup2(real, 1)
            os.close(real)
        shown.seek(0)
        return code, shown.read(), b""


def _run_process(payload: bytes, environ: dict[str, str]) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(_HOOK)],
        input=payload, env=environ, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def _hook_fault(code: int, shown: bytes, said: bytes) -> str | None:
    if code or said:
        return f"the hook ended with {code} and said {said[:300]!r}"
    try:
        is_object = not shown or isinstance(json.loads(shown), dict)
    except ValueError:
        is_object = False
    return None if is_object else f"the hook printed {shown[:300]!r}"


def _message(number: int, method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _line(number: int, method: str, params: Any) -> bytes:
    return dumped(_message(number, method, params))


def _captured(generator: Generator, number: int) -> dict[str, Any]:
    known = payloads()
    payload = generator.changed(known[number % len(known)], 0.05)
    at = generator.random.choice((None, 0, 1_790_000_000_000 + number, 2**53))
    return support.as_event(payload, at=at, inject=generator.chance(0.3))


@functools.cache
def payloads() -> list[dict[str, Any]]:
    """Real payloads of hooks, in the order in which they came."""
    return generators.hook_payloads()


def _exchanged(path: str, lines: Sequence[bytes], count: int) -> list[bytes]:
    """Send these, wait for this many answers, close, and read the rest."""
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(ANSWER_S)
    with link, link.makefile("rb") as answers:
        link.connect(path)
        link.sendall(b"".join(line + b"\n" for line in lines))
        received: list[bytes] = []
        with contextlib.suppress(TimeoutError, ConnectionError):
            while len(received) < count and (answer := answers.readline()):
                received.append(answer)
            link.shutdown(socket.SHUT_WR)
            received += list(answers)
    return received


def _id(answer: bytes) -> Any:
    with contextlib.suppress(ValueError):
        return json.loads(answer).get("id")
    return None


def _fault(answer: bytes) -> str | None:
    """What is wrong with an answer in itself."""
    try:
        entry = json.loads(answer)
    except ValueError:
        return f"the answer is no JSON: {answer[:200]!r}"
    if any(mark in answer for mark in _OURS) or entry.get("error", {}).get("code") == jsonrpc.SERVER_ERROR:  # fmt: skip
        return f"a fault of memd's own: {answer[:300]!r}"
    return None if ("result" in entry) != ("error" in entry) else f"no answer: {answer[:200]!r}"


def _tools(path: str) -> dict[str, dict[str, Any]]:
    """Every tool → the schema of its arguments, as the daemon says."""
    asked = [_line(0, "initialize", harness.HELLO), _line(1, "tools/list", {})]
    tools = json.loads(_exchanged(path, asked, 2)[1])["result"]["tools"]
    return {one["name"]: one["inputSchema"] for one in tools}


def complaints(daemon: harness.Daemon) -> list[str]:
    """What `memd status` complains about."""
    with daemon.client() as client:
        status = client.call("memd/status")
    return support.status_complaints(status) + support.memory_complaints(daemon.rss_mb())


def logged_errors(daemon: harness.Daemon) -> list[str]:
    """Errors in the log, once each."""
    found: dict[str, str] = {}
    for line in Path(daemon.paths.log).read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry.get("level") in ("error", "critical"):
            said = str(entry.get("exception", entry))
            found.setdefault(f"{entry.get('event')} {said[-200:]}", said[-900:])
    return [f"in the log: {what}" for what in found.values()]

"""A real daemon on a fresh vault for benches and checks, a model server, and a plain MCP client.

Everything goes through the door that Claude Code uses: the socket, or `memd mcp`. Not here: figures.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memd.client import Client
from memd.errors import Unreachable
from memd.paths import Paths

START_S = 30.0
_REMEMBERED = 500
"""Memories in one call."""
_SCRIPTS = str(Path(__file__).parent.parent)


class Daemon:
    """A daemon of our own, in a home of its own."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.environ = {"PATH": os.environ["PATH"], "HOME": home, "MEMD_HOME": home}
        self.paths = Paths(self.environ)
        self.process: subprocess.Popen[bytes] | None = None
        self.command = [sys.executable, "-m", "memd"]

    def start(self) -> float:
        """Start it and wait for its first answer; the seconds that took."""
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [*self.command, "serve"],
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        while True:
            try:
                with self.client() as client:
                    client.call("memd/ping")
                return time.perf_counter() - began
            except Unreachable:
                if self.process.poll() is not None:
                    said = self.process.stderr.read().decode() if self.process.stderr else ""
                    raise SystemExit(f"the daemon did not start: {said}") from None
                if time.perf_counter() - began > START_S:
                    raise SystemExit("the daemon did not answer") from None
                time.sleep(0.01)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ask it to leave, or kill it, and wait."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(timeout=30)
            if self.process.stderr:
                self.process.stderr.close()
            self.process = None

    def client(self, timeout_s: float = 120.0) -> Client:
        """A control client of this daemon."""
        return Client(self.paths.socket, timeout_s)

    def remember(self, memories: Sequence[Mapping[str, object]]) -> None:
        """Have it keep these, and wait until all of them can be found."""
        with self.client() as client:
            for first in range(0, len(memories), _REMEMBERED):
                some = list(memories[first : first + _REMEMBERED])
                client.call("memd/remember", {"memories": some})
        self.settle()

    def settle(self, *, is_distilled: bool = True) -> None:
        """Wait until everything is indexed and, unless told otherwise, distilled.

        A turn without an end is not distilled before it has been idle for ten minutes.
        """
        with self.client() as client:
            while True:
                status = client.call("memd/status")
                indexer = next(room for room in status["rooms"] if room["name"] == "indexer")
                waiting = status["summaries"]["to_index"]
                if is_distilled:
                    waiting += status["events"]["pending"]
                if indexer["loaded"] and not waiting:
                    return
                time.sleep(0.05)

    def wait_learned(self) -> None:
        """Wait until the model has seen everything, and its space leads."""
        with self.client() as client:
            while True:
                rooms = client.call("memd/status")["rooms"]
                backfill = next(room for room in rooms if room["name"] == "backfill")
                if backfill["active"] and not backfill["missing"]:
                    return
                time.sleep(0.05)

    def wait_ready(self) -> None:
        """Wait until the model answers."""
        with self.client() as client:
            while True:
                rooms = client.call("memd/status")["rooms"]
                if any(
                    room["name"] == "embedder"
                    and room["state"] == "running"
                    and not room["why_not"]
                    for room in rooms
                ):
                    return
                time.sleep(0.05)

    def rss_mb(self) -> float:
        """Resident memory, mapped files included."""
        assert self.process is not None
        for line in (
            Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8").splitlines()
        ):
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return float("nan")


@contextlib.contextmanager
def daemon(config: str = "", make: Callable[[str], Daemon] = Daemon) -> Iterator[Daemon]:
    """A running daemon with this config.toml, gone afterwards with all that it wrote; `make` one of a home."""
    home = tempfile.mkdtemp(prefix="memd-bench-")
    Path(home, "config.toml").write_text(config, encoding="utf-8")
    it = make(home)
    try:
        it.start()
        yield it
    finally:
        it.stop()
        shutil.rmtree(home, ignore_errors=True)


class ModelServer:
    """ollama_stub.py as a process: a model behind Ollama's protocol, on one port for as long as this lives."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.url = "http://127.0.0.1:0"
        self._process: subprocess.Popen[str] | None = None

    def start(self, digest: str = "", rate: float = 0.0) -> None:
        """Serve; another digest is another model, a rate is how many texts a second it takes."""
        port = self.url.rpartition(":")[2]
        named = ["--model", self.model, "--port", port, "--digest", digest, "--rate", str(rate)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.ollama_stub", *named],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": _SCRIPTS},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        url = self._process.stdout.readline().strip()
        if not url:
            raise SystemExit("the model server did not start")
        self.url = url

    def stop(self) -> None:
        """Kill it, as a crash would: connections break, new ones are refused."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=30)
            if self._process.stdout:
                self._process.stdout.close()
            self._process = None

    def freeze(self) -> None:
        """Have it hang: its connections are accepted and never answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Have it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def spent(self) -> dict[str, float]:
        """Texts `asked` for and `computed`, and the `seconds` that computing took, since its start."""
        with urllib.request.urlopen(self.url + "/spent", timeout=30) as answer:  # noqa: S310  # ours
            told: dict[str, float] = json.load(answer)
        return told

    def ask(self, text: str) -> float:
        """Seconds until the vector of a text is here, without memd."""
        body = json.dumps({"model": self.model, "input": text}).encode()
        request = urllib.request.Request(self.url + "/api/embed", body)  # noqa: S310  # ours
        began = time.perf_counter()
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  # ours
            answer.read()
        return time.perf_counter() - began

    def engines(self, query_s: float = 0.3) -> str:
        """config.toml: this server, and how long a question's vector may take."""
        return (
            f'\n[engines]\nembedder = "ollama"\nurl = "{self.url}"\nmodel = "{self.model}"\n'
            f"query_s = {query_s}\n"
        )


@contextlib.contextmanager
def model_server(model: str) -> Iterator[ModelServer]:
    """A running model server, gone afterwards."""
    it = ModelServer(model)
    it.start()
    try:
        yield it
    finally:
        it.stop()


class Failed(SystemExit):
    """A call that was answered with an error; ends the bench unless it counts them."""


class Mcp:
    """One MCP session over the socket: the handshake, then tools."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise
        self._file = self._socket.makefile("rb")
        self._number = 0
        try:
            self._greet()
        except BaseException:
            self.close()
            raise

    def _greet(self) -> None:
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        self._ask("initialize", hello)
        self._send({"method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        reply: dict[str, Any] = json.loads(self._file.readline())
        if "error" in reply:
            raise Failed(f"{method} failed: {reply['error']}")
        result: dict[str, Any] = reply["result"]
        return result

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a tool's answer; a failed call ends the bench."""
        result = self._ask("tools/call", {"name": name, "arguments": arguments})
        if result.get("isError"):
            raise Failed(f"{name} failed: {result['content']}")
        content: dict[str, Any] = result["structuredContent"]
        return content

    def close(self) -> None:
        """Let go."""
        self._file.close()
        self._socket.close()


def milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    """p50 and p95 of these times, in ms."""
    ordered = sorted(seconds)
    return {
        "p50": round(statistics.median(ordered) * 1000, 2),
        "p95": round(ordered[int(len(ordered) * 0.95)] * 1000, 2),
    }

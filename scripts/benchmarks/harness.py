"""A daemon on a fresh vault, a model server and an MCP client, all driven from outside.

The daemon is reached through its command line, its socket and its hook, as Claude Code reaches it, so that
another commit's daemon can take its place.
"""

import contextlib
import ctypes
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
from typing import Any, TypeVar

from benchmarks import corpus
from memd.client import Client
from memd.errors import Unreachable
from memd.paths import Paths

START_S = 60.0
"""Longest wait for the first answer of a started daemon."""
_MEMORIES_PER_CALL = 500
_POLL_S = 0.05
_CONSOLIDATE_S = 600.0
_COMMAND_S = 600.0
_SCRIPTS = Path(__file__).resolve().parents[1]
ROOT = _SCRIPTS.parent


class Daemon:
    """A daemon in a home directory of its own; `source` is the checkout whose code it runs."""

    def __init__(self, home: str, source: Path = ROOT) -> None:
        self.home = home
        self.environ = {"PATH": os.environ["PATH"], "HOME": home, "MEMD_HOME": home}
        self.paths = Paths(self.environ)
        self.process: subprocess.Popen[bytes] | None = None
        self.command = [sys.executable, "-m", "memd"]
        self.hook_command = [sys.executable, "-I", "-S", str(source / "memd" / "hook.py")]

    def start(self) -> float:
        """Start it and wait for its first answer; return the seconds until then."""
        began = time.perf_counter()
        self.process = self.spawn()
        while True:
            try:
                with self.client() as client:
                    client.call("memd/ping")
                return time.perf_counter() - began
            except Unreachable:
                if self.process.poll() is not None:
                    errors = self.process.stderr.read().decode() if self.process.stderr else ""
                    raise SystemExit(f"the daemon did not start: {errors}") from None
                if time.perf_counter() - began > START_S:
                    raise SystemExit("the daemon did not answer") from None
                time.sleep(0.01)

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start a process that serves this vault, without waiting for its first answer."""
        return subprocess.Popen(
            [*self.command, "serve"], env=self.environ,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(
        self, *words: str, given: bytes = b"", umask: int = -1, **environ: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command of memd's in this home, which starts no daemon by itself."""
        return subprocess.run(
            [*self.command, *words], env={**self.environ, "MEMD_START": "0", **environ},
            input=given, capture_output=True, check=False, timeout=_COMMAND_S, umask=umask,
        )  # fmt: skip

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Send it this signal and wait until it has ended."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(timeout=30)
            if self.process.stderr:
                self.process.stderr.close()
            self.process = None

    def client(self, timeout_s: float = 600.0) -> Client:
        """A control client of this daemon."""
        return Client(self.paths.socket, timeout_s)

    def remember(self, memories: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
        """Store memories and wait until all of them can be found; return the daemon's receipts."""
        receipts = []
        with self.client() as client:
            for first in range(0, len(memories), _MEMORIES_PER_CALL):
                batch = list(memories[first : first + _MEMORIES_PER_CALL])
                receipts += client.call("memd/remember", {"memories": batch})["remembered"]
        self.settle()
        return receipts

    def fill(self, count: int, texts: corpus.Corpus | None = None) -> None:
        """Remember generated memories, the latest of them from now."""
        now = int(time.time() * 1000)
        self.remember(list((texts or corpus.Corpus()).memories(count, now)))

    def consolidate_all(self) -> None:
        """Consolidate until nothing is left, so that searches have the machine alone."""
        with self.client(_CONSOLIDATE_S) as client:
            while client.call("memd/status")["summaries"]["to_consolidate"]:
                client.call("memd/consolidate")

    def wait_until(self, is_done: Callable[[dict[str, Any]], bool]) -> None:
        """Wait until the daemon's status meets a condition."""
        with self.client() as client:
            while not is_done(client.call("memd/status")):
                time.sleep(_POLL_S)

    def settle(self, *, is_distilled: bool = True) -> None:
        """Wait until everything is indexed and, by default, distilled.

        A turn without an end is not distilled before it has been idle for ten minutes.
        """

        def is_settled(status: dict[str, Any]) -> bool:
            waiting = status["summaries"]["to_index"]
            if is_distilled:
                waiting += status["events"]["pending"]
            return not waiting and bool(worker_with("loaded", status).get("loaded"))

        self.wait_until(is_settled)

    def wait_learned(self) -> None:
        """Wait until the model has embedded everything and its space leads."""

        def is_learned(status: dict[str, Any]) -> bool:
            backfill = worker_with("missing", status)
            return bool(backfill.get("active")) and not backfill["missing"]

        self.wait_until(is_learned)

    def missing_vectors(self, status: dict[str, Any]) -> int:
        """How many passages have no vector of the model yet."""
        return int(worker_with("missing", status).get("missing", 0))

    def wait_ready(self) -> None:
        """Wait until the model answers."""

        def is_ready(status: dict[str, Any]) -> bool:
            embedder = worker_with("why_not", status)
            return embedder.get("state") == "running" and not embedder["why_not"]

        self.wait_until(is_ready)

    def cpu_s(self) -> float:
        """CPU time of all its threads so far, the ended ones too."""
        assert self.process is not None
        return read_cpu_s(self.process.pid)

    def rss_mb(self) -> float:
        """Resident memory in MiB, mapped files included."""
        assert self.process is not None
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8").split("\n")
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


def read_cpu_s(pid: int) -> float:
    """CPU time of all threads of a process so far; finer than the ticks in its `stat`."""
    clock = ctypes.c_int()
    if error := ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock)):
        raise OSError(error, os.strerror(error))
    return time.clock_gettime(clock.value)


def worker_with(field: str, status: dict[str, Any]) -> dict[str, Any]:
    """The worker that reports this field, whatever its name is in the commit that runs; or nothing."""
    return next((worker for worker in status["rooms"] if field in worker), {})


_AnyDaemon = TypeVar("_AnyDaemon", bound=Daemon)


@contextlib.contextmanager
def stopped_daemon(
    config: str = "",
    make: Callable[[str], _AnyDaemon] = Daemon,
    tuning: Mapping[str, float] | None = None,
) -> Iterator[_AnyDaemon]:
    """A daemon with this config.toml that is not started; afterwards it is stopped and its home removed.

    `tuning`: values of what is no setting (memd.config.RETIRED).
    """
    home = tempfile.mkdtemp(prefix="memd-bench-")
    Path(home, "config.toml").write_text(config, encoding="utf-8")
    it = make(home)
    it.environ["MEMD_TUNING"] = json.dumps(tuning or {})
    try:
        yield it
    finally:
        it.stop()
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def daemon(
    config: str = "",
    make: Callable[[str], _AnyDaemon] = Daemon,
    tuning: Mapping[str, float] | None = None,
) -> Iterator[_AnyDaemon]:
    """A running daemon with this config.toml; its home is removed afterwards."""
    with stopped_daemon(config, make, tuning) as it:
        it.start()
        yield it


class ModelServer:
    """`ollama_stub` as a process: a model behind Ollama's protocol, on the same port after each start."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.url = "http://127.0.0.1:0"
        self._process: subprocess.Popen[str] | None = None

    def start(self, digest: str = "", rate: float = 0.0) -> None:
        """Serve; another digest is another model, `rate` limits the texts embedded per second."""
        port = self.url.rpartition(":")[2]
        flags = ["--model", self.model, "--port", port, "--digest", digest, "--rate", str(rate)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.ollama_stub", *flags],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(_SCRIPTS)},
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
        """Kill it: open connections break, new ones are refused."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=30)
            if self._process.stdout:
                self._process.stdout.close()
            self._process = None

    def freeze(self) -> None:
        """Suspend it: connections are accepted and never answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume it."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def spent(self) -> dict[str, float]:
        """Texts `asked` for and `computed` since its start, and the `seconds` of computing."""
        with urllib.request.urlopen(self.url + "/spent", timeout=30) as answer:  # noqa: S310  # ours
            spent: dict[str, float] = json.load(answer)
        return spent

    def engines(self, query_s: float = 0.3) -> str:
        """config.toml: use this server, with this deadline for a query's vector."""
        return (
            f'\n[engines]\nembedder = "ollama"\nurl = "{self.url}"\nmodel = "{self.model}"\n'
            f"query_s = {query_s}\n"
        )


@contextlib.contextmanager
def model_server(model: str) -> Iterator[ModelServer]:
    """A running model server, killed afterwards."""
    it = ModelServer(model)
    it.start()
    try:
        yield it
    finally:
        it.stop()


class Failed(SystemExit):
    """A call that was answered with an error; ends the program unless it counts them."""


class Mcp:
    """One MCP session over the daemon's socket."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._number = 0
        try:
            self._socket.connect(path)
            self._file = self._socket.makefile("rb")
            self._request("initialize", HELLO)
            self._send({"method": "notifications/initialized"})
        except BaseException:
            self._socket.close()
            raise

    def _send(self, message: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        reply: dict[str, Any] = json.loads(self._file.readline())
        if "error" in reply:
            raise Failed(f"{method} failed: {reply['error']}")
        result: dict[str, Any] = reply["result"]
        return result

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a tool's answer; raises Failed for an error."""
        result = self._request("tools/call", {"name": name, "arguments": arguments})
        if result.get("isError"):
            raise Failed(f"{name} failed: {result['content']}")
        content: dict[str, Any] = result["structuredContent"]
        return content

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()


HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
"""Parameters of MCP's `initialize`."""


def milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    """p50 and p95 of these times, in ms."""
    ordered = sorted(seconds)
    return {
        "p50": round(statistics.median(ordered) * 1000, 2),
        "p95": round(ordered[int(len(ordered) * 0.95)] * 1000, 2),
    }

"""What the benches measure of a running daemon and of the machine under it. Not here: bars, tables.

Everything goes through the socket, as Claude Code's calls do. The machine's own noise is measured in the
same run, since no figure means anything without it.
"""

import json
import os
import platform
import random
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import apsw

from benchmarks import corpus, harness
from benchmarks.harness import milliseconds

EVENT_WORDS = 190
"""Make an event of about 1.5 kB."""


def machine() -> dict[str, Any]:
    """What this is measured on, and how steady it is."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "cores": os.cpu_count(),
        "sqlite": apsw.sqlite_lib_version(),
        **{name: version(name) for name in ("numpy", "mcp", "apsw")},
        "noise": noise(),
        "bare_interpreter_ms": milliseconds([bare_interpreter() for _ in range(15)])["p50"],
    }


def noise() -> float:
    """How much longer the same small work takes at the 95th percentile than at the median."""
    times = []
    for _ in range(400):
        began = time.perf_counter()
        sum(range(20_000))
        times.append(time.perf_counter() - began)
    times.sort()
    return round(times[380] / statistics.median(times), 2)


def bare_interpreter() -> float:
    """Seconds that a Python takes which does nothing."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
    return time.perf_counter() - began


def fsync(directory: str, runs: int = 200) -> dict[str, float]:
    """What it costs to append 1.5 kB to a file there and have it on the disk."""
    times = []
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        for _ in range(runs):
            began = time.perf_counter()
            file.write(b"x" * 1500)
            file.flush()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return milliseconds(times)


def searches(path: str, count: int, seed: int = 11) -> dict[str, float]:
    """`mem_search` over the daemon's socket with natural questions, after fifty that do not count."""
    mcp = harness.Mcp(path)
    questions = corpus.Corpus(seed=seed).questions(count + 50)
    times = []
    for question in questions:
        began = time.perf_counter()
        mcp.tool("mem_search", query=question)
        times.append(time.perf_counter() - began)
    mcp.close()
    return milliseconds(times[50:])


def events(first: int = 0) -> Iterator[bytes]:
    """Lines that capture one event of about 1.5 kB each, for ever; each event another one."""
    words = [
        word for question in corpus.Corpus(seed=5).questions(300) for word in question.split()
    ]
    chance = random.Random(first)
    number = first
    while True:
        number += 1
        output = " ".join(chance.choice(words) for _ in range(EVENT_WORDS))
        payload = {
            "session_id": f"session-{number % 16}",
            "prompt_id": f"prompt-{number // 50}",
            "hook_event_name": "PostToolUse",
            "cwd": "/nowhere",
            "tool_name": "Bash",
            "tool_use_id": f"tool-{number}",
            "tool_input": {"command": "pytest -q tests/test_login.py"},
            "tool_response": {"stdout": output, "stderr": ""},
        }
        params = {"client": "claude-code", "payload": payload}
        call = {"jsonrpc": "2.0", "id": number, "method": "memd/capture", "params": params}
        yield json.dumps(call).encode() + b"\n"


def captures(path: str, seconds: float, connections: int, first: int = 0) -> dict[str, float]:
    """Acknowledged events a second from so many connections, each with one event on its way.

    What sends is made beforehand, and one thread sends it all: it shall not be what is measured.
    """
    source = events(first)
    ready = [next(source) for _ in range(int(seconds * 6_000) + connections)]
    selector, sent = selectors.DefaultSelector(), {}
    for _ in range(connections):
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)
        selector.register(client, selectors.EVENT_READ)
        sent[client] = _send(client, ready)
    times: list[float] = []
    began = time.perf_counter()
    while ready and time.perf_counter() - began < seconds:
        for key, _ in selector.select(1):
            client = key.fileobj
            assert isinstance(client, socket.socket)
            answer = client.recv(65_536)
            if b'"stored"' not in answer:
                raise SystemExit(f"an event was not stored: {answer[:300]!r}")
            times.append(time.perf_counter() - sent[client])
            if ready:
                sent[client] = _send(client, ready)
    took = time.perf_counter() - began
    for client in sent:
        client.close()
    return {"per_s": round(len(times) / took), **milliseconds(times)}


def _send(client: socket.socket, ready: list[bytes]) -> float:
    now = time.perf_counter()
    client.sendall(ready.pop())
    return now


def vault_bytes(home: str) -> int:
    """Everything on the disk that belongs to the vaults of a home."""
    return sum(
        file.stat().st_blocks * 512
        for file in Path(home, "vaults").rglob("*")
        if file.is_file()
    )

"""What benchmarks measure with and print: timers, the machine, load generators, limits, tables, JSON."""

import argparse
import fnmatch
import itertools
import json
import os
import platform
import random
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import apsw

from benchmarks import corpus, harness
from benchmarks.harness import milliseconds

Figures = dict[str, dict[str, Any]]
"""Row → column → value."""
Limits = Mapping[str, Mapping[str, str]]
"""Row (or a pattern of rows) → column → its limit, as "<= 8" or ">= 4000"."""

EVENT_WORDS = 190
"""Words in an event of about 1.5 kB."""
_WARM_UP = 50
"""Searches before those that count."""
_EVENTS_PER_S = 6_000
"""Prepared for each second of captures; more than memd acknowledges."""
_COUNTS = {
    "summaries": "memories in the vault",
    "searches": "searches that are timed",
    "questions": "questions that are timed",
    "runs": "processes of each kind that are timed",
    "rounds": "rounds of measuring",
    "rows": "rows to search",
    "seconds": "how long to capture",
    "connections": "connections that capture at the same time",
    "outage": "seconds without the model",
    "rate": "texts per second that the model embeds; 0: as many as it can",
    "new": "new memories per run of consolidation",
}


def add_counts(parser: argparse.ArgumentParser, **defaults: float) -> None:
    """Add `--NAME NUMBER` for each of these."""
    for name, default in defaults.items():
        described = f"{_COUNTS[name]} (default: {default:,})"
        parser.add_argument(
            f"--{name}", type=type(default), default=default, metavar="N", help=described
        )


def machine() -> dict[str, Any]:
    """What this is measured on, and how steady it is."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "sqlite": apsw.sqlite_lib_version(),
        **{name: version(name) for name in ("numpy", "mcp", "apsw")},
        "noise": noise(),
        "bare_interpreter_ms": milliseconds([bare_interpreter() for _ in range(15)])["p50"],
    }


def noise() -> float:
    """How many times as long a small piece of work takes at the 95th percentile as at the median."""
    times = milliseconds([elapsed(lambda: sum(range(20_000))) for _ in range(400)])
    return round(times["p95"] / times["p50"], 2)


def elapsed(work: Callable[[], object]) -> float:
    """Seconds that this takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def run_process(
    command: Sequence[str], environ: Mapping[str, str] | None = None, stdin: bytes = b""
) -> tuple[float, bytes]:
    """Seconds from a process's start to its exit, and what it printed."""
    began = time.perf_counter()
    done = subprocess.run(command, env=environ, input=stdin, stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - began, done.stdout


def bare_interpreter() -> float:
    """Seconds that a Python takes to start and exit."""
    return run_process([sys.executable, "-I", "-S", "-c", "pass"])[0]


def hook(
    daemon: harness.Daemon,
    number: int | str,
    command: Sequence[str] | None = None,
    **payload: object,
) -> tuple[float, bytes]:
    """Run the hook once, as Claude Code does; each number is an event of its own."""
    event = {
        "session_id": "bench", "cwd": "/", "hook_event_name": "PostToolUse", "tool_name": "Bash",
        "tool_use_id": str(number), "tool_input": {"command": "true"},
        "tool_response": {"stdout": "", "stderr": ""}, **payload,
    }  # fmt: skip
    stdin = json.dumps(event).encode()
    return run_process(command or daemon.hook_command, daemon.environ, stdin)


def first_answer(daemon: harness.Daemon) -> float:
    """Seconds from the start of `memd mcp` to its first answer."""
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": harness.HELLO}
    began = time.perf_counter()
    with subprocess.Popen(
        [*daemon.command, "mcp"], env=daemon.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as proxy:
        assert proxy.stdin
        assert proxy.stdout
        proxy.stdin.write(json.dumps(hello).encode() + b"\n")
        proxy.stdin.flush()
        proxy.stdout.readline()
        took = time.perf_counter() - began
        proxy.stdin.close()
        proxy.wait()
    return took


def fsync(directory: str, runs: int = 200) -> dict[str, float]:
    """The cost of appending 1.5 kB to a file in this directory and flushing it to the disk."""
    with tempfile.NamedTemporaryFile(dir=directory) as file:

        def append() -> None:
            file.write(b"x" * 1500)
            file.flush()
            os.fsync(file.fileno())

        return milliseconds([elapsed(append) for _ in range(runs)])


def searches(path: str, count: int, seed: int = 11) -> dict[str, float]:
    """Time `mem_search` over the daemon's socket with natural questions, after a warm-up.

    Of all projects: a client without a directory would be shown what holds everywhere, which is next to nothing here.
    """
    mcp = harness.Mcp(path)
    questions = corpus.Corpus(seed=seed).questions(count + _WARM_UP)
    ask = partial(mcp.tool, "mem_search", project="all")
    times = [elapsed(partial(ask, query=one)) for one in questions]
    mcp.close()
    return milliseconds(times[_WARM_UP:])


def events(first: int = 0) -> Iterator[dict[str, Any]]:
    """Parameters of `memd/capture` for events of about 1.5 kB, all of them different."""
    questions = corpus.Corpus(seed=5).questions(300)
    words = [word for question in questions for word in question.split()]
    chance = random.Random(first)
    for number in itertools.count(first):
        output = " ".join(chance.choice(words) for _ in range(EVENT_WORDS))
        payload = {
            "session_id": f"session-{number % 16}", "prompt_id": f"prompt-{number // 50}",
            "cwd": "/nowhere", "hook_event_name": "PostToolUse", "tool_name": "Bash",
            "tool_use_id": f"tool-{number}", "tool_input": {"command": "pytest -q tests/test_login.py"},
            "tool_response": {"stdout": output, "stderr": ""},
        }  # fmt: skip
        yield {"client": "claude-code", "payload": payload}


def captures(path: str, seconds: float, connections: int, first: int = 0) -> dict[str, float]:
    """Acknowledged events per second over this many connections, each with one event in flight.

    The requests are prepared and one thread sends them, so that the sender is not what is measured.
    """
    call = {"jsonrpc": "2.0", "id": 1, "method": "memd/capture"}
    ready = [
        json.dumps({**call, "params": event}).encode() + b"\n"
        for event in itertools.islice(events(first), int(seconds * _EVENTS_PER_S) + connections)
    ]
    selector, sent = selectors.DefaultSelector(), {}
    for _ in range(connections):
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)
        selector.register(client, selectors.EVENT_READ)
        sent[client] = _send_next(client, ready)
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
                sent[client] = _send_next(client, ready)
    took = time.perf_counter() - began
    for client in sent:
        client.close()
    return {"per_s": round(len(times) / took), **milliseconds(times)}


def _send_next(client: socket.socket, ready: list[bytes]) -> float:
    now = time.perf_counter()
    client.sendall(ready.pop())
    return now


def vault_bytes(home: str) -> int:
    """Everything on the disk that belongs to the vaults of a home."""
    files = Path(home, "vaults").rglob("*")
    return sum(file.stat().st_blocks * 512 for file in files if file.is_file())


def check(figures: Figures, limits: Limits) -> dict[str, bool]:
    """Each limit, in words with its figure, and whether it is met."""
    found = {}
    for pattern, wanted in limits.items():
        for row in fnmatch.filter(figures, pattern):
            for column, limit in wanted.items():
                if column in figures[row]:
                    value, (sign, bound) = figures[row][column], limit.split()
                    met = value <= float(bound) if sign == "<=" else value >= float(bound)
                    found[f"{row}: {column} {value}, limit {limit}"] = met
    return found


def report(
    figures: Figures, limits: Limits, measured_on: dict[str, Any], json_file: str | None
) -> int:
    """Print a table, or JSON if `json_file` is "-"; return 1 if a limit is missed."""
    checked = check(figures, limits)
    missed = [limit for limit, is_met in checked.items() if not is_met]
    document = {"machine": measured_on, "figures": figures, "missed": missed}
    text = json.dumps(document, indent=1, ensure_ascii=False)
    if json_file == "-":
        print(text)
        return bool(missed)
    if json_file:
        Path(json_file).write_text(text + "\n", encoding="utf-8")
    print("  ".join(f"{key} {value}" for key, value in measured_on.items()) + "\n")
    print_table(figures)
    print("\np50 and p95 are in ms.")
    for limit, is_met in checked.items():
        print(f"{'met   ' if is_met else 'MISSED'}  {limit}")
    return bool(missed)


def print_table(figures: Figures) -> None:
    """One line per row, one column per name that any row has."""
    names = list(dict.fromkeys(name for row in figures.values() for name in row))
    lines = [["", *names]]
    lines += [
        [row, *(str(values.get(name, "")) for name in names)] for row, values in figures.items()
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        print("  ".join([line[0].ljust(widths[0]), *cells]).rstrip())

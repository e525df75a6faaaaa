"""What bad clients do to good ones: a daemon under attack, beside a client that searches and one that captures.

    scripts/torture clients [--seconds N] [--summaries N] [--only NAME …] [--seed N]

For each attack (attacks.py): the p95 of a quiet MCP client's mem_search and of a capture stay within 3
times those of the same run without an attack; memory stays under its limit; once the attackers were killed,
descriptors and connections are back where they were and `memd status` is healthy; every acknowledged capture
is stored. Last come `memd mcp` processes by the dozen that are killed, closed or orphaned: none may stay.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import corpus, harness
from tests.stress import attacks, support
from tests.stress.support import WAIT_S, Trial, wait_until

SLOWDOWN_MAX = 3.0
"""How many times its p95 without an attack a good client may wait during one."""
PAUSE_S = 0.02
"""Pause of a good client between two requests."""
_PROXIES = 12
"""Proxies that end in each of three ways."""
_PARENT = """
import subprocess, sys
children = [
    subprocess.Popen([sys.executable, "-I", "-m", "memd", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for _ in range({each})
]
for child in children:
    child.stdin.write({hello!r})
    child.stdin.flush()
    child.stdout.readline()
if {is_held}:
    # Another process holds the other ends of the pipes: only the parent's death can be noticed.
    ends = [end.fileno() for child in children for end in (child.stdin, child.stdout)]
    children.append(subprocess.Popen(["sleep", "60"], pass_fds=ends, stdout=subprocess.DEVNULL))
print(*(child.pid for child in children), flush=True)
sys.stdin.read()
"""


class QuietClient:
    """A good client in a thread of its own: one request at a time, with pauses."""

    def __init__(self, request: Callable[[int], None]) -> None:
        self.times: list[float] = []
        self.wrong: list[str] = []
        self._request = request
        self._is_over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over:
            began = time.perf_counter()
            try:
                self._request(len(self.times))
            except (Exception, SystemExit) as error:  # noqa: BLE001  # is the finding  # is the finding
                self.wrong.append(f"{type(error).__name__}: {error}")
                return
            self.times.append(time.perf_counter() - began)
            time.sleep(PAUSE_S)

    def finish(self) -> None:
        """Stop it after its current request."""
        self._is_over = True
        self._thread.join(WAIT_S)
        if self._thread.is_alive():
            self.wrong.append(f"still waiting for an answer after {WAIT_S:.0f} s")


def p95_ms(clients: list[QuietClient]) -> float:
    """Of all their requests; infinite if none was answered."""
    times = [one for client in clients for one in client.times]
    return harness.milliseconds(times)["p95"] if times else float("inf")


@dataclasses.dataclass
class AttackResult:
    """What the good clients and the daemon's process went through during an attack."""

    search: QuietClient
    capture: QuietClient
    rss_mb: float
    descriptors: tuple[int, int]
    """Before the attack, and after it."""
    wrong: list[str]


class Stress:
    """A daemon, two good clients and their times without an attack."""

    def __init__(self, daemon: harness.Daemon, seed: int) -> None:
        self.daemon = daemon
        self.seed = seed
        self.captured = 0
        self.idle: tuple[list[QuietClient], list[QuietClient]] = ([], [])
        self._questions = corpus.Corpus(seed=seed).questions(200)

    def measure_idle(self, seconds: float) -> None:
        """Let both good clients run without an attack, and remember their times."""
        for clients, one in zip(self.idle, self.run_clients(seconds), strict=True):
            clients.append(one)

    def run_clients(self, seconds: float) -> tuple[QuietClient, QuietClient]:
        """Let both good clients run; return the one that searches and the one that captures."""
        mcp = harness.Mcp(self.daemon.paths.socket)
        client = self.daemon.client(WAIT_S)
        base = time.time_ns()

        def search(number: int) -> None:
            mcp.tool("mem_search", query=self._questions[number % len(self._questions)])

        def capture(number: int) -> None:
            receipt = client.call("memd/capture", _event(f"{base}-{number}"))
            if receipt["outcome"] != "stored":
                raise ValueError(f"a capture was answered with {receipt}")

        clients = QuietClient(search), QuietClient(capture)
        try:
            time.sleep(seconds)
        finally:
            for one in clients:
                one.finish()
            mcp.close()
            client.close()
        self.captured += len(clients[1].times)
        return clients

    def attack(self, name: str, seconds: float, size: float = 1.0) -> AttackResult:
        """Run one attack beside the good clients, and look at the daemon after it."""
        before = self.await_descriptors(self.count_descriptors())
        with contextlib.suppress(OSError):
            self._process_file("clear_refs").write_text("5")  # forget the peak so far
        attacker = attacks.start(name, self.daemon.paths.socket, self.seed, size)
        try:
            search, capture = self.run_clients(seconds)
        finally:
            _end(attacker)
        after = self.await_descriptors(before)
        wrong = [*search.wrong, *capture.wrong, *self.find_complaints()]
        if after > before:
            wrong.append(f"{after} descriptors open, {before} before")
        return AttackResult(search, capture, self._peak_mb(), (before, after), wrong)

    def judge(self, name: str, seconds: float) -> tuple[list[str], str]:
        """Run one attack; what was wrong, also by its limits, and the figures."""
        seen = self.attack(name, seconds)
        self.measure_idle(seconds / 4)
        wrong, words = seen.wrong, []
        for what, client, idle in zip(
            ("search", "capture"), (seen.search, seen.capture), self.idle, strict=True
        ):
            limit = SLOWDOWN_MAX * p95_ms(idle)
            words.append(f"{what} p95 {p95_ms([client]):.1f} ms (limit {limit:.1f})")
            if p95_ms([client]) > limit:
                wrong.append(words[-1])
        wrong += support.memory_complaints(seen.rss_mb)
        words.append(f"RSS {seen.rss_mb:.0f} MB (limit {support.RSS_MB:.0f})")
        words.append("descriptors {} → {}".format(*seen.descriptors))
        return wrong, ", ".join(words)

    def _process_file(self, name: str) -> Path:
        assert self.daemon.process is not None
        return Path(f"/proc/{self.daemon.process.pid}/{name}")

    def _peak_mb(self) -> float:
        lines = self._process_file("status").read_text(encoding="utf-8").splitlines()
        return next(int(one.split()[1]) / 1024 for one in lines if one.startswith("VmHWM:"))

    def count_descriptors(self) -> int:
        """How many descriptors the daemon has open, without those of its vault."""
        count = 0
        for one in self._process_file("fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                count += not str(one.readlink()).startswith(self.daemon.home)
        return count

    def await_descriptors(self, limit: int) -> int:
        """Wait until no more descriptors are open than this; how many are open then."""
        wait_until(lambda: self.count_descriptors() <= limit)
        return self.count_descriptors()

    def find_complaints(self) -> list[str]:
        """What `memd status` complains about once it had time to recover, and lost captures."""
        with self.daemon.client(WAIT_S) as client:

            def complaints() -> list[str]:
                status = client.call("memd/status")
                wrong = support.status_complaints(status)
                if (left := support.worker(status, "listener")["connections"]) != 1:
                    wrong.append(f"{left} connections are left, 1 is open")
                if status["books"]["stored"] < self.captured:
                    wrong.append(f"{self.captured} acknowledged, stored: {status['books']}")
                return wrong

            wait_until(lambda: not complaints())
            return complaints()


def send_in_flight(daemon: harness.Daemon, count: int) -> list[str]:
    """Send this many requests at once on one socket, a tenth of them searches: each must be answered once."""
    calls = [
        attacks.search(number) if number % 10 == 0 else attacks.line("memd/ping", number=number)
        for number in range(count)
    ]
    link = attacks.opened(daemon.paths.socket)
    link.settimeout(2 * WAIT_S)
    sender = threading.Thread(target=link.sendall, args=(b"".join(calls),), daemon=True)
    sender.start()
    answers: list[dict[str, Any]] = []
    with link, link.makefile("rb") as lines, contextlib.suppress(TimeoutError):
        while len(answers) < count and (answer := lines.readline()):
            answers.append(json.loads(answer))
        sender.join()
    wrong = []
    if sorted(answer["id"] for answer in answers) != list(range(count)):
        wrong.append(f"{len(answers)} of {count} requests were answered")
    if failed := [answer["error"] for answer in answers if "error" in answer]:
        wrong.append(f"{len(failed)} of them with an error: {failed[0]}")
    return wrong


def end_proxies(daemon: harness.Daemon, each: int, *, is_held: bool = True) -> list[str]:
    """Kill `memd mcp` processes, close their stdin, kill their parent; what is left of them.

    With `is_held` the pipes of the orphans stay open, which takes five seconds longer.
    """
    hello = attacks.line("initialize", harness.HELLO)
    started = [_start_proxy(daemon, hello) for _ in range(2 * each)]
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT.format(each=each, hello=hello, is_held=is_held)],
        env=daemon.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert parent.stdout is not None
    children = [int(one) for one in parent.stdout.readline().split()]
    for process in started[:each]:
        process.kill()
    for process in started[each:]:
        assert process.stdin is not None
        process.stdin.close()
    parent.kill()
    parent.wait()
    wrong = []
    if not wait_until(lambda: all(one.poll() is not None for one in started)):
        wrong.append("a proxy whose client has closed is still there")
    if not wait_until(lambda: not any(map(_is_alive, children[:each]))):
        wrong.append("a proxy whose parent was killed is still there")
    for child in children[each:]:
        os.kill(child, signal.SIGKILL)
    for process in (*started, parent):
        _end(process)
    return wrong


def _start_proxy(daemon: harness.Daemon, hello: bytes) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "memd", "mcp"],
        env=daemon.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(hello)
    process.stdin.flush()
    json.loads(process.stdout.readline())
    return process


def _end(process: subprocess.Popen[Any]) -> None:
    """Kill a process, wait for it, and close its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _is_alive(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def _event(key: str) -> dict[str, Any]:
    payload = {
        "session_id": "torture", "cwd": "/", "hook_event_name": "PostToolUse", "tool_name": "Bash",
        "tool_use_id": key, "tool_input": {"command": f"make test-{key}"},
        "tool_response": {"stdout": "ok " * 400, "stderr": ""},
    }  # fmt: skip
    return support.as_event(payload)


def fill(daemon: harness.Daemon, count: int, seed: int) -> None:
    """Remember memories to search; the first ones are long, so that reading them all is a large answer."""
    memories = list(corpus.Corpus(seed=seed).memories(count, int(time.time() * 1000)))
    for memory in memories[: min(100, count // 8)]:
        memory["text"] = str(memory["text"]) * 40
    daemon.remember(memories)


def _trials(options: argparse.Namespace) -> Iterator[tuple[str, Trial]]:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1_024, hard), hard))  # a service's
    with harness.daemon() as daemon:
        fill(daemon, options.summaries, options.seed)
        stress = Stress(daemon, options.seed)
        stress.run_clients(2.0)  # warm
        stress.measure_idle(options.seconds / 2)
        for name in attacks.ATTACKS:
            yield name, lambda name=name: stress.judge(name, options.seconds)

        def in_flight() -> tuple[list[str], str]:
            wrong = send_in_flight(daemon, attacks.FLOOD)
            return wrong + stress.find_complaints(), f"{attacks.FLOOD} requests on one socket"

        def proxies() -> tuple[list[str], str]:
            before = stress.count_descriptors()
            wrong = end_proxies(daemon, _PROXIES)
            if stress.await_descriptors(before) > before:
                wrong.append("descriptors did not come back")
            return wrong + stress.find_complaints(), f"{3 * _PROXIES} `memd mcp`"

        yield "in_flight", in_flight
        yield "proxies", proxies
    load = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    print(f"load average now {load}: where others compute meanwhile, times say less")


def main() -> None:
    """Run the trials."""
    support.run_trials("clients", __doc__, _trials, seconds=10.0, summaries=5_000)

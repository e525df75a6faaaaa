"""What bad clients do to good ones: a daemon under attack, beside a client that asks and one that captures.

    scripts/torture clients [--seconds N] [--summaries N] [--only NAME …] [--seed N]

For each attack (attacks.py): the p95 of a quiet MCP client's mem_search and of a
capture within 3 times those of the same run without an attack; memory under its limit; once the
attackers were killed, descriptors and connections back where they were and `memd status` healthy; every
acknowledged capture stored. Last come `memd mcp` processes by the dozen that are killed, closed or
orphaned: none may stay. Ends with 1 if anything of that did not hold.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import random
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from benchmarks import corpus, harness
from tests.stress import attacks, stdio_proxies
from tests.stress.stdio_proxies import wait_until

TIMES_IDLE = 3.0
RSS_MB = 320.0
"""What the daemon may take at its worst, with small vaults."""
BACK_S = 60.0
"""How long until all is as it was before an attack."""
PAUSE_S = 0.02
"""A quiet client thinks for so long."""


@dataclasses.dataclass
class Seen:
    """What a good client saw: seconds an answer, and what went wrong."""

    times: list[float] = dataclasses.field(default_factory=list)
    wrong: list[str] = dataclasses.field(default_factory=list)

    def p95(self) -> float:
        """In ms; a client without an answer has waited for ever."""
        return harness.milliseconds(self.times)["p95"] if self.times else float("inf")


@dataclasses.dataclass
class Round:
    """One attack, as the good clients and the daemon's process lived through it."""

    name: str
    search: Seen
    capture: Seen
    rss_mb: float
    descriptors: tuple[int, int]
    """Before the attack, and after it."""
    wrong: list[str]


class Good:
    """A quiet client of the daemon, in a thread: one thing at a time, with pauses."""

    def __init__(self, ask: Callable[[int], None]) -> None:
        self._ask = ask
        self._seen = Seen()
        self._is_over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._is_over:
            began = time.perf_counter()
            try:
                self._ask(number)
            except (OSError, ValueError, SystemExit, Exception) as error:  # noqa: BLE001  # is the finding
                self._seen.wrong.append(f"{type(error).__name__}: {error}")
                return
            self._seen.times.append(time.perf_counter() - began)
            number += 1
            time.sleep(PAUSE_S)

    def finish(self) -> Seen:
        """Stop it, and what it saw."""
        self._is_over = True
        self._thread.join(60)
        if self._thread.is_alive():
            self._seen.wrong.append("still waiting for an answer after 60 s")
        return self._seen


class Stress:
    """A daemon, two good clients and the figures of a run without an attack."""

    def __init__(self, daemon: harness.Daemon, seed: int) -> None:
        self.daemon = daemon
        self.seed = seed
        self.captured = 0
        self._failures = 0
        self._questions = corpus.Corpus(seed=seed).questions(200)

    def quiet(self, seconds: float) -> tuple[Seen, Seen]:
        """Both good clients for a while."""
        with self._clients() as (search, capture):
            time.sleep(seconds)
        seen = search.finish(), capture.finish()
        self.captured += len(seen[1].times)
        return seen

    @contextlib.contextmanager
    def _clients(self) -> Iterator[tuple[Good, Good]]:
        mcp = harness.Mcp(self.daemon.paths.socket)
        client = self.daemon.client(60)
        base = time.time_ns()

        def search(number: int) -> None:
            mcp.tool("mem_search", query=self._questions[number % len(self._questions)])

        def capture(number: int) -> None:
            receipt = client.call("memd/capture", _event(f"{base}-{number}"))
            if receipt["outcome"] != "stored":
                raise ValueError(f"a capture was answered with {receipt}")

        goods = Good(search), Good(capture)
        try:
            yield goods
        finally:
            for one in goods:
                one.finish()
            mcp.close()
            client.close()

    def attack(self, name: str, seconds: float, size: float = 1.0) -> Round:
        """One attack, with what the others saw during it, and how it is after it."""
        before = self.settled(self.descriptors())
        attacker = attacks.start(name, self.daemon.paths.socket, self.seed, size)
        try:
            with _Peak(self.daemon) as peak:
                search, capture = self.quiet(seconds)
        finally:
            attacker.kill()
            attacker.wait()
            assert attacker.stdout is not None
            attacker.stdout.close()
        wrong = [*search.wrong, *capture.wrong]
        after = self.settled(before)
        if after > before:
            wrong.append(f"{after} descriptors open, {before} before")
        wrong += self.unhealthy()
        return Round(name, search, capture, peak.mb, (before, after), wrong)

    def descriptors(self) -> int:
        """How much the daemon has open, but for what belongs to its vault."""
        assert self.daemon.process is not None
        count = 0
        for one in Path(f"/proc/{self.daemon.process.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                count += not str(one.readlink()).startswith(self.daemon.home)
        return count

    def settled(self, wanted: int) -> int:
        """The descriptors once there are no more than this; after `BACK_S`, those that there are."""
        wait_until(lambda: self.descriptors() <= wanted, BACK_S)
        return self.descriptors()

    def unhealthy(self) -> list[str]:
        """What `memd status` complains about, and what is missing of what was acknowledged."""
        with self.daemon.client(60) as client:
            # Its counts may be those of a moment ago.
            wait_until(lambda: not self._complaints(client.call("memd/status")), BACK_S)
            status = client.call("memd/status")
            self._failures = _listener(status)["failures"]
            return self._complaints(status)

    def _complaints(self, status: dict[str, Any]) -> list[str]:
        listener, books = _listener(status), status["books"]
        wrong = [f"not healthy: {one}" for one in status["reasons"]]
        if listener["failures"] > self._failures:
            wrong.append("calls failed by a fault of memd's own")
        if listener["connections"] != 1:
            wrong.append(f"{listener['connections']} connections are left, 1 is open")
        if books["stored"] < self.captured or not books["balanced"]:
            wrong.append(f"{self.captured} captures acknowledged, the books say {books}")
        return wrong


def _listener(status: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(room for room in status["rooms"] if room["name"] == "listener")
    return found


def in_flight(daemon: harness.Daemon, count: int) -> list[str]:
    """As many requests on one socket at once, a tenth of them searches: each must be answered once."""
    calls = [
        attacks.search(number) if number % 10 == 0 else attacks.line("memd/ping", number=number)
        for number in range(count)
    ]
    link = attacks.opened(daemon.paths.socket)
    link.settimeout(120)
    hand = threading.Thread(target=link.sendall, args=(b"".join(calls),), daemon=True)
    hand.start()
    answers: list[dict[str, Any]] = []
    with link, link.makefile("rb") as lines, contextlib.suppress(TimeoutError):
        while len(answers) < count and (answer := lines.readline()):
            answers.append(json.loads(answer))
        hand.join()
    wrong = []
    if sorted(answer["id"] for answer in answers) != list(range(count)):
        wrong.append(f"{len(answers)} of {count} requests were answered")
    if failed := [answer["error"] for answer in answers if "error" in answer]:
        wrong.append(f"{len(failed)} of them with an error: {failed[0]}")
    return wrong


class _Peak:
    """The most memory that the daemon had resident while this lasted, in MB."""

    def __init__(self, daemon: harness.Daemon) -> None:
        self._daemon = daemon
        self._is_over = threading.Event()
        self.mb = 0.0

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.02):
            self.mb = max(self.mb, self._daemon.rss_mb())


def _event(key: str) -> dict[str, Any]:
    payload = {
        "session_id": "torture",
        "cwd": "/",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_use_id": key,
        "tool_input": {"command": f"make test-{key}"},
        "tool_response": {"stdout": "ok " * 400, "stderr": ""},
    }
    return {"client": "claude-code", "payload": payload}


def fill(daemon: harness.Daemon, count: int, seed: int) -> None:
    """Memories to search; the first ones are long, so that reading them all is a large answer."""
    memories = list(corpus.Corpus(seed=seed).memories(count, int(time.time() * 1000)))
    for memory in memories[: min(100, count // 8)]:
        memory["text"] = str(memory["text"]) * 40
    daemon.remember(memories)


def judged(one: Round, idle: tuple[float, float]) -> list[str]:
    """What of the promises did not hold in this round."""
    wrong = list(one.wrong)
    for what, seen, quiet in (
        ("search", one.search, idle[0]),
        ("capture", one.capture, idle[1]),
    ):
        if seen.p95() > TIMES_IDLE * quiet:
            wrong.append(
                f"{what} p95 {seen.p95():.1f} ms, {TIMES_IDLE:g} × idle is {TIMES_IDLE * quiet:.1f}"
            )
    if one.rss_mb > RSS_MB:
        wrong.append(f"RSS {one.rss_mb:.0f} MB, limit {RSS_MB:.0f}")
    return wrong


def told(one: Round, idle: tuple[float, float]) -> str:
    """A line of the table."""
    return (
        f"{one.name:14} search p95 {one.search.p95():8.1f} ms (limit {TIMES_IDLE * idle[0]:.1f})"
        f"  capture p95 {one.capture.p95():8.1f} ms (limit {TIMES_IDLE * idle[1]:.1f})"
        f"  RSS {one.rss_mb:5.0f} MB (limit {RSS_MB:.0f})"
        f"  descriptors {one.descriptors[0]} → {one.descriptors[1]}"
    )


def put_through(stress: Stress, names: list[str], seconds: float) -> list[str]:
    """Every attack of these names, then the rest; what of the promises did not hold."""
    stress.quiet(2.0)  # warm
    quiet = [stress.quiet(seconds / 2)]
    rounds = []
    for name in attacks.ATTACKS:
        if name in names:
            rounds.append(stress.attack(name, seconds))
            quiet.append(stress.quiet(seconds / 4))
            print(told(rounds[-1], _idle(quiet)), *rounds[-1].wrong, sep="\n    ", flush=True)
    broken = []
    if "in_flight" in names:
        found = [*in_flight(stress.daemon, attacks.FLOOD), *stress.unhealthy()]
        said = "; ".join(found) or "each answered once"
        print(f"in_flight      {attacks.FLOOD} requests on one socket: {said}")
        broken += [f"in_flight: {one}" for one in found]
    if "proxies" in names:
        before = stress.descriptors()
        found = stdio_proxies.leftovers(stress.daemon, 12)
        if stress.settled(before) > before:
            found.append("descriptors did not come back")
        found += stress.unhealthy()
        print(f"proxies        36 `memd mcp`: {'; '.join(found) or 'none is left'}")
        broken += [f"proxies: {one}" for one in found]
    idle = _idle(quiet)
    print(f"idle           search p95 {idle[0]:.1f} ms  capture p95 {idle[1]:.1f} ms")
    return [*(f"{one.name}: {what}" for one in rounds for what in judged(one, idle)), *broken]


def main() -> None:
    """Run what was asked for; 1 if a promise is broken."""
    every = [*attacks.ATTACKS, "in_flight", "proxies"]
    ask = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    ask.add_argument("--seconds", type=float, default=10.0, help="how long each attack lasts")
    ask.add_argument("--summaries", type=int, default=5_000)
    ask.add_argument("--only", nargs="*", choices=every)
    ask.add_argument("--seed", type=int, default=random.randrange(10_000))
    args = ask.parse_args()
    # As a service manager starts it.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1_024, hard), hard))
    print(f"seed {args.seed}; {args.summaries} memories; {args.seconds:g} s an attack")
    with harness.daemon() as daemon:
        fill(daemon, args.summaries, args.seed)
        broken = put_through(Stress(daemon, args.seed), args.only or every, args.seconds)
    load = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    print(f"load average now {load}: where others compute meanwhile, times say less")
    print("every promise held" if not broken else "BROKEN:\n  " + "\n  ".join(broken))
    sys.exit(bool(broken))


def _idle(quiet: list[tuple[Seen, Seen]]) -> tuple[float, float]:
    """p95 in ms of a search and of a capture while nobody attacks."""
    return (
        Seen([t for seen, _ in quiet for t in seen.times]).p95(),
        Seen([t for _, seen in quiet for t in seen.times]).p95(),
    )

"""A realistic day, in an hour: sessions, searches, imports, backups, a restart; nothing leaks, nothing is lost.

    scripts/torture soak [--minutes 60] [--sessions 4] [--seed N]

Sessions go on at a human pace that is sped up, some of their hooks as processes, as Claude Code runs
them. MCP clients come and go, over the socket and through `memd mcp`. Memories are remembered, forgotten and
consolidated, notes imported, backups made, the doctor asked; once the daemon is restarted. At the end:
memory, descriptors and threads flat, WAL and log bounded, no zombie, the spool
empty, every event stored once, the ledger balanced, the doctor content. Exit code 1 if not.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import corpus, harness
from memd.errors import MemdError, Unreachable
from tests.forked_memd import PATIENT
from tests.stress.support import Trial, as_event, doctor_problems, run_trials, wait_until, worker

LOG_KIB = 256
TUNING = {
    "distill.idle_s": 20,
    "distill.interval_s": 5,
    "consolidate.interval_s": 15,
    "daemon.log_bytes": LOG_KIB * 1024,
    **PATIENT,
}
WARM_UP = 0.35
"""Of the time; the restart is before its end."""
RESTART = 0.15
HOOKED = 2
"""So many sessions run hooks as processes; the others speak to the socket themselves."""
Work = Callable[[random.Random, int], None]


KB_A_MEMORY = 2.0
"""What the index may hold of one more memory and its passages."""
KB_BY_DIMENSION, ROWS_BY_DIMENSION = 0.75, 20_000
"""And beside that, while there are no more rows: a byte for each dimension (memd/index/plain.py)."""
RSS_MB, DESCRIPTORS, THREADS, WAL_MB = 12.0, 4.0, 4.0, 40.0
"""By how much the first three may rise on the line over the whole time; how large a log may get."""
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """One look; `at` in seconds of the monotonic clock."""

    at: float
    rss_mb: float
    descriptors: int
    threads: int
    zombies: int
    wal_mb: float
    log_mb: float
    """Of the largest of the log's files."""
    vault_mb: float
    memories: int


Figure = Callable[[Sample], float]
_COUNTED: tuple[tuple[str, Figure, float], ...] = (
    ("descriptors", lambda one: one.descriptors, DESCRIPTORS),
    ("threads", lambda one: one.threads, THREADS),
)


def look(daemon: harness.Daemon, memories: int) -> Sample | None:
    """Look at it now; None if it is not there."""
    process = daemon.process
    if process is None:
        return None
    try:
        stat = dict(
            line.split(":", 1)
            for line in Path(f"/proc/{process.pid}/status").read_text("utf-8").splitlines()
        )
        count = sum(1 for _ in os.scandir(f"/proc/{process.pid}/fd"))
        rss = int(stat["VmRSS"].split()[0]) / 1024
    except (OSError, KeyError):
        return None
    if not Path(daemon.paths.socket).exists():
        return None  # it is only starting, or about to end
    base = daemon.paths.database
    logs = [megabytes(path) for path in (daemon.paths.log, f"{daemon.paths.log}.1")]
    return Sample(
        time.monotonic(), rss, count, int(stat["Threads"]), zombies(process.pid),
        megabytes(f"{base}-wal"), max(logs), megabytes(base), memories,
    )  # fmt: skip


def megabytes(path: str) -> float:
    """How large a file is; 0 if there is none."""
    try:
        return Path(path).stat().st_size / _MIB
    except OSError:
        return 0.0


def zombies(parent: int) -> int:
    """How many ended children of a process were not waited for."""
    count = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                state, above = (entry / "stat").read_text("utf-8").rpartition(")")[2].split()[:2]
                count += state == "Z" and int(above) == parent
    return count


@contextlib.contextmanager
def sampled(
    daemon: harness.Daemon, memories: Callable[[], int], every_s: float
) -> Iterator[list[Sample]]:
    """Take samples in a thread while the block runs."""
    samples: list[Sample] = []
    over = threading.Event()

    def run() -> None:
        while not over.wait(every_s):
            if (sample := look(daemon, memories())) is not None:
                samples.append(sample)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def rise(samples: Sequence[Sample], figure: Figure) -> float:
    """By how much a figure rises from the first sample to the last, on the line of least squares."""
    if len(samples) < 3:  # no line
        return 0.0
    times = [one.at - samples[0].at for one in samples]
    line = statistics.linear_regression(times, [figure(one) for one in samples])
    return line.slope * times[-1]


def verdicts(samples: Sequence[Sample], log_mb: float) -> list[tuple[str, bool]]:
    """Each figure with its limit in words, and whether it holds; `log_mb` is where a log turns over."""
    if not samples:
        return [("no samples were taken", False)]
    minutes = (samples[-1].at - samples[0].at) / 60
    grown = rise(samples, lambda one: one.memories)
    rss = rise(samples, lambda one: one.rss_mb)
    beside = rise(samples, lambda one: one.memories if one.memories <= ROWS_BY_DIMENSION else 0)
    wanted = max(0.0, grown) * KB_A_MEMORY + max(0.0, beside) * KB_BY_DIMENSION
    limit = RSS_MB + wanted / 1024
    text = (
        f"RSS {samples[0].rss_mb:.0f} → {samples[-1].rss_mb:.0f} MB, on the line {rss:+.1f} MB in"
        f" {minutes:.1f} min with {grown:+.0f} memories (limit {limit:+.1f})"
    )
    found = [(text, rss <= limit)]
    for name, figure, most in _COUNTED:
        rises, top = rise(samples, figure), max(figure(one) for one in samples)
        words = f"{name} {rises:+.1f} on the line (limit {most:+.0f}), at most {top:.0f}"
        found.append((words, rises <= most))
    wal = max(one.wal_mb for one in samples)
    found.append((f"WAL at most {wal:.1f} MB (limit {WAL_MB:.0f})", wal <= WAL_MB))
    log = max(one.log_mb for one in samples)
    found.append((f"log at most {log:.2f} MB (limit {log_mb + 0.1:.2f})", log <= log_mb + 0.1))
    dead = max(one.zombies for one in samples[-3:])
    found.append((f"zombies at the end {dead} (limit 0)", dead == 0))
    return found


class Day:
    """One day with a daemon, in threads."""

    def __init__(self, daemon: harness.Daemon, seconds: float, sessions: int, seed: int) -> None:
        self.daemon = daemon
        self.seconds = seconds
        self.sessions = sessions
        self.seed = seed
        self.did: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.events = 0
        self.took: list[float] = []
        """Seconds of every search."""
        self._number = 0
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._restarting = threading.Lock()
        self._questions = corpus.Corpus(seed).questions(200)

    def number(self) -> int:
        """One that was never used."""
        with self._lock:
            self._number += 1
            return self._number

    def pause(self, rng: random.Random, mean_s: float) -> bool:
        """Do nothing for a while; whether the day goes on."""
        return not self._over.wait(min(rng.expovariate(1 / mean_s), 4 * mean_s))

    def live(self) -> None:
        """Live through it."""
        clients: list[tuple[Work, int]] = [(self._session, n) for n in range(self.sessions)]
        clients += [(self._asks, n) for n in range(3)]
        clients += [(work, 0) for work in (self._proxies, self._remembers, self._maintains)]
        threads = [
            threading.Thread(target=self._guarded, args=(work, random.Random(self.seed * 100 + place), n))
            for place, (work, n) in enumerate(clients)
        ]  # fmt: skip
        for one in threads:
            one.start()
        self._over.wait(RESTART * self.seconds)
        self._restart()
        self._over.wait((1 - RESTART) * self.seconds)
        self._over.set()
        for one in threads:
            one.join(120)
            if one.is_alive():
                self.wrong.append("a client is still waiting for an answer")

    def _guarded(self, work: Work, rng: random.Random, n: int) -> None:
        while not self._over.is_set():
            before = self.did["restarts"]
            try:
                work(rng, n)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # is the finding
                if not self._restarted(before):
                    self.wrong.append(f"{work.__name__}: {type(error).__name__}: {error}")
                    return
                self._over.wait(0.1)  # its daemon is gone: ask again

    def _restart(self) -> None:
        with self._restarting:
            self.daemon.stop()
            self.daemon.start()
            self.did["restarts"] += 1

    def _restarted(self, before: int) -> bool:
        """Whether the daemon ended since there had been so many restarts: a connection may see it much later."""
        return self._restarting.locked() or self.did["restarts"] > before

    # ── Sessions ──────────────────────────────────────────────────────────────────────────────

    def _session(self, rng: random.Random, place: int) -> None:
        """A session from its start to its end."""
        session = f"soak{place}-{self.number()}"
        give = self._hook if place < HOOKED else self._capture
        base = {"session_id": session, "cwd": f"/home/dev/project{place}", "transcript_path": ""}
        give({**base, "hook_event_name": "SessionStart", "source": "startup"})
        for turn in range(rng.randint(4, 12)):
            if not self._turn(rng, give, base):
                break
            if turn % 5 == 4:  # now and then
                compact = {**base, "trigger": "auto"}
                summary = f"It was about {self._words(rng)}."
                give({**compact, "hook_event_name": "PreCompact"})
                give({**compact, "hook_event_name": "PostCompact", "compact_summary": summary})
                give({**base, "hook_event_name": "SessionStart", "source": "compact"})
                self.did["compactions"] += 1
        give({**base, "hook_event_name": "SessionEnd", "reason": "other"})
        self.did["sessions"] += 1

    def _turn(
        self, rng: random.Random, give: Callable[[dict[str, Any]], None], base: dict[str, Any]
    ) -> bool:
        number = self.number()
        one = {**base, "prompt_id": f"p{number}"}
        words = self._words(rng)
        prompt = f"Why does the {words} fail?"
        give({**one, "hook_event_name": "UserPromptSubmit", "prompt": prompt})
        for call in range(rng.randint(1, 5)):
            if not self.pause(rng, 0.4):
                break
            tool = {**one, "tool_name": "Bash", "tool_use_id": f"t{number}-{call}",
                    "tool_input": {"command": f"make {words.split()[0]}{call}"}}  # fmt: skip
            if rng.random() < 0.15:  # some fail
                error = f"exit 2: {words}"
                give({**tool, "hook_event_name": "PostToolUseFailure", "error": error})
            else:
                out = {"stdout": f"{words}\n" * rng.randint(1, 40), "stderr": ""}
                give({**tool, "hook_event_name": "PostToolUse", "tool_response": out})
        said = f"We chose {words} over a lock because number {number} is fair. The tests pass."
        give({**one, "hook_event_name": "Stop", "last_assistant_message": said})
        self.did["turns"] += 1
        return self.pause(rng, 1.0)

    def _words(self, rng: random.Random) -> str:
        return " ".join(rng.choice(self._questions).split()[-3:])

    def _hook(self, payload: dict[str, Any]) -> None:
        """As Claude Code does it; without a daemon it goes on the spool."""
        done = self.daemon.run(
            "hook", payload["hook_event_name"], given=json.dumps(payload).encode()
        )
        with self._lock:
            self.events += 1
            self.did["hooks"] += 1
        if done.returncode or done.stderr:
            self.wrong.append(f"a hook ended with {done.returncode}: {done.stderr[:200]!r}")

    def _capture(self, payload: dict[str, Any]) -> None:
        """A client of its own for each event, until one is acknowledged."""
        while True:
            before = self.did["restarts"]
            try:
                with self.daemon.client(60) as client:
                    client.call("memd/capture", as_event(payload))
            except Unreachable:
                if not self._restarted(before):
                    raise
                time.sleep(0.05)
            else:
                with self._lock:
                    self.events += 1
                return

    # ── Other clients ────────────────────────────────────────────────────────────────────────

    def _asks(self, rng: random.Random, _: int) -> None:
        """An MCP client that comes, asks a few things, and goes."""
        mcp = harness.Mcp(self.daemon.paths.socket)
        try:
            for _asked in range(rng.randint(1, 12)):
                began = time.perf_counter()
                found = mcp.tool("mem_search", query=rng.choice(self._questions), project="all")
                self.took.append(time.perf_counter() - began)
                self.did["searches"] += 1
                for hit in found["hits"][:1]:
                    mcp.tool("mem_timeline", id=hit["id"], project="all")
                    mcp.tool("mem_why", id=hit["id"], project="all")
                if not self.pause(rng, 0.5):
                    return
        finally:
            mcp.close()
            self.did["clients"] += 1

    def _proxies(self, rng: random.Random, _: int) -> None:
        """`memd mcp` as a client starts it, left by closing its stdin, or killed."""
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": harness.HELLO}
        with subprocess.Popen(
            [*self.daemon.command, "mcp"], env={**self.daemon.environ, "MEMD_START": "0"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ) as child:  # fmt: skip
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(json.dumps(hello).encode() + b"\n")
            child.stdin.flush()
            child.stdout.readline()
            if rng.random() < 0.5:  # half of them are killed
                child.kill()
        self.did["proxies"] += 1
        self.pause(rng, 2.0)

    def _remembers(self, rng: random.Random, _: int) -> None:
        """Remember what is said again, and forget some of it."""
        with self.daemon.client(60) as client:
            words = self._words(rng)
            given = {"source": "user", "kind": "decision", "project": "global"}
            ways = ("The {} is fair.", "the {} is fair", "{} is fair!")
            memories = [{"text": way.format(words), **given} for way in ways]
            stored = client.call("memd/remember", {"memories": memories})["remembered"]
            self.did["remembered"] += 3
            if rng.random() < 0.3:  # some is forgotten
                one = {"ids": [stored[0]["id"]], "dry_run": False, "project": "all"}
                client.call("memd/forget", one)
                self.did["forgotten"] += 1
        self.pause(rng, 1.5)

    def _maintains(self, rng: random.Random, _: int) -> None:
        """One after another: notes to import, a backup, an export, and the other commands."""
        notes = Path(self.daemon.home, "notes")
        notes.mkdir(exist_ok=True)
        note = f"# {self._words(rng)}\n\nNumber {self.number()}: {self._words(rng)}.\n"
        Path(notes, f"{rng.randrange(20)}.md").write_text(note, "utf-8")
        with tempfile.TemporaryDirectory() as out:
            for line in (
                f"import markdown {notes}", "backup --keep 2", f"export {out}/all.jsonl",
                f"import {out}/all.jsonl", "vacuum --dry-run", "consolidate", "status",
            ):  # fmt: skip
                before = self.did["restarts"]
                done = self.daemon.run(*line.split())
                self.did[line.split()[0]] += 1
                if done.returncode and not self._restarted(before):
                    self.wrong.append(f"memd {line}: {done.stdout[-300:]!r} {done.stderr[-300:]!r}")
                if not self.pause(rng, self.seconds / 60):
                    return

    # ── The end ───────────────────────────────────────────────────────────────────────────────

    def prove(self) -> None:
        """Everything has come to rest, and is there."""
        if not wait_until(lambda: not self._unsettled()):
            self.wrong += self._unsettled()
        with self.daemon.client(120) as client:
            self.wrong += doctor_problems(client)

    def _unsettled(self) -> list[str]:
        with contextlib.suppress(MemdError), self.daemon.client(60) as client:
            status = client.call("memd/status")
            ledger, waiting = status["books"], status["events"]["pending"]
            listener = worker(status, "listener")
            wrong = {
                f"{self.events} events given, {ledger['stored']} stored": ledger["stored"] == self.events,
                f"the ledger does not balance: {ledger}": ledger["balanced"],
                f"refused: {ledger['reasons']}": not ledger["refused"],
                f"{waiting} events are not distilled": not waiting,
                f"{status['summaries']['to_index']} memories are not indexed": not status["summaries"]["to_index"],
                f"the spool holds {status['spool']}": not status["spool"]["files"],
                f"{listener['connections']} connections are open, one is ours": listener["connections"] == 1,
                f"not healthy: {status['reasons']}": status["health"] == "healthy",
            }  # fmt: skip
            return [words for words, holds in wrong.items() if not holds]
        return ["the daemon does not answer"]


def soak(seconds: float, sessions: int, seed: int) -> tuple[Day, list[tuple[str, bool]]]:
    """Live through a day of this many seconds; what was done and went wrong, and the figures."""
    with harness.daemon(tuning=TUNING) as daemon:
        day = Day(daemon, seconds, sessions, seed)
        began = time.monotonic()

        def memories() -> int:
            return day.did["turns"] * 2 + day.did["remembered"]

        with sampled(daemon, memories, seconds / 200) as samples:
            day.live()
            day.prove()
        warm = [one for one in samples if began + WARM_UP * seconds <= one.at]
        return day, verdicts(warm, LOG_KIB / 1024)


def _trials(options: argparse.Namespace) -> Iterator[tuple[str, Trial]]:
    def live() -> tuple[list[str], str]:
        day, figures = soak(options.minutes * 60, options.sessions, options.seed)
        done = ", ".join(f"{count:,} {what}" for what, count in day.did.items())
        times = harness.milliseconds(day.took or [0.0])
        held = [words for words, holds in figures if holds]
        lines = [
            f"{done}, {day.events:,} events",
            f"searches p50 {times['p50']} ms, p95 {times['p95']} ms",
            *held,
        ]
        return day.wrong + [words for words, holds in figures if not holds], "\n  ".join(lines)

    yield "a day", live


def main() -> None:
    """Live through a day, and report it."""
    run_trials("soak", __doc__, _trials, minutes=60.0, sessions=4)

"""A realistic day, in an hour: sessions, searches, imports, backups, a restart; nothing leaks, nothing is lost.

    scripts/torture soak [--minutes 60] [--sessions 4] [--seed N]

Sessions go on at a human pace that is sped up, some of their hooks as processes, as Claude Code runs
them. MCP clients come and go, over the socket and through `memd mcp`. Memories are remembered, forgotten and
consolidated, notes imported, backups made, the doctor asked; once the daemon is restarted. At the end:
memory, descriptors and threads flat (leaks.py), WAL and log bounded, no zombie, the spool
empty, every event stored once, the books balanced, the doctor content. Exit code 1 if not.
"""

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import corpus, harness
from memd.errors import MemdError, Unreachable
from tests.stress import leaks as gauge

LOG_KIB = 256
CONFIG = f"""
[distill]
idle_s = 20
interval_s = 5
[consolidate]
interval_s = 15
[daemon]
log_bytes = {LOG_KIB * 1024}
"""
WARM_UP = 0.35
"""Of the time; the restart is before its end."""
RESTART = 0.15
HOOKED = 2
"""So many sessions run hooks as processes; the others speak to the socket themselves."""
_END_S = 60.0


Work = Callable[[random.Random, int], None]


class Day:
    """One day with a daemon, in threads."""

    def __init__(
        self, daemon: harness.Daemon, seconds: float, sessions: int, seed: int
    ) -> None:
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
        people: list[tuple[Work, int]] = [(self._session, n) for n in range(self.sessions)]
        people += [(self._asks, n) for n in range(3)]
        people += [(work, 0) for work in (self._bridges, self._remembers, self._keeps_house)]
        threads = [
            threading.Thread(target=self._guarded, args=(work, random.Random(self.seed * 100 + place), n))
            for place, (work, n) in enumerate(people)
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
                self.wrong.append("somebody is still waiting for an answer")

    def _guarded(self, work: Work, rng: random.Random, n: int) -> None:
        while not self._over.is_set():
            try:
                work(rng, n)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # is the finding
                if not self._restarting.locked():
                    self.wrong.append(f"{work.__name__}: {type(error).__name__}: {error}")
                    return
                self._over.wait(0.1)  # the daemon is being restarted: who asks, asks again

    def _restart(self) -> None:
        with self._restarting:
            self.daemon.stop()
            self.daemon.start()
            self._over.wait(0.5)
        self.did["restarts"] += 1

    # ── Sessions ──────────────────────────────────────────────────────────────────────────────

    def _session(self, rng: random.Random, place: int) -> None:
        """A session from its start to its end."""
        session = f"soak{place}-{self.number()}"
        give = self._hook if place < HOOKED else self._capture
        base = {
            "session_id": session,
            "cwd": f"/home/dev/project{place}",
            "transcript_path": "",
        }
        give({**base, "hook_event_name": "SessionStart", "source": "startup"})
        for turn in range(rng.randint(4, 12)):
            if not self._turn(rng, give, base):
                break
            if turn % 5 == 4:  # now and then
                compact = {**base, "trigger": "auto"}
                give({**compact, "hook_event_name": "PreCompact"})
                give(
                    {
                        **compact,
                        "hook_event_name": "PostCompact",
                        "compact_summary": f"It was about {self._words(rng)}.",
                    }
                )
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
        give(
            {
                **one,
                "hook_event_name": "UserPromptSubmit",
                "prompt": f"Why does the {words} fail?",
            }
        )
        for call in range(rng.randint(1, 5)):
            if not self.pause(rng, 0.4):
                break
            tool = {"tool_name": "Bash", "tool_use_id": f"t{number}-{call}",
                    "tool_input": {"command": f"make {words.split()[0]}{call}"}}  # fmt: skip
            if rng.random() < 0.15:  # some fail
                give(
                    {
                        **one,
                        **tool,
                        "hook_event_name": "PostToolUseFailure",
                        "error": f"exit 2: {words}",
                    }
                )
            else:
                out = {"stdout": f"{words}\n" * rng.randint(1, 40), "stderr": ""}
                give({**one, **tool, "hook_event_name": "PostToolUse", "tool_response": out})
        said = f"We chose {words} over a lock because number {number} is fair. The tests pass."
        give({**one, "hook_event_name": "Stop", "last_assistant_message": said})
        self.did["turns"] += 1
        return self.pause(rng, 1.0)

    def _words(self, rng: random.Random) -> str:
        return " ".join(rng.choice(self._questions).split()[-3:])

    def _hook(self, payload: dict[str, Any]) -> None:
        """As Claude Code does it; without a daemon it goes on the spool."""
        done = subprocess.run(
            [sys.executable, "-m", "memd", "hook", payload["hook_event_name"]],
            env={**self.daemon.environ, "MEMD_START": "0"},
            input=json.dumps(payload).encode(),
            capture_output=True,
            check=False,
            timeout=60,
        )
        with self._lock:
            self.events += 1
            self.did["hooks"] += 1
        if done.returncode or done.stderr:
            self.wrong.append(f"a hook ended with {done.returncode}: {done.stderr[:200]!r}")

    def _capture(self, payload: dict[str, Any]) -> None:
        """A client of its own for each event, until one is acknowledged."""
        while True:
            try:
                with self.daemon.client(60) as client:
                    client.call("memd/capture", {"client": "claude-code", "payload": payload})
            except Unreachable:
                if not self._restarting.locked():
                    raise
                time.sleep(0.05)
            else:
                with self._lock:
                    self.events += 1
                return

    # ── Everybody else ────────────────────────────────────────────────────────────────────────

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

    def _bridges(self, rng: random.Random, _: int) -> None:
        """`memd mcp` as a client starts it, left by closing its stdin, or killed."""
        with subprocess.Popen(
            [sys.executable, "-m", "memd", "mcp"], env={**self.daemon.environ, "MEMD_START": "0"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ) as child:  # fmt: skip
            assert child.stdin is not None
            assert child.stdout is not None
            hello = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "soak", "version": "1"},
            }
            child.stdin.write(
                json.dumps(
                    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
                ).encode()
                + b"\n"
            )
            child.stdin.flush()
            child.stdout.readline()
            if rng.random() < 0.5:  # half of them are killed
                child.kill()
        self.did["bridges"] += 1
        self.pause(rng, 2.0)

    def _remembers(self, rng: random.Random, _: int) -> None:
        """Remember what is said again, and forget some of it."""
        with self.daemon.client(60) as client:
            words = self._words(rng)
            texts = [
                way.format(words)
                for way in ("The {} is fair.", "the {} is fair", "{} is fair!")
            ]
            kept = client.call("memd/remember", {"memories": [
                {"text": text, "source": "user", "kind": "decision", "project": "global"} for text in texts
            ]})["remembered"]  # fmt: skip
            self.did["remembered"] += 3
            if rng.random() < 0.3:  # some is forgotten
                client.call(
                    "memd/forget", {"ids": [kept[0]["id"]], "dry_run": False, "project": "all"}
                )
                self.did["forgotten"] += 1
        self.pause(rng, 1.5)

    def _keeps_house(self, rng: random.Random, _: int) -> None:
        """One after another: notes to import, a backup, an export, the doctor, the tidying by hand."""
        notes = Path(self.daemon.home, "notes")
        notes.mkdir(exist_ok=True)
        Path(notes, f"{rng.randrange(20)}.md").write_text(
            f"# {self._words(rng)}\n\nNumber {self.number()}: {self._words(rng)}.\n", "utf-8"
        )
        with tempfile.TemporaryDirectory() as out:
            for words in (
                ("import", "markdown", str(notes)),
                ("backup", "--keep", "2"),
                ("export", f"{out}/all.jsonl"),
                ("import", f"{out}/all.jsonl"),
                ("vacuum", "--dry-run"),
                ("consolidate",),
                ("status",),
            ):
                self._command(*words)
                if not self.pause(rng, self.seconds / 60):
                    return

    def _command(self, *words: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "memd", *words],
            env={**os.environ, **self.daemon.environ, "MEMD_START": "0"},
            stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=600,
        )  # fmt: skip
        self.did[words[0]] += 1
        if done.returncode and not self._restarting.locked():
            self.wrong.append(
                f"memd {' '.join(words)}: {done.stdout[-300:]!r} {done.stderr[-300:]!r}"
            )

    # ── The end ───────────────────────────────────────────────────────────────────────────────

    def prove(self) -> None:
        """Everything has come to rest, and is there."""
        deadline = time.monotonic() + _END_S
        while why := self._unsettled():
            if time.monotonic() > deadline:
                self.wrong += why
                break
            time.sleep(0.1)
        with self.daemon.client(120) as client:
            found = client.call("memd/doctor")["findings"]
        self.wrong += [
            f"doctor: {one['name']}: {one['words']}" for one in found if one["verdict"] != "ok"
        ]

    def _unsettled(self) -> list[str]:
        with contextlib.suppress(MemdError), self.daemon.client(60) as client:
            status = client.call("memd/status")
            books, waiting = status["books"], status["events"]["pending"]
            listener = next(room for room in status["rooms"] if room["name"] == "listener")
            wrong = {
                f"{self.events} events given, {books['stored']} stored": books["stored"] == self.events,
                f"the books do not balance: {books}": books["balanced"],
                f"refused: {books['reasons']}": not books["refused"],
                f"{waiting} events are not distilled": not waiting,
                f"{status['summaries']['to_index']} memories are not indexed": not status["summaries"]["to_index"],
                f"the spool holds {status['spool']}": not status["spool"]["files"],
                f"{listener['connections']} connections are open, one is ours": listener["connections"] == 1,
                f"not healthy: {status['reasons']}": status["health"] == "healthy",
            }  # fmt: skip
            return [words for words, holds in wrong.items() if not holds]
        return ["the daemon does not answer"]


def soak(seconds: float, sessions: int, seed: int) -> tuple[Day, list[tuple[str, bool]]]:
    """Live through a day of so many seconds; what was done and went wrong, and the figures."""
    with harness.daemon(CONFIG) as daemon:
        day = Day(daemon, seconds, sessions, seed)
        began = time.monotonic()
        watch = gauge.Watch(
            daemon, lambda: day.did["turns"] * 2 + day.did["remembered"], seconds / 200
        )
        try:
            day.live()
            day.prove()
        finally:
            samples = watch.end()
        after = began + WARM_UP * seconds
        warm = [one for one in samples if after <= one.at]
        return day, gauge.verdicts(warm, LOG_KIB / 1024)


def main() -> None:
    """Live and tell."""
    parser = argparse.ArgumentParser(prog="scripts/torture soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--sessions", type=int, default=4)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    options = parser.parse_args()
    print(
        f"--minutes {options.minutes:g} --sessions {options.sessions} --seed {options.seed}",
        flush=True,
    )
    day, figures = soak(options.minutes * 60, options.sessions, options.seed)
    print(
        ", ".join(f"{count:,} {what}" for what, count in day.did.items())
        + f", {day.events:,} events"
    )
    times = harness.milliseconds(day.took or [0.0])
    print(f"searches p50 {times['p50']} ms, p95 {times['p95']} ms")
    for words, holds in figures:
        print(f"{'holds ' if holds else 'BROKEN'}  {words}")
    wrong = list(dict.fromkeys(day.wrong))
    for one in wrong:
        print(f"BROKEN  {one}")
    broken = len(wrong) + sum(not holds for _, holds in figures)
    print(f"promises broken: {broken} (limit 0); --seed {options.seed}")
    raise SystemExit(1 if broken else 0)

"""Another version of the model is pulled: what searches notice while everything is embedded anew.

    scripts/bench reembed [--summaries N] [--searches N] [--rate N] [--model M] [--json]

Searches are timed while the daemon is idle, then while it re-embeds and takes in captures at the same
time; half-way it is killed (-9) and started again. Beside each stand a search that asks no model, and
a question to the model server alone: so one sees whose fault a slow search is. Exit code 1 if a bar is missed: the searches' p50
and p95 at most twice those of the idle daemon, none failed, no vector computed twice but for what was
on its way when it was killed, every passage with one vector in the new space, and every one of them
what the new model made of that passage.
"""

import argparse
import contextlib
import itertools
import json
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import bench_outage
import numpy as np

from benchmarks import corpus, harness, minilm, ollama_stub
from memd.index.blobs import decode
from memd.store.vectors import STRIDE

RATIO = 2.0
ON_THEIR_WAY = 4 * 64
"""Texts that may have been computed and not yet been written when the daemon was killed."""
CAPTURES_PER_S = 20
PACE_S = 0.02
RATE = 200
WARM = 20
SALT = "another version"
OF_DIGEST = (
    f"FROM vectors v JOIN spaces s ON s.id = v.id / {STRIDE} WHERE s.digest = substr(?, 1, length(s.digest))"
    " AND s.digest != ''"
)
"""A space is named by the beginning of the digest."""


WORDS = """
[profiles.words]
base = "memd"
legs = {topic = 1.0, lexical = 1.0, vector = 0.0}
"""
"""config.toml: memd without a vector leg, for which no model is asked."""

Look = tuple[bench_outage.Search, bench_outage.Search, float]


class Captures:
    """Events of made-up sessions, taken in at a steady pace until told to stop."""

    def __init__(self, daemon: harness.Daemon) -> None:
        self._daemon = daemon
        self._is_over = threading.Event()
        self.taken = 0
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        with self._daemon.client() as client:
            for number in itertools.count():
                if self._is_over.wait(1 / CAPTURES_PER_S):
                    return
                turn, is_end = divmod(number, 2)
                payload = {
                    "session_id": f"reembed-{turn % 5}",
                    "prompt_id": f"reembed-{time.monotonic_ns()}-{turn}",
                    "cwd": "/nowhere",
                    "hook_event_name": "Stop" if is_end else "UserPromptSubmit",
                    "prompt": f"why does worker {turn} time out",
                    "last_assistant_message": f"Worker {turn} waits for a lock; it is released now.",
                }
                client.call("memd/capture", {"client": "claude-code", "payload": payload})
                self.taken += 1


class Vault:
    """The daemon's file, looked at from outside."""

    def __init__(self, path: str) -> None:
        self._uri = f"file:{path}?mode=ro"

    def _rows(self, sql: str, *values: str) -> list[Any]:
        with contextlib.closing(sqlite3.connect(self._uri, uri=True)) as vault:
            return vault.execute(sql, values).fetchall()

    def vectors(self, digest: str) -> dict[int, np.ndarray]:
        """Passage → vector in the space of the model with this digest."""
        wanted = f"SELECT v.id % {STRIDE}, s.dimensions, v.vector {OF_DIGEST}"
        rows = self._rows(wanted, digest)
        return {number: decode([blob], dimensions)[0] for number, dimensions, blob in rows}

    def count(self, digest: str) -> int:
        """How many vectors there are in the space of the model with this digest."""
        return int(self._rows(f"SELECT count(*) {OF_DIGEST}", digest)[0][0])

    def passages(self) -> int:
        """How many passages there are."""
        return int(self._rows("SELECT count(*) FROM passages")[0][0])


def until(condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    """Wait for a condition; ends the bench if it does not come true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"waited {seconds:g} s in vain until {what}")
        time.sleep(0.02)


@dataclass
class Run:
    """A daemon whose model changes under it, step by step."""

    server: harness.ModelServer
    daemon: harness.Daemon
    options: argparse.Namespace
    figures: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        model = minilm.load(self.options.model)
        self._old, self._new = (ollama_stub.digest(model, salt) for salt in ("", SALT))
        self._vault = Vault(self.daemon.paths.database)
        self._asked = 0

    def embed(self) -> dict[int, np.ndarray]:
        """Fill the vault, and time searches while nothing else goes on; the vectors."""
        made_up = corpus.Corpus()
        began = time.perf_counter()
        bench_outage.fill(self.daemon, made_up, self.options.summaries)
        before = self._vault.vectors(self._old)
        self.figures["first_per_s"] = round(len(before) / (time.perf_counter() - began))
        self.server.stop()
        self.server.start(rate=self.options.rate)
        self.daemon.wait_ready()
        mcp = harness.Mcp(self.daemon.paths.socket)
        self._searcher = bench_outage.Searcher(mcp, made_up)
        self._searcher.spread("warm", WARM, 0)
        self._note("idle", [self._look("idle") for _ in range(self.options.searches)])
        return before

    def _look(self, phase: str) -> Look:
        """A search, one without a vector leg, and a question to the model server alone; then a pause."""
        whole = self._searcher.search(phase)
        words = self._searcher.search(phase, profile="words")
        model = self.server.ask(f"{phase} {time.monotonic_ns()}")
        self._asked += 2
        time.sleep(PACE_S)
        return whole, words, model

    def change(self) -> None:
        """Serve another version of the model, search while half is embedded anew, and kill."""
        self.server.stop()
        self.server.start(SALT, self.options.rate)
        until(lambda: self._vault.count(self._new) > 0, "the changed model was noticed")
        began = time.perf_counter()
        self._asked = 0
        half = self.options.summaries // 2
        found = []
        with Captures(self.daemon) as captures:
            while self._vault.count(self._new) < half:
                found += [self._look("during") for _ in range(5)]
        self.daemon.stop(signal.SIGKILL)
        kept = self._vault.count(self._new)
        self.figures["per_s"] = round(kept / (time.perf_counter() - began))
        self.figures |= {"captures": captures.taken, "written_when_killed": kept}
        self._note("during", found)

    def finish(self, before: dict[int, np.ndarray]) -> None:
        """Start it again, wait until all is there, and compare."""
        self.daemon.start()
        # The kill left turns without an end; those are distilled when they have been idle for long.
        self.daemon.settle(is_distilled=False)
        self.daemon.wait_learned()
        after = self._vault.vectors(self._new)
        both = before.keys() & after.keys()
        turned = {number: ollama_stub.turned(before[number][None], SALT)[0] for number in both}
        self.figures |= {
            "passages": self._vault.passages(),
            "vectors": len(after),
            "asked_for": int(self.server.spent()["asked"]) - self._asked,
            "compared": len(both),
            "wrong_space": sum(
                not np.allclose(turned[number], after[number], atol=1e-3) for number in both
            ),
        }

    def _note(self, name: str, found: list[Look]) -> None:
        searches = [one for whole, words, _ in found for one in (whole, words)]
        self.figures[name] = {
            "searches": len(searches),
            "errors": sum(one.error is not None for one in searches),
            **harness.milliseconds([whole.seconds for whole, _, _ in found]),
            "words": harness.milliseconds([words.seconds for _, words, _ in found]),
            "model": harness.milliseconds([model for _, _, model in found]),
        }


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Every figure."""
    with contextlib.ExitStack() as running:
        server = running.enter_context(harness.model_server(options.model))
        daemon = running.enter_context(harness.daemon(WORDS + server.engines()))
        run = Run(server, daemon, options)
        before = run.embed()
        run.change()
        run.finish(before)
    return run.figures


def ratios(figures: dict[str, Any]) -> dict[str, list[float]]:
    """While re-embedding to idle, (p50, p95): of a search, of its part without a model, of the model."""
    idle, during = figures["idle"], figures["during"]
    parts = {
        "search": (idle, during),
        **{part: (idle[part], during[part]) for part in ("words", "model")},
    }
    return {
        name: [after[p] / before[p] for p in ("p50", "p95")]
        for name, (before, after) in parts.items()
    }


def missed(figures: dict[str, Any]) -> list[str]:
    """The bars that were not met, in words."""
    p50, p95 = ratios(figures)["search"]
    twice = figures["asked_for"] - figures["vectors"]
    errors = figures["idle"]["errors"] + figures["during"]["errors"]
    bars = {
        f"{errors} searches failed": errors == 0,
        f"p50 is {p50:.2f} times the idle one": p50 <= RATIO,
        f"p95 is {p95:.2f} times the idle one": p95 <= RATIO,
        f"{figures['vectors']} vectors for {figures['passages']} passages": (
            figures["vectors"] == figures["passages"]
        ),
        f"{twice} texts were computed twice": twice <= ON_THEIR_WAY,
        f"{figures['wrong_space']} vectors are of another model": figures["wrong_space"] == 0,
        "nothing could be compared": figures["compared"] > 0,
    }
    return [words for words, is_met in bars.items() if not is_met]


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(prog="scripts/bench reembed")
    parser.add_argument("--summaries", type=int, default=10_000)
    parser.add_argument("--searches", type=int, default=300)
    parser.add_argument(
        "--rate",
        type=float,
        default=RATE,
        help=f"texts a second that the model takes (default: {RATE}); 0: as many as it can",
    )
    parser.add_argument("--model", choices=minilm.MODELS, default="noise")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    figures = measure(options)
    missing = missed(figures)
    if options.json:
        print(json.dumps({"load": load, **figures, "missed": missing}))
    else:
        for name, value in figures.items():
            print(f"{name:<20} {value}")
        for name, (p50, p95) in ratios(figures).items():
            print(f"{'ratios, ' + name:<20} p50 {p50:.2f}   p95 {p95:.2f}")
        print(f"{'load at the start':<20} {load:.1f}")
        for words in missing:
            print(f"MISSED: {words}")
    raise SystemExit(bool(missing))


if __name__ == "__main__":
    main()

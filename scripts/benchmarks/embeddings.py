"""What searches notice while the embedding model fails, or is replaced by another one.

`outage`, on a fresh vault with all vectors present: a third of the searches; then the model server is killed
(connections are refused) or frozen (connections are accepted and never answered) during the next third; then
it is back for the rest. No search may fail or exceed its deadline, every answer without the model says
`degraded`, and the model's share is back within 10 s.
`change`: while searches and captures go on, the model is replaced, so that everything is embedded again; the
daemon is killed half-way and started again. Searches may take twice as long as before, at the median and the
95th percentile; nothing is embedded twice but what was in flight at the kill; in the end every passage has
one vector in the new space, the one that the new model computes for it.
"""

import argparse
import contextlib
import itertools
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import corpus, harness, metrics, minilm, ollama_stub
from memd.index.quantization import decode
from memd.store.vectors import STRIDE

LIMITS = {
    "killed": {"errors": "<= 0", "unmarked": "<= 0", "p95": "<= 320", "back_s": "<= 10"},
    "frozen": {"errors": "<= 0", "unmarked": "<= 0", "p95": "<= 320", "back_s": "<= 10"},
    "change, search": {"errors": "<= 0", "p50 ratio": "<= 2", "p95 ratio": "<= 2"},
    "change, vectors": {
        "missing": "<= 0",
        "in the wrong space": "<= 0",
        "compared": ">= 1",
        "computed twice": "<= 256",
    },
}
_DEADLINE_S = 0.3
_GIVE_UP_S = 60.0
_POLL_S = 0.02
_CAPTURES_PER_S = 20
_WARM_UP = 20
_SALT = "another version"
_SAME_COSINE = 0.99
"""Vectors are stored with a byte per dimension; those of two models have a cosine near 0."""
_WORDS_ONLY = """
[profiles.words]
base = "memd"
legs = {topic = 1.0, lexical = 1.0, vector = 0.0}
"""
"""config.toml: memd without the vector retriever, for which no model is asked."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    parser.add_argument("--only", choices=("outage", "change"), help="default: both")
    metrics.add_counts(parser, summaries=10_000, searches=300, outage=15.0, rate=200)
    parser.add_argument(
        "--model", choices=minilm.MODELS, default="noise", help="default: %(default)s"
    )


def measure(options: argparse.Namespace) -> metrics.Figures:
    """The figures of both outages and of the change."""
    figures: metrics.Figures = {}
    if options.only != "change":
        for fault in ("killed", "frozen"):
            with _running(options) as (server, _, searcher):
                figures |= _measure_outage(fault, server, searcher, options)
    if options.only != "outage":
        with _running(options) as (server, daemon, searcher):
            figures |= _Change(server, daemon, searcher, options).measure()
    return figures


@dataclass(frozen=True, slots=True)
class _Search:
    seconds: float
    is_degraded: bool = False
    error: str | None = None


class _Searcher:
    """Asks one question after the other, none of them twice."""

    def __init__(self, daemon: harness.Daemon, texts: corpus.Corpus) -> None:
        self._mcp = harness.Mcp(daemon.paths.socket)
        self._texts = texts
        self._asked = 0

    def search(self, **more: str) -> _Search:
        """One search; `more` are further arguments of it."""
        self._asked += 1
        question = f"{self._texts.questions(1)[0]} {self._asked}"
        began = time.perf_counter()
        try:
            answer = self._mcp.tool("mem_search", query=question, project="all", **more)
        except harness.Failed as error:
            return _Search(time.perf_counter() - began, error=str(error))
        return _Search(time.perf_counter() - began, "vector" in answer.get("degraded", {}))

    def spread(self, count: int, seconds: float = 0.0) -> list[_Search]:
        """Spread searches evenly over these seconds."""
        found, began = [], time.perf_counter()
        for number in range(count):
            time.sleep(max(0.0, began + seconds * number / count - time.perf_counter()))
            found.append(self.search())
        time.sleep(max(0.0, began + seconds - time.perf_counter()))
        return found

    def wait_for_model(self) -> float:
        """Seconds until an answer has the model's share again; infinite after a minute."""
        began = time.perf_counter()
        while time.perf_counter() - began < _GIVE_UP_S:
            found = self.search()
            if found.error is None and not found.is_degraded:
                return time.perf_counter() - began
            time.sleep(_POLL_S)
        return float("inf")


@contextlib.contextmanager
def _running(
    options: argparse.Namespace,
) -> Iterator[tuple[harness.ModelServer, harness.Daemon, _Searcher]]:
    """A daemon with a model that has embedded all of its memories."""
    with (
        harness.model_server(options.model) as server,
        harness.daemon(_WORDS_ONLY + server.engines(_DEADLINE_S)) as daemon,
    ):
        texts = corpus.Corpus()
        daemon.fill(options.summaries, texts)
        daemon.wait_learned()
        yield server, daemon, _Searcher(daemon, texts)


def _summarise(searches: Sequence[_Search]) -> dict[str, Any]:
    return {
        "searches": len(searches),
        "errors": sum(one.error is not None for one in searches),
        "degraded": sum(one.is_degraded for one in searches),
        **harness.milliseconds([one.seconds for one in searches]),
    }


def _measure_outage(
    fault: str,
    server: harness.ModelServer,
    searcher: _Searcher,
    options: argparse.Namespace,
) -> metrics.Figures:
    third = options.searches // 3
    before = searcher.spread(third)
    server.stop() if fault == "killed" else server.freeze()
    during = searcher.spread(third, options.outage)
    server.start() if fault == "killed" else server.thaw()
    back_s = searcher.wait_for_model()
    after = searcher.spread(options.searches - 2 * third)
    phases = {"before": before, "during": during, "after": after}
    found = [*before, *during, *after]
    return {
        fault: {
            **_summarise(found),
            "longest": round(max(one.seconds for one in found) * 1000, 2),
            "unmarked": sum(not one.is_degraded for one in during),
            "back_s": round(back_s, 2),
        },
        **{f"{fault}, {phase}": _summarise(some) for phase, some in phases.items()},
    }


class _Rows:
    """The daemon's vault, read from outside."""

    _OF_MODEL = (
        # A space is named by the beginning of the model's digest.
        f"FROM vectors v JOIN spaces s ON s.id = v.id / {STRIDE}"
        " WHERE s.digest = substr(?, 1, length(s.digest)) AND s.digest != ''"
    )

    def __init__(self, path: str) -> None:
        self._uri = f"file:{path}?mode=ro"

    def _query(self, sql: str, *values: str) -> list[Any]:
        with contextlib.closing(sqlite3.connect(self._uri, uri=True)) as vault:
            return vault.execute(sql, values).fetchall()

    def vectors(self, digest: str) -> dict[int, np.ndarray]:
        """Passage → vector in the space of the model with this digest."""
        sql = f"SELECT v.id % {STRIDE}, s.dimensions, v.vector {self._OF_MODEL}"
        rows = self._query(sql, digest)
        return {number: decode([blob], dimensions)[0] for number, dimensions, blob in rows}

    def count_vectors(self, digest: str) -> int:
        """How many vectors there are in the space of the model with this digest."""
        return int(self._query(f"SELECT count(*) {self._OF_MODEL}", digest)[0][0])

    def count_passages(self) -> int:
        """How many passages there are."""
        return int(self._query("SELECT count(*) FROM passages")[0][0])


class _Change:
    """A daemon whose model is replaced while it searches and captures."""

    def __init__(
        self,
        server: harness.ModelServer,
        daemon: harness.Daemon,
        searcher: _Searcher,
        options: argparse.Namespace,
    ) -> None:
        self._server, self._daemon, self._searcher = server, daemon, searcher
        self._options = options
        model = minilm.load(options.model)
        self._old, self._new = (ollama_stub.digest(model, salt) for salt in ("", _SALT))
        self._rows = _Rows(daemon.paths.database)
        self._queries_embedded = 0

    def measure(self) -> metrics.Figures:
        """Search idle, during the change, and compare the vectors afterwards."""
        vectors = self._rows.vectors(self._old)
        self._server.stop()
        self._server.start(rate=self._options.rate)
        self._daemon.wait_ready()
        self._searcher.spread(_WARM_UP)
        idle = [self._look() for _ in range(self._options.searches)]
        during = self._search_during_change()
        self._daemon.start()
        # The kill left turns without an end, which are distilled only after ten idle minutes.
        self._daemon.settle(is_distilled=False)
        self._daemon.wait_learned()
        return {**_compare(idle, during), "change, vectors": self._compare_vectors(vectors)}

    def _look(self) -> dict[str, _Search]:
        """A search, one by words alone, and a request to the model server without memd."""
        found = {
            "search": self._searcher.search(),
            "words": self._searcher.search(profile="words"),
            "model": _Search(self._server.ask(f"a question {time.monotonic_ns()}")),
        }
        self._queries_embedded += 2
        time.sleep(_POLL_S)
        return found

    def _search_during_change(self) -> list[dict[str, _Search]]:
        """Replace the model, search until half is embedded again, and kill the daemon."""
        self._server.stop()
        self._server.start(_SALT, self._options.rate)
        deadline = time.monotonic() + _GIVE_UP_S
        while not self._rows.count_vectors(self._new):
            if time.monotonic() > deadline:
                raise SystemExit("the daemon did not notice that the model changed")
            time.sleep(_POLL_S)
        self._queries_embedded = 0
        found = []
        with _capturing(self._daemon):
            while self._rows.count_vectors(self._new) < self._options.summaries // 2:
                found += [self._look() for _ in range(5)]
        self._daemon.stop(signal.SIGKILL)
        return found

    def _compare_vectors(self, before: dict[int, np.ndarray]) -> dict[str, Any]:
        after = self._rows.vectors(self._new)
        both = before.keys() & after.keys()
        wanted = {at: ollama_stub.rotate(before[at][None], _SALT)[0] for at in both}
        computed = int(self._server.spent()["asked"]) - self._queries_embedded
        return {
            "vectors": len(after),
            "missing": abs(self._rows.count_passages() - len(after)),
            "compared": len(both),
            "in the wrong space": sum(
                bool(wanted[at] @ after[at] < _SAME_COSINE) for at in both
            ),
            "computed twice": computed - len(after),
        }


def _compare(
    idle: list[dict[str, _Search]], during: list[dict[str, _Search]]
) -> metrics.Figures:
    """A row per kind of request: during the change, idle, and the ratios."""
    figures: metrics.Figures = {}
    for kind in idle[0]:
        before = _summarise([look[kind] for look in idle])
        after = _summarise([look[kind] for look in during])
        ratios = {f"{p} ratio": round(after[p] / before[p], 2) for p in ("p50", "p95")}
        after["errors"] += before["errors"]
        figures[f"idle, {kind}"] = before
        figures[f"change, {kind}"] = {**after, **ratios}
    return figures


@contextlib.contextmanager
def _capturing(daemon: harness.Daemon) -> Iterator[None]:
    """Capture events of generated sessions at a steady rate."""
    is_over = threading.Event()

    def capture() -> None:
        with daemon.client() as client:
            for number in itertools.count():
                if is_over.wait(1 / _CAPTURES_PER_S):
                    return
                turn, is_end = divmod(number, 2)
                payload = {
                    "session_id": f"change-{turn % 5}",
                    "prompt_id": f"change-{turn}",
                    "cwd": "/nowhere",
                    "hook_event_name": "Stop" if is_end else "UserPromptSubmit",
                    "prompt": f"why does worker {turn} time out",
                    "last_assistant_message": f"Worker {turn} waits for a lock; it is released now.",
                }
                client.call("memd/capture", {"client": "claude-code", "payload": payload})

    thread = threading.Thread(target=capture)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()

"""What searches notice while the embedding model fails, or is replaced by another one.

`outage`, on a fresh vault with all vectors present: a third of the searches; then the model server is killed
(connections are refused) or frozen (connections are accepted and never answered) during the next third; then
it is back for the rest. No search may fail or exceed its deadline, every answer without the model says
`degraded`, and the model's share is back within 10 s.
`change`: the model is replaced by another one, so that everything is embedded again, while searches and captures
go on. Searches may take twice as long as before, at the median and the 95th percentile. Whether each vector ends
in the right space is checked by `scripts/torture crash`.
"""

import argparse
import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import corpus, harness, metrics, minilm

LIMITS = {
    "killed": {"errors": "<= 0", "unmarked": "<= 0", "p95": "<= 320", "back_s": "<= 10"},
    "frozen": {"errors": "<= 0", "unmarked": "<= 0", "p95": "<= 320", "back_s": "<= 10"},
    "idle, *": {"errors": "<= 0"},
    "change, *": {"errors": "<= 0"},
    "change, search": {"p50 ratio": "<= 2", "p95 ratio": "<= 2"},
}
_DEADLINE_S = 0.3
_GIVE_UP_S = 60.0
_POLL_S = 0.02
_CAPTURES_PER_S = 20
_WARM_UP = 20
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
            figures |= _measure_change(server, daemon, searcher, options)
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

    def search_both(self) -> tuple[_Search, _Search]:
        """A search, and one by words alone; then a pause."""
        found = self.search(), self.search(profile="words")
        time.sleep(_POLL_S)
        return found

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
    fault: str, server: harness.ModelServer, searcher: _Searcher, options: argparse.Namespace
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


def _measure_change(
    server: harness.ModelServer,
    daemon: harness.Daemon,
    searcher: _Searcher,
    options: argparse.Namespace,
) -> metrics.Figures:
    server.stop()
    server.start(rate=options.rate)
    daemon.wait_ready()
    searcher.spread(_WARM_UP)
    idle = [searcher.search_both() for _ in range(options.searches)]
    server.stop()
    server.start("another version", options.rate)
    daemon.wait_until(lambda status: daemon.missing_vectors(status) > options.summaries // 2)
    during = []
    with _capturing(daemon), daemon.client() as client:
        while daemon.missing_vectors(client.call("memd/status")):
            during += [searcher.search_both() for _ in range(5)]
    figures: metrics.Figures = {}
    for place, kind in enumerate(("search", "words")):
        before, after = (_summarise([pair[place] for pair in some]) for some in (idle, during))
        figures[f"idle, {kind}"] = before
        ratios = {f"{p} ratio": round(after[p] / before[p], 2) for p in ("p50", "p95")}
        figures[f"change, {kind}"] = {**after, **ratios}
    return figures


@contextlib.contextmanager
def _capturing(daemon: harness.Daemon) -> Iterator[None]:
    """Capture events at a steady rate."""
    is_over = threading.Event()

    def capture() -> None:
        with daemon.client() as client:
            for event in metrics.events():
                if is_over.wait(1 / _CAPTURES_PER_S):
                    return
                client.call("memd/capture", event)

    thread = threading.Thread(target=capture)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()

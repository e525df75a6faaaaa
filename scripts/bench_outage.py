"""What searches notice when the model dies, or hangs, and comes back: nothing but a word.

    scripts/bench outage [--searches N] [--summaries N] [--outage SECONDS] [--model M] [--json]

Twice, on a fresh vault with every vector there: a third of the searches; then the model server is
killed (connections refused), or frozen (connections accepted, never answered), and the next third goes
on as long as the outage lasts; then it is back, and the rest. Exit code 1 if a bar is missed: no error,
p95 within the question's deadline and 20 ms, every answer without the model says `degraded`, and the
model's part back within 10 s of its return. `--model all-minilm` is a real one.
"""

import argparse
import contextlib
import json
import os
import time
from dataclasses import dataclass
from typing import Any

from benchmarks import corpus, harness, minilm

DEADLINE_S = 0.3
SLACK_S = 0.02
BACK_S = 10.0
GIVE_UP_S = 60.0
PHASES = ("before", "during", "after")


@dataclass(frozen=True, slots=True)
class Search:
    """One search and what came of it."""

    phase: str
    seconds: float
    is_degraded: bool
    error: str | None = None


class Searcher:
    """Asks one question after the other, none of them twice."""

    def __init__(self, mcp: harness.Mcp, made_up: corpus.Corpus) -> None:
        self._mcp = mcp
        self._corpus = made_up
        self._asked = 0

    def search(self, phase: str, **more: str) -> Search:
        """One search; `more` are further arguments of it."""
        self._asked += 1
        question = f"{self._corpus.questions(1)[0]} {self._asked}"
        began = time.perf_counter()
        try:
            answer = self._mcp.tool("mem_search", query=question, project="all", **more)
        except harness.Failed as error:
            return Search(
                phase, time.perf_counter() - began, is_degraded=False, error=str(error)
            )
        is_degraded = "vector" in answer.get("degraded", {})
        return Search(phase, time.perf_counter() - began, is_degraded)

    def spread(self, phase: str, count: int, seconds: float) -> list[Search]:
        """So many searches, evenly over these seconds, or one at once after the other."""
        found, began = [], time.perf_counter()
        for number in range(count):
            due = began + seconds * number / count
            time.sleep(max(0.0, due - time.perf_counter()))
            found.append(self.search(phase))
        time.sleep(max(0.0, began + seconds - time.perf_counter()))
        return found

    def until_back(self) -> float:
        """Seconds until an answer has the model's part again; infinite if it gives up."""
        began = time.perf_counter()
        while time.perf_counter() - began < GIVE_UP_S:
            found = self.search("return")
            if found.error is None and not found.is_degraded:
                return time.perf_counter() - began
            time.sleep(0.02)
        return float("inf")


def fill(daemon: harness.Daemon, made_up: corpus.Corpus, count: int) -> None:
    """Remember so many made-up memories, and wait until the model has seen all of them."""
    memories = list(made_up.memories(count, int(time.time() * 1000)))
    daemon.remember(memories)
    daemon.wait_learned()


def measure(fault: str, options: argparse.Namespace) -> dict[str, Any]:
    """The figures of one outage."""
    third = options.searches // 3
    with contextlib.ExitStack() as running:
        server = running.enter_context(harness.model_server(options.model))
        daemon = running.enter_context(harness.daemon(server.engines(DEADLINE_S)))
        made_up = corpus.Corpus()
        fill(daemon, made_up, options.summaries)
        searcher = Searcher(harness.Mcp(daemon.paths.socket), made_up)
        found = searcher.spread("before", third, 0)
        server.stop() if fault == "killed" else server.freeze()
        found += searcher.spread("during", third, options.outage)
        server.start() if fault == "killed" else server.thaw()
        back = searcher.until_back()
        found += searcher.spread("after", options.searches - 2 * third, 0)
    return summed(found, back)


def summed(found: list[Search], back: float) -> dict[str, Any]:
    """What is printed of these searches."""
    figures: dict[str, Any] = {
        "searches": len(found),
        "errors": sum(one.error is not None for one in found),
        "p95_ms": harness.milliseconds([one.seconds for one in found])["p95"],
        "longest_ms": round(max(one.seconds for one in found) * 1000, 2),
        "back_s": round(back, 2),
    }
    for phase in PHASES:
        some = [one for one in found if one.phase == phase]
        times = harness.milliseconds([one.seconds for one in some])
        degraded = sum(one.is_degraded for one in some)
        figures[phase] = {"searches": len(some), "degraded": degraded, **times}
    return figures


def missed(figures: dict[str, Any]) -> list[str]:
    """The bars that were not met, in words."""
    limit = (DEADLINE_S + SLACK_S) * 1000
    during = figures["during"]
    bars = {
        f"{figures['errors']} searches failed": figures["errors"] == 0,
        f"p95 is {figures['p95_ms']} ms, not at most {limit:g}": figures["p95_ms"] <= limit,
        f"{during['searches'] - during['degraded']} answers without the model do not say so": (
            during["searches"] == during["degraded"]
        ),
        f"the model's part is back after {figures['back_s']} s": figures["back_s"] <= BACK_S,
    }
    return [words for words, is_met in bars.items() if not is_met]


def show(fault: str, figures: dict[str, Any]) -> None:
    """The figures of one outage, for people."""
    print(f"\nmodel server {fault}")
    for phase in PHASES:
        of = figures[phase]
        print(
            f"  {phase:<8}{of['searches']:>5} searches {of['degraded']:>5} degraded"
            f"   p50 {of['p50']:>7} ms   p95 {of['p95']:>7} ms"
        )
    print(f"  errors {figures['errors']}   p95 of all {figures['p95_ms']} ms", end="")
    print(f"   longest {figures['longest_ms']} ms   back after {figures['back_s']} s")


def main() -> None:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(prog="scripts/bench outage")
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--summaries", type=int, default=1_000)
    parser.add_argument("--outage", type=float, default=15.0, help="seconds (default: 15)")
    parser.add_argument("--model", choices=minilm.MODELS, default="noise")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    runs = {fault: measure(fault, options) for fault in ("killed", "frozen")}
    missing = {fault: words for fault, run in runs.items() if (words := missed(run))}
    if options.json:
        print(json.dumps({"load": load, "runs": runs, "missed": missing}))
    else:
        for fault, run in runs.items():
            show(fault, run)
        print(f"\nload when it began: {load:.1f}")
        for fault, words in missing.items():
            print(f"MISSED, {fault}: {'; '.join(words)}")
    raise SystemExit(bool(missing))


if __name__ == "__main__":
    main()

"""How long agents and users wait: for the hook, `memd mcp`, a search, `memd status` and a start.

Whole processes and a real daemon on a fresh vault of generated memories. A bare interpreter is timed in
the same run, because machines differ. The limits are meant for 10,000 memories.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import memd
from benchmarks import corpus, harness, metrics
from benchmarks.harness import milliseconds
from memd.installers.claude_settings import EVENT_WORD
from memd.installers.host import Host
from memd.installers.quick_hook import find_quick_hook

LIMITS = {
    "mem_search": {"p50": "<= 8"},
    "hook": {"p50": "<= 35", "ratio": "<= 2.0"},
    "memd hook": {"p50": "<= 35", "ratio": "<= 2.5"},
    "hook SessionStart with context": {"p50": "<= 60"},
    "hook UserPromptSubmit with context": {"p50": "<= 60"},
    "memd mcp, first answer": {"p50": "<= 60"},
    "memd status": {"p50": "<= 250"},
    "idle": {"MB": "<= 130"},
}
_QUICK = "hook without Python"
_SEARCHES_PER_RUN = 20
_MEMD = [sys.executable, "-I", "-m", "memd"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    metrics.add_counts(parser, summaries=10_000, runs=30)


def measure(options: argparse.Namespace) -> metrics.Figures:
    """Every figure; times in ms unless the column says otherwise."""
    runs = options.runs
    figures: metrics.Figures = {}
    with harness.daemon() as daemon:
        filling = metrics.elapsed(lambda: daemon.fill(options.summaries))
        figures["remember all"] = {"s": round(filling, 1)}
        socket = daemon.paths.socket
        figures["mem_search"] = metrics.searches(socket, _SEARCHES_PER_RUN * runs)
        figures |= _processes(daemon, runs)
        titles = [str(one["title"]) for one in corpus.Corpus().memories(runs, 0)]
        for event in ("SessionStart", "UserPromptSubmit"):
            figures[f"hook {event} with context"] = _hook_with_context(daemon, event, titles)
        figures["after filling and searching"] = {"MB": round(daemon.rss_mb(), 1)}
        daemon.stop()
        figures["start to first answer"] = {"s": round(daemon.start(), 2)}
        daemon.settle(is_distilled=False)
        figures["idle"] = {"MB": round(daemon.rss_mb(), 1)}
    return figures


def _processes(daemon: harness.Daemon, runs: int) -> metrics.Figures:
    """Commands in turns, so that all of them see the same machine."""
    times: dict[str, list[float]] = {}
    by_name = [*_MEMD, "hook"]
    status = [*_MEMD, "status", "--json"]
    host = Host(daemon.environ, sys.executable, Path(memd.__file__).parent, sys.platform)
    found = find_quick_hook(host) or ()
    quick = ["PostToolUse" if word == EVENT_WORD else word for word in found]
    for number in range(runs):
        if quick:
            times.setdefault(_QUICK, []).append(metrics.hook(daemon, f"quick-{number}", quick)[0])
        for name, seconds in (
            ("bare interpreter", metrics.bare_interpreter()),
            ("hook", metrics.hook(daemon, number)[0]),
            ("memd hook", metrics.hook(daemon, number, by_name)[0]),
            ("memd mcp, first answer", _first_answer(daemon)),
            ("memd status", metrics.run_process(status, daemon.environ)[0]),
        ):
            times.setdefault(name, []).append(seconds)
    figures: metrics.Figures = {name: milliseconds(found) for name, found in times.items()}
    for name in ("hook", "memd hook", *([_QUICK] if quick else [])):
        ratio = figures[name]["p50"] / figures["bare interpreter"]["p50"]
        figures[name]["ratio"] = round(ratio, 2)
    return figures


def _hook_with_context(daemon: harness.Daemon, event: str, titles: list[str]) -> dict[str, float]:
    """A hook process for each title, which the prompt asks for; `injected` counts those that printed."""
    found = []
    for number, title in enumerate(titles):
        session = f"bench-{event}-{number}"
        more = {"source": "startup", "prompt_id": str(number), "prompt": f"{title}?"}
        found.append(
            metrics.hook(daemon, number, session_id=session, hook_event_name=event, **more)
        )
    injected = sum(bool(printed) for _, printed in found)
    return {**milliseconds([seconds for seconds, _ in found]), "injected": injected}


def _first_answer(daemon: harness.Daemon) -> float:
    """Seconds from the start of `memd mcp` to its first answer."""
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": harness.HELLO}
    began = time.perf_counter()
    with subprocess.Popen(
        [*_MEMD, "mcp"], env=daemon.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
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

"""How quick memd is where somebody waits for it: the hook, the bridge, a search, a health check.

    scripts/bench latency [--summaries N] [--runs N] [--json]

Every figure comes from whole processes and a real daemon on a fresh vault of made-up memories, medians
with the bar beside each. The bare interpreter is timed in the same run, because machines differ.
"""

import argparse
import json
import pathlib
import platform
import subprocess
import sys
import time

from benchmarks import corpus, harness

HOOK = [
    sys.executable,
    "-I",
    "-S",
    str(pathlib.Path(harness.__file__).parents[2] / "memd/hook.py"),
]
"""As `memd install` writes it."""
CALL = {
    "session_id": "bench",
    "cwd": "/",
    "hook_event_name": "PostToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "true"},
    "tool_response": {"stdout": "", "stderr": ""},
}


def timed(command: list[str], environ: dict[str, str], stdin: bytes = b"") -> float:
    """Seconds from start to exit."""
    return heard(command, environ, stdin)[0]


def heard(
    command: list[str], environ: dict[str, str], stdin: bytes = b""
) -> tuple[float, bytes]:
    """Seconds from start to exit, and what was printed."""
    began = time.perf_counter()
    done = subprocess.run(command, env=environ, input=stdin, stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - began, done.stdout


def with_context(environ: dict[str, str], event: str, titles: list[str]) -> dict[str, float]:
    """A hook process for each of these sessions, in which a memory is asked for by its title.

    `shown` is how many of them printed something.
    """
    times, shown = [], 0
    for number, title in enumerate(titles):
        payload = {
            "session_id": f"bench-{event}-{number}",
            "cwd": "/",
            "hook_event_name": event,
            "source": "startup",
            "prompt_id": str(number),
            "prompt": f"{title}?",
        }
        took, printed = heard(HOOK, environ, json.dumps(payload).encode())
        times.append(took)
        shown += bool(printed)
    return {**harness.milliseconds(times), "shown": shown}


def first_answer(environ: dict[str, str]) -> float:
    """Seconds from the start of `memd mcp` to its first answer."""
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}}  # fmt: skip
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-I", "-m", "memd", "mcp"],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as bridge:
        assert bridge.stdin
        assert bridge.stdout
        bridge.stdin.write(json.dumps(hello).encode() + b"\n")
        bridge.stdin.flush()
        bridge.stdout.readline()
        took = time.perf_counter() - began
        bridge.stdin.close()
        bridge.wait()
    return took


def fill(daemon: harness.Daemon, count: int) -> float:
    """Remember `count` made-up memories; the seconds until all are searchable."""
    began = time.perf_counter()
    memories = list(corpus.Corpus().memories(count, int(time.time() * 1000)))
    daemon.remember(memories)
    return time.perf_counter() - began


def measure(count: int, runs: int) -> dict[str, dict[str, float]]:
    """Every figure, by name."""
    figures: dict[str, dict[str, float]] = {}
    with harness.daemon() as daemon:
        figures["filling"] = {"s": round(fill(daemon, count), 1)}
        mcp = harness.Mcp(daemon.paths.socket)
        questions = corpus.Corpus(seed=11).questions(20 * runs)
        for question in questions[:50]:
            mcp.tool("mem_search", query=question)
        times = []
        for question in questions:
            began = time.perf_counter()
            mcp.tool("mem_search", query=question)
            times.append(time.perf_counter() - began)
        mcp.close()
        figures["mem_search"] = harness.milliseconds(times)
        bare, hook, by_name, mcp_first, status = [], [], [], [], []
        for i in range(runs):
            payload = json.dumps({**CALL, "tool_use_id": str(i)}).encode()
            bare.append(timed([sys.executable, "-I", "-S", "-c", "pass"], daemon.environ))
            hook.append(timed(HOOK, daemon.environ, payload))
            by_name.append(
                timed([sys.executable, "-I", "-m", "memd", "hook"], daemon.environ, payload)
            )
            mcp_first.append(first_answer(daemon.environ))
            status.append(
                timed([sys.executable, "-I", "-m", "memd", "status", "--json"], daemon.environ)
            )
        figures["bare interpreter"] = harness.milliseconds(bare)
        figures["hook"] = harness.milliseconds(hook)
        figures["memd hook"] = harness.milliseconds(by_name)
        for name in ("hook", "memd hook"):
            ratio = figures[name]["p50"] / figures["bare interpreter"]["p50"]
            figures[name]["ratio"] = round(ratio, 2)
        memories = corpus.Corpus().memories(runs, 0)
        titles = [str(memory["title"]) for memory in memories]
        for event in ("SessionStart", "UserPromptSubmit"):
            figures[f"hook {event} with context"] = with_context(daemon.environ, event, titles)
        figures["memd mcp, first answer"] = harness.milliseconds(mcp_first)
        figures["memd status"] = harness.milliseconds(status)
        filled = round(daemon.rss_mb(), 1)
        daemon.stop()
        figures["start to first answer"] = {"s": round(daemon.start(), 2)}
        daemon.settle(is_distilled=False)
        figures["idle RSS"] = {
            "MB": round(daemon.rss_mb(), 1),
            "after filling and searching": filled,
        }
    return figures


BARS = {
    "mem_search": "p50 ≤ 8 ms",
    "hook": "p50 ≤ 35 ms, ratio ≤ 2.0",
    "memd hook": "p50 ≤ 35 ms, ratio ≤ 2.5",
    "hook SessionStart with context": "p50 ≤ 60 ms",
    "hook UserPromptSubmit with context": "p50 ≤ 60 ms",
    "memd mcp, first answer": "p50 ≤ 60 ms",
    "memd status": "p50 ≤ 250 ms",
    "idle RSS": "≤ 130 MB at 10,000 summaries",
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench latency")
    parser.add_argument("--summaries", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure(options.summaries, options.runs)
    if options.json:
        print(json.dumps(figures))
        return
    print(
        f"{options.summaries:,} summaries · Python {platform.python_version()} · {platform.machine()}"
    )
    for name, values in figures.items():
        shown = "  ".join(f"{key} {value}" for key, value in values.items())
        print(f"{name:<35} {shown:<44} {BARS.get(name, '')}")


main()

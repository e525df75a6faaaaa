"""What a daemon does while nobody asks it anything, and how soon a finished turn can be searched.

The daemon is left alone until what its start woke has settled. Then its context switches, page faults and CPU time are
counted over a whole minute, in which each of its timers goes off once.
"""

import argparse
import itertools
import time
from pathlib import Path
from typing import Any

from benchmarks import harness, metrics

LIMITS = {
    "idle": {"switches a second": "<= 1", "faults a second": "<= 0.1", "% CPU": "<= 0.03"},
    "after Stop": {"p95": "<= 300"},
}
_POLL_S = 0.002


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part."""
    parser.add_argument("--memories", type=int, default=10_000, help="memories (default: 10000)")
    parser.add_argument("--turns", type=int, default=30, help="finished turns (default: 30)")
    parser.add_argument("--settle", type=float, default=90.0, metavar="S", help="default: 90")
    parser.add_argument("--watch", type=float, default=61.0, metavar="S", help="default: 61")


def measure(options: argparse.Namespace) -> metrics.Figures:
    """Both, on one vault."""
    with harness.daemon() as daemon:
        daemon.fill(options.memories)
        daemon.stop()
        daemon.start()
        daemon.settle(is_distilled=False)
        time.sleep(options.settle)
        return {
            "idle": watch_rest(daemon, options.watch),
            "after Stop": time_turns(daemon, options.turns),
        }


def watch_rest(daemon: harness.Daemon, seconds: float) -> dict[str, float]:
    """What an idle daemon does, per second, and its memory."""
    before = _count_activity(daemon)
    time.sleep(seconds)
    after = _count_activity(daemon)
    switches, faults, cpu_s = (b - a for a, b in zip(before, after, strict=True))
    return {
        "switches a second": round(switches / seconds, 2),
        "faults a second": round(faults / seconds, 2),
        "% CPU": round(100 * cpu_s / seconds, 3),
        "MB": round(daemon.rss_mb(), 1),
    }


def _count_activity(daemon: harness.Daemon) -> tuple[int, int, float]:
    """Context switches of all threads, minor page faults and seconds of CPU since the start."""
    assert daemon.process is not None
    directory = Path(f"/proc/{daemon.process.pid}")
    lines = [
        line
        for status in directory.glob("task/*/status")
        for line in status.read_text(encoding="utf-8").splitlines()
    ]
    switches = sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
    faults = (directory / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[7]
    worked_ns = sum(
        int(stat.read_text(encoding="utf-8").split()[0])
        for stat in directory.glob("task/*/schedstat")
    )
    return switches, int(faults), worked_ns / 1e9


def time_turns(daemon: harness.Daemon, count: int) -> dict[str, float]:
    """From the acknowledgement of a turn's Stop until a search finds what came of it, in ms."""
    with daemon.client() as client:
        return harness.milliseconds([_time_turn(client, number) for number in range(count)])


def _time_turn(client: Any, number: int) -> float:
    word = "".join(chr(97 + int(digit)) for digit in f"{7919 * (number + 13):08}") + "q"
    clock = itertools.count(int(time.time() * 1000))
    turn = {"session_id": f"bench-{number // 5}", "prompt_id": f"turn-{number}", "cwd": "/nowhere"}
    events: tuple[dict[str, object], ...] = (
        {"hook_event_name": "UserPromptSubmit", "prompt": f"Fix the parser of {word} records"},
        {
            "hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_use_id": f"toolu_{number}",
            "tool_input": {"file_path": f"/nowhere/{word}.py", "old_string": "a", "new_string": "b"},
            "tool_response": {},
        },
        {
            "hook_event_name": "Stop",
            "last_assistant_message": f"Fixed the {word} parser: it skips empty records before it splits them.",
        },
    )  # fmt: skip
    for event in events:
        request = {"client": "claude-code", "payload": {**turn, **event}, "at": next(clock)}
        client.call("memd/capture", request)
    began = time.perf_counter()
    while word not in str(client.call("memd/search", {"query": word, "project": "all"})["hits"]):
        time.sleep(_POLL_S)
    return time.perf_counter() - began

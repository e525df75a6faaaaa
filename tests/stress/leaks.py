"""What a daemon's process takes while it lives: samples, and whether a figure rises. Started by soak.py.

A slope is a line of least squares over the samples after the warm-up. Memory that new memories need in
the index is not counted as a leak; descriptors and threads have no such excuse.
"""

import contextlib
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import harness

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
    """How many ended children of a process nobody has waited for."""
    count = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                state, above = (
                    (entry / "stat").read_text("utf-8").rpartition(")")[2].split()[:2]
                )
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

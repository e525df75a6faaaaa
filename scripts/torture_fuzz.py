"""What no input may do: crash, hang, grow, or half succeed. Everything that reads is fed what nobody wrote.

    scripts/torture fuzz [--minutes N] [--target NAME …] [--seed N] [--case N]

Structure-aware: real samples and values made of the schemas, bent, stretched and cut. In this process:
redaction, capture, transcripts, exports, notes, config, queries, words, copies of the index
(torture_fuzz_targets.py, torture_fuzz_readers.py); against a real daemon: every control call and tool, and hooks
(torture_fuzz_doors.py, torture_fuzz_hooks.py). An input may take `CPU_S`; the process may grow by `GROWTH_MB`. Prints the
branches that were reached, and of each finding its seed, its case and a small input. Ends with 1 if
there was one.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import coverage
import torture_fuzz_doors
import torture_fuzz_hooks
import torture_fuzz_matter as matters
from torture_fuzz_targets import TARGETS, Target

import memd

CPU_S = 2.5
"""For one input of up to `SIZE` characters, with the branches counted meanwhile; for a longer one in proportion."""
SIZE = 20_000
GROWTH_MB = 150.0
DOORS = {"wire": torture_fuzz_doors.wire, "hooks": torture_fuzz_hooks.hooks}
"""Name → fuzzes it with a seed until a deadline (of `time.monotonic`), or one case of it."""
_SHOWN = 1_500
_SHRINK_S = 4.0
_ROOT = Path(memd.__file__).parent


class Overtime(BaseException):
    """An input takes longer than it may."""


@dataclasses.dataclass
class Outcome:
    """What a target was put through."""

    name: str
    inputs: int = 0
    slowest_s: float = 0.0
    growth_mb: float = 0.0
    findings: dict[str, str] = dataclasses.field(default_factory=dict)
    """What went wrong and where → how to repeat it."""
    reached: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    """Module → branches taken, of how many."""


@contextlib.contextmanager
def clocked(seconds: float) -> Iterator[None]:
    """Raise Overtime once this block has taken so much of the processor."""

    def ring(_: int, __: FrameType | None) -> None:
        raise Overtime(f"it takes more than {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def failure(target: Target, given: Any) -> tuple[str, str] | None:
    """What went wrong with this input and where, and all of it; None if nothing did."""
    try:
        with clocked(CPU_S * max(1.0, len(repr(given)) / SIZE)):
            target.take(given)
    except (Exception, Overtime) as error:  # noqa: BLE001  # it is what we look for
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "memd" in f.filename]
        where = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else "?"
        kind = (
            str(error).partition(":")[0]
            if isinstance(error, AssertionError)
            else type(error).__name__
        )
        return f"{kind} in {where}", f"{type(error).__name__}: {error}"[:500]
    return None


def put_through(
    name: str, seed: int, deadline: float, case: int | None = None, *, counts: bool = True
) -> Outcome:
    """A target in this process, fed until the deadline (of `time.monotonic`), or one case of it."""
    outcome = Outcome(name)
    with TARGETS[name]() as target:
        cover = _cover(target.modules) if counts else None
        before = _peak_mb()
        while time.monotonic() < deadline:
            number = outcome.inputs if case is None else case
            matter = matters.drawn(f"{seed}/{name}/{number}")
            given = target.make(matter)
            began = time.process_time()
            wrong = failure(target, given)
            outcome.slowest_s = max(outcome.slowest_s, time.process_time() - began)
            outcome.inputs += 1
            if wrong is not None and wrong[0] not in outcome.findings:
                outcome.findings[wrong[0]] = _repeated(
                    target, given, wrong, f"--target {name} --seed {seed} --case {number}"
                )
            if case is not None:
                break
        outcome.growth_mb = _peak_mb() - before
        if cover is not None:
            cover.stop()
            outcome.reached = _reached(cover)
    return outcome


def _repeated(target: Target, given: Any, wrong: tuple[str, str], how: str) -> str:
    """How to repeat a finding, with the smallest input that was found in time."""
    until = time.monotonic() + _SHRINK_S

    def fails(less: Any) -> bool:
        found = failure(target, less)
        return found is not None and found[0] == wrong[0]

    small = matters.smallest(given, fails, lambda: time.monotonic() < until)
    shown = repr(small)
    if len(shown) > _SHOWN:
        shown = f"{shown[:_SHOWN]}… ({len(shown):,} characters)"
    return f"{wrong[1]}\n      repeat: scripts/torture fuzz {how}\n      input: {shown}"


def _cover(modules: str) -> coverage.Coverage | None:
    """Counts the branches of these modules, unless somebody counts already."""
    if sys.gettrace() is not None:
        return None
    cover = coverage.Coverage(
        data_file=None,
        config_file=False,
        branch=True,
        include=[str(_ROOT / f"{one}.py") for one in modules.split()],
    )
    cover.start()
    return cover


def _reached(cover: coverage.Coverage) -> dict[str, tuple[int, int]]:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        try:
            cover.json_report(outfile=file.name)
        except coverage.exceptions.NoDataError:
            return {}
        files = json.loads(Path(file.name).read_text(encoding="utf-8"))["files"]
    return {
        str(Path(path).resolve().relative_to(_ROOT)): (
            told["summary"]["covered_branches"],
            told["summary"]["num_branches"],
        )
        for path, told in files.items()
    }


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def told(outcome: Outcome) -> list[str]:
    """Lines about a target, and what of the promises it breaks."""
    taken = sum(count for count, _ in outcome.reached.values())
    whole = sum(count for _, count in outcome.reached.values())
    share = f"  branches {taken}/{whole} ({taken / whole:.0%})" if whole else ""
    print(
        f"{outcome.name:12} {outcome.inputs:8} inputs"
        f"  slowest {outcome.slowest_s:.2f} s (limit {CPU_S:g})"
        f"  grew {outcome.growth_mb:4.0f} MB (limit {GROWTH_MB:.0f}){share}"
    )
    for module, (count, of) in sorted(outcome.reached.items()):
        print(f"               {module:32} {count:4} of {of:4} branches")
    for what, how in outcome.findings.items():
        print(f"    {what}: {how}")
    broken = [f"{outcome.name}: {what}" for what in outcome.findings]
    if outcome.growth_mb > GROWTH_MB:
        broken.append(f"{outcome.name}: the process grew by {outcome.growth_mb:.0f} MB")
    return broken


def main() -> None:
    """Run what was asked for; 1 if a promise is broken."""
    every = [*TARGETS, *DOORS]
    ask = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    ask.add_argument("--minutes", type=float, default=60.0, help="for all targets together")
    ask.add_argument("--target", nargs="*", choices=every)
    ask.add_argument("--seed", type=int, default=random.randrange(10_000))
    ask.add_argument("--case", type=int, help="only this input of each target")
    args = ask.parse_args()
    names = args.target or every
    share = args.minutes * 60 / len(names)
    print(f"seed {args.seed}; {args.minutes:g} minutes for {', '.join(names)}; {CPU_S:g} s of processor an input", flush=True)  # fmt: skip
    broken = []
    for name in names:
        run = DOORS.get(name)
        deadline = time.monotonic() + share
        if run is None:
            broken += told(put_through(name, args.seed, deadline, args.case))
        else:
            found = run(args.seed, deadline, args.case)
            print(found.line, *found.wrong, sep="\n    ", flush=True)
            broken += [f"{name}: {one}" for one in found.wrong]
    print(f"load average now {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print("every promise held" if not broken else "BROKEN:\n  " + "\n  ".join(broken))
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()

"""Bad disks under a real daemon: full, read-only, slow, failing in mid-call; and vaults that were damaged.

    scripts/torture disk [--seed N] [--strikes N] [--only NAME …]

Agents speak over the socket and through hooks while a fault lasts. What must hold: each refusal says what
is wrong and what to do, so does `memd status`; a hook ends with 0 and says nothing, within its budget; asking
goes on; when the fault is over memd goes on by itself, the spool is taken in, everything acknowledged is
there once, the ledger balances, the file is whole. Exit 1 if a promise was broken.
"""

import argparse
import contextlib
import functools
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import harness
from tests.stress import disk_damage as damage
from tests.stress import disk_faults as disks
from tests.stress.disk_daemon import HOOK_S, disk_daemon
from tests.stress.support import Trial, run_trials

SLOW_MS = 200
_MIB = 1024 * 1024


def _fill(folder: str) -> Path:
    """Write a file that takes all the room of a disk."""
    file = Path(folder, "fill")
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as handle:
        while handle.write(b"x" * 4096):
            pass
    return file


def full(hooks: int) -> tuple[list[str], str]:
    """A small disk that vault, spool and log share runs full, and is emptied again."""
    with disks.small_disk(40 * _MIB) as disk, disk_daemon(disk) as it:
        it.say(2)
        it.ask()
        file = _fill(disk)
        while it.say(1, 20_000):
            pass
        it.ask()
        for _ in range(hooks):
            it.hook(20_000)
        it.say(1, 3_000_000)  # more than what the reserve has left
        it.expect_reason()
        asked = it.ask()
        file.unlink()
        took = it.recover()
        acknowledged = it.say(5)
        kept = it.prove()
        if acknowledged != 5:  # the five above
            it.wrong.append("it refuses events although there is room")
        if kept < hooks:
            it.wrong.append(f"only {kept} of {hooks} hooks' events fitted into the reserve")
    return it.wrong, (
        f"{kept} of {hooks} hooks' events kept (reserve), slowest hook {max(it.hook_s):.2f} s"
        f" (limit {HOOK_S}), search {asked * 1000:.0f} ms, goes on after {took:.1f} s"
    )


def struck(hooks: int, below: str = "", **fault: int) -> tuple[list[str], str]:
    """A fault on all of memd's files, or on those in one directory of its home."""
    with disks.faults() as shim, disk_daemon(**shim.environ) as it:
        # A log that is filled up to its end takes what fits without growing.
        it.daemon.settle(is_distilled=False)
        it.ask()
        shim.strike(str(Path(it.home, below)), **fault)
        done = it.say(5, 40_000)
        for _ in range(hooks):
            it.hook()
        if fault.get("eio_read") is None:
            it.ask()
        if done < 5:  # the five above
            it.expect_reason()
        hits = shim.hits
        shim.heal()
        took = it.recover()
        if it.say(3) != 3:  # the three
            it.wrong.append("it refuses events although the disk is well")
        kept = it.prove()
        if below and kept < hooks:
            it.wrong.append(f"the spool took only {kept} of {hooks} hooks' events")
    seen = f"{done} of 5 acknowledged meanwhile, {kept} of {hooks} hooks' events kept"
    return it.wrong, f"{seen}, {hits} calls failed, goes on after {took:.1f} s"


def mid_call(strikes: int, kills: int, seed: int) -> tuple[list[str], str]:
    """One write, fsync or read in the middle of others fails, again and again; sometimes then kill -9."""
    rng = random.Random(seed)
    with disks.faults() as shim, disk_daemon(**shim.environ) as it:
        for number in range(strikes):
            name = ("eio_write", "eio_fsync", "eio_read")[number % 3]
            shim.strike(str(Path(it.home, "vaults")), **{name: rng.randint(1, 12)})
            it.say(4, rng.choice((200, 9_000)))
            if number % max(1, strikes // max(1, kills)) == 0 and kills:
                it.daemon.stop(signal.SIGKILL)
                shim.heal()
                it.daemon.start()
            shim.heal()
        took = it.recover()
        it.prove()
    return it.wrong, (
        f"{strikes} strikes, {kills} kills, {len(it.acknowledged)} of {it.given} acknowledged, goes on"
        f" after {took:.1f} s"
    )


def slow(hooks: int, searches: int) -> tuple[list[str], str]:
    """Each fsync takes 200 ms."""
    with disks.faults() as shim, disk_daemon(**shim.environ) as it:
        idle = harness.milliseconds([it.ask() for _ in range(searches)])
        shim.strike(it.home, fsync_ms=SLOW_MS)
        began = time.perf_counter()
        it.say(3)
        told_ms = (time.perf_counter() - began) / 3 * 1000
        for _ in range(hooks):
            it.hook()
        busy = harness.milliseconds([it.ask() for _ in range(searches)])
        shim.heal()
        it.recover()
        kept = it.prove()
        if kept < hooks or it.refusals:
            it.wrong.append(f"{hooks - kept} hooks' events are missing; refused: {it.refusals}")
        limit = max(3 * idle["p95"], 20.0)
        if busy["p95"] > limit:
            it.wrong.append(f"search p95 {busy['p95']} ms (limit {limit:.0f})")
        if max(it.hook_s) > HOOK_S:
            it.wrong.append(f"a hook took {max(it.hook_s):.2f} s (limit {HOOK_S} s)")
    return it.wrong, (
        f"acknowledged after {told_ms:.0f} ms, slowest hook {max(it.hook_s):.2f} s (limit {HOOK_S}),"
        f" search p95 {busy['p95']} ms (idle {idle['p95']}, limit {limit:.0f})"
    )


def _trials(options: argparse.Namespace) -> Iterator[tuple[str, Trial]]:
    yield "full disk", lambda: full(20)
    for name, below, fault in (
        ("full disk, spool elsewhere", "vaults", {"full": 1}),
        ("read-only disk", "", {"read_only": 1}),
        ("read-only disk, spool elsewhere", "vaults", {"read_only": 1}),
        ("EIO at every write", "vaults", {"eio_write": -1}),
        ("EIO at every fsync", "vaults", {"eio_fsync": -1}),
        ("EIO at every read", "vaults", {"eio_read": -1}),
    ):
        yield name, functools.partial(struck, 5, below, **fault)
    strikes, seed = options.strikes, options.seed
    yield "EIO in the middle", lambda: mid_call(strikes, strikes // 10, seed)
    yield "slow disk", lambda: slow(10, 100)
    for name in damage.KINDS:
        yield f"damaged: {name}", functools.partial(damage.damaged, name, seed)
    yield "damaged while it runs", lambda: damage.damaged_running(seed)


def main() -> None:
    """Run the trials."""
    run_trials("disk", __doc__, _trials, strikes=120)

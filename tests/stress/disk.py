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
import hashlib
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import harness
from memd.client import Client
from tests.stress import disk_faults as disks
from tests.stress.disk_daemon import HOOK_S, DiskDaemon, disk_daemon
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
        stored = it.prove()
        if acknowledged != 5:  # the five above
            it.wrong.append("it refuses events although there is room")
        if stored < hooks:
            it.wrong.append(f"only {stored} of {hooks} hooks' events fitted into the reserve")
    return it.wrong, (
        f"{stored} of {hooks} hooks' events stored (reserve), slowest hook {max(it.hook_s):.2f} s"
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
        stored = it.prove()
        if below and stored < hooks:
            it.wrong.append(f"the spool took only {stored} of {hooks} hooks' events")
    seen = f"{done} of 5 acknowledged meanwhile, {stored} of {hooks} hooks' events stored"
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
        stored = it.prove()
        if stored < hooks or it.refusals:
            it.wrong.append(f"{hooks - stored} hooks' events are missing; refused: {it.refusals}")
        limit = max(3 * idle["p95"], 20.0)
        if busy["p95"] > limit:
            it.wrong.append(f"search p95 {busy['p95']} ms (limit {limit:.0f})")
        if max(it.hook_s) > HOOK_S:
            it.wrong.append(f"a hook took {max(it.hook_s):.2f} s (limit {HOOK_S} s)")
    return it.wrong, (
        f"acknowledged after {told_ms:.0f} ms, slowest hook {max(it.hook_s):.2f} s (limit {HOOK_S}),"
        f" search p95 {busy['p95']} ms (idle {idle['p95']}, limit {limit:.0f})"
    )


_PAGE = 4096
_EVENTS = 120
_SIZE = 4_000
_HOOKS = 3
_TRIES = 200


def _overwrite(path: str, at: int, size: int, rng: random.Random) -> None:
    with Path(path).open("r+b") as file:
        file.seek(at)
        file.write(rng.randbytes(size))


def _overwrite_pages(vault: str, rng: random.Random, one_in: int = 20) -> None:
    pages = Path(vault).stat().st_size // _PAGE
    for page in rng.sample(range(2, pages), max(3, pages // one_in)):
        _overwrite(vault, page * _PAGE, _PAGE, rng)


KINDS: dict[str, Callable[[str, random.Random], object]] = {
    "random bytes over pages": _overwrite_pages,
    "header overwritten": lambda vault, rng: _overwrite(vault, 0, 100, rng),
    "first page overwritten": lambda vault, rng: _overwrite(vault, 0, _PAGE, rng),
    "cut in half": lambda vault, _: os.truncate(vault, Path(vault).stat().st_size // 2 + 100),
    "no bytes at all": lambda vault, _: os.truncate(vault, 0),
    "a text file in its place": lambda vault, _: Path(vault).write_text("Dear diary.\n" * 99),
}
"""What is done to a vault that its daemon has left."""


@contextlib.contextmanager
def _vault() -> Iterator[DiskDaemon]:
    """A vault with a backup and something since then, and no daemon."""
    with disk_daemon() as it:
        it.say(_EVENTS // 2, _SIZE)
        it.daemon.settle(is_distilled=False)
        status, said = it.memd("backup")
        if status:
            it.wrong.append(f"no backup: {said}")
        it.say(_EVENTS // 2, _SIZE)
        it.daemon.settle(is_distilled=False)
        it.daemon.stop()
        yield it


def _digests(vault: str) -> dict[str, str]:
    """What the vault and its log hold; an empty log, which opening makes, holds nothing."""
    return {
        suffix: hashlib.sha256(Path(vault + suffix).read_bytes()).hexdigest()
        for suffix in ("", "-wal")
        if Path(vault + suffix).is_file() and Path(vault + suffix).stat().st_size
    }


def damaged(kind: str, seed: int) -> tuple[list[str], str]:
    """Do this to a vault; see that it is noticed, set aside, and made good in both ways."""
    seen = []
    with _vault() as it:
        vault = it.daemon.paths.database
        KINDS[kind](vault, random.Random(seed))
        was = _digests(vault)
        seen.append(_noticed(it))
        if _digests(vault) != was:
            it.wrong.append("looking at the damaged file changed it")
        with tempfile.TemporaryDirectory(prefix="torture-") as twin:
            ignore = shutil.ignore_patterns("*.sock")
            shutil.copytree(it.home, twin, dirs_exist_ok=True, ignore=ignore)
            other = DiskDaemon(twin, hooked=set(it.hooked))
            seen.append("restore: " + _mended(other, was, "restore", "--yes"))
            it.wrong += other.wrong
        seen.append("salvage: " + _mended(it, was, "restore", "--salvage", "--yes"))
    return it.wrong, "; ".join(seen)


def _noticed(it: DiskDaemon) -> str:
    """No daemon starts; commands say which command helps; hooks are taken by the spool."""
    for command, expected in (("start", 1), ("status", 2), ("doctor", 1)):
        status, said = it.memd(command)
        if status != expected or "memd restore" not in said:
            it.wrong.append(f"`memd {command}` ended with {status} and said {said!r}")
    for _ in range(_HOOKS):
        it.hook()
    _, said = it.memd("status")
    if "for the daemon to read" not in said:
        it.wrong.append("the spool took nothing")
    return f"{_HOOKS} hooks into the spool, slowest {max(it.hook_s):.2f} s (limit {HOOK_S})"


def _mended(it: DiskDaemon, was: dict[str, str], *words: str) -> str:
    """Run the command; how many events there are then, if all is well."""
    status, said = it.memd(*words)
    if status:
        # Of nothing nothing can be salvaged; then everything must be as it was.
        if "--salvage" not in words or _digests(it.daemon.paths.database) != was:
            it.wrong.append(f"`memd {' '.join(words)}` ended with {status}: {said}")
        return "nothing could be read, nothing was changed"
    aside = next((line for line in said.splitlines() if line.startswith("replaced vault")), "")
    if _digests(aside.partition(": ")[2]) != was:
        it.wrong.append("what was set aside is not what was there")
    it.daemon.start()
    it.recover()
    it.daemon.settle(is_distilled=False)
    _, found = it.memd("doctor")
    if problems := [line for line in found.splitlines() if line.startswith("problem")]:
        it.wrong.append(f"after `memd {' '.join(words)}` the doctor finds {problems}")
    it.ask()
    it.acknowledged = set()  # of what is damaged, not everything comes back
    if it.prove() < _HOOKS:
        it.wrong.append("what hooks put into the spool is not there")
    return f"{it.found} of {20 + _EVENTS + _HOOKS} events"


def damaged_running(seed: int) -> tuple[list[str], str]:
    """Overwrite a third of the pages under a daemon: once it has noticed, it writes no more, and says so."""
    rng = random.Random(seed)
    with _vault() as it:
        it.daemon.start()
        vault = it.daemon.paths.database
        it.daemon.settle(is_distilled=False)
        _overwrite_pages(vault, rng, 3)
        with it.daemon.client() as client:
            tries = next((n for n in range(_TRIES) if _is_noticed(it, client)), _TRIES)
        if tries == _TRIES:
            it.wrong.append("the damage was never noticed")
        was = _digests(vault)
        for _ in range(_HOOKS):
            it.hook()
        it.say(3)
        reasons = " ".join(it.status()["reasons"])
        if "damaged" not in reasons:
            it.wrong.append(f"the status does not say so: {reasons}")
        if _digests(vault) != was:
            it.wrong.append("it wrote into a file that it knew to be damaged")
        if not it.status()["spool"]["files"]:
            it.wrong.append("the spool took nothing")
        it.daemon.stop()
        if _digests(vault) != was:
            it.wrong.append("it wrote into the damaged file as it left")
        seen = _mended(it, was, "restore", "--salvage", "--yes")
    return it.wrong, f"noticed after {tries} calls; salvage: {seen}"


def _is_noticed(it: DiskDaemon, client: Client) -> bool:
    it.say(1)
    return any(
        "nothing is written any more" in one for one in client.call("memd/status")["reasons"]
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
    for name in KINDS:
        yield f"damaged: {name}", functools.partial(damaged, name, seed)
    yield "damaged while it runs", lambda: damaged_running(seed)


def main() -> None:
    """Run the trials."""
    run_trials("disk", __doc__, _trials, strikes=120)

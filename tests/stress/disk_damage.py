"""Damaged vaults: found at the start and while it runs, set aside and never written to, brought back.

Each damage is done to a copy of one vault with a backup. What must hold: no daemon starts, and commands
say which command helps; hooks go on into the spool; no byte of the damaged files changes, nor
when they are set aside; `memd restore` brings back the backup, `memd restore --salvage` what can be read
(not where the beginning of the file is gone); then the spool is taken in, and the doctor is content.
"""

import contextlib
import hashlib
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from memd.client import Client
from tests.stress import disk_daemon as disk

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
def _vault() -> Iterator[disk.DiskDaemon]:
    """A vault with a backup and something since then, and no daemon."""
    with disk.disk_daemon() as it:
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
    """Do this to a vault; see that it is noticed, kept, and made good in both ways."""
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
            other = disk.DiskDaemon(twin, hooked=set(it.hooked))
            seen.append("restore: " + _mended(other, was, "restore", "--yes"))
            it.wrong += other.wrong
        seen.append("salvage: " + _mended(it, was, "restore", "--salvage", "--yes"))
    return it.wrong, "; ".join(seen)


def _noticed(it: disk.DiskDaemon) -> str:
    """No daemon starts; commands say which command helps; hooks are taken by the spool."""
    for command, expected in (("start", 1), ("status", 2), ("doctor", 1)):
        status, said = it.memd(command)
        if status != expected or "memd restore" not in said:
            it.wrong.append(f"`memd {command}` ended with {status} and said {said!r}")
    for _ in range(_HOOKS):
        it.hook()
    _, said = it.memd("status")
    if "for the daemon to take in" not in said:
        it.wrong.append("the spool took nothing")
    return (
        f"{_HOOKS} hooks into the spool, slowest {max(it.hook_s):.2f} s (limit {disk.HOOK_S})"
    )


def _mended(it: disk.DiskDaemon, was: dict[str, str], *words: str) -> str:
    """Run the command; how many events there are then, if all is well."""
    status, said = it.memd(*words)
    if status:
        # Of nothing nothing can be salvaged; then everything must be as it was.
        if "--salvage" not in words or _digests(it.daemon.paths.database) != was:
            it.wrong.append(f"`memd {' '.join(words)}` ended with {status}: {said}")
        return "nothing could be read, nothing was changed"
    aside = next((line for line in said.splitlines() if line.startswith("what was there")), "")
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


def _is_noticed(it: disk.DiskDaemon, client: Client) -> bool:
    it.say(1)
    return any(
        "nothing is written any more" in one for one in client.call("memd/status")["reasons"]
    )

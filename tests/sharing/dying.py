"""Syncs two vaults again and again, each time killed one step later: `python -m tests.sharing.dying FOLDER STRIDE`.

A process of its own with one thread, so that each try can be a fork of it. A step is whatever Python asks of the
system (open, rename, remove, list, fsync) and each side of every transaction. Prints how many tries were killed.
"""

import os
import shutil
import signal
import sys
import traceback
import zlib
from functools import partial, wraps
from pathlib import Path

import anyio

from memd.store.database import Database
from tests.sharing.conftest import SyncedVault

FORGOTTEN_HERE, FORGOTTEN_THERE = "The ledger rounds half to even", "Invoices go out on Monday"
STEPS = {"open", "os.rename", "os.remove", "os.mkdir", "os.scandir"}
EXPECTED = sorted(
    ["The port is 8080", "Deploy on Fridays", "Said at the desk", "Said on the train"]
)


class Countdown:
    """Kills its own process at a step."""

    def __init__(self, steps):
        self.left = steps

    def step(self):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def arm(self):
        sys.addaudithook(lambda event, _: self.step() if event in STEPS else None)
        os.fsync = self._around(os.fsync)
        write = Database.write

        async def write_in_steps(database, work):
            self.step()
            done = await write(database, self._around(work))
            self.step()
            return done

        Database.write = write_in_steps

    def _around(self, work):
        @wraps(work)
        def in_steps(*arguments):
            done = work(*arguments)
            self.step()
            return done

        return in_steps


def open_vault(folder, name):
    (folder / "place").mkdir(parents=True, exist_ok=True)
    return SyncedVault(folder / f"{name}.db", folder / "place", name)


async def prepare(folder):
    """Both know two things that each of them has forgotten one of, and each has something new to say."""
    desk, laptop = open_vault(folder, "desk"), open_vault(folder, "laptop")
    first = [desk.remember(text) for text in (FORGOTTEN_HERE, "The port is 8080")]
    second = [laptop.remember(text) for text in (FORGOTTEN_THERE, "Deploy on Fridays")]
    for vault in (desk, laptop, desk):
        await vault.sync()
    await laptop.forget(second[0])
    laptop.remember("Said on the train")
    await laptop.sync()
    await desk.forget(first[0])
    desk.remember("Said at the desk")
    for vault in (desk, laptop):
        vault.db.close()


async def die(folder, steps):
    desk = open_vault(folder, "desk")
    Countdown(steps).arm()
    await desk.sync()


async def recover(folder):
    """Sync until all is said, and look at everything that is left."""
    vaults = desk, laptop = open_vault(folder, "desk"), open_vault(folder, "laptop")
    for vault in (desk, laptop, desk, laptop):
        assert (await vault.sync()).refused == []
    for vault in vaults:
        assert vault.bodies() == EXPECTED, vault.bodies()
        report = await vault.sync()
        assert (report.sent, report.received) == (0, {})
        vault.db.close()
    assert not list(folder.rglob("*.partial"))
    for file in filter(Path.is_file, folder.rglob("*")):
        content = file.read_bytes()
        said = zlib.decompress(content) if file.suffix == ".memd" else content
        for text in (FORGOTTEN_HERE, FORGOTTEN_THERE):
            assert text.encode() not in said, f"{file.name} has {text!r}"


def tear(folder, steps):
    """Cut off what was written and not flushed, as the system may."""
    for file in folder.rglob("*.partial"):
        os.truncate(file, file.stat().st_size * (steps % 4) // 4)


def in_child(work):
    """Do it in a fork; returns the signal that ended it, or 0. AssertionError if it failed."""
    child = os.fork()
    if not child:
        try:
            anyio.run(work)
        except BaseException:  # noqa: BLE001  # a child says why it failed, whatever that is
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def main(folder, stride):
    template, steps, killed = folder / "template", 1, 0
    in_child(partial(prepare, template))
    while True:
        attempt = Path(shutil.copytree(template, folder / "attempt"))
        ended_by = in_child(partial(die, attempt, steps))
        tear(attempt, steps)
        try:
            assert in_child(partial(recover, attempt)) == 0
        except AssertionError:
            raise SystemExit(f"killed at step {steps}: see above") from None
        shutil.rmtree(attempt)
        if not ended_by:
            break
        assert ended_by == signal.SIGKILL
        killed, steps = killed + 1, steps + stride
    sys.stdout.write(f"{killed}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

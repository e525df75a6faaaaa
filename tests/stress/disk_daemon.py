"""One daemon on a disk that may be bad: what it was given, what it acknowledged, and whether that holds.

Events come over the socket and through hooks. Broken promises are gathered in `wrong`. Not here: what is
done to the disk.
"""

import contextlib
import json
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import apsw

from benchmarks import harness
from memd.errors import Broken
from tests.stress.support import as_event, wait_until, worker

HOOK_S = 1.5
"""A hook's budget, and what it takes to start it and to write a spool on a busy machine."""
_REASONS = ("room", "writable", "disk")
"""Each message about a bad disk contains one of these."""


@dataclass
class DiskDaemon:
    """One daemon, what it was given, and what it acknowledged."""

    home: str
    environ: dict[str, str] = field(default_factory=dict)
    given: int = 0
    acknowledged: set[str] = field(default_factory=set)
    hooked: set[str] = field(default_factory=set)
    refusals: set[str] = field(default_factory=set)
    hook_s: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    found: int = 0
    """Events in the file, as `prove` counted them."""

    def __post_init__(self) -> None:
        self.daemon = harness.Daemon(self.home)
        self.daemon.environ |= {"MEMD_START": "0", "MEMD_INJECT": "0", **self.environ}

    def say(self, count: int, size: int = 200) -> int:
        """Hand events in over the socket; how many were acknowledged."""
        done = 0
        with self.daemon.client() as client:
            for _ in range(count):
                name, payload = self._event(size)
                try:
                    client.call("memd/capture", as_event(payload))
                except Broken as error:
                    self.refusals.add(error.message)
                else:
                    self.acknowledged.add(name)
                    done += 1
        return done

    def hook(self, size: int = 200) -> None:
        """Hand one in as a client does: through a process that must end well, silent and soon."""
        name, payload = self._event(size)
        began = time.perf_counter()
        done = subprocess.run(
            [*self.daemon.hook_command, "UserPromptSubmit"],
            input=json.dumps(payload).encode(), env=self.daemon.environ,
            capture_output=True, check=False,
        )  # fmt: skip
        took = time.perf_counter() - began
        self.hook_s.append(took)
        self.hooked.add(name)
        if done.returncode or done.stdout or done.stderr:
            self.wrong.append(f"a hook ended with {done.returncode}: {done.stderr!r}")

    def ask(self) -> float:
        """Search for what was remembered first; the seconds it took."""
        asked = {"query": "torture", "project": "all"}
        with self.daemon.client() as client:
            began = time.perf_counter()
            found = client.call("memd/search", asked)
        if not found["hits"]:
            self.wrong.append("a search found nothing")
        return time.perf_counter() - began

    def memd(self, *words: str) -> tuple[int, str]:
        """A command of memd's; (exit status, what it said)."""
        done = self.daemon.run(*words)
        return done.returncode, (done.stdout + done.stderr).decode()

    def status(self) -> dict[str, Any]:
        """How the daemon says that it is."""
        with self.daemon.client() as client:
            found: dict[str, Any] = client.call("memd/status")
        return found

    def expect_reason(self) -> None:
        """What was refused, and the status, say what is wrong."""
        reasons = self.status()["reasons"]
        for text in (*self.refusals, " ".join(reasons)):
            if not any(word in text for word in _REASONS):
                self.wrong.append(f"that does not say what is wrong: {text!r}")

    def recover(self) -> float:
        """Wait until the vault is written again and the spool is empty; how long that took."""
        began = time.perf_counter()

        def is_well() -> bool:
            status = self.status()
            return worker(status, "intake")["failing"] is None and not status["spool"]["files"]

        if not wait_until(is_well):
            self.wrong.append(f"it did not recover: {self.status()['reasons']}")
        return time.perf_counter() - began

    def prove(self) -> int:
        """Stop the daemon, then look into its file: whole, everything once; how many hooks' events are there."""
        self.daemon.stop()
        with contextlib.closing(
            apsw.Connection(self.daemon.paths.database, flags=apsw.SQLITE_OPEN_READONLY)
        ) as vault:
            if (said := vault.execute("PRAGMA integrity_check").get) != "ok":
                self.wrong.append(f"the file is not whole: {said}")
            found = [turn for (turn,) in vault.execute("SELECT turn FROM events")]
            ledger = dict(vault.execute("SELECT outcome, sum(count) FROM receipts GROUP BY 1"))
        self.found = len(found)
        if lost := self.acknowledged - set(found):
            self.wrong.append(f"{len(lost)} acknowledged events are lost")
        if len(found) != len(set(found)):
            self.wrong.append(f"{len(found) - len(set(found))} events are there twice")
        if ledger.pop("received") != sum(ledger.values()):
            self.wrong.append("the ledger do not balance")
        return len(self.hooked & set(found))

    def _event(self, size: int) -> tuple[str, dict[str, Any]]:
        self.given += 1
        name = f"{self.given}-{random.getrandbits(32):x}"
        return name, {
            "hook_event_name": "UserPromptSubmit",
            "session_id": f"session {self.given % 5}",
            "prompt_id": name,
            "prompt": f"torture number {self.given} " + "word " * (size // 5),
            "cwd": self.home,
        }


@contextlib.contextmanager
def disk_daemon(home: str | None = None, **environ: str) -> Iterator[DiskDaemon]:
    """A daemon with something in it, removed afterwards."""
    folder = home or tempfile.mkdtemp(prefix="torture-")
    it = DiskDaemon(folder, environ)
    try:
        it.daemon.start()
        it.say(20)
        with it.daemon.client() as client:
            client.call("memd/remember", {"text": "The torture of the disk has begun."})
        it.daemon.settle(is_distilled=False)
        yield it
    finally:
        it.daemon.stop()
        if home is None:
            shutil.rmtree(folder, ignore_errors=True)

"""Hooks that are given payloads which no client sends, in this process and in processes of their own.

A hook exits with 0 and prints one JSON object or nothing; the daemon receives all payloads, at once or from the spool.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import memd
from benchmarks import harness
from memd import hook
from memd.capture import spool
from tests.stress import fuzz_daemon
from tests.stress.generators import Generator, dumped
from tests.stress.support import as_event, wait_until

_HOOK = Path(memd.__file__).with_name("hook.py")


class Hooks:
    """Gives payloads to hooks and lines to the spool; counts what the daemon must receive."""

    def __init__(self, daemon: harness.Daemon) -> None:
        self._daemon = daemon
        self.given = 0

    def fault(self, generator: Generator) -> str | None:
        """Run one hook, perhaps write one line into the spool; what was wrong."""
        payload = dumped(_altered(generator, 0.1))
        payload = generator.torn(payload) if generator.chance(0.2) else payload
        place = generator.word().replace("\x00", "").encode("utf-8", "replace").decode()
        environ = {**self._daemon.environ, "MEMD_START": "0"}
        environ |= {"CLAUDE_PROJECT_DIR": place} if generator.chance(0.3) else {}
        run = _run_process if generator.chance(0.1) else _run_here
        self.given += bool(payload.strip()) + (generator.chance(0.2) and self._spool(generator))
        return _fault(*run(payload, environ))

    def _spool(self, generator: Generator) -> bool:
        """Whether a line that no hook would write was put into the spool."""
        said = as_event(_altered(generator, 0.1), at=1, directory="/p")
        data = dumped(generator.changed(said, 0.3))
        data = generator.torn(data) if generator.chance(0.2) else data
        data = data.replace(b"\n", b" ").strip()
        if data:
            spool.append(self._daemon.paths.spool_dir, data)
        return bool(data)

    def are_received(self) -> bool:
        """Whether the daemon has received all of it, and its ledger balances."""
        with self._daemon.client() as client:
            ledger = client.call("memd/status")["books"]
        return bool(ledger["received"] >= self.given and ledger["balanced"])

    def wait(self) -> None:
        """Wait until all of it was received; AssertionError after a minute."""
        assert wait_until(self.are_received), f"{self.given} payloads were not received"


def _altered(generator: Generator, share: float) -> Any:
    return generator.changed(generator.random.choice(fuzz_daemon.payloads()), share)


def _run_here(payload: bytes, environ: dict[str, str]) -> tuple[int, bytes, bytes]:
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as shown:
        given.write(payload)
        given.seek(0)
        sys.stdout.flush()
        real = os.dup(1)
        os.dup2(shown.fileno(), 1)
        try:
            code = hook.main([], given.fileno(), environ)
        finally:
            os.dup2(real, 1)
            os.close(real)
        shown.seek(0)
        return code, shown.read(), b""


def _run_process(payload: bytes, environ: dict[str, str]) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(_HOOK)],
        input=payload, env=environ, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def _fault(code: int, shown: bytes, said: bytes) -> str | None:
    if code or said:
        return f"the hook ended with {code} and said {said[:300]!r}"
    try:
        is_object = not shown or isinstance(json.loads(shown), dict)
    except ValueError:
        is_object = False
    return None if is_object else f"the hook printed {shown[:300]!r}"

"""Commands as people run them, and one daemon with the sample sessions for those that need one."""

import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from memd.cli import app
from tests.forked_memd import PATIENT, ForkedMemd

ROOT = Path(__file__).parent.parent.parent
SAMPLES = ROOT / "tests" / "data" / "claude-code" / "ledger" / "projects"

_FORKED = {
    "backup", "consolidate", "doctor", "export", "forget", "import", "project", "remember",
    "restart", "restore", "scrub", "search", "start", "status", "stop", "switch", "view",
}  # fmt: skip


@dataclass(frozen=True)
class Ran:
    """A command that ended."""

    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


class Machine:
    """A home of its own in which memd is run as processes."""

    def __init__(self, home):
        self.home = Path(home)
        self._runs = itertools.count(1)
        self.environ = {
            "PATH": os.environ["PATH"],
            "MEMD_HOME": str(home),
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "MEMD_TUNING": json.dumps(PATIENT),
        }

    def command(self, *arguments):
        return [sys.executable, "-m", "memd", *map(str, arguments)]

    def run(self, *arguments, stdin=""):
        """Run a command: forked, if it is one that imports much."""
        command = arguments[2] if arguments[0] == "--vault" else arguments[0]
        if command in _FORKED and "COVERAGE_PROCESS_START" not in os.environ:
            return self.run_forked([str(word) for word in arguments], stdin.encode())
        return self.run_anew(*arguments, stdin=stdin)

    def run_anew(self, *arguments, stdin=""):
        """Run a command in an interpreter of its own: where its start, or what it starts, counts."""
        ended = subprocess.run(
            self.command(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=self.environ,
            cwd=self.home,
            timeout=60,
            check=False,
        )
        return Ran(ended.returncode, ended.stdout, ended.stderr)

    def fork(self, *words, stdin=b""):
        """Begin a command in a process that has imported memd already."""
        folder = self.home.parent / f"{self.home.name}-output" / str(next(self._runs))
        return ForkedMemd(words, self.environ, folder, stdin, directory=self.home)

    def run_forked(self, words, stdin=b""):
        """Run a command in such a process."""
        ran = self.fork(*words, stdin=stdin)
        status = ran.wait(timeout=60)
        return Ran(status, *(ran.output(name).decode() for name in ("stdout", "stderr")))

    def popen(self, *arguments, **settings):
        return subprocess.Popen(
            self.command(*arguments), env=self.environ, cwd=self.home, **settings
        )

    def wait_for(self, holds):
        """Wait until the daemon's status is as it should be; return that status."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            status = self.run_forked(["status", "--json"]).json
            if holds(status):
                return status
            time.sleep(0.05)
        raise AssertionError(f"it never became so: {status}")

    def settle(self):
        """Wait until everything that was captured, and is over, can be found."""
        return self.wait_for(
            lambda status: not status["events"]["pending"] and not status["summaries"]["to_index"]
        )

    def kill(self):
        """End whatever still runs here."""
        self.run("stop")


@contextlib.contextmanager
def running(home, *, samples=False):
    """A machine with a daemon, perhaps one that knows the sample sessions."""
    machine = Machine(home)
    try:
        started = machine.run("start")
        assert started.status == 0, started.err
        if samples:
            imported = machine.run("import", "claude-code", SAMPLES)
            assert imported.status == 0, imported.err
            machine.settle()
        yield machine
    finally:
        machine.kill()


def make_command(capsys):
    """A function that runs a command in this process."""

    def run(*arguments):
        status = app.main([str(argument) for argument in arguments])
        return Ran(status, *capsys.readouterr())

    return run


@pytest.fixture
def machine(tmp_path):
    """A machine where nothing runs yet."""
    machine = Machine(tmp_path)
    yield machine
    machine.kill()


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    """A machine with a daemon that knows the sample sessions. Shared: leave it as you found it."""
    with running(tmp_path_factory.mktemp("served"), samples=True) as machine:
        yield machine


@pytest.fixture
def memd(served, monkeypatch, capsys):
    """Run a command in this process against the shared daemon."""
    for name in ("MEMD_VAULT", "XDG_RUNTIME_DIR", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MEMD_HOME", str(served.home))
    monkeypatch.chdir(served.home)
    return make_command(capsys)


@pytest.fixture
def alone(tmp_path, monkeypatch, capsys):
    """Run a command in this process where no daemon runs."""
    monkeypatch.delenv("MEMD_VAULT", raising=False)
    monkeypatch.setenv("MEMD_HOME", str(tmp_path))
    return make_command(capsys)


@pytest.fixture
def noted(memd):
    """Remember something for one test, and forget it afterwards."""
    kept = []

    def note(text, *options):
        found = memd("remember", text, "--json", *options).json
        kept.append(found["id"])
        return found["id"]

    yield note
    memd("forget", "--yes", *kept) if kept else None

"""A real daemon in a home of its own, and what people do to it: replay hooks, ask, kill, look for secrets."""

import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from memd.client import Client
from memd.errors import Unreachable
from memd.paths import Paths
from tests.forked_memd import PATIENT, ForkedMemd

DATA = pathlib.Path(__file__).parent.parent / "data" / "claude-code"
LEDGER = DATA / "ledger"
WAIT_S = 60.0


class RealDaemon:
    """One vault's files and its daemon."""

    def __init__(self, home):
        self.home = home
        # Its daemon is started by the test alone, never by a hook or a proxy.
        self.environ = {
            "HOME": str(home),
            "MEMD_HOME": str(home),
            "MEMD_START": "0",
            "PATH": os.environ["PATH"],
        }
        self.tune({})
        if "COVERAGE_PROCESS_START" in os.environ:
            self.environ["COVERAGE_PROCESS_START"] = os.environ["COVERAGE_PROCESS_START"]
        self.paths = Paths(self.environ)
        self.process = None
        # Beside the home, which some tests search for secrets.
        self._output = home.parent / f"{home.name}-output"
        self._runs = itertools.count(1)

    def tune(self, values):
        """From its next start on: values of what is no setting."""
        self.environ["MEMD_TUNING"] = json.dumps(PATIENT | values)

    def command(self, *words):
        return [sys.executable, "-m", "memd", *words]

    def start(self):
        self.process = self._spawn("serve")
        self.wait_for(self.is_up)
        return self

    def _spawn(self, *words):
        """A process of memd: forked, unless a test has a command of its own."""
        if self._is_forked:
            return ForkedMemd(words, self.environ, self._next_folder())
        folder = self._next_folder()
        folder.mkdir(parents=True)
        with (folder / "stderr").open("wb") as said:
            return subprocess.Popen(
                self.command(*words), env=self.environ,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
            )  # fmt: skip

    @property
    def _is_forked(self):
        is_own = type(self).command is not RealDaemon.command or "command" in vars(self)
        return not is_own and "COVERAGE_PROCESS_START" not in os.environ

    def _next_folder(self):
        return self._output / str(next(self._runs))

    def is_up(self):
        assert self.process.poll() is None, self._last_words()
        try:
            with self.client() as client:
                client.call("memd/ping")
        except Unreachable:
            return False
        return True

    def _last_words(self):
        latest = max(self._output.iterdir(), key=lambda folder: int(folder.name))
        said = (latest / "stderr").read_text("utf-8", "replace")
        return f"serve ended with {self.process.poll()}: {said[-4_000:]}"

    def wait_for(self, condition):
        began = time.monotonic()
        while not (met := condition()):
            waited = time.monotonic() - began
            assert waited < WAIT_S, "waited in vain"
            time.sleep(0.01 + waited / 20)  # asking often takes time from who is asked
        return met

    def stop(self, how=signal.SIGTERM):
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(timeout=WAIT_S)
            self.process = None

    def client(self):
        return Client(self.paths.socket, WAIT_S)

    def status(self):
        with self.client() as client:
            return client.call("memd/status")

    def settle(self):
        """Wait until everything captured is distilled and indexed."""

        def settled():
            status = self.status()
            indexer = next(room for room in status["rooms"] if room["name"] == "indexer")
            return (
                not status["events"]["pending"]
                and not status["summaries"]["to_index"]
                and indexer["loaded"]
            )

        self.wait_for(settled)

    def run(self, *words, stdin=b"", environ=None, anew=False):
        """Run a command: forked, unless its own interpreter counts."""
        if self._is_forked and not anew:
            ran = ForkedMemd(words, {**self.environ, **(environ or {})}, self._next_folder(), stdin)
            status = ran.wait(timeout=60)
            return subprocess.CompletedProcess(
                words, status, ran.output("stdout"), ran.output("stderr")
            )
        return subprocess.run(
            self.command(*words),
            env={**self.environ, **(environ or {})},
            input=stdin,
            capture_output=True,
            check=False,
            timeout=60,
        )

    def replay(self, file):
        """Each recorded hook call as a process of its own, in order, without context: so all are silent."""
        for line in file.read_text(encoding="utf-8").splitlines():
            call = json.loads(line)
            done = self.run(
                "hook",
                call["stdin"]["hook_event_name"],
                stdin=json.dumps(call["stdin"]).encode(),
                environ=call["env"] | {"MEMD_INJECT": "0"},
                anew=True,
            )
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), call["stdin"][
                "hook_event_name"
            ]

    def files_with(self, *secrets):
        """Every file below the home in which one of these stands."""
        return [
            (str(path.relative_to(self.home)), secret)
            for path in sorted(self.home.rglob("*"))
            if path.is_file()
            for secret in secrets
            if secret.encode() in path.read_bytes()
        ]

"""memd in processes forked from one that has imported it: `python -m memd …` without a second of imports.

The process has its own environment, directory, files and signals; only the interpreter's start and the imports are
shared. So has the daemon that `start`, `restart` or `restore` leaves behind. Tests of those (of hooks, proxies, the
launcher, installers, of what a daemon inherits) start a real interpreter.
"""

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from memd import hook_event, stdio_proxy
from memd.__main__ import main
from memd.consolidate import consolidator
from memd.daemon import client_notes, process, worktrees
from memd.daemon import status as daemon_status
from memd.distill import distiller
from memd.embeddings import remote
from memd.index import indexer
from memd.injection import guard, outcomes
from memd.launcher import make_daemon_environment
from memd.paths import mend_umask, private_dir
from memd.server import control
from memd.viewer import server as viewer
from tests.stress import fake_clock

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.forked_memd", "tests.imported_memd"])
_LOCK = threading.Lock()
"""Tests start processes in threads, and multiprocessing polls all its children whenever one is started."""
_POLL_S = 0.005
_HOOK_S = 30
PATIENT = {"inject.prompt_s": 5, "inject.session_s": 5}
"""MEMD_TUNING: what is shown to agents may take as long as a busy machine needs for it."""

HASTY = (
    # What is polled until it is so is never an old answer.
    (daemon_status, {"_CACHE_S": 0.0}),
    (distiller, {"_PAUSE_MAX_S": 0.1}),
    (consolidator, {"_BACKLOG_INTERVAL_S": 0.05}),
    (indexer, {"_IDLE_S": 0.5}),
    (worktrees, {"_REST_S": 0.05}),
    (viewer, {"_WATCH_S": 0.05}),
    (outcomes, {"_RETRY_S": 0.05}),
    (remote, {"CHECK_INTERVAL_S": 0.2}),
    (client_notes, {"LOOKS_AFTER_S": (0.05, 30.0), "_POLL_S": 0.1, "_DEBOUNCE_MS": 20, "_STEP_MS": 10, "_TIMEOUT_MS": 50}),
)  # fmt: skip
"""Pauses of a daemon that only spare a processor: where tests wait for what follows, they are short."""


class ForkedMemd:
    """`memd WORDS`, with the few methods of `subprocess.Popen` that tests use; its output goes to `folder`.

    `limits`: other values of the proxy's.
    """

    def __init__(self, words, environ, folder, stdin=b"", directory=None, limits=None):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "stdin").write_bytes(stdin)
        self._folder = folder
        self._process = _CONTEXT.Process(
            target=_run,
            args=(words, environ, str(directory or Path.cwd()), str(folder), limits or {}),
            daemon=True,
        )
        self.returncode = None
        with _LOCK:
            self._process.start()
        self.pid = self._process.pid

    def poll(self):
        """The exit status; None while it runs."""
        with _LOCK:
            if self.returncode is None and self._process.exitcode is not None:
                self.returncode = self._process.exitcode
                self._process.close()
        return self.returncode

    def wait(self, timeout):
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("memd", timeout)
            time.sleep(_POLL_S)
        return status

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout=60):
        self.wait(timeout)
        return self.output("stdout"), self.output("stderr")

    @property
    def stderr(self):
        """What it has written to it, to be read and closed."""
        return io.BytesIO(self.output("stderr"))

    def output(self, name):
        """What it has written to `stdout` or `stderr` so far."""
        return (self._folder / name).read_bytes()


class ForkedDaemon:
    """`memd serve` as `process.spawn_daemon` starts it, with what `memd start` uses of Popen."""

    def __init__(self, paths, environ):
        mend_umask()
        private_dir(paths.state_dir)
        self._status = None
        self.pid = os.fork()
        if self.pid == 0:
            _serve_until_end(paths, make_daemon_environment(paths, dict(environ)))

    def poll(self):
        return self._reap(os.WNOHANG)

    def wait(self):
        return self._reap(0)

    def terminate(self):
        os.kill(self.pid, signal.SIGTERM)

    def _reap(self, options):
        if self._status is None:
            pid, status = os.waitpid(self.pid, options)
            self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status


def _serve_until_end(paths, environ):
    """Be a daemon, detached; never returns, whatever happens."""
    status = 1
    try:
        os.setsid()
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        status = _be_memd(["serve"], environ, paths.state_dir, (os.devnull, paths.log, paths.log))
        sys.stderr.flush()
    finally:
        os._exit(status)


def _run(words, environ, directory, folder, limits):
    vars(stdio_proxy).update(limits)
    process.spawn_daemon = ForkedDaemon
    # How soon a hook gives up is for tests/test_hook.py; here a busy machine may take its time.
    hook_event.BUDGET_S = hook_event.CONTEXT_BUDGET_S = hook_event.STDIN_S = _HOOK_S
    guard.ANSWER_S = control._ASK_S = _HOOK_S
    files = [Path(folder) / name for name in ("stdin", "stdout", "stderr")]
    sys.exit(_be_memd(words, environ, directory, files))


def _be_memd(words, environ, directory, files):
    """Run `memd WORDS` as a process that has just begun would, with these files as the standard ones."""
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    for module, pauses in HASTY:
        vars(module).update(pauses)
    if fake_clock.VARIABLE in environ:
        fake_clock.use_clock(environ[fake_clock.VARIABLE])
    os.chdir(directory)
    writes = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, (file, mode) in enumerate(zip(files, (os.O_RDONLY, writes, writes), strict=True)):
        opened = os.open(file, mode, 0o600)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    sys.argv = ["memd", *words]
    return main()

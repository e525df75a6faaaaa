"""memd in processes forked from one that has imported it: `python -m memd …` without a second of imports.

The process has its own environment, directory, files and signals; only the interpreter's start and the imports are
shared. Tests of those (of hooks, proxies, the launcher, installers) start a real interpreter.
"""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from memd.__main__ import main

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.forked_memd", "tests.imported_memd"])
_LOCK = threading.Lock()
"""Tests start processes in threads, and multiprocessing polls all its children whenever one is started."""
_POLL_S = 0.005


class ForkedMemd:
    """`memd WORDS`, with the few methods of `subprocess.Popen` that tests use; its output goes to `folder`."""

    def __init__(self, words, environ, folder, stdin=b"", directory=None):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "stdin").write_bytes(stdin)
        self._folder = folder
        self._process = _CONTEXT.Process(
            target=_run,
            args=(words, environ, str(directory or Path.cwd()), str(folder)),
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

    def output(self, name):
        """What it has written to `stdout` or `stderr` so far."""
        return (self._folder / name).read_bytes()


def _run(words, environ, directory, folder):
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(directory)
    modes = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)
    for number, (name, mode) in enumerate(zip(("stdin", "stdout", "stderr"), modes, strict=True)):
        opened = os.open(Path(folder) / name, mode)
        os.dup2(opened, number)
        os.close(opened)
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    sys.argv = ["memd", *words]
    sys.exit(main())

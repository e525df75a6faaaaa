import itertools
import os
import subprocess
from pathlib import Path

import pytest

from benchmarks import harness
from tests.forked_memd import ForkedMemd


@pytest.fixture(scope="module")
def forked_daemons(tmp_path_factory):
    """Daemons and commands of the harness are forked: for tests in which their own start does not count."""
    if "COVERAGE_PROCESS_START" in os.environ:
        yield
        return
    output, numbers = tmp_path_factory.mktemp("output"), itertools.count(1)

    def begin(environ, *words, given=b""):
        return ForkedMemd(words, environ, output / str(next(numbers)), given, Path(environ["HOME"]))

    def run(self, *words, given=b"", umask=-1, **environ):
        if umask != -1 or "mcp" in words:
            return run_anew(self, *words, given=given, umask=umask, **environ)
        ran = begin({**self.environ, "MEMD_START": "0", **environ}, *words, given=given)
        status = ran.wait(60)
        return subprocess.CompletedProcess(
            words, status, ran.output("stdout"), ran.output("stderr")
        )

    run_anew = harness.Daemon.run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(harness.Daemon, "spawn", lambda self: begin(self.environ, "serve"))
        patch.setattr(harness.Daemon, "run", run)
        yield

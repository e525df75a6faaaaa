"""The repository's systemd units say nothing that systemd does not understand, and memd runs under them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memd.installers.service import DaemonUnit, format_service_unit, format_socket_unit, sign
from tests.e2e.real_daemon import RealDaemon

UNITS = Path(__file__).parent.parent.parent / "systemd"
EXPOSURE_MAX = "65"
"""Tenths, as systemd counts it. Most of what is left are powers that no user has to begin with."""

_REFUSE_WRITE_EXECUTE = """\
import ctypes, mmap, os, sys
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):
    sys.exit("this kernel cannot")
try:
    mmap.mmap(-1, 4096, prot=7)
except PermissionError:
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""

understood = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="there is no systemd here"
)


def analyze(home, *words):
    """systemd only warns of what it does not know, so silence is what is asked for."""
    environ = {"XDG_RUNTIME_DIR": str(home), "HOME": str(home), "PATH": os.environ["PATH"]}
    return subprocess.run(
        ["systemd-analyze", *map(str, words)],  # noqa: S607  # wherever it is
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def program(home):
    """Where the unit of the repository expects memd."""
    path = home / ".local" / "bin" / "memd"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def test_the_repositorys_units_are_what_memd_writes_for_the_usual_place():
    assert (UNITS / "memd.service").read_text(encoding="utf-8") == format_service_unit(DaemonUnit())
    assert (UNITS / "memd.socket").read_text(encoding="utf-8") == format_socket_unit(DaemonUnit())


@understood
@pytest.mark.parametrize(
    "job",
    [
        DaemonUnit(),
        DaemonUnit(
            name="memd-work",
            start='"/bin/true" -P "a b" 50%%',
            listen="/tmp/a b/100%%.sock",  # noqa: S108  # nobody listens there
            environment={"MEMD_HOME": '/home/a "b" 100%', "MEMD_VAULT": "work"},
        ),
    ],
)
def test_the_units_are_understood_to_the_last_key(tmp_path, job):
    program(tmp_path)
    for kind, text in (("service", format_service_unit(job)), ("socket", format_socket_unit(job))):
        (tmp_path / f"{job.name}.{kind}").write_text(sign(text), encoding="utf-8")
    both = (tmp_path / f"{job.name}.{kind}" for kind in ("socket", "service"))
    verified = analyze(tmp_path, "verify", "--user", "--man=no", *both)
    assert (verified.returncode, verified.stderr) == (0, "")


@understood
def test_the_daemon_is_given_no_more_than_it_needs(tmp_path):
    program(tmp_path)
    shutil.copy(UNITS / "memd.service", tmp_path)
    judged = analyze(
        tmp_path, "security", "--offline=true", "--user", "--no-pager",
        f"--threshold={EXPOSURE_MAX}", tmp_path / "memd.service",
    )  # fmt: skip
    assert judged.returncode == 0, judged.stdout


def test_it_is_given_longer_to_leave_than_it_needs():
    assert "TimeoutStopSec=10" in (UNITS / "memd.service").read_text(encoding="utf-8")


def test_everything_that_a_memory_passes_runs_where_no_page_is_both_written_and_executed(tmp_path):
    tried = [sys.executable, "-c", _REFUSE_WRITE_EXECUTE]
    if subprocess.run([*tried, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip("this kernel cannot forbid it")

    class StrictDaemon(RealDaemon):
        def command(self, *words):
            return [*tried, "-m", "memd", *words]

    daemon = StrictDaemon(tmp_path).start()
    try:
        with daemon.client() as client:
            client.call("memd/remember", {"text": "The ledger is kept in tabs."})
        daemon.settle()
        with daemon.client() as client:
            assert client.call("memd/search", {"query": "ledger tabs", "project": "all"})["hits"]
    finally:
        daemon.stop()

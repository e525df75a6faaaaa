"""A daemon started from a side door: it owes its starter nothing, and nobody starts it twice or unasked."""

import fcntl
import json
import os
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from memd import launcher
from memd.paths import Paths

REAL = Path(launcher.__file__).parent
SAYS = """
import json, os, signal, sys
fds = [int(name) for name in os.listdir("/dev/fd")]
told = {
    "argv": sys.argv[1:], "cwd": os.getcwd(), "environ": dict(os.environ), "sid": os.getsid(0) == os.getpid(),
    "fds": [fd for fd in fds if fd > 2], "ignores": signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN,
    "reads": os.fstat(0).st_rdev == os.fstat(1).st_rdev == os.stat(os.devnull).st_rdev,
}
print(json.dumps(told), file=sys.stderr)
"""
"""Stands in for the daemon, and only tells how it was started."""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # which also brings the tests back from `/`
    package = tmp_path / "fake" / "memd"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(SAYS)
    return {
        "HOME": str(tmp_path),
        "MEMD_HOME": str(tmp_path / "m"),
        "PYTHONPATH": str(package.parent),
    }


def told(home):
    """Start it, bury it, and read what it said."""
    paths = Paths(home)
    pid = launcher.start(paths, home)
    assert pid is not None
    deadline = time.monotonic() + 60
    while not launcher.has_ended(pid):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return json.loads(Path(paths.log).read_text())


def test_it_owes_its_starter_nothing(home, tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit('of the directory we were in')")
    kept = os.dup(1)
    os.set_inheritable(kept, True)
    before = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        said = told(home)
    finally:
        signal.signal(signal.SIGCHLD, before)
        os.close(kept)
    assert said["argv"] == ["serve"]
    assert (said["cwd"], said["sid"], said["reads"], said["ignores"]) == ("/", True, True, False)
    assert len(said["fds"]) <= 2  # the claim, and the listing's own
    assert Path(Paths(home).log).stat().st_mode & 0o777 == 0o600


def test_it_gets_its_vault_and_nothing_of_the_agent_s(home):
    session = {
        "CLAUDE_CODE_MESSAGING_TOKEN": "a secret", "CLAUDE_PROJECT_DIR": "/p", "CLAUDECODE": "1",
        "CLAUDE_CONFIG_DIR": "/c", "MEMD_HOME": "m", "MEMD_VAULT": "work",
    }  # fmt: skip
    environ = told({**home, **session})["environ"]
    assert {name for name in environ if name.startswith("CLAUDE")} == {"CLAUDE_CONFIG_DIR"}
    assert environ["MEMD_HOME"] == home["MEMD_HOME"]
    assert environ["MEMD_VAULT"] == "work"


def test_an_agent_below_the_daemon_has_a_hook_that_does_nothing(home):
    assert told(home)["environ"]["MEMD_DISABLE"] == "1"


def test_it_can_be_forbidden(home):
    assert launcher.start(Paths(home), {**home, "MEMD_START": "0"}) is None
    assert not Path(home["MEMD_HOME"]).exists()


def test_what_cannot_be_started_is_none(home, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert launcher.start(Paths(home), home) is None


def test_a_state_that_cannot_be_made_is_none(home):
    Path(home["MEMD_HOME"]).write_text("in the way")
    assert launcher.start(Paths(home), home) is None


@pytest.mark.skipif(sys.platform == "darwin", reason="systemd is Linux")
@pytest.mark.parametrize("kind", ["socket", "service"])
@pytest.mark.parametrize("has_xdg", [False, True])
def test_a_daemon_that_a_service_manager_runs_is_not_started(tmp_path, kind, has_xdg):
    environ = {"HOME": str(tmp_path)}
    if has_xdg:
        environ["XDG_CONFIG_HOME"] = str(tmp_path / "xdg")
    units = tmp_path / ("xdg" if has_xdg else ".config") / "systemd" / "user"
    assert not launcher.is_managed(environ)
    units.mkdir(parents=True)
    (units / f"other-memd.{kind}").touch()
    assert not launcher.is_managed(environ)
    (units / f"memd.{kind}").touch()
    assert launcher.is_managed(environ)
    assert launcher.start(Paths(environ), environ) is None
    assert not Path(Paths(environ).state_dir).exists()


def test_on_a_mac_it_is_an_agent(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    agents = tmp_path / "Library" / "LaunchAgents"
    agents.mkdir(parents=True)
    environ = {"HOME": str(tmp_path)}
    (agents / "local.memd.work.plist").touch()
    assert [launcher.is_managed(environ, vault) for vault in (None, "work")] == [False, True]
    (agents / "local.memd.plist").touch()
    assert launcher.is_managed(environ)


@pytest.mark.skipif(sys.platform == "darwin", reason="systemd is Linux")
def test_the_unit_of_another_vault_or_home_says_nothing_about_this_one(tmp_path):
    units = tmp_path / ".config" / "systemd" / "user"
    units.mkdir(parents=True)
    (units / "memd.service").write_text(f"Environment=MEMD_HOME={tmp_path}/here\n")
    environ = {"HOME": str(tmp_path), "MEMD_HOME": str(tmp_path / "here")}
    assert launcher.is_managed(environ)
    assert not launcher.is_managed(environ, "work")
    assert not launcher.is_managed({**environ, "MEMD_VAULT": "work"})
    assert not launcher.is_managed({**environ, "MEMD_HOME": str(tmp_path / "there")})
    (units / "memd-work.socket").write_text(f"ListenStream={tmp_path}/here/run/memd-work.sock\n")
    assert launcher.is_managed(environ, "work")


@contextmanager
def lock_of(path):
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def test_whether_a_daemon_has_the_vault_is_asked_of_its_lock(tmp_path):
    path = str(tmp_path / "lock")
    assert not launcher.is_held(path)
    with lock_of(path):
        assert launcher.is_held(path)
    assert not launcher.is_held(path)


def test_no_second_daemon_is_started_while_one_is_starting(home):
    paths = Paths(home)
    Path(paths.data_dir).mkdir(parents=True)
    with lock_of(f"{paths.lock}.start"):
        assert launcher.is_awaited(paths)
        assert launcher.start(paths, home) == 0
        assert not Path(paths.log).exists()
    assert not launcher.is_awaited(paths)
    assert told(home)["argv"] == ["serve"]


def test_a_started_daemon_is_awaited_before_it_has_the_vault_and_until_it_ends(home):
    paths = Paths(home)
    package = Path(home["PYTHONPATH"]) / "memd" / "__main__.py"
    package.write_text("import signal; signal.pause()")
    pid = launcher.start(paths, home)
    try:
        assert launcher.is_awaited(paths)
        assert not launcher.is_held(paths.lock)
        assert launcher.start(paths, home) == 0
    finally:
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert not launcher.is_awaited(paths)


def test_one_that_was_never_ours_has_ended():
    assert launcher.has_ended(os.getpid())

"""Odd environments, by the real hook, proxy, command line and daemon: memd works, or says why not and leaves nothing."""

import contextlib
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memd import hook
from memd.daemon.process import find_lock_holder
from memd.paths import Paths
from tests.forked_memd import PATIENT, ForkedMemd

CLIENT_HOOK = (sys.executable, "-I", "-S", str(Path(hook.__file__)))
MEMD = (sys.executable, "-P", "-m", "memd")
START = {"session_id": "s", "hook_event_name": "SessionStart", "source": "startup", "cwd": "/p"}
PROMPT = {
    "session_id": "s", "hook_event_name": "UserPromptSubmit", "cwd": "/p", "prompt_id": "p",
    "prompt": "We always deploy on Mondays.",
}  # fmt: skip


class Machine:
    """One environment, and what is run in it."""

    def __init__(self, environ, output, cwd="/", prepare=None):
        # A prompt's context may take its time on a busy machine; a missed deadline would be the daemon's health.
        patient = {"MEMD_TUNING": json.dumps(PATIENT)}
        self.environ = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **patient, **environ}
        self.cwd, self.prepare = cwd, prepare
        self.output, self.runs = output, itertools.count(1)

    def run(self, command, stdin=b""):
        done = subprocess.run(
            command, env=self.environ, cwd=self.cwd, input=stdin, preexec_fn=self.prepare,
            capture_output=True, timeout=120, check=False,
        )  # fmt: skip
        assert b"Traceback" not in done.stderr
        return done

    def memd(self, *words, stdin=b""):
        return self.run((*MEMD, *words), stdin)

    def memd_forked(self, *words):
        """A command of which only what it says counts: without an interpreter of its own."""
        folder = self.output / str(next(self.runs))
        ran = ForkedMemd(words, self.environ, folder, directory=self.cwd, limits={"WAIT_S": 0.1})
        status = ran.wait(120)
        said = ran.output("stderr").decode()
        assert "Traceback" not in said
        return status, said

    def hook(self, payload):
        """The hook never fails the agent and never prints an error."""
        done = self.run(CLIENT_HOOK, json.dumps(payload).encode())
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    def holder(self):
        return find_lock_holder(Paths(self.environ).lock)


@pytest.fixture
def machine(tmp_path):
    """Make machines with a home of their own; their daemons end with the test."""
    made = []
    home = tmp_path / "h"
    home.mkdir()

    def make(prepare=None, cwd="/", **environ):
        output = tmp_path / "output" / str(len(made))
        made.append(Machine({"HOME": str(home)} | environ, output, cwd, prepare))
        return made[-1]

    make.home = home
    yield make
    for one in made:
        with contextlib.suppress(ValueError):
            if holder := one.holder():
                os.kill(holder.pid, signal.SIGKILL)


def live_through_a_day(machine):
    """A session with hooks, proxy and questions; the daemon is stopped again."""
    machine.hook(PROMPT)  # into the spool: no daemon runs yet
    started = machine.memd("start")
    assert started.returncode == 0, started.stderr
    machine.hook({**PROMPT, "prompt_id": "q", "prompt": "Why is the build slow?"})
    assert machine.memd("remember", "The kettle is in the cellar").returncode == 0
    assert b"cellar" in machine.memd("search", "kettle").stdout
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    assert machine.memd("mcp", stdin=ping).returncode == 0
    # What these two ask is done by the daemon.
    assert machine.memd_forked("status")[0] == 0
    assert machine.memd_forked("doctor")[0] == 0
    assert machine.memd("stop").returncode == 0
    assert machine.holder() is None


def files_below(directory):
    return sorted(str(path.relative_to(directory)) for path in Path(directory).rglob("*"))


def test_odd_and_long_homes_few_descriptors_and_no_rights_by_default_are_enough_and_no_socket_is_left(
    machine,
):
    def prepare():
        os.umask(0o777)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    home = machine.home / "a b\nü'\"%d" / ("x" * 120)
    home.mkdir(parents=True)
    one = machine(prepare=prepare, MEMD_HOME=str(home), XDG_RUNTIME_DIR=str(home / "run"))
    live_through_a_day(one)
    assert not Path(Paths(one.environ).socket_dir).exists()


def test_whatever_the_umask_the_user_can_use_the_files_and_nobody_else(machine):
    live_through_a_day(machine(prepare=lambda: os.umask(0o000)))
    for path in machine.home.rglob("*"):
        mode = path.lstat().st_mode & 0o777
        assert mode == (0o700 if path.is_dir() else 0o600), path


def refuse_everything(machine, match):
    """Nothing works; everything says why; the hook is silent."""
    assert machine.hook(START) == b""
    assert machine.hook(PROMPT) == b""
    for words in (["start"], ["serve"], ["mcp"]):
        status, said = machine.memd_forked(*words)
        assert status == 1, words
        assert match in said or words == ["mcp"]
        assert len(said.splitlines()) == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root may do what it must not")
def test_root_with_another_user_s_home_refuses_and_leaves_nothing(machine):
    (machine.home / ".local/state/memd/spool").mkdir(parents=True)
    for path in (machine.home, *machine.home.rglob("*")):
        os.chown(path, 4711, 4711)
    before = files_below(machine.home)
    one = machine()
    refuse_everything(one, "another user")
    for words in (
        ["status"],
        ["stop"],
        ["export"],
        ["doctor"],
        ["doctor", "--fix"],
        ["search", "x"],
    ):
        status, said = one.memd_forked(*words)
        assert status == 1
        assert "sudo -H" in said
    assert files_below(machine.home) == before


@pytest.mark.parametrize("name", ["ghost", "a/b/ghost"])
def test_a_home_that_is_not_there_is_refused_and_not_made(machine, name):
    refuse_everything(machine(HOME=str(machine.home / name)), "home directory does not exist")
    assert files_below(machine.home) == []


def test_a_relative_home_is_refused_and_makes_nothing(machine, tmp_path):
    cwd = tmp_path / "work"
    cwd.mkdir()
    refuse_everything(machine(HOME="here", cwd=cwd), "set HOME or MEMD_HOME")
    assert files_below(cwd) == []

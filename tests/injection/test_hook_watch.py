"""Before a tool runs: the hook asks the daemon only about calls that have the words of a rule, and stores nothing."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from memd import hook
from memd.injection import hook_watch
from memd.paths import Paths
from memd.server.control import PLAIN_REPLY
from tests.test_hook import STORED, daemon, spooled
from tests.test_quick_hook import SCRIPT, SENDER

ROWS = (("git", "push"), ("vendor",))
CALL = {
    "session_id": "s-1", "transcript_path": "/t", "cwd": "/p", "hook_event_name": "PreToolUse",
    "tool_name": "Bash", "tool_input": {"command": "git -C x push"},
}  # fmt: skip
DENIED = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}


@pytest.fixture
def home(tmp_path):
    found = {"HOME": str(tmp_path), "MEMD_HOME": str(tmp_path / "m"), "PATH": os.environ["PATH"]}
    (tmp_path / "send.py").write_text(SENDER)
    patient = tmp_path / "patient"
    patient.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    patient.chmod(0o755)
    return found


@contextmanager
def listening(home, reply):
    """A daemon whose session s-1 has rules."""
    with daemon(home, reply) as heard:
        hook_watch.write_watch(Paths(home).socket, "s-1", ROWS)
        yield heard


def make_command(home, kind):
    if kind == "python":
        return [sys.executable, "-I", "-S", hook.__file__, "PreToolUse"]
    socket, top = Paths(home).socket, Path(home["HOME"])
    send = (sys.executable, "-I", "-S", str(top / "send.py"), socket)
    return ["/bin/sh", str(SCRIPT), f"in:{home['MEMD_HOME']}|", socket, sys.executable, hook.__file__,
            str(top / "patient"), "PreToolUse", *send]  # fmt: skip


@pytest.fixture(params=["shell", "python"])
def ask(home, request):
    def ask(payload, **environ):
        done = subprocess.run(
            make_command(home, request.param), input=json.dumps(payload, separators=(",", ":")).encode(),
            env=home | environ, capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"")
        return json.loads(done.stdout) if done.stdout else None

    return ask


def answer(_):
    return PLAIN_REPLY + json.dumps(DENIED).encode() + b" .\n"


def test_a_call_with_all_words_of_a_row_is_asked_about_and_the_answer_printed(home, ask):
    with listening(home, answer) as heard:
        assert ask(CALL) == DENIED
    said = json.loads(heard[0])
    assert (said["method"], said["params"]["payload"]) == ("memd/guard", CALL)
    assert spooled(home) == []


@pytest.mark.parametrize(
    "payload",
    [
        {**CALL, "tool_input": {"command": "git status"}},
        {**CALL, "session_id": "other"},
        {**CALL, "session_id": "../s-1"},
        {**CALL, "tool_input": {"command": "pushd gitlab"}} | {"session_id": "s-2"},
    ],
    ids=["half of the words", "another session", "no session's name", "a session without rules"],
)
def test_for_any_other_call_the_daemon_hears_nothing(home, ask, payload):
    with listening(home, answer) as heard:
        assert ask(payload) is None
    assert heard == []


def test_a_session_that_the_environment_names_without_rules_is_not_even_read(home):
    plain = {name: value for name, value in home.items() if name != "MEMD_HOME"}
    words = ["in:|" if word.startswith("in:") else word for word in make_command(home, "shell")]
    text = json.dumps(CALL, separators=(",", ":")).encode()
    with listening(home, answer) as heard:
        for session, count in (("none", 0), ("s-1", 1)):
            environ = plain | {"CLAUDE_CODE_SESSION_ID": session}
            done = subprocess.run(words, input=text, env=environ, capture_output=True, timeout=60, check=True)  # fmt: skip
            assert (bool(done.stdout), len(heard)) == (bool(count), count)


@pytest.mark.parametrize("reply", [STORED, b"", b"nonsense\n"])
def test_whatever_is_no_answer_lets_the_call_pass(home, ask, reply):
    with listening(home, lambda _: reply):
        assert ask(CALL) is None
    assert spooled(home) == []


def test_a_daemon_that_is_away_lets_every_call_pass(home, ask):
    hook_watch.write_watch(Paths(home).socket, "s-1", ROWS)
    assert ask(CALL) is None
    assert spooled(home) == []


def test_words_are_written_once_and_go_with_their_session(home):
    socket = Paths(home).socket
    path = Path(hook_watch.find_watch(socket, "s-1"))
    hook_watch.write_watch(socket, "s-1", ROWS)
    assert path.read_text() == "git push\nvendor\n"
    before = path.stat().st_ino
    hook_watch.write_watch(socket, "s-1", ROWS)
    assert path.stat().st_ino == before
    hook_watch.write_watch(socket, "s-1", (("grün", "no-verify"),))
    assert path.read_text() == "no-verify\n"
    hook_watch.write_watch(socket, "../etc", ROWS)
    hook_watch.write_watch(socket, "s-1", ())
    assert list(path.parent.iterdir()) == []
    hook_watch.write_watch(socket, "old", ROWS)
    hook_watch.drop_old(socket, time.time() + 8 * 86_400)
    assert list(path.parent.iterdir()) == []

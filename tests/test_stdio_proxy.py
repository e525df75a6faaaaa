import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from memd import stdio_proxy
from memd.paths import Paths

TIMEOUT_S = 60.0


@pytest.fixture
def home(tmp_path):
    (tmp_path / "run").mkdir(mode=0o700)
    return tmp_path


@pytest.fixture
def door(home):
    """A listening socket where the daemon's would be."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(home / "run" / "memd.sock"))
        listening.listen(5)
        listening.settimeout(TIMEOUT_S)
        yield listening


@pytest.fixture
def start(home):
    started = []

    def begin(*, wait_s=60.0, limits=None, cwd=None, **environ):
        limits = {"WAIT_S": wait_s, **(limits or {})}
        code = f"import sys; from memd import stdio_proxy; vars(stdio_proxy).update({limits}); sys.exit(stdio_proxy.main([]))"
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd or home,
            env={"MEMD_HOME": str(home), "MEMD_START": "0", "PYTHONPATH": os.pathsep.join(sys.path), **environ},
        )  # fmt: skip
        started.append(process)
        return process

    yield begin
    for process in started:
        bury(process)


def bury(process):
    """End a process that a test has started, and close what leads to it."""
    if process.poll() is None:
        process.kill()
    process.wait(TIMEOUT_S)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def accept(door):
    link, _ = door.accept()
    link.settimeout(TIMEOUT_S)
    return link


def read_lines(link, count):
    seen = b""
    while seen.count(b"\n") < count:
        chunk = link.recv(65_536)
        assert chunk, seen
        seen += chunk
    return seen.splitlines()


def test_the_preface_says_who_is_calling(door, start, home):
    session = {"CLAUDE_PROJECT_DIR": '/p/"quoted"\\ä😀', "CLAUDE_CODE_SESSION_ID": "s-1"}
    start(**session)
    with accept(door) as link:
        (line,) = read_lines(link, 1)
        assert json.loads(line) == {
            "memd": 1, "cwd": str(home), "project": '/p/"quoted"\\ä😀', "session": "s-1", "client": "claude-code",
        }  # fmt: skip


def test_the_preface_leaves_out_what_is_unknown(door, start, home):
    start(MEMD_CLIENT="desktop")
    with accept(door) as link:
        assert json.loads(read_lines(link, 1)[0]) == {
            "memd": 1,
            "cwd": str(home),
            "client": "desktop",
        }


def test_lines_go_both_ways_unchanged(door, start):
    process = start()
    with accept(door) as link:
        read_lines(link, 1)
        process.stdin.write(b'{"a": 1}\r\n\xff\x00\nhalf')
        process.stdin.close()
        seen = b""
        while chunk := link.recv(100):
            seen += chunk
        assert seen == b'{"a": 1}\r\n\xff\x00\nhalf'
        link.sendall(b"answer\n")
        assert process.stdout.readline() == b"answer\n"


def test_much_goes_through_in_both_directions_at_once(door, start):
    process = start()
    data = os.urandom(3_000_000) + b"\n"
    with accept(door) as link:
        read_lines(link, 1)
        hands = [
            threading.Thread(target=echo, args=(link,)),
            threading.Thread(target=say, args=(process.stdin, data)),
        ]
        for hand in hands:
            hand.start()
        assert process.stdout.read() == data
        for hand in hands:
            hand.join(TIMEOUT_S)
    assert process.wait(TIMEOUT_S) == 0


def echo(link):
    while chunk := link.recv(65_536):
        link.sendall(chunk)
    link.shutdown(socket.SHUT_WR)


def say(pipe, data):
    pipe.write(data)
    pipe.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_exits_silently_on_a_signal(door, start, number):
    process = start()
    with accept(door) as link:
        read_lines(link, 1)
        process.send_signal(number)
        assert process.wait(TIMEOUT_S) == 0
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")


def test_it_exits_when_its_output_is_closed(door, start):
    process = start()
    with accept(door) as link:
        read_lines(link, 1)
        process.stdout.close()
        link.sendall(b"anybody?\n")
        assert process.wait(TIMEOUT_S) == 0


def test_it_exits_when_its_parent_dies(door, home):
    # The parent leaves a pipe open behind it, so that only its death can be noticed.
    code = (
        "import os, subprocess, sys\n"
        "reads, writes = os.pipe()\n"
        "os.set_inheritable(writes, True)\n"
        "code = 'from memd import stdio_proxy; stdio_proxy.PARENT_S = 0.05; stdio_proxy.main([])'\n"
        "child = subprocess.Popen([sys.executable, '-c', code], stdin=reads, pass_fds=[writes])\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=home,
        env={"MEMD_HOME": str(home), "MEMD_START": "0", "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert int(parent.stdout.readline())
    with accept(door) as link:
        read_lines(link, 1)
        parent.kill()
        assert link.recv(100) == b""
    bury(parent)


def test_without_a_daemon_it_says_so_in_one_line_and_fails(start, home):
    process = start(wait_s=0.1)
    said = process.stderr.read().decode()
    assert process.wait(TIMEOUT_S) == 1
    assert said.startswith("memd is not running (nothing answers at ")
    assert said.count("\n") == 1
    assert not (home / "state").exists()


@pytest.mark.parametrize("how", ["variable", "directory"])
def test_an_agent_that_memd_has_started_gets_no_memory(door, start, home, how):
    here = home / "state" / "writer" / "default"
    here.mkdir(parents=True)
    environ = {"MEMD_DISABLE": "1"} if how == "variable" else {}
    process = start(cwd=home if how == "variable" else here, **environ)
    said = process.stderr.read().decode()
    assert process.wait(TIMEOUT_S) == 1
    assert said == "memd is switched off for this program (MEMD_DISABLE=1)\n"
    door.settimeout(0)
    with pytest.raises(BlockingIOError):
        door.accept()


def test_a_variable_that_is_zero_switches_nothing_off(door, start):
    start(MEMD_DISABLE="0")
    accept(door).close()


def test_it_waits_for_a_daemon_that_is_starting(start, home):
    process = start()
    time.sleep(0.3)
    with socket.socket(socket.AF_UNIX) as late:
        late.bind(str(home / "run" / "memd.sock"))
        late.listen(1)
        late.settimeout(TIMEOUT_S)
        with accept(late) as link:
            read_lines(link, 1)
            process.stdin.close()
            assert link.recv(100) == b""
    assert process.wait(TIMEOUT_S) == 0


FAKE_DAEMON = """
import json, os, socket, sys
path = os.path.join(os.environ["MEMD_HOME"], "run", "memd.sock")
link = socket.socket(socket.AF_UNIX)
link.bind(path)
link.listen(1)
fds = [int(name) for name in os.listdir("/dev/fd")]
told = {
    "argv": sys.argv[1:], "cwd": os.getcwd(), "vault": os.environ["MEMD_VAULT"], "sid": os.getsid(0) == os.getpid(),
    "out": os.readlink("/proc/self/fd/1") if sys.platform == "linux" else os.devnull,
    "fds": [fd for fd in fds if fd > 2 and fd != link.fileno()],
}
print("a word", file=sys.stderr, flush=True)
link.settimeout(60)
client, _ = link.accept()
client.settimeout(60)
client.sendall(json.dumps(told).encode() + b"\\n")
refusal = {"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "no"}}
client.sendall(json.dumps(refusal).encode() + b"\\n")
while client.recv(100):
    pass
"""


def fake_package(home):
    """A directory with a `memd` that only says how its daemon was started."""
    fake = home / "fake" / "memd"
    fake.mkdir(parents=True)
    real = Path(stdio_proxy.__file__).parent
    for name in ("__init__.py", "stdio_proxy.py", "mcp_relay.py", "launcher.py", "paths.py"):
        (fake / name).write_text((real / name).read_text(encoding="utf-8"), encoding="utf-8")
    (fake / "__main__.py").write_text(FAKE_DAEMON, encoding="utf-8")
    return fake.parent


def test_it_starts_a_detached_daemon(start, home):
    fake = fake_package(home)
    # Modules that a hostile directory might hold are never looked at.
    (home / "json.py").write_text("raise SystemExit('hostile')", encoding="utf-8")
    process = start(MEMD_START="1", PYTHONPATH=str(fake), PYTHONSAFEPATH="1")
    told = json.loads(process.stdout.readline())
    process.stdin.close()
    assert process.wait(TIMEOUT_S) == 0
    assert told["argv"] == ["serve"]
    assert (told["cwd"], told["vault"], told["sid"]) == ("/", "default", True)
    assert told["out"] == os.devnull
    assert len(told["fds"]) <= 2  # the claim of the start, and the listing's own
    assert (home / "state" / "memd.log").read_text(encoding="utf-8") == "a word\n"
    assert (home / "state" / "memd.log").stat().st_mode & 0o777 == 0o600


def test_it_loads_nothing_heavy():
    code = "import sys, memd.stdio_proxy; print(*sorted(sys.modules))"
    environ = {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if "site-packages" not in path)
    }
    told = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, check=True, env=environ, text=True
    )
    assert not {"asyncio", "json", "subprocess", "argparse", "pathlib", "typing", "re"} & set(
        told.stdout.split()
    )


# ── A daemon that goes away ──────────────────────────────────────────────────────────────────────

HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
WELCOME = {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-11-25"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(number):
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "mem_get"}}


def answer(number):
    return {"jsonrpc": "2.0", "id": number, "result": {"content": []}}


def write(process, *messages):
    process.stdin.write(b"".join(json.dumps(one).encode() + b"\n" for one in messages))
    process.stdin.flush()


def send(link, *messages):
    link.sendall(b"".join(json.dumps(one).encode() + b"\n" for one in messages))


def hear(process):
    return json.loads(process.stdout.readline())


class Link:
    """The daemon's end of one connection, with what it has received."""

    def __init__(self, door):
        self.socket = accept(door)
        self._file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._file.close()
        self.socket.close()

    def hear(self, count=1):
        """The next messages; None at the end."""
        lines = [self._file.readline() for _ in range(count)]
        return [json.loads(one) if one else None for one in lines]

    def greet(self):
        """Take the preface and the handshake that follows, and answer it."""
        preface, hello = self.hear(2)
        assert preface["memd"] == 1
        assert hello == HELLO
        send(self.socket, WELCOME)
        return preface


def begin(door, process):
    """A session: its handshake and one call."""
    link = Link(door)
    write(process, HELLO)
    preface = link.greet()
    assert hear(process) == WELCOME
    write(process, INITIALIZED, call(1))
    assert link.hear(2) == [INITIALIZED, call(1)]
    send(link.socket, answer(1))
    assert hear(process) == answer(1)
    return link, preface


def is_refused(message, number, words):
    assert message["id"] == number
    assert message["error"]["data"]["retryable"] is True
    assert words in message["error"]["message"], message
    return True


def test_a_session_goes_on_with_the_next_daemon_as_the_same_caller(door, start):
    process = start(CLAUDE_CODE_SESSION_ID="s-1")
    link, preface = begin(door, process)
    for number in range(2, 22):
        link.close()
        link = Link(door)
        assert link.greet() == preface
        write(process, call(number))
        assert link.hear(2) == [INITIALIZED, call(number)]
        send(link.socket, answer(number))
        assert hear(process) == answer(number)
    link.close()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_restarts_leave_no_descriptor_behind(door, start):
    process = start()
    link, _ = begin(door, process)
    before = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
    for _ in range(20):
        link.close()
        link = Link(door)
        link.greet()
        assert link.hear() == [INITIALIZED]
    assert len(list(Path(f"/proc/{process.pid}/fd").iterdir())) == before
    link.close()


def test_half_a_line_of_a_dying_daemon_never_reaches_the_client(door, start):
    process = start()
    link, _ = begin(door, process)
    write(process, call(2), call(3))
    link.hear(2)
    send(link.socket, answer(2))
    link.socket.sendall(b'{"jsonrpc":"2.0","id":3,"result":{"con')
    link.close()
    assert hear(process) == answer(2)
    assert is_refused(hear(process), 3, "call again")
    with Link(door) as link:
        link.greet()
        write(process, call(4))
        assert link.hear(2) == [INITIALIZED, call(4)]
        send(link.socket, answer(4))
        assert hear(process) == answer(4)


def test_a_call_that_was_only_half_sent_reaches_the_next_daemon(door, start):
    process = start()
    link, _ = begin(door, process)
    long = call(2) | {"params": {"text": "x" * 3_000_000}}
    writing = threading.Thread(target=write, args=(process, long))
    writing.start()
    # More than the socket holds: the rest is still with the proxy when the daemon ends.
    assert link.socket.recv(1)
    link.close()
    writing.join(TIMEOUT_S)
    with Link(door) as link:
        link.greet()
        assert link.hear(2) == [INITIALIZED, long]
        send(link.socket, answer(2))
        assert hear(process) == answer(2)


def test_a_call_waits_for_a_daemon_only_so_long(door, start, home):
    process = start(limits={"QUEUE_S": 0.2})
    link, _ = begin(door, process)
    door.close()
    link.close()
    for number in (2, 3, 4):
        write(process, call(number))
        assert is_refused(hear(process), number, "memd is not running (nothing answers at ")
    with socket.socket(socket.AF_UNIX) as late:
        (home / "run" / "memd.sock").unlink()
        late.bind(str(home / "run" / "memd.sock"))
        late.listen(5)
        late.settimeout(TIMEOUT_S)
        # No call is needed for it to be found.
        with Link(late) as link:
            link.greet()
            assert link.hear() == [INITIALIZED]


def test_a_daemon_that_does_not_answer_the_handshake_is_not_waited_for(door, start):
    process = start(limits={"QUEUE_S": 0.2})
    link, _ = begin(door, process)
    link.close()
    with Link(door) as link:
        assert link.hear(2)[1] == HELLO
        write(process, call(2))
        assert is_refused(hear(process), 2, "memd does not answer")
        send(link.socket, WELCOME)
        write(process, call(3))
        assert link.hear(2) == [INITIALIZED, call(3)]


def test_a_daemon_that_works_on_a_call_is_waited_for_as_long_as_it_answers_pings(door, start):
    process = start(limits={"SILENCE_S": 0.2})
    link, _ = begin(door, process)
    write(process, call(2))
    assert link.hear() == [call(2)]
    for _ in range(3):
        with Link(door) as probe:
            (ping,) = probe.hear()
            assert ping["method"] == "memd/ping"
            send(probe.socket, answer(ping["id"]))
            assert probe.hear() == [None]
    send(link.socket, answer(2))
    assert hear(process) == answer(2)
    link.close()


def test_a_daemon_that_answers_no_ping_fails_what_it_was_asked_and_is_asked_anew_when_it_wakes(
    door, start
):
    process = start(limits={"SILENCE_S": 0.2, "QUEUE_S": 0.2})
    link, _ = begin(door, process)
    write(process, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, call(3))
    link.hear(2)
    for number, done in ((3, "unknown"), (2, "no")):
        message = hear(process)
        assert is_refused(message, number, "memd does not answer")
        assert "`memd status`" in message["error"]["message"]
        assert message["error"]["data"]["done"] == done
    assert link.hear() == [None]
    link.close()
    with Link(door) as probe, Link(door) as link:
        assert probe.hear()[0]["method"] == "memd/ping"
        write(process, call(4))
        assert is_refused(hear(process), 4, "memd does not answer")
        link.greet()
        write(process, call(5))
        assert link.hear(2) == [INITIALIZED, call(5)]
        send(link.socket, answer(5))
        assert hear(process) == answer(5)


def test_a_client_that_leaves_while_no_daemon_runs_is_not_kept_waiting(door, start):
    process = start()
    link, _ = begin(door, process)
    door.close()
    link.close()
    write(process, call(2))
    process.stdin.close()
    assert is_refused(hear(process), 2, "memd is not running")
    assert process.stdout.read() == b""
    assert process.wait(TIMEOUT_S) == 0


def test_a_client_that_leaves_during_the_greeting_is_not_kept_waiting(door, start):
    process = start()
    link, _ = begin(door, process)
    link.close()
    with Link(door) as link:
        link.hear(2)
        process.stdin.close()
        assert link.hear() == [None]
        assert process.wait(TIMEOUT_S) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_no_daemon_runs(door, start, number):
    process = start()
    link, _ = begin(door, process)
    door.close()
    link.close()
    process.send_signal(number)
    assert process.wait(TIMEOUT_S) == 0
    assert process.stderr.read() == b""


def test_a_daemon_that_does_not_continue_the_session_ends_the_proxy(door, start):
    process = start()
    link, _ = begin(door, process)
    link.close()
    with Link(door) as link:
        link.hear(2)
        write(process, call(2))
        refusal = {"jsonrpc": "2.0", "id": 0, "error": {"code": -32602, "message": "no"}}
        send(link.socket, refusal)
        said = process.stdout.read().splitlines()
    assert process.wait(TIMEOUT_S) == 1
    assert all(is_refused(json.loads(one), 2, "connect to it again") for one in said)
    assert b"does not continue this session" in process.stderr.read()


# ── Who starts the next one ──────────────────────────────────────────────────────────────────────


def go_away(door, link, home, *, has_vault=True):
    """The daemon dies, and leaves its socket's file and a vault."""
    if has_vault:
        (home / "vaults").mkdir(mode=0o700)
        (home / "vaults" / "default.db").touch()
    door.close()
    link.close()
    (home / "run" / "memd.sock").unlink()


def test_a_daemon_that_died_is_started_by_the_next_call(door, start, home):
    fake = fake_package(home)
    process = start(MEMD_START="1", PYTHONPATH=str(fake), limits={"START_AFTER_S": 0})
    link, _ = begin(door, process)
    go_away(door, link, home)
    assert not (home / "state").exists()
    write(process, call(2))
    # This daemon refuses the handshake.
    told = hear(process)
    assert is_refused(told, 2, "connect to it again")
    assert process.wait(TIMEOUT_S) == 1


def test_a_daemon_that_was_stopped_on_purpose_is_not_started(door, start, home):
    fake = fake_package(home)
    limits = {"START_AFTER_S": 0, "STOPPED_S": 0.1}
    process = start(MEMD_START="1", PYTHONPATH=str(fake), limits=limits)
    link, _ = begin(door, process)
    (home / "state").mkdir(mode=0o700)
    (home / "state" / "stopped").touch()
    go_away(door, link, home)
    for number in (2, 3):
        write(process, call(number))
        words = "memd was stopped; run `memd start`, then call again"
        assert is_refused(hear(process), number, words)
    assert not (home / "state" / "memd.log").exists()


def test_a_vault_that_is_gone_is_not_made_anew(door, start, home):
    fake = fake_package(home)
    limits = {"START_AFTER_S": 0, "QUEUE_S": 0.2}
    process = start(MEMD_START="1", PYTHONPATH=str(fake), limits=limits)
    link, _ = begin(door, process)
    go_away(door, link, home, has_vault=False)
    (home / "run").rmdir()
    write(process, call(2))
    assert is_refused(hear(process), 2, "memd is not running")
    assert not (home / "state").exists()
    assert not (home / "vaults").exists()


def test_a_daemon_that_cannot_start_is_said_so_and_not_started_by_every_call(door, start, home):
    fake = fake_package(home)
    (fake / "memd" / "__main__.py").write_text("raise SystemExit('broken')", encoding="utf-8")
    process = start(MEMD_START="1", PYTHONPATH=str(fake), limits={"START_AFTER_S": 0})
    link, _ = begin(door, process)
    go_away(door, link, home)
    for number in (2, 3, 4):
        write(process, call(number))
        assert is_refused(hear(process), number, "memd does not start; run `memd doctor`")
    assert (home / "state" / "memd.log").read_text(encoding="utf-8") == "broken\n"


@pytest.mark.parametrize(
    ("is_needed", "gap_s"), [(True, 1.0), (False, stdio_proxy.PARENT_S)], ids=["a call", "idle"]
)
def test_a_daemon_that_stays_away_is_looked_for_once_a_second_at_most(
    home, monkeypatch, is_needed, gap_s
):
    finder = stdio_proxy._DaemonFinder(Paths({"MEMD_HOME": str(home)}))
    looks = []
    monkeypatch.setattr(finder, "_connect", lambda: looks.append(finder._next_at))
    finder.note_loss(0.0)
    for _ in range(40):
        finder.find(finder._next_at, is_needed=is_needed)
    gaps = [later - sooner for sooner, later in itertools.pairwise(looks)][30:]
    assert gaps == pytest.approx([gap_s] * len(gaps))


def test_a_daemon_that_comes_back_late_is_given_time_to_answer_but_once(home):
    finder = stdio_proxy._DaemonFinder(Paths({"MEMD_HOME": str(home)}))
    finder.note_loss(100.0)
    assert finder.give_up_at() == 100.0 + stdio_proxy.QUEUE_S
    finder.note_link(150.0)
    assert finder.give_up_at() == 150.0 + stdio_proxy.QUEUE_S
    finder.note_link(160.0)  # the first one has closed the connection
    assert finder.give_up_at() == 150.0 + stdio_proxy.QUEUE_S
    finder.note_success()
    finder.note_loss(300.0)
    assert finder.give_up_at() == 300.0 + stdio_proxy.QUEUE_S

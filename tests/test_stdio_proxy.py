import contextlib
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

    def begin(*, wait_s=60.0, **environ):
        code = f"import sys; from memd import stdio_proxy; stdio_proxy.WAIT_S = {wait_s}; sys.exit(stdio_proxy.main([]))"
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=home,
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


def test_bytes_go_both_ways_unchanged(door, start):
    process = start()
    with accept(door) as link:
        read_lines(link, 1)
        process.stdin.write(b'{"a":1}\n\xff\x00half')
        process.stdin.flush()
        assert link.recv(100) == b'{"a":1}\n\xff\x00half'
        link.sendall(b"answer\n")
        assert process.stdout.readline() == b"answer\n"


def test_answers_still_arrive_after_the_client_has_closed_its_side(door, start):
    process = start()
    with accept(door) as link:
        read_lines(link, 1)
        process.stdin.write(b"question\n")
        process.stdin.close()
        seen = b""
        while chunk := link.recv(100):
            seen += chunk
        assert seen == b"question\n"
        link.sendall(b"late answer\n" * 10_000)
    assert process.stdout.read() == b"late answer\n" * 10_000
    assert process.wait(TIMEOUT_S) == 0
    assert process.stderr.read() == b""


def test_much_goes_through_in_both_directions_at_once(door, start):
    process = start()
    data = os.urandom(3_000_000)
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


def test_it_exits_with_the_daemon_and_delivers_its_last_line(door, start):
    process = start()
    with accept(door) as link:
        read_lines(link, 1)
        link.sendall(b"last words\n")
    assert process.stdout.read() == b"last words\n"
    assert process.wait(TIMEOUT_S) == 0


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


def test_it_waits_for_a_daemon_that_is_starting(start, home):
    process = start()
    time.sleep(0.3)
    with socket.socket(socket.AF_UNIX) as late:
        late.bind(str(home / "run" / "memd.sock"))
        late.listen(1)
        late.settimeout(TIMEOUT_S)
        with accept(late) as link:
            read_lines(link, 1)
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
client, _ = link.accept()
client.sendall(json.dumps(told).encode() + b"\\n")
"""


def test_it_starts_a_detached_daemon(start, home):
    # A `memd` package that only says how it was started stands before the real one on the path.
    fake = home / "fake" / "memd"
    fake.mkdir(parents=True)
    real = Path(stdio_proxy.__file__).parent
    for name in ("__init__.py", "stdio_proxy.py", "launcher.py", "paths.py"):
        (fake / name).write_text((real / name).read_text(encoding="utf-8"), encoding="utf-8")
    (fake / "__main__.py").write_text(FAKE_DAEMON, encoding="utf-8")
    # Modules that a hostile directory might hold are never looked at.
    (home / "json.py").write_text("raise SystemExit('hostile')", encoding="utf-8")
    process = start(MEMD_START="1", PYTHONPATH=str(fake.parent), PYTHONSAFEPATH="1")
    told = json.loads(process.stdout.readline())
    assert process.wait(TIMEOUT_S) == 0
    assert told["argv"] == ["serve"]
    assert (told["cwd"], told["vault"], told["sid"]) == ("/", "default", True)
    assert told["out"] == os.devnull
    assert len(told["fds"]) <= 2  # the claim of the start, and the listing's own
    assert (home / "state" / "memd.log").read_text(encoding="utf-8") == "a word\n"
    assert (home / "state" / "memd.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("argv", "vault"),
    [([], None), (["--vault", "work"], "work"), (["--vault=work"], "work"), (["--vault"], None)],
    ids=["none", "two words", "one word", "half"],
)
def test_a_vault_can_be_named(argv, vault):
    assert stdio_proxy._find_vault(argv) == vault


def test_an_invalid_vault_name_is_an_error(home):
    told = subprocess.run(
        [sys.executable, "-m", "memd.stdio_proxy", "--vault=../x"],
        capture_output=True, check=False, timeout=TIMEOUT_S,
        env={"MEMD_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert told.returncode == 1
    assert b"a vault's name is" in told.stderr


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

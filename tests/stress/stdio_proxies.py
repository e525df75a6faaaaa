"""`memd mcp` processes by the dozen whose clients are killed, close or leave them orphaned. Started by clients.py."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import harness
from tests.stress import attacks

_GONE_S = 60.0
"""How long a proxy may outlive its client: it looks for its parent every five seconds."""


def wait_until(holds: Callable[[], bool], seconds: float) -> bool:
    """Whether this came to hold within this time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


_PARENT = """
import subprocess, sys
children = [
    subprocess.Popen([sys.executable, "-I", "-m", "memd", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for _ in range({each})
]
for child in children:
    child.stdin.write({hello!r})
    child.stdin.flush()
    child.stdout.readline()
if {is_held}:
    # Somebody else has the other ends of the pipes: only the parent's death can be noticed.
    ends = [end.fileno() for child in children for end in (child.stdin, child.stdout)]
    children.append(subprocess.Popen(["sleep", "60"], pass_fds=ends, stdout=subprocess.DEVNULL))
print(*(child.pid for child in children), flush=True)
sys.stdin.read()
"""


def leftovers(daemon: harness.Daemon, each: int, *, is_held: bool = True) -> list[str]:
    """`memd mcp` processes that are killed, whose client closes, whose parent is killed; what is left of them.

    With `is_held` the pipes of the orphans stay open, which takes five seconds longer.
    """
    hello = attacks.line("initialize", attacks.HELLO)
    started = [_start_proxy(daemon, hello) for _ in range(2 * each)]
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT.format(each=each, hello=hello, is_held=is_held)],
        env=daemon.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert parent.stdout is not None
    children = [int(one) for one in parent.stdout.readline().split()]
    orphans = children[:each]
    for process in started[:each]:
        process.kill()
    for process in started[each:]:
        assert process.stdin is not None
        process.stdin.close()
    parent.kill()
    parent.wait()
    wrong = []
    if not wait_until(lambda: all(one.poll() is not None for one in started), _GONE_S):
        wrong.append("a proxy whose client has closed is still there")
    if not wait_until(lambda: not any(map(_lives, orphans)), _GONE_S):
        wrong.append("a proxy whose parent was killed is still there")
    for child in children[each:]:
        os.kill(child, signal.SIGKILL)
    for process in (*started, parent):
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
    return wrong


def _start_proxy(daemon: harness.Daemon, hello: bytes) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "memd", "mcp"],
        env=daemon.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(hello)
    process.stdin.flush()
    json.loads(process.stdout.readline())
    return process


def _lives(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"

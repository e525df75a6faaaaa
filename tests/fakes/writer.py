# ruff: noqa: T201  # printing is what this program is for
"""A program for `distill.writer = "command"`: reads a prompt, notes what it was given, and does what a test wants.

python writer.py NOTES WHAT [REPLY]
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PARAGRAPH = "A line that fills the pipe.\n"


def main(notes, what, reply=""):
    prompt = "" if what == "deaf" else sys.stdin.read()
    note(notes, prompt=prompt, pid=os.getpid(), cwd=str(Path.cwd()), files=[one.name for one in Path().iterdir()],
         environ=dict(os.environ), argv=sys.argv)  # fmt: skip
    return globals()[f"be_{what}"](notes, reply) or 0


def note(path, **fields):
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(fields) + "\n")


def be_good(_, reply):
    Path("left-behind.txt").touch()
    print(reply)


def be_deaf(_, reply):
    print(reply)


def be_slow(_, __):
    time.sleep(600)


def be_stubborn(notes, _):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    note(notes, deaf=True)
    time.sleep(600)


def be_crashing(_, reply):
    print("half of {", flush=True)
    print("first line\n" + reply, file=sys.stderr)
    return 3


def be_killed(_, __):
    os.kill(os.getpid(), signal.SIGSEGV)


def be_endless(_, __):
    while True:
        sys.stdout.write(PARAGRAPH)


def be_noisy(_, reply):
    """Far more on stderr than a pipe holds, then a good reply."""
    for _ in range(20_000):
        sys.stderr.write(PARAGRAPH)
    print(reply)


def be_parent(notes, reply):
    """Leave a child behind that holds the pipes."""
    stay(notes, is_in_group=True)
    print(reply)


def be_daemonizing(notes, reply):
    """Leave a child behind that holds the pipes and has left the process group."""
    stay(notes, is_in_group=False)
    print(reply)


def stay(notes, *, is_in_group):
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=not is_in_group
    )
    note(notes, child=child.pid)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))

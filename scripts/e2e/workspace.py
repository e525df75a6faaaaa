"""What an end-to-end story plays on: a small project, memd as its user would call it, and a list of checks.

Not here: the agent's client, and what happens in the story.
"""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from memd.paths import Paths

WAIT_S = 20.0
RUN_S = 240.0
TOO_LATE = 124


class Over(Exception):
    """What comes after would make no sense; the checks so far tell why."""


class Report:
    """The checks, printed as they come: `ok   what`, or `FAIL what: why`."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed: list[str] = []

    def act(self, title: str) -> None:
        """Begin another part."""
        print(f"\n── {title}", flush=True)

    def check(self, what: str, holds: object, why: object = "") -> bool:
        """Note whether it holds; `why` is printed if it does not."""
        if holds:
            self.passed += 1
            print(f"ok   {what}", flush=True)
        else:
            self.failed.append(what)
            print(f"FAIL {what}" + (f": {why}" if str(why) else ""), flush=True)
        return bool(holds)

    def note(self, what: str) -> None:
        """Something worth knowing that is neither right nor wrong."""
        print(f"     {what}", flush=True)

    def over(self, what: str, why: object = "") -> NoReturn:
        """Fail for good."""
        self.check(what, holds=False, why=why)
        raise Over


class Memd:
    """memd in that home, from a shell that stands in the project."""

    def __init__(self, environ: dict[str, str], project: Path) -> None:
        self.program = Path(sys.executable).parent / "memd"
        self.paths = Paths(environ)
        self._environ = environ
        self._project = project

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One command, whatever comes of it."""
        return run([str(self.program), *words], self._environ, self._project)

    def json_of(self, *words: str) -> Any:
        """What a command with `--json` says; None if it says nothing that can be read."""
        try:
            return json.loads(self.run(*words, "--json").stdout)
        except ValueError:
            return None

    def status(self) -> dict[str, Any]:
        """How memd is."""
        status: dict[str, Any] = self.json_of("status") or {}
        return status

    def settle(self) -> bool:
        """Wait until everything that was captured can be found; False if that takes too long."""
        return waited_for(self._is_settled)

    def _is_settled(self) -> bool:
        status = self.status()
        if not status.get("running"):
            return False
        waiting = status["events"]["pending"] + status["summaries"]["to_index"]
        # A transcript is read once more after two seconds; what is written then is lost to a daemon that stops before.
        waiting += sum(room["due"] for room in status["rooms"] if room["name"] == "follower")
        return not waiting and not status["spool"]["bytes"]


def run(
    words: list[str], environ: dict[str, str], directory: Path
) -> subprocess.CompletedProcess[str]:
    """One program to its end; 124, as `timeout` says it, if that does not come."""
    try:
        return subprocess.run(
            words, env=environ, cwd=directory, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=RUN_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        late = f"no end after {RUN_S:.0f} s"
        return subprocess.CompletedProcess(words, TOO_LATE, "", late)


def waited_for(condition: Callable[[], bool], wait_s: float = WAIT_S) -> bool:
    """Whether it became true in good time."""
    deadline = time.monotonic() + wait_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def repository(directory: Path, files: dict[str, str]) -> None:
    """Make a git repository with these files in one commit."""
    directory.mkdir()
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
    settings = ("user.name=E2E", "user.email=e2e@localhost", "commit.gpgsign=false")
    flags = [word for one in settings for word in ("-c", one)]
    git = shutil.which("git") or "git"
    for words in (("init", "-q"), ("add", "."), (*flags, "commit", "-q", "-m", "A ledger")):
        subprocess.run([git, *words], cwd=directory, check=True, capture_output=True)

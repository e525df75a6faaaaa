"""Hostile directories and environments: nothing changes, hangs or moves a terminal.

Each part returns what went wrong, in words.
"""

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from memd.capture.project import resolve_project
from tests.stress.intrusion import SPARSE, careless_user, start_without_umask
from tests.stress.support import as_event

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\u2066 evil"


def _hostile(top: Path) -> Iterator[Path]:
    """Make directories that mean harm, and name each."""
    names = [
        "two\nlines",
        _EVIL,
        "quo\"t'es$(reboot)`x`",
        "n" * 255,
        "..  ",
        "-rf",
        "\u202egnp",
    ]
    raw = [os.fsencode(name) for name in names] + [b"not\xff\xfeutf-8"]
    for name in raw:
        path = Path(os.fsdecode(os.fsencode(top) + b"/" + name))
        path.mkdir()
        yield path
    targets = ("/", "/dev", "../pipes", ".", "\x00", "/x" * 3000)
    for n, target in enumerate(targets):
        path = top / f"git-{n}"
        path.mkdir()
        (path / ".git").write_text(f"gitdir: {target}", encoding="utf-8")
        yield path
    pipes = top / "pipes"
    pipes.mkdir()
    for name in ("commondir", "gitdir", "HEAD", "config"):
        os.mkfifo(pipes / name)
    links = {"loop": ".git", "null": "/dev/zero", "up": "..", "pipe": "../pipes/HEAD"}
    for name, target in links.items():
        path = top / f"link-{name}"
        path.mkdir()
        (path / ".git").symlink_to(target)
        yield path
    huge, repository = top / "huge", top / "repository"
    huge.mkdir()
    (repository / ".git").mkdir(parents=True)
    for file in (huge / ".git", repository / ".git" / "config", repository / ".gitignore"):
        with file.open("wb") as opened:
            opened.truncate(SPARSE)
    yield from (huge, repository)
    deep = top / "deep"
    for _ in range(60):
        deep /= "d" * 30
    deep.mkdir(parents=True)
    yield deep


def _state(top: Path) -> list[tuple[str, int, int, int]]:
    found = [(p, p.lstat()) for p in sorted(top.rglob("*"))]
    return [(str(p), s.st_mode, s.st_size, s.st_mtime_ns) for p, s in found]


_COMMANDS = (
    "search fox --project all", "search fox --project all --scores", "timeline --project all",
    "project list", "get 1", "why 1", "why 1 --graph", "status", "doctor", "consolidate --dry-run",
    "forget --query fox --dry-run",
)  # fmt: skip


def projects(commands: Sequence[str] = _COMMANDS) -> list[str]:
    """Sessions in hostile directories: nothing there changes or is waited for, no terminal is moved."""
    wrong: list[str] = []
    with careless_user() as (home, daemon):
        (home / "p").mkdir()
        hostile = list(_hostile(home / "p"))
        before = _state(home / "p")
        start_without_umask(daemon)
        slowest = 0.0
        for n, directory in enumerate(hostile):
            began = time.monotonic()
            resolve_project(str(directory))
            name = os.fsencode(directory).decode("utf-8", "replace")
            with daemon.client() as client:
                client.call("memd/capture", {"events": _turn(n, name)})
            slowest = max(slowest, time.monotonic() - began)
        daemon.settle()
        for command in commands:
            done = daemon.run(*command.split())
            text = (done.stdout + done.stderr).decode("utf-8", "replace")
            if found := _CONTROL.search(text):
                near = text[max(0, found.start() - 30) : found.end() + 10]
                wrong.append(f"memd {command} printed {near!r}")
            if "Traceback" in text or done.returncode not in {0, 1}:
                wrong.append(f"memd {command}: {text[-200:]}")
        if _state(home / "p") != before:
            wrong.append("a hostile directory was changed")
        print(f"  {len(hostile)} directories, the slowest took {slowest * 1000:.0f} ms")
    return wrong


def _turn(n: int, directory: str) -> list[dict[str, Any]]:
    base = {"session_id": f"evil-{n}{_EVIL}", "cwd": directory, "transcript_path": directory}
    base["prompt_id"] = f"p{n}"
    said = f"We decided that the fox {n} jumps because of {_EVIL}"
    prompt = f"why did the fox jump {n}? {_EVIL}"
    return [
        as_event({**base, "hook_event_name": "UserPromptSubmit", "prompt": prompt}),
        as_event({**base, "hook_event_name": "Stop", "last_assistant_message": said}),
    ]


def environments() -> list[str]:
    """Hostile environments: one line that says what is wrong, and no control characters."""
    wrong: list[str] = []
    with careless_user() as (home, daemon):
        (home / "m").mkdir(mode=0o700)
        (home / "m" / "config.toml").write_text('[daemon]\nlog_level = "\x1b[31m"', "utf-8")
        for change in (
            {},
            {"MEMD_VAULT": "../../etc/passwd"},
            {"MEMD_VAULT": _EVIL},
            {"MEMD_HOME": f"{home}/{_EVIL}\n"},
            {"MEMD_HOME": f"{home}/{'x' * 300}"},
            {"MEMD_HOME": "/dev/null"},
            {"HOME": "relative", "MEMD_HOME": ""},
            {
                "PYTHONSTARTUP": "/dev/zero",
                "LANG": "xx_XX.ASCII",
                "LC_ALL": "C",
                "PYTHONUTF8": "0",
            },
        ):
            for words in (["status"], ["search", "fox"], ["hook", "Stop"]):
                done = daemon.run(*words, given=b'{"hook_event_name": "Stop"}', **change)
                text = (done.stdout + done.stderr).decode("utf-8", "replace")
                if "Traceback" in text or _CONTROL.search(text):
                    wrong.append(f"{change} {words[0]}: {text[-160:]!r}")
                if words[0] == "hook" and (done.returncode or text):
                    wrong.append(f"{change}: the hook printed something: {text[-160:]!r}")
    print("  8 environments")
    return wrong


PARTS: dict[str, Callable[[], list[str]]] = {"projects": projects, "environments": environments}
"""Each prints what it looked at, and returns what was wrong."""

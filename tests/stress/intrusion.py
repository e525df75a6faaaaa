"""Tricks at memd's socket and files: another user, planted links, a squatted socket.

Each part is a function that returns what was not as promised, in words; an empty list is success.
Another user is a process of uid 65534, so those parts want root; without it they look at the modes alone.
"""

import contextlib
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import harness
from memd.capture.project import resolve_project
from memd.paths import Paths
from tests.stress.support import as_event, wait_until

NOBODY = 65534
_COMMAND_S = 60.0
SPARSE = 1 << 30
_PRECIOUS = "precious\n"
_COMMON = 0o644
_READ = """
import os, sys
read = []
for top, _, names in os.walk(sys.argv[1]):
    for name in names:
        try:
            open(os.path.join(top, name), "rb").close()
            read.append(name)
        except OSError:
            pass
print(*read)
"""
_CALL = """
import json, socket, sys
link = socket.socket(socket.AF_UNIX); link.settimeout(5)
try:
    link.connect(sys.argv[1])
    try:
        link.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "memd/status", "params": {}}).encode() + b"\\n")
    except BrokenPipeError:
        pass  # it has answered already
    print(link.recv(65536).decode())
except OSError as error:
    print(type(error).__name__)
"""
_HASTY_PROXY = "from memd import stdio_proxy; stdio_proxy.WAIT_S = 0.5; stdio_proxy.main()"
_SQUAT = """
import socket, sys
server = socket.socket(socket.AF_UNIX); server.bind(sys.argv[1]); server.listen(); print("ready", flush=True)
while True:
    link, _ = server.accept(); link.settimeout(2); said = b""
    try:
        while block := link.recv(65536):
            said += block
    except OSError:
        pass
    print(len(said), flush=True)
"""


@contextlib.contextmanager
def careless_user() -> Iterator[tuple[Path, harness.Daemon]]:
    """A home that everyone may enter, and a daemon for it that is not started."""
    with tempfile.TemporaryDirectory(prefix="memd-trick-") as name:
        home = Path(name)
        home.chmod(0o755)
        daemon = harness.Daemon(str(home / "m"))
        daemon.environ["HOME"] = name
        try:
            yield home, daemon
        finally:
            daemon.stop()


def start_without_umask(daemon: harness.Daemon) -> None:
    """Start a daemon whose files would be open to everyone if it did not care."""
    before = os.umask(0)
    try:
        daemon.start()
    finally:
        os.umask(before)


def _as_nobody(program: str, *words: str) -> str:
    done = subprocess.run(
        ["/usr/bin/env", "python3", "-c", program, *words], user=NOBODY, group=NOBODY,
        extra_groups=[], capture_output=True, text=True, timeout=_COMMAND_S, cwd="/", check=False,
    )  # fmt: skip
    return done.stdout.strip() or done.stderr.strip()


def strangers() -> list[str]:
    """Without a umask, with all that memd makes: modes; what another uid can open; the peer check."""
    wrong: list[str] = []
    with careless_user() as (home, daemon):
        prompt = {"session_id": "s", "hook_event_name": "Stop", "cwd": "/home/dev"}
        daemon.run("hook", "Stop", given=json.dumps(prompt).encode(), umask=0)
        start_without_umask(daemon)
        for words in ("remember fox", f"export {daemon.home}/out.jsonl", "backup"):
            daemon.run(*words.split(), umask=0)
        daemon.settle()
        made = [Path(daemon.home), *Path(daemon.home).rglob("*")]
        for path in made:
            mode = stat.S_IMODE(path.lstat().st_mode)
            if mode & 0o077 and not path.is_symlink():
                wrong.append(f"{path.relative_to(home)} has mode {mode:04o}")
        if os.getuid() == 0:
            wrong += _another_uid(daemon, made)
        print(f"  {len(made)} files and directories looked at")
    return wrong


def _another_uid(daemon: harness.Daemon, made: Sequence[Path]) -> list[str]:
    wrong = []
    if read := _as_nobody(_READ, daemon.home):
        wrong.append(f"another user read {read}")
    if (said := _as_nobody(_CALL, daemon.paths.socket)) != "PermissionError":
        wrong.append(f"another user came to the socket: {said[:100]}")
    # Were every mode wide open, the peer's uid would still keep others out.
    for path in made:
        with contextlib.suppress(FileNotFoundError):
            path.chmod(0o777)
    said = _as_nobody(_CALL, daemon.paths.socket)
    if "belongs to another user" not in said or "rooms" in said:
        wrong.append(f"the peer's uid was not checked: {said[:100]}")
    return wrong


def squatter() -> list[str]:
    """Another user listens where memd would: neither hook, command nor proxy sends anything."""
    if os.getuid() != 0:
        print("  skipped: only root can be two users")
        return []
    wrong: list[str] = []
    with careless_user() as (home, daemon):
        run = home / "m" / "run"
        run.mkdir(parents=True)
        os.chown(run, NOBODY, NOBODY)
        squatting = subprocess.Popen(
            ["/usr/bin/env", "python3", "-c", _SQUAT, str(run / "memd.sock")],
            user=NOBODY, group=NOBODY, extra_groups=[], stdout=subprocess.PIPE, text=True, cwd="/",
        )  # fmt: skip
        assert squatting.stdout is not None
        squatting.stdout.readline()
        try:
            event = "UserPromptSubmit"
            prompt = {"session_id": "s", "hook_event_name": event, "prompt": "hello there"}
            tries = [
                daemon.run("hook", event, given=json.dumps(prompt).encode()),
                daemon.run("search", "hello"),
                subprocess.run(
                    [sys.executable, "-c", _HASTY_PROXY],
                    env=daemon.environ | {"MEMD_START": "0"},
                    input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
                    capture_output=True,
                    check=False,
                ),
            ]
            heard = [int(squatting.stdout.readline()) for _ in tries]
        finally:
            squatting.kill()
            squatting.wait()
            squatting.stdout.close()
        if any(heard):
            wrong.append(f"the squatter received {heard} bytes by hook, search and mcp")
        if b"another user listens" not in tries[1].stderr:
            wrong.append(f"memd search did not say why: {tries[1].stderr!r}")
        if not any((home / "m" / "state" / "spool").glob("*")):
            wrong.append("the hook's event is not in the spool")
    return wrong


def links() -> list[str]:
    """Links, pipes and devices planted where memd writes and reads: nothing behind them changes."""
    wrong: list[str] = []
    for name, plant in PLANTED.items():
        with careless_user() as (home, daemon):
            precious = home / "precious"
            precious.write_text(_PRECIOUS, encoding="utf-8")
            precious.chmod(_COMMON)
            paths = daemon.paths
            for folder in (paths.data_dir, paths.state_dir, paths.spool_dir, paths.runtime_dir):
                Path(folder).mkdir(parents=True, mode=0o700, exist_ok=True)
            plant(paths, precious)
            wrong += [f"{name}: {said}" for said in _provoked(daemon, precious)]
    print(f"  {len(PLANTED)} plants")
    return wrong


def _provoked(daemon: harness.Daemon, precious: Path) -> Iterator[str]:
    """What goes wrong when a hook spools and a daemon starts there."""
    stop = {"session_id": "s", "hook_event_name": "Stop", "cwd": "/"}
    hooked = daemon.run("hook", "Stop", given=json.dumps(stop).encode())
    if hooked.returncode or hooked.stdout or hooked.stderr:
        yield f"the hook printed something: {hooked}"
    process = daemon.spawn()
    log = Path(daemon.paths.log)
    if not wait_until(lambda: process.poll() is not None or _has_begun(log)):
        yield "the daemon hangs"
    process.terminate()
    said = process.communicate(timeout=_COMMAND_S)[1].decode("utf-8", "replace")
    if "Traceback" in said:
        yield f"a traceback: {said[-300:]}"
    if precious.read_text(encoding="utf-8") != _PRECIOUS:
        yield "the file behind the link was changed"
    if stat.S_IMODE(precious.stat().st_mode) != _COMMON:
        yield "the mode of the file behind the link was changed"


def _has_begun(log: Path) -> bool:
    """Whether the daemon serves, or has said that it cannot."""
    with contextlib.suppress(OSError, ValueError):
        if stat.S_ISREG(log.lstat().st_mode):
            lines = log.read_text(encoding="utf-8", errors="replace")
            return any(one in lines for one in ("listening_started", '"room_failed"', "in the way"))
    return False


def _sparse(file: Path) -> None:
    with file.open("wb") as handle:
        handle.truncate(SPARSE)


_LINE = "000000000001.jsonl"
PLANTED: dict[str, Callable[[Paths, Path], None]] = {
    "lock → a file": lambda paths, file: Path(paths.lock).symlink_to(file),
    "log → a file": lambda paths, file: Path(paths.log).symlink_to(file),
    "socket → a file": lambda paths, file: Path(paths.socket).symlink_to(file),
    "vault → a file": lambda paths, file: Path(paths.database).symlink_to(file),
    "spool/active → a file": lambda paths, file: Path(paths.spool_dir, "active").symlink_to(file),
    "spool/lock → a file": lambda paths, file: Path(paths.spool_dir, "lock").symlink_to(file),
    "a spooled line → a file": lambda paths, file: Path(paths.spool_dir, _LINE).symlink_to(file),
    "backups → a file": lambda paths, file: Path(paths.data_dir, "backups").symlink_to(file),
    "config.toml → /dev/zero": lambda paths, _: Path(paths.config_file).symlink_to("/dev/zero"),
    "config.toml of 1 GB": lambda paths, _: _sparse(Path(paths.config_file)),
    "the log a pipe": lambda paths, _: os.mkfifo(paths.log),
    "a spooled line a pipe": lambda paths, _: os.mkfifo(Path(paths.spool_dir, _LINE)),
    "config.toml a pipe": lambda paths, _: os.mkfifo(paths.config_file),
    "projects.toml a pipe": lambda paths, _: os.mkfifo(paths.projects_file),
}
"""What is planted, with a precious file behind each link."""


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\u2066 evil"


def _hostile(top: Path) -> Iterator[Path]:
    """Make directories that mean harm, and name each."""
    names = ["two\nlines", _EVIL, "quo\"t'es$(reboot)`x`", "n" * 255, "..  ", "-rf", "\u202egnp"]
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
            {"PYTHONSTARTUP": "/dev/zero", "LANG": "xx_XX.ASCII", "LC_ALL": "C", "PYTHONUTF8": "0"},
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


PARTS: dict[str, Callable[[], list[str]]] = {
    "strangers": strangers,
    "squatter": squatter,
    "links": links,
    "projects": projects,
    "environments": environments,
}
"""Each prints what it looked at, and returns what was wrong."""

"""Tricks at memd's doors: another user, planted links, a squatted socket.

Each part is a function that returns what was not as promised, in words; an empty list is a promise kept.
Another user is a process of uid 65534, so those parts want root; without it they look at the modes alone.
Not here: secrets (security.py), hostile directories and texts (hostile_texts.py).
"""

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import harness
from memd.paths import Paths

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
_SQUAT = """
import socket, sys
door = socket.socket(socket.AF_UNIX); door.bind(sys.argv[1]); door.listen(); print("ready", flush=True)
while True:
    link, _ = door.accept(); link.settimeout(2); said = b""
    try:
        while block := link.recv(65536):
            said += block
    except OSError:
        pass
    print(len(said), flush=True)
"""


def memd(
    environ: dict[str, str], *words: str, given: str = "", umask: int = -1
) -> subprocess.CompletedProcess[bytes]:
    """A command's end, and what it said."""
    return subprocess.run(
        [sys.executable, "-m", "memd", *words],
        env=environ,
        input=given.encode(),
        capture_output=True,
        timeout=_COMMAND_S,
        umask=umask,
        check=False,
    )


@contextlib.contextmanager
def home_of_a_user() -> Iterator[tuple[Path, dict[str, str]]]:
    """A home that everybody may enter, as a careless user's, and its environment."""
    home = Path(tempfile.mkdtemp(prefix="memd-trick-"))
    home.chmod(0o755)
    environ = {"HOME": str(home), "MEMD_HOME": str(home / "m"), "PATH": os.environ["PATH"]}
    try:
        yield home, {**environ, "MEMD_START": "0"}
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def served(environ: dict[str, str]) -> Iterator[harness.Daemon]:
    """A daemon that was started without a umask."""
    it = harness.Daemon(environ["MEMD_HOME"])
    before = os.umask(0)
    try:
        it.start()
    finally:
        os.umask(before)
    try:
        yield it
    finally:
        it.stop()


def _as_nobody(program: str, *words: str) -> str:
    done = subprocess.run(
        ["/usr/bin/env", "python3", "-c", program, *words],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=_COMMAND_S,
        cwd="/",
        check=False,
    )
    return done.stdout.strip() or done.stderr.strip()


def strangers() -> list[str]:
    """Without a umask, with all that memd makes: modes; what another uid can open; the peer check."""
    wrong: list[str] = []
    with home_of_a_user() as (home, environ):
        prompt = {"session_id": "s", "hook_event_name": "Stop", "cwd": "/home/dev"}
        memd(environ, "hook", "Stop", given=json.dumps(prompt), umask=0)
        with served(environ) as daemon:
            memd(environ, "remember", "the quick brown fox", umask=0)
            memd(environ, "export", f"{environ['MEMD_HOME']}/out.jsonl", umask=0)
            memd(environ, "backup", umask=0)
            daemon.settle()
            made = [Path(environ["MEMD_HOME"]), *Path(environ["MEMD_HOME"]).rglob("*")]
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
    """Another user listens where memd would: neither hook, command nor bridge tells him anything."""
    if os.getuid() != 0:
        print("  skipped: only root can be two users")
        return []
    wrong: list[str] = []
    with home_of_a_user() as (home, environ):
        (home / "m").mkdir(mode=0o755)
        run = home / "m" / "run"
        run.mkdir()
        os.chown(run, NOBODY, NOBODY)
        squatting = subprocess.Popen(
            ["/usr/bin/env", "python3", "-c", _SQUAT, str(run / "memd.sock")],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
        )
        assert squatting.stdout is not None
        squatting.stdout.readline()
        try:
            prompt = {
                "session_id": "s",
                "hook_event_name": "UserPromptSubmit",
                "prompt": "hello there",
            }
            tries = [
                memd(environ, "hook", "UserPromptSubmit", given=json.dumps(prompt)),
                memd(environ, "search", "hello"),
                memd(environ, "mcp", given='{"jsonrpc":"2.0","id":1,"method":"ping"}\n'),
            ]
            heard = [int(squatting.stdout.readline()) for _ in tries]
        finally:
            squatting.kill()
            squatting.wait()
            squatting.stdout.close()
        if any(heard):
            wrong.append(f"the squatter was told {heard} bytes by hook, search and mcp")
        if b"another user listens" not in tries[1].stderr:
            wrong.append(f"memd search did not say why: {tries[1].stderr!r}")
        if not any((home / "m" / "state" / "spool").glob("*")):
            wrong.append("the hook's event is not in the spool")
    return wrong


def links() -> list[str]:
    """Links, pipes and devices planted where memd writes and reads: nothing behind them changes."""
    wrong: list[str] = []
    for name, plant in PLANTED.items():
        with home_of_a_user() as (home, environ):
            precious = home / "precious"
            precious.write_text(_PRECIOUS, encoding="utf-8")
            precious.chmod(_COMMON)
            paths = Paths(environ)
            for directory in (
                paths.data_dir,
                paths.state_dir,
                paths.spool_dir,
                paths.runtime_dir,
            ):
                Path(directory).mkdir(parents=True, mode=0o700, exist_ok=True)
            plant(paths, precious)
            wrong += [f"{name}: {said}" for said in _provoked(environ, precious)]
    print(f"  {len(PLANTED)} plants")
    return wrong


def _provoked(environ: dict[str, str], precious: Path) -> Iterator[str]:
    """What goes wrong when a hook spools and a daemon starts there."""
    stop = {"session_id": "s", "hook_event_name": "Stop", "cwd": "/"}
    began = time.monotonic()
    hooked = memd(environ, "hook", "Stop", given=json.dumps(stop))
    if hooked.returncode or hooked.stdout or hooked.stderr:
        yield f"the hook was heard: {hooked}"
    daemon = subprocess.Popen(
        [sys.executable, "-m", "memd", "serve"],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    log = Path(Paths(environ).log)
    while daemon.poll() is None and not _has_begun(log):
        if time.monotonic() - began > _COMMAND_S:
            yield "the daemon hangs"
            break
        time.sleep(0.02)
    daemon.terminate()
    said = daemon.communicate(timeout=_COMMAND_S)[1].decode("utf-8", "replace")
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
            told = log.read_text(encoding="utf-8", errors="replace")
            return (
                "listening_started" in told or '"room_failed"' in told or "in the way" in told
            )
    return False


def _link(attribute: str, name: str = "") -> Callable[[Paths, Path], None]:
    def plant(paths: Paths, precious: Path) -> None:
        Path(getattr(paths, attribute), name).symlink_to(precious)

    return plant


def _pipe(attribute: str, name: str = "") -> Callable[[Paths, Path], None]:
    def plant(paths: Paths, _: Path) -> None:
        os.mkfifo(Path(getattr(paths, attribute), name))

    return plant


def _zero(paths: Paths, _: Path) -> None:
    Path(paths.config_file).symlink_to("/dev/zero")


def _sparse(paths: Paths, _: Path) -> None:
    with Path(paths.config_file).open("wb") as file:
        file.truncate(SPARSE)


PLANTED: dict[str, Callable[[Paths, Path], None]] = {
    "lock → a file": _link("lock"),
    "log → a file": _link("log"),
    "socket → a file": _link("socket"),
    "vault → a file": _link("database"),
    "spool/active → a file": _link("spool_dir", "active"),
    "spool/lock → a file": _link("spool_dir", "lock"),
    "a spooled line → a file": _link("spool_dir", "000000000001.jsonl"),
    "the log a pipe": _pipe("log"),
    "a spooled line a pipe": _pipe("spool_dir", "000000000001.jsonl"),
    "config.toml a pipe": _pipe("config_file"),
    "config.toml → /dev/zero": _zero,
    "config.toml of 1 GB": _sparse,
    "projects.toml a pipe": _pipe("projects_file"),
    "backups → a file": lambda paths, precious: Path(paths.data_dir, "backups").symlink_to(
        precious
    ),
}


PARTS: dict[str, Callable[[], list[str]]] = {
    "strangers": strangers,
    "squatter": squatter,
    "links": links,
}
"""Each prints what it looked at, and returns what was wrong."""

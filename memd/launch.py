"""Starts the daemon from a side door: detached, owing its starter nothing. For the hook and the bridge.

Standard library only, and little of it. Whoever starts never decides that there is one daemon: the
vault's lock does, and a second daemon leaves. But a daemon takes that lock only after a second of
loading, and thirty that load at once would keep each other from answering: so a daemon is claimed
before it is started, and holds that claim while it lives. Where a service manager is set to run memd,
it alone starts it. Not here: `memd start`, which waits and tells (daemon/process.py).
"""

import fcntl
import os
import signal
import sys

from memd.paths import VAULT_DEFAULT, Paths, private_dir

_KEPT = "CLAUDE_CONFIG_DIR"
_STARTED_WITH = [signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE]
_UNIT_BYTES_MAX = 65_536


def start(paths: Paths, environ: "os._Environ[str] | dict[str, str]") -> int | None:
    """Start a daemon on this vault that outlives us; its process id, for the caller to bury.

    0 if another one is starting already. None if it may not be (`MEMD_START=0`, a service manager) or
    cannot be started. It gets a session of its own, no terminal, of our descriptors only the claim,
    and the log as stderr. The working directory
    becomes `/`, also ours, and `-P` is given, because the client works in a directory that we do not
    know: no module of it may be mistaken for one of ours.
    """
    if environ.get("MEMD_START") == "0" or is_managed(environ, paths.vault):
        return None
    try:
        log = os.path.abspath(
            os.path.join(private_dir(paths.state_dir), os.path.basename(paths.log))
        )
        environment = _environment(paths, environ)
        actions = _file_actions(log)
        claim = _claim(paths)
        if claim is None:
            return 0
        try:
            os.chdir("/")
            return os.posix_spawn(
                sys.executable,
                [sys.executable, "-P", "-m", "memd", "serve"],
                environment,
                file_actions=actions,
                setsid=True,
                setsigdef=_STARTED_WITH,
            )
        finally:
            os.close(claim)
    except OSError:
        # Then it is for somebody else to start.
        return None


def is_managed(environ: "os._Environ[str] | dict[str, str]", vault: str | None = None) -> bool:
    """Tell whether a service manager is set to run memd for this user, home and vault.

    A unit is ours if it has the vault's name and, where `MEMD_HOME` is set, speaks of that directory.
    """
    vault = vault or environ.get("MEMD_VAULT") or VAULT_DEFAULT
    names = ("memd",) if vault == VAULT_DEFAULT else (f"memd-{vault}", f"memd.{vault}")
    home = environ.get("MEMD_HOME")
    needed = os.fsencode(os.path.abspath(home)) if home else b""
    return any(needed in _text(path) for path in _units(environ, names))


def is_awaited(paths: Paths) -> bool:
    """Tell whether a daemon has this vault, or is being started for it."""
    return is_held(paths.lock) or is_held(_claimed(paths))


def is_held(lock: str) -> bool:
    """Tell whether a process has this lock."""
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def has_ended(pid: int) -> bool:
    """Tell whether a daemon that we started has ended; bury it if so."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _claimed(paths: Paths) -> str:
    return f"{paths.lock}.start"


def _claim(paths: Paths) -> int | None:
    """Claim the start of a daemon, for it to inherit; None if somebody has."""
    path = os.path.join(private_dir(paths.data_dir), os.path.basename(_claimed(paths)))
    claim = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(claim)
        return None
    os.set_inheritable(claim, True)
    return claim


def _units(environ: "os._Environ[str] | dict[str, str]", names: tuple[str, ...]) -> list[str]:
    """The files of the service manager that are called so, whatever stands before it on macOS."""
    user = environ.get("HOME") or os.path.expanduser("~")
    if sys.platform == "darwin":
        # Whatever stands before the name: launchd's agents are called after domains.
        directory = os.path.join(user, "Library", "LaunchAgents")
        ends = tuple(f".{name}.plist" for name in names)
    else:
        config = environ.get("XDG_CONFIG_HOME") or os.path.join(user, ".config")
        directory = os.path.join(config, "systemd", "user")
        ends = tuple(f"/{name}{kind}" for name in names for kind in (".socket", ".service"))
    try:
        found = os.listdir(directory)
    except OSError:
        return []
    return [path for name in found if (path := os.path.join(directory, name)).endswith(ends)]


def _text(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_UNIT_BYTES_MAX)
    except OSError:
        return b""


def _environment(paths: Paths, environ: "os._Environ[str] | dict[str, str]") -> dict[str, str]:
    """What the daemon gets of ours: nothing of the agent's session, of which some is secret.

    `MEMD_DISABLE`, for what the daemon itself may start: an agent below it must not feed it.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith("CLAUDE") or name == _KEPT
    }
    if "MEMD_HOME" in kept:
        kept["MEMD_HOME"] = os.path.abspath(kept["MEMD_HOME"])
    return kept | {"MEMD_VAULT": paths.vault, "MEMD_DISABLE": "1"}


def _file_actions(log: str) -> list[tuple[int, ...] | tuple[int, int, str, int, int]]:
    """Nothing on stdin and stdout, the log on stderr, and whatever else we were given closed."""
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, log, append, 0o600),
    ]
    for name in os.listdir("/dev/fd"):
        number = int(name)
        try:
            if number > 2 and os.get_inheritable(number):  # noqa: PLR2004  # stdin, stdout, stderr
                actions.append((os.POSIX_SPAWN_CLOSE, number))
        except OSError:
            continue  # the descriptor of the listing itself
    return actions

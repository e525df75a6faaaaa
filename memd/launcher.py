"""Starts the daemon, detached, for the hook and the stdio proxy. Standard library only.

The vault's lock ensures that one daemon runs: a second one exits. But a daemon takes that lock only after
it has loaded for a second, and thirty that load at once would slow each other down. So a starter first
locks a claim file, which the daemon inherits and holds while it runs. Where a service manager is set to
run memd, only that starts it. `memd start`, which waits and reports, is in daemon/process.py.
"""

import _signal as signal  # type: ignore[import-not-found]  # not in the stubs; `signal` would import `enum`
import fcntl
import os
import sys

from memd.paths import VAULT_DEFAULT, Paths, find_config_home, find_home, mend_umask, private_dir

_CLAUDE_VARIABLE_PASSED = "CLAUDE_CONFIG_DIR"
_DEFAULT_SIGNALS = [signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE]
_UNIT_BYTES_MAX = 65_536


def start(paths: Paths, environ: "os._Environ[str] | dict[str, str]") -> int | None:
    """Start a daemon on this vault that outlives us, and return its process id, which the caller reaps.

    0 if another one is starting already. None if none may be started (`MEMD_START=0`, a service manager)
    or starting fails. The daemon gets a session of its own, no terminal, the log as stderr, and of our
    descriptors only the claim. The working directory becomes `/`, also ours, and `-P` is given, because
    the client's directory may hold modules with the names of ours.
    """
    if environ.get("MEMD_START") == "0" or is_managed(environ, paths.vault):
        return None
    mend_umask()
    try:
        log = os.path.abspath(
            os.path.join(private_dir(paths.state_dir), os.path.basename(paths.log))
        )
        environment = make_daemon_environment(paths, environ)
        actions = _make_file_actions(log)
        claim = _take_claim(paths)
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
                setsigdef=_DEFAULT_SIGNALS,
            )
        finally:
            os.close(claim)
    except OSError:
        # The next hook or proxy will try again.
        return None


def is_managed(environ: "os._Environ[str] | dict[str, str]", vault: str | None = None) -> bool:
    """Tell whether a service manager is set to run memd for this user, home and vault.

    A unit is ours if it has the vault's name and, where `MEMD_HOME` is set, contains that directory.
    """
    vault = vault or environ.get("MEMD_VAULT") or VAULT_DEFAULT
    names = ("memd",) if vault == VAULT_DEFAULT else (f"memd-{vault}", f"memd.{vault}")
    home = environ.get("MEMD_HOME")
    needed = os.fsencode(os.path.abspath(home)) if home else b""
    return any(needed in _read_start(path) for path in _list_units(environ, names))


def is_awaited(paths: Paths) -> bool:
    """Tell whether a daemon has this vault, or is being started for it."""
    return is_held(paths.lock) or is_held(_claim_path(paths))


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
    """Tell whether a daemon that we started has ended; reap it if so."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _claim_path(paths: Paths) -> str:
    return f"{paths.lock}.start"


def _take_claim(paths: Paths) -> int | None:
    """Lock the claim file, for the daemon to inherit; None if another process holds it."""
    path = os.path.join(private_dir(paths.data_dir), os.path.basename(_claim_path(paths)))
    claim = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(claim)
        return None
    os.set_inheritable(claim, True)
    return claim


def _list_units(environ: "os._Environ[str] | dict[str, str]", names: tuple[str, ...]) -> list[str]:
    """The unit files with these names."""
    user = find_home(environ)
    if user is None:
        return []
    if sys.platform == "darwin":
        # With any prefix: launchd names agents after domains.
        directory = os.path.join(user, "Library", "LaunchAgents")
        ends = tuple(f".{name}.plist" for name in names)
    else:
        directory = os.path.join(find_config_home(environ, user), "systemd", "user")
        ends = tuple(f"/{name}{kind}" for name in names for kind in (".socket", ".service"))
    try:
        found = os.listdir(directory)
    except OSError:
        return []
    return [path for name in found if (path := os.path.join(directory, name)).endswith(ends)]


def _read_start(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_UNIT_BYTES_MAX)
    except OSError:
        return b""


def make_daemon_environment(
    paths: Paths, environ: "os._Environ[str] | dict[str, str]"
) -> dict[str, str]:
    """Our environment without the agent's session variables, some of which are secret.

    `MEMD_DISABLE` is for processes that the daemon starts: an agent among them must not be captured.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith("CLAUDE") or name == _CLAUDE_VARIABLE_PASSED
    }
    if "MEMD_HOME" in kept:
        kept["MEMD_HOME"] = os.path.abspath(kept["MEMD_HOME"])
    return kept | {"MEMD_VAULT": paths.vault, "MEMD_DISABLE": "1"}


def _make_file_actions(log: str) -> list[tuple[int, ...] | tuple[int, int, str, int, int]]:
    """/dev/null as stdin and stdout, the log as stderr, every other inheritable descriptor closed."""
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

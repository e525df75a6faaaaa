"""Where memd's files live, from the environment alone. Standard library only, for the side doors.

One rule serves the daemon, the hook and the stdio proxy: had each its own, a capture could be sent to a
socket that nobody listens on. That is why this is not `platformdirs`, which the hook could not
afford to import (its whole budget is 35 ms). Not here: creating anything but private directories.
"""

import os
import sys

TYPE_CHECKING = False  # `typing` itself would cost the hook more than all of this
if TYPE_CHECKING:
    import _socket

SOCKET_PATH_MAX = 100
"""Bytes. The kernel takes 107 on Linux and 103 on macOS."""
LINE_BYTES_MAX = 4 * 1024 * 1024
"""Bytes of one message on the socket. The daemon refuses a longer line, so no client sends one."""
VAULT_DEFAULT = "default"
_EPERM = 1
_VAULT_CHARACTERS = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
)


class Paths:
    """The files of one vault. `MEMD_HOME` puts all of them under one directory."""

    __slots__ = ("config_file", "data_dir", "runtime_dir", "state_dir", "vault")

    def __init__(
        self, environ: "os._Environ[str] | dict[str, str]", vault: str | None = None
    ) -> None:
        self.vault = vault or environ.get("MEMD_VAULT") or VAULT_DEFAULT
        if not set(self.vault) <= _VAULT_CHARACTERS:
            raise ValueError(f"a vault's name is letters, digits, - and _; not {self.vault!r}")
        home = environ.get("MEMD_HOME")
        if home:
            root = os.path.abspath(home)
            self.config_file = os.path.join(root, "config.toml")
            self.data_dir = os.path.join(root, "vaults")
            self.state_dir = os.path.join(root, "state")
            self.runtime_dir = os.path.join(root, "run")
            return
        user = environ.get("HOME") or os.path.expanduser("~")
        if not os.path.isabs(user):
            # Whatever was made below it would lie wherever somebody happens to work.
            raise ValueError("memd finds no home directory; set HOME or MEMD_HOME")
        mac = sys.platform == "darwin"
        support = os.path.join(user, "Library", "Application Support", "memd")
        self.config_file = os.path.join(
            environ.get("XDG_CONFIG_HOME") or os.path.join(user, ".config"),
            "memd",
            "config.toml",
        )
        self.data_dir = (
            support
            if mac
            else os.path.join(
                environ.get("XDG_DATA_HOME") or os.path.join(user, ".local", "share"), "memd"
            )
        )
        self.state_dir = (
            os.path.join(user, "Library", "Logs", "memd")
            if mac
            else os.path.join(
                environ.get("XDG_STATE_HOME") or os.path.join(user, ".local", "state"), "memd"
            )
        )
        self.runtime_dir = self._runtime(environ)

    def _runtime(self, environ: "os._Environ[str] | dict[str, str]") -> str:
        """`$XDG_RUNTIME_DIR/memd`; where it is not set, what it would be; else with the state."""
        runtime = environ.get("XDG_RUNTIME_DIR")
        if not runtime and sys.platform != "darwin":
            usual = f"/run/user/{os.getuid()}"
            runtime = usual if os.path.isdir(usual) and os.access(usual, os.W_OK) else None
        return os.path.join(runtime, "memd") if runtime else os.path.join(self.state_dir, "run")

    def _named(self, stem: str, suffix: str) -> str:
        return stem + suffix if self.vault == VAULT_DEFAULT else f"{stem}-{self.vault}{suffix}"

    @property
    def database(self) -> str:
        """The one file that holds the vault."""
        return os.path.join(self.data_dir, f"{self.vault}.db")

    @property
    def projects_file(self) -> str:
        """Which directories a person has given to a project by hand."""
        return os.path.join(os.path.dirname(self.config_file), "projects.toml")

    @property
    def socket(self) -> str:
        """Where the daemon listens."""
        return os.path.join(self.runtime_dir, self._named("memd", ".sock"))

    @property
    def lock(self) -> str:
        """Held for as long as a daemon serves the vault."""
        return os.path.join(self.data_dir, f"{self.vault}.lock")

    @property
    def spool_dir(self) -> str:
        """Where events wait while no daemon answers."""
        return os.path.join(self.state_dir, self._named("spool", ""))

    @property
    def spool_fallbacks(self) -> tuple[str, ...]:
        """Where events wait if they cannot there: beside the vault, then beside the socket."""
        name = self._named("spool", "")
        return os.path.join(self.data_dir, name), os.path.join(self.runtime_dir, name)

    @property
    def spools(self) -> tuple[str, ...]:
        """Every place where events may wait."""
        return self.spool_dir, *self.spool_fallbacks

    @property
    def log(self) -> str:
        """What the daemon tells."""
        return os.path.join(self.state_dir, self._named("memd", ".log"))

    @property
    def installed(self) -> str:
        """Where memd says which interpreter runs it; the same for every vault."""
        return os.path.join(self.state_dir, "installed")


def private_dir(path: str) -> str:
    """Create a directory that only this user can enter, if it is not there; return it.

    Directories above it that are missing are made the same, whatever the umask. Raises PermissionError
    for a directory of somebody else's: who owns it may read and replace what lies in it.
    """
    _make(path)
    found = os.stat(path)
    if found.st_uid != os.getuid():
        raise PermissionError(_EPERM, "belongs to another user; memd keeps nothing there", path)
    if found.st_mode & 0o077:
        os.chmod(path, 0o700)
    return path


def _make(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    except FileNotFoundError:
        above = os.path.dirname(path)
        if not above or above == path or os.path.islink(path):
            raise
        _make(above)
        _make(path)


def is_mine(link: "_socket.socket") -> bool:
    """Whether the other end of a connected Unix socket is this user's.

    Where directories are not private, anybody may listen at a path before memd does; they are told nothing.
    """
    import _socket  # noqa: PLC0415  # only where there is a socket, it is loaded

    if sys.platform == "darwin":
        record = link.getsockopt(0, 1, 76)  # LOCAL_PEERCRED
    else:
        record = link.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(record[4:8], sys.byteorder) == os.getuid()

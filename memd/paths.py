"""File locations from the environment, for the daemon, the hook and the stdio proxy alike.

Standard library only: the hook's whole budget is 35 ms, which `platformdirs` would exceed.
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
_VAULT_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


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
            # Directories would be made below whatever the current directory is.
            raise ValueError("memd finds no home directory; set HOME or MEMD_HOME")
        mac = sys.platform == "darwin"
        support = os.path.join(user, "Library", "Application Support", "memd")
        self.config_file = os.path.join(
            environ.get("XDG_CONFIG_HOME") or os.path.join(user, ".config"), "memd", "config.toml"
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
        self.runtime_dir = self._find_runtime_dir(environ)

    def _find_runtime_dir(self, environ: "os._Environ[str] | dict[str, str]") -> str:
        """Return `$XDG_RUNTIME_DIR/memd`; if it is not set, its usual place; else one below the state."""
        runtime = environ.get("XDG_RUNTIME_DIR")
        if not runtime and sys.platform != "darwin":
            usual = f"/run/user/{os.getuid()}"
            runtime = usual if os.path.isdir(usual) and os.access(usual, os.W_OK) else None
        return os.path.join(runtime, "memd") if runtime else os.path.join(self.state_dir, "run")

    def _vault_file_name(self, stem: str, suffix: str) -> str:
        return stem + suffix if self.vault == VAULT_DEFAULT else f"{stem}-{self.vault}{suffix}"

    @property
    def database(self) -> str:
        """The vault: one SQLite file."""
        return os.path.join(self.data_dir, f"{self.vault}.db")

    @property
    def projects_file(self) -> str:
        """The user's assignments of directories to projects."""
        return os.path.join(os.path.dirname(self.config_file), "projects.toml")

    @property
    def socket(self) -> str:
        """Where the daemon listens."""
        return os.path.join(self.runtime_dir, self._vault_file_name("memd", ".sock"))

    @property
    def lock(self) -> str:
        """Locked while a daemon serves the vault."""
        return os.path.join(self.data_dir, f"{self.vault}.lock")

    @property
    def spool_dir(self) -> str:
        """Where events wait while no daemon answers."""
        return os.path.join(self.state_dir, self._vault_file_name("spool", ""))

    @property
    def spool_fallbacks(self) -> tuple[str, ...]:
        """Where events wait if `spool_dir` cannot be written: beside the vault, then beside the socket."""
        name = self._vault_file_name("spool", "")
        return os.path.join(self.data_dir, name), os.path.join(self.runtime_dir, name)

    @property
    def spools(self) -> tuple[str, ...]:
        """Every directory where events may wait."""
        return self.spool_dir, *self.spool_fallbacks

    @property
    def log(self) -> str:
        """The daemon's log."""
        return os.path.join(self.state_dir, self._vault_file_name("memd", ".log"))

    @property
    def installed(self) -> str:
        """The note of which interpreter runs memd; the same for every vault."""
        return os.path.join(self.state_dir, "installed")


def private_dir(path: str) -> str:
    """Create a directory that only this user can enter, unless it exists; return its path.

    Missing parents are created the same way, whatever the umask. Raises PermissionError for another user's
    directory, because its owner may read and replace its files.
    """
    _make_directories(path)
    found = os.stat(path)
    if found.st_uid != os.getuid():
        raise PermissionError(_EPERM, "belongs to another user; memd keeps nothing there", path)
    if found.st_mode & 0o077:
        os.chmod(path, 0o700)
    return path


def _make_directories(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    except FileNotFoundError:
        above = os.path.dirname(path)
        if not above or above == path or os.path.islink(path):
            raise
        _make_directories(above)
        _make_directories(path)


def is_mine(link: "_socket.socket") -> bool:
    """Whether this user's process is at the other end of a connected Unix socket.

    Where directories are not private, another user may listen at a path before memd does, and must get no data.
    """
    import _socket  # noqa: PLC0415  # imported by callers that have a socket

    if sys.platform == "darwin":
        record = link.getsockopt(0, 1, 76)  # LOCAL_PEERCRED
    else:
        record = link.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(record[4:8], sys.byteorder) == os.getuid()

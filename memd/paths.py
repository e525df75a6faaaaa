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
SILENCE_S = 10.0
"""Seconds without a word after which a daemon that has calls open is pinged on another connection, and that its answer may take."""
PING = b'{"jsonrpc":"2.0","id":1,"method":"memd/ping"}\n'
VAULT_DEFAULT = "default"
_EPERM, _ENOENT = 1, 2
_SHORT_BASE_MAX = 40
"""Bytes of a directory in which a short one for the socket is made; a vault's name needs room, too."""
_OWN_OR_UNKNOWN = (0, 65_534)
"""Root, and whom a user namespace does not know, as owners of a directory."""
_VAULT_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


class Paths:
    """The files of one vault. `MEMD_HOME` puts all of them under one directory."""

    __slots__ = (
        "config_file",
        "data_dir",
        "ignored",
        "runtime_dir",
        "socket_dir",
        "state_dir",
        "vault",
    )

    def __init__(
        self, environ: "os._Environ[str] | dict[str, str]", vault: str | None = None
    ) -> None:
        """Raise ValueError, which says what to change, where memd cannot or must not keep files."""
        self.vault = vault or environ.get("MEMD_VAULT") or VAULT_DEFAULT
        if not set(self.vault) <= _VAULT_CHARACTERS:
            raise ValueError(f"a vault's name is letters, digits, - and _; not {self.vault!r}")
        self.ignored: tuple[str, ...] = ()
        """What of the environment is not used, each with the reason in words."""
        home = environ.get("MEMD_HOME")
        if home:
            root = _make_absolute(home)
            self.config_file = os.path.join(root, "config.toml")
            self.data_dir = os.path.join(root, "vaults")
            self.state_dir = os.path.join(root, "state")
            self.runtime_dir = os.path.join(root, "run")
        else:
            self._find_user_dirs(environ)
        _check_text(self.data_dir, self.state_dir)
        if os.getuid() == 0:
            _check_owners(os.path.dirname(self.config_file), self.data_dir, self.state_dir)
        self.socket_dir = self.runtime_dir
        """The directory of the socket: `runtime_dir`, or a short one if the kernel takes no path as long."""
        if len(os.fsencode(self.socket)) > SOCKET_PATH_MAX:
            self.socket_dir = _find_short_dir(environ, self.runtime_dir)

    def _find_user_dirs(self, environ: "os._Environ[str] | dict[str, str]") -> None:
        user = find_home(environ)
        if user is None:
            # Directories would be made below whatever the current directory is.
            raise ValueError(
                "memd finds no home directory; set HOME or MEMD_HOME to an absolute path"
            )
        relative = [
            name
            for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")
            if (value := environ.get(name)) and not os.path.isabs(value)
        ]
        if relative and sys.platform != "darwin":
            self.ignored += tuple(
                f"{name}={environ[name]} is ignored: it is no absolute path" for name in relative
            )
        self.config_file = os.path.join(find_config_home(environ, user), "memd", "config.toml")
        if sys.platform == "darwin":
            self.data_dir = os.path.join(user, "Library", "Application Support", "memd")
            self.state_dir = os.path.join(user, "Library", "Logs", "memd")
        else:
            share, state = (
                os.path.join(user, ".local", "share"),
                os.path.join(user, ".local", "state"),
            )
            self.data_dir = os.path.join(_absolute(environ, "XDG_DATA_HOME") or share, "memd")
            self.state_dir = os.path.join(_absolute(environ, "XDG_STATE_HOME") or state, "memd")
        runtime = _absolute(environ, "XDG_RUNTIME_DIR")
        if runtime and (reason := _explain_unusable(runtime)):
            self.ignored += (f"XDG_RUNTIME_DIR={runtime} is ignored: {reason}",)
            runtime = None
        runtime = runtime or _usual_runtime_dir()
        # Without one, below the state.
        self.runtime_dir = (
            os.path.join(runtime, "memd") if runtime else os.path.join(self.state_dir, "run")
        )

    def _vault_file_name(self, stem: str, suffix: str) -> str:
        return stem + suffix if self.vault == VAULT_DEFAULT else f"{stem}-{self.vault}{suffix}"

    @property
    def database(self) -> str:
        """The vault: one SQLite file."""
        return os.path.join(self.data_dir, f"{self.vault}.db")

    @property
    def models_dir(self) -> str:
        """The directory of the embedding models that were added on this machine; the same for every vault."""
        return os.path.join(self.data_dir, "models")

    @property
    def projects_file(self) -> str:
        """The user's assignments of directories to projects."""
        return os.path.join(os.path.dirname(self.config_file), "projects.toml")

    @property
    def age_key(self) -> str:
        """The age key of this machine, unless the settings name another file."""
        return os.path.join(os.path.dirname(self.config_file), "age.key")

    @property
    def socket(self) -> str:
        """The socket at which the daemon listens."""
        return os.path.join(self.socket_dir, self._vault_file_name("memd", ".sock"))

    @property
    def lock(self) -> str:
        """Locked while a daemon serves the vault."""
        return os.path.join(self.data_dir, f"{self.vault}.lock")

    @property
    def spool_dir(self) -> str:
        """The directory in which events wait while no daemon answers."""
        return os.path.join(self.state_dir, self._vault_file_name("spool", ""))

    @property
    def spool_fallbacks(self) -> tuple[str, ...]:
        """The directories in which events wait if `spool_dir` cannot be written: beside the vault, then beside the socket."""
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
    def stopped(self) -> str:
        """Exists after a stop on purpose, until the next start: open sessions start no daemon then."""
        return os.path.join(self.state_dir, self._vault_file_name("stopped", ""))

    @property
    def writer_dir(self) -> str:
        """The directory in which the program runs that `distill.writer_command` names."""
        return os.path.join(self.state_dir, "writer", self.vault)

    def find_writer_dirs(self) -> tuple[str, ...]:
        """The directory above every vault's `writer_dir`, as it is named and as it is without links."""
        place = os.path.dirname(self.writer_dir)
        return place, os.path.realpath(place)

    @property
    def mirrors_dir(self) -> str:
        """Copies of the places that this vault is synced with and that are no folders."""
        return os.path.join(self.data_dir, self._vault_file_name("sync", ""))

    @property
    def transcripts(self) -> str:
        """The record of how far the transcripts of live sessions have been read."""
        return os.path.join(self.state_dir, self._vault_file_name("transcripts", ".json"))

    @property
    def installed(self) -> str:
        """The note of which interpreter runs memd; the same for every vault."""
        return os.path.join(self.state_dir, "installed")


def is_inside(directory: str, places: "tuple[str, ...]") -> bool:
    """Return whether a directory is one of these or in one of them, by its name."""
    return f"{directory}/".startswith(tuple(f"{place}/" for place in places))


def find_home(environ: "os._Environ[str] | dict[str, str]") -> str | None:
    """Return the user's home directory: `HOME`, or the system's record if that is unset or empty; None without."""
    home = environ.get("HOME")
    if not home:
        import pwd  # noqa: PLC0415  # hardly ever needed

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            return None
    return home if os.path.isabs(home) else None


def find_config_home(environ: "os._Environ[str] | dict[str, str]", home: str) -> str:
    """Return the directory of programs' settings; a relative `XDG_CONFIG_HOME` is ignored, as XDG says."""
    return _absolute(environ, "XDG_CONFIG_HOME") or os.path.join(home, ".config")


def mend_umask() -> None:
    """Let this process use the files that it makes, whatever umask it was started with."""
    os.umask(os.umask(0o077) & 0o077)


def _absolute(environ: "os._Environ[str] | dict[str, str]", name: str) -> str | None:
    value = environ.get(name)
    return value if value and os.path.isabs(value) else None


def _make_absolute(home: str) -> str:
    try:
        return os.path.abspath(home)
    except FileNotFoundError:
        raise ValueError(
            f"MEMD_HOME={home} is relative to a directory that was deleted; set an absolute path"
        ) from None


def _check_text(*paths: str) -> None:
    for path in paths:
        try:
            path.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"the path {path!r} is not UTF-8, which SQLite needs; set MEMD_HOME to another directory"
            ) from None


def _check_owners(*paths: str) -> None:
    """Raise ValueError if root would make files in another user's directories, who could not use them then."""
    for path in paths:
        owner = _find_owner(path)
        if owner not in _OWN_OR_UNKNOWN:
            raise ValueError(
                f"{path} is in a directory of another user (uid {owner}), where root must leave no"
                " files; run memd as that user, or set HOME (`sudo -H`) or MEMD_HOME"
            )


def _find_owner(path: str) -> int:
    """Return the owner of a path, or of what exists above it."""
    while True:
        try:
            return os.stat(path).st_uid
        except OSError:
            above = os.path.dirname(path)
            if above == path:
                return 0
            path = above


def _explain_unusable(runtime: str) -> str:
    """Explain in words that this runtime directory cannot be used; empty if it can.

    `su` and containers leave that of another user, or of another system, in the environment.
    """
    try:
        owner = os.stat(runtime).st_uid
    except FileNotFoundError:
        return "" if os.access(os.path.dirname(runtime), os.W_OK) else "it does not exist"
    except OSError as error:
        return error.strerror or "it cannot be read"
    is_ours = owner in (os.getuid(), *_OWN_OR_UNKNOWN)
    return "" if is_ours else f"it belongs to another user (uid {owner})"


def _usual_runtime_dir() -> str | None:
    usual = f"/run/user/{os.getuid()}"
    is_there = sys.platform != "darwin" and os.path.isdir(usual) and os.access(usual, os.W_OK)
    return usual if is_there else None


def _find_short_dir(environ: "os._Environ[str] | dict[str, str]", runtime_dir: str) -> str:
    """Return a directory for the socket whose usual one is too long: named after it, in the first place that fits.

    The same for every process of this user, whatever TMPDIR is. `private_dir` refuses it if another user
    made it first, and who connects checks whose process listens.
    """
    from _blake2 import blake2b  # noqa: PLC0415  # hardly ever needed

    key = blake2b(os.fsencode(runtime_dir), digest_size=8).hexdigest()
    for base in (_absolute(environ, "XDG_RUNTIME_DIR"), _usual_runtime_dir()):
        is_usable = base and os.path.isdir(base) and not _explain_unusable(base)
        if base and is_usable and len(os.fsencode(base)) <= _SHORT_BASE_MAX:
            return os.path.join(base, f"memd-{key}")
    return f"/tmp/memd-{os.getuid()}-{key}"  # noqa: S108  # private_dir checks its owner


def private_dir(path: str) -> str:
    """Create a directory that only this user can enter, unless it exists; return its path.

    Missing parents are created the same way, whatever the umask, but never the home directory. Raises
    PermissionError for another user's directory, because its owner may read and replace its files.
    """
    _make_directories(path)
    found = os.stat(path)
    if found.st_uid != os.getuid():
        raise PermissionError(_EPERM, "belongs to another user; memd keeps nothing there", path)
    if found.st_mode & 0o077:
        os.chmod(path, 0o700)
    return path


def flush(path: "str | os.PathLike[str]") -> None:
    """Write a file, or the names in a directory, to the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _make_directories(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)  # a umask may have taken even our own rights away
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    except FileNotFoundError:
        above = os.path.dirname(path)
        if not above or above == path or os.path.islink(path):
            raise
        if above == find_home(os.environ):
            raise FileNotFoundError(_ENOENT, "the home directory does not exist", above) from None
        _make_directories(above)
        _make_directories(path)


def is_mine(link: "_socket.socket") -> bool:
    """Return whether this user's process is at the other end of a connected Unix socket.

    Where directories are not private, another user may listen at a path before memd does, and must get no data.
    """
    import _socket  # noqa: PLC0415  # imported by callers that have a socket

    if sys.platform == "darwin":
        record = link.getsockopt(0, 1, 76)  # LOCAL_PEERCRED
    else:
        record = link.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(record[4:8], sys.byteorder) == os.getuid()


def name_device() -> str:
    """The name of this machine, as people call it."""
    return os.uname().nodename or "an unnamed device"

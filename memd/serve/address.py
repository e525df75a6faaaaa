"""The file of the daemon's socket: taken, watched over, and given back. Blocks: not for the event loop.

Whoever takes it holds the vault's lock: a socket file that is there already is a dead daemon's, or a
service manager's, which is left alone. Not here: who comes in (listener.py).
"""

import contextlib
import os
import socket
import stat
from pathlib import Path

from memd.errors import Broken, ConfigError
from memd.paths import SOCKET_PATH_MAX, private_dir

_BACKLOG = 1_024


class Address:
    """A path at which a socket listens, once it was taken."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._ours: tuple[int, int] | None = None

    def take(self) -> socket.socket:
        """Listen there; ConfigError or Broken if that cannot be."""
        door = _bind(self._path)
        self._ours = _inode(self._path)
        return door

    def is_ours(self) -> bool:
        """Whether who connects there reaches the socket that was taken."""
        return self._ours is not None and _inode(self._path) == self._ours

    def give_back(self) -> None:
        """Remove the file, unless it is somebody else's by now."""
        if self.is_ours():
            with contextlib.suppress(OSError):
                Path(self._path).unlink()


def _bind(path: str) -> socket.socket:
    """Listen at `path`, for this user alone from the first moment on."""
    raw = os.fsencode(path)
    if len(raw) > SOCKET_PATH_MAX:
        raise ConfigError(
            f"the socket's path has {len(raw)} bytes, more than the {SOCKET_PATH_MAX} that the system"
            f" takes: {path}. Set MEMD_HOME or XDG_RUNTIME_DIR to a shorter directory."
        )
    try:
        _make_room(path)
        door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            door.bind(path)
        finally:
            os.umask(before)
        door.listen(_BACKLOG)
        door.setblocking(False)
    except OSError as error:
        raise Broken(
            f"memd cannot listen at {path}: {os.strerror(error.errno or 0)}"
        ) from error
    return door


def _make_room(path: str) -> None:
    directory = Path(private_dir(str(Path(path).parent)))
    found = directory.stat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise Broken(
            f"{directory} is not this user's alone; memd does not put its socket there"
        )
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(Path(path).lstat().st_mode):
            raise Broken(f"{path} is in the way and no socket; move it away")
        if _is_heard(path):
            raise ConfigError(
                f"a service manager listens at {path}: it starts memd by itself when somebody"
                " connects. To run memd by hand, let `systemctl --user stop memd.socket` go before"
            )
        Path(path).unlink()


def _is_heard(path: str) -> bool:
    """Whether somebody listens at this socket. No daemon can: its lock would be held."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.setblocking(False)
        try:
            caller.connect(path)
        except BlockingIOError:
            return True  # its queue is full
        except ConnectionRefusedError:
            return False
    return True


def _inode(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino

"""`memd stop`: the daemon is asked to leave, and has left when this returns."""

from memd.cli import door
from memd.daemon import lock, process
from memd.errors import AlreadyRunning, MemdError

_RETURNS = (
    "; systemd starts it again when somebody connects (`memd uninstall systemd` ends that)"
)


def run() -> None:
    """Stop the daemon. Nothing acknowledged is lost."""
    print(stop())


def stop() -> str:
    """Stop the daemon if one runs; say in words what was done. Raises Broken if it does not end."""
    path = door.paths().lock
    holder = lock.holder(path)
    if holder is None:
        return "not running"
    if holder.why:
        raise AlreadyRunning(
            f"a {holder.why} of this vault is under way (pid {holder.pid}); wait until it is done"
        )
    returns = ""
    try:
        if door.call("memd/status", door.QUICK_S).get("started_by") == "systemd socket":
            returns = _RETURNS
        door.call("memd/shutdown", door.QUICK_S)
        has_left = process.wait_until(lambda: lock.holder(path) != holder, process.STOP_S)
    except MemdError:
        has_left = False  # it is starting, or hangs: signals do not need its attention
    if not has_left:
        process.end(path)
    return f"stopped, pid {holder.pid}{returns}"

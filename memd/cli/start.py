"""`memd start`: the daemon in the background, answering when this returns."""

import os

from memd.cli import door
from memd.daemon import lock, process
from memd.errors import Broken
from memd.paths import Paths


def run() -> None:
    """Start the daemon in the background, and return once it answers."""
    print(start())


def start() -> str:
    """Start the daemon unless one runs; say in words what was done. Raises Broken with the reason."""
    paths = door.paths()
    is_heard = (
        door.listens()
    )  # before the lock is looked at: a daemon locks first, then it listens
    if lock.holder(paths.lock) is not None:
        return _already(paths.lock)
    check_settings()
    if is_heard and (said := _by_its_manager(paths)):
        return said
    before = process.size(paths.log)
    child = process.spawn(paths, os.environ)
    try:
        process.wait_until_ready(child, door.answers, paths.log, since=before)
    except Broken:
        # Two at once: the other one won, which is as good.
        if lock.holder(paths.lock) is None or child.poll() is None:
            raise
        return _already(paths.lock)
    holder = lock.holder(paths.lock)
    if holder is not None and holder.pid != child.pid:
        # Two at once, and the other was quicker: ours must not take over once that one is stopped.
        child.terminate()
        child.wait()
    return f"started, pid {holder.pid if holder else child.pid}, vault {paths.vault}"


def check_settings() -> None:
    """Raise ConfigError if a daemon would refuse the settings: here it is read."""
    from memd import config
    from memd.recall import profiles

    settings = config.load(door.paths().config_file)
    profiles.resolve_all(settings.profiles)
    profiles.check_chosen(settings.recall.profile, settings.profiles)


def _by_its_manager(paths: Paths) -> str | None:
    """Wait for the daemon that a service manager starts when somebody connects; None if none listens."""
    process.wait_until(lambda: door.answers() or not door.listens(), process.START_S)
    if door.answers():
        holder = lock.holder(paths.lock)
        return f"started by its service manager, pid {holder.pid if holder else '?'}, vault {paths.vault}"
    if not door.listens():
        return None
    raise Broken(
        f"a service manager listens at {paths.socket}, but the daemon that it starts does not answer;"
        f" see `systemctl --user status memd.service` and {paths.log}"
    )


def _already(lock_path: str) -> str:
    if not process.wait_until(door.answers, process.START_S):
        holder = lock.holder(lock_path)
        who = f"pid {holder.pid}" if holder else "it ended meanwhile"
        raise Broken(
            f"a daemon holds the vault but does not answer ({who}); try `memd restart`"
        )
    holder = lock.holder(lock_path)
    return f"already running, pid {holder.pid if holder else '?'}"

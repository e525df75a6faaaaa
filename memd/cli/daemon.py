"""`memd serve`, `start`, `stop` and `restart`, without typer: what a daemon loads, it keeps as long as it runs."""

import gc
import os
import sys
from functools import partial

from memd.cli import daemon_call
from memd.daemon import process
from memd.errors import AlreadyRunning, BadRequest, Broken, MemdError, VaultError
from memd.paths import Paths, private_dir

SWITCH_INTERVAL_S = 0.0005
"""Seconds that a thread runs before another one may; Python's default of 5 ms delays searches."""

# ── serve ────────────────────────────────────────────────────────────────────────────────────────────


def serve() -> None:
    """Run the daemon in this process until it is stopped. Raises what keeps it from starting."""
    os.umask(0o077)  # only the user may read the files that this process makes
    # An agent that memd starts must not be captured.
    os.environ["MEMD_DISABLE"] = "1"
    # Before numpy is loaded: competing thread pools cost more than they gain on few cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import anyio

    from memd import config
    from memd.daemon import app, supervisor
    from memd.installers import agents, file_changes

    paths = daemon_call.paths()
    private_dir(paths.state_dir)
    file_changes.write_location(paths.installed)
    agents.refresh_launcher(file_changes.Host.current())
    manager = supervisor.take_from_environment(os.environ, os.getpid(), paths.socket)
    settings = config.load_config(paths.config_file, os.environ.get("MEMD_TUNING", ""))
    if manager.listening_socket is not None:
        # The socket of the service manager has replaced that of a daemon which was started by hand: no
        # client reaches that daemon any more, but it still holds the vault.
        process.kill_daemon(paths.lock)
    if sys.stderr.isatty():
        print(
            f"memd serves the vault {paths.vault}; log: {paths.log}; Ctrl-C stops it",
            file=sys.stderr,
        )
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.freeze()  # modules are never garbage: leave them out of each collection
    try:
        anyio.run(partial(app.serve, settings, paths, manager=manager))
    except VaultError as error:
        # `memd status` reads it from the log when this terminal is closed.
        process.log_start_failure(paths.log, error.message)
        raise


# ── start, stop, restart ─────────────────────────────────────────────────────────────────────────


def run_start() -> None:
    """Start the daemon in the background, and return when it answers."""
    print(start())


def run_stop() -> None:
    """Stop the daemon. No captured event is lost. Open sessions do not start it again, new ones do."""
    daemon_call.require_user("stop")
    note = daemon_call.paths().stopped
    # First, because an open session may ask as soon as the daemon has gone.
    process.mark_stopped(note)
    try:
        print(stop())
    except MemdError:
        process.unmark_stopped(note)
        raise


def run_restart() -> None:
    """Stop the daemon if it runs, and start it again."""
    daemon_call.require_user("restart")
    check_settings()  # before the old daemon stops
    print(stop())
    print(start())


def start() -> str:
    """Start the daemon unless it runs; return a message. Raises Broken with the reason of a failure."""
    paths = daemon_call.paths()
    # Before the lock: a daemon first locks the vault, then listens.
    is_listening = daemon_call.is_listening()
    if process.find_lock_holder(paths.lock) is not None:
        return _wait_for_running_daemon(paths.lock)
    check_settings()
    if is_listening and (message := _wait_for_service_manager(paths)):
        return message
    log_size = process.log_size(paths.log)
    child = process.spawn_daemon(paths, os.environ)
    try:
        process.wait_until_ready(child, daemon_call.answers, paths.log, since=log_size)
    except Broken:
        # Another command has started a daemon at the same moment.
        if process.find_lock_holder(paths.lock) is None or child.poll() is None:
            raise
        return _wait_for_running_daemon(paths.lock)
    holder = process.find_lock_holder(paths.lock)
    if holder is not None and holder.pid != child.pid:
        # Another one was faster: ours must not wait to take over when that one stops.
        child.terminate()
        child.wait()
    return f"started, pid {holder.pid if holder else child.pid}, vault {paths.vault}"


def check_settings() -> None:
    """Raise ConfigError here, where the user sees it, if the daemon would refuse the settings."""
    from memd import config
    from memd.recall import profiles

    settings = config.load_config(daemon_call.paths().config_file)
    profiles.resolve_profiles(settings.recall.profile, settings.profiles)


def _wait_for_service_manager(paths: Paths) -> str | None:
    """Wait for the daemon that a service manager starts at a connection; None if no manager listens."""
    process.wait_until(
        lambda: daemon_call.answers() or not daemon_call.is_listening(), process.START_TIMEOUT_S
    )
    if daemon_call.answers():
        pid = _holder_pid(paths.lock)
        return f"started by its service manager, pid {pid}, vault {paths.vault}"
    if not daemon_call.is_listening():
        return None
    raise Broken(
        f"a service manager listens at {paths.socket}, but the daemon that it starts does not answer;"
        f" see `systemctl --user status memd.service` and {paths.log}"
    )


def _wait_for_running_daemon(lock: str) -> str:
    if process.wait_until(daemon_call.answers, process.START_TIMEOUT_S):
        return f"already running, pid {_holder_pid(lock)}"
    raise Broken(
        f"a daemon (pid {_holder_pid(lock)}) holds the vault but does not answer; try `memd restart`"
    )


def _holder_pid(lock: str) -> int | str:
    holder = process.find_lock_holder(lock)
    return holder.pid if holder else "?"


def stop() -> str:
    """Stop the daemon if it runs; return a message. Raises Broken if it does not end."""
    lock = daemon_call.paths().lock
    holder = process.find_lock_holder(lock)
    if holder is None:
        return "not running"
    if holder.why:
        raise AlreadyRunning(
            f"a {holder.why} of this vault is in progress (pid {holder.pid}); wait until it is done"
        )
    note = ""
    try:
        status = daemon_call.call("memd/status", daemon_call.QUICK_S)
        if status.get("started_by") == "systemd socket":
            note = "; systemd starts it again at the next connection (`memd uninstall systemd` prevents that)"
        daemon_call.call("memd/shutdown", daemon_call.QUICK_S)
        has_ended = process.wait_until(lambda: _has_ended(lock, holder.pid), process.STOP_TIMEOUT_S)
    except BadRequest:
        raise  # the daemon refuses to be stopped by whoever asks
    except MemdError:
        has_ended = False  # it is starting or hangs; a signal still reaches it
    if not has_ended:
        process.kill_daemon(lock)
    return f"stopped, pid {holder.pid}{note}"


def _has_ended(lock: str, pid: int) -> bool:
    """Return whether the lock is free or another process holds it: a holder without a pid may be the old one."""
    holder = process.find_lock_holder(lock)
    return holder is None or holder.pid not in {0, pid}

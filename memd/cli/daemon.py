"""serve, start, stop, restart; help of hook and mcp."""

import gc
import os
import sys
from functools import partial
from typing import Annotated

import typer

from memd.cli import daemon_call
from memd.daemon import process
from memd.errors import AlreadyRunning, Broken, MemdError
from memd.paths import Paths

# MERGED from memd.cli.serve:
# MERGED `memd serve`: the daemon itself, in the foreground, until SIGTERM or Ctrl-C.


SWITCH_S = 0.0005
"""How long a thread may keep the others from running; Python's own 5 ms are felt by whoever waits."""


def run_serve(
    foreground: Annotated[  # noqa: ARG001  # says what happens anyway
        bool,
        typer.Option(
            "--foreground", show_default=False, help="Stay in this terminal; it always does."
        ),
    ] = True,
) -> None:
    """Serve the vault here, until Ctrl-C. `memd start` does it in the background."""
    os.umask(0o077)  # whatever this process makes is for its user alone
    # An agent that memd itself might start must not be remembered by memd.
    os.environ["MEMD_DISABLE"] = "1"
    # Before numpy is loaded: pools of threads that fight over two cores cost more than they give.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import anyio

    from memd import config
    from memd.cli import daemon_call
    from memd.daemon import app, process, systemd
    from memd.errors import VaultError
    from memd.installers import host
    from memd.paths import private_dir

    paths = daemon_call.paths()
    private_dir(paths.state_dir)
    host.write_location(paths.installed)
    manager = systemd.take_from_environment(os.environ, os.getpid(), paths.socket)
    settings = config.load_config(paths.config_file)
    if manager.listening_socket is not None:
        # The manager's socket has taken the place of the one that a daemon started by hand listens
        # at: nobody reaches that daemon any more, and it keeps this one out.
        process.kill_daemon(paths.lock)
    if sys.stderr.isatty():
        print(
            f"memd serves the vault {paths.vault}; log: {paths.log}; Ctrl-C ends it",
            file=sys.stderr,
        )
    # Threads take turns often, and what was loaded until here is never looked through for garbage again.
    sys.setswitchinterval(SWITCH_S)
    gc.freeze()
    try:
        anyio.run(partial(app.serve, settings, paths, manager=manager))
    except VaultError as error:
        # For `memd status`, where this terminal is closed by then.
        process.log_start_failure(paths.log, error.message)
        raise


# MERGED from memd.cli.start:
# MERGED `memd start`: the daemon in the background, answering when this returns.


def run_start() -> None:
    """Start the daemon in the background, and return once it answers."""
    print(start())


def start() -> str:
    """Start the daemon unless one runs; say in words what was done. Raises Broken with the reason."""
    paths = daemon_call.paths()
    is_heard = (
        daemon_call.listens()
    )  # before the lock is looked at: a daemon locks first, then it listens
    if process.find_lock_holder(paths.lock) is not None:
        return _already(paths.lock)
    check_settings()
    if is_heard and (said := _by_its_manager(paths)):
        return said
    before = process.log_size(paths.log)
    child = process.spawn_daemon(paths, os.environ)
    try:
        process.wait_until_ready(child, daemon_call.answers, paths.log, since=before)
    except Broken:
        # Two at once: the other one won, which is as good.
        if process.find_lock_holder(paths.lock) is None or child.poll() is None:
            raise
        return _already(paths.lock)
    holder = process.find_lock_holder(paths.lock)
    if holder is not None and holder.pid != child.pid:
        # Two at once, and the other was quicker: ours must not take over once that one is stopped.
        child.terminate()
        child.wait()
    return f"started, pid {holder.pid if holder else child.pid}, vault {paths.vault}"


def check_settings() -> None:
    """Raise ConfigError if a daemon would refuse the settings: here it is read."""
    from memd import config
    from memd.recall import profiles

    settings = config.load_config(daemon_call.paths().config_file)
    profiles.resolve_profiles(settings.recall.profile, settings.profiles)


def _by_its_manager(paths: Paths) -> str | None:
    """Wait for the daemon that a service manager starts when somebody connects; None if none listens."""
    process.wait_until(
        lambda: daemon_call.answers() or not daemon_call.listens(), process.START_TIMEOUT_S
    )
    if daemon_call.answers():
        holder = process.find_lock_holder(paths.lock)
        return f"started by its service manager, pid {holder.pid if holder else '?'}, vault {paths.vault}"
    if not daemon_call.listens():
        return None
    raise Broken(
        f"a service manager listens at {paths.socket}, but the daemon that it starts does not answer;"
        f" see `systemctl --user status memd.service` and {paths.log}"
    )


def _already(lock_path: str) -> str:
    if not process.wait_until(daemon_call.answers, process.START_TIMEOUT_S):
        holder = process.find_lock_holder(lock_path)
        who = f"pid {holder.pid}" if holder else "it ended meanwhile"
        raise Broken(
            f"a daemon holds the vault but does not answer ({who}); try `memd restart`"
        )
    holder = process.find_lock_holder(lock_path)
    return f"already running, pid {holder.pid if holder else '?'}"


# MERGED from memd.cli.stop:
# MERGED `memd stop`: the daemon is asked to leave, and has left when this returns.


_RETURNS = (
    "; systemd starts it again when somebody connects (`memd uninstall systemd` ends that)"
)


def run_stop() -> None:
    """Stop the daemon. Nothing acknowledged is lost."""
    print(stop())


def stop() -> str:
    """Stop the daemon if one runs; say in words what was done. Raises Broken if it does not end."""
    path = daemon_call.paths().lock
    holder = process.find_lock_holder(path)
    if holder is None:
        return "not running"
    if holder.why:
        raise AlreadyRunning(
            f"a {holder.why} of this vault is under way (pid {holder.pid}); wait until it is done"
        )
    returns = ""
    try:
        if (
            daemon_call.call("memd/status", daemon_call.QUICK_S).get("started_by")
            == "systemd socket"
        ):
            returns = _RETURNS
        daemon_call.call("memd/shutdown", daemon_call.QUICK_S)
        has_left = process.wait_until(
            lambda: process.find_lock_holder(path) != holder, process.STOP_TIMEOUT_S
        )
    except MemdError:
        has_left = False  # it is starting, or hangs: signals do not need its attention
    if not has_left:
        process.kill_daemon(path)
    return f"stopped, pid {holder.pid}{returns}"


# MERGED from memd.cli.restart:
# MERGED `memd restart`: stop, then start; for a new configuration or a new version.


def run_restart() -> None:
    """Stop the daemon if it runs, and start it again."""
    check_settings()  # before the old daemon is gone
    print(stop())
    print(start())


# MERGED from memd.cli.hook:
# MERGED `memd hook`: takes one event from an agent. Here for the help page; `__main__` goes there directly.


PASS_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True}


def run_hook(context: typer.Context) -> None:
    """Take one hook payload on stdin; for the agent's settings. Silent, exits 0."""
    from memd import hook

    raise typer.Exit(hook.main(context.args))


# MERGED from memd.cli.mcp:
# MERGED The help page of `memd mcp`. `__main__` runs the stdio proxy itself directly.


PASS_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True}


def run_mcp(context: typer.Context) -> None:
    """Speak MCP on stdin and stdout; for `claude mcp add`."""
    from memd import stdio_proxy

    raise typer.Exit(stdio_proxy.main(context.args))

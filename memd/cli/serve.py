"""`memd serve`, without typer: what a daemon loads stays in memory as long as it runs."""

import gc
import os
import sys
from functools import partial

from memd.cli import daemon_call
from memd.daemon import process
from memd.errors import MemdError, VaultError
from memd.paths import mend_umask, private_dir

SWITCH_INTERVAL_S = 0.0005
"""Seconds that a thread runs before another one may; Python's default of 5 ms delays searches."""
_INTERRUPTED = 130
"""What a shell reports for a program that SIGINT has ended."""


def main() -> int:
    """Run `memd serve` until it is stopped; return the exit status."""
    mend_umask()
    try:
        serve()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (MemdError, ValueError, OSError, BaseExceptionGroup) as error:
        from memd.cli import app

        return app.print_error(error)
    return 0


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
    from memd.daemon import app, systemd
    from memd.installers import agents, host

    paths = daemon_call.paths()
    private_dir(paths.state_dir)
    host.write_location(paths.installed)
    agents.refresh_launcher(host.Host.current())
    manager = systemd.take_from_environment(os.environ, os.getpid(), paths.socket)
    settings = config.load_config(paths.config_file)
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

"""`memd serve`: the daemon itself, in the foreground, until SIGTERM or Ctrl-C."""

import gc
import os
import sys
from functools import partial
from typing import Annotated

import typer

SWITCH_S = 0.0005
"""How long a thread may keep the others from running; Python's own 5 ms are felt by whoever waits."""


def run(
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

    from memd import config, installed
    from memd.cli import door
    from memd.daemon import notify, process, wiring
    from memd.errors import VaultError
    from memd.paths import private_dir

    paths = door.paths()
    private_dir(paths.state_dir)
    installed.leave(paths.installed)
    starter = notify.take(os.environ, os.getpid(), paths.socket)
    settings = config.load(paths.config_file)
    if starter.door is not None:
        # The manager's socket has taken the place of the one that a daemon started by hand listens
        # at: nobody reaches that daemon any more, and it keeps this one out.
        process.end(paths.lock)
    if sys.stderr.isatty():
        print(
            f"memd serves the vault {paths.vault}; log: {paths.log}; Ctrl-C ends it",
            file=sys.stderr,
        )
    # Threads take turns often, and what was loaded until here is never looked through for garbage again.
    sys.setswitchinterval(SWITCH_S)
    gc.freeze()
    try:
        anyio.run(partial(wiring.serve, settings, paths, starter=starter))
    except VaultError as error:
        # For `memd status`, where this terminal is closed by then.
        process.leave_word(paths.log, error.message)
        raise

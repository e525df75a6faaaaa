"""`memd serve`: the daemon itself, in the foreground, until SIGTERM or Ctrl-C."""

import os
import sys
from typing import Annotated

import typer


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
    # Before numpy is loaded: pools of threads that fight over two cores cost more than they give.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import anyio

    from memd import config
    from memd.cli import door
    from memd.daemon import wiring

    paths = door.paths()
    settings = config.load(paths.config_file)
    if sys.stderr.isatty():
        print(
            f"memd serves the vault {paths.vault}; log: {paths.log}; Ctrl-C ends it",
            file=sys.stderr,
        )
    anyio.run(wiring.serve, settings, paths)

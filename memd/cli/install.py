"""install, uninstall."""

import importlib
import os
import shlex
import subprocess
import sys
import time
from typing import Annotated, Any

import typer

from memd import installed
from memd.cli import daemon_call
from memd.errors import Broken
from memd.installers import plan as installers_plan
from memd.installers.plan import Place, Plan
from memd.paths import private_dir

# MERGED from memd.cli.changes:
# MERGED What `memd install` and `memd uninstall` share: the places they know, and showing a plan or carrying it out.


PLACES = {
    "claude-code": "memd.installers.claude_code",
    "claude-desktop": "memd.installers.claude_desktop",
    "systemd": "memd.installers.systemd",
    "launchd": "memd.installers.launchd",
}
"""Where memd can be installed, and the module that plans it: `install(place)` and `uninstall(place)`."""

COMMAND_S = 120.0


def planner(what: str) -> Any:
    """Return the module that plans for a place; exit with a message if there is none."""
    if what not in PLACES:
        daemon_call.refuse(f"memd knows {', '.join(PLACES)}, not {what!r}")
    return importlib.import_module(PLACES[what])


def place() -> Place:
    """Look where memd runs."""
    return Place(dict(os.environ), installed.python(), installed.PACKAGE, sys.platform)


def show(plan: Plan) -> None:
    """Print what would be done, as diffs and command lines; no secret with them."""
    from memd.capture.redact import redact

    for command in plan.before:
        print(f"would run: {shlex.join(command)}")
    for change in plan.changes:
        print(redact(installers_plan.diff(change)), end="")
    for command in plan.after:
        print(f"would run: {shlex.join(command)}")
    _end(plan)


def carry_out(plan: Plan) -> None:
    """Do what is planned and say what was done. Raises Broken where it had to stop."""
    for change in plan.changes:
        installers_plan.check(change)  # half a plan is worse than none
    for command in plan.before:
        _run(command)
    for change in plan.changes:
        backup = installers_plan.apply(change, time.time_ns() // 1_000_000)
        if change.is_needed:
            verb = "removed" if change.after is None else "wrote"
            print(f"{verb} {change.path}" + (f" (as it was: {backup.name})" if backup else ""))
    for command in plan.after:
        _run(command)
    _end(plan)
    if plan.is_unfinished:
        raise SystemExit(1)


def _end(plan: Plan) -> None:
    if plan.is_empty and not plan.notes:
        print("nothing to do: it is so already")
    for note in plan.notes:
        print(note)


def _run(command: tuple[str, ...]) -> None:
    line = shlex.join(command)
    print(f"$ {line}", flush=True)
    try:
        ended = subprocess.run(  # noqa: S603  # a program that the plan names by its path
            command, stdin=subprocess.DEVNULL, timeout=COMMAND_S, check=False
        )
    except OSError as error:
        raise Broken(f"`{line}` cannot be run ({error.strerror})") from error
    except subprocess.TimeoutExpired as error:
        raise Broken(
            f"`{line}` did not end in {COMMAND_S:.0f} s; end it and run it by hand"
        ) from error
    if ended.returncode:
        raise Broken(f"`{line}` failed (exit {ended.returncode}); mend that and run this again")


# MERGED from memd.cli.install:
# MERGED `memd install`: puts memd where an agent or a service manager looks for it.


def run_install(
    what: Annotated[str, typer.Argument(metavar="WHAT", help=f"{', '.join(PLACES)}.")],
    plugin: Annotated[
        bool,
        typer.Option("--plugin", help="Claude Code: as a plugin instead of in its settings."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; show what would be changed.")
    ] = False,
) -> None:
    """Connect memd to something: `memd install claude-code`. A copy of what it changes stays beside it."""
    module = planner(what)
    if plugin and not hasattr(module, "install_plugin"):
        daemon_call.refuse(f"--plugin is for claude-code; {what} has no plugins")
    plan = (module.install_plugin if plugin else module.install)(place())
    if dry_run:
        show(plan)
        return
    paths = daemon_call.paths()
    private_dir(paths.state_dir)
    installed.leave(paths.installed)
    carry_out(plan)


# MERGED from memd.cli.uninstall:
# MERGED `memd uninstall`: takes out what `memd install` put in, and nothing else. No memory is touched.


def run_uninstall(
    what: Annotated[str, typer.Argument(metavar="WHAT", help=f"{', '.join(PLACES)}.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; show what would be changed.")
    ] = False,
) -> None:
    """Disconnect memd again. What it remembers stays."""
    plan = planner(what).uninstall(place())
    if dry_run:
        show(plan)
    else:
        carry_out(plan)

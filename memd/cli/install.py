"""`memd install`: puts memd where an agent or a service manager looks for it."""

from typing import Annotated

import typer

from memd import installed
from memd.cli import changes, door
from memd.paths import private_dir


def run(
    what: Annotated[str, typer.Argument(metavar="WHAT", help=f"{', '.join(changes.PLACES)}.")],
    plugin: Annotated[
        bool,
        typer.Option("--plugin", help="Claude Code: as a plugin instead of in its settings."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; show what would be changed.")
    ] = False,
) -> None:
    """Connect memd to something: `memd install claude-code`. A copy of what it changes stays beside it."""
    module = changes.planner(what)
    if plugin and not hasattr(module, "install_plugin"):
        door.refuse(f"--plugin is for claude-code; {what} has no plugins")
    plan = (module.install_plugin if plugin else module.install)(changes.place())
    if dry_run:
        changes.show(plan)
        return
    paths = door.paths()
    private_dir(paths.state_dir)
    installed.leave(paths.installed)
    changes.carry_out(plan)

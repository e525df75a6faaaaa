"""`memd hook`: takes one event from an agent. Here for the help page; `__main__` goes there directly."""

import typer

SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}


def run(context: typer.Context) -> None:
    """Take one hook payload on stdin; for the agent's settings. Silent, exits 0."""
    from memd import hook

    raise typer.Exit(hook.main(context.args))

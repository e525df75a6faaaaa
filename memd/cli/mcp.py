"""`memd mcp`: the stdio door for an MCP client. Here for the help page; `__main__` goes there directly."""

import typer

SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}


def run(context: typer.Context) -> None:
    """Speak MCP on stdin and stdout; for `claude mcp add`."""
    from memd import bridge

    raise typer.Exit(bridge.main(context.args))

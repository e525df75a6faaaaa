"""The help page of `memd mcp`. `__main__` runs the stdio proxy itself directly."""

import typer

SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}


def run(context: typer.Context) -> None:
    """Speak MCP on stdin and stdout; for `claude mcp add`."""
    from memd import stdio_proxy

    raise typer.Exit(stdio_proxy.main(context.args))

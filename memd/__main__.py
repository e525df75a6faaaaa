"""Entry point: dispatches hook, mcp, status and serve before typer is imported; the rest is memd.cli.

`memd hook` runs on every event of an agent and `memd status` in every health check, and `memd serve` keeps all that it
imports, so none of them may import typer.
`--vault NAME` is accepted anywhere and becomes `MEMD_VAULT`, which everything that memd starts reads; `--plain`
before the command becomes `MEMD_PLAIN`.
"""

import io
import os
import sys

_INTERRUPTED = 130
"""What a shell reports for a program that SIGINT has ended."""


def main() -> int:
    """Run the command line; return the exit status."""
    vault, arguments = split_vault(sys.argv[1:])
    if vault is not None:
        os.environ["MEMD_VAULT"] = vault
    if arguments[:1] == ["--plain"]:
        os.environ["MEMD_PLAIN"] = "1"
        arguments = arguments[1:]
    command, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    wants_help = rest == ["--help"]
    if command == "hook" and not wants_help:
        from memd import hook_event

        return hook_event.main(rest)
    if command == "mcp" and not wants_help:
        from memd import stdio_proxy

        return stdio_proxy.main(rest)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Memories may hold characters that this terminal cannot encode.
            stream.reconfigure(errors="replace")
    if command == "status" and set(rest) <= {"--json", "--verbose", "-v"}:
        from memd.cli import health

        return health.report(as_json="--json" in rest, verbose=bool({"--verbose", "-v"} & {*rest}))
    if command == "serve" and set(rest) <= {"--foreground"}:
        return _serve()
    from memd.cli import app

    return app.main(arguments)


def _serve() -> int:
    from memd.cli import daemon
    from memd.errors import MemdError

    try:
        daemon.serve()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (MemdError, ValueError, OSError, BaseExceptionGroup) as error:
        from memd.cli import app

        return app.print_error(error)
    return 0


def split_vault(arguments: list[str]) -> tuple[str | None, list[str]]:
    """Take `--vault NAME` or `--vault=NAME` out of the arguments before a `--`."""
    vault, rest = None, list(arguments)
    end = rest.index("--") if "--" in rest else len(rest)
    for at, word in enumerate(rest[:end]):
        if word.startswith("--vault="):
            vault = word.partition("=")[2]
            return vault, rest[:at] + rest[at + 1 :]
        if word == "--vault" and at + 1 < end:
            return rest[at + 1], rest[:at] + rest[at + 2 :]
    return vault, rest


if __name__ == "__main__":
    sys.exit(main())

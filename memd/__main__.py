"""The way in: side doors first, for they must stay light; everything else is the command line.

`memd hook` runs on every event of an agent and `memd status` in every health check, so neither may
pay for a help page. `--vault NAME` is understood anywhere and becomes `MEMD_VAULT`, the one place
where everything that memd starts looks for it.
"""

import io
import os
import sys


def main() -> int:
    """Run what the command line asks for; the exit status."""
    vault, arguments = split_vault(sys.argv[1:])
    if vault is not None:
        os.environ["MEMD_VAULT"] = vault
    command, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    # Whoever asks for help reads the help page, also of what is silent otherwise.
    asks_help = rest == ["--help"]
    if command == "hook" and not asks_help:
        from memd import hook

        return hook.main(rest)
    if command == "mcp" and not asks_help:
        from memd import stdio_proxy

        return stdio_proxy.main(rest)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What was remembered may hold letters that this terminal, or any, cannot show.
            stream.reconfigure(errors="replace")
    if command == "status" and set(rest) <= {"--json"}:
        from memd.cli import health

        return health.report(as_json="--json" in rest)
    from memd.cli import app

    return app.main(arguments)


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

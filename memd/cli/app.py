"""The command line: a table of commands, each loaded when it is used, and how errors are told.

An error is one line on stderr that says what is wrong and what to do; never a traceback. Exit 0 is
success, 1 a failure, 2 that no daemon runs. Not here: the side doors (`__main__.py`).
"""

import contextlib
import difflib
import errno
import importlib
import os
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from memd import __version__
from memd.cli import daemon_call, output
from memd.errors import MemdError, Unreachable

COMMANDS = {
    "search": "memd.cli.query",
    "timeline": "memd.cli.query",
    "why": "memd.cli.query",
    "get": "memd.cli.query",
    "context": "memd.cli.context",
    "injected": "memd.cli.context",
    "remember": "memd.cli.edit",
    "forget": "memd.cli.edit",
    "scrub": "memd.cli.edit",
    "pin": "memd.cli.edit",
    "judge": "memd.cli.edit",
    "project": "memd.cli.project",
    "switch": "memd.cli.project",
    "import": "memd.cli.import_",
    "export": "memd.cli.archive",
    "backup": "memd.cli.archive",
    "restore": "memd.cli.archive",
    "install": "memd.cli.install",
    "uninstall": "memd.cli.install",
    "status": "memd.cli.doctor",
    "start": "memd.cli.daemon",
    "stop": "memd.cli.daemon",
    "restart": "memd.cli.daemon",
    "serve": "memd.cli.daemon",
    "consolidate": "memd.cli.maintenance",
    "reindex": "memd.cli.maintenance",
    "vacuum": "memd.cli.maintenance",
    "doctor": "memd.cli.doctor",
    "mcp": "memd.cli.daemon",
    "hook": "memd.cli.daemon",
}
"""Every command and the module that has its `run_NAME`, in the order of the help page."""
_PASSING = {"hook", "mcp"}
"""Commands whose arguments are passed on as they are."""

FAILED = 1
NOT_RUNNING = 2
"""Never the status of a typing mistake: health checks must be able to trust it."""
_INTERRUPTED = 130
_OF_THE_DISK = {
    errno.ENOSPC: "the disk is full; make room",
    errno.EDQUOT: "your share of the disk is full; make room",
    errno.EROFS: "the disk is mounted read-only; make it writable",
    errno.EIO: "the disk fails; see the system's log, and copy what is on it elsewhere",
}
_Misused: Any = typer.BadParameter.__mro__[2]
"""What typer raises for a command line that it does not understand, wherever this version keeps it."""


class Plain:
    """A help page without Python's types: a switch takes nothing, an option takes a NAME."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the arguments; whatever is wrong with them knows its command."""
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc]  # typer's class beside it
        except _Misused as error:
            error.ctx = error.ctx or ctx
            raise

    def get_params(self, ctx: Any) -> list[Any]:
        """List the parameters, each with a word for its value."""
        listed: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # typer's class beside it
        for one in listed:
            if one.metavar is None and one.param_type_name == "option":
                one.metavar = "" if one.is_flag else one.opts[-1].lstrip("-").upper()
        return listed


class Command(Plain, typer.core.TyperCommand):
    """One command."""


class Guessing(Plain, typer.core.TyperGroup):
    """Answers a mistyped name with the one that was most likely meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command, or say which is near."""
        self.suggest_commands = False  # typer knows only what is loaded, and asks a question
        try:
            return super().resolve_command(ctx, args)
        except _Misused as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            if near:
                error.message = f"{error.message.rstrip('.')}, but there is {near[0]!r}"
            raise


class Commands(Guessing):
    """Loads a command's module only when that command, or the help page, needs it."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # typer's signature
        """List the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  # typer's signature
        """Build one command, or None if there is no such."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name])
        one = typer.Typer(add_completion=False)
        run = getattr(module, f"run_{cmd_name}")
        if cmd_name == "project":
            return _group(cmd_name, run, module.PROJECT_COMMANDS)
        settings = module.PASS_ARGUMENTS if cmd_name in _PASSING else None
        one.command(cmd_name, cls=Command, context_settings=settings)(run)
        return typer.main.get_command(one)


class Group(Guessing):
    """A command with parts of its own, all in one module."""


def _group(name: str, run: Any, parts: dict[str, Any]) -> Any:
    """Build a command whose `run` acts where none of its parts is named."""
    app = typer.Typer(name=name, cls=Group, add_completion=False, invoke_without_command=True)
    app.callback()(run)
    for part, function in parts.items():
        app.command(part, cls=Command)(function)
    return typer.main.get_command(app)


def _version(asked: bool) -> None:
    if asked:
        print(__version__)
        raise typer.Exit


def build() -> typer.Typer:
    """Build the command line without any of its commands loaded."""
    app = typer.Typer(cls=Commands, pretty_exceptions_enable=False)

    @app.callback()
    def memd(
        vault: Annotated[  # taken out by __main__.py; here for the help page
            str | None,
            typer.Option(
                metavar="NAME",
                help="Another memory in a file of its own, with a daemon of its own.",
            ),
        ] = None,
        version: Annotated[  # acts in its callback
            bool,
            typer.Option(
                "--version", callback=_version, is_eager=True, help="Which memd this is."
            ),
        ] = False,
    ) -> None:
        """Long-term memory for coding agents: local, explained, and never in the way."""

    return app


def main(arguments: list[str]) -> int:
    """Run a command; the exit status."""
    with told() as outcome:
        ended = build()(arguments or ["--help"], prog_name="memd", standalone_mode=False)
        outcome.status = ended if isinstance(ended, int) else 0
    return outcome.status


class Outcome:
    """How a command ended."""

    status = 0


@contextlib.contextmanager
def told() -> Iterator[Outcome]:
    """Turn what a command raises into one line and an exit status."""
    outcome = Outcome()
    try:
        yield outcome
    except SystemExit as end:
        outcome.status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except (KeyboardInterrupt, typer.Abort):
        outcome.status = _INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has seen enough; nothing may be flushed into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (_Misused, MemdError, ValueError, OSError, BaseExceptionGroup) as error:
        outcome.status = _tell(_innermost(error))


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _tell(error: BaseException) -> int:
    if isinstance(error, _Misused):
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "memd"
        said = error.format_message().replace("Value error, ", "").rstrip(".")
        message = f"{said}; see `{path} --help`"
    elif isinstance(error, OSError) and error.errno in _OF_THE_DISK:
        message = f"{_OF_THE_DISK[error.errno]} ({error})"
    elif isinstance(error, MemdError | ValueError | OSError):
        message = daemon_call.for_this_vault(str(error))
    else:
        raise error
    sys.stdout.flush()  # what was said before stands before it
    print(f"memd: {output.clean(message)}", file=sys.stderr)
    return NOT_RUNNING if isinstance(error, Unreachable) else FAILED

"""The command line: a table of commands, each loaded when it is used, and how errors are printed.

An error is one line on stderr that says what is wrong and what to do, never a traceback. The exit status
is 0 for success, 1 for a failure, 2 if no daemon runs. `memd hook`, `memd mcp`, `memd status` and `memd serve`
do not come here unless help is asked for: `__main__.py` runs them without typer.
"""

import difflib
import errno
import functools
import importlib.util
import inspect
import itertools
import os
import pkgutil
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.abc import InspectLoader
from types import CodeType
from typing import Annotated, Any

import typer
import typer.core
import typer.main
from typer import Option

from memd import __version__
from memd.cli import daemon_call, output
from memd.cli.output import Screen, find_screen, wrap
from memd.cli.terminal import JsonOption, complete_vaults, note_json
from memd.errors import MemdError, Unreachable
from memd.paths import mend_umask

_GROUPS = (
    ("Ask", 'memd search "why did login answer 500"', (
        ("query", "search list get"), ("why", "timeline why"), ("view", "view"), ("query", "context injected"),
    )),
    ("Correct", 'memd remember "deploy on Fridays only" --kind instruction', (
        ("review", "review enforce"), ("edit", "remember edit forget scrub pin"), ("review", "judge"), ("edit", "undo"),
    )),
    ("Set up", "memd install claude-code", (
        ("install", "install uninstall"), ("import_", "import"), ("maintenance", "notes watch"),
        ("project", "project switch"), ("install", "model"),
    )),
    ("Keep", "memd backup", (
        ("doctor", "status doctor"), ("daemon", "start stop restart"), ("app", "serve"), ("archive", "sync export backup restore"),
        ("project", "team"),
        ("maintenance", "consolidate reindex vacuum"), ("app", "mcp hook"),
    )),
)  # fmt: skip
"""Name, example, and the commands by the modules of their functions."""
COMMANDS = {
    name: f"memd.cli.{module}:run_{name}"
    for _, _, modules in _GROUPS
    for module, names in modules
    for name in names.split()
}
"""Every command and the function that runs it, in the order of the help page."""
SUBCOMMANDS = {
    "project": "memd.cli.project:SUBCOMMANDS", "model": "memd.cli.install:SUBCOMMANDS",
    "team": "memd.cli.project:TEAM_SUBCOMMANDS",
}  # fmt: skip
"""Commands with subcommands, and the table of the functions that run those."""
_OPTIONS = (
    ("--vault NAME", "use another vault: a file with a daemon of its own"),
    ("--plain", "no columns and no colours; so it is in a pipe; NO_COLOR takes only the colours"),
    ("--version", "print the version"),
    ("--install-completion", "complete commands, kinds, projects and vaults in this shell"),
)
_HELP_WIDTH_MIN, _HELP_WIDTH_MAX, _NAME_WIDTH, _OPTION_WIDTH = 40, 100, 15, 23
_BOXES_FROM = 60
"""Columns below which the boxes of a help page would cut words."""
_FORWARDING = {"hook", "mcp"}
"""Commands that pass on their arguments unread."""
_WITHOUT_RESULT = {
    "view", "serve", "start", "stop", "restart", "export", "restore", "mcp", "hook", "project", "model", "model add",
    "model remove", "team",
}  # fmt: skip
"""Commands that do something and have nothing to tell a program."""
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_OF_WORDS = {"search", "remember", "context"}
"""Commands that take words of the user's language."""
_TYPO_RATIO = 0.8
"""Likeness to an option from which on a word was perhaps meant to be it."""
_SHORT_WITH_NUMBER = re.compile(r"-[a-z]\d+")

FAILED = 1
NOT_RUNNING = 2
"""Never the exit status of a typing mistake, so that health checks can rely on it."""
_INTERRUPTED = 130
"""What a shell reports for a program that SIGINT has ended."""
_DISK_ADVICE = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "your disk quota is used up; free some space",
    errno.EROFS: "the disk is mounted read-only; make it writable",
    errno.EIO: "the disk has failed; look into the system's log and copy your files to another disk",
}
_UsageError: Any = typer.BadParameter.__mro__[2]
"""What typer raises for a command line that it does not understand; versions keep it in different modules."""


class PlainHelp:
    """Shows options on the help page without Python's types: an option takes a NAME, a flag nothing."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the arguments; an error knows its command, whose help page it names."""
        try:
            return super().parse_args(ctx, args)  # type: ignore[misc]  # of the typer class beside this
        except _UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def get_params(self, ctx: Any) -> list[Any]:
        """List the parameters, each with a word for its value."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the typer class beside this
        for param in params:
            if param.metavar is None and param.param_type_name == "option":
                param.metavar = "" if param.is_flag else param.opts[-1].lstrip("-").upper()
        return params


class PlainCommand(PlainHelp, typer.core.TyperCommand):
    """One command."""


class WordsCommand(PlainCommand):
    """A command of words that need no quotes: what looks like an option after a word, and is none, is a word."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the options, then all words."""
        return super().parse_args(ctx, separate_words(args, self.get_params(ctx)))


def separate_words(arguments: list[str], params: Iterable[Any]) -> list[str]:
    """Return the options with their values, `--`, and the words."""
    is_flag = {
        name: param.is_flag
        for param in params
        if param.param_type_name == "option"
        for name in param.opts
    }
    options: list[str] = []
    words: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            words += rest
        elif argument in is_flag:
            options += [argument, *itertools.islice(rest, int(not is_flag[argument]))]
        elif argument.partition("=")[0] in is_flag or (
            _SHORT_WITH_NUMBER.fullmatch(argument) and argument[:2] in is_flag
        ):
            options.append(argument)
        elif words or argument == "-" or not argument.startswith("-"):
            words.append(argument)
            if similar := difflib.get_close_matches(argument, is_flag, 1, _TYPO_RATIO):
                print(
                    f"memd: {argument} counts as a word; the option is {similar[0]}",
                    file=sys.stderr,
                )
        else:
            options.append(argument)  # unknown, before any word: a typing mistake
    return [*options, "--", *words] if words else options


class SuggestingGroup(PlainHelp, typer.core.TyperGroup):
    """Commands; answers a mistyped name with the most similar one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command, or suggest a similar one."""
        self.suggest_commands = False  # typer's suggestion knows only the commands that are loaded
        try:
            return super().resolve_command(ctx, args)
        except _UsageError as error:
            similar = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            if similar:
                error.message = f"{error.message.rstrip('.')} (did you mean {similar[0]!r}?)"
            raise


class LazyGroup(SuggestingGroup):
    """Loads the module of a command only when that command or the help page needs it."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # typer's signature
        """List the commands in the order of the table."""
        return list(COMMANDS)

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # click's signature
        """Print the commands in their groups, a line each, and an example of each group."""
        terminal = find_screen()
        if os.environ.get("COLUMNS", "").isdecimal():  # as the help pages of the commands do
            terminal = terminal._replace(width=max(int(os.environ["COLUMNS"]), _HELP_WIDTH_MIN))
        print("\n".join(_format_help_page(terminal)))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002  # typer's signature
        """Build one command; None if it does not exist."""
        if cmd_name not in COMMANDS:
            return None
        run = _add_json(cmd_name, pkgutil.resolve_name(COMMANDS[cmd_name]))
        if cmd_name not in SUBCOMMANDS:
            app = _new_typer()
            forwards = {"allow_extra_args": True, "ignore_unknown_options": True}
            settings = forwards if cmd_name in _FORWARDING else None
            kind = WordsCommand if cmd_name in _OF_WORDS else PlainCommand
            app.command(cmd_name, cls=kind, context_settings=settings)(run)
            return typer.main.get_command(app)
        app = _new_typer(name=cmd_name, cls=SuggestingGroup, invoke_without_command=True)
        app.callback()(run)
        for name, run_subcommand in pkgutil.resolve_name(SUBCOMMANDS[cmd_name]).items():
            run = _add_json(f"{cmd_name} {name}", run_subcommand)
            app.command(name, cls=PlainCommand)(run)
        return typer.main.get_command(app)


def _add_json(command: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """Return what runs a command, with `--json` behind its own options if it has a result."""
    if command in _WITHOUT_RESULT:
        return run

    @functools.wraps(run)
    def run_with_json(*args: Any, as_json: bool = False, **options: Any) -> Any:
        note_json(as_json)
        return run(*args, **options)

    own = inspect.signature(run)
    option = inspect.Parameter("as_json", _KEYWORD, default=False, annotation=JsonOption)
    signature = own.replace(parameters=[*own.parameters.values(), option])
    run_with_json.__signature__ = signature  # type: ignore[attr-defined]  # what typer reads
    return run_with_json


def _new_typer(**settings: Any) -> typer.Typer:
    """A command, whose help page has boxes only where they leave room for its words."""
    if shutil.get_terminal_size().columns < _BOXES_FROM:
        settings["rich_markup_mode"] = None
    return typer.Typer(add_completion=False, **settings)


def _format_help_page(terminal: Screen) -> Iterator[str]:
    width = min(terminal.width, _HELP_WIDTH_MAX)
    yield from wrap("Usage: memd [--vault NAME] [--plain] COMMAND …", width)
    yield ""
    yield from wrap("Long-term memory for coding agents, on your own machine.", width)
    for name, example, modules in _GROUPS:
        yield ""
        yield terminal.paint(name, "bold")
        for command in " ".join(names for _, names in modules).split():
            text = read_docstring(command).partition("\n")[0].partition(". ")[0].rstrip(".")
            painted = f"  {terminal.paint(command.ljust(_NAME_WIDTH - 2), '36')}"
            yield from _hang(painted, text, _NAME_WIDTH, width)
        lines = wrap(f"for example: {example}", width - 2)
        yield from (terminal.paint(f"  {line}", "dim") for line in lines)
    yield ""
    for option, text in _OPTIONS:
        yield from _hang(option.ljust(_OPTION_WIDTH), text, _OPTION_WIDTH, width)
    yield from wrap("`memd COMMAND --help` tells all about one.", width)


def read_docstring(command: str) -> str:
    """Read the docstring of a command's function in its compiled module, which is not run: most load much."""
    module, _, name = COMMANDS[command].partition(":")
    spec = importlib.util.find_spec(module)
    code = spec.loader.get_code(module) if spec and isinstance(spec.loader, InspectLoader) else None
    for found in code.co_consts if code else ():
        if isinstance(found, CodeType) and found.co_name == name:
            doc = found.co_consts[0] if found.co_consts else None
            return doc if isinstance(doc, str) else ""
    return ""


def _hang(name: str, text: str, indent: int, width: int) -> Iterator[str]:
    """A name and the lines of a text beside it; the name takes `indent` columns."""
    for line in wrap(text, width - indent):
        yield name + line
        name = " " * indent


def build() -> typer.Typer:
    """Build the command line without loading any of its commands."""
    app = typer.Typer(cls=LazyGroup, pretty_exceptions_enable=False)

    @app.callback()
    def memd(
        vault: Annotated[  # __main__.py has already removed it; here for the help page
            str | None,
            Option(
                metavar="NAME",
                help="Use another vault: a separate file with a daemon of its own.",
                autocompletion=complete_vaults,
            ),
        ] = None,
        plain: Annotated[  # the same
            bool, Option("--plain", help="Print without columns and colours, as into a pipe.")
        ] = False,
        version: Annotated[  # acts in its callback
            bool,
            Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
        ] = False,
    ) -> None:
        """Long-term memory for coding agents, on your own machine."""

    return app


def _print_version(is_given: bool) -> None:
    if is_given:
        print(__version__)
        raise typer.Exit


def main(arguments: list[str]) -> int:
    """Run a command; return the exit status."""
    status: Any = 0
    mend_umask()
    try:
        status = build()(arguments or ["--help"], prog_name="memd", standalone_mode=False)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except (KeyboardInterrupt, typer.Abort):
        status = _INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe; nothing may be flushed into it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (_UsageError, MemdError, ValueError, OSError, BaseExceptionGroup) as error:
        status = print_error(error, arguments)
    return status if isinstance(status, int) else 0


_ARGUMENT = re.compile(r"([a-z_]+)(?:\.\d+)?: ")
"""The name of a call's argument at the beginning of an error."""
_TYPED = {"k": "--limit", "id": "ID", "ids": "ID", "other": "ID", "query": "WORDS", "text": "TEXT"}
"""Argument of a call → what a person types for it."""


def _name_as_typed(message: str, arguments: Sequence[str]) -> str:
    """The message with the option or the argument that was typed in place of the call's."""
    found = _ARGUMENT.match(message)
    if found is None:
        return message
    option = f"--{found[1].replace('_', '-')}"
    is_typed = any(one.partition("=")[0] == option for one in arguments)
    return f"{option if is_typed else _TYPED.get(found[1], found[1])}: {message[found.end() :]}"


def print_error(error: BaseException, arguments: Sequence[str] = ()) -> int:
    """Print an error on one line of stderr; return the exit status. Raises it if it is not expected."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, _UsageError):
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "memd"
        reason = error.format_message().replace("Value error, ", "").rstrip(".")
        message = f"{reason}; see `{path} --help`"
    elif isinstance(error, OSError) and error.errno in _DISK_ADVICE:
        message = f"{_DISK_ADVICE[error.errno]} ({error})"
    elif isinstance(error, MemdError | ValueError | OSError):
        message = _name_as_typed(daemon_call.insert_vault(str(error)), arguments)
    else:
        raise error
    sys.stdout.flush()  # what was printed before must come first
    print(f"memd: {output.clean(message)}", file=sys.stderr)
    return NOT_RUNNING if isinstance(error, Unreachable) else FAILED


# ── Help pages of commands that run without typer ────────────────────────────────────────────────


def run_serve(
    foreground: bool = Option(  # noqa: ARG001  # says what happens anyway
        True, "--foreground", show_default=False, help="Stay in this terminal; it always does."
    ),
) -> None:
    """Run the daemon in the foreground until Ctrl-C. `memd start` runs it in the background."""
    from memd.cli import daemon

    daemon.serve()


def run_hook(context: typer.Context) -> None:
    """Read one hook payload from stdin; for the settings of an agent. Prints no error and exits 0."""
    from memd import hook_event

    raise typer.Exit(hook_event.main(context.args))


def run_mcp(context: typer.Context) -> None:
    """Speak MCP on stdin and stdout; for `claude mcp add`."""
    from memd import stdio_proxy

    raise typer.Exit(stdio_proxy.main(context.args))

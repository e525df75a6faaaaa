"""The command line as processes: what loads, what it says when it is misused, the side doors."""

import errno
import os
import pkgutil
import re
import subprocess
import sys

import pytest
import typer.main

from memd.__main__ import split_vault
from memd.cli import app
from tests.tables import every_row, read_tables

TABLES = read_tables("cli/app")


HEAVY = {"mcp", "numpy", "anyio", "httpx", "apsw", "structlog", "jinja2", "markdown_it"}
"""Not pydantic: some versions of typer check arguments with it."""


@every_row(
    ("given", "vault", "rest"),
    [
        (["status"], None, ["status"]),
        (["--vault", "work", "status"], "work", ["status"]),
        (["status", "--vault=work"], "work", ["status"]),
        (["search", "--", "--vault", "x"], None, ["search", "--", "--vault", "x"]),
        (["search", "--vault"], None, ["search", "--vault"]),
    ],
)
def test_a_vault_is_named_anywhere_before_two_dashes(given, vault, rest):
    assert split_vault(given) == (vault, rest)


@pytest.mark.parametrize("name", app.COMMANDS)
def test_the_help_page_reads_what_a_command_says_of_itself_without_running_its_module(name):
    assert app.read_docstring(name) == pkgutil.resolve_name(app.COMMANDS[name]).__doc__


def test_help_names_every_command(alone):
    ran = alone("--help")
    assert ran.status == 0
    assert all(name in ran.out for name in app.COMMANDS)


@every_row("name", app.COMMANDS)
def test_no_word_of_a_help_page_is_read_as_markup(name):
    functions = [pkgutil.resolve_name(app.COMMANDS[name])]
    if name in app.SUBCOMMANDS:
        functions += pkgutil.resolve_name(app.SUBCOMMANDS[name]).values()
    assert not [one for one in functions if re.search(r"\[/?[a-z]+\]", one.__doc__ or "")]


def test_an_option_without_its_value_names_the_help_page_of_its_command(alone):
    ran = alone("export", "--project")
    assert (ran.status, ran.err.count("\n")) == (1, 1)
    assert ran.err.endswith("requires an argument; see `memd export --help`\n")


@pytest.mark.parametrize("width", [40, 60])
def test_the_help_page_is_wrapped_and_never_cut(alone, monkeypatch, width):
    wide = alone("--help").out.replace("COMMAND …", "")
    monkeypatch.setenv("COLUMNS", str(width))
    narrow = alone("--help").out.replace("COMMAND …", "")
    assert max(map(len, narrow.splitlines())) <= width
    assert "…" not in wide + narrow
    assert wide.split() == narrow.split()


@pytest.mark.parametrize(
    ("given", "options", "words"), TABLES["what_is_no_option_is_a_word_once_words_have_begun"]
)
def test_what_is_no_option_is_a_word_once_words_have_begun(given, options, words):
    params = typer.main.get_command(app.build()).get_command(None, "search").params
    separated = app.separate_words(given.split(), params)
    assert separated == [*options.split(), *(["--", *words.split()] if words else [])]


def test_a_word_that_is_nearly_an_option_is_pointed_out(alone):
    assert "--knd counts as a word; the option is --kind" in alone("search", "x", "--knd", "y").err


def test_memd_alone_shows_the_help(alone):
    assert alone().out == alone("--help").out


@pytest.mark.parametrize("name", sorted(app.COMMANDS))
def test_every_command_has_a_help_page(alone, name):
    ran = alone(name, "--help")
    assert ran.status == 0
    assert name in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"), TABLES["a_usage_error_is_one_line_and_never_exits_2"]
)
def test_a_usage_error_is_one_line_and_never_exits_2(alone, arguments, message):
    """2 means that no daemon runs; a health check with a typing mistake must not say that."""
    ran = alone(*arguments)
    assert ran.status == 1
    assert message in ran.err
    assert ran.err.startswith("memd: ")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [["search", "x"], ["why", "1"], ["timeline"], ["get", "1"], ["remember", "x"], ["pin", "1"],
     ["forget", "1"], ["reindex"], ["consolidate"], ["vacuum"], ["scrub", "x"], ["import", "claude-code", "."]],
)  # fmt: skip
def test_without_a_daemon_every_query_exits_2_and_says_what_to_do(alone, arguments):
    ran = alone(*arguments)
    assert ran.status == 2
    assert "memd start" in ran.err
    assert ran.err.count("\n") == 1


def test_advice_names_the_selected_vault(machine):
    for command in (["status"], ["search", "x"]):
        ran = machine.run("--vault", "work", *command)
        assert ran.status == 2
        assert "`memd --vault work start`" in ran.out + ran.err


def test_an_invalid_vault_name_is_refused(machine):
    for command in ("status", "stop"):
        ran = machine.run("--vault", "../x", command)
        assert ran.status == 1
        assert "letters, digits" in ran.err
        assert "Traceback" not in ran.err


def loaded(machine, *arguments):
    """The modules that a command has loaded when it ends."""
    program = (
        "import sys\n"
        f"sys.argv = ['memd', *{list(arguments)!r}]\n"
        "from memd.__main__ import main\n"
        "try:\n    main()\nfinally:\n    print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=machine.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    names = set(ended.stderr.split())
    return names | {name.partition(".")[0] for name in names}


COMMAND_LINE = {"typer", "rich", "click", "pydantic"}


@pytest.mark.parametrize(
    ("arguments", "too"),
    [
        (["status"], COMMAND_LINE), (["hook"], COMMAND_LINE), (["search", "x"], set()), (["stop"], set()),
        (["--help"], {"memd.transfer", "memd.cli.import_"}), (["--version"], set()),
    ],
)  # fmt: skip
def test_only_serve_loads_heavy_libraries_and_status_and_hook_not_even_the_command_line(
    machine, arguments, too
):
    assert not loaded(machine, *arguments) & (HEAVY | too)


def test_serve_keeps_nothing_in_memory_that_only_other_commands_need(machine):
    program = (
        "import sys\n"
        "from memd.__main__ import main\n"
        "sys.argv = ['memd', 'serve']\n"
        "status = main()\n"
        "print(*sys.modules, file=sys.stderr)\n"
        "sys.exit(status)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], env=machine.environ, stderr=subprocess.PIPE, text=True
    ) as process:
        machine.wait_for(lambda status: status["health"] == "healthy")
        machine.run("stop")
        modules = set(process.stderr.read().split())
    assert "memd.daemon.app" in modules
    assert not modules & {
        "typer",
        "click",
        "rich",
        "regex",
        "httpx",
        "mcp",
        "jinja2",
        "memd.cli.app",
    }


def test_version_is_printed(machine):
    assert machine.run("--version").out.strip() == __import__("memd").__version__


def test_a_closed_pipe_is_not_an_error(machine):
    read, write = os.pipe()
    os.close(read)
    with machine.popen("--help", stdout=write, stderr=subprocess.PIPE) as process:
        os.close(write)
        assert b"Traceback" not in process.stderr.read()


def test_a_letter_that_the_terminal_cannot_show_is_replaced(machine):
    machine.environ |= {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    ran = machine.run("get", "\N{SNOWMAN}")
    assert ran.status == 1
    assert "an id is a number" in ran.err


@pytest.mark.parametrize(
    ("code", "advice"), [(errno.ENOSPC, "free some space"), (errno.EROFS, "make it writable")]
)
def test_a_disk_error_says_what_to_do(capsys, code, advice):
    assert app.print_error(OSError(code, os.strerror(code), "/vault")) == 1
    assert advice in capsys.readouterr().err

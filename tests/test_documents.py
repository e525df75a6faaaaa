"""README.md and docs/ say what memd does: their examples are real output, and their commands exist."""

import ast
import contextlib
import functools
import html
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from memd.cli import app
from memd.cli.app import COMMANDS
from tests.tables import every_row

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
README = PAGES[0].read_text(encoding="utf-8")
DATE = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\dZ)?|#\d+")
"""And numbers: which memory is written first depends on how quickly a session is distilled."""


@pytest.fixture(scope="module")
def played():
    """Run the two sessions of the picture through a real daemon, once."""
    words = [sys.executable, ROOT / "scripts" / "picture", "--text"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_a_second_session_knows_what_the_first_one_learned(played):
    # What the start shows is not shown again with the prompt.
    start, answer = played.split("\n\n")
    assert "user: Always run python3 -m unittest -q" in start
    assert "user: We keep sessions in SQLite rather than Redis" in start
    assert "agent: Login answers 500 when the token is garbage: `decode_token`" in start
    assert '"title": "We keep sessions in SQLite rather than Redis, because one machine' in answer


def test_the_picture_shows_the_same_memories(played):
    picture = (ROOT / "docs" / "second-session.svg").read_text(encoding="utf-8")
    shown = [html.unescape(line) for line in re.findall(r">\s*(- #.*?)</text>", picture)]
    assert len(shown) == 3
    real = DATE.sub("DATE", played)
    assert [line for line in shown if DATE.sub("DATE", line) not in real] == []
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", ""), "no outside fonts"


def test_the_readme_quotes_real_output(played):
    (context,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    real = DATE.sub("DATE", played)
    lines = [line for line in context.splitlines() if not line.startswith("[…")]
    assert [line for line in lines if DATE.sub("DATE", line) not in real] == []


FILES = [
    str(path.relative_to(ROOT))
    for folder in ("memd", "scripts", "tests")
    for path in (ROOT / folder).rglob("*.py")
]


@every_row("page", PAGES, ids=lambda page: page.name)
def test_every_source_file_that_a_page_names_exists(page):
    named = re.findall(r"`(?:memd/)?([a-z0-9_/]+\.py)`", page.read_text(encoding="utf-8"))
    assert find_missing_files(named) == set()


def find_missing_files(names):
    """Return those of these names of source files that no file has."""
    return {name for name in names if not any(f"/{file}".endswith(f"/{name}") for file in FILES)}


MODULES = sorted(file for file in FILES if file.startswith("memd/"))


def test_every_source_file_that_a_docstring_names_exists():
    """An absolute path, and a path in backticks, is an example."""
    sources = {module: (ROOT / module).read_text(encoding="utf-8") for module in MODULES}
    named = {
        (module, name)
        for module, source in sources.items()
        if ".py" in source
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for name in re.findall(
            r"(?<![\w./*`])[a-z0-9_][a-z0-9_/]*\.py\b(?!`)", str(node.value.value)
        )
    }
    missing = find_missing_files({name for _, name in named})
    assert {(module, name) for module, name in named if name in missing} == set()


def test_no_module_has_a_note_of_an_unfinished_merge():
    sources = {module: (ROOT / module).read_text(encoding="utf-8") for module in MODULES}
    assert [module for module, source in sources.items() if "# MERGED" in source] == []


COMMAND_LINES = {
    page.name: [
        line.partition(" #")[0].strip()
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        for line in block.splitlines()
    ]
    for page in PAGES
}
CODE = [code for page in PAGES for code in re.findall(r"`(memd [^`]+)`", page.read_text("utf-8"))]


def memd_calls():
    """Yield the words after `memd` of every command that a document tells to run."""
    for line in (line for lines in COMMAND_LINES.values() for line in lines):
        for part in re.split(r"&&|\|\|?", line):
            words = shlex.split(part)
            if words and words[0].rpartition("/")[2] == "memd":
                yield tuple(words[1:])
    for code in CODE:
        for part in code.split(", "):
            yield tuple(part.replace('"', "").split()[1:])


CALLS = sorted({(words[0], *words) for words in memd_calls() if words and words[0] in COMMANDS})


def test_every_documented_command_is_checked():
    assert {name for name, *_ in CALLS} == set(COMMANDS)


@functools.cache
def read_help(name):
    """Run `memd NAME --help` and return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        app.main([name, "--help"])
    return printed.getvalue()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_documented_option_exists(name):
    options = {
        word
        for command, *words in CALLS
        if command == name
        for word in words
        if word.startswith("--") and word != "--vault"
    }
    assert {option for option in options if option not in read_help(name)} == set()


@every_row("page", PAGES, ids=lambda page: page.name)
def test_an_option_that_stands_alone_is_one_of_a_command_beside_it(page):
    """Beside it: in the same point of a list, row of a table or paragraph. Of no command: one of another program."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    unknown = []
    for block in re.split(r"\n(?=\n|- |\|)", text):
        names = {name for name in re.findall(r"`memd ([a-z]+)", block) if name in COMMANDS}
        helped = "".join(read_help(name) for name in names)
        unknown += [
            (option, *sorted(names))
            for option in re.findall(r"`(--[a-z-]+)", block)
            if names and option not in helped
        ]
    assert unknown == []


NOT_RUN = {
    "scripts/run": "CI runs it, in a fresh clone",
    "git pull": "there is nothing to pull from",
    "uv tool install": "it needs a network",
    "memd model": "it needs a network; tests/cli/test_model.py gives it a wheel",
    "memd team": "it needs a server; tests/sharing/test_team_daemons.py has one",
    "cd ~/src/app && memd team": "as above",
    "memd view": "it waits for a browser; tests/viewer drives it",
}
RUN_ALL_THE_SAME = {"memd view --static page.html"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A person's home with sessions of Claude Code in it, and a clone whose .venv has memd."""
    home = tmp_path_factory.mktemp("home")
    program = home / "clone" / ".venv" / "bin" / "memd"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -P -m memd "$@"\n')
    program.chmod(0o700)
    (home / ".claude" / "projects").mkdir(parents=True)
    (home / ".codex").mkdir()
    (home / ".copilot").mkdir()
    (home / ".cursor").mkdir()
    yield home
    run_line("memd stop", home)


def run_line(line, home):
    """Run a line as a shell in the clone does, with memd on the PATH."""
    clone = home / "clone"
    return subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=clone,
        env={"HOME": str(home), "PATH": f"{clone}/.venv/bin:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("page", [name for name, lines in COMMAND_LINES.items() if lines])
def test_the_shell_commands_of_a_page_run_one_after_the_other(page, home):
    assert run_line("memd start", home).returncode == 0
    for line in COMMAND_LINES[page]:
        plain = line.replace(".venv/bin/", "")
        if not plain.startswith(tuple(NOT_RUN)) or plain in RUN_ALL_THE_SAME:
            ran = run_line(line, home)
            assert ran.returncode == 0, (line, ran.stdout, ran.stderr)

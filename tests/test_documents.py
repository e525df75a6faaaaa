"""README.md and docs/ say what memd does: their examples are real output, and their commands exist."""

import ast
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
    assert '"title": "We keep sessions in SQLite rather than Redis"' in answer


def test_the_picture_shows_the_same_memories():
    picture = (ROOT / "docs" / "second-session.svg").read_text(encoding="utf-8")
    assert "sessions stay in SQLite rather than Redis" in picture
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", ""), "no outside fonts"


def test_the_readme_quotes_real_output(played):
    quoted = re.findall(r"```(?:text|json)\n(.*?)```", README, re.DOTALL)
    assert len(quoted) == 2
    context, answer = quoted
    real = DATE.sub("DATE", played)
    lines = [line for line in context.splitlines() if not line.startswith("[…")]
    assert [line for line in lines if DATE.sub("DATE", line) not in real] == []
    keys = set(re.findall(r'"[*\w]+":', answer))
    assert {key for key in keys if key not in real} == set()


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
    named = {
        (module, name)
        for module in MODULES
        for node in ast.walk(ast.parse((ROOT / module).read_text(encoding="utf-8")))
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


COMMAND_LINES = [
    line.partition(" #")[0]
    for page in PAGES
    for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for line in block.splitlines()
]
CODE = [code for page in PAGES for code in re.findall(r"`(memd [^`]+)`", page.read_text("utf-8"))]


def memd_calls():
    """Yield the words after `memd` of every command that a document tells to run."""
    for line in COMMAND_LINES:
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


@pytest.mark.parametrize("name", COMMANDS)
def test_every_documented_option_exists(name, capsys):
    app.main([name, "--help"])
    help_page = capsys.readouterr().out
    options = {
        word
        for command, *words in CALLS
        if command == name
        for word in words
        if word.startswith("--") and word != "--vault"
    }
    assert {option for option in options if option not in help_page} == set()


SAFE = [
    "memd install claude-code --dry-run",
    "memd import --all --dry-run",
    "memd start",
    "memd status",
    "memd backup",
    "memd export memories.jsonl",
    "memd uninstall claude-code",
    "memd stop",
]


def test_the_readme_s_shell_commands_run(tmp_path):
    environ = {
        "HOME": str(tmp_path),
        "MEMD_HOME": str(tmp_path / "memd"),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
    }
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    for command in SAFE:
        assert command in README, "the list above follows the README"
        ran = subprocess.run(
            [sys.executable, "-P", "-m", *command.split()],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, (command, ran.stdout, ran.stderr)

"""What a shell completes, asked as the shell asks."""

import subprocess
import sys

import pytest

from memd.cli import terminal
from tests.tables import every_row, read_tables

TABLES = read_tables("cli/completion")


@pytest.fixture
def complete(served):
    def ask(line):
        environ = served.environ | {
            "_MEMD_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")),
        }  # fmt: skip
        command = [sys.executable, "-m", "memd"]
        return subprocess.run(
            command, env=environ, cwd=served.home, capture_output=True, text=True, check=True
        ).stdout.split()

    return ask


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("memd ti", {"timeline"}),
        ("memd search --kind de", {"decision"}),
        ("memd search --project led", {"ledger"}),
        ("memd import claude-c", {"claude-code"}),
        ("memd project rename led", {"ledger"}),
    ],
)
def test_the_shell_completes(complete, line, expected):
    assert set(complete(line)) == expected


@every_row("name", TABLES["a_name_that_a_shell_would_read_as_more_than_a_word_is_not_offered"])
def test_a_name_that_a_shell_would_read_as_more_than_a_word_is_not_offered(name):
    offer = terminal.complete_from(name, "ledger", "/home/dev/ledger-2.0", "Größe")
    assert offer("") == ["ledger", "/home/dev/ledger-2.0", "Größe"]
    assert offer(name) == []

from pathlib import Path

import pytest

from memd.installers import claude_plugin
from memd.installers.plan import Place, Plan


@pytest.fixture
def place(tmp_path):
    return Place({"HOME": str(tmp_path), "PATH": ""}, "/p", Path("/a b/memd"), "linux")


def test_claude_is_found_where_its_installer_puts_it_whatever_path_says(place, tmp_path):
    program = tmp_path / ".local" / "bin" / "claude"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    added = claude_plugin.addition(place)
    assert added.after[0] == (str(program), "plugin", "marketplace", "add", "/a b/memd")
    assert added.notes == ()


def test_the_commands_that_are_told_can_be_pasted(place):
    assert "  claude plugin marketplace add '/a b/memd'" in claude_plugin.addition(place).notes


def test_a_plugin_of_another_marketplace_leaves_that_marketplace(place):
    assert claude_plugin.addition(place).is_unfinished
    notes = claude_plugin.removal(["memd@theirs"], place).notes
    assert notes[1:] == ("  claude plugin uninstall memd@theirs",)


def test_where_there_is_no_plugin_there_is_nothing_to_take_away(place):
    assert claude_plugin.removal([], place) == Plan()

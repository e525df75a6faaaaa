import json
import sys
from pathlib import Path

import pytest

from memd.paths import Paths


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with settings in it; not where memd's own files are."""
    home = tmp_path / "user"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude" / "settings.json").write_text('{"model": "x"}\n', encoding="utf-8")
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", "")
    return home


def files(home):
    return sorted(
        str(path.relative_to(home))
        for path in home.rglob("*")
        if path.is_file() and path.suffix != ".bak"
    )


def test_a_dry_run_shows_the_diff_and_writes_nothing(alone, home, tmp_path):
    ran = alone("install", "claude-code", "--dry-run")
    assert ran.status == 0
    assert "+++ " + str(home / ".claude" / "settings.json") in ran.out
    assert "memd/hook.py" in ran.out
    assert files(tmp_path) == ["user/.claude/settings.json"]


def test_it_is_told_what_was_written_and_where_the_old_file_is(alone, home):
    ran = alone("install", "claude-code")
    assert ran.status == 0
    assert (
        f"wrote {home / '.claude' / 'settings.json'} (as it was: settings.json.memd-" in ran.out
    )
    (copy,) = (home / ".claude").glob("*.bak")
    assert copy.read_text(encoding="utf-8") == '{"model": "x"}\n'
    server = json.loads((home / ".claude.json").read_text(encoding="utf-8"))["mcpServers"][
        "memd"
    ]
    assert Path(server["command"]).is_absolute()
    assert server["env"]["MEMD_HOME"]


def test_a_second_installation_has_nothing_to_do(alone, home):
    alone("install", "claude-code")
    before = files(home)
    ran = alone("install", "claude-code")
    assert (ran.status, ran.out) == (0, "nothing to do: it is so already\n")
    assert files(home) == before


@pytest.mark.usefixtures("home")
def test_the_launcher_learns_where_memd_is(alone, tmp_path):
    alone("install", "claude-code")
    note = Path(Paths({"MEMD_HOME": str(tmp_path)}).installed)
    assert note.read_text(encoding="utf-8").splitlines()[0] == sys.executable


def test_a_broken_file_is_named_with_its_place_and_left_alone(alone, home):
    path = home / ".claude" / "settings.json"
    path.write_text('{\n  "a": 1, // mine\n}', encoding="utf-8")
    ran = alone("install", "claude-code")
    assert (ran.status, ran.out) == (1, "")
    assert f"{path}: line 2, column 11: a comment" in ran.err
    assert path.read_text(encoding="utf-8") == '{\n  "a": 1, // mine\n}'


def test_one_read_only_file_and_all_are_left_alone(alone, home):
    path = home / ".claude.json"
    path.write_text("{}", encoding="utf-8")
    path.chmod(0o444)
    ran = alone("install", "claude-code")
    assert (ran.status, ran.out) == (1, "")
    assert f"{path} is read-only" in ran.err
    assert files(home) == [".claude.json", ".claude/settings.json"]
    assert (home / ".claude/settings.json").read_text(encoding="utf-8") == '{"model": "x"}\n'


def test_as_a_plugin_claude_s_own_commands_do_it(alone, home):
    program = home / ".local" / "bin" / "claude"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$@" >> "$HOME/asked"\n', encoding="utf-8")
    program.chmod(0o755)
    assert alone("install", "claude-code", "--plugin").status == 0
    asked = (home / "asked").read_text(encoding="utf-8").splitlines()
    assert asked[0].startswith("plugin marketplace add /")
    assert asked[1:] == ["plugin install memd@memd"]


@pytest.mark.usefixtures("home")
def test_only_claude_code_has_plugins(alone):
    ran = alone("install", "claude-desktop", "--plugin")
    assert ran.status == 1
    assert "--plugin is for claude-code" in ran.err


def test_an_unknown_place_is_refused_with_those_that_are_known(alone):
    ran = alone("install", "emacs")
    assert ran.status == 1
    assert "claude-code, claude-desktop" in ran.err
    assert "'emacs'" in ran.err


def test_a_plugin_that_only_the_user_can_install_is_no_success(alone, monkeypatch):
    monkeypatch.setenv("PATH", "")
    ran = alone("install", "claude-code", "--plugin")
    assert (ran.status, "claude plugin install memd@memd" in ran.out) == (1, True)

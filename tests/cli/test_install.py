import json
import sys
from pathlib import Path

import pytest

from memd.cli import install
from memd.errors import Broken
from memd.installers.file_changes import FileChange, InstallPlan
from memd.paths import Paths
from tests import tiny_model


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


def test_a_dry_run_prints_the_diff_and_writes_nothing(alone, home, tmp_path):
    ran = alone("install", "claude-code", "--dry-run")
    assert ran.status == 0
    assert "+++ " + str(home / ".claude" / "settings.json") in ran.out
    assert "memd/hook.py" in ran.out
    assert files(tmp_path) == ["user/.claude/settings.json"]


def test_installing_prints_what_it_wrote_and_the_name_of_the_backup(alone, home):
    ran = alone("install", "claude-code")
    assert ran.status == 0
    assert f"wrote {home / '.claude' / 'settings.json'} (backup: settings.json.memd-" in ran.out
    (copy,) = (home / ".claude").glob("*.bak")
    assert copy.read_text(encoding="utf-8") == '{"model": "x"}\n'
    server = json.loads((home / ".claude.json").read_text(encoding="utf-8"))["mcpServers"]["memd"]
    assert Path(server["command"]).is_absolute()
    assert server["env"]["MEMD_HOME"]


def test_a_second_installation_has_nothing_to_do(alone, home):
    alone("install", "claude-code")
    before = files(home)
    ran = alone("install", "claude-code")
    assert (ran.status, ran.out) == (0, "nothing to do\n")
    assert files(home) == before


@pytest.mark.usefixtures("home")
def test_installing_records_where_memd_is(alone, tmp_path):
    alone("install", "claude-code")
    note = Path(Paths({"MEMD_HOME": str(tmp_path)}).installed)
    assert note.read_text(encoding="utf-8").splitlines()[0] == sys.executable


def test_one_read_only_file_prevents_every_change(alone, home):
    path = home / ".claude.json"
    path.write_text("{}", encoding="utf-8")
    path.chmod(0o444)
    ran = alone("install", "claude-code")
    assert (ran.status, ran.out) == (1, "")
    assert f"{path} is read-only" in ran.err
    assert files(home) == [".claude.json", ".claude/settings.json"]
    assert (home / ".claude/settings.json").read_text(encoding="utf-8") == '{"model": "x"}\n'


def test_the_plugin_is_installed_by_claudes_own_commands(alone, home):
    program = home / ".local" / "bin" / "claude"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$@" >> "$HOME/commands"\n', encoding="utf-8")
    program.chmod(0o755)
    assert alone("install", "claude-code", "--plugin").status == 0
    commands = (home / "commands").read_text(encoding="utf-8").splitlines()
    assert commands[0].startswith("plugin marketplace add /")
    assert commands[1:] == ["plugin install memd@memd"]


@pytest.mark.usefixtures("home")
def test_only_claude_code_has_a_plugin(alone):
    ran = alone("install", "claude-desktop", "--plugin")
    assert ran.status == 1
    assert "--plugin is only for claude-code" in ran.err


def test_an_unknown_target_is_refused_with_a_list(alone):
    ran = alone("install", "emacs")
    assert ran.status == 1
    assert "claude-code, codex, copilot" in ran.err
    assert "'emacs'" in ran.err


def test_a_plugin_that_the_user_must_install_is_no_success(alone, monkeypatch):
    monkeypatch.setenv("PATH", "")
    ran = alone("install", "claude-code", "--plugin")
    assert (ran.status, "claude plugin install memd@memd" in ran.out) == (1, True)


# ── Uninstalling ─────────────────────────────────────────────────────────────────────────────────


def test_a_dry_run_uninstalls_nothing(alone, home):
    settings = home / ".claude" / "settings.json"
    alone("install", "claude-code")
    before = settings.read_bytes()
    ran = alone("uninstall", "claude-code", "--dry-run")
    assert "+++ /dev/null" in ran.out
    assert settings.read_bytes() == before


def test_uninstalling_what_was_never_installed_does_nothing(alone):
    ran = alone("uninstall", "claude-code")
    assert (ran.status, ran.out) == (0, "nothing to do\n")


# ── Carrying out a plan ──────────────────────────────────────────────────────────────────────────


@pytest.fixture
def plan(tmp_path):
    """Commands around a change: each says whether the file is there."""
    look = ("/bin/sh", "-c", f"ls {tmp_path} > {tmp_path}.$0")
    return InstallPlan(
        (FileChange(tmp_path / "file", None, b"x\n"),),
        before=((*look, "before"),),
        after=((*look, "after"),),
        notes=("Restart it.",),
    )


def test_commands_come_before_and_after_the_change(plan, tmp_path, capsys):
    install.carry_out(plan)
    seen = [
        tmp_path.with_name(f"{tmp_path.name}.{when}").read_text() for when in ("before", "after")
    ]
    assert seen == ["", "file\n"]
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("$ /bin/sh -c ")
    assert out[1] == f"wrote {tmp_path / 'file'}"
    assert out[-1] == "Restart it."


def test_showing_a_plan_changes_nothing(plan, tmp_path):
    lines = list(install.format_plan(plan))
    described = install.describe_plan(plan)
    assert list(tmp_path.iterdir()) == []
    assert len([line for line in lines if line.startswith("would run: ")]) == 2
    assert any("+x" in line for line in lines)
    assert lines[-1] == "Restart it."
    assert (len(described["commands"]), described["notes"]) == (2, ["Restart it."])
    assert [change["path"] for change in described["changes"]] == [str(tmp_path / "file")]


def test_a_shown_diff_has_no_secrets(tmp_path):
    before = b'{"env": {"ANTHROPIC_API_KEY": "sk-ant-api03-' + b"a1B2" * 24 + b'"},\n"a": 1}\n'
    plan = InstallPlan((FileChange(tmp_path / "f", before, before.replace(b"1}", b"2}")),))
    for shown in ("\n".join(install.format_plan(plan)), str(install.describe_plan(plan))):
        assert '+"a": 2}' in shown
        assert "sk-ant-api03-a1B2" not in shown


def test_a_command_that_fails_is_named(plan):
    failing = InstallPlan(before=(("/bin/sh", "-c", "exit 3"),), changes=plan.changes)
    with pytest.raises(Broken, match=r"`/bin/sh -c 'exit 3'` failed with exit status 3"):
        install.carry_out(failing)
    assert not plan.changes[0].path.exists()


def test_a_program_that_does_not_exist_is_named():
    with pytest.raises(Broken, match="cannot run `/no/such/program`"):
        install.carry_out(InstallPlan(after=(("/no/such/program",),)))


def test_an_empty_plan_does_nothing(capsys):
    install.carry_out(InstallPlan())
    assert capsys.readouterr().out == "nothing to do\n"


def test_installing_offers_a_local_model_in_one_line_and_uninstalling_says_that_it_stays(
    alone, home, tmp_path
):
    assert files(home)
    assert "optional: `memd model add` fetches" in alone("install", "claude-code").out
    tiny_model.add(tmp_path / "vaults" / "models", tmp_path / "wheels")
    assert "tiny stays (" in alone("uninstall", "claude-code").out
    assert "memd model add" not in alone("install", "claude-code").out


def test_without_a_target_the_agents_that_are_here_are_listed(alone, home):
    (home / ".cursor").mkdir()
    assert alone("install", "cursor").status == 0
    ran = alone("install")
    assert (
        ran.out == "claude-code: found; `memd install claude-code` connects it\ncursor: connected\n"
    )
    assert "+++ " + str(home / ".claude.json") in alone("install", "--dry-run").out


def test_a_broken_file_of_one_agent_keeps_no_other_from_being_offered(alone, home):
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("model = \n")
    (home / ".cursor").mkdir()
    ran = alone("install")
    assert "cursor: found; `memd install cursor` connects it" in ran.out
    assert "config.toml" in ran.err
    assert ran.status == 1


def test_uninstalling_leaves_every_byte_as_it_was_and_nothing_of_memds_own(alone, home):
    def everything():
        return {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}

    (home / ".claude.json").write_text('{"a": 1}\n', encoding="utf-8")
    (home / ".codex").mkdir()
    (home / ".codex" / "hooks.json").write_text(
        '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}}\n',
        encoding="utf-8",
    )
    (home / ".codex" / "config.toml").write_text('model = "x"\n', encoding="utf-8")
    before = everything()
    for agent in ("claude-code", "codex"):
        assert alone("install", agent).status == 0
    assert list(home.rglob("*.bak"))
    for agent in ("claude-code", "codex"):
        assert alone("uninstall", agent).status == 0
    assert everything() == before

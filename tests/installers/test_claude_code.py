import json
from pathlib import Path

import pytest

from memd.errors import BadRequest
from memd.installers import claude_code
from memd.installers import plan as installers_plan
from memd.installers.plan import Place

NOW = 1_800_000_000_000
MINE = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}, "model": "x"}


@pytest.fixture
def place(tmp_path):
    return Place({"HOME": str(tmp_path), "PATH": ""}, "/v/bin/python", Path("/v/memd"), "linux")


def put(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")


def carry_out(plan):
    for change in plan.changes:
        installers_plan.apply(change, NOW)
    return plan


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_hooks_and_server_come_and_go_and_leave_nothing(place, tmp_path):
    assert carry_out(claude_code.install(place)).notes == (claude_code.RESTART,)
    settings = read(tmp_path / ".claude" / "settings.json")
    assert settings["hooks"]["Stop"][0]["hooks"][0]["args"] == [
        "-I",
        "-S",
        "/v/memd/hook.py",
        "Stop",
    ]
    assert read(tmp_path / ".claude.json")["mcpServers"]["memd"]["type"] == "stdio"
    assert claude_code.install(place).is_empty
    carry_out(claude_code.uninstall(place))
    assert [p for p in tmp_path.rglob("*") if p.is_file() and p.suffix != ".bak"] == []


def test_what_stood_there_stays_to_the_byte(place, tmp_path):
    path = tmp_path / ".claude" / "settings.json"
    put(path, MINE)
    before = path.read_bytes()
    carry_out(claude_code.install(place))
    assert path.read_bytes() != before
    carry_out(claude_code.uninstall(place))
    assert path.read_bytes() == before


def test_planning_writes_nothing(place, tmp_path):
    assert not claude_code.install(place).is_empty
    assert list(tmp_path.iterdir()) == []


def test_the_directory_that_the_user_chose_is_used(place, tmp_path):
    chosen = Place(
        {**place.environ, "CLAUDE_CONFIG_DIR": str(tmp_path / "c")},
        place.python,
        place.package,
        "linux",
    )
    paths = [change.path for change in claude_code.install(chosen).changes]
    assert paths == [tmp_path / "c" / "settings.json", tmp_path / "c" / ".claude.json"]


def test_a_vault_of_its_own_goes_with_the_hook_and_the_server(place, tmp_path):
    work = Place({**place.environ, "MEMD_VAULT": "work"}, place.python, place.package, "linux")
    carry_out(claude_code.install(work))
    hook = read(tmp_path / ".claude" / "settings.json")["hooks"]["Stop"][0]["hooks"][0]
    assert (hook["command"], hook["args"][:2]) == (
        "/usr/bin/env",
        ["MEMD_VAULT=work", "/v/bin/python"],
    )
    assert read(tmp_path / ".claude.json")["mcpServers"]["memd"]["env"]["MEMD_VAULT"] == "work"
    # One memory at a time: the next installation replaces this one.
    carry_out(claude_code.install(place))
    hook = read(tmp_path / ".claude" / "settings.json")["hooks"]["Stop"][0]["hooks"][0]
    assert hook["command"] == "/v/bin/python"
    assert "MEMD_VAULT" not in read(tmp_path / ".claude.json")["mcpServers"]["memd"]["env"]


def test_with_the_plugin_enabled_nothing_is_installed_beside_it(place, tmp_path):
    put(tmp_path / ".claude" / "settings.json", {"enabledPlugins": {"memd@memd": True}})
    plan = claude_code.install(place)
    assert plan.is_empty
    assert "plugin memd@memd is enabled" in plan.notes[0]
    assert plan.notes[0].endswith("run `memd uninstall claude-code` first.")
    assert "Nothing was changed." in plan.notes[0]


def test_what_an_earlier_installation_left_beside_the_plugin_goes(place, tmp_path):
    carry_out(claude_code.install(place))
    path = tmp_path / ".claude" / "settings.json"
    put(path, {**read(path), "enabledPlugins": {"memd@memd": True}})
    plan = carry_out(claude_code.install(place))
    assert "is taken out." in plan.notes[0]
    assert read(path) == {"enabledPlugins": {"memd@memd": True}}
    assert not (tmp_path / ".claude.json").exists()


@pytest.mark.parametrize("name", [".claude/settings.json", ".claude.json"])
@pytest.mark.parametrize("plan", ["install", "uninstall"])
def test_a_broken_file_is_named_and_neither_is_touched(place, tmp_path, name, plan):
    (tmp_path / ".claude").mkdir()
    (tmp_path / name).write_text('{\n  "a": 1,\n}', encoding="utf-8")
    with pytest.raises(BadRequest, match=rf"{name}: line 3, column 1"):
        getattr(claude_code, plan)(place)


@pytest.fixture
def with_claude(place, tmp_path):
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    return Place(
        {**place.environ, "PATH": str(program.parent)}, place.python, place.package, "linux"
    )


def test_the_plugin_takes_the_place_of_the_settings(with_claude, tmp_path):
    put(tmp_path / ".claude" / "settings.json", MINE)
    before = (tmp_path / ".claude" / "settings.json").read_bytes()
    carry_out(claude_code.install(with_claude))
    plan = carry_out(claude_code.install_plugin(with_claude))
    assert (tmp_path / ".claude" / "settings.json").read_bytes() == before
    claude = str(tmp_path / "bin" / "claude")
    assert plan.after == (
        (claude, "plugin", "marketplace", "add", "/v/memd"),
        (claude, "plugin", "install", "memd@memd"),
    )


def test_without_a_claude_to_ask_the_settings_stay_and_the_commands_are_told(place):
    carry_out(claude_code.install(place))
    plan = claude_code.install_plugin(place)
    assert plan.is_empty
    assert plan.notes[1:] == (
        "  claude plugin marketplace add /v/memd",
        "  claude plugin install memd@memd",
    )


def test_it_is_told_that_the_plugin_carries_no_environment(with_claude):
    work = Place({**with_claude.environ, "MEMD_VAULT": "w"}, "/p", Path("/m"), "linux")
    assert "MEMD_VAULT" in claude_code.install_plugin(work).notes[0]


def test_uninstalling_takes_the_plugin_too(with_claude, tmp_path):
    put(tmp_path / ".claude" / "settings.json", {"enabledPlugins": {"memd@memd": True}})
    claude = str(tmp_path / "bin" / "claude")
    assert claude_code.uninstall(with_claude).after == (
        (claude, "plugin", "uninstall", "memd@memd"),
        (claude, "plugin", "marketplace", "remove", "memd"),
    )

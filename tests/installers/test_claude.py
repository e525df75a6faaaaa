import dataclasses
import json
from pathlib import Path

import pytest

from memd.errors import BadRequest
from memd.installers import claude, file_changes
from memd.installers.claude_settings import command_words
from memd.installers.file_changes import Host

NOW = 1_800_000_000_000
OTHER = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}, "model": "x"}


@pytest.fixture
def host(tmp_path):
    return Host({"HOME": str(tmp_path), "PATH": ""}, "/v/bin/python", Path("/v/memd"), "linux")


@pytest.fixture
def host_with_claude(host, tmp_path):
    write_program(tmp_path / "bin" / "claude")
    return with_environment(host, PATH=str(tmp_path / "bin"))


def write_program(path):
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)


def with_environment(host, **variables):
    return dataclasses.replace(host, environ={**host.environ, **variables})


def write_json(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def carry_out(planned):
    for change in planned.changes:
        file_changes.apply_change(change, NOW)
    return planned


def stop_hook(home):
    return read_json(home / ".claude" / "settings.json")["hooks"]["Stop"][0]["hooks"][0]


def test_hooks_and_server_are_installed_once_and_uninstalling_leaves_no_file(host, tmp_path):
    assert carry_out(claude.install_claude_code(host)).notes == (claude.RESTART_CLAUDE_CODE,)
    # Where no version says that it knows `args`, a shell starts the hook.
    assert stop_hook(tmp_path)["command"] == "exec /v/bin/python -I -S /v/memd/hook.py Stop"
    server = read_json(tmp_path / ".claude.json")["mcpServers"]["memd"]
    assert server == {
        "type": "stdio",
        "command": "/v/bin/python",
        "args": ["-P", "-m", "memd", "mcp"],
        "env": {"MEMD_CLIENT": "claude-code"},
    }
    assert claude.install_claude_code(host).is_empty
    carry_out(claude.uninstall_claude_code(host))
    assert [p for p in tmp_path.rglob("*") if p.is_file() and p.suffix != ".bak"] == []


def test_uninstalling_restores_the_users_settings_byte_for_byte(host, tmp_path):
    path = tmp_path / ".claude" / "settings.json"
    write_json(path, OTHER)
    before = path.read_bytes()
    carry_out(claude.install_claude_code(host))
    assert path.read_bytes() != before
    carry_out(claude.uninstall_claude_code(host))
    assert path.read_bytes() == before


def test_planning_writes_nothing(host, tmp_path):
    assert not claude.install_claude_code(host).is_empty
    assert list(tmp_path.iterdir()) == []


def test_claude_config_dir_is_respected(host):
    changed = claude.install_claude_code(with_environment(host, CLAUDE_CONFIG_DIR="/c")).changes
    assert [str(change.path) for change in changed] == ["/c/settings.json", "/c/.claude.json"]


def test_hook_and_server_know_the_vault_and_a_later_installation_replaces_it(host, tmp_path):
    carry_out(claude.install_claude_code(with_environment(host, MEMD_VAULT="work")))
    words = command_words(stop_hook(tmp_path))
    assert words[1:4] == ["/usr/bin/env", "MEMD_VAULT=work", "/v/bin/python"]
    server = read_json(tmp_path / ".claude.json")["mcpServers"]["memd"]
    assert server["env"]["MEMD_VAULT"] == "work"
    carry_out(claude.install_claude_code(host))
    assert command_words(stop_hook(tmp_path))[1] == "/v/bin/python"
    server = read_json(tmp_path / ".claude.json")["mcpServers"]["memd"]
    assert "MEMD_VAULT" not in server["env"]


def test_nothing_is_installed_beside_an_enabled_plugin(host, tmp_path):
    write_json(tmp_path / ".claude" / "settings.json", {"enabledPlugins": {"memd@memd": True}})
    planned = claude.install_claude_code(host)
    assert planned.is_empty
    assert "plugin memd@memd is enabled" in planned.notes[0]
    assert "Nothing was changed." in planned.notes[0]
    assert planned.notes[0].endswith("run `memd uninstall claude-code` first.")


def test_hooks_beside_an_enabled_plugin_are_removed(host, tmp_path):
    carry_out(claude.install_claude_code(host))
    path = tmp_path / ".claude" / "settings.json"
    write_json(path, {**read_json(path), "enabledPlugins": {"memd@memd": True}})
    planned = carry_out(claude.install_claude_code(host))
    assert "entries in the settings are removed" in planned.notes[0]
    assert read_json(path) == {"enabledPlugins": {"memd@memd": True}}
    assert not (tmp_path / ".claude.json").exists()


@pytest.mark.parametrize("name", [".claude/settings.json", ".claude.json"])
@pytest.mark.parametrize("make_plan", [claude.install_claude_code, claude.uninstall_claude_code])
def test_a_broken_file_is_refused_with_its_line(host, tmp_path, name, make_plan):
    (tmp_path / ".claude").mkdir()
    (tmp_path / name).write_text('{\n  "a": 1,\n  b', encoding="utf-8")
    with pytest.raises(BadRequest, match=rf"{name}: line 3, column 3"):
        make_plan(host)


# ── The plugin ───────────────────────────────────────────────────────────────────────────────────


def test_the_plugin_replaces_the_entries_in_the_settings(host_with_claude, tmp_path):
    path = tmp_path / ".claude" / "settings.json"
    write_json(path, OTHER)
    before = path.read_bytes()
    carry_out(claude.install_claude_code(host_with_claude))
    planned = carry_out(claude.install_claude_plugin(host_with_claude))
    assert path.read_bytes() == before
    program = str(tmp_path / "bin" / "claude")
    assert planned.after == (
        (program, "plugin", "marketplace", "add", "/v/memd"),
        (program, "plugin", "install", "memd@memd"),
    )


def test_without_the_program_claude_the_settings_stay_and_the_commands_are_printed(host):
    carry_out(claude.install_claude_code(host))
    spaced = dataclasses.replace(host, package=Path("/a b/memd"))
    planned = claude.install_claude_plugin(spaced)
    assert planned.is_unfinished
    assert planned.is_empty
    assert planned.notes[1:] == (
        "  claude plugin marketplace add '/a b/memd'",
        "  claude plugin install memd@memd",
    )


def test_claude_is_found_where_its_installer_puts_it(host, tmp_path):
    program = tmp_path / ".local" / "bin" / "claude"
    write_program(program)
    assert claude.install_claude_plugin(host).after[0][0] == str(program)


def test_a_note_says_that_the_plugin_sets_no_environment(host_with_claude):
    work = with_environment(host_with_claude, MEMD_VAULT="w")
    assert "MEMD_VAULT" in claude.install_claude_plugin(work).notes[0]


def test_uninstalling_removes_the_plugin_and_its_marketplace(host_with_claude, tmp_path):
    write_json(tmp_path / ".claude" / "settings.json", {"enabledPlugins": {"memd@memd": True}})
    program = str(tmp_path / "bin" / "claude")
    assert claude.uninstall_claude_code(host_with_claude).after == (
        (program, "plugin", "uninstall", "memd@memd"),
        (program, "plugin", "marketplace", "remove", "memd"),
    )


def test_uninstalling_a_plugin_of_another_marketplace_leaves_that_marketplace(host, tmp_path):
    write_json(tmp_path / ".claude" / "settings.json", {"enabledPlugins": {"memd@theirs": True}})
    notes = claude.uninstall_claude_code(host).notes
    assert notes[1:] == ("  claude plugin uninstall memd@theirs",)


def test_uninstalling_nothing_is_an_empty_plan(host):
    planned = claude.uninstall_claude_code(host)
    assert (planned.is_empty, planned.notes) == (True, ())


# ── Claude Desktop ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("platform", "variables", "found"),
    [
        ("linux", {}, "/h/.config/Claude/claude_desktop_config.json"),
        ("linux", {"XDG_CONFIG_HOME": "/c"}, "/c/Claude/claude_desktop_config.json"),
        ("darwin", {}, "/h/Library/Application Support/Claude/claude_desktop_config.json"),
    ],
)
def test_the_configuration_of_claude_desktop_is_found_on_each_platform(
    host, platform, variables, found
):
    host = with_environment(dataclasses.replace(host, platform=platform), HOME="/h", **variables)
    assert claude.desktop_config_file(host) == Path(found)


def test_an_unknown_platform_is_refused(host):
    with pytest.raises(BadRequest, match="win32"):
        claude.install_claude_desktop(dataclasses.replace(host, platform="win32"))


def test_claude_desktop_gets_a_server_with_absolute_paths_and_loses_it_again(host):
    path = claude.desktop_config_file(host)
    path.parent.mkdir(parents=True)
    before = b'{"globalShortcut": "", "mcpServers": {"other": {"command": "x"}}}'
    path.write_bytes(before)
    carry_out(claude.install_claude_desktop(host))
    server = read_json(path)["mcpServers"]["memd"]
    assert server["command"] == "/v/bin/python"
    assert server["env"] == {"MEMD_CLIENT": "claude-desktop"}
    again = claude.install_claude_desktop(host)
    assert (again.is_empty, again.notes) == (True, ())
    (change,) = claude.uninstall_claude_desktop(host).changes
    assert change.after == before


def test_a_broken_configuration_of_claude_desktop_is_refused(host):
    path = claude.desktop_config_file(host)
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"mcpServers": []}')
    with pytest.raises(BadRequest, match="`mcpServers` is not an object"):
        claude.install_claude_desktop(host)


def test_a_server_entry_passes_the_variables_that_memd_needs(host):
    assert claude.server_entry(with_environment(host, MEMD_VAULT="work"), "x")["env"] == {
        "MEMD_CLIENT": "x",
        "MEMD_VAULT": "work",
    }


# ── Clients that do not know every event ─────────────────────────────────────────────────────────


def put_native(home, version):
    """Claude Code as its own installer leaves it: a link to a file that is named by its version."""
    write_program(home / ".local" / "share" / "claude" / "versions" / version)
    (home / ".local" / "bin").mkdir()
    link = home / ".local" / "bin" / "claude"
    link.symlink_to(home / ".local" / "share" / "claude" / "versions" / version)


def put_npm(home, version):
    """The same of npm: a link into the package."""
    package = home / ".local" / "lib" / "node_modules" / "@anthropic-ai" / "claude-code"
    write_program(package / "bin" / "claude.exe")
    (package / "package.json").write_text(
        json.dumps({"name": "@anthropic-ai/claude-code", "version": version}), encoding="utf-8"
    )
    (home / ".local" / "bin").mkdir()
    (home / ".local" / "bin" / "claude").symlink_to(package / "bin" / "claude.exe")


def list_events(home):
    return set(read_json(home / ".claude" / "settings.json")["hooks"])


NEWEST = {"PostCompact", "StopFailure", "PermissionDenied"}


@pytest.mark.parametrize("put", [put_native, put_npm])
@pytest.mark.parametrize(
    ("version", "has"),
    [
        ("2.0.0", set()),
        ("2.1.50", set()),
        ("2.1.80", {"PostCompact", "StopFailure"}),
        ("2.1.90", NEWEST),
        ("2.1.332", NEWEST),
        ("3.0.0", NEWEST),
    ],
)
def test_a_client_gets_no_event_that_it_does_not_know(host, tmp_path, put, version, has):
    """An unknown name keeps every hook of an older client from running, the user's own included."""
    put(tmp_path, version)
    write_json(tmp_path / ".claude" / "settings.json", OTHER)
    before = (tmp_path / ".claude" / "settings.json").read_bytes()
    carry_out(claude.install_claude_code(host))
    assert list_events(tmp_path) & NEWEST == has
    assert {"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"} <= list_events(tmp_path)
    assert claude.install_claude_code(host).is_empty
    carry_out(claude.uninstall_claude_code(host))
    assert (tmp_path / ".claude" / "settings.json").read_bytes() == before


def test_a_client_that_was_updated_gets_its_new_events_and_one_put_back_loses_them(host, tmp_path):
    put_npm(tmp_path, "2.1.50")
    carry_out(claude.install_claude_code(host))
    older = list_events(tmp_path)
    package = next(tmp_path.rglob("package.json"))
    text = package.read_text(encoding="utf-8")
    package.write_text(text.replace("2.1.50", "2.1.332"), encoding="utf-8")
    assert not claude.install_claude_code(host).is_empty
    carry_out(claude.install_claude_code(host))
    assert list_events(tmp_path) == older | NEWEST
    package.write_text(text, encoding="utf-8")
    carry_out(claude.install_claude_code(host))
    assert list_events(tmp_path) == older


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "@anthropic-ai/claude-code"}', "\x00"])
def test_a_client_whose_version_nobody_tells_counts_as_a_new_one(host, tmp_path, text):
    put_npm(tmp_path, "2.1.50")
    next(tmp_path.rglob("package.json")).write_text(text, encoding="utf-8")
    assert claude.find_version(host) is None
    carry_out(claude.install_claude_code(host))
    assert list_events(tmp_path) >= NEWEST


@pytest.mark.parametrize(
    ("said", "has_args"),
    [
        ("echo '2.1.332 (Claude Code)'", True), ("echo '2.1.138 (Claude Code)'", False), ("echo '2.1.332'", False),
        ("echo 'claude 9.9.9 (Claude Code)'", False), ("echo '2.1.332 (Claude Code)'; exit 1", False), ("exit 0", False),
    ],
)  # fmt: skip
def test_a_client_whose_place_does_not_tell_its_version_is_asked_for_it(
    host, tmp_path, said, has_args
):
    program = tmp_path / ".local" / "bin" / "claude"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\n[ "$1" = --version ] || exit 3\n{said}\n')
    program.chmod(0o755)
    carry_out(claude.install_claude_code(host))
    hooks = json.loads((tmp_path / ".claude" / "settings.json").read_text())["hooks"]
    assert ("args" in hooks["Stop"][0]["hooks"][0]) is has_args


def test_the_plugin_is_not_installed_where_its_hooks_would_not_run(host, tmp_path):
    put_native(tmp_path, "2.1.80")
    with pytest.raises(BadRequest, match=r"2\.1\.80 would run none .* update it to 2\.1\.90"):
        claude.install_claude_plugin(host)

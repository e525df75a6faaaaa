"""The agents beside Claude Code: their files are changed as little as possible and given back as they were."""

import json
import os
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

from memd.cli import doctor, install
from memd.errors import BadRequest
from memd.installers import agents, file_changes
from memd.installers.file_changes import Host
from memd.viewer import page

NOW = 1_800_000_000_000
CONFIG = '# mine\nmodel = "x"\n\n[mcp_servers.other]  # stays\ncommand = "other"'
HOOKS = '{\n\t"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}\n}'
CURSOR = '{"version": 1, "hooks": {"stop": [{"command": "./audit.sh"}]}}\n'
SERVERS = '{"mcpServers": {"other": {"command": "x"}}}\n'


@pytest.fixture
def host(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    for name in ("python", "memd/hook.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return Host(
        {"HOME": str(home), "PATH": ""}, str(tmp_path / "python"), tmp_path / "memd", "linux"
    )


def carry_out(planned):
    for change in planned.changes:
        file_changes.apply_change(change, NOW)
    return planned


def files(host):
    found = (path for path in host.home.rglob("*") if path.is_file() and path.suffix != ".bak")
    return {str(path.relative_to(host.home)): path.read_text() for path in found}


USERS = {
    "codex": {".codex/config.toml": CONFIG, ".codex/hooks.json": HOOKS},
    "copilot": {".copilot/mcp-config.json": SERVERS, ".copilot/hooks/mine.json": HOOKS},
    "cursor": {".cursor/hooks.json": CURSOR, ".cursor/mcp.json": SERVERS},
    "opencode": {".config/opencode/opencode.jsonc": "{ // mine\n}"},
    "pi": {".pi/agent/extensions/mine.js": "export default () => {}"},
}
WITH_HOOKS = [name for name, one in agents.AGENTS.items() if not one.is_plugin]
PLUGINS = [name for name, one in agents.AGENTS.items() if one.is_plugin]


@pytest.mark.parametrize("has_files", [True, False])
@pytest.mark.parametrize("name", agents.AGENTS)
def test_uninstalling_gives_back_every_byte(host, name, has_files):
    for path, text in USERS[name].items() if has_files else ():
        (host.home / path).parent.mkdir(parents=True, exist_ok=True)
        (host.home / path).write_text(text)
    before = files(host)
    assert carry_out(agents.install_agent(host, name)).notes
    assert agents.install_agent(host, name).is_empty
    installed = files(host)
    assert set(installed) >= set(before)
    hooks = installed[str(agents.hooks_path(agents.AGENTS[name], host).relative_to(host.home))]
    assert str(agents.launcher_file(host)) in hooks
    for event in agents.AGENTS[name].events[:1]:
        assert agents.AGENTS[name].command(host, event) in hooks
    carry_out(agents.uninstall_agent(host, name))
    assert files(host) == before
    assert agents.uninstall_agent(host, name).is_empty


def test_the_hooks_launcher_stays_while_another_agent_needs_it(host):
    for name in agents.AGENTS:
        carry_out(agents.install_agent(host, name))
    for name in ("cursor", "codex", "opencode", "copilot"):
        carry_out(agents.uninstall_agent(host, name))
        assert agents.launcher_file(host).exists()
    carry_out(agents.uninstall_agent(host, "pi"))
    assert files(host) == {}


def test_the_command_is_the_same_for_a_memd_that_has_moved(host, tmp_path):
    moved = Host(host.environ, "/other/python", tmp_path / "other" / "memd", "linux")
    carry_out(agents.install_agent(host, "codex"))
    for agent in agents.AGENTS.values():
        assert dict(agent.groups(moved)) == dict(agent.groups(host))
    agents.refresh_launcher(moved)
    assert "/other/python" in agents.launcher_file(host).read_text()


def test_the_launcher_starts_the_hook_and_is_silent_without_it(host):
    Path(host.python).write_text('#!/bin/sh\necho "$@"; cat\n')
    Path(host.python).chmod(0o755)
    carry_out(agents.install_agent(host, "codex"))
    words = shlex.split(agents.AGENTS["codex"].command(host, "Stop"))

    def run():
        return subprocess.run(
            words, input=b"{}", capture_output=True, env={"PATH": os.defpath}, check=True
        ).stdout

    assert run() == f"-I -S {host.package}/hook.py codex:Stop\n{{}}".encode()
    (host.package / "hook.py").unlink()
    assert run() == b""


def codex_files(host):
    return host.home / ".codex" / "config.toml", host.home / ".codex" / "hooks.json"


def test_codexs_own_tables_and_comments_behind_memds_server_stay(host):
    config, _ = codex_files(host)
    config.parent.mkdir()
    config.write_text(CONFIG)
    carry_out(agents.install_agent(host, "codex"))
    added = '\n# about trust\n[hooks.state]\n\n[hooks.state."x:stop:0:0"]\ntrusted_hash = "y"\n'
    subtable = '[mcp_servers.memd.tools.mem_search]\napproval_mode = "approve"\n'
    config.write_text(config.read_text() + subtable + added)
    assert tomllib.loads(config.read_text())["mcp_servers"]["memd"]["env"] == {
        "MEMD_CLIENT": "codex"
    }
    assert agents.install_agent(host, "codex").is_empty
    carry_out(agents.uninstall_agent(host, "codex"))
    assert config.read_text() == CONFIG + "\n" + added


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[mcp_servers.memd]\ncommand = "other"\n', "another MCP server named `memd`"),
        ('mcp_servers = { other = { command = "x" } }\n', "by hand"),
        ("model = \n", "Nothing was changed"),
    ],
)
def test_a_config_that_memd_cannot_change_is_left_alone(host, text, words):
    config, _ = codex_files(host)
    config.parent.mkdir()
    config.write_text(text)
    with pytest.raises(BadRequest, match=words):
        agents.install_agent(host, "codex")


def find(host, name):
    return next((one for one in doctor.examine(host) if one.name == name), None)


def test_doctor_says_whether_codex_trusts_the_hooks(host):
    assert find(host, "codex") is None
    carry_out(agents.install_agent(host, "codex"))
    config, hooks = codex_files(host)
    found = find(host, "codex")
    assert (found.verdict, found.remedy) == ("problem", "run /hooks in Codex and trust memd")
    groups = json.loads(hooks.read_text())["hooks"]
    labels = {
        "SessionStart": "session_start",
        "UserPromptSubmit": "user_prompt_submit",
        "Stop": "stop",
    }
    listed = agents.find_untrusted(
        config, hooks, {"hooks": {name: groups[name] for name in labels}}
    )
    assert listed == list(labels)
    trusted = "".join(
        f'\n[hooks.state."{hooks}:{agents._make_label(name)}:0:0"]\n'
        f'trusted_hash = "{agents._hash_hook(agents._make_label(name), group[0]["hooks"][0], None)}"\n'
        for name, group in groups.items()
    )
    config.write_text(config.read_text() + trusted)
    assert find(host, "codex").verdict == "ok"
    config.write_text(config.read_text().replace("sha256:", "sha256:0", 1))
    assert find(host, "codex").words.endswith("not trusted: SessionStart")


def test_the_hash_is_codexs_own():
    """Recorded from `hooks/list` of Codex CLI 0.169.0."""
    hook = {"type": "command", "command": "true # é", "timeout": 7}
    recorded = "sha256:a7ed6c5638f435614acf66927a8376419dbe72d0225b20badd7e91b55c371f14"
    assert agents._hash_hook("session_start", hook, "startup") == recorded


@pytest.mark.parametrize("name", WITH_HOOKS)
def test_a_link_to_settings_that_had_nothing_else_stays_without_memd(host, name):
    agent = agents.AGENTS[name]
    link = agent.directory(host) / agent.servers_file
    link.parent.mkdir()
    kept = host.home / "dotfiles"
    kept.write_bytes(b"" if link.suffix == ".toml" else b"{}\n")
    before = kept.read_bytes()
    link.symlink_to(kept)
    carry_out(agents.install_agent(host, name))
    assert b"memd" in kept.read_bytes()
    carry_out(agents.uninstall_agent(host, name))
    assert link.is_symlink()
    assert kept.read_bytes() == before


def test_a_byte_order_mark_before_codexs_config_stays(host):
    config, _ = codex_files(host)
    config.parent.mkdir()
    before = b'\xef\xbb\xbfmodel = "x"\r\n'
    config.write_bytes(before)
    carry_out(agents.install_agent(host, "codex"))
    assert config.read_bytes().startswith(before)
    carry_out(agents.uninstall_agent(host, "codex"))
    assert config.read_bytes() == before


@pytest.mark.parametrize("name", PLUGINS)
def test_a_file_of_the_users_with_a_plugins_name_stays(host, name):
    file = agents.hooks_path(agents.AGENTS[name], host)
    file.parent.mkdir(parents=True)
    file.write_text("// mine\n")
    with pytest.raises(BadRequest, match="not memd's"):
        agents.install_agent(host, name)
    assert agents.uninstall_agent(host, name).is_empty
    assert find(host, name) is None


@pytest.mark.parametrize("name", PLUGINS)
def test_doctor_tells_a_plugin_of_another_memd(host, tmp_path, name):
    assert find(host, name) is None
    carry_out(agents.install_agent(host, name))
    assert find(host, name).verdict == "ok"
    moved = Host(host.environ, "/other/python", tmp_path / "other" / "memd", "linux")
    assert find(moved, name).remedy == f"`memd install {name}`"


def test_every_agent_that_is_found_can_be_installed_by_its_name_and_filtered_in_the_viewer():
    assert set(install.AGENTS) == set(agents.AGENTS)
    assert set(page.CLIENTS) == {"claude-code", *agents.AGENTS}

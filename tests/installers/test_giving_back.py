"""Uninstalling gives back what was empty before memd came."""

import pytest

from memd.installers import agents, file_changes
from memd.installers.claude_settings import add_hooks, remove_hooks
from memd.installers.file_changes import Host, JsonFile, give_back_empty

NOW = 1_780_000_000_000
COMMAND = ("/opt/memd/hook.py", "{event}")


def _install(path):
    file_changes.apply_change(JsonFile.read(path).change(lambda one: add_hooks(one, COMMAND)), NOW)


def _uninstall(path):
    file_changes.apply_change(give_back_empty(JsonFile.read(path).change(remove_hooks)), NOW)


@pytest.mark.parametrize(
    "content",
    [
        b'{"hooks": {}}\n',
        b'{\n\t"hooks": {\n\t}\n}',
        b'{"hooks": {"Stop": []}, "model": "x"}',
        b'{"model": "x", "hooks": {}}',
        b"{ }",
        b"",
    ],
)
def test_what_was_empty_is_given_back_byte_for_byte(tmp_path, content):
    path = tmp_path / "settings.json"
    path.write_bytes(content)
    _install(path)
    _uninstall(path)
    assert path.read_bytes() == content


def test_what_the_user_wrote_since_the_installation_stays(tmp_path):
    path = tmp_path / "settings.json"
    path.write_bytes(b'{"hooks": {}}')
    _install(path)
    file_changes.apply_change(JsonFile.read(path).change(lambda one: {**one, "allow": []}), NOW)
    _uninstall(path)
    assert JsonFile.read(path).value == {"allow": []}


def test_a_file_that_memd_made_is_removed(tmp_path):
    path = tmp_path / "settings.json"
    _install(path)
    _uninstall(path)
    assert not path.exists()


def test_a_hooks_file_of_a_version_alone_is_given_back(tmp_path):
    home = tmp_path / "home"
    hooks = home / ".cursor" / "hooks.json"
    hooks.parent.mkdir(parents=True)
    hooks.write_bytes(b'{"version": 1, "hooks": {}}')
    host = Host({"HOME": str(home), "PATH": ""}, str(tmp_path / "python"), tmp_path, "linux")
    for change in agents.install_agent(host, "cursor").changes:
        file_changes.apply_change(change, NOW)
    for change in agents.uninstall_agent(host, "cursor").changes:
        file_changes.apply_change(give_back_empty(change), NOW)
    assert hooks.read_bytes() == b'{"version": 1, "hooks": {}}'

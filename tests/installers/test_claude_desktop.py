import json
from pathlib import Path

import pytest

from memd.errors import BadRequest
from memd.installers import claude_desktop, plan
from memd.installers.plan import Place


def place(home, platform="linux", **environ):
    return Place({"HOME": str(home), **environ}, "/v/bin/python", Path("/v/memd"), platform)


@pytest.mark.parametrize(
    ("platform", "environ", "found"),
    [
        ("linux", {}, "/h/.config/Claude/claude_desktop_config.json"),
        ("linux", {"XDG_CONFIG_HOME": "/c"}, "/c/Claude/claude_desktop_config.json"),
        ("darwin", {}, "/h/IndexedVault/Application Support/Claude/claude_desktop_config.json"),
    ],
)
def test_each_system_keeps_it_elsewhere(platform, environ, found):
    assert claude_desktop.config_file(place("/h", platform, **environ)) == Path(found)


def test_an_unknown_system_is_told():
    with pytest.raises(BadRequest, match="win32"):
        claude_desktop.install(place("/h", "win32"))


def test_the_server_comes_with_whole_paths_and_goes_again(tmp_path):
    here = place(tmp_path)
    path = claude_desktop.config_file(here)
    path.parent.mkdir(parents=True)
    before = b'{"globalShortcut": "", "mcpServers": {"other": {"command": "x"}}}'
    path.write_bytes(before)
    (change,) = claude_desktop.install(here).changes
    plan.apply(change, 0)
    server = json.loads(path.read_bytes())["mcpServers"]["memd"]
    assert server["command"] == "/v/bin/python"
    assert server["env"] == {"MEMD_CLIENT": "claude-desktop"}
    assert claude_desktop.install(here).is_empty
    assert claude_desktop.install(here).notes == ()
    (change,) = claude_desktop.uninstall(here).changes
    assert change.after == before


def test_a_broken_file_is_left_alone(tmp_path):
    path = claude_desktop.config_file(place(tmp_path))
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"mcpServers": []}')
    with pytest.raises(BadRequest, match="`mcpServers` is not an object"):
        claude_desktop.install(place(tmp_path))

import json
import zipfile
from pathlib import Path

import bundle
import pytest

from memd import __version__
from memd.server import tools

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    path = tmp_path_factory.mktemp("bundle") / "deep" / "memd.mcpb"
    bundle.pack(path)
    return path


@pytest.fixture(scope="module")
def manifest(packed):
    with zipfile.ZipFile(packed) as opened:
        return json.loads(opened.read("manifest.json"))


def test_two_runs_make_the_same_bytes(packed, tmp_path):
    bundle.pack(tmp_path / "again.mcpb")
    assert (tmp_path / "again.mcpb").read_bytes() == packed.read_bytes()


def test_it_lists_exactly_the_tools_that_are_served(manifest):
    served = set(tools.TOOLS)
    assert {tool["name"] for tool in manifest["tools"]} == served
    assert all(tool["description"].endswith(".") for tool in manifest["tools"])


def test_it_has_this_version_and_what_it_runs(packed, manifest):
    assert manifest["version"] == __version__
    with zipfile.ZipFile(packed) as opened:
        assert opened.namelist() == ["manifest.json", manifest["server"]["entry_point"]]
        launcher = opened.getinfo(manifest["server"]["entry_point"])
        assert launcher.external_attr >> 16 == 0o100755
        assert opened.read(launcher) == (ROOT / "memd/plugin/scripts/memd").read_bytes()

"""scripts/bundle makes the same extension twice, and lists the tools that there are."""

import json
import sys
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from memd import __version__
from memd.serve import tools

ROOT = Path(__file__).parent.parent


def load():
    spec = spec_from_file_location("bundle", ROOT / "scripts" / "bundle.py")
    module = module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    path = tmp_path_factory.mktemp("bundle") / "deep" / "memd.mcpb"
    load().pack(path)
    return path


@pytest.fixture(scope="module")
def manifest(bundle):
    with zipfile.ZipFile(bundle) as opened:
        return json.loads(opened.read("manifest.json"))


def test_two_runs_make_the_same_bytes(bundle, tmp_path):
    load().pack(tmp_path / "again.mcpb")
    assert (tmp_path / "again.mcpb").read_bytes() == bundle.read_bytes()


def test_it_lists_exactly_the_tools_that_are_served(manifest):
    served = {face.name for face in vars(tools).values() if isinstance(face, tools.Face)}
    assert {tool["name"] for tool in manifest["tools"]} == served
    assert all(tool["description"].endswith(".") for tool in manifest["tools"])


def test_it_has_this_version_and_what_it_runs(bundle, manifest):
    assert manifest["version"] == __version__
    with zipfile.ZipFile(bundle) as opened:
        assert opened.namelist() == ["manifest.json", manifest["server"]["entry_point"]]
        launcher = opened.getinfo(manifest["server"]["entry_point"])
        assert launcher.external_attr >> 16 == 0o100755
        assert opened.read(launcher) == (ROOT / "memd/plugin/scripts/memd").read_bytes()

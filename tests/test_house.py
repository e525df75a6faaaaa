"""The map of the house is true: captions, the purity contract, test modules, budgets, the example."""

import sys
import tomllib
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def load():
    loader = SourceFileLoader("house", str(ROOT / "scripts" / "house"))
    module = module_from_spec(spec_from_loader("house", loader))
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


house = load()


def test_every_module_has_a_caption():
    assert house.without_caption() == []


def test_every_module_has_its_test_module_or_a_reason():
    assert house.untested() == []


def test_no_file_and_no_function_is_over_its_budget():
    assert house.over_budget() == []


def test_the_label_pure_and_the_purity_contract_say_the_same():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (
        found
        for found in settings["tool"]["importlinter"]["contracts"]
        if found["name"] == "Pure modules stay pure"
    )
    pure = [house.dotted(path) for path in house.modules() if house.is_pure(path)]
    assert sorted(contract["source_modules"]) == sorted(pure)


@pytest.mark.parametrize("name", ["README.md", "config.example.toml"])
def test_what_is_generated_is_what_the_code_says(name):
    path = ROOT / name
    if not path.exists():
        pytest.skip(f"there is no {name} yet")
    text = path.read_text(encoding="utf-8")
    assert house.GENERATED[name](text) == text


def test_the_tree_names_every_module():
    tree = house.tree()
    for path in house.modules():
        assert (path.name if path.name != "__init__.py" else path.parent.name) in tree


def test_a_readme_without_markers_is_left_alone():
    assert house.readme("# memd\n") == "# memd\n"


def test_a_readme_s_tree_is_replaced_between_its_markers():
    before = "a\n<!-- house -->\nOUTDATED\n<!-- /house -->\nz"
    after = house.readme(before)
    assert "OUTDATED" not in after
    assert after.startswith("a\n<!-- house -->\n```text\nmemd/")
    assert after.endswith("```\n<!-- /house -->\nz")
    assert house.readme(after) == after


def test_every_command_stands_in_the_readme():
    assert house.uncommanded() == []

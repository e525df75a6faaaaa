"""scripts/docs-check reports what is wrong with a tree, and nothing else."""

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def load():
    loader = SourceFileLoader("docs_check", str(ROOT / "scripts" / "docs-check"))
    module = module_from_spec(spec_from_loader("docs_check", loader))
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


docs_check = load()


@pytest.fixture
def tree(tmp_path, monkeypatch):
    (tmp_path / "memd").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# memd\n")
    monkeypatch.setattr(docs_check, "ROOT", tmp_path)
    return tmp_path


def test_the_example_configuration_says_what_the_code_does():
    assert docs_check.outdated_example_config() == []


def test_a_package_with_too_many_files_is_reported(tree):
    for number in range(26):
        (tree / "memd" / f"part{number}.py").touch()
    assert docs_check.crowded_packages() == ["memd has 26 files; the limit is 25"]


def test_only_lines_of_code_count(tree):
    path = tree / "memd" / "part.py"
    path.write_text('"""A docstring\nof two lines."""\n\n# a comment\nx = (\n    1\n)\n')
    assert docs_check.code_lines(path) == 3
    path.write_text("x = 1\n" * 451)
    assert docs_check.long_files() == ["memd/part.py has 451 code lines; the limit is 450"]


def test_a_long_function_is_reported(tree):
    (tree / "memd" / "part.py").write_text("def long():\n" + "    x = 1\n" * 61)
    assert docs_check.long_functions() == ["memd/part.py: long has 61 lines; the limit is 60"]


def test_a_long_line_is_reported_by_its_characters(tree):
    (tree / "memd" / "part.py").write_text(f'"""The part."""\n# {"─" * 138}\nx = "{"a" * 135}"\n')
    assert docs_check.long_lines() == ["memd/part.py:3 has 141 characters; the limit is 140"]


def test_a_docstring_that_begins_with_a_clause_is_reported(tree):
    (tree / "memd" / "part.py").write_text(
        '"""The part."""\nclass A:\n    """What is left of it."""\n    def whole(self):\n        """Wholly."""\n'
    )
    (said,) = docs_check.headless_docstrings()
    assert said.startswith("memd/part.py: a docstring begins with 'What'")


def test_a_class_name_with_two_meanings_is_reported(tree):
    for name in ("one", "two"):
        (tree / "memd" / f"{name}.py").write_text("class Plan: ...\n")
    assert docs_check.shared_class_names() == [
        "class Plan is defined in memd/one.py, memd/two.py; a class name means one thing"
    ]


def test_a_link_to_nothing_is_reported(tree):
    (tree / "README.md").write_text(
        "# A `b`: what's c?\n[here](docs/here.md) [out](https://example.org) [a](#a-b-whats-c) [b](#b)\n"
    )
    assert docs_check.broken_links() == [
        "README.md links to docs/here.md, which does not exist",
        "README.md links to #b, which does not exist",
    ]


def test_a_long_readme_is_reported(tree):
    (tree / "README.md").write_text("x" * 10_001)
    assert "10001 bytes" in docs_check.long_readme()[0]


def test_a_command_that_no_document_mentions_is_reported(tree):
    (tree / "README.md").write_text("`memd search`\n")
    missing = docs_check.undocumented_commands()
    assert "neither README.md nor docs/ mentions `memd why`" in missing
    assert not any("`memd search`" in line for line in missing)

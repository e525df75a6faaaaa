import pytest

from memd.injection.working_tree import WorkingTree


@pytest.fixture
def tree(tmp_path):
    (tmp_path / ".git").mkdir()
    for name in ("src/app/auth.py", "docs/guide.md", "src/new/place.ts"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [
        "src/app/auth.py reads the token",
        "The rules stand in app/auth.py.",
        "Never edit `guide.md` by hand",
        "Use Node.js 20.1 and see example.com/docs.html",
        "Version 3.11.2 of `py3.11` or `v1.2.3`",
        "Copy ~/.config/memd/config.toml to /etc/x.conf",
        "Ship src/*.ts and obj.method(x) and and/or",
    ],
)
def test_a_line_whose_files_are_there_is_not_marked(tree, text):
    assert WorkingTree(str(tree)).note_gone(text) == ""
    assert WorkingTree(str(tree / "src")).note_gone(text) == ""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("src/app/login.py reads the token", "src/app/login.py"),
        ("`login.py` reads the token", "login.py"),
        ("Look at old/place.ts:12 first", "old/place.ts"),
    ],
)
def test_a_line_that_names_a_file_which_is_gone_says_so(tree, text, name):
    assert WorkingTree(str(tree)).note_gone(text) == f"{name}: no longer there"


def test_a_file_that_is_moved_is_missed_and_one_that_comes_back_is_not(tree):
    (tree / "docs/guide.md").rename(tree / "docs/manual.md")
    assert WorkingTree(str(tree)).note_gone("docs/guide.md tells all") != ""
    (tree / "docs/manual.md").rename(tree / "docs/guide.md")
    assert WorkingTree(str(tree)).note_gone("docs/guide.md tells all") == ""


@pytest.mark.parametrize("directory", [None, "/nowhere/at/all", "relative"])
def test_without_a_working_tree_nothing_is_marked(directory):
    assert WorkingTree(directory).note_gone("src/app/login.py reads the token") == ""

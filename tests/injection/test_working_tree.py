import json
import os
import subprocess

import pytest

from memd.injection.working_tree import GIT_CALLS, WorkingTree
from tests.tables import every_row


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
    assert WorkingTree(str(tree)).note_gone(text) == f"{name}: not there"


@every_row(
    ("text", "told"),
    [
        ("Read `guide.md` instead of `login.py`", ""),
        ("We're dropping login.py, read `guide.md` from now on", ""),
        ("Never edit `login.py`", "login.py: not there"),
        ("Read `login.py` instead of `guide.md`", "login.py: not there"),
    ],
)
def test_what_a_line_itself_gives_up_is_not_marked_as_gone(tree, text, told):
    assert WorkingTree(str(tree)).note_gone(text) == told


def test_a_file_that_is_moved_is_missed_and_one_that_comes_back_is_not(tree):
    (tree / "docs/guide.md").rename(tree / "docs/manual.md")
    assert WorkingTree(str(tree)).note_gone("docs/guide.md tells all") != ""
    (tree / "docs/manual.md").rename(tree / "docs/guide.md")
    assert WorkingTree(str(tree)).note_gone("docs/guide.md tells all") == ""


@every_row("directory", [None, "/nowhere/at/all", "relative"])
def test_without_a_working_tree_nothing_is_marked(directory):
    assert WorkingTree(directory).note_gone("src/app/login.py reads the token") == ""


# ── Symbols, flags, versions, commands ───────────────────────────────────────────────────────────

PATIENT_S = 60
COMMITTED_AT = 1_700_000_000_000
"""UTC milliseconds."""
_NAMES = (
    "otter heron lynx badger marten falcon osprey beaver ferret magpie plover turnip salmon minnow parrot"
    " walrus donkey gopher jackal iguana hornet cuckoo canary pigeon rabbit weasel sparrow vulture dolphin lobster"
)
ANIMALS = _NAMES.split()
FORMS = (
    ("read_{}", "def read_{}(x):\n    return x\n", "`read_{}` may be called only once"),
    ("{}Queue", "class {}Queue:\n    pass\n", "{}Queue keeps a day of messages"),
    ("open{}", "const x = open{}(1);\n", "Call open{}() before the first page"),
    ("{}-mode", "add_argument('--{}-mode')\n", "Releases are built with --{}-mode"),
    ("{}_rate", "add_argument('--{}-rate')\n", "The `--{}-rate` flag is in percent"),
    ("{}", "{}\n", "The `{}` table has one row a day"),
)


def git(root, *words):
    subprocess.run(
        ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", *words],  # noqa: S607  # as found
        check=True, capture_output=True,
        env={**os.environ, "GIT_COMMITTER_DATE": "@1700000000 +0000", "GIT_AUTHOR_DATE": "@1700000000 +0000"},
    )  # fmt: skip


def make_things(prefix):
    """(file, its text, what a note says of it, the same file with another name in it), thirty of all forms."""
    for number, animal in enumerate(ANIMALS):
        name, code, note = FORMS[number % len(FORMS)]
        word = prefix + animal if name[0] == "{" or "_" in name else (prefix + animal).title()
        code, note, renamed = (
            one.replace("{}", w)
            for one, w in ((code, word), (note, word), (code, "Zz" + word[::-1]))
        )
        yield f"src/{prefix}_{animal}.py", code, note, renamed


def write(root, path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.fixture(scope="module")
def changed_repository(tmp_path_factory):
    """A repository of which thirty names were renamed and thirty deleted since, with the notes of each sort."""
    root = tmp_path_factory.mktemp("repository")
    git(root, "init", "-q")
    sorts = {sort: list(make_things(sort)) for sort in ("renamed", "deleted", "kept")}
    for things in sorts.values():
        for path, code, _, _ in things:
            write(root, path, code)
    scripts = {"ship:all": "x", "lint": "y", "verify": "z"}
    write(root, "package.json", json.dumps({"scripts": scripts, "left": "1.25.5", "up": "4.0.1"}))
    write(root, "CHANGELOG.md", "Added `read_renamedotter` and --renamedbadger-mode, 1.25.5")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    for path, _, _, renamed in sorts["renamed"]:
        write(root, path, "# a line before it\n" + renamed)
    for path, *_ in sorts["deleted"]:
        (root / path).unlink()
    for path, code, _, _ in sorts["kept"]:
        write(root, path, "# a line\n\n# and another before it\n" + code)
    write(root, "package.json", json.dumps({"scripts": {"lint": "y"}, "left": "1.25.6", "up": "4.0.1"}))  # fmt: skip
    return root, {sort: [note for _, _, note, _ in things] for sort, things in sorts.items()}


def notes_marked(root, notes, at=COMMITTED_AT):
    tree = WorkingTree(str(root), PATIENT_S, 9_999)
    tree.look_up(notes)
    return [note for note in notes if tree.note_gone(note, at)]


@pytest.mark.parametrize("sort", ["renamed", "deleted"])
def test_of_thirty_names_that_were_renamed_or_deleted_all_are_marked(changed_repository, sort):
    root, notes = changed_repository
    assert notes_marked(root, notes[sort]) == notes[sort]


def test_a_name_that_moved_within_the_tree_is_there(changed_repository):
    root, notes = changed_repository
    assert notes_marked(root, notes["kept"]) == []


def test_versions_and_commands_of_the_project_are_marked_when_they_change(changed_repository):
    root, _ = changed_repository
    gone = [
        "left is pinned to 1.25.5",
        "Run `npm run ship:all` on Fridays",
        "`npm run verify` first",
    ]
    there = ["up is pinned to 4.0.1", "Run `npm run lint` before each push"]
    assert notes_marked(root, [*gone, *there]) == gone


def test_names_that_the_tree_never_had_are_not_marked(changed_repository):
    root, _ = changed_repository
    outside = [f"Use `useEffect{n}` and git push --force-with-lease={n} as in React 18.{n}.0" for n in range(40)]  # fmt: skip
    prose = [
        f"The user wants {n} short answers, e.g. no tables; ask him on GitHub" for n in range(30)
    ]
    assert notes_marked(root, outside + prose) == []


def test_what_a_note_says_to_be_in_a_file_that_is_there_is_missed_without_any_history(tmp_path):
    (tmp_path / ".git").mkdir()
    write(tmp_path, "src/app.py", "def read_token(x): ...\n")
    note = "`read_token` in src/app.py trims the header"
    assert notes_marked(tmp_path, [note]) == []
    write(tmp_path, "src/app.py", "def parse_token(x): ...\n")
    assert notes_marked(tmp_path, [note]) == [note]


def test_a_name_is_looked_for_once_while_its_file_stays_as_it_is(changed_repository, monkeypatch):
    root, notes = changed_repository
    outside = ["Use `useEffect` of React", "`read_renamedotter` may be called only once"]
    assert notes_marked(root, [*notes["kept"], *outside]) == outside[1:]
    asked = []
    monkeypatch.setattr(subprocess, "run", lambda argv, **_: asked.append(argv))
    assert notes_marked(root, [*notes["kept"], *outside]) == outside[1:]
    assert asked == []


def test_git_is_asked_a_few_times_at_most(changed_repository, monkeypatch):
    root, notes = changed_repository
    asked = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda argv, **more: asked.append(argv) or run(argv, **more))  # fmt: skip
    tree = WorkingTree(str(root), PATIENT_S)
    for number, note in enumerate(notes["deleted"]):
        tree.note_gone(note, COMMITTED_AT + 1_000 * number + 7)
    assert len(asked) == GIT_CALLS


def test_where_git_is_late_nothing_is_marked(changed_repository, tmp_path, monkeypatch):
    root, notes = changed_repository
    git = tmp_path / "git"
    git.write_text("#!/bin/sh\nexec sleep 600\n")
    git.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    tree = WorkingTree(str(root), 0.05)
    assert not any(
        tree.note_gone(note, COMMITTED_AT) for note in notes["deleted"] if "/" not in note
    )

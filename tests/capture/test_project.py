"""Identity: worktrees share a project, submodules do not, and no `.git` can do harm."""

import os
import shutil
import subprocess

import pytest

from memd.capture.project import ProjectOverrides, ProjectResolver, read_branch, resolve_project
from memd.models import SCRATCH_PROJECT
from tests.tables import every_row

GIT = shutil.which("git") or "git"


@pytest.fixture
def repository(tmp_path):
    top = tmp_path / "ledger"
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def git(*arguments, cwd=top):
        options = ["-c", "user.email=a@b", "-c", "user.name=a", "-c", "protocol.file.allow=always"]
        command = [GIT, *options, *arguments]
        subprocess.run(command, cwd=cwd, env=environ, check=True, capture_output=True)

    top.mkdir()
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "x")
    return top, git


def test_a_repository_is_named_by_its_top_level(repository):
    top, _ = repository
    (top / "a" / "b").mkdir(parents=True)
    for directory in (top, top / "a" / "b"):
        found = resolve_project(str(directory))
        assert (found.key, found.name) == (str(top), "ledger")
    assert "git" in found.reason


def test_worktrees_share_the_project_of_the_main_checkout(repository, tmp_path):
    top, git = repository
    git("worktree", "add", "-q", str(tmp_path / "elsewhere"))
    assert resolve_project(str(tmp_path / "elsewhere")).key == str(top)
    assert "worktree" in resolve_project(str(tmp_path / "elsewhere")).reason


def test_a_submodule_is_a_project_of_its_own(repository, tmp_path):
    top, git = repository
    other = tmp_path / "other"
    other.mkdir()
    git("init", "-q", cwd=other)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=other)
    git("submodule", "add", "-q", str(other), "sub")
    assert resolve_project(str(top / "sub")).key == str(top / "sub")


def test_worktrees_of_a_bare_repository_share_it(tmp_path):
    bare, tree = tmp_path / "proj" / ".bare", tmp_path / "proj" / "main"
    (bare / "worktrees" / "main").mkdir(parents=True)
    (bare / "worktrees" / "main" / "commondir").write_text("../..\n")
    (bare / "worktrees" / "main" / "gitdir").write_text(f"{tree}/.git\n")
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {bare}/worktrees/main\n")
    found = resolve_project(str(tree))
    assert (found.key, found.name) == (str(bare), "proj")


def test_a_plain_or_missing_directory_is_its_own_project(tmp_path):
    found = resolve_project(str(tmp_path / "gone" / "for good"))
    assert (found.key, found.name) == (str(tmp_path / "gone" / "for good"), "for good")
    assert "not there" in found.reason
    assert resolve_project("/").key == "/"


@every_row("directory", [None, "", "a\0b", "/x" * 5_000])
def test_no_directory_is_the_scratch_project(directory):
    assert resolve_project(directory).key == SCRATCH_PROJECT


def test_a_directory_made_for_one_session_is_the_scratch_project():
    path = "/home/u/.config/Claude/scratch-workspaces/a/b/scratch-2026-01-01-ff"
    assert resolve_project(path).key == SCRATCH_PROJECT


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\1\2", b"gitdir: ", b"gitdir: .", b"gitdir: " + b"x" * 100_000, b"\xff\xfe", b"a\nb"],
)
def test_a_hostile_git_file_is_harmless(tmp_path, content):
    (tmp_path / ".git").write_bytes(content)
    assert resolve_project(str(tmp_path)).key == str(tmp_path)


def test_links_and_pipes_and_circles_are_harmless(tmp_path):
    (tmp_path / ".git").symlink_to(tmp_path / ".git")
    assert resolve_project(str(tmp_path)).key == str(tmp_path)
    piped = tmp_path / "piped"
    piped.mkdir()
    (piped / ".git").write_text("gitdir: ../odd")
    (tmp_path / "odd").mkdir()
    os.mkfifo(tmp_path / "odd" / "commondir")
    assert resolve_project(str(piped)).key == str(piped)


def test_a_name_that_is_no_utf8_can_be_stored(tmp_path):
    found = resolve_project(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    found.key.encode("utf-8")


def test_what_is_known_is_looked_up_again_after_a_minute(tmp_path, clock):
    resolver = ProjectResolver(clock)
    assert "git" not in resolver.resolve(str(tmp_path)).reason.split(";")[0]
    (tmp_path / ".git").mkdir()
    clock.advance(s=30)
    assert resolver.resolve(str(tmp_path)).reason.startswith("the directory")
    clock.advance(s=31)
    assert resolver.resolve(str(tmp_path)).reason == "the git repository's top level"


def test_the_memory_of_directories_is_bounded(clock):
    resolver = ProjectResolver(clock)
    for number in range(1_000):
        resolver.resolve(f"/nowhere/{number}")
    assert len(resolver._cached) <= 256


@pytest.fixture
def given(tmp_path):
    """Write the projects.toml of somebody who lives in `tmp_path`."""
    file = tmp_path / "projects.toml"

    def wrote(*lines):
        file.write_text("[projects]\n" + "\n".join(lines))
        return ProjectOverrides(str(file), str(tmp_path))

    return wrote


def test_a_persons_word_comes_before_git(repository, given):
    top, _ = repository
    found = resolve_project(str(top), given('"~/ledger" = "money"'))
    assert (found.key, found.name) == ("money", "money")
    assert found.reason == "projects.toml says so for ~/ledger"


def test_a_worktree_elsewhere_belongs_to_what_was_said_of_its_repository(
    repository, given, tmp_path
):
    _, git = repository
    git("worktree", "add", "-q", str(tmp_path / "elsewhere"))
    overrides = given('"~/ledger" = "money"', '"~/other*" = "other"')
    assert resolve_project(str(tmp_path / "elsewhere"), overrides).key == "money"


def test_a_worktree_is_the_same_one_through_a_link(repository, tmp_path):
    top, git = repository
    git("worktree", "add", "-q", str(tmp_path / "elsewhere"))
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert resolve_project(str(tmp_path / "link")).key == str(top)


def test_a_directory_that_only_claims_to_be_a_worktree_sees_nothing_of_the_repository(
    repository, tmp_path
):
    """An archive can hold any `.git` file; only the repository's owner can list a worktree."""
    top, git = repository
    git("worktree", "add", "-q", str(tmp_path / "elsewhere"))
    archive = tmp_path / "archive"
    fake = archive / "fake"
    fake.mkdir(parents=True)
    (fake / "commondir").write_text(f"{top}/.git")
    (fake / "gitdir").write_text(f"{archive}/.git")
    for git_dir in (fake, top / ".git" / "worktrees" / "elsewhere"):
        (archive / ".git").write_text(f"gitdir: {git_dir}")
        found = resolve_project(str(archive))
        assert found.key == str(archive)
        assert "repository does not know" in found.reason


def test_a_file_of_overrides_in_a_repository_says_nothing(repository):
    top, _ = repository
    (top / "projects.toml").write_text('[projects]\n"/" = "theirs"\n')
    assert resolve_project(str(top)).key == str(top)


def test_a_change_of_the_overrides_is_seen_at_once(clock, given, tmp_path):
    resolver = ProjectResolver(clock, given('"~/a" = "one"'))
    assert resolver.resolve(str(tmp_path / "a")).key == "one"
    given('"~/a" = "other"')
    assert resolver.resolve(str(tmp_path / "a")).key == "other"
    given("nonsense")
    assert resolver.resolve(str(tmp_path / "a")).key == str(tmp_path / "a")
    assert "not valid TOML" in resolver.trouble


def test_the_branch_is_that_of_the_worktree_around_a_directory(repository, tmp_path):
    top, git = repository
    git("checkout", "-q", "-b", "dev/cart")
    git("worktree", "add", "-q", "-b", "dev/mails", str(tmp_path / "elsewhere"))
    below = top / "src"
    below.mkdir()
    assert read_branch(str(below)) == "dev/cart"
    assert read_branch(str(tmp_path / "elsewhere")) == "dev/mails"


def test_a_detached_head_and_a_directory_without_git_have_no_branch(repository, tmp_path):
    top, git = repository
    git("checkout", "-q", "--detach")
    assert read_branch(str(top)) is None
    (tmp_path / "plain").mkdir()
    assert read_branch(str(tmp_path / "plain")) is None
    assert read_branch("/nowhere/at/all") is None
    assert read_branch("a\0b") is None


@pytest.mark.parametrize(
    "head", ["ref: refs/heads/" + "x" * 300, "ref: refs/tags/v1", "", "two\nlines"]
)
def test_a_head_that_names_no_plain_branch_is_none(tmp_path, head):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head)
    assert read_branch(str(tmp_path)) is None

import os

import pytest

from memd.transfer import sources


@pytest.fixture
def top(tmp_path):
    top = tmp_path / "repo" / "notes"
    for name in ("sub", "node_modules", ".hidden", "drafts"):
        (top / name).mkdir(parents=True)
        (top / name / "a.md").write_text("x")
    (top / "b.Markdown").write_text("x")
    (top / "c.txt").write_text("x")
    (top / ".dot.md").write_text("x")
    return top


def names(found, top):
    return [path.relative_to(top).as_posix() for path in found.files]


def test_notes_are_found_and_the_rest_is_left_out_for_a_reason(top):
    (top / ".gitignore").write_text("drafts/\n")
    (top / "out.md").symlink_to("/etc/passwd")
    (top / "in.md").symlink_to(top / "b.Markdown")
    (top / "etc").symlink_to("/etc")
    (top / "circle").symlink_to(top)
    found = sources.find_notes(top)
    assert names(found, top) == ["b.Markdown", "sub/a.md"]
    assert found.left == {"hidden": 2, "packages of others": 1, "a link": 4, ".gitignore": 1}


def test_the_rules_of_the_repository_above_hold(top):
    (top.parent / ".git").mkdir()
    (top.parent / ".gitignore").write_text("/notes/sub\n")
    (top.parent.parent / ".gitignore").write_text("*\n")
    assert names(sources.find_notes(top), top) == ["b.Markdown", "drafts/a.md"]


def test_without_a_repository_nothing_above_holds(top):
    (top.parent / ".gitignore").write_text("*\n")
    assert len(sources.find_notes(top).files) == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_directory_that_is_closed_is_told(top):
    (top / "sub").chmod(0)
    try:
        assert list(sources.find_notes(top).unreadable) == [str(top / "sub")]
    finally:
        (top / "sub").chmod(0o700)


def test_a_directory_that_is_gone_is_told(tmp_path):
    assert sources.find_notes(tmp_path / "gone").unreadable == {
        str(tmp_path / "gone"): "No such file or directory"
    }


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("Müde".encode(), sources.DecodedText("Müde")),
        ("Müde".encode("latin-1"), sources.DecodedText("Müde", "Windows-1252")),
        ("Müde".encode("utf-16"), sources.DecodedText("Müde", "UTF-16")),
        (b"\0\1", sources.DecodedText(unread="binary")),
        (b"", sources.DecodedText("")),
    ],
)
def test_a_text_is_read_in_whatever_it_is_written(tmp_path, raw, text):
    (tmp_path / "a.md").write_bytes(raw)
    assert sources.read_text(tmp_path / "a.md") == text


def test_what_is_huge_or_no_file_is_not_read(tmp_path):
    with (tmp_path / "a.md").open("wb") as file:
        file.truncate(1024**3)
    assert sources.read_text(tmp_path / "a.md").unread == "larger than 4 MiB"
    os.mkfifo(tmp_path / "pipe.md")
    assert sources.read_text(tmp_path / "pipe.md").unread == "no regular file"

import pytest

from memd.exchange import gitignore


@pytest.mark.parametrize(
    ("patterns", "path", "is_directory", "is_left"),
    [
        ("*.md", "a/b.md", False, True),
        ("/b.md", "a/b.md", False, False),
        ("/b.md", "b.md", False, True),
        ("a/*.md", "a/b.md", False, True),
        ("a/*.md", "x/a/b.md", False, False),
        ("build/", "build", False, False),
        ("build/", "x/build", True, True),
        ("**/tmp", "a/b/tmp", True, True),
        ("a/**/z.md", "a/z.md", False, True),
        ("a/**/z.md", "a/b/c/z.md", False, True),
        ("a/**", "a/b/c.md", False, True),
        ("draft?.md", "draft1.md", False, True),
        ("draft[!0-9].md", "draft1.md", False, False),
        ("draft[0-9].md", "draft1.md", False, True),
        ("\\#x.md", "#x.md", False, True),
        ("# x.md\n\n*.md \n!keep.md", "keep.md", False, False),
        ("*.md\n!keep.md", "lose.md", False, True),
        ("[z-a]\n!\n/\n*.md", "a.md", False, True),
        ("a.md", "axmd", False, False),
    ],
)
def test_patterns_mean_what_they_mean_to_git(patterns, path, is_directory, is_left):
    rules = gitignore.parse(patterns)
    assert gitignore.decides(rules, path, False, is_directory=is_directory) is is_left


def test_a_file_further_down_has_the_last_word():
    above, below = gitignore.parse("*.md"), gitignore.parse("!a.md")
    verdict = gitignore.decides(above, "x/a.md", False, is_directory=False)
    assert gitignore.decides(below, "a.md", verdict, is_directory=False) is False

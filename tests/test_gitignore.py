from memd import directories
from tests.tables import every_row


@every_row(
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
        ("a/**/", "a/b.md", False, False),
        ("a/**/", "a/b", True, True),
        ("draft[!0-9]x", "draft/x", False, False),
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
    parsed = [found for line in patterns.splitlines() if (found := directories.parse_pattern(line))]
    last = directories.last_match(parsed, path, is_directory=is_directory)
    assert (last is not None and not last.is_negated) is is_left


def test_a_name_with_many_wildcards_takes_no_time():
    pattern = directories.parse_pattern("*a" * 40 + "b")
    assert not pattern.matches("a" * 3_000, is_directory=False)
    assert pattern.matches("a" * 3_000 + "b", is_directory=False)

from memd import directories
from tests.tables import every_row, read_tables

TABLES = read_tables("gitignore")


@every_row(
    ("patterns", "path", "is_directory", "is_left"), TABLES["patterns_mean_what_they_mean_to_git"]
)
def test_patterns_mean_what_they_mean_to_git(patterns, path, is_directory, is_left):
    parsed = [found for line in patterns.splitlines() if (found := directories.parse_pattern(line))]
    last = directories.last_match(parsed, path, is_directory=is_directory)
    assert (last is not None and not last.is_negated) is is_left


def test_a_name_with_many_wildcards_takes_no_time():
    pattern = directories.parse_pattern("*a" * 40 + "b")
    assert not pattern.matches("a" * 3_000, is_directory=False)
    assert pattern.matches("a" * 3_000 + "b", is_directory=False)

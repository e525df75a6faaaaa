"""What a diff shows of settings: names with a literal beside them, in code and configuration of any kind."""

from memd.distill.edits import FileEdit, read_changes
from tests.tables import every_row, read_tables

TABLES = read_tables("distill/settings")


def changes(path, *edits):
    """(key, was, now) of each setting that the edits change."""
    made = [FileEdit(1, 1, path, old, new, is_whole_file=not old) for old, new in edits]
    return [(".".join(one.key), one.was, one.now) for one in read_changes(made, str)]


@every_row(
    ("path", "old", "new", "expected"),
    TABLES["a_setting_that_a_diff_gives_another_value_is_read"],
)  # fmt: skip
def test_a_setting_that_a_diff_gives_another_value_is_read(path, old, new, expected):
    assert changes(path, (old, new)) == [tuple(expected)]


@every_row(("path", "old", "new"), TABLES["what_sets_nothing_else_is_no_change"])
def test_what_sets_nothing_else_is_no_change(path, old, new):
    assert changes(path, (old, new)) == []


def test_only_what_several_edits_come_to_in_the_end_is_a_change():
    there, back = ("LIMIT = 1", "LIMIT = 2"), ("LIMIT = 2", "LIMIT = 1")
    assert changes("a.py", there, back) == []
    assert changes("a.py", there, ("LIMIT = 2", "LIMIT = 3")) == [("LIMIT", "1", "3")]
    assert changes("a.py", ("LIMIT = 1", "pass"), ("x", "LIMIT = 3")) == [("LIMIT", "1", "3")]


def test_all_of_a_file_that_is_written_is_set_unless_it_is_data():
    assert changes("a.toml", ("", "[a]\nport = 1\n[b]\nport = 2")) == [
        ("a.port", "", "1"),
        ("b.port", "", "2"),
    ]
    assert changes("a.yaml", ("", "\n".join(f"key{n}: {n}" for n in range(300)))) == []


def test_an_element_belongs_to_the_artifact_that_is_named_beside_it():
    pom = "<artifactId>{}</artifactId>\n<version>{}</version>"
    assert changes("pom.xml", (pom.format("a", 1), pom.format("a", 2))) == [("a.version", "1", "2")]
    assert changes("pom.xml", (pom.format("b", 2), pom.format("b", 3))) == [("b.version", "2", "3")]

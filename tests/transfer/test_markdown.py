import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memd.models import Kind
from memd.transfer import markdown, record

LONG = "The wheel turns at a steady speed. " * 60


def test_a_short_note_stays_whole():
    (one,) = markdown.read_note("a/b.md", "# A\n\ntext\n\n## B\nmore\n", 7)
    assert (one.title, one.part, one.line, one.at) == ("a/b.md", "", 1, 7)
    assert one.text == "# A\n\ntext\n\n## B\nmore"
    assert one.kind is Kind.NOTE


def test_a_long_note_is_parted_at_its_headings():
    text = f"before\n\n# A\nown words\n\n## B\n{LONG}\n### C\ntail\n## D\n{LONG}"
    parts = markdown.read_note("n.md", text, 7)
    assert [(one.part, one.line) for one in parts] == [
        ("", 1),
        ("A", 3),
        ("A › B", 6),
        ("A › D", 10),
    ]
    assert parts[2].title == "n.md › A › B"
    assert parts[2].text.endswith("### C\ntail")
    assert parts[2].text.startswith("## B\n")


def test_a_heading_without_words_of_its_own_stands_above_the_first_below_it():
    parts = markdown.read_note("n.md", f"# A\n\n## B\n{LONG}\n## C\n{LONG}", 7)
    assert [one.part for one in parts] == ["A › B", "A › C"]
    assert [one.text[:9] for one in parts] == ["# A\n\n## B", "## C\nThe "]


def test_headings_that_are_called_the_same_are_told_apart():
    parts = markdown.read_note("n.md", f"# A\n{LONG}\n# A\n{LONG}\n#\n{LONG}", 7)
    assert [one.part for one in parts] == ["A", "A (2)", "…"]


def test_what_looks_like_a_heading_in_code_is_none():
    parts = markdown.read_note(
        "n.md", f"# A\n```sh\n# no\n```\n~~~\n## no\n~~~\n{LONG}\n# B\n{LONG}", 7
    )
    assert [one.part for one in parts] == ["A", "B"]


def test_underlined_headings_part_a_note_and_tables_and_rules_do_not():
    text = f"Top\n===\n{LONG}\n\nSub\n---\n{LONG}\n\n| a |\n---\n\n- x\n---\n\n---\n"
    assert [one.part for one in markdown.read_note("n.md", text, 7)] == ["Top", "Top › Sub"]


def test_a_heading_is_named_without_its_marks():
    parts = markdown.read_note("n.md", f"## [The *plan*](x.md) ##\n{LONG}\n## B\n{LONG}", 7)
    assert parts[0].part == "The *plan"


def test_a_section_that_is_too_large_is_cut_into_pieces():
    parts = markdown.read_note("n.md", "# A\n" + (LONG + "\n\n") * 60, 7)
    assert len(parts) == 4
    assert [one.part for one in parts[:2]] == ["A", "A [2]"]
    assert parts[1].title == "n.md › A (2 of 4)"
    assert all(len(one.text.encode()) <= record.TEXT_BYTES for one in parts)


def test_the_block_at_the_top_gives_title_tags_date_and_kind():
    text = "\ufeff---\r\ntitle: Guide\r\ntags: [x]\r\ndate: 2024-01-02\r\ntype: decision\r\n---\r\nb\r\n"
    (one,) = markdown.read_note("n.md", text, 7)
    assert (one.title, one.text, one.tags, one.kind) == (
        "n.md: Guide",
        "b",
        ("x",),
        Kind.DECISION,
    )
    assert (one.at, one.line) == (1_704_153_600_000, 7)


@pytest.mark.parametrize("text", ["", "\n\n", "---\ntitle: a\n---\n"])
def test_a_note_that_says_nothing_makes_no_memory(text):
    assert markdown.read_note("n.md", text, 7) == []


def test_a_very_long_title_keeps_its_last_heading():
    text = f"# {'long ' * 60}\n## The end\n{LONG}\n## B\n{LONG}"
    assert markdown.read_note("n.md", text, 7)[0].title == "n.md › … › The end"


@example(["text", "===", "## B", LONG, LONG])
@given(st.lists(st.sampled_from(["# A", "## B", "###", "===", "---", "```", "text", "", LONG])))
def test_every_line_is_in_some_part_and_no_part_is_called_like_another(lines):
    parts = markdown.read_note("n.md", "\n".join(lines), 7)
    names = [one.part for one in parts]
    assert len(set(names)) == len(names)
    text = "\n".join(one.text for one in parts)
    assert all(line in text for line in lines if line in {"text", LONG})


def test_a_heading_of_marks_and_blanks_is_read_once():
    for line in (
        "[" * 200_000,
        "[a](" * 200_000,
        "x" + " " * 200_000 + "y",
        "x" + " #" * 200_000 + "y",
    ):
        assert markdown.read_note("n.md", f"# {line}\n\n{LONG}{LONG}", 7)


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("A ##", "A"),
        ("A##", "A"),
        ("C# ", "C"),
        ("[a](b) ##", "a"),
        ("# ", "#"),
        ("A `b` #\t", "A `b"),
    ],
)
def test_a_heading_loses_its_marks_at_both_ends(heading, name):
    parts = markdown.read_note("n.md", f"# {heading}\n\n{LONG}\n\n# Z\n\n{LONG}", 7)
    assert parts[0].part == name

from hypothesis import example, given
from hypothesis import strategies as st

from memd import transfer
from memd.models import Kind
from memd.transfer import markdown
from memd.transfer.markdown import split_front_matter
from tests.tables import every_row

LONG = "The wheel turns at a steady speed. " * 60


def test_a_long_note_is_split_at_its_headings():
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


def test_a_heading_in_a_code_block_does_not_split():
    parts = markdown.read_note(
        "n.md", f"# A\n```sh\n# no\n```\n~~~\n## no\n~~~\n{LONG}\n# B\n{LONG}", 7
    )
    assert [one.part for one in parts] == ["A", "B"]


def test_underlined_headings_split_a_note_and_tables_and_rules_do_not():
    text = f"Top\n===\n{LONG}\n\nSub\n---\n{LONG}\n\n| a |\n---\n\n- x\n---\n\n---\n"
    assert [one.part for one in markdown.read_note("n.md", text, 7)] == ["Top", "Top › Sub"]


def test_a_section_that_is_too_large_is_cut():
    parts = markdown.read_note("n.md", "# A\n" + (LONG + "\n\n") * 60, 7)
    assert len(parts) == 4
    assert [one.part for one in parts[:2]] == ["A", "A [2]"]
    assert parts[1].title == "n.md › A (2 of 4)"
    assert all(len(one.text.encode()) <= transfer.TEXT_BYTES_MAX for one in parts)


def test_front_matter_gives_title_tags_date_and_kind():
    text = "\ufeff---\r\ntitle: Guide\r\ntags: [x]\r\ndate: 2024-01-02\r\ntype: decision\r\n---\r\nb\r\n"
    (one,) = markdown.read_note("n.md", text, 7)
    assert (one.title, one.text, one.tags, one.kind) == ("n.md: Guide", "b", ("x",), Kind.DECISION)
    assert (one.at, one.line) == (1_704_153_600_000, 7)


def test_a_very_long_title_keeps_its_last_heading():
    text = f"# {'long ' * 60}\n## The end\n{LONG}\n## B\n{LONG}"
    assert markdown.read_note("n.md", text, 7)[0].title == "n.md › … › The end"


@example(["text", "===", "## B", LONG, LONG])
@given(st.lists(st.sampled_from(["# A", "## B", "###", "===", "---", "```", "text", "", LONG])))
def test_every_line_is_in_some_part_and_part_names_are_unique(lines):
    parts = markdown.read_note("n.md", "\n".join(lines), 7)
    names = [one.part for one in parts]
    assert len(set(names)) == len(names)
    text = "\n".join(one.text for one in parts)
    assert all(line in text for line in lines if line in {"text", LONG})


def test_a_long_heading_is_parsed_in_linear_time():
    for line in (
        "[" * 200_000,
        "[a](" * 200_000,
        "x" + " " * 200_000 + "y",
        "x" + " #" * 200_000 + "y",
    ):
        assert markdown.read_note("n.md", f"# {line}\n\n{LONG}{LONG}", 7)


@every_row(
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
def test_a_heading_loses_its_markup_at_both_ends(heading, name):
    parts = markdown.read_note("n.md", f"# {heading}\n\n{LONG}\n\n# Z\n\n{LONG}", 7)
    assert parts[0].part == name


FRONT_MATTER = """---
# a comment
title: "Setup: the guide"
tags: [ops, 'deploy']
Date: 2024-01-02
aliases:
  - one
  - two
description: >
  folded
  text
metadata:
  type: feedback
---
body
"""


def test_front_matter_of_the_usual_forms_is_parsed():
    front = split_front_matter(FRONT_MATTER)
    assert front.one("title") == "Setup: the guide"
    assert front.many("tags") == ["ops", "deploy"]
    assert front.one("created", "date") == "2024-01-02"
    assert front.many("aliases") == ["one", "two"]
    assert front.one("description") == "folded text"
    assert front.one("type", "metadata.type") == "feedback"
    assert (front.body, front.line) == ("body\n", 15)


@every_row("text", ["", "---\n", "---\n\ntext\n\n---\nmore", "a: b\n---\n", "--- a"])
def test_a_horizontal_rule_is_no_front_matter(text):
    front = split_front_matter(text)
    assert (front.fields, front.body, front.line) == ({}, text, 1)


@given(st.text(st.sampled_from("ab:=-[]>|\"' \n#"), max_size=200))
def test_no_front_matter_raises(block):
    split_front_matter(f"---\n{block}\n---\nbody")


MEMORY = """---
name: deploy-on-friday
description: never deploy on a Friday
metadata:
  type: feedback
---
No deploys on Fridays. **Why:** the outage in May.
"""


def read_memory(text, path="note.md", beside=()):
    return markdown.read_claude_memory(path, text, 7, beside)


def test_a_memory_file_is_typed_by_its_front_matter_and_titled_by_its_name_and_what_it_says():
    ((one,), why) = read_memory(MEMORY)
    assert one.title == "deploy-on-friday: No deploys on Fridays."
    assert one.text == (
        "No deploys on Fridays. **Why:** the outage in May.\n\nnever deploy on a Friday"
    )
    assert (one.kind, one.tags, one.line, one.at) == (Kind.INSTRUCTION, ("feedback",), 7, 7)
    assert why == ""


@every_row(
    ("text", "title"),
    [
        ("Refunds are kept 10 years (tax office). Nothing deletes them yet.", "refunds: Refunds are kept 10 years (tax office)."),
        ("# Refunds\n\nThe rules:\n\n- **Kept** for 10\n  years, says the tax office\n- Nothing deletes them", "refunds: Kept for 10 years, says the tax office"),
        ("Refunds\n=======\nYes.\n\n[Kept](x.md) for 10 years.", "refunds: Kept for 10 years."),
        ("```\nkeep = 10\n```", "refunds: retention of money"),
    ],
)  # fmt: skip
def test_a_memory_file_is_titled_by_its_first_sentence_and_by_its_description_only_without_one(
    text, title
):
    ((one,), _) = read_memory(f"---\nname: refunds\ndescription: retention of money\n---\n{text}\n")
    assert one.title == title
    assert "retention of money" in one.text, "a search finds it by that"


def test_what_an_index_says_itself_is_titled_by_it_and_not_by_the_name_of_the_file():
    index = "# Memory\n- Orders live in PostgreSQL (plain SQL, no ORM)\n- [Refunds](refunds.md) - rules\n"
    ((one,), _) = read_memory(index, "MEMORY.md", {"refunds.md"})
    assert one.title == "Orders live in PostgreSQL (plain SQL, no ORM)"


@every_row(
    ("type_", "kind"),
    [("user", Kind.FACT), ("project", Kind.FACT), ("reference", Kind.NOTE), ("x", Kind.NOTE)],
)
def test_each_type_of_memory_file_has_its_kind(type_, kind):
    ((one,), _) = read_memory(f"---\nname: a\ntype: {type_}\n---\nb")
    assert one.kind is kind


def test_the_index_of_memory_files_makes_no_memory():
    index = "# Memory\n\n- [Deploys](deploy.md) — never on Fridays\n* [User](./user.md)\n"
    assert read_memory(index, "MEMORY.md", {"deploy.md", "user.md"}) == (
        [],
        "an index of the notes beside it",
    )


def test_an_empty_memory_file_is_reported():
    assert read_memory("---\nname: a\n---\n\n") == ([], "empty")


def test_unclosed_links_are_parsed_in_linear_time():
    for line in ("- " + "](a" * 500_000, "- " + "](a" * 500_000 + ")"):
        memories, _ = read_memory(f"{line}\nkeep this\n", "MEMORY.md", {"b.md"})
        assert "keep this" in memories[-1].text

import pytest

from memd.models import Kind
from memd.transfer import markdown

NOTE = """---
name: deploy-on-friday
description: never deploy on a Friday
metadata:
  type: feedback
---
No deploys on Fridays. **Why:** the outage in May.
"""


def read(text, path="note.md", beside=()):
    return markdown.read_claude_memory(path, text, 7, beside)


def test_a_note_is_titled_and_typed_by_the_block_at_its_top():
    ((one,), why) = read(NOTE)
    assert one.title == "deploy-on-friday: never deploy on a Friday"
    assert one.text == "No deploys on Fridays. **Why:** the outage in May."
    assert (one.kind, one.tags, one.line, one.at) == (Kind.INSTRUCTION, ("feedback",), 7, 7)
    assert why == ""


@pytest.mark.parametrize(
    ("type_", "kind"),
    [("user", Kind.FACT), ("project", Kind.FACT), ("reference", Kind.NOTE), ("x", Kind.NOTE)],
)
def test_each_type_has_its_kind(type_, kind):
    ((one,), _) = read(f"---\nname: a\ntype: {type_}\n---\nb")
    assert one.kind is kind


def test_the_index_says_nothing_that_its_notes_do_not():
    index = "# Memory\n\n- [Deploys](deploy.md) — never on Fridays\n* [User](./user.md)\n"
    assert read(index, "MEMORY.md", {"deploy.md", "user.md"}) == (
        [],
        "an index of the notes beside it",
    )


def test_what_else_stands_in_the_index_is_kept():
    index = "- [Gone](gone.md) — still told here\n- [There](there.md) — x\n- run `make test`\n"
    ((one,), _) = read(index, "MEMORY.md", {"there.md"})
    assert one.text == "- [Gone](gone.md) — still told here\n- run `make test`"
    assert one.title == "MEMORY.md"


def test_an_empty_note_says_so():
    assert read("---\nname: a\n---\n\n") == ([], "empty")


def test_links_that_never_end_are_read_once():
    for line in ("- " + "](a" * 500_000, "- " + "](a" * 500_000 + ")"):
        entries, _ = read(f"{line}\nkeep this\n", "MEMORY.md", {"b.md"})
        assert "keep this" in entries[-1].text

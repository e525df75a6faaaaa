"""What a client writes in the place of a prompt is told from what its user says."""

from memd.machine_text import is_machine_text, read_plan, strip_blocks
from tests.tables import every_row, read_tables

TABLES = read_tables("machine_text")


@every_row("text", TABLES["text_of_the_client_is_recognised"])
def test_text_of_the_client_is_recognised(text):
    assert is_machine_text(text)


@every_row(
    "text",
    [
        "",
        "stop",
        "Why does the stop hook feedback: line show up twice?",
        "Stop the operation, it is blocked by hook: remove it",
        "The hook said [Request interrupted by user]",
        "<div>why is this not centered?</div>",
        "/review auth.py",
        "This session is too long, summarise it",
        "Caveat: only on Linux",
    ],
)
def test_words_of_the_user_are_not(text):
    assert not is_machine_text(text)


def test_what_an_editor_adds_is_left_out():
    opened = "<ide_opened_file>The user opened the file /p/a.py in the IDE.</ide_opened_file>"
    selected = (
        "<ide_selection>The user selected the lines 1 to 2 from /p/a.py:\nx = 1\n</ide_selection>"
    )
    assert strip_blocks(f"{opened}\nsort the {selected}imports") == "sort the imports"
    assert not is_machine_text(f"{opened}\nsort the imports")


@every_row(
    ("heading", "subject"),
    [
        ("# Plan: Sort the orders", "Sort the orders"),
        ("# Sort orders - Implementation Plan", "Sort orders"),
        ("# Implementation Plan for Order Sorting", "Order Sorting"),
        ("## Context\n\n# Sort the orders", "Sort the orders"),
    ],
)
def test_the_subject_of_a_plan_is_its_heading(heading, subject):
    found = read_plan(
        f"Implement the following plan:\n\n{heading}\n\n## Context\n\nThey come unsorted.\n"
    )
    assert found is not None
    assert (found.subject, found.context) == (subject, "They come unsorted.")


@every_row(
    "text", ["implement the plan", "Implement the following plan:\n\nsort them", "# Plan: a\nb", ""]
)
def test_a_text_without_a_plan_has_none(text):
    assert read_plan(text) is None

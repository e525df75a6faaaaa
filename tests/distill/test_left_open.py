"""What a closing message leaves open, by the label before it."""

import pytest

from memd.distill.body import find_left, sentences


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("It refuses more than was paid. Open: nothing deletes refunds yet.", ["Open: nothing deletes refunds yet."]),
        ("Done.\n\nOpen for tomorrow: VAT for Switzerland", ["Open for tomorrow: VAT for Switzerland"]),
        ("Done.\n\n## Open for tomorrow\n\n- VAT\n- the PDF", ["VAT", "the PDF"]),
    ],
)  # fmt: skip
def test_what_a_label_calls_open_is_left_open(answer, left):
    assert list(find_left(sentences.read_statements(answer))) == left


@pytest.mark.parametrize(
    "answer",
    ["Open: nothing yet.", "Open: nothing is left to do yet.", "Open: no known issues yet",
     "Remaining: none.", "Open the file: a.py", "Open questions answered: all three."],
)  # fmt: skip
def test_a_label_that_opens_or_has_nothing_leaves_nothing_open(answer):
    assert not list(find_left(sentences.read_statements(answer)))

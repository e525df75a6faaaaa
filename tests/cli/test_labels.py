"""Small words of the command line that a reader trips over."""

from memd.cli.query import _list_remarks
from memd.cli.review import _label


def test_a_label_is_apart_from_its_text_however_long_it_is():
    assert _label("holds for", "window.go") == "  holds for window.go"
    assert _label("said", "“x”") == "  said    “x”"


def test_an_answer_without_all_vectors_does_not_say_that_the_vectors_did_not_answer():
    remarks = _list_remarks({"degraded": {"vector": "84 of 1084 passages have no vector yet"}})
    assert list(remarks) == ["(vector: 84 of 1084 passages have no vector yet)"]

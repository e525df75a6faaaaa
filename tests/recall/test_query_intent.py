import pytest

from memd.models import Kind
from memd.recall.query import read_intent


@pytest.mark.parametrize(
    "question",
    ["latest decision", "where were we?", "what did we do last session", "Yesterday's fix"],
)
def test_asking_for_the_latest_is_noticed(question):
    assert read_intent(question).is_recent


@pytest.mark.parametrize(
    "question", ["where do we keep sessions", "the lastpass import", "recentre the map"]
)
def test_other_questions_do_not_ask_for_the_latest(question):
    assert not read_intent(question).is_recent


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("how should tests be run", Kind.INSTRUCTION),
        ("why did login answer 500", Kind.FIX),
        ("LIMITS NameError", Kind.FAILURE),
        ("where do we keep sessions", Kind.DECISION),
        ("open tasks", Kind.TASK),
    ],
)
def test_the_kind_that_is_asked_for_is_read_from_the_words(question, kind):
    assert kind in read_intent(question).kinds


def test_plain_words_ask_for_no_kind():
    assert not read_intent("redis session store").kinds

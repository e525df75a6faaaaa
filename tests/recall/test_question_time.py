import re
from datetime import UTC, datetime
from pathlib import Path

from memd.recall.question_time import _day_of, asks_for_decisions, asks_what_happened, find_time
from memd.time_expressions import span_of_days
from tests.tables import every_row, read_tables

TABLES = read_tables("recall/question_time")

NOW = int(datetime(2026, 2, 18, 10, 30, tzinfo=UTC).timestamp() * 1000)
"""A Wednesday."""


@every_row(
    ("question", "label", "rest"),
    TABLES["a_time_in_a_question_is_a_span_and_no_content"],
)  # fmt: skip
def test_a_time_in_a_question_is_a_span_and_no_content(question, label, rest):
    found = find_time(question, NOW)
    assert found is not None
    assert (found.label, found.text) == (label, rest)
    assert found.since is None or found.until is None or found.since <= found.until


@every_row(
    ("question", "sessions"),
    [
        ("What did we do in the last session?", (1, 1)),
        ("What did we do last session?", (1, 1)),
        ("What happened in the previous session?", (1, 1)),
        ("What did we do in the session before last?", (2, 2)),
        ("What was decided two sessions ago?", (2, 2)),
        ("What did we do in the last three sessions?", (1, 3)),
    ],
)
def test_a_session_is_left_to_be_looked_up(question, sessions):
    found = find_time(question, NOW)
    assert found is not None
    assert found.sessions == sessions


@every_row("question", TABLES["what_is_no_time_of_an_event_filters_nothing"])
def test_what_is_no_time_of_an_event_filters_nothing(question):
    assert find_time(question, NOW) is None


@every_row(
    ("rest", "is_open"),
    [
        ("What did we do?", True), ("What happened in this project?", True), ("what was decided", True),
        ("", True), ("Recap", True), ("What did we do in the README?", False), ("Which bug was fixed?", False),
    ],
)  # fmt: skip
def test_a_question_without_content_of_its_own_asks_what_happened(rest, is_open):
    assert asks_what_happened(rest) is is_open


def test_what_was_decided_asks_for_decisions():
    assert asks_for_decisions("What did we decide?")
    assert not asks_for_decisions("What did we do?")


def test_a_time_that_no_calendar_has_is_the_last_day_of_one():
    assert _day_of(2**53) == _day_of(2**52)
    first, last = span_of_days(*[_day_of(2**53)] * 2)
    assert first < last


def test_every_time_that_the_page_says_is_understood():
    page = (Path(__file__).parents[2] / "docs" / "retrieval.md").read_text(encoding="utf-8")
    said = re.search(r"It understands (.+?)\. Days", page, re.DOTALL).group(1)
    times = re.findall("`([^`]+)`", said)
    assert len(times) >= 8
    ends = {"since": "since Monday", "before": "before Monday"}
    asked = [f"What did we change {ends.get(time, time)}?" for time in times]
    assert [question for question in asked if find_time(question, NOW) is None] == []

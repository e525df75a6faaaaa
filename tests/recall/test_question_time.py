import re
from datetime import UTC, datetime
from pathlib import Path

from memd.recall.question_time import (
    TEXT_CHARACTERS_MAX,
    _day_of,
    _span_of_days,
    asks_for_decisions,
    asks_what_happened,
    find_time,
)
from tests.tables import every_row

NOW = int(datetime(2026, 2, 18, 10, 30, tzinfo=UTC).timestamp() * 1000)
"""A Wednesday."""


@every_row(
    ("question", "label", "rest"),
    [
        ("What did we do today?", "2026-02-18", "What did we do?"),
        ("What did we do yesterday?", "2026-02-17", "What did we do?"),
        ("Yesterday's decision on retries", "2026-02-17", "decision on retries"),
        ("What broke this morning?", "2026-02-18", "What broke?"),
        ("What did we decide the day before yesterday?", "2026-02-16", "What did we decide?"),
        (
            "What did we write in the README yesterday evening?",
            "2026-02-17T12:00Z to 2026-02-18T11:59Z",
            "What did we write in the README?",
        ),
        ("What failed last night?", "2026-02-17T12:00Z to 2026-02-18T11:59Z", "What failed?"),
        ("What did we do last week?", "2026-02-09 to 2026-02-15", "What did we do?"),
        ("the decisions of last week", "2026-02-09 to 2026-02-15", "the decisions"),
        ("What happened this week", "2026-02-16 to 2026-02-22", "What happened"),
        ("What did we do the week before last?", "2026-02-02 to 2026-02-08", "What did we do?"),
        ("Caching work last month", "2026-01", "Caching work"),
        ("What did we do last year?", "2025", "What did we do?"),
        ("What did we do last weekend?", "2026-02-14 to 2026-02-15", "What did we do?"),
        ("What changed three days ago?", "2026-02-15", "What changed?"),
        ("What changed 3 days ago?", "2026-02-15", "What changed?"),
        ("What did we do a few days ago?", "2026-02-13 to 2026-02-16", "What did we do?"),
        ("What did we do 2 weeks ago?", "2026-02-01 to 2026-02-07", "What did we do?"),
        ("What did we do a month ago?", "2026-01", "What did we do?"),
        (
            "what went wrong an hour ago",
            "2026-02-18T08:30Z to 2026-02-18T10:29Z",
            "what went wrong",
        ),
        ("What did we do last Monday?", "2026-02-16", "What did we do?"),
        ("Which bug did we fix on Monday?", "2026-02-16", "Which bug did we fix?"),
        ("Which bug did we fix on Wednesday?", "2026-02-11", "Which bug did we fix?"),
        ("what was done this Wednesday", "2026-02-18", "what was done"),
        ("What did we do in February?", "2026-02", "What did we do?"),
        ("What did we do in February 2025?", "2025-02", "What did we do?"),
        ("What did we do last February?", "2025-02", "What did we do?"),
        ("What did we do last January?", "2026-01", "What did we do?"),
        ("What did we do in May?", "2025-05", "What did we do?"),
        ("what did we do in may 2025?", "2025-05", "what did we do?"),
        ("what did we do in march", "2025-03", "what did we do"),
        ("What did we do in late January on parsing?", "2026-01", "What did we do on parsing?"),
        ("What did we do at the end of January?", "2026-01", "What did we do?"),
        ("what did we do in 2025?", "2025", "what did we do?"),
        ("What did we do on the 3rd?", "2026-02-03", "What did we do?"),
        ("What did we do on the 30th?", "2026-01-30", "What did we do?"),
        ("What did we do on 3 February?", "2026-02-03", "What did we do?"),
        ("What did we do on the 3rd of February?", "2026-02-03", "What did we do?"),
        ("What did we do on December 24th?", "2025-12-24", "What did we do?"),
        ("What did we do on January 10, 2026?", "2026-01-10", "What did we do?"),
        ("README changes 10 January 2026", "2026-01-10", "README changes"),
        ("What did we do on 29 February?", "2024-02-29", "What did we do?"),
        (
            "Which version was tagged on Friday the 13th of February?",
            "2026-02-13",
            "Which version was tagged?",
        ),
        ("What did we do on Friday the 13th?", "2026-02-13", "What did we do?"),
        ("What did we do on Friday, 9 January?", "2026-01-09", "What did we do?"),
        ("What was done on 2026-01-10?", "2026-01-10", "What was done?"),
        ("What was done 2026-01-10?", "2026-01-10", "What was done?"),
        ("What was done in 2026-01?", "2026-01", "What was done?"),
        ("What failed on 2026-02-03T09:00Z?", "2026-02-03T09:00Z", "What failed?"),
        (
            "What came of the parser in the week of 19 to 25 January 2026?",
            "2026-01-19 to 2026-01-25",
            "What came of the parser?",
        ),
        ("What did we do in the week of 10 January?", "2026-01-05 to 2026-01-11", "What did we do?"),
        (
            "What broke between 3 January and 5 February?",
            "2026-01-03 to 2026-02-05",
            "What broke?",
        ),
        ("What did we do from Monday to today?", "2026-02-16 to 2026-02-18", "What did we do?"),
        (
            "What did we do from 20 December to 3 January?",
            "2025-12-20 to 2026-01-03",
            "What did we do?",
        ),
        ("What was done January 19 to 25, 2026?", "2026-01-19 to 2026-01-25", "What was done?"),
        ("What was done on 19-25 January?", "2026-01-19 to 2026-01-25", "What was done?"),
        (
            "What was done from January to March 2025?",
            "2025-01-01 to 2025-03-31",
            "What was done?",
        ),
        ("What did we change since yesterday?", "since 2026-02-17", "What did we change?"),
        ("What did we change since 10 January?", "since 2026-01-10", "What did we change?"),
        ("What changed since Monday?", "since 2026-02-16", "What changed?"),
        ("Which index did we use before February?", "before 2026-02-01", "Which index did we use?"),
        ("What was the limit until last week?", "before 2026-02-16", "What was the limit?"),
        ("What did we build after 1 February?", "since 2026-02-02", "What did we build?"),
        ("What did we do in the last two weeks?", "since 2026-02-04", "What did we do?"),
        ("What did we do over the past month?", "since 2026-01-19", "What did we do?"),
        (
            "What did we do in the previous week?",
            "2026-02-09 to 2026-02-15",
            "What did we do?",
        ),
    ],
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


@every_row(
    "question",
    [
        "How does the cache work before the request?",
        "What did we do before?",
        "What is the value now?",
        "Which was the last decision?",
        "How does login work today?",
        "What may fail in login?",
        "This may fail in CI, why?",
        "Why may 5 agents share a vault?",
        "How many of 10 may fail?",
        "Where do we march through the rows?",
        "Which is the second retry?",
        "What happens on the 3rd attempt?",
        "What does the 2nd argument mean?",
        "What did the 3rd and 4th calls return?",
        "How do we go from 2 to 3 workers?",
        'How is "last week" read?',
        "How is `yesterday` read?",
        "Why did 'on 3 March' match?",
        "Does --since accept last week?",
        "Does the grammar understand yesterday?",
        "What is branch release/2026-01-10 for?",
        "What is in backup-2026-01-10.tar?",
        "Why does it say Error: no data on 2026-01-10?",
        "ValueError: time data does not match in February",
        "Why is v2026.01.10 broken?",
        "Which model is some-model-4-20250514?",
        "Why does the check reject 2026-02-28?",
        "Which token expires on 3 March?",
        "What is due on Friday?",
        "How does the last week view work?",
        "Where is the today button?",
        "What does yesterday() return?",
        "Why does today.ts fail?",
        "What is said in last_week.py?",
        "Is the last session id stored?",
        "What happens when the last session ends?",
        "How is the id of the last session found?",
        "What must be done before the release?",
        "Why does the March release fail?",
        "How long do we keep logs of 30 days?",
        "Are entries deleted that are older than two weeks ago?",
        "What runs every Monday?",
        "What happens next week?",
        "What did we do on 30 February?",
        "What comes on 2027-01-01?",
        "Is port 2026 used in 2048 bytes?",
        "Why does it fail since the update?",
        "Open https://example.org/on/2026-01-10 from the docs",
        "What did we do yesterday?" + " and more" * (TEXT_CHARACTERS_MAX // 9),
    ],
)
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
    first, last = _span_of_days(*[_day_of(2**53)] * 2)
    assert first < last


def test_every_time_that_the_page_says_is_understood():
    page = (Path(__file__).parents[2] / "docs" / "retrieval.md").read_text(encoding="utf-8")
    said = re.search(r"It understands (.+?)\. Days", page, re.DOTALL).group(1)
    times = re.findall("`([^`]+)`", said)
    assert len(times) >= 8
    ends = {"since": "since Monday", "before": "before Monday"}
    asked = [f"What did we change {ends.get(time, time)}?" for time in times]
    assert [question for question in asked if find_time(question, NOW) is None] == []

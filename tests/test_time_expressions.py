from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd import time_expressions
from memd.errors import BadRequest
from memd.time_expressions import DAY_MS, HOUR_MS, WEEK_MS
from tests.tables import every_row, read_tables

TABLES = read_tables("time_expressions")


def ms(*parts):
    return int(datetime(*parts, tzinfo=UTC).timestamp() * 1000)


NOW = ms(2026, 11, 20, 9, 15)
"""A Friday."""


@every_row(("text", "start", "last"), TABLES["a_day_or_more_is_a_span"])
def test_a_day_or_more_is_a_span(text, start, last):
    assert time_expressions.parse_start(text, NOW) == start
    assert time_expressions.parse_end(text, NOW) == last


@every_row(("text", "at"), TABLES["a_point_in_time_is_itself_from_both_sides"])
def test_a_point_in_time_is_itself_from_both_sides(text, at):
    assert time_expressions.parse_start(text, NOW) == time_expressions.parse_end(text, NOW) == at


@every_row(
    "text",
    [
        "",
        "soon",
        "7 parsecs",
        "2026-13-01",
        "last decade",
        "32",
        "9" * 400,
        "1969-01-01T00:00",
        "²",
    ],
)
def test_an_unreadable_time_is_answered_with_the_known_forms(text):
    with pytest.raises(BadRequest, match=r"^since: "):
        time_expressions.parse_start(text, NOW)


def test_seconds_are_refused_as_epoch_milliseconds():
    with pytest.raises(BadRequest, match="looks like seconds"):
        time_expressions.parse_start(1_700_000_000, NOW)


def test_durations_are_lengths():
    assert time_expressions.parse_duration("30d", "expires_in") == 30 * DAY_MS
    assert time_expressions.parse_duration("2 weeks", "expires_in") == 2 * WEEK_MS
    with pytest.raises(BadRequest, match=r"^expires_in: 'tomorrow'"):
        time_expressions.parse_duration("tomorrow", "expires_in")


@every_row("text", ["0d", "0 s", "999999y", "1001y"])
def test_a_duration_that_ends_at_once_or_never_is_refused(text):
    with pytest.raises(BadRequest, match=r"^expires_in: .* is not between"):
        time_expressions.parse_duration(text, "expires_in")


@every_row(
    ("length", "age"),
    [
        (0, "now"), (59_000, "now"), (5 * time_expressions.MINUTE_MS, "5m"), (3 * HOUR_MS, "3h"), (3 * DAY_MS, "3d"),
        (13 * DAY_MS, "13d"), (14 * DAY_MS, "2w"), (65 * DAY_MS, "2mo"), (800 * DAY_MS, "2y"), (-3 * DAY_MS, "in 3d"),
        (-7 * DAY_MS, time_expressions.AHEAD), (-4_000 * DAY_MS, time_expressions.AHEAD),
    ],
)  # fmt: skip
def test_an_age_has_one_unit(length, age):
    assert time_expressions.format_age(NOW - length, NOW) == age


def test_times_are_shown_in_utc_to_the_minute():
    assert time_expressions.format_time(NOW) == "2026-11-20T09:15Z"
    assert time_expressions.format_time(-1) == "1970-01-01T00:00Z"


@given(st.text(max_size=30) | st.integers(), st.integers(0, time_expressions.TIME_MAX_MS))
def test_a_time_is_a_time_or_a_bad_request(value, now):
    try:
        start, last = (
            time_expressions.parse_start(value, now),
            time_expressions.parse_end(value, now),
        )
    except BadRequest:
        return
    assert 0 <= start <= last

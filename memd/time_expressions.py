"""Times and durations as users and agents write them: ISO 8601, epoch milliseconds, `7d`, `last week`. Pure.

Days are UTC days, and weeks begin on Monday. A day, a week, a month or a year is a span.
"""

import re
from datetime import UTC, date, datetime, timedelta

from memd.errors import BadRequest
from memd.models import CLOCK_SKEW_MAX_MS

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS
MONTH_MS = 30 * DAY_MS
YEAR_MS = 365 * DAY_MS
TIME_MAX_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""
DURATION_MAX_MS = 1_000 * YEAR_MS
AHEAD = "dated ahead"
"""The age of an event that a wrong clock has dated."""
FORMS = "an ISO date or time, epoch milliseconds, or today, yesterday, 7d, 3h, 2w, last week"
_LOOKS_LIKE_SECONDS = range(10**8, 10**11)
_DATE_DIGITS = 8
"""Digits of `20260501`. A text of no more digits is a date and not epoch milliseconds."""
_UNITS_MS = {
    "s": SECOND_MS, "sec": SECOND_MS, "second": SECOND_MS,
    "m": MINUTE_MS, "min": MINUTE_MS, "minute": MINUTE_MS,
    "h": HOUR_MS, "hr": HOUR_MS, "hour": HOUR_MS,
    "d": DAY_MS, "day": DAY_MS,
    "w": WEEK_MS, "wk": WEEK_MS, "week": WEEK_MS,
    "mo": MONTH_MS, "month": MONTH_MS,
    "y": YEAR_MS, "yr": YEAR_MS, "year": YEAR_MS,
}  # fmt: skip
_AGE_UNITS = (
    ("y", YEAR_MS, YEAR_MS), ("mo", MONTH_MS, MONTH_MS), ("w", WEEK_MS, 2 * WEEK_MS),
    ("d", DAY_MS, DAY_MS), ("h", HOUR_MS, HOUR_MS), ("m", MINUTE_MS, MINUTE_MS),
)  # fmt: skip
"""Unit, its length, and the age from which it is used."""
_DURATION = re.compile(r"(\d{1,6})\s*([a-z]+?)s?")
_YEAR_ONLY = re.compile(r"\d{4}")
_MONTH_ONLY = re.compile(r"(\d{4})-(\d{2})")
_DAY_ONLY = re.compile(r"\d{4}-\d{2}-\d{2}|\d{8}|\d{4}-W\d{2}-\d")

Span = tuple[int, int]
"""[start, stop) in UTC milliseconds; both are equal for a point in time."""


def parse_start(value: str | int, now: int, name: str = "since") -> int:
    """The first millisecond of a time. A BadRequest names `name`."""
    return _parse_span(value, now, name)[0]


def parse_end(value: str | int, now: int, name: str = "until") -> int:
    """The last millisecond of a time. A BadRequest names `name`."""
    start, stop = _parse_span(value, now, name)
    return max(start, stop - 1)


def parse_duration(text: str, name: str) -> int:
    """Milliseconds of `30d`, `2 weeks`. A BadRequest names `name`."""
    length = read_duration(text.strip().lower())
    if length is None:
        raise BadRequest(f"{name}: {_quote_text(text)} is no duration; write 30d, 12h or 2w")
    if not 0 < length <= DURATION_MAX_MS:
        raise BadRequest(
            f"{name}: {_quote_text(text)} is not between a second and a thousand years"
        )
    return length


def format_time(at: int) -> str:
    """UTC, to the minute: `2026-11-20T09:15Z`."""
    moment = datetime.fromtimestamp(min(max(at, 0), TIME_MAX_MS) / SECOND_MS, UTC)
    return moment.isoformat(timespec="minutes")[:16] + "Z"  # four times as fast as strftime


def format_age(at: int, now: int) -> str:
    """Format how long ago something was, in one unit: `3d`, `5h`, `now`; `in 3d` for a time that a clock may be ahead."""
    if at - now >= CLOCK_SKEW_MAX_MS:
        return AHEAD
    age = abs(now - at)
    for unit, length, least in _AGE_UNITS:
        if age >= least:
            return f"{age // length}{unit}" if at <= now else f"in {age // length}{unit}"
    return "now"


def utc_day(at: int) -> date:
    """The UTC day of a moment."""
    return datetime.fromtimestamp(at / SECOND_MS, UTC).date()


def span_of_days(first: date, last: date) -> Span:
    """All of these days and of those between them."""
    return utc_day_start_ms(first), utc_day_start_ms(last) + DAY_MS


def week_span(day: date) -> Span:
    """The week that a day is in."""
    monday = day - timedelta(days=day.weekday())
    return span_of_days(monday, monday + timedelta(days=6))


def month_span(day: date) -> Span:
    """The calendar month that a day is in."""
    first = day.replace(day=1)
    return utc_day_start_ms(first), utc_day_start_ms((first + timedelta(days=31)).replace(day=1))


def year_span(year: int) -> Span:
    """A calendar year."""
    return utc_day_start_ms(date(year, 1, 1)), utc_day_start_ms(date(year + 1, 1, 1))


def months_before(day: date, count: int) -> date:
    """The first day of the month that is `count` months before a day's month."""
    months = day.year * 12 + day.month - 1 - count
    return date(months // 12, months % 12 + 1, 1)


def unit_before(unit: str, count: int, today: date) -> Span:
    """The calendar week, month or year that is so many before today's."""
    if unit == "week":
        return week_span(today - timedelta(weeks=count))
    if unit == "year":
        return year_span(today.year - count)
    return month_span(months_before(today, count))


def parse_moment(text: str) -> int:
    """UTC milliseconds of an ISO 8601 time, of UTC if it names no zone. A ValueError if it is none or out of range."""
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    at = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    if not 0 <= at <= TIME_MAX_MS:
        raise ValueError("beyond the year 9999 or before 1970")
    return at


def utc_day_start_ms(day: date) -> int:
    """The first millisecond of a day in UTC."""
    return (day - date(1970, 1, 1)).days * DAY_MS


def _parse_span(value: str | int, now: int, name: str) -> Span:
    text = str(value).strip()
    if isinstance(value, int) or (text.isdecimal() and len(text) > _DATE_DIGITS):
        at = _check_epoch(text, name)
        return at, at
    words = text.lower()
    try:
        span = _parse_named(words, now) or _parse_ago(words, now) or _parse_calendar(text)
    except (ValueError, OverflowError):
        span = None
    if span is None:
        raise BadRequest(f"{name}: {_quote_text(text)} is no time; write {FORMS}")
    return span


def _check_epoch(digits: str, name: str) -> int:
    if len(digits) > len(str(TIME_MAX_MS)) or not 0 <= int(digits) <= TIME_MAX_MS:
        raise BadRequest(f"{name}: beyond the year 9999 or before 1970")
    if int(digits) in _LOOKS_LIKE_SECONDS:
        raise BadRequest(f"{name}: {digits} looks like seconds; milliseconds are meant")
    return int(digits)


def _parse_named(text: str, now: int) -> Span | None:
    day = now - now % DAY_MS
    if text == "now":
        return now, now
    if text in {"today", "yesterday"}:
        start = day if text == "today" else day - DAY_MS
        return start, start + DAY_MS
    which, _, unit = text.partition(" ")
    if which not in {"this", "last"} or unit not in {"week", "month", "year"}:
        return None
    return unit_before(unit, int(which == "last"), utc_day(now))


def _parse_ago(text: str, now: int) -> Span | None:
    length = read_duration(text.removesuffix("ago").strip())
    return None if length is None else (max(0, now - length), max(0, now - length))


def read_duration(text: str) -> int | None:
    """Milliseconds of a whole number and its unit in small letters, a month as 30 days; None if a text is anything else."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    # The pattern takes the "s" of seconds for the ending of a plural.
    unit_ms = _UNITS_MS.get(found[2]) or _UNITS_MS.get(text.lstrip("0123456789 "))
    return None if unit_ms is None else int(found[1]) * unit_ms


def _parse_calendar(text: str) -> Span:
    if _YEAR_ONLY.fullmatch(text):
        return year_span(int(text))
    if found := _MONTH_ONLY.fullmatch(text):
        return month_span(date(int(found[1]), int(found[2]), 1))
    if _DAY_ONLY.fullmatch(text):
        return span_of_days(*[date.fromisoformat(text)] * 2)
    at = parse_moment(text)
    return at, at


def _quote_text(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")  # noqa: PLR2004  # enough to recognise it

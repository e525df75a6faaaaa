"""Times and durations as people and agents write them. Pure.

`2026-05-01T10:00Z`, `2026-05-01`, `2026-05`, epoch milliseconds, `now`, `today`, `yesterday`, `7d`,
`2 weeks ago`, `this week`, `last month`. Days are UTC days, weeks begin on Monday. A day or a month
is a span: `since` means its beginning, `until` its last millisecond. Not here: the clock.
"""

import re
from datetime import UTC, date, datetime, timedelta

from memd.errors import BadRequest
from memd.models import CLOCK_SKEW_MAX_MS

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY
MONTH = 30 * DAY
YEAR = 365 * DAY
TIME_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999."""
DURATION_MAX = 1_000 * YEAR
AHEAD = "dated ahead"
"""The age of what a wrong clock has dated."""
_LOOKS_LIKE_SECONDS = range(10**8, 10**11)

_DATE_DIGITS = 8

_UNITS = {
    "s": SECOND, "sec": SECOND, "second": SECOND,
    "m": MINUTE, "min": MINUTE, "minute": MINUTE,
    "h": HOUR, "hr": HOUR, "hour": HOUR,
    "d": DAY, "day": DAY,
    "w": WEEK, "wk": WEEK, "week": WEEK,
    "mo": MONTH, "month": MONTH,
    "y": YEAR, "yr": YEAR, "year": YEAR,
}  # fmt: skip
_DURATION = re.compile(r"(\d{1,6})\s*([a-z]+?)s?")
_MONTH_ONLY = re.compile(r"(\d{4})-(\d{2})")
_DAY_ONLY = re.compile(r"\d{4}-\d{2}-\d{2}|\d{8}|\d{4}-W\d{2}-\d")
_FORMS = "an ISO date or time, epoch milliseconds, or today, yesterday, 7d, 3h, 2w, last week"

Span = tuple[int, int]
"""[start, stop) in UTC milliseconds; equal for a point in time."""


def since(value: str | int, now: int, name: str = "since") -> int:
    """The first millisecond meant. A BadRequest names `name`."""
    return _span(value, now, name)[0]


def until(value: str | int, now: int, name: str = "until") -> int:
    """The last millisecond meant. A BadRequest names `name`."""
    start, stop = _span(value, now, name)
    return max(start, stop - 1)


def duration(text: str, name: str) -> int:
    """Milliseconds of `30d`, `2 weeks`. A BadRequest names `name`."""
    length = _duration(text.strip().lower())
    if length is None:
        raise BadRequest(f"{name}: {_shown(text)} is no duration; write 30d, 12h or 2w")
    if not 0 < length <= DURATION_MAX:
        raise BadRequest(f"{name}: {_shown(text)} is not between a second and a thousand years")
    return length


def iso(at: int) -> str:
    """UTC, to the minute: `2026-11-20T09:15Z`."""
    moment = datetime.fromtimestamp(min(max(at, 0), TIME_MAX) / SECOND, UTC)
    return moment.isoformat(timespec="minutes")[:16] + "Z"  # a quarter of what strftime takes


def age(at: int, now: int) -> str:
    """How long ago, in one unit: `3d`, `5h`, `now`; `in 3d` for what is to come, if it can be."""
    if at - now >= CLOCK_SKEW_MAX_MS:
        return AHEAD
    length = abs(now - at)
    if length < MINUTE:
        return "now"
    units = (
        ("y", YEAR),
        ("mo", MONTH),
        ("w", 2 * WEEK),
        ("d", DAY),
        ("h", HOUR),
        ("m", MINUTE),
    )
    unit, size = next((unit, size) for unit, size in units if length >= size)
    count = length // (WEEK if unit == "w" else size)
    return f"{count}{unit}" if at <= now else f"in {count}{unit}"


def _span(value: str | int, now: int, name: str) -> Span:
    if isinstance(value, int) or value.strip().isdecimal():
        number = _epoch(value, name)
        if number is not None:
            return number, number
    text = str(value).strip().lower()
    span = _named(text, now) or _ago(text, now) or _calendar(str(value).strip())
    if span is None:
        raise BadRequest(f"{name}: {_shown(str(value))} is no time; write {_FORMS}")
    return span


def _epoch(value: str | int, name: str) -> int | None:
    """The number as milliseconds; None if so few digits are a date (`2026`, `20260501`), or nothing."""
    if isinstance(value, str) and len(value.strip()) <= _DATE_DIGITS:
        return None
    digits = str(value).strip()
    if len(digits) > len(str(TIME_MAX)) or not 0 <= int(digits) <= TIME_MAX:
        raise BadRequest(f"{name}: beyond the year 9999 or before 1970")
    if int(digits) in _LOOKS_LIKE_SECONDS:
        raise BadRequest(f"{name}: {digits} looks like seconds; milliseconds are meant")
    return int(digits)


def _named(text: str, now: int) -> Span | None:
    day = now - now % DAY
    if text == "now":
        return now, now
    if text in {"today", "yesterday"}:
        start = day if text == "today" else day - DAY
        return start, start + DAY
    which, _, unit = text.partition(" ")
    if which not in {"this", "last"} or unit not in {"week", "month", "year"}:
        return None
    back = 1 if which == "last" else 0
    today = datetime.fromtimestamp(now / SECOND, UTC).date()
    if unit == "week":
        start = day - today.weekday() * DAY - back * WEEK
        return start, start + WEEK
    if unit == "year":
        return _ms(date(today.year - back, 1, 1)), _ms(date(today.year - back + 1, 1, 1))
    first = today.replace(day=1)
    return _month((first - timedelta(days=1)).replace(day=1) if back else first)


def _ago(text: str, now: int) -> Span | None:
    length = _duration(text.removesuffix("ago").strip())
    if length is None:
        return None
    at = max(0, now - length)
    return at, at


def _duration(text: str) -> int | None:
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    # "s" itself would be taken for a plural's ending.
    unit = _UNITS.get(found[2]) or _UNITS.get(text.lstrip("0123456789 "))
    return None if unit is None else int(found[1]) * unit


def _calendar(text: str) -> Span | None:
    try:
        if text.isdecimal() and len(text) == 4:  # noqa: PLR2004  # a year
            return _ms(date(int(text), 1, 1)), _ms(date(int(text) + 1, 1, 1))
        if found := _MONTH_ONLY.fullmatch(text):
            return _month(date(int(found[1]), int(found[2]), 1))
        if _DAY_ONLY.fullmatch(text):
            start = _ms(date.fromisoformat(text))
            return start, start + DAY
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        at = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return None
    return (at, at) if 0 <= at <= TIME_MAX else None


def _month(first: date) -> Span:
    after = (first + timedelta(days=31)).replace(day=1)
    return _ms(first), _ms(after)


def _ms(day: date) -> int:
    return (day - date(1970, 1, 1)).days * DAY


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")  # noqa: PLR2004  # enough to recognise it

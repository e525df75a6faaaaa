"""Times as people type them on the command line, in their own time zone."""

import datetime as dt
import time

from memd.cli import daemon_call
from memd.time_expressions import parse_end, parse_start

TIMES = "An ISO date or time, epoch milliseconds, or today, yesterday, 7d, 3h, 2w, last week."
_DAY = dt.timedelta(days=1)


def read_today() -> dt.date:
    """The local day."""
    return dt.datetime.fromtimestamp(time.time()).date()  # noqa: DTZ006  # the local day


def read_local_time(text: str, today: dt.date) -> str | int:
    """Read a local date or time as UTC milliseconds; return anything else for the daemon to read."""
    named = {"today": today, "yesterday": today - _DAY}.get(text.strip().lower())
    if named is not None:
        return _to_milliseconds(named)
    try:
        return _to_milliseconds(dt.datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        return text


def read_local_end(text: str, today: dt.date) -> str | int:
    """Read a local time, or the last millisecond of a local day, as UTC milliseconds; return anything else."""
    named = {"today": today, "yesterday": today - _DAY}.get(text.strip().lower())
    try:
        day = named or dt.date.fromisoformat(text.strip())
        return _to_milliseconds(day + _DAY) - 1
    except (ValueError, OverflowError):
        return read_local_time(text, today)


def read_days(days: int, moment: str | int | None, today: dt.date) -> tuple[int, int]:
    """Return the first and the last millisecond of N local days that end with `moment` or today.

    A local day has 23 or 25 hours when the clock changes, so the daemon could not compute this.
    """
    if isinstance(moment, str):
        daemon_call.fail(f"--at with --days takes a date such as 2026-11-20, not {moment!r}")
    last = today if moment is None else dt.datetime.fromtimestamp(moment / 1000).date()  # noqa: DTZ006
    try:
        return _to_milliseconds(last - (days - 1) * _DAY), _to_milliseconds(last + _DAY) - 1
    except (ValueError, OverflowError):
        daemon_call.fail(f"--at: {last} is too far away for --days")


def read_span(text: str, today: dt.date) -> tuple[int, int]:
    """Return the first and the last millisecond of a local day, a week, a month; of an age such as 7d, until now.

    Both are the same for an exact time.
    """
    now, begins = int(time.time() * 1000), read_local_time(text, today)
    since = parse_start(begins, now, "WHEN")
    until = parse_end(read_local_end(text, today), now, "WHEN")
    return since, now if since == until and isinstance(begins, str) else until


def _to_milliseconds(moment: dt.date) -> int:
    """Convert a time, or the start of a day, to UTC milliseconds; without a zone it is local."""
    if not isinstance(moment, dt.datetime):
        moment = dt.datetime.combine(moment, dt.time())
    return max(0, int(moment.timestamp() * 1000))

"""Days that have 23 or 25 hours, or are not there at all: every zone's changes of the clock.

Days of the command line lie beside each other without a gap and without an overlap.
"""

import contextlib
import datetime as dt
import itertools
import os
import random
import re
import time
import zoneinfo
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memd.cli import query

if TYPE_CHECKING:
    from tests.stress.clock import ClockedDaemon

HOUR = 3_600_000
_ZONES = (
    "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "America/Santiago", "America/Havana",
    "Africa/Cairo", "Asia/Beirut", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia",
    "Pacific/Chatham", "Antarctica/Troll",
)  # fmt: skip
"""Changes at midnight, by half an hour, by two hours, and over a day that never was."""
_YEARS = range(2008, 2027)


@contextlib.contextmanager
def zone(name: str) -> Iterator[None]:
    """Have this process in a time zone."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = name
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ", None)
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()


def changes(name: str) -> list[dt.date]:
    """The days on which this zone's offset changes."""
    there = zoneinfo.ZoneInfo(name)
    days = []
    for year in _YEARS:
        day = dt.datetime(year, 1, 1, tzinfo=dt.UTC)
        while day.year == year:
            after = day + dt.timedelta(days=1)
            if day.astimezone(there).utcoffset() != after.astimezone(there).utcoffset():
                days.append(day.astimezone(there).date())
            day = after
    return days


def tiled(name: str) -> tuple[int, list[str]]:
    """(Days looked at, what is wrong with them) around every change of a zone."""
    wrong, count = [], 0
    with zone(name):
        for change in changes(name):
            days = [change + dt.timedelta(days=n) for n in range(-2, 4)]
            spans = [query.span(1, None, day) for day in days]
            whole = query.span(len(days), None, days[-1])
            count += len(days)
            for (since, until), (then, _) in itertools.pairwise(spans):
                if until + 1 != then:
                    wrong.append(f"{name} {change}: {then - until - 1} ms between two days")
                if not 0 <= until + 1 - since <= 26 * HOUR:
                    wrong.append(f"{name} {change}: a day of {(until + 1 - since) / HOUR} h")
            if whole != (spans[0][0], spans[-1][1]):
                wrong.append(f"{name} {change}: six days are not the sum of six days")
    return count, wrong


def summer_time(daemon: "ClockedDaemon", size: int, _: random.Random) -> str:
    """Days, words, and the real commands at the hour of a change."""
    count = 0
    for name in _ZONES:
        days, wrong = tiled(name)
        count += days
        daemon.wrong += wrong
    spring = int(dt.datetime(2026, 3, 29, 1, tzinfo=dt.UTC).timestamp() * 1000)
    autumn = int(dt.datetime(2026, 10, 25, 1, tzinfo=dt.UTC).timestamp() * 1000)
    for number, change in enumerate((spring, autumn)):
        for half in range(-6, min(size, 7)):
            at = change + half * HOUR // 2
            daemon.clock.set(at)
            one = {"hook_event_name": "UserPromptSubmit", "session_id": f"change{number}",
                   "prompt_id": f"{number}{half}", "cwd": "/nowhere",
                   "prompt": f"What happens at half hour {half}?"}  # fmt: skip
            daemon.capture([{"client": "claude-code", "payload": one, "at": at}])
        daemon.clock.set(change + 4 * HOUR)
        daemon.settled()
        done = daemon.run("timeline", "--days", "1", "--project", "all", TZ="Europe/Berlin")
        text = done.stdout.decode()
        shown = len(re.findall(r"^ *#\d+ .*half hour", text, re.MULTILINE))
        # In winter midnight is an hour before 0:00 UTC, in summer two: then all is of that day.
        wanted = min(size, 7) + (4 if change == spring else 6)
        daemon.check(
            shown == wanted, f"{shown} of {wanted} of that Sunday are shown: {text[:300]}"
        )
        daemon.check(text.count("── Sunday") == 1 and "Saturday" not in text, text[:200])
    daemon.sane("summer time")
    return f"{count} days of {len(_ZONES)} zones"

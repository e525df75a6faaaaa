"""What a wrong clock does: leaps both ways, summer time, sleep, endless sessions, events in any order.

    scripts/torture clock [--only NAME …] [--size N] [--seed N]

Each trial has a daemon of its own whose wall clock it sets (fake_clock.py), real processes all. After
each: nothing is lost and the ledger balances, everything is distilled, timelines are ordered and their
gaps right, nothing absurd is shown, and nothing was deleted or hidden because a clock was wrong. Exit
code 1 if that does not hold; --seed repeats the draw.
"""

import argparse
import contextlib
import datetime as dt
import functools
import itertools
import json
import os
import random
import re
import signal
import sqlite3
import sys
import time
import zoneinfo
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks import harness
from memd.cli import terminal
from tests.forked_memd import PATIENT
from tests.stress import fake_clock
from tests.stress.fake_clock import Clock, Event, turn
from tests.stress.support import Trial, ledger_complaints, run_trials, wait_until

DAY = 86_400_000
HOUR = 3_600_000
YEAR = 365 * DAY
SETTLE_S = 60.0
UP_S = 3_600.0
CPU_S = 2.0
"""What a daemon may spend in the three seconds after it was asleep."""
_ABSURD = re.compile(
    r"(?<![\w.])-\d+(?:\.\d+)? ?(?:s|m|h|d|w|y|mo|ms|min|days?|hours?)\b|\bin \d+ ?(?:y|mo)\b|\bnan\b"
)
"""Negative durations, and what is to come in years."""


class ClockedDaemon(harness.Daemon):
    """A daemon with a clock that can be set, and what it was given."""

    def __init__(self, home: str) -> None:
        super().__init__(home)
        self.clock = Clock(f"{home}/clock")
        self.command = [sys.executable, fake_clock.__file__, self.clock.path]
        self.environ |= {"TZ": "UTC", fake_clock.VARIABLE: self.clock.path}
        self.given = 0
        self.wrong: list[str] = []

    def call(self, method: str, **params: Any) -> Any:
        """One control call."""
        with self.client(60) as client:
            return client.call(method, {k: v for k, v in params.items() if v is not None})

    def capture(self, events: Sequence[Event], source: str = "live") -> None:
        """Hand these in; all are new."""
        for first in range(0, len(events), 500):
            some = [{**one, "source": source} for one in events[first : first + 500]]
            receipts = self.call("memd/capture", events=some)["receipts"]
            bad = [one for one in receipts if one["outcome"] != "stored"]
            self.given += len(some) - len(bad)
            if bad:
                self.wrong.append(f"{len(bad)} events were not stored: {bad[0]}")

    def check(self, holds: object, words: str) -> None:
        """Note what does not hold."""
        if not holds:
            self.wrong.append(words)

    def settled(self, within_s: float = SETTLE_S) -> None:
        """Wait until everything is distilled and indexed; that this does not end is a finding."""

        def is_settled() -> bool:
            status = self.call("memd/status")
            return not status["events"]["pending"] and not status["summaries"]["to_index"]

        if not wait_until(is_settled, within_s):
            left = self.call("memd/status")["events"]["pending"]
            self.wrong.append(f"{left} events are not distilled after {within_s:.0f} s")

    def sane(self, where: str) -> None:
        """Look at everything that is shown, and at the ledger."""
        wait_until(lambda: self.call("memd/status")["events"]["count"] == self.given)
        status = self.call("memd/status")
        self.wrong += [f"{where}: {one}" for one in ledger_complaints(status)]
        count = status["events"]["count"]
        self.check(count == self.given, f"{where}: {self.given} events given, {count} stored")
        self.check(0 <= status["uptime_s"] < UP_S, f"{where}: up {status['uptime_s']} s")
        broken = [worker["name"] for worker in status["rooms"] if worker["restarts"]]
        self.check(not broken, f"{where}: crashed: {broken}")
        with contextlib.closing(harness.Mcp(self.paths.socket)) as mcp:
            line = mcp.tool("mem_timeline", project="all", before=50)
            hits = mcp.tool("mem_search", query="the latest decision", project="all")["hits"]
        shown = [json.dumps(line), json.dumps(hits)]
        shown += [self.run(words).stdout.decode() for words in ("status", "doctor")]
        for text in shown:
            for found in _ABSURD.findall(text):
                self.check(False, f"{where}: shows {found!r}")
        self.ordered(where)

    def ordered(self, where: str, **scope: Any) -> list[dict[str, Any]]:
        """The last 200 rows of the timeline; its order and every gap are computed again."""
        span = {"since": 0, "until": 4_000_000_000_000, **scope}
        rows = self.call("memd/timeline", project="all", **span)["rows"]
        times = [(row["summary"]["at"], row["summary"]["id"]) for row in rows]
        self.check(times == sorted(times), f"{where}: the timeline is not in order")
        for before, row in itertools.pairwise(rows):
            gap = row["summary"]["at"] - before["summary"]["at"]
            self.check(
                row["gap_ms"] == (gap if gap >= HOUR else None), f"{where}: gap {row['gap_ms']}"
            )
        return list(rows)


def leaps(daemon: ClockedDaemon, size: int, rng: random.Random, *, few: bool = False) -> str:
    """The clock is set, both ways and far, in the middle of turns."""
    clock, real = daemon.clock, daemon.clock.now()
    places = (
        [-HOUR, 12 * YEAR]
        if few
        else [0, HOUR, -HOUR, 3 * DAY, 12 * YEAR, -20 * YEAR, 5_000 - real]
    )
    places += [rng.randrange(-30 * YEAR, 30 * YEAR) for _ in range(size)] + [0]
    for number, shift in enumerate(places):
        events = [{**one, "at": None} for one in turn("leap", number, 0)]
        daemon.capture([{**one, "at": clock.now()} for one in events[:2]])
        clock.set_shift(shift)
        daemon.capture([{**one, "at": clock.now()} for one in events[2:]])
        daemon.call("memd/remember", text=f"Leap {number} is stored.", source="user")
        daemon.call("memd/consolidate")
        daemon.settled()
        daemon.sane(f"clock off by {shift / DAY:+.1f} d")
    found = daemon.call("memd/search", query="leap is stored", project="all", k=100)["hits"]
    daemon.check(found, "nothing is found after the leaps")
    return f"{len(places)} leaps, {daemon.given} events"


def stood_ahead(daemon: ClockedDaemon, size: int, _: random.Random) -> str:
    """A day in 2038, and back: what was said then does not lead any more, and newer values hold."""
    now = daemon.clock.now()
    daemon.clock.move(12 * YEAR)
    for number in range(size + 12):
        daemon.capture(turn(f"ahead{number}", 1, daemon.clock.now()))
    daemon.call("memd/remember", text="The build command is make old.", source="user",
               kind="instruction", topic_key="build.command", project="global")  # fmt: skip
    daemon.settled()
    daemon.stop()
    daemon.clock.set(now)
    daemon.start()
    daemon.capture(turn("present", 1, now))
    new = daemon.call("memd/remember", text="The build command is make new.", source="user",
                     kind="instruction", topic_key="build.command", project="global")  # fmt: skip
    daemon.check(new["outcome"] == "superseded", f"the present's value was {new['outcome']}")
    daemon.settled()
    with contextlib.closing(harness.Mcp(daemon.paths.socket)) as mcp:
        hits = mcp.tool("mem_search", query="latest worker queue decision", project="all")["hits"]
        latest = mcp.tool("mem_timeline", project="all")["rows"]
    first = hits[0] if hits else {}
    daemon.check("dated ahead" not in json.dumps(first), f"asked for the latest: {first}")
    daemon.check("dated ahead" not in json.dumps(latest), "the latest is what was dated ahead")
    asked = {"session_id": "next", "hook_event_name": "SessionStart", "source": "startup", "cwd": "/nowhere"}  # fmt: skip
    shown = daemon.call("memd/capture", client="claude-code", payload=asked, inject=True)
    daemon.given += 1
    text = json.dumps(shown, ensure_ascii=False)
    daemon.check("queuepresent1" in text, f"the last session is not the present's: {text[-300:]}")
    daemon.sane("back from 2038")
    return f"{size + 12} sessions of 2038, and one of now"


def retention(daemon: ClockedDaemon, _: int, __: random.Random) -> str:
    """Retention beside a clock that stood in 2038: nothing goes, and later it still works."""
    clock, now = daemon.clock, daemon.clock.now()
    old = turn("old", 1, now - 200 * DAY, calls=30, lines=500)
    daemon.capture(old)
    daemon.settled()
    first = compacted(daemon, dry_run=False)
    daemon.check(first > 0, "the first round found nothing to compact")
    daemon.capture(turn("young", 1, now - 10 * DAY, calls=30, lines=500))
    daemon.call("memd/remember", text="Renew the certificate.", kind="task", source="user",
               expires_in="20d", project="global")  # fmt: skip
    daemon.settled()
    for shift in (12 * YEAR, 0, 12 * YEAR + 2 * DAY, 0):
        daemon.stop()
        clock.set_shift(shift)
        daemon.start()
        daemon.call("memd/ping")
        daemon.settled()
        daemon.sane(f"retention, {shift // YEAR} years ahead")
    left = compacted(daemon)
    held = [row for row in memories(daemon) if "Renew the certificate" in row[2]]
    daemon.check(held, "the task is missing that expired in 2038")
    daemon.check(left == 0, f"in the present {left} are old")
    clock.move(95 * DAY)
    late = compacted(daemon)
    daemon.check(late > 0, "a clock that stood in 2038 has compacted what was young")
    return f"{first} compacted in time, {late} waited for theirs"


def compacted(daemon: ClockedDaemon, *, dry_run: bool = True) -> int:
    """How many events are compacted now, or would be."""
    return int(daemon.call("memd/vacuum", dry_run=dry_run)["report"]["retention"]["compacted"])


def asleep(daemon: ClockedDaemon, size: int, _: random.Random) -> str:
    """The daemon is stopped as a lid is closed; the wall's clock goes on for eight hours."""
    hooks = 6
    assert daemon.process is not None
    for number in range(3):
        daemon.capture(turn("lid", number, daemon.clock.now()))
    daemon.settled()
    daemon.process.send_signal(signal.SIGSTOP)
    time.sleep(1 + size / 10)
    daemon.clock.move(8 * HOUR)
    for event in [one for number in (3, 4) for one in turn("lid", number, 0)][:hooks]:
        name = event["payload"]["hook_event_name"]
        payload = json.dumps(event["payload"]).encode()
        began = time.perf_counter()
        done = daemon.run("hook", name, given=payload)
        took = time.perf_counter() - began
        daemon.check(done.returncode == 0, f"a hook ended with {done.returncode}")
        daemon.check(took < 3, f"a hook took {took:.1f} s beside a daemon that sleeps")
        daemon.given += 1
    before = daemon.cpu_s()
    daemon.process.send_signal(signal.SIGCONT)
    time.sleep(3)
    spent = daemon.cpu_s() - before
    daemon.check(spent <= CPU_S, f"{spent:.1f} s of work after waking (limit {CPU_S})")
    daemon.settled()
    daemon.sane("after sleep")
    daemon.settled()
    rows = daemon.ordered("after sleep")
    gaps = [row["gap_ms"] for row in rows if row["gap_ms"]]
    daemon.check(
        len(gaps) == 1 and abs(gaps[0] - 8 * HOUR) < HOUR / 10, f"gaps {gaps}, not one of 8 h"
    )
    return f"{spent:.2f} s of work after waking (limit {CPU_S}); {hooks} hooks, none lost"


def endless(daemon: ClockedDaemon, size: int, _: random.Random) -> str:
    """A turn that never stops, a session of thousands of turns without a stop, one of six weeks."""
    now = daemon.clock.now()
    began = time.perf_counter()
    for named in (True, False):
        endless = turn(f"huge{named:d}", 1, now - DAY, named=named, calls=size * 60, stop=False)
        daemon.capture(endless)
    for number in range(size * 40):
        daemon.capture(turn("nostop", number, now - 3 * DAY + 60_000 * number, stop=False))
    days = 42
    for day in range(days):
        for hour in (9, 13):
            daemon.capture(
                turn("weeks", 2 * day + hour // 13, now - (days - day) * DAY + hour * HOUR)
            )
    daemon.settled(300)
    took = time.perf_counter() - began
    daemon.sane("endless sessions")
    session = daemon.ordered("weeks", session="weeks")
    turns = [row for row in session if "worker weeks" in row["summary"]["title"]]
    daemon.check(len(turns) == 2 * days, f"{len(turns)} turns of {2 * days} are remembered")
    return f"{daemon.given} events distilled in {took:.0f} s"


def disorder(daemon: ClockedDaemon, size: int, rng: random.Random) -> str:
    """The same events in order and in none: the same memories."""
    now = daemon.clock.now()
    base = now - 40 * DAY
    events = [
        event
        for number in range(size)
        for event in turn(f"s{number % 3}", number, base + number * HOUR, calls=2)
    ]
    daemon.capture(events)
    daemon.settled()
    tidy = memories(daemon)
    with harness.daemon("", ClockedDaemon) as other:
        shuffled = list(events)
        rng.shuffle(shuffled)
        cut = len(shuffled) // 2
        other.capture(shuffled[:cut])
        other.settled()
        other.capture(turn("now", 1, now))
        # An import of the past in the middle of the present; and each hook ran twice.
        other.capture(shuffled[cut:], "import")
        again = other.call("memd/capture", events=shuffled[:500])["receipts"]
        twice = [one for one in again if one["outcome"] != "duplicate"]
        other.check(not twice, f"the second copy was not known: {twice[:1]}")
        other.settled()
        other.sane("out of order")
        mixed = [one for one in memories(other) if "now1" not in str(one)]
        daemon.wrong += other.wrong
    missing = [one for one in tidy if one not in mixed]
    more = [one for one in mixed if one not in tidy]
    daemon.check(not missing, f"out of order {len(missing)} memories are missing: {missing[:1]}")
    daemon.check(not more, f"out of order there are {len(more)} more: {more[:1]}")
    return f"{len(events)} events, {len(tidy)} memories both ways"


def memories(daemon: ClockedDaemon) -> list[tuple[Any, ...]]:
    """Every memory as what it says, and when."""
    with contextlib.closing(sqlite3.connect(daemon.paths.database)) as vault:
        return sorted(vault.execute("SELECT kind, title, body, at FROM summaries"))


def at_once(daemon: ClockedDaemon, size: int, rng: random.Random) -> str:
    """Everything in one and the same millisecond, the stop before its prompt among it."""
    now = daemon.clock.now() - DAY
    for session in range(4):
        events = [{**one, "at": now} for n in range(size) for one in turn(f"e{session}", n, now)]
        if session % 2:
            rng.shuffle(events)
        if session > 1:
            for one in events:
                one["payload"].pop("prompt_id")
        daemon.capture(events)
    daemon.settled()
    daemon.sane("equal times")
    return f"{daemon.given} events at one time"


def backwards(daemon: ClockedDaemon, size: int, _: random.Random) -> str:
    """A clock that runs backwards: each turn's stop is before its tools, and they are before its prompt."""
    base = daemon.clock.now() - DAY
    for number in range(size):
        events = turn("back", number, base + number * HOUR // 60, calls=2)
        times = [one["at"] for one in reversed(events)]
        daemon.capture([{**one, "at": at} for one, at in zip(events, times, strict=True)])
    daemon.settled()
    daemon.sane("backwards")
    whole = [one for one in memories(daemon) if "Asked:" in one[2] and "Answered:" in one[2]]
    daemon.check(len(whole) == size, f"{len(whole)} turns of {size} have question and answer")
    return f"{size} turns"


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
            spans = [terminal.read_days(1, None, day) for day in days]
            whole = terminal.read_days(len(days), None, days[-1])
            count += len(days)
            for (since, until), (then, _) in itertools.pairwise(spans):
                if until + 1 != then:
                    wrong.append(f"{name} {change}: {then - until - 1} ms between two days")
                if not 0 <= until + 1 - since <= 26 * HOUR:
                    wrong.append(f"{name} {change}: a day of {(until + 1 - since) / HOUR} h")
            if whole != (spans[0][0], spans[-1][1]):
                wrong.append(f"{name} {change}: six days are not the sum of six days")
    return count, wrong


def summer_time(daemon: ClockedDaemon, size: int, _: random.Random) -> str:
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
        daemon.check(shown == wanted, f"{shown} of {wanted} of that Sunday are shown: {text[:300]}")
        daemon.check(text.count("── Sunday") == 1 and "Saturday" not in text, text[:200])
    daemon.sane("summer time")
    return f"{count} days of {len(_ZONES)} zones"


TRIALS: dict[str, Callable[[ClockedDaemon, int, random.Random], str]] = {
    trial.__name__.replace("_", " "): trial
    for trial in (
        leaps, stood_ahead, retention, asleep, endless, disorder, at_once, backwards, summer_time,
    )
}  # fmt: skip


def trial(name: str, size: int, seed: int) -> tuple[list[str], str]:
    """(What was broken, what was seen) in one trial."""
    # A turn whose end was never seen counts as over after this: waiting ten minutes shows nothing more.
    soon = {"distill.idle_s": 3, "distill.interval_s": 1}
    with harness.daemon("", ClockedDaemon, soon | PATIENT) as daemon:
        seen = TRIALS[name](daemon, size, random.Random(seed))
        return list(dict.fromkeys(daemon.wrong)), seen


def _trials(options: argparse.Namespace) -> Iterator[tuple[str, Trial]]:
    for name in TRIALS:
        yield name, functools.partial(trial, name, options.size, options.seed)


def main() -> None:
    """Run the trials."""
    run_trials("clock", __doc__, _trials, size=60)

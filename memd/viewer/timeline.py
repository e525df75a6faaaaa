"""Timeline: a year, a month, a day or an hour, with a chart of what happened; what was superseded stays, struck through."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from memd.viewer.page import (
    Json,
    Page,
    Visit,
    local_time,
    make_page,
    plural,
    read_number,
    render,
    to_milliseconds,
)

_DAY_LENGTH = dt.timedelta(days=1)
_HOUR_MS = 3_600_000
_FORMS = ("%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%dT%H")
_TITLES = ("%Y", "%B %Y", "%A, %-d %B %Y", "%A, %-d %B %Y, %H:00")
_LABELS = ("%Y", "%B %Y", "%-d %b", "%H:00")
_YEAR, _MONTH, _DAY, _HOUR = range(4)
_SERIES = ("events", "memories", "superseded")
_PARTS_MAX = 62
"""Columns of a picture at most; what lasts longer is shown by months."""
_BASES = {"events": (60, 56, 0.12), "memories": (60, 56, 0.3), "superseded": (62, 26, 0.3)}
"""Series → where its bars stand, how high they may be, and their distance from the edges of a column."""


@dataclass(frozen=True, slots=True)
class Span:
    """A year, a month, a day or an hour, by local time."""

    start: dt.datetime
    level: int
    """0 is a year, 3 an hour."""

    @property
    def name(self) -> str:
        """Return the name in an address: 2026-11."""
        return self.start.strftime(_FORMS[self.level])

    @property
    def title(self) -> str:
        """Return the title for people: November 2026."""
        return self.start.strftime(_TITLES[self.level])

    @property
    def end(self) -> dt.datetime:
        """The first moment after it."""
        return self.step(1).start

    @property
    def since(self) -> int:
        """Return the first millisecond, UTC."""
        return to_milliseconds(self.start)

    @property
    def until(self) -> int:
        """Return the last millisecond, UTC."""
        return to_milliseconds(self.end) - 1

    def step(self, count: int) -> "Span":
        """The span of this length that is `count` spans later."""
        start = self.start
        if self.level == _YEAR:
            return Span(start.replace(year=min(max(start.year + count, 1971), 9998)), _YEAR)
        if self.level == _MONTH:
            months = min(max(start.year * 12 + start.month - 1 + count, 1971 * 12), 9998 * 12)
            return Span(start.replace(year=months // 12, month=months % 12 + 1), _MONTH)
        length = _DAY_LENGTH if self.level == _DAY else _DAY_LENGTH / 24
        return Span(start + count * length, self.level)

    def above(self) -> "Span | None":
        """The longer span that it is in."""
        if self.level == _YEAR:
            return None
        return read_span(self.start.strftime(_FORMS[self.level - 1]), 0)

    def parts(self) -> list["Span"]:
        """The shorter spans that it consists of; none of an hour."""
        if self.level == _HOUR:
            return []
        one = Span(self.start, self.level + 1)
        found = []
        while one.start < self.end:
            found.append(one)
            one = one.step(1)
        return found


def read_span(name: str, now: int) -> Span:
    """The span of an address; this month if it names none."""
    for level, form in enumerate(_FORMS):
        try:
            start = dt.datetime.strptime(name, form)  # noqa: DTZ007  # local time, as people read it
        except ValueError:
            continue
        if 1971 <= start.year <= 9998:  # noqa: PLR2004  # what both ends of a span can be told in
            return Span(start, level)
    today = local_time(now).replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
    return Span(today.replace(day=1), _MONTH)


# ── The chart ────────────────────────────────────────────────────────────────────────────────────


def count_parts(visit: Visit, parts: Sequence[Span]) -> list[Json]:
    """Count the activity in each of these spans, which follow each other."""
    since = parts[0].since
    # By the hour, so that days and months begin where they do here, whatever the clocks did meanwhile.
    steps = max(1, -(-(parts[-1].until + 1 - since) // _HOUR_MS))
    found = visit.call(
        "memd/activity", project=visit.project, since=since, step_ms=_HOUR_MS, steps=steps
    )
    counts = [dict.fromkeys(_SERIES, 0) for _ in parts]
    place = 0
    for step in range(steps):
        at = since + step * _HOUR_MS
        while place + 1 < len(parts) and parts[place + 1].since <= at:
            place += 1
        for name in _SERIES:
            counts[place][name] += found[name][step]
    return counts


def draw_chart(visit: Visit, parts: Sequence[Span]) -> Markup:
    """The chart of spans that follow each other: a column for each, which leads to its own page."""
    counts = count_parts(visit, parts)
    tops = {name: max(one[name] for one in counts) or 1 for name in _SERIES}
    width = 100 / len(parts)
    columns = [
        {
            "name": part.name,
            "x": step * width,
            "words": f"{part.start.strftime(_LABELS[part.level])}: {plural(count['events'], 'event')},"
            f" {plural(count['memories'], 'memory')}, {count['superseded']:,} replaced",
            "bars": [_measure_bar(series, count[series], tops, step, width) for series in _SERIES],
        }
        for step, (part, count) in enumerate(zip(parts, counts, strict=True))
    ]
    ends = [part.start.strftime(_LABELS[part.level]) for part in (parts[0], parts[-1])]
    what = f"What happened from {parts[0].title} to {parts[-1].title}"
    return render("chart.html", visit, columns=columns, width=width, ends=ends, what=what)


def _measure_bar(name: str, count: int, tops: Json, step: int, width: float) -> Json:
    base, height, margin = _BASES[name]
    size = height * count / tops[name if name == "events" else "memories"]
    size = min(max(size, 1.5 if count else 0), height)
    return {
        "name": name,
        "height": size,
        "y": base if name == "superseded" else base - size,
        "x": (step + margin) * width,
        "width": width * (1 - 2 * margin),
    }


def show_recent_activity(visit: Visit) -> Markup:
    """The chart of the last days or months up to a day in the address."""
    last = read_span(visit.params.get("to", ""), visit.now)
    count = min(read_number(visit.params.get("count", "")) or 1, _PARTS_MAX)
    return draw_chart(visit, [last.step(step) for step in range(1 - count, 1)])


def choose_recent(first_at: int | None, last_at: int | None, now: int) -> Json | None:
    """Choose what the chart of home shows: the last months that something happened in, or the last days."""
    if first_at is None or last_at is None:
        return None
    days = (local_time(last_at).date() - local_time(first_at).date()).days + 1
    is_short = days <= _PARTS_MAX
    last = read_span(local_time(last_at).strftime(_FORMS[_DAY if is_short else _MONTH]), now)
    count = max(days, 14) if is_short else min(days // 28 + 1, 24)
    return {"last": last.name, "count": count, "above": (last.above() or last).name}


# ── The page ─────────────────────────────────────────────────────────────────────────────────────


def show_timeline(visit: Visit) -> Page:
    """One span, this month if the address names none: its chart, and its memories, the last day first."""
    span = read_span(visit.params.get("at", ""), visit.now)
    client = visit.params.get("client") or None
    found = visit.call(
        "memd/timeline", project=visit.project, source=client, since=span.since, until=span.until
    )
    parts = span.parts()
    days = {
        day: list(rows)
        for day, rows in groupby(found["rows"], lambda row: local_time(row["summary"]["at"]).date())
    }
    today = local_time(visit.now).date()
    if days and span.since <= visit.now <= span.until:
        days.setdefault(today, [])
    last_at = None
    if not found["rows"]:
        last_at = visit.call("memd/overview", project=visit.project, limit=1)["last_at"]
    return make_page(
        span.title,
        span=span,
        above=span.above(),
        client=client,
        has_more=found["more_before"],
        chart=draw_chart(visit, parts) if parts else None,
        is_long=len(found["rows"]) > 10,  # noqa: PLR2004  # a screen
        days=[_tell_day(day, days[day], today) for day in sorted(days, reverse=True)],
        last_at=last_at,
        last_month=last_at and local_time(last_at).strftime(_FORMS[_MONTH]),
    )


def _tell_day(day: dt.date, rows: list[Json], today: dt.date) -> Json:
    """A day: its memories in the order of their events, and the time without one before it."""
    title = day.strftime("%A, %-d %B %Y")
    return {
        "name": day.strftime("%Y-%m-%d"),
        "title": f"Today, {title}" if day == today else title,
        "gap_ms": rows[0]["gap_ms"] if rows else None,
        "rows": [
            {**one, "gap_ms": one["gap_ms"] if place else None} for place, one in enumerate(rows)
        ],
    }

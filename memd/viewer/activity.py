"""Charts of activity: spans of time to zoom into, and the picture of one."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from memd.viewer.html import Markup, tag
from memd.viewer.parts import write_bars, write_section
from memd.viewer.visit import Json, Visit, read_number
from memd.viewer.wording import local_time, to_milliseconds

DAY = dt.timedelta(days=1)
_HOUR_MS = 3_600_000
_FORMS = ("%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%dT%H")
_TITLES = ("%Y", "%B %Y", "%A, %-d %B %Y", "%A, %-d %B %Y, %H:00")
_YEAR, _MONTH, _DAY, _HOUR = range(4)
_SERIES = ("events", "memories", "superseded")
_PARTS_MAX = 62
"""Columns of a picture at most; what lasts longer is shown by months."""


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
        return Span(start + count * (DAY if self.level == _DAY else DAY / 24), self.level)

    def above(self) -> "Span | None":
        """The longer span that it is in."""
        return (
            None
            if self.level == _YEAR
            else read_span(self.start.strftime(_FORMS[self.level - 1]), 0)
        )

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


def write_spans(visit: Visit, parts: Sequence[Span]) -> Markup:
    """The picture of spans that follow each other, each leading to its own page."""
    form = ("%Y", "%B %Y", "%-d %b", "%H:00")[parts[0].level]
    labels = [part.start.strftime(form) for part in parts]
    links = [
        visit.link("/timeline", client=visit.params.get("client"), at=part.name) for part in parts
    ]
    what = f"What happened from {parts[0].title} to {parts[-1].title}"
    return tag("figure", write_bars(count_parts(visit, parts), labels, links, what))


def show_recent_activity(visit: Visit) -> Markup:
    """The picture of the last days or months up to a day in the address."""
    last = read_span(visit.params.get("to", ""), visit.now)
    count = min(read_number(visit.params.get("count", "")) or 1, _PARTS_MAX)
    return write_spans(visit, [last.step(step) for step in range(1 - count, 1)])


def write_activity(visit: Visit, first_at: int | None, last_at: int | None) -> Markup:
    """The memory over time: the last months that something happened in, or the last days."""
    if first_at is None or last_at is None:
        return Markup()
    days = (local_time(last_at).date() - local_time(first_at).date()).days + 1
    level, shown = (
        (_DAY, max(days, 14)) if days <= _PARTS_MAX else (_MONTH, min(days // 28 + 1, 24))
    )
    last = read_span(local_time(last_at).strftime(_FORMS[level]), visit.now)
    place = visit.link("/part/activity", to=last.name, count=shown)
    waiting = tag("div", tag("p", "Counting…", class_="quiet"), data_load=place, class_="chart")
    above = last.above() or last
    more = tag(
        "a", "timeline", href=visit.link("/timeline", at=above.name), aria_label="To the timeline"
    )
    return write_section("Over time", waiting, more=more, class_="activity")

"""Times, sizes, counts and names in words for people, and the words of a query in a text. Pure but for the time zone.

Times are UTC milliseconds, shown in the zone of the machine that memd runs on.
"""

import datetime as dt
import re
from collections.abc import Collection

from memd.text import WORD, content_stems, one_line, terms
from memd.viewer.html import Child, Markup, tag

_TIME_MAX_MS = 253_402_214_400_000
"""The last day of the year 9999 in any zone."""
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_AGES = (
    (365 * _DAY, "year"),
    (30 * _DAY, "month"),
    (7 * _DAY, "week"),
    (_DAY, "day"),
    (_HOUR, "hour"),
    (_MINUTE, "minute"),
)
_LABEL = re.compile(r"^[A-Z][a-z]+(?: [a-z]+){0,2}(?=: )", re.MULTILINE)
"""What stands before a part of a memory's text, such as `Assistant then:`."""


def local_time(at: int) -> dt.datetime:
    """A time in the zone of this machine."""
    return dt.datetime.fromtimestamp(min(max(at, 0), _TIME_MAX_MS) / 1000, tz=dt.UTC).astimezone()


def to_milliseconds(moment: dt.datetime) -> int:
    """A time without a zone, taken as of this machine's, in UTC milliseconds."""
    return max(0, int(moment.timestamp() * 1000))


def format_day(at: int) -> str:
    """A date: 20 Nov 2026."""
    return local_time(at).strftime("%-d %b %Y")


def format_minute(at: int) -> str:
    """A date and time: 20 Nov 2026, 14:05."""
    return local_time(at).strftime("%-d %b %Y, %H:%M")


def format_age(at: int, now: int) -> str:
    """Format an age: 3 days ago."""
    past = now - at
    for size, name in _AGES:
        if past >= size:
            return f"{plural(past // size, name)} ago"
    return "in the future" if past < -_MINUTE else "just now"


def format_gap(milliseconds: int) -> str:
    """A duration by its largest unit: 3 hours."""
    size, name = next(((s, n) for s, n in _AGES if milliseconds >= s), (_SECOND, "second"))
    return plural(milliseconds // size, name)


def format_size(count: float) -> str:
    """A number of bytes: 12.3 MB."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1024:  # noqa: PLR2004  # a kB has as many bytes
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} GB"


def plural(count: int, noun: str) -> str:
    """A count with its noun: 1 memory, 1,200 memories."""
    if count == 1:
        return f"1 {noun}"
    is_ies = noun.endswith("y") and noun[-2] not in "aeiou"
    return f"{count:,} {noun[:-1] + 'ies' if is_ies else noun + 's'}"


def write_time(at: int, now: int, *, with_minute: bool = False) -> Markup:
    """The element of a time: the date, with the age as a tooltip."""
    text = format_minute(at) if with_minute else format_day(at)
    iso = local_time(at).isoformat(timespec="seconds")
    return tag("time", text, datetime=iso, title=f"{format_minute(at)} · {format_age(at, now)}")


def shorten(text: str, limit: int) -> str:
    """A text on one line of at most this many characters; what is longer is cut before it is read."""
    return one_line(text[: limit * 4], limit)


def write_words(message: str) -> Child:
    """A message of memd itself, in which `commands` are shown as code."""
    return [
        tag("code", words) if place % 2 else words for place, words in enumerate(message.split("`"))
    ]


# ── Words of a query ─────────────────────────────────────────────────────────────────────────────


def query_terms(query: str) -> frozenset[str]:
    """The stems by which the words of a query are recognised in a text."""
    return frozenset(content_stems(query))


def highlight(text: str, wanted: Collection[str]) -> Child:
    """The text with the words of a query marked."""
    if not wanted:
        return text
    pieces: list[Child] = []
    last = 0
    for found in WORD.finditer(text):
        if wanted.isdisjoint(terms(found[0])):  # type: ignore[attr-defined]  # a frozenset
            continue
        pieces += [text[last : found.start()], tag("mark", found[0])]
        last = found.end()
    return [*pieces, text[last:]]


def write_body(text: str, wanted: Collection[str] = ()) -> Child:
    """A memory's text as it is, in which the names of its parts stand out."""
    pieces: list[Child] = []
    last = 0
    for found in _LABEL.finditer(text):
        pieces += [
            highlight(text[last : found.start()], wanted),
            tag("b", found[0], class_="label"),
        ]
        last = found.end()
    return [*pieces, highlight(text[last:], wanted)]

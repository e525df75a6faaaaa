"""The time that a question is about: `yesterday`, `in February`, `since Monday`, `two sessions ago`. Pure.

Precision first: a time counts only where the grammar says that it is one, so that a date in a quote, a path, a version
or an error message, `the 3rd attempt`, `may` and `the last week view` filter nothing. At most one time is read from a
question, and none from a long text. Days are UTC days and weeks begin on Monday, as in `--since`; a date without its
year is the latest that has begun.
"""
# ruff: noqa: ARG001  # what reads an expression has the signature of the table

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta

from memd.patterns import compile_lazily
from memd.text import is_stop_word, words
from memd.time_expressions import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    TIME_MAX_MS,
    Span,
    format_time,
    month_span,
    months_before,
    parse_moment,
    span_of_days,
    unit_before,
    utc_day,
    utc_day_start_ms,
    week_span,
    year_span,
)

_LAST_MS = TIME_MAX_MS - 400 * DAY_MS
"""A later moment counts as this one: behind it stand a year and a month that a calendar still has."""
TEXT_CHARACTERS_MAX = 400
"""A longer text is a paste, not a question."""


@dataclass(frozen=True, slots=True)
class QuestionTime:
    """The time that a question names. Without `sessions`, at least one bound is given: UTC ms, both included."""

    text: str
    """The question without the words of its time."""
    since: int | None = None
    until: int | None = None
    sessions: tuple[int, int] | None = None
    """From the how-manieth session before the present one, to which; 1 is the last."""

    @property
    def label(self) -> str:
        """The time in few words: `2026-01-10`, `2026-02`, `since 2026-01-10`."""
        return label_span(self.since, self.until)


def find_time(text: str, now: int) -> QuestionTime | None:
    """The time in the words of a question that is asked at `now` (UTC ms); None if it names none."""
    if len(text) > TEXT_CHARACTERS_MAX or not _TIME_WORD.search(text):
        return None
    masked = _mask_quotations(text)
    for pattern, read in _EXPRESSIONS:
        for found in pattern.finditer(masked):
            if _is_mention(masked, found):
                continue
            try:
                time = read(found, now)
            except (ValueError, OverflowError):
                time = None  # the 30th of February
            if time is not None and (time.since or 0) <= now:
                return replace(time, text=_cut_out(text, found.start(), found.end()))
    return None


def _cut_out(text: str, start: int, stop: int) -> str:
    rest = f"{text[:start].rstrip()} {text[stop:].lstrip()}"
    return re.sub(r"\s+(?=[?.!,;:])", "", rest).strip()


def asks_what_happened(text: str) -> bool:
    """Return whether nothing but its time is asked about in a question: `what did we do`, `what was decided`."""
    return all(is_stop_word(word) or word.lower() in _FRAME_WORDS for word in words(text))


def asks_for_decisions(text: str) -> bool:
    """Return whether such a question is about what was decided."""
    return any(word.lower() in _DECISION_WORDS for word in words(text))


def label_span(since: int | None, until: int | None) -> str:
    """A span (UTC ms, both included) in few words."""
    if until is None:
        return f"since {_label_time(since or 0)}"
    if since is None:
        return f"before {_label_time(until + 1)}"
    if until - since < HOUR_MS:
        return format_time(since)
    if since % DAY_MS or (until + 1) % DAY_MS:
        return f"{format_time(since)} to {format_time(until)}"
    return _label_days(since, until)


def _label_days(since: int, until: int) -> str:
    first, last = _day_of(since), _day_of(until)
    if first == last:
        return first.isoformat()
    if (since, until + 1) == month_span(first):
        return first.isoformat()[:7]
    if (since, until + 1) == year_span(first.year):
        return str(first.year)
    return f"{first} to {last}"


def _label_time(at: int) -> str:
    return format_time(at) if at % DAY_MS else _day_of(at).isoformat()


# ── What is no time of an event ──────────────────────────────────────────────────────────────────

_QUOTATION = compile_lazily(
    r"```.*?```|`[^`]*`|\"[^\"]*\"|“[^”]*”|«[^»]*»|(?<!\w)'[^']*'(?!\w)|‘[^’]*’"
    r"|\w+://\S+|\b(?i:error|exception|fatal|panic|warning|traceback)\w*: .*|\w*(?:Error|Exception): .*",
    re.DOTALL,
)
"""Quotes, code, addresses, and what follows the colon of an error."""
_NAMING = (
    r"pars(?:e[sd]?|ing)|understand\w*|accept\w*|reject\w*|means?|say|says|saying|words?|strings?|values?|call(?:ed|s)?"
    r"|nam(?:ed|es?)|like|as|than"
)
_BEARING = (
    r"expir\w+|due|valid|schedul\w+|deadline|formats?|render\w*|shows?|display\w*|prints?|labell?ed|inputs?|supports?"
    r"|options?|flags?|defaults? to"
)
_MENTION = compile_lazily(rf"(?:\b(?:{_NAMING}|{_BEARING})|--?[\w-]+|=)\s*\Z", re.IGNORECASE)
"""What stands before a time that a question only mentions, or that belongs to a thing."""


def _mask_quotations(text: str) -> str:
    """The text, of the same length, with NUL in the place of what is quoted."""
    return _QUOTATION.sub(lambda found: "\0" * len(found[0]), text)


def _is_mention(text: str, found: re.Match[str]) -> bool:
    return bool(_MENTION.search(text[max(0, found.start() - 40) : found.start()]))


_DECISION_WORDS = frozenset("decide decided decision decisions agree agreed".split())  # noqa: SIM905
_FRAME_WORDS = _DECISION_WORDS | frozenset(
    """happen happened happening happens work worked working done achieve achieved accomplish accomplished finish
    finished complete completed thing things stuff summary summarise summarize recap list show tell give give get got
    going went go on changed change changes made make progress anything everything something else session sessions
    project here today's exactly overall main mainly episodes episode news new us me up we've i've what's""".split()  # noqa: SIM905
)


# ── The grammar ──────────────────────────────────────────────────────────────────────────────────

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNTS = {
    "a": (1, 1), "an": (1, 1), "one": (1, 1), "two": (2, 2), "three": (3, 3), "four": (4, 4), "five": (5, 5),
    "six": (6, 6), "seven": (7, 7), "eight": (8, 8), "nine": (9, 9), "ten": (10, 10),
    "a couple of": (2, 2), "couple of": (2, 2), "a few": (2, 5), "few": (2, 5), "several": (2, 7),
}  # fmt: skip
"""Word → the least and the most that it may mean."""
_MONTH = rf"(?:{'|'.join(_MONTHS)}|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
_WEEKDAY = rf"(?:{'|'.join(_WEEKDAYS)})"
_YEAR = r"20[0-4]\d"
_NTH = r"\d{1,2}(?:st|nd|rd|th)?"
_ISO = r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)?)?"
_DAY_MONTH = rf"(?:the\s+)?{_NTH}(?:\s+of)?\s+{_MONTH}(?:,?\s+{_YEAR})?"
_MONTH_DAY = rf"{_MONTH}\s+(?:the\s+)?{_NTH}(?:,?\s+{_YEAR})?"
_ANY_DATE = rf"(?:{_WEEKDAY},?\s+)?(?:{_DAY_MONTH}|{_MONTH_DAY}|{_ISO})"
_MONTH_OF = rf"(?:{_MONTH}(?:\s+{_YEAR})?|\d{{4}}-\d\d)"
_COUNT = rf"(?:{'|'.join(sorted(_COUNTS, key=len, reverse=True))}|\d{{1,3}})"
_UNIT = r"(?:minute|hour|day|week|month|year)"
_TIME_WORD = compile_lazily(
    r"(?i)\b(?:yesterday|today|tonight|ago|hours?|days?|night|morning|afternoon|evening|weeks?|weekend|months?|years?"
    rf"|sessions?|{'|'.join(_WEEKDAYS)}|{_MONTH}|{_YEAR}|\d{{1,2}}(?:st|nd|rd|th))\b"
)
"""Every expression has one of these; most questions have none, and are read no further."""
_AGO = rf"{_COUNT}\s+{_UNIT}s?\s+ago"
_OF_DAY = r"(?:\s+(?:morning|noon|afternoon|evening|night))?"
_RELATIVE = (
    rf"(?:the\s+)?day\s+before\s+yesterday|yesterday{_OF_DAY}|last\s+night|tonight"
    rf"|(?:this|last)\s+(?:week(?:end)?|month|year|morning|afternoon|evening)|the\s+(?:week|month|year)\s+before\s+last"
    rf"|(?:last|this)\s+{_WEEKDAY}{_OF_DAY}|(?:last|this)\s+{_MONTH}|{_AGO}"
)
_NTH_ALONE = r"the\s+\d{1,2}(?:st|nd|rd|th)(?=\s*(?:[?.!,;]|\Z|(?:in|about|with|for|to|at|by|until|till|through|regarding|we|i)\b))"
_FRIDAY_13TH = rf"{_WEEKDAY},?\s+(?:the\s+)?\d{{1,2}}(?:st|nd|rd|th)"
_POINT = (
    rf"(?:{_ANY_DATE}|{_FRIDAY_13TH}|{_RELATIVE}|today|{_MONTH_OF}|{_WEEKDAY}{_OF_DAY}|{_NTH_ALONE}"
    rf"|{_YEAR}(?!\s+[^\W\d]))"
)
"""Any time that a preposition may stand before."""
_LEFT = r"(?<![\w/\\.@#$:=<>*+~\0-])"
_RIGHT = r"(?:['’]s)?(?![\w/\\@=(*~'’-]|[.:]\w)"
_FUNCTION_WORD_NEXT = r"(?=\s*(?:[?.!,;:)]|\Z|(?:and|or|in|about|with|for|to|at|by|on|of|regarding|we|i|you|did|was|were|the|that|how)\b))"


def _day_of(at: int) -> date:
    return utc_day(min(max(at, 0), _LAST_MS))


def _month_number(text: str) -> int:
    return next(i for i, name in enumerate(_MONTHS, 1) if name.startswith(text.rstrip(".")[:3]))


def _read_point(text: str, now: int) -> Span | None:
    """The span [start, stop) of one time; None if the words mean no time here."""
    text = re.sub(r"\s+", " ", text.strip())
    if _is_other_word(text):
        return None
    text = text.lower()
    for pattern, read in _POINTS:
        if found := pattern.fullmatch(text):
            return read(found, now)
    return None


def _is_other_word(text: str) -> bool:
    """Return whether a small `may`, `march`, `mar` or `dec` is no month: no year follows it, nor does it stand alone."""
    has_doubtful = re.search(r"\b(?:may|march|mar|dec)\b", text)
    return bool(has_doubtful) and text != "march" and not re.search(_YEAR, text)


def _read_iso(found: re.Match[str], now: int) -> Span | None:
    if "t" not in found[0]:
        return span_of_days(date.fromisoformat(found[0]), date.fromisoformat(found[0]))
    at = parse_moment(found[0].upper())
    return at, at + MINUTE_MS


def _read_date(found: re.Match[str], now: int) -> Span | None:
    """A day of a month; of a year that is not named, the latest that has come, with its weekday if one is named."""
    part = found.groupdict()
    day = int(re.sub(r"\D", "", part["day"]))
    month = _month_number(part["month"])
    if part["year"]:
        return span_of_days(*[date(int(part["year"]), month, day)] * 2)
    days = list(_past_days(day, month, now))
    wanted = part.get("weekday")
    fitting = [one for one in days if wanted == _WEEKDAYS[one.weekday()]] or days
    return span_of_days(fitting[0], fitting[0]) if fitting else None


def _past_days(day: int, month: int, now: int) -> list[date]:
    """The same day of the years up to now, the latest first, of eight years: the 29th of February has its turn."""
    today = _day_of(now)
    found = []
    for year in range(today.year, today.year - 8, -1):
        try:
            found.append(date(year, month, day))
        except ValueError:
            continue
    if not found:
        raise ValueError("there is no such day")
    return [one for one in found if one <= today]


def _read_nth(found: re.Match[str], now: int) -> Span | None:
    """The latest day of this number, with its weekday if one is named."""
    part, today = found.groupdict(), _day_of(now)
    for back in range(24):
        first = months_before(today, back)
        try:
            day = first.replace(day=int(re.sub(r"\D", "", part["day"])))
        except ValueError:
            continue
        if day <= today and part.get("weekday") in {None, _WEEKDAYS[day.weekday()]}:
            return span_of_days(day, day)
    return None


def _read_month(found: re.Match[str], now: int) -> Span | None:
    part, today = found.groupdict(), _day_of(now)
    month = _month_number(part["month"])
    if part["year"]:
        return month_span(date(int(part["year"]), month, 1))
    return month_span(date(today.year - (month > today.month), month, 1))


def _read_iso_month(found: re.Match[str], now: int) -> Span | None:
    return month_span(date(int(found["year"]), int(found["number"]), 1))


def _read_named_month(found: re.Match[str], now: int) -> Span | None:
    """Read `last February`, which is over, or `this February`, of this year."""
    today, month = _day_of(now), _month_number(found["month"])
    is_before = found["which"] == "last" and month >= today.month
    return month_span(date(today.year - is_before, month, 1))


def _read_weekday(found: re.Match[str], now: int) -> Span | None:
    """Read a weekday as the latest before today; `this Monday` may be today."""
    today = _day_of(now)
    back = (today.weekday() - _WEEKDAYS.index(found["weekday"])) % 7
    if found["which"] != "this":
        back = back or 7
    day = today - timedelta(days=back)
    return _part_of_day(day, found["part"])


def _part_of_day(day: date, part: str | None) -> Span:
    """A day; an evening or a night is from noon to noon, because UTC is not where the user is."""
    start, stop = span_of_days(day, day)
    if part in {"evening", "night"}:
        return start + DAY_MS // 2, stop + DAY_MS // 2
    return start, stop


def _read_yesterday(found: re.Match[str], now: int) -> Span | None:
    return _part_of_day(_day_of(now) - timedelta(days=1), found["part"])


def _read_day_name(found: re.Match[str], now: int) -> Span | None:
    """Read a day that is named by its distance from today."""
    today = _day_of(now)
    name = found[0]
    if name.endswith("yesterday"):
        return span_of_days(*[today - timedelta(days=2)] * 2)
    if name == "last night":
        return _part_of_day(today - timedelta(days=1), "night")
    if name == "last evening":
        return _part_of_day(today - timedelta(days=1), "evening")
    return None if name.startswith("last") else span_of_days(today, today)


def _read_calendar_unit(found: re.Match[str], now: int) -> Span | None:
    """Read units of the calendar, such as `this week`, `last month`, `the year before last`."""
    text, today = found[0], _day_of(now)
    back = 2 if text.endswith("before last") else int(text.startswith("last"))
    return unit_before(found["unit"], back, today)


def _read_weekend(found: re.Match[str], now: int) -> Span | None:
    today = _day_of(now)
    monday = today - timedelta(days=today.weekday() + 7 * (found["which"] == "last"))
    return span_of_days(monday + timedelta(days=5), monday + timedelta(days=6))


def _read_ago(found: re.Match[str], now: int) -> Span | None:
    """Read `three months ago`, as exact as its unit: the day, the calendar month or year; weeks by three days more and less."""
    least, most = _read_count(found["count"])
    unit, today = found["unit"], _day_of(now)
    if unit in {"minute", "hour"}:
        length = MINUTE_MS if unit == "minute" else HOUR_MS
        return now - (most + 1) * length, now - (least - 1) * length
    if unit == "day":
        return span_of_days(today - timedelta(days=most), today - timedelta(days=least))
    if unit == "week":
        around = timedelta(days=3)
        return span_of_days(
            today - timedelta(weeks=most) - around, today - timedelta(weeks=least) + around
        )
    return unit_before(unit, most, today)[0], unit_before(unit, least, today)[1]


def _read_count(text: str) -> tuple[int, int]:
    return (int(text), int(text)) if text.isdecimal() else _COUNTS[text]


def _read_year(found: re.Match[str], now: int) -> Span | None:
    return year_span(int(found[0]))


_Reader = Callable[[re.Match[str], int], Span | None]
_WEEKDAY_FIRST = rf"(?:(?P<weekday>{_WEEKDAY}),? )?"
_POINTS: tuple[tuple[re.Pattern[str], _Reader], ...] = tuple(
    (compile_lazily(pattern), read)
    for pattern, read in (
        (_ISO.lower(), _read_iso),
        (rf"{_WEEKDAY_FIRST}(?:the )?(?P<day>{_NTH})(?: of)? (?P<month>{_MONTH})(?:,? (?P<year>{_YEAR}))?", _read_date),
        (rf"{_WEEKDAY_FIRST}(?P<month>{_MONTH}) (?:the )?(?P<day>{_NTH})(?:,? (?P<year>{_YEAR}))?", _read_date),
        (rf"(?:(?P<weekday>{_WEEKDAY}),? )?(?:the )?(?P<day>\d{{1,2}}(?:st|nd|rd|th))", _read_nth),
        (rf"(?P<month>{_MONTH})(?: (?P<year>{_YEAR}))?", _read_month),
        (r"(?P<year>\d{4})-(?P<number>\d\d)", _read_iso_month),
        (rf"(?P<which>last|this) (?P<month>{_MONTH})", _read_named_month),
        (rf"(?:(?P<which>last|this) )?(?P<weekday>{_WEEKDAY})(?: (?P<part>\w+))?", _read_weekday),
        (r"yesterday(?: (?P<part>\w+))?", _read_yesterday),
        (r"(?:the )?day before yesterday|(?:last|this) (?:morning|afternoon|evening|night)|tonight|today", _read_day_name),
        (r"(?:this |last |the )(?P<unit>week|month|year)(?: before last)?", _read_calendar_unit),
        (r"(?P<which>this|last) weekend", _read_weekend),
        (rf"(?P<count>{_COUNT}) (?P<unit>{_UNIT})s? ago", _read_ago),
        (_YEAR, _read_year),
    )
)  # fmt: skip
"""The forms of one time, in small letters, and what reads each."""


# ── Expressions: a time with the words before it ─────────────────────────────────────────────────

_NTH_OR_POINT = rf"(?:{_POINT}|(?:the\s+)?{_NTH}(?:,?\s+{_YEAR})?)"
_NTH_ONLY = re.compile(rf"(?:the )?(\d{{1,2}})(?:st|nd|rd|th)?(,? {_YEAR})?", re.IGNORECASE)
_PAST = re.compile(
    r"\b(?:did|have|has|had|were|was)\b|\b(?:happened|changed)\b|\bwhat(?:'s| is) new\b",
    re.IGNORECASE,
)
_OF_US = re.compile(
    r"\b(?:did|have|had|were|was)\s+(?:we|i|you)\b|\b(?:we|i|you)\s+(?:did|had|were|was|have|\w+ed)\b"
    r"|\bwhat\s+(?:was\s+\w+(?:ed|ne)|happened)\b",
    re.IGNORECASE,
)
"""What a question about the users' own sessions has, and one about sessions in a program mostly has not."""


def _make_span_time(span: Span | None) -> QuestionTime | None:
    return None if span is None else QuestionTime("", max(0, span[0]), span[1] - 1)


def _read_within(found: re.Match[str], now: int) -> QuestionTime | None:
    return _make_span_time(_read_point(found["point"], now))


def _read_range(found: re.Match[str], now: int) -> QuestionTime | None:
    lead = re.sub(r"\s+", " ", (found["lead"] or "").lower())
    first, last = (re.sub(r"\s+", " ", found[name].strip()) for name in ("first", "last"))
    if (found["joint"].lower() == "and") != (lead == "between"):
        return None
    is_dated = re.search(rf"{_MONTH}|-", f"{first} {last}", re.IGNORECASE)
    if lead not in {"from", "between"} and not is_dated:
        return None
    span = _read_ends(first, last, now)
    return _make_span_time(span) if span and span[0] < span[1] else None


def _read_ends(first: str, last: str, now: int) -> Span | None:
    """Read a span from the first day of one time to the last of another; either lends the other its month and year."""
    if short := _NTH_ONLY.fullmatch(last):
        month = re.match(_MONTH, first, re.IGNORECASE)
        if month is None:
            return None
        last = f"{month[0]} {short[1]}{short[2] or ''}"
    end = _read_point(last, now)
    if end is None:
        return None
    if short := _NTH_ONLY.fullmatch(first):
        until = _day_of(end[0])
        number = int(short[1])
        month_of = until if number <= until.day else months_before(until, 1)
        return utc_day_start_ms(month_of.replace(day=number)), end[1]
    is_relative = re.fullmatch(rf"{_RELATIVE}|today", first, re.IGNORECASE)
    begin = _read_point(first, now if is_relative else end[1] - 1)
    return None if begin is None else (begin[0], end[1])


def _read_week_of(found: re.Match[str], now: int) -> QuestionTime | None:
    span = _read_point(found["point"], now)
    return None if span is None else _make_span_time(week_span(_day_of(span[0])))


def _read_bound(found: re.Match[str], now: int) -> QuestionTime | None:
    span, word = _read_point(found["point"], now), found["bound"].lower()
    if span is None:
        return None
    if word in {"since", "after"}:
        return QuestionTime("", since=span[0] if word == "since" else span[1])
    until = span[0] - 1 if word.startswith(("before", "prior")) else span[1] - 1
    return QuestionTime("", until=until) if 0 <= until < now else None


def _read_past_units(found: re.Match[str], now: int) -> QuestionTime | None:
    """Read `in the last two weeks`: from the day that began them; `in the previous week` is the one before this."""
    unit, today = found["unit"].lower(), _day_of(now)
    if found["count"] is None:
        if found["which"].lower() == "previous" and unit in {"week", "month", "year"}:
            return _make_span_time(unit_before(unit, 1, today))
        if found["article"] is None:
            return None
    count = _read_count(re.sub(r"\s+", " ", (found["count"] or "one").lower()))[1]
    if unit == "hour":
        return QuestionTime("", since=now - count * HOUR_MS)
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[unit]
    return QuestionTime("", since=utc_day_start_ms(today - timedelta(days=count * days)))


def _read_relative(found: re.Match[str], now: int) -> QuestionTime | None:
    """Read a relative day; None for a `today` that means nowadays, in a question that is not about the past."""
    if found["point"].lower() == "today" and not _PAST.search(found.string):
        return None
    return _read_within(found, now)


def _read_bare_day(found: re.Match[str], now: int) -> QuestionTime | None:
    """Read an ISO date without a preposition, in a question that has no other content."""
    rest = found.string[: found.start()] + found.string[found.end() :]
    return _read_within(found, now) if asks_what_happened(rest) else None


def _read_keyword_month(found: re.Match[str], now: int) -> QuestionTime | None:
    """Read a month without a preposition among keywords alone: `meeting notes February`."""
    rest = words(found.string[: found.start()] + found.string[found.end() :])
    is_keywords = bool(rest) and not any(is_stop_word(word) for word in rest)
    return _read_within(found, now) if is_keywords else None


def _read_sessions(found: re.Match[str], now: int) -> QuestionTime | None:
    part = found.groupdict()
    if part.get("ago"):
        return QuestionTime("", sessions=_read_count(re.sub(r"\s+", " ", part["ago"].lower())))
    if not _OF_US.search(found.string):
        return None
    if part.get("many"):
        return QuestionTime("", sessions=(1, _read_count(part["many"].lower())[1]))
    number = 2 if found[0].lower().endswith("before last") else 1
    return QuestionTime("", sessions=(number, number))


_TimeReader = Callable[[re.Match[str], int], QuestionTime | None]
_NOT_A_THING = r"(?<!\bthe\s)(?<!\ba\s)(?<!\ban\s)"
_EXPRESSIONS: tuple[tuple[re.Pattern[str], _TimeReader], ...] = tuple(
    (compile_lazily(rf"{_LEFT}(?:{pattern}){_RIGHT}", re.IGNORECASE), read)
    for pattern, read in (
        (
            (r"(?:(?P<lead>from|between|(?:(?:in|during|of)\s+)?the\s+week\s+(?:of|from)|in|on|during|of)\s+)?"
            rf"(?P<first>{_NTH_OR_POINT})\s*(?P<joint>\b(?:to|until|till|through|and)\b|[–—]|(?<=\d)-(?=\d)|\s-\s)"
            rf"\s*(?P<last>{_NTH_OR_POINT})"),
            _read_range,
        ),
        (rf"(?:(?:in|during|of|for)\s+)?the\s+week\s+(?:of|from)\s+(?P<point>{_POINT})", _read_week_of),
        (rf"(?P<ago>{_COUNT})\s+sessions?\s+ago", _read_sessions),
        (
            (r"(?:in|over|during|from|for)\s+(?:the|our|my)\s+(?:last|past|previous)"
            rf"\s+(?P<many>{_COUNT})\s+sessions{_FUNCTION_WORD_NEXT}"),
            _read_sessions,
        ),
        (
            (r"(?:in|during|at|from)\s+(?:(?:the|our|my|your)\s+)?(?:(?:last|previous|most\s+recent)\s+session"
            rf"|session\s+before\s+last){_FUNCTION_WORD_NEXT}"),
            _read_sessions,
        ),
        (rf"{_NOT_A_THING}last\s+session(?=\s*(?:[?.!,;]|\Z))", _read_sessions),
        (
            rf"(?<!\bday\s)(?P<bound>since|after|before|until|till|up\s+to|prior\s+to|as\s+of)\s+(?P<point>{_POINT})",
            _read_bound,
        ),
        (
            (r"(?:in|over|during|within|for|from)\s+(?P<article>(?:the|these)\s+)?(?P<which>last|past|previous)\s+"
            rf"(?:(?P<count>{_COUNT})\s+)?(?P<unit>hour|day|week|month|year)s?"),
            _read_past_units,
        ),
        (rf"(?:on|from|of|at)\s+(?P<point>{_ANY_DATE}|{_FRIDAY_13TH})", _read_within),
        (rf"on\s+(?P<point>{_WEEKDAY}{_OF_DAY}|{_NTH_ALONE})", _read_within),
        (
            (r"(?:in|during|throughout|of|from|over|at)\s+(?:(?:early|late|mid)[\s-]+"
            rf"|the\s+(?:beginning|start|middle|end)\s+of\s+)?(?P<point>{_MONTH_OF})"),
            _read_within,
        ),
        (rf"(?:in|during)\s+(?P<point>20[12]\d){_FUNCTION_WORD_NEXT}", _read_within),
        (
            rf"{_NOT_A_THING}(?:(?:on|in|from|of|during|over|for|at|earlier)\s+)?(?P<point>{_RELATIVE}|today)",
            _read_relative,
        ),
        (
            (rf"(?P<point>{_WEEKDAY},?\s+(?:{_DAY_MONTH}|{_MONTH_DAY})"
            rf"|(?:the\s+)?{_NTH}(?:\s+of)?\s+{_MONTH},?\s+{_YEAR}|{_MONTH}\s+(?:the\s+)?{_NTH},?\s+{_YEAR})"),
            _read_within,
        ),
        (rf"(?P<point>{_ISO})", _read_bare_day),
        (rf"(?P<point>\b(?:{'|'.join(_MONTHS)})(?:\s+{_YEAR})?)", _read_keyword_month),
    )
)  # fmt: skip
"""The most particular first."""

"""Search, as one types, with the parts of each score; and the timeline: a year, a month, a day or an hour, with its chart.

What is no hit is told with the reason; what was superseded stays, struck through.
"""

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from memd.errors import BadRequest
from memd.viewer.page import (
    KINDS,
    SPEAKERS,
    Json,
    Page,
    Visit,
    local_time,
    make_page,
    plural,
    query_terms,
    read_number,
    render,
    to_milliseconds,
)

_HITS = 10
_HITS_MAX = 50
"""What one question brings at most: of these a speaker's are chosen."""
_PAGES_MAX = 200
_FILTERS = ("kind", "speaker", "client", "since", "until")
_FILE_NAME = re.compile(r"[\w./-]*\w\.[A-Za-z]\w{0,7}")
_VERDICTS = {"found": "Found", "weak": "Near it, perhaps not it", "nothing": "Not known"}
_PART_NAMES = {
    "lexical": "its words",
    "vector": "its meaning",
    "learned": "its meaning, by the model",
    "unlearned": "its meaning, not yet by the model",
    "spelling": "how its words are spelt",
    "topic": "its topic key",
    "recency": "how recent it is",
    "session": "its session",
    "previous": "the memory before it",
    "next": "the memory after it",
    "coverage": "how much of the question it has",
    "confidence": "how sure it is",
    "quality": "how complete it is",
}
_MISSES = {"rank": "it matches less well than the hits", "expired": "it has expired"}


def show_search(visit: Visit) -> Page:
    """The form, and below it the answer."""
    query = visit.params.get("q", "")
    given = [visit.params[name] for name in _FILTERS if visit.params.get(name)]
    return make_page(
        query[:60] if query else "Search",
        query=query,
        given=given,
        answer=_answer(visit, query) if query.strip() else None,
        file=query.strip() if _FILE_NAME.fullmatch(query.strip()) else None,
    )


def _ask(visit: Visit, query: str, **more: object) -> Json:
    kind, speaker = visit.params.get("kind"), visit.params.get("speaker")
    page = _read_page(visit)
    return visit.call(
        "memd/search",
        **{
            "query": query,
            "project": visit.project,
            "k": _HITS_MAX if speaker else _HITS,
            "offset": 0 if speaker else page * _HITS,
            "kinds": [kind] if kind in KINDS else [],
            "source": visit.params.get("client") or None,
            "since": visit.params.get("since") or None,
            "until": visit.params.get("until") or None,
            "include_superseded": visit.params.get("superseded") == "1",
            "show_all": True,
            **more,
        },
    )


def _read_page(visit: Visit) -> int:
    return min(read_number(visit.params.get("page", "")) or 0, _PAGES_MAX)


def _answer(visit: Visit, query: str) -> Json:
    """The template's values from an answer, or from what was wrong with the question."""
    try:
        found = _ask(visit, query)
    except BadRequest as error:
        return {"error": str(error)}
    hits, speaker, page = found["hits"], visit.params.get("speaker"), _read_page(visit)
    by_speaker = speaker in SPEAKERS
    if by_speaker:
        hits = [hit for hit in hits if hit["speaker"] == speaker]
    hidden = [f"{plural(count, 'memory')} {why}" for why, count in found["suppressed"].items()]
    best = max((hit["score"] for hit in hits), default=0) or 1
    notes = [" ".join(found["notes"]), f"hidden: {', '.join(hidden)}" if hidden else ""]
    return {
        "error": "",
        "found": found,
        "verdict": _VERDICTS[found["verdict"]],
        "wanted": query_terms(query),
        "facts": [one for one in (found["reason"], *notes, f"{found['took_ms']:.0f} ms") if one],
        "hits": [(hit, read_steps(hit["parts"]), measure_bars(hit, best)) for hit in hits],
        "by_speaker": by_speaker,
        "page": page,
        "has_more": len(found["hits"]) == _HITS,
    }


# ── A score and its parts ────────────────────────────────────────────────────────────────────────


def read_steps(parts: Sequence[Json]) -> list[Json]:
    """Name, class, change of the score, and words of each part, in order; the changes add up to the score."""
    steps = []
    score = 0.0
    for part in parts:
        value, before = part["value"], score
        if part["op"] == "+":
            score += value
            words = f"{value:+.3f}"
        elif part["op"] == "*":
            score *= value
            words = f"× {value:.3f}"
        else:
            score = min(score, value)
            words = f"at most {value:.3f}"
        name = part["name"]
        css = name if name in _PART_NAMES else "other"
        steps.append(
            {
                "name": _PART_NAMES.get(name, name),
                "css": css,
                "change": score - before,
                "words": words,
            }
        )
    return steps


def measure_bars(hit: Json, best: float) -> list[Json]:
    """The bars of the parts that a score gained by, together as long as the score is of the best one's 100."""
    gains = [one for one in read_steps(hit["parts"]) if one["change"] > 0]
    gained = sum(one["change"] for one in gains) or 1
    place, bars = 0.0, []
    for one in gains:
        width = 100 * max(hit["score"], 0) / best * one["change"] / gained
        bars.append({**one, "x": place, "width": width})
        place += width
    return bars


# ── Why not this one? ────────────────────────────────────────────────────────────────────────────


def show_why_not(visit: Visit) -> Page:
    """Show why a memory is not among the hits of a question, or its score if it is."""
    query = visit.params.get("q", "")
    number = visit.number("id")
    (memory,) = visit.call("memd/get", ids=[number], project="all")["memories"]
    found = _ask(visit, query, explain=True, k=_HITS, offset=0)
    traced = next((one for one in found["trace"] if one["summary_id"] == number), None)
    lines = _explain_candidate(traced, found) if traced else _explain_absence(visit, memory, found)
    return make_page(
        f"Why not #{number}?",
        query=query,
        memory=memory,
        wanted=query_terms(query),
        lines=lines,
        traced=traced,
        steps=read_steps(traced["parts"]) if traced else [],
    )


def _explain_candidate(traced: Json, found: Json) -> list[str]:
    verdict, _, more = traced["verdict"].partition(";")
    if verdict == "hit":
        words = f"It is among the hits{f' ({more.strip()})' if more else ''}."
    elif found["verdict"] == "nothing":
        why = found["reason"] or "no memory has what was asked for"
        words = f"Nothing counts as an answer: {why}."
    else:
        words = f"It was looked at and left out: {_MISSES.get(verdict, traced['verdict'])}."
    if not traced["parts"]:
        return [words]
    ranks = ", ".join(f"{rank} by {leg}" for leg, rank in traced["ranks"].items() if rank)
    place = (
        f"Its rank: {ranks}."
        if ranks
        else "No retriever found it; it is a neighbour of one that was found."
    )
    shared = f"Words that it has of the question: {', '.join(traced['terms']) or 'none'}."
    last = min((hit["score"] for hit in found["hits"]), default=None)
    score = (
        "" if last is None else f"Its score is {traced['score']:.3f}, the last hit’s {last:.3f}."
    )
    return [words, f"{place} {shared} {score}"]


def _explain_absence(visit: Visit, memory: Json, found: Json) -> list[str]:
    reasons = []
    names = {one["id"]: one["key"] for one in visit.projects}
    key = names.get(memory["project_id"])
    if visit.project not in {"all", memory["project"], key} and key != "global":
        reasons.append(
            f"it belongs to the project {memory['project']}, and {visit.label_project(visit.project)} was searched"
        )
    if memory["superseded_by"] and visit.params.get("superseded") != "1":
        reasons.append(
            f"#{memory['superseded_by']} has replaced it, and what was replaced is left out"
        )
    if visit.params.get("kind") and memory["kind"] != visit.params["kind"]:
        reasons.append(
            f"it is a {memory['kind']}, and only the kind {visit.params['kind']} was searched"
        )
    if visit.params.get("since") or visit.params.get("until"):
        reasons.append("it may be of another time than was asked for")
    if not reasons:
        reasons.append(
            "neither its words nor its meaning are near enough to the question: no retriever found it"
        )
    lines = [f"It was not looked at: {'; '.join(reasons)}."]
    notes = " ".join(found["notes"])
    return [*lines, f"The question was understood so: {notes}."] if notes else lines


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

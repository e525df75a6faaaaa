"""Timeline: what happened in a year, a month, a day or an hour; what was superseded stays, struck through."""

from collections.abc import Iterator, Sequence

from memd.viewer.activity import read_span, write_spans
from memd.viewer.html import Child, Markup, render, tag
from memd.viewer.parts import write_kind, write_memory_link
from memd.viewer.visit import Json, Page, Visit
from memd.viewer.wording import format_gap, local_time, plural, shorten

_SCREEN_ROWS = 10
_ROWS_MAX = 200
"""What the daemon tells of a span at most: its latest memories."""


def show_timeline(visit: Visit) -> Page:
    """One span: its picture, and its memories in the order of their events."""
    name = visit.params.get("at", "")
    if not name:
        latest = visit.call("memd/overview", project=visit.project, limit=1)["last_at"]
        name = local_time(latest).strftime("%Y-%m") if latest else ""
    span = read_span(name, visit.now)
    client = visit.params.get("client") or None
    found = visit.call(
        "memd/timeline", project=visit.project, source=client, since=span.since, until=span.until
    )
    rows = found["rows"]
    above = span.above()
    steps = [
        tag(
            "a",
            f"← {span.step(-1).title}",
            href=visit.link("/timeline", client=client, at=span.step(-1).name),
            class_="button",
        ),
        tag(
            "a",
            f"{above.title} ↑",
            href=visit.link("/timeline", client=client, at=above.name),
            class_="button",
        )
        if above
        else None,
        tag(
            "a",
            f"{span.step(1).title} →",
            href=visit.link("/timeline", client=client, at=span.step(1).name),
            class_="button",
        ),
    ]
    content = [
        tag("h1", span.title, tabindex=-1),
        tag(
            "p",
            f"Only what {client} left. ",
            tag("a", "All agents", href=visit.same_page("/timeline", client=None)),
            class_="notice",
        )
        if client
        else None,
        tag("nav", steps, class_="pages", aria_label="Other times"),
        write_spans(visit, span.parts()) if span.parts() else None,
        tag(
            "p",
            f"The latest {_ROWS_MAX} of its memories; choose a shorter time for the others.",
            class_="notice",
        )
        if found["more_before"]
        else None,
        tag("ol", _write_rows(visit, rows), class_="timeline")
        if rows
        else tag("p", "Nothing happened then that memd knows of.", class_="quiet"),
        tag("nav", steps, class_="pages", aria_label="Other times, again")
        if len(rows) > _SCREEN_ROWS
        else None,
    ]
    return Page(f"{span.title} · memd", render(content), "/timeline")


def _write_rows(visit: Visit, rows: Sequence[Json]) -> Iterator[Markup]:
    day = ""
    for row in rows:
        memory = row["summary"]
        at = local_time(memory["at"])
        today = at.strftime("%A, %-d %B %Y")
        if today != day:
            yield tag(
                "li",
                tag(
                    "h2", tag("a", today, href=visit.link("/timeline", at=at.strftime("%Y-%m-%d")))
                ),
                class_="day",
            )
            day = today
        if row["gap_ms"]:
            yield tag("li", f"{format_gap(row['gap_ms'])} without a memory", class_="gap")
        if row["begins_session"]:
            title = shorten(row["session_title"] or "", 120) or "a session without a title"
            yield tag("li", tag("h3", title, dir="auto"), class_="session")
        yield tag(
            "li",
            tag("time", at.strftime("%H:%M"), datetime=at.isoformat(timespec="seconds")),
            tag("div", _write_event(visit, memory, row)),
            class_="event",
        )


def _write_event(visit: Visit, memory: Json, row: Json) -> Child:
    above = memory["superseded_by"]
    flags: list[Child] = [write_kind(memory["kind"]), tag("span", f"{memory['speaker']}’s word")]
    if client := memory.get("client"):
        flags.append(tag("a", f"from {client}", href=visit.same_page("/timeline", client=client)))
    if above:
        flags.append(
            tag(
                "span",
                "replaced by ",
                tag("a", f"#{above}", href=visit.link(f"/memory/{above}")),
                class_="flag warn",
            )
        )
    if row["contradicted_by"]:
        flags.append(
            tag(
                "span",
                f"contradicted by {plural(len(row['contradicted_by']), 'memory')}",
                class_="flag warn",
            )
        )
    return [
        write_memory_link(visit, memory),
        tag("p", [tag("span", one) for one in flags], class_="facts"),
    ]

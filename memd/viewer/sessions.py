"""Sessions: what each left, what each was told at its start and with its prompts, and what that cost."""

from collections.abc import Sequence
from itertools import groupby

from memd.viewer.html import Child, Markup, render, tag
from memd.viewer.parts import (
    write_kind,
    write_list,
    write_memory_link,
    write_next,
    write_section,
    write_table,
)
from memd.viewer.visit import ALL_PROJECTS, Json, Page, Visit
from memd.viewer.wording import format_gap, plural, shorten, write_time

_WHAT_IS_USED = (
    "Seen used: a name or words of the line stood in what the agent did next, and nothing else had told it. Most use"
    " is not seen: a rule that is obeyed leaves no trace."
)
_MOMENTS = {
    "startup": "At its start",
    "resume": "When it was taken up again",
    "clear": "After its context was cleared",
    "compact": "After its context was compacted",
    "prompt": "With a prompt",
    "rule": "When a rule was about to be broken",
}


def show_sessions(visit: Visit) -> Page:
    """The sessions of a project, newest first."""
    found = visit.call("memd/sessions", project=visit.project, after=visit.cursor())
    has_clients = len({one["client"] for one in found["sessions"]}) > 1
    rows = [
        [
            tag(
                "a",
                shorten(one["title"] or "", 100) or "without a prompt",
                href=visit.link(f"/session/{one['key']}"),
                dir="auto",
            ),
            write_time(one["started_at"], visit.now, with_minute=True),
            format_gap(max(one["last_event_at"] - one["started_at"], 1_000)),
            f"{one['memories']:,}",
            f"{one['shown']:,}",
            f"{one['used']:,}",
            *([one["client"]] if has_clients else []),
            *([one["project"]] if visit.project == ALL_PROJECTS else []),
        ]
        for one in found["sessions"]
    ]
    names = [
        "Session",
        "Began",
        "Took",
        "Memories left",
        "Memories told",
        "Seen used",
        *(["Agent"] if has_clients else []),
        *(["Project"] if visit.project == ALL_PROJECTS else []),
    ]
    content = [
        tag("h1", "Sessions", tabindex=-1),
        tag("p", tag("a", "What a new session would be told now", href=visit.link("/context")))
        if visit.project != ALL_PROJECTS
        else None,
        write_table(names, rows, "Sessions, newest first")
        if rows
        else tag("p", "No session is known yet.", class_="quiet"),
        write_next(visit, "/sessions", found["next"]),
        *([] if visit.cursor() else [_write_weeks(visit)]),
    ]
    return Page("Sessions · memd", render(content), "/sessions")


def _write_weeks(visit: Visit) -> Markup:
    """Write what agents were shown in the last weeks, its outcomes, and the costs of memd."""
    found = visit.call("memd/told", weeks=4)
    weeks = [one for one in found["weeks"] if one["told"]["lines"] or one["costs"]]
    names = sorted({name for week in weeks for name in week["costs"]})
    rows = [
        [
            write_time(week["until"], visit.now),
            *(f"{week['told'][name]:,}" for name in ("sessions", "lines", "used", "overruled", "ignored")),
            *(f"{week['costs'].get(name, {}).get('tokens', 0):,}" for name in names),
            f"{sum(cost['wait_ms'] for cost in week['costs'].values()) / 1000:,.1f} s",
        ]
        for week in weeks
    ]  # fmt: skip
    columns = (
        "Week to", "Sessions told", "Lines", "Seen used", "Overruled", "Not used",
        *(f"Tokens: {name}" for name in names), "Agents waited",
    )  # fmt: skip
    held = found["holdout"]
    return write_section(
        "What they were told by weeks, in all projects",
        write_table(columns, rows, "Weeks, this one first")
        if rows
        else tag("p", "Nothing yet.", class_="quiet"),
        tag("p", f"Held back: {held['words']}.") if held else None,
        tag("p", _WHAT_IS_USED, class_="quiet"),
    )


def show_session(visit: Visit) -> Page:
    """One session: what it was told, and what it left."""
    key = visit.places["key"]
    told = visit.call("memd/injected", session=key)
    left = visit.call("memd/list", session=key, project="all", include_superseded=True, limit=200)
    title = shorten(told["title"] or "", 200) or "A session without a prompt"
    content = [
        tag("h1", title, tabindex=-1, dir="auto"),
        tag(
            "p",
            tag("code", told["session"]),
            " · ",
            tag("a", "forget this session…", href=visit.link(f"/session/{key}/forget"))
            if visit.may_edit
            else "",
            class_="quiet",
        ),
        write_section("What it was told", *_write_told(visit, told["injections"])),
        write_section(
            "What it left",
            write_list(visit, left["memories"], "Nothing."),
            tag("p", "The newest 200.") if left["next"] else None,
        ),
    ]
    return Page(f"{title[:60]} · memd", render(content), "/sessions")


def _write_told(visit: Visit, injections: Sequence[Json]) -> list[Child]:
    if not injections:
        return [
            tag(
                "p", "Nothing: it ran before memd, was imported, or nothing fitted.", class_="quiet"
            )
        ]
    shown = [one for one in injections if not one["held"]]
    used = sum(one["outcome"] == "used" for one in shown)
    tokens = sum(one["tokens"] for one in shown)
    summary = (
        f"{plural(len(shown), 'memory')}, about {plural(tokens, 'token')}; {used:,} seen used."
    )
    if not shown:
        summary = "Nothing: it was held back, to compare with other sessions."
    parts: list[Child] = [tag("p", summary, class_="quiet")]
    for (at, moment), group in groupby(injections, key=lambda one: (one["at"], one["moment"])):
        told = list(group)
        items = [
            tag(
                "li",
                tag(
                    "p",
                    tag(
                        "a",
                        shorten(one["title"], 160),
                        href=visit.link(f"/memory/{one['id']}"),
                        dir="auto",
                    ),
                    " ",
                    write_kind(one["kind"]),
                ),
                tag("p", one["reason"], _describe_outcome(one), class_="facts"),
            )
            for one in told
        ]
        cost = sum(one["tokens"] for one in told)
        parts += [
            tag(
                "h3",
                _MOMENTS.get(moment, moment),
                ", ",
                write_time(at, visit.now, with_minute=True),
                tag("span", f" · about {plural(cost, 'token')}", class_="quiet"),
            ),
            tag("ul", items, class_="told"),
        ]
    return parts


def _describe_outcome(one: Json) -> str:
    if one["outcome"] not in {"used", "overruled", "ignored"}:
        return ""
    evidence = f": {shorten(one['evidence'], 80)}" if one["evidence"] else ""
    return f"; {one['outcome']}{evidence}"


def show_context(visit: Visit) -> Page:
    """Show what a session that begins now would be shown, word for word."""
    key = next(
        (one["key"] for one in visit.projects if visit.name_project(one["key"]) == visit.project),
        visit.project,
    )
    prompt = visit.params.get("prompt", "")
    found = visit.call("memd/context", directory=key, prompt=prompt or None, explain=True)
    told = [one for one in found["memories"] if one["shown"]]
    left = [one for one in found["memories"] if not one["shown"]]
    content = [
        tag("h1", "What a session would be told now", tabindex=-1),
        tag(
            "form",
            tag("label", tag("span", "With a prompt"), tag("input", name="prompt", value=prompt, placeholder="empty: at its start")),
            tag("input", type="hidden", name="project", value=visit.project),
            tag("button", "Show"), data_visit="/context",
        ),
        tag("pre", found["text"], class_="text", dir="auto") if found["text"] else tag("p", f"Nothing: {found['reason']}."),
        tag("p", f"About {plural(found['tokens'], 'token')}.", class_="quiet"),
        write_section("Told, and why", _write_considered(visit, told)) if told else None,
        tag(
            "details",
            tag("summary", f"{plural(len(left), 'memory')} not told, and why not"),
            _write_considered(visit, left),
        )
        if left
        else None,
    ]  # fmt: skip
    return Page("What a session would be told · memd", render(content), "/sessions")


def _write_considered(visit: Visit, memories: Sequence[Json]) -> Markup:
    """Memories with the reason why they would be told, or not."""
    items = [
        tag(
            "li",
            tag("p", write_memory_link(visit, one, limit=160), " ", write_kind(one["kind"])),
            tag("p", one["why"], class_="facts"),
        )
        for one in memories
    ]
    return tag("ul", items, class_="told")

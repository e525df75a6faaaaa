"""Forget and scrub: what would go is shown first, then a button erases just that."""

from collections.abc import Iterator, Sequence

from memd.viewer.forms import Fields, read_text, write_form, write_input, write_outcome
from memd.viewer.html import Child, Markup, render, tag
from memd.viewer.parts import write_facts, write_memory_link, write_section
from memd.viewer.visit import Json, Page, Visit
from memd.viewer.wording import plural, shorten

_LISTED_MAX = 20
_CRITERIA = ("query", "since", "until", "project")
_ERASED = ("ids", "event_ids", "sessions", "rows", "imported_files", "lines", "leftovers")
"""What a dry run may find; without any of it there is nothing to forget."""
EDITED = "edited by hand"
"""How the reason of a judgment begins that an edit made."""


# ── Forget ───────────────────────────────────────────────────────────────────────────────────────


def show_forget(visit: Visit) -> Page:
    """Show what goes with a memory, and a button that erases it."""
    number = visit.number("id")
    ids = [number, *find_versions(visit, number)]
    plan = visit.call("memd/forget", ids=ids, dry_run=True)
    versions = (
        tag(
            "p",
            f"Its {plural(len(ids) - 1, 'earlier version')} from before your edits goes with it.",
        )
        if len(ids) > 1
        else None
    )
    return _make_forget_page(
        visit, f"Forget #{number}", versions, plan, ids=" ".join(map(str, ids))
    )


def find_versions(visit: Visit, number: int) -> list[int]:
    """Find a memory's former versions, so that forgetting it does not bring them back."""
    found: list[int] = []
    while len(found) < _LISTED_MAX:
        judged = [
            one["judgment"] for one in visit.call("memd/why", id=number, depth=1)["judgments"]
        ]
        before = [
            one["older_id"]
            for one in judged
            if one["newer_id"] == number
            and one["reason"].startswith(EDITED)
            and not one["undone_at"]
        ]
        if not before or before[0] in found:
            break
        number = before[0]
        found.append(number)
    return found


def show_forget_session(visit: Visit) -> Page:
    """Show what goes with a session, and a button that erases it."""
    key = visit.places["key"]
    plan = visit.call("memd/forget", session=key, dry_run=True)
    return _make_forget_page(visit, "Forget this session", None, plan, session=key)


def _make_forget_page(
    visit: Visit, title: str, first: Child, plan: Json, **selection: object
) -> Page:
    content = [tag("h1", title, tabindex=-1), first, _write_plan(visit, plan, **selection)]
    return Page(f"{title} · memd", render(content))


def show_forget_words(visit: Visit) -> Page:
    """A form to find everything that says some words, or is of some time."""
    content = [
        tag("h1", "Forget by words or time", tabindex=-1),
        tag(
            "p",
            "Everything goes that says all of these words, whole and exact, or a phrase in quotes: memories,"
            " events, titles, reasons, lines of the log; with a time, what is of that time. You see first what goes.",
        ),
        write_form(
            visit,
            "forget-preview",
            "Show what would go",
            write_input("query", "Words (empty: any)"),
            write_input("since", "From (empty: any time)", placeholder="2026-11-01, 7d, last week"),
            write_input("until", "Until (empty: now)", placeholder="yesterday"),
            tag("p", f"In: {visit.project}", class_="quiet"),
            project=visit.project,
        ),
        write_outcome(),
    ]
    return Page("Forget by words or time · memd", render(content), "/health")


def preview_forget_words(visit: Visit, fields: Fields) -> Json:
    """Show what would be erased that has some words, or is of some time."""
    selection = {name: text for name in _CRITERIA if (text := read_text(fields, name))}
    plan = visit.call("memd/forget", **selection, dry_run=True)
    return {"html": _write_plan(visit, plan, **selection)}


def _write_plan(visit: Visit, plan: Json, **selection: object) -> Markup:
    """Write what a dry run says would be erased, what would stay, and a button that does it."""
    if not any(plan[name] for name in _ERASED):
        return tag("p", "Nothing was found.")
    left = plan["count"] - len(plan["summaries"])
    items = [
        tag("li", write_memory_link(visit, one), write_facts(visit, one), class_="memory")
        for one in plan["summaries"]
    ]
    stays = list(_describe_staying(plan))
    warning = " A backup or an export may still have it: memd rewrites none."
    return render(
        [
            write_section(
                "What goes",
                tag("ul", items, class_="memories") if items else None,
                tag("p", f"and {plural(left, 'memory')} more") if left > 0 else None,
                _write_lines(list(_describe_erased(plan))),
            ),
            write_section("What stays", _write_lines(stays)) if stays else None,
            tag("p", tag("b", "This cannot be undone."), warning, class_="notice"),
            write_form(
                visit,
                "forget",
                "Forget for good",
                is_final=True,
                key="",
                **selection | {"token": plan["token"]},
            ),
        ]
    )


def _write_lines(lines: Sequence[str]) -> Markup:
    return tag("ul", [tag("li", line) for line in lines])


def _describe_erased(plan: Json) -> Iterator[str]:
    if plan["events"]:
        yield f"{plural(plan['events'], 'event')} that no other memory needs"
    for title in plan["sessions"][:_LISTED_MAX]:
        yield f"all of the session “{shorten(title, 80)}”"
    for name, ids in plan["rows"].items():
        yield f"the words in {plural(len(ids), 'row')} of {name}"
    for name, count in plan["lines"].items():
        yield f"{plural(count, 'line')} of the {name}"


def _describe_staying(plan: Json) -> Iterator[str]:
    if plan["kept_events"]:
        yield f"{plural(plan['kept_events'], 'event')} that other memories come from"
    notes = {
        "revived": "shows again: what hid it goes",
        "also_in": "comes from the same events",
        "uncited": "stays without an event that it comes from",
    }
    for name, words in notes.items():
        yield from (f"#{number} {words}" for number in plan[name][:_LISTED_MAX])
    yield from (f"{path} may still contain it" for path in plan["backups"][:_LISTED_MAX])


def forget(visit: Visit, fields: Fields) -> Json:
    """Erase just what the dry run has shown."""
    ids = [int(number) for number in read_text(fields, "ids").split() if number.isdigit()]
    selection = {name: read_text(fields, name) or None for name in (*_CRITERIA, "session", "token")}
    done = visit.call("memd/forget", ids=ids or None, dry_run=False, **selection)
    wait = f" The last copy goes when {done['pending']} ends." if done["pending"] else ""
    return {
        "say": f"Forgotten: {plural(done['count'], 'memory')} and {plural(done['events'], 'event')}.{wait}",
        "go": visit.link("/"),
    }


# ── Scrub ────────────────────────────────────────────────────────────────────────────────────────


def show_scrub(visit: Visit) -> Page:
    """A form for a pattern, or for what redaction finds today."""
    content = [
        tag("h1", "Scrub", tabindex=-1),
        tag(
            "p",
            "Replaces a text in everything that is stored: memories, events, titles, the log. The text itself is never shown. You see how much it is first.",
        ),
        write_form(
            visit,
            "scrub-preview",
            "Show how much",
            write_input(
                "pattern",
                "A Python regular expression; empty: all that today’s redaction takes for a secret",
            ),
        ),
        write_outcome(),
    ]
    return Page("Scrub · memd", render(content), "/health")


def preview_scrub(visit: Visit, fields: Fields) -> Json:
    """Show how much a scrub would replace."""
    pattern = read_text(fields, "pattern")
    plan = visit.call("memd/scrub", pattern=pattern or None, secrets=not pattern, dry_run=True)
    if not plan["rows"]:
        return {"html": tag("p", "Nothing was found.")}
    lines = [
        *(f"{plural(count, 'row')} of {table}" for table, count in plan["rows"].items()),
        *(f"{plural(count, 'place')} become {words}" for words, count in plan["found"].items()),
    ]
    form = write_form(visit, "scrub", "Replace for good", pattern=pattern, is_final=True)
    return {
        "html": render(
            [
                tag("ul", [tag("li", line) for line in lines]),
                tag("p", tag("b", "This cannot be undone."), class_="notice"),
                form,
            ]
        )
    }


def scrub(visit: Visit, fields: Fields) -> Json:
    """Replace it."""
    pattern = read_text(fields, "pattern")
    done = visit.call("memd/scrub", pattern=pattern or None, secrets=not pattern, dry_run=False)
    return {
        "say": f"Replaced in {plural(sum(done['rows'].values()), 'row')}.",
        "go": visit.link("/health"),
    }

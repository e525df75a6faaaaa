"""The inbox: what was learned since the user looked, each with its proof, and what waits for a judgment."""

from collections.abc import Iterator

from memd.viewer.forms import Fields, read_field_number, read_text, write_form, write_outcome
from memd.viewer.home import write_open_pairs
from memd.viewer.html import Child, Markup, render, tag
from memd.viewer.parts import write_memory_link, write_section
from memd.viewer.visit import Json, Page, Visit, read_number
from memd.viewer.wording import plural, shorten, write_time

_SHOWN = 50
_SPEAKERS = {"prompt": "you", "tool_refused": "you", "elsewhere": "on another device"}
"""Kind of event → the speaker of its quoted text; other kinds quote the agent or a tool."""
_VERDICTS = (
    ("keep", "Keep", "k"), ("reject", "Reject", "r"), ("everywhere", "Hold everywhere", "g"), ("seen", "Next", "n"),
)  # fmt: skip
"""Verdict, the word on its button, and the key that presses it."""
_DONE = {
    "keep": "is kept, and does not ask again",
    "reject": "is rejected: it is told no more, and never learned again",
    "everywhere": "holds everywhere now",
    "seen": "stays as it is",
    "undo": "waits for you again",
}


def show_inbox(visit: Visit) -> Page:
    """Return what was learned and nobody has looked at, then the pairs of which only one can hold."""
    learned = visit.call("memd/review/list", project=visit.project, limit=_SHOWN)
    found = visit.call("memd/judge/open", project=visit.project, limit=100)
    left = found["count"] - len(found["pairs"])
    content: list[Child] = [
        tag("h1", "Inbox", tabindex=-1),
        _write_undo(visit),
        write_section(
            "What was learned since you looked",
            _write_learned(visit, learned),
            more=tag("a", "rejected", href=visit.link("/rejected")),
        ),
        write_section(
            "What waits for your judgment",
            write_open_pairs(visit, found["pairs"])
            if found["pairs"]
            else tag("p", "No two memories contradict each other.", class_="quiet"),
            tag("p", f"{plural(left, 'pair')} more; judge these first.") if left else None,
        ),
    ]
    return Page("Inbox · memd", render(content), "/")


def _write_undo(visit: Visit) -> Markup | None:
    number = read_number(visit.params.get("undo", ""))
    if number is None or not visit.may_edit:
        return None
    return write_form(
        visit, "review", f"Undo what you said of #{number}", key="u", id=number, verdict="undo"
    )


def _write_learned(visit: Visit, learned: Json) -> Markup:
    memories = learned["memories"]
    if not memories:
        return tag("p", "Nothing new.", class_="quiet")
    hint = tag(
        "p",
        "One key each for the first: k keep, e edit, r reject, g everywhere, n next, u undo."
        if visit.may_edit
        else ("To say what is right: ", tag("code", "memd view --edit")),
        class_="quiet",
    )
    more = learned["count"] - len(memories)
    rest = tag("p", f"{plural(more, 'memory')} more; look at these first.") if more else None
    return tag("div", hint, list(_write_sessions(visit, memories)), rest, write_outcome())


def _write_sessions(visit: Visit, memories: list[Json]) -> Iterator[Markup]:
    last: object = ""
    for one in memories:
        if one["session"] != last:
            last = one["session"]
            title = shorten(one["session_title"] or one["session"] or "outside of a session", 120)
            name = tag("a", title, href=visit.link(f"/session/{last}")) if last else title
            yield tag("h3", f"{one['project']}: ", name, dir="auto")
        yield _write_learned_memory(visit, one)


def _write_learned_memory(visit: Visit, one: Json) -> Markup:
    """A memory with its proof, and a button for each thing that may be said of it."""
    facts: list[Child] = [
        one["kind"],
        ", ",
        one["authority"],
        ", ",
        write_time(one["at"], visit.now),
    ]
    if one["because"]:
        facts.append(f": {one['because']}")
    quotes = [
        tag(
            "li",
            tag("blockquote", quote["quote"], dir="auto"),
            tag(
                "p",
                _SPEAKERS.get(quote["kind"], "the agent or a tool"), ", ",
                write_time(quote["at"], visit.now, with_minute=True), class_="facts",
            ),
        )
        for quote in one["proof"]
    ]  # fmt: skip
    lines = (
        ("about", one["about"]), ("quoted, and not found", one["unproved"]),
        ("why", one["why"]), ("holds for", one["scope"]), ("check", "; ".join(one["checks"])),
    )  # fmt: skip
    said = [tag("p", f"{name}: ", tag("span", text, dir="auto")) for name, text in lines if text]
    also = [
        tag("p", f"#{other['id']} in {other['project']} says the same: hold everywhere?")
        for other in one["elsewhere_too"]
    ]
    return tag(
        "div",
        write_memory_link(visit, {**one, "title": one["text"] or one["title"]}, limit=600),
        tag("p", facts, class_="facts"),
        tag("ul", quotes, class_="quotes") if quotes else None,
        said,
        tag("p", f"{one['doubt'].capitalize()}: does it still hold?") if one["doubt"] else None,
        also,
        _write_buttons(visit, one) if visit.may_edit else None,
        class_="memory",
    )


def _write_buttons(visit: Visit, one: Json) -> Markup:
    buttons = [
        write_form(visit, "review", name, key=key, id=one["id"], verdict=verdict)
        for verdict, name, key in _VERDICTS
        if verdict != "everywhere" or one["elsewhere_too"]
    ]
    edit = tag(
        "a", "Edit…", href=visit.link(f"/memory/{one['id']}/edit"), class_="button", data_key="e"
    )
    return tag("div", buttons, edit, class_="actions verdicts")


def show_rejected(visit: Visit) -> Page:
    """Return what the user rejected, and how often it came again."""
    found = visit.call("memd/review/list", project=visit.project, rejected=True, limit=500)
    items = [
        tag(
            "li",
            write_memory_link(visit, one),
            tag(
                "p", "rejected on ", write_time(one["rejected_at"], visit.now),
                f"; came again {plural(one['repeats'], 'time')}" if one["repeats"] else "", class_="facts",
            ),
            write_form(visit, "review", "Take it back", id=one["id"], verdict="undo")
            if visit.may_edit
            else None,
            class_="memory",
        )
        for one in found["memories"]
    ]  # fmt: skip
    content = [
        tag("h1", "What you rejected", tabindex=-1),
        tag("p", "It is in no answer, and nothing that says the same is learned again."),
        tag("ul", items, class_="memories") if items else tag("p", "Nothing.", class_="quiet"),
        write_outcome(),
    ]
    return Page("Rejected · memd", render(content), "/")


def review(visit: Visit, fields: Fields) -> Json:
    """Say something of a memory, or take it back."""
    number, verdict = read_field_number(fields, "id"), read_text(fields, "verdict")
    visit.call("memd/review", ids=[number], verdict=verdict)
    undo = None if verdict == "undo" else number
    return {"say": f"#{number} {_DONE[verdict]}.", "go": visit.link("/inbox", undo=undo)}

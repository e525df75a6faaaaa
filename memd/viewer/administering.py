"""Rename, merge and switch projects; undo a round of consolidation."""

from memd.viewer.forms import (
    Fields,
    read_field_number,
    read_text,
    write_form,
    write_input,
    write_outcome,
    write_radios,
)
from memd.viewer.html import Child, render, tag
from memd.viewer.parts import write_section
from memd.viewer.visit import Json, Page, Visit
from memd.viewer.wording import plural

_STATES = (
    ("on", "Capture what happens there, and tell sessions what is known."),
    ("capture-only", "Capture, but tell sessions nothing unasked."),
    ("recall-only", "Tell sessions what is known, but capture nothing new."),
    ("off", "Neither. Searches are still answered."),
)


# ── Projects and runs ────────────────────────────────────────────────────────────────────────────


def show_rename(visit: Visit) -> Page:
    """A form for a project's name."""
    name = visit.text("name")
    content = [
        tag("h1", "Rename ", tag("em", name), tabindex=-1),
        tag(
            "p",
            "Its directories and memories stay; only its name changes. You can rename it again.",
        ),
        write_form(
            visit,
            "rename",
            "Rename",
            write_input("name", "Its new name", name, required=True, maxlength=100),
            project=name,
        ),
        write_outcome(),
    ]
    return Page(f"Rename {name[:60]} · memd", render(content), "/projects")


def rename(visit: Visit, fields: Fields) -> Json:
    """Rename a project."""
    done = visit.call(
        "memd/project/rename", project=read_text(fields, "project"), name=read_text(fields, "name")
    )
    return {"say": f"It is called {done['name']} now.", "go": "/projects"}


def show_merge(visit: Visit) -> Page:
    """Show the projects that one may be merged into, then what the merge would move."""
    name, into = visit.text("name"), visit.params.get("into", "")
    others = [
        visit.name_project(one["key"])
        for one in visit.projects
        if one["key"] not in {"global", "scratch"}
    ]
    options = [
        tag("option", other, value=other, selected=other == into)
        for other in others
        if other != name
    ]
    choice = tag(
        "form",
        tag("label", tag("span", "The project that stays"), tag("select", options, name="into")),
        tag("button", "Show what would move"),
        tag("input", type="hidden", name="name", value=name),
        data_visit="/project/merge",
    )
    content: list[Child] = [
        tag("h1", "Merge ", tag("em", name), tabindex=-1),
        choice if options else tag("p", "There is no other project."),
    ]
    if into:
        plan = visit.call("memd/project/merge", project=name, into=into, dry_run=True)
        lines = [
            f"{plural(plan['memories'], 'memory')}, {plural(plan['sessions'], 'session')} and {plural(plan['events'], 'event')} move to {plan['into']['name']}",
            f"{', '.join(plan['aliases'])} mean {plan['into']['name']} from then on",
            *(
                f"#{one['newer_id']} replaces #{one['older_id']}: both are {one['topic_key']}"
                for one in plan["replaced"]
            ),
            *([plan["switch"]] if plan["switch"] else []),
        ]
        content += [
            write_section(
                "What happens",
                tag("ul", [tag("li", line) for line in lines]),
                tag("p", f"You can take it back on the page of {plan['into']['name']}."),
            ),
            write_form(visit, "merge", "Merge", project=name, into=into),
        ]
    content.append(write_outcome())
    return Page(f"Merge {name[:60]} · memd", render(content), "/projects")


def merge(visit: Visit, fields: Fields) -> Json:
    """Merge two projects."""
    done = visit.call(
        "memd/project/merge",
        project=read_text(fields, "project"),
        into=read_text(fields, "into"),
        dry_run=False,
    )
    return {
        "say": f"{plural(done['memories'], 'memory')} moved to {done['into']['name']}.",
        "go": "/projects",
    }


def show_unmerge(visit: Visit) -> Page:
    """Show what undoing a merge does."""
    key = visit.params.get("key", "")
    content = [
        tag("h1", "Take the merge of ", tag("em", key), " back", tabindex=-1),
        tag(
            "p",
            "Its sessions and memories go back to a project of its own, and what the merge hid shows again."
            " What came after the merge stays where it is.",
        ),
        write_form(visit, "unmerge", "Take it back", project=key),
        write_outcome(),
    ]
    return Page("Take a merge back · memd", render(content), "/projects")


def unmerge(visit: Visit, fields: Fields) -> Json:
    """Take a merge back."""
    done = visit.call("memd/project/merge/undo", project=read_text(fields, "project"))
    back = f"{plural(done['memories'], 'memory')} went back to {done['project']['name']}."
    return {"say": back, "go": "/projects"}


def show_switch(visit: Visit) -> Page:
    """Show the switches of a project, to change them."""
    name = visit.text("name")
    found = visit.call("memd/project", project=name)
    content = [
        tag("h1", "Switch memd for ", tag("em", name), tabindex=-1),
        tag("p", f"Now: {found['switch']['reason']}. You can switch it back at any time."),
        write_form(
            visit,
            "switch",
            "Switch",
            write_radios("state", "What memd does there", _STATES, "on"),
            project=name,
        ),
        write_outcome(),
    ]
    return Page(f"Switch {name[:60]} · memd", render(content), "/projects")


def switch(visit: Visit, fields: Fields) -> Json:
    """Switch a project."""
    name = read_text(fields, "project")
    done = visit.call("memd/switch", state=read_text(fields, "state"), project=name)
    return {
        "say": f"{name}: {done['here']['switch']['reason']}.",
        "go": visit.link("/project", name=name),
    }


def show_undo_run(visit: Visit) -> Page:
    """Show what undoing a round of consolidation brings back."""
    number = visit.number("run")
    plan = visit.call("memd/consolidate/undo", what=f"r{number}", dry_run=True)["report"]
    lines = [
        *(f"#{older} shows again beside #{newer}" for newer, older in plan["shown"]),
        *(
            f"#{newer} and #{older} no longer count as contradicting each other"
            for newer, older in plan["compatible"]
        ),
    ]
    content = [
        tag("h1", f"Undo round r{number}", tabindex=-1),
        write_section("What happens", tag("ul", [tag("li", line) for line in lines])),
        tag("p", "The same pairs are not decided again."),
        write_form(visit, "undo", "Undo", run=number),
        write_outcome(),
    ]
    return Page(f"Undo r{number} · memd", render(content), "/health")


def undo_run(visit: Visit, fields: Fields) -> Json:
    """Undo a round."""
    number = read_field_number(fields, "run")
    done = visit.call("memd/consolidate/undo", what=f"r{number}", dry_run=False)["report"]
    return {"say": f"Undone: {plural(len(done['shown']), 'memory')} shows again.", "go": "/health"}

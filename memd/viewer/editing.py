"""Edit, pin and judge a memory. All of it can be undone."""

from memd.errors import BadRequest
from memd.viewer.erasing import find_versions
from memd.viewer.forms import (
    Fields,
    read_field_number,
    read_text,
    write_form,
    write_input,
    write_outcome,
    write_radios,
)
from memd.viewer.html import Markup, render, tag
from memd.viewer.parts import write_row, write_section
from memd.viewer.visit import Json, Page, Visit

_RELATIONS = (
    ("supersedes", "The first holds now. The second is hidden, and its page says why."),
    ("duplicate", "Both say the same. The second is hidden, and the first counts as more certain."),
    ("contradicts", "Both cannot hold, and it is open which does. Both stay, marked."),
    ("compatible", "Both hold. Both stay, and memd does not ask again."),
    ("unrelated", "They are about different things. Both stay, and memd does not ask again."),
)


# ── Edit, pin, judge ─────────────────────────────────────────────────────────────────────────────


def show_edit(visit: Visit) -> Page:
    """A form with what a memory says."""
    number = visit.number("id")
    (memory,) = visit.call("memd/get", ids=[number])["memories"]
    content = [
        tag("h1", f"Edit #{number}", tabindex=-1),
        tag(
            "p",
            "What you write becomes a new version in your own words, which agents take for your word. The old one stays behind it with its number, and holds again if you take the edit back.",
        ),
        write_form(
            visit,
            "edit",
            "Save as a new version",
            write_input("title", "Title", memory["title"], maxlength=200, required=True),
            tag(
                "label",
                tag("span", "Text"),
                tag("textarea", "\n", memory["body"], name="text", rows=14, required=True),
            ),
            write_input("reason", "Why (may be empty)"),
            id=number,
        ),
        write_outcome(),
    ]
    return Page(f"Edit #{number} · memd", render(content))


def edit(visit: Visit, fields: Fields) -> Json:
    """Write the new version."""
    old = read_field_number(fields, "id")
    new = visit.call(
        "memd/edit",
        id=old,
        title=read_text(fields, "title"),
        text=read_text(fields, "text").replace("\r\n", "\n"),
        reason=read_text(fields, "reason"),
    )["id"]
    return {"say": f"Saved as #{new}. #{old} stays behind it.", "go": visit.link(f"/memory/{new}")}


def show_undo_edit(visit: Visit) -> Page:
    """Show what undoing an edit does."""
    number = visit.number("id")
    before = find_versions(visit, number)[:1]
    memories = visit.call("memd/get", ids=[number, *before])["memories"]
    rows = [write_row(visit, {**memory, "snippet": memory["body"]}) for memory in memories]
    words = "There is no earlier version of it."
    if before:
        words = f"#{before[0]}, as it was before, holds again and hides #{number}. You can judge anew at any time."
    content = [
        tag("h1", f"Take the edit of #{number} back", tabindex=-1),
        tag("ol", rows, class_="memories"),
        tag("p", words),
        write_form(visit, "take-back", "Take it back", id=number) if before else None,
        write_outcome(),
    ]
    return Page(f"Take the edit of #{number} back · memd", render(content))


def take_back(visit: Visit, fields: Fields) -> Json:
    """Let what a memory said before its edit hold again."""
    number = read_field_number(fields, "id")
    before = find_versions(visit, number)[:1]
    if not before:
        raise BadRequest(f"#{number} was not edited")
    reason = "the edit was taken back"
    visit.call("memd/judge", id=before[0], other=number, relation="supersedes", reason=reason)
    words = f"#{before[0]} holds again, as it was before the edit."
    return {"say": words, "go": visit.link(f"/memory/{before[0]}")}


def show_pin(visit: Visit) -> Page:
    """Explain pinning, with a button that pins or unpins."""
    number = visit.number("id")
    (memory,) = visit.call("memd/get", ids=[number])["memories"]
    is_pinned = bool(memory["pinned_at"])
    words = (
        "It may be replaced again, and is no longer told to each session."
        if is_pinned
        else "It is never replaced or merged away, and sessions are told of it first."
    )
    content = [
        tag("h1", f"{'Unpin' if is_pinned else 'Pin'} #{number}", tabindex=-1),
        tag("ol", write_row(visit, memory), class_="memories"),
        tag("p", words, " You can change that again."),
        write_form(
            visit,
            "pin",
            "Unpin" if is_pinned else "Pin",
            id=number,
            pinned="" if is_pinned else "1",
        ),
        write_outcome(),
    ]
    return Page(f"Pin #{number} · memd", render(content))


def pin(visit: Visit, fields: Fields) -> Json:
    """Pin or unpin."""
    number, pinned = read_field_number(fields, "id"), bool(fields.get("pinned"))
    visit.call("memd/pin", id=number, pinned=pinned)
    return {
        "say": f"#{number} is {'pinned' if pinned else 'no longer pinned'}.",
        "go": visit.link(f"/memory/{number}"),
    }


def show_choose_other(visit: Visit) -> Page:
    """Show a form to choose the memory with which one is to be judged."""
    number = visit.number("id")
    (memory,) = visit.call("memd/get", ids=[number])["memories"]
    content = [
        tag("h1", f"Judge #{number} and another one", tabindex=-1),
        tag("ol", write_row(visit, memory), class_="memories"),
        tag(
            "form",
            tag(
                "label",
                tag("span", "The number of the other memory"),
                tag(
                    "input",
                    name="other",
                    inputmode="numeric",
                    required=True,
                    pattern="#?[0-9]+",
                    autocomplete="off",
                ),
            ),
            tag("input", type="hidden", name="id", value=number),
            tag("button", "Next"),
            data_visit="/judge",
        ),
    ]
    return Page(f"Judge #{number} · memd", render(content))


def show_judge(visit: Visit) -> Page:
    """Two memories, what they are to each other now, and what they may be."""
    one, other = visit.number("id"), visit.number("other")
    memories = visit.call("memd/get", ids=[one, other])["memories"]
    orders = [
        tag("option", f"#{first} is the first, #{second} the second", value=f"{first} {second}")
        for first, second in ((one, other), (other, one))
    ]
    rows = [write_row(visit, {**memory, "snippet": memory["body"]}) for memory in memories]
    content = [
        tag("h1", f"Judge #{one} and #{other}", tabindex=-1),
        tag("ol", rows, class_="memories"),
        _write_present(visit, one, other),
        write_form(
            visit,
            "judge",
            "Judge",
            tag("label", tag("span", "Which is the first"), tag("select", orders, name="order")),
            write_radios("relation", "What the first is to the second", _RELATIONS, "supersedes"),
            write_input("reason", "Why (pages show it)", required=True),
            tag("p", "You can take a judgment back.", class_="quiet"),
        ),
        write_outcome(),
    ]
    return Page(f"Judge #{one} and #{other} · memd", render(content))


def _write_present(visit: Visit, one: int, other: int) -> Markup | None:
    """Write which judgment on two memories holds now, with a button that undoes it; None if none does."""
    why = visit.call("memd/why", id=one, depth=1)
    hiding = [link["supersession"] for link in why["relations"] if link["other"]["id"] == other]
    judged = [link["judgment"] for link in why["judgments"] if link["other"]["id"] == other]
    words = [
        f"#{link['newer_id']} replaces #{link['older_id']} (rule {link['rule']})"
        for link in hiding
        if link["undone_at"] is None and link["rule"] != "judged"
    ]
    words += [
        f"the {link['who']} judged: #{link['newer_id']} {link['relation']} #{link['older_id']}, “{link['reason']}”"
        for link in judged
        if link["undone_at"] is None
    ]
    if not words:
        return None
    hint = tag("p", "Undone, what was hidden shows again.")
    undo = write_form(visit, "judge", "Undo that", hint, id=one, other=other, undo="1")
    items = tag("ul", [tag("li", line) for line in words])
    return write_section("What holds between them now", items, undo)


def judge(visit: Visit, fields: Fields) -> Json:
    """Judge a pair, or undo the judgment that holds."""
    if fields.get("undo"):
        one, other = read_field_number(fields, "id"), read_field_number(fields, "other")
        done = visit.call("memd/judge", id=one, other=other, undo=True)
        words = f"Undone between #{one} and #{other}: {done['was']}."
    else:
        order = read_text(fields, "order").split()
        one, other = (
            read_field_number({"order": number}, "order") for number in [*order, "", ""][:2]
        )
        relation = read_text(fields, "relation")
        done = visit.call(
            "memd/judge", id=one, other=other, relation=relation, reason=read_text(fields, "reason")
        )
        words = f"Judged: #{one} {relation} #{other}."
    hidden = "".join(f" #{number} is hidden." for number in done["hidden"])
    shown = "".join(f" #{number} shows again." for number in done["shown"])
    return {"say": words + hidden + shown, "go": visit.link(f"/memory/{one}")}

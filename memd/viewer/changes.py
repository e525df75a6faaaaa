"""Change memories: edit, pin and judge, which can be undone; forget and scrub, which cannot.

What would be erased is shown first, then a button erases just that.
"""

from collections.abc import Iterator
from typing import Any

from memd.errors import BadRequest
from memd.viewer.page import (
    Fields,
    Json,
    Page,
    Visit,
    make_page,
    plural,
    read_field_number,
    read_text,
    render,
    shorten,
)

_LISTED_MAX = 20
_CRITERIA = ("query", "since", "until", "project")
_ERASED = ("ids", "event_ids", "sessions", "rows", "imported_files", "lines", "leftovers")
"""What a dry run may find; without any of it there is nothing to forget."""
_EDITED = "edited by hand"
"""How the reason of a judgment begins that an edit made."""
_RELATIONS = (
    ("supersedes", "The first holds now. The second is hidden, and its page says why."),
    ("duplicate", "Both say the same. The second is hidden, and the first counts as more certain."),
    ("contradicts", "Both cannot hold, and it is open which does. Both stay, marked."),
    ("compatible", "Both hold. Both stay, and memd does not ask again."),
    ("unrelated", "They are about different things. Both stay, and memd does not ask again."),
)


# ── Edit and pin ─────────────────────────────────────────────────────────────────────────────────


def _get(visit: Visit, *ids: int) -> list[Json]:
    return list(visit.call("memd/get", ids=list(ids))["memories"])


def show_one(visit: Visit, change: str) -> Page:
    """A memory, and a form to edit it, to pin or unpin it, or to choose the other that it is judged with."""
    number = visit.number("id")
    (memory,) = _get(visit, number)
    return make_page(f"{change} #{number}", memory=memory)


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


def find_former_versions(visit: Visit, number: int) -> list[int]:
    """Find the versions that edits of a memory replaced, so that forgetting it does not bring them back."""
    found: list[int] = []
    while len(found) < _LISTED_MAX:
        judged = [
            one["judgment"] for one in visit.call("memd/why", id=number, depth=1)["judgments"]
        ]
        before = [
            one["older_id"]
            for one in judged
            if one["newer_id"] == number
            and one["reason"].startswith(_EDITED)
            and not one["undone_at"]
        ]
        if not before or before[0] in found:
            break
        number = before[0]
        found.append(number)
    return found


def show_undo_edit(visit: Visit) -> Page:
    """Show what undoing an edit does."""
    number = visit.number("id")
    before = find_former_versions(visit, number)[:1]
    memories = _get(visit, number, *before)
    title = f"Take the edit of #{number} back"
    return make_page(title, number=number, before=before, memories=memories)


def take_back(visit: Visit, fields: Fields) -> Json:
    """Let what a memory said before its edit hold again."""
    number = read_field_number(fields, "id")
    before = find_former_versions(visit, number)[:1]
    if not before:
        raise BadRequest(f"#{number} was not edited")
    reason = "the edit was taken back"
    visit.call("memd/judge", id=before[0], other=number, relation="supersedes", reason=reason)
    words = f"#{before[0]} holds again, as it was before the edit."
    return {"say": words, "go": visit.link(f"/memory/{before[0]}")}


def pin(visit: Visit, fields: Fields) -> Json:
    """Pin or unpin."""
    number, pinned = read_field_number(fields, "id"), bool(fields.get("pinned"))
    visit.call("memd/pin", id=number, pinned=pinned)
    words = f"#{number} is {'pinned' if pinned else 'no longer pinned'}."
    return {"say": words, "go": visit.link(f"/memory/{number}")}


# ── Judge ────────────────────────────────────────────────────────────────────────────────────────


def show_judge(visit: Visit) -> Page:
    """Two memories, what they are to each other now, and what they may be."""
    one, other = visit.number("id"), visit.number("other")
    return make_page(
        f"Judge #{one} and #{other}",
        one=one,
        other=other,
        memories=_get(visit, one, other),
        relations=_RELATIONS,
        present=_describe_present(visit, one, other),
    )


def _describe_present(visit: Visit, one: int, other: int) -> list[str]:
    """Say which judgment on two memories holds now; nothing if none does."""
    why = visit.call("memd/why", id=one, depth=1)
    hiding = [link["supersession"] for link in why["relations"] if link["other"]["id"] == other]
    judged = [link["judgment"] for link in why["judgments"] if link["other"]["id"] == other]
    words = [
        f"#{link['newer_id']} replaces #{link['older_id']} (rule {link['rule']})"
        for link in hiding
        if link["undone_at"] is None and link["rule"] != "judged"
    ]
    return words + [
        f"the {link['who']} judged: #{link['newer_id']} {link['relation']} #{link['older_id']}, “{link['reason']}”"
        for link in judged
        if link["undone_at"] is None
    ]


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
        relation, reason = read_text(fields, "relation"), read_text(fields, "reason")
        done = visit.call("memd/judge", id=one, other=other, relation=relation, reason=reason)
        words = f"Judged: #{one} {relation} #{other}."
    hidden = "".join(f" #{number} is hidden." for number in done["hidden"])
    shown = "".join(f" #{number} shows again." for number in done["shown"])
    return {"say": words + hidden + shown, "go": visit.link(f"/memory/{one}")}


# ── Forget ───────────────────────────────────────────────────────────────────────────────────────


def show_forget(visit: Visit) -> Page:
    """Show what goes with a memory, and a button that erases it."""
    number = visit.number("id")
    ids = [number, *find_former_versions(visit, number)]
    plan = visit.call("memd/forget", ids=ids, dry_run=True)
    selection = {"ids": " ".join(map(str, ids))}
    return _show_plan(f"Forget #{number}", plan, selection, versions=len(ids) - 1)


def show_forget_session(visit: Visit) -> Page:
    """Show what goes with a session, and a button that erases it."""
    key = visit.places["key"]
    plan = visit.call("memd/forget", session=key, dry_run=True)
    return _show_plan("Forget this session", plan, {"session": key}, versions=0)


def _show_plan(title: str, plan: Json, selection: Json, *, versions: int) -> Page:
    return make_page(title, title=title, versions=versions, **_describe_plan(plan, selection))


def preview_forget_words(visit: Visit, fields: Fields) -> Json:
    """Show what would be erased that has some words, or is of some time."""
    selection = {name: text for name in _CRITERIA if (text := read_text(fields, name))}
    plan = visit.call("memd/forget", **selection, dry_run=True)
    return {"html": render("forget_plan.html", visit, **_describe_plan(plan, selection))}


def _describe_plan(plan: Json, selection: Json) -> Json:
    """The rows that a dry run says would be erased and would stay, and the fields of its button."""
    return {
        "plan": plan if any(plan[name] for name in _ERASED) else None,
        "goes": list(_describe_erased(plan)),
        "stays": list(_describe_staying(plan)),
        "hidden": {**selection, "token": plan["token"]},
    }


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
    words = (
        f"Forgotten: {plural(done['count'], 'memory')} and {plural(done['events'], 'event')}.{wait}"
    )
    return {"say": words, "go": visit.link("/")}


# ── Scrub ────────────────────────────────────────────────────────────────────────────────────────


def _scrub(visit: Visit, pattern: str, *, dry_run: bool) -> Any:
    return visit.call("memd/scrub", pattern=pattern or None, secrets=not pattern, dry_run=dry_run)


def preview_scrub(visit: Visit, fields: Fields) -> Json:
    """Show how much a scrub would replace."""
    pattern = read_text(fields, "pattern")
    plan = _scrub(visit, pattern, dry_run=True)
    return {"html": render("scrub_plan.html", visit, plan=plan, pattern=pattern)}


def scrub(visit: Visit, fields: Fields) -> Json:
    """Replace it."""
    done = _scrub(visit, read_text(fields, "pattern"), dry_run=False)
    words = f"Replaced in {plural(sum(done['rows'].values()), 'row')}."
    return {"say": words, "go": visit.link("/health")}

"""A memory: what it says, whose word it is, its quotes, what replaced it and what it replaced, its uses, its graph.

Its changes: edit, pin and judge, which can be undone; forget and scrub, which cannot: what would be erased is shown first, then
a button erases just that. The graph is a picture: two steps of edges, in columns, each node leading to its page.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from memd.errors import BadRequest
from memd.viewer.page import (
    Fields,
    Json,
    Page,
    Visit,
    make_page,
    plural,
    read_field_number,
    read_number,
    read_text,
    render,
    shorten,
    strip_code,
)

PART_CHARACTERS = 20_000
"""Of a longer text a page shows this much at a time."""
_FILES_SHOWN = 100
_VERDICTS = {
    "current": "It holds.",
    "unconfirmed": "It holds as far as memd knows: it was said once.",
    "expired": "It has expired.",
    "archived": "It was put away, and shows again when it is said again.",
}


def show_memory(visit: Visit) -> Page:
    """Everything about one memory."""
    number = visit.number("id")
    found = visit.call("memd/why", id=number, depth=2)
    (memory,) = visit.call("memd/get", ids=[number])["memories"]
    title = shorten(memory["title"], 300) or "(no title)"
    verdict = found["verdict"]
    parts = max(1, -(-len(memory["body"]) // PART_CHARACTERS))
    part = min(max(read_number(visit.params.get("part", "")) or 1, 1), parts)
    sessions = (one["position"]["session"] for one in found["sources"])
    return make_page(
        f"#{number} {title[:60]}",
        memory=memory,
        found=found,
        title=title,
        verdict=_VERDICTS.get(verdict, f"{verdict[:1].upper()}{verdict[1:]}."),
        is_well=verdict in {"current", "unconfirmed"},
        text=memory["body"][(part - 1) * PART_CHARACTERS : part * PART_CHARACTERS],
        part=part,
        parts_count=parts,
        size=len(memory["body"].encode("utf-8", "replace")),
        is_plain=visit.params.get("plain") == "1",
        newer=[one for one in reversed(found["relations"]) if one["is_newer"]],
        older=[one for one in found["relations"] if not one["is_newer"]],
        graph=draw_graph(visit, found),
        session=next((key for key in sessions if key), ""),
        files=[(file, _find_path(file, found)) for file in memory["files"][:_FILES_SHOWN]],
    )


def _find_path(file: str, found: Json) -> str | None:
    """The whole path by which the graph knows a file that a memory names; None if it does not."""
    ends = (edge["to_id"] for edge in found["edges"] if edge["to_kind"] == "file")
    return next((end for end in ends if end == file or end.endswith(f"/{file}")), None)


def show_node(visit: Visit) -> Page:
    """A file or an event: what is known of it, by its edges."""
    found = visit.call("memd/why", id=visit.params.get("id", ""), depth=2, project=visit.project)
    kind, _, name = found["node"].partition(":")
    ends = {
        (edge[f"{way}_kind"], edge[f"{way}_id"])
        for edge in found["edges"]
        for way in ("from", "to")
    }
    ids = sorted((int(number) for end, number in ends if end == "summary"), reverse=True)[:50]
    memories = visit.call("memd/get", ids=ids)["memories"] if ids else []
    graph = draw_graph(visit, found)
    return make_page(name[:60], kind=kind, name=name, found=found, memories=memories, graph=graph)


# ── The graph ────────────────────────────────────────────────────────────────────────────────────

_COLUMN, _ROW, _WIDTH, _HEIGHT = 330, 34, 250, 26
_NODES_MAX = (1, 14, 28)
"""Nodes that are drawn of each step."""
_CHARACTERS = 32
_VERBS = {
    "derives_from": ("comes from", "is told by"),
    "references": ("names", "is named by"),
    "edits": ("edits", "is edited by"),
    "causes": ("causes", "is caused by"),
    "contradicts": ("contradicts", "is contradicted by"),
    "similar_to": ("is like", "is like"),
    "supersedes": ("replaces", "is replaced by"),
    "imports": ("imports", "is imported by"),
    "calls": ("calls", "is called by"),
}


@dataclass(slots=True)
class _DrawnNode:
    name: str
    step: int
    parent: str = ""
    verb: str = ""
    row: float = 0
    children: list[str] = field(default_factory=list)


def draw_graph(visit: Visit, found: Json) -> Markup | None:
    """The picture of what `memd/why` tells of a node; None if nothing is linked to it."""
    links = list(_read_links(found))
    nodes, left = _walk(found["node"], links)
    if len(nodes) == 1:
        return None
    rows = _place_rows(nodes, found["node"])
    titles = {
        **found["titles"],
        **{f"summary:{r['other']['id']}": r["other"]["title"] for r in found["relations"]},
    }
    if found["summary"]:
        titles[found["node"]] = found["summary"]["title"]
    steps = max(one.step for one in nodes.values())
    return render(
        "graph.html",
        visit,
        left=left,
        edges=[_draw_edge(nodes[one.parent], one) for one in nodes.values() if one.parent],
        nodes=[_draw_node(visit, one, titles, found) for one in nodes.values()],
        width=_COLUMN * steps + _WIDTH + 4,
        height=max(rows, 1) * _ROW + 10,
    )


def _read_links(found: Json) -> Iterator[tuple[str, str, str]]:
    """(from, type, to) of every edge and supersession."""
    for edge in found["edges"]:
        yield (
            f"{edge['from_kind']}:{edge['from_id']}",
            edge["type"],
            f"{edge['to_kind']}:{edge['to_id']}",
        )
    for relation in found["relations"]:
        link = relation["supersession"]
        if link["undone_at"] is None:
            yield f"summary:{link['newer_id']}", "supersedes", f"summary:{link['older_id']}"


def _walk(start: str, links: list[tuple[str, str, str]]) -> tuple[dict[str, _DrawnNode], int]:
    """The nodes within two steps, memories before files before events, and how many were left out."""
    nodes, left = {start: _DrawnNode(start, 0)}, 0
    near: dict[str, dict[str, str]] = {}
    for begin, kind, end in links:
        there, back = _VERBS.get(kind, (kind, kind))
        near.setdefault(begin, {}).setdefault(end, there)
        near.setdefault(end, {}).setdefault(begin, back)
    frontier = [start]
    for step in (1, 2):
        offered = [
            (parent, name, verb)
            for parent in frontier
            for name, verb in near.get(parent, {}).items()
            if name not in nodes
        ]
        offered.sort(
            key=lambda one: (frontier.index(one[0]), _ORDER.get(one[1].partition(":")[0], 1))
        )
        frontier = []
        for parent, name, verb in offered:
            if name in nodes:
                continue
            if len(frontier) == _NODES_MAX[step]:
                left += 1
                continue
            nodes[name] = _DrawnNode(name, step, parent, verb)
            nodes[parent].children.append(name)
            frontier.append(name)
    return nodes, left


_ORDER = {"summary": 0, "file": 1, "event": 2}


def _place_rows(nodes: Mapping[str, _DrawnNode], start: str) -> int:
    """Give each node its row, a parent in the middle of its children; how many rows there are."""
    used = 0

    def place(name: str) -> float:
        nonlocal used
        node = nodes[name]
        if not node.children:
            node.row = used
            used += 1
            return node.row
        rows = [place(child) for child in node.children]
        node.row = (rows[0] + rows[-1]) / 2
        return node.row

    place(start)
    return used


def _center(node: _DrawnNode) -> float:
    return node.row * _ROW + 5 + _HEIGHT / 2


def _draw_edge(parent: _DrawnNode, node: _DrawnNode) -> Json:
    x1, x2 = parent.step * _COLUMN + _WIDTH, node.step * _COLUMN
    y1, y2 = _center(parent), _center(node)
    bend = (x1 + x2) / 2
    path = f"M{x1} {y1:.1f}C{bend} {y1:.1f} {bend} {y2:.1f} {x2} {y2:.1f}"
    return {"path": path, "verb": node.verb, "x": x2 - 6, "y": f"{y2 - 3:.1f}"}


def _draw_node(visit: Visit, node: _DrawnNode, titles: Mapping[str, str], found: Json) -> Json:
    kind, _, name = node.name.partition(":")
    label = name.rstrip("/").rpartition("/")[2] or name
    if kind == "summary":
        label = f"#{name} {strip_code(titles.get(node.name, ''))}"
    elif kind == "event":
        label = _name_event(name, found)
    named = f"file:{name}" if kind == "settings" else node.name  # what it sets is in the file
    css = kind if kind in _ORDER else "other"
    return {
        "href": visit.link(f"/memory/{name}")
        if kind == "summary"
        else visit.link("/node", id=named),
        "title": name if kind == "file" else label,
        "label": shorten(label, _CHARACTERS),
        "css": css if node.step else f"{css} here",
        "x": node.step * _COLUMN + 1,
        "y": node.row * _ROW + 5,
        "width": _WIDTH,
        "height": _HEIGHT,
    }


def _name_event(number: str, found: Json) -> str:
    for source in found["sources"]:
        if str(source["event"]["id"]) == number:
            what = source["event"]["tool"] or source["event"]["kind"].replace("_", " ")
            return f"{what}: {source['quote']}" if source["quote"] else what
    return f"event {number}"


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

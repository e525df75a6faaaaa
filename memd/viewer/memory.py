"""A memory: what it says, whose word it is, its quotes, what replaced it and what it replaced, its uses, its graph.

The graph is a picture: two steps of edges, in columns, each node leading to its page.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from markupsafe import Markup

from memd.viewer.page import Json, Page, Visit, make_page, read_number, render, shorten

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
        label = f"#{name} {titles.get(node.name, '')}"
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

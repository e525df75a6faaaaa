"""A memory: what it says, whose word it is, its quotes, what replaced it and what it replaced, its graph, its uses."""

from memd.viewer.graph import draw_graph
from memd.viewer.page import Json, Page, Visit, read_number, render_page, shorten

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
    return render_page(
        visit,
        "memory.html",
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
    return render_page(
        visit,
        "node.html",
        name[:60],
        kind=kind,
        name=name,
        found=found,
        memories=memories,
        graph=graph,
    )

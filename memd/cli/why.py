"""`memd why`: where a memory comes from, and whether it is still true."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from memd.cli import door, graph, show


def run(
    node: Annotated[
        str, typer.Argument(metavar="ID", help="12, #12, or a node such as file:/a/b.py.")
    ],
    depth: Annotated[
        int | None,
        typer.Option(metavar="N", help="How far to follow the edges: 1 to 6; 2 if left out."),
    ] = None,
    as_graph: Annotated[
        bool, typer.Option("--graph", help="Draw what it is linked to, as a tree.")
    ] = False,
    as_dot: Annotated[
        bool,
        typer.Option("--dot", help="The same for Graphviz: memd why 12 --dot | dot -Tsvg."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> None:
    """Show the events behind a memory, what replaced it, and what is linked to it."""
    if as_graph + as_dot + as_json > 1:
        door.refuse("give only one of --graph, --dot and --json")
    found = door.call("memd/why", id=node, depth=depth)
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        draw = graph.dot if as_dot else graph.tree if as_graph else _lines
        print("\n".join(draw(found)))


def _lines(found: dict[str, Any]) -> Iterator[str]:
    memory = found["summary"]
    yield show.headline(memory) if memory else show.line(found["node"])
    means = f" ({show.line(found['rule'])})" if found["rule"] else ""
    made = f"; made by rule {memory['rule']}{means}" if memory else ""
    yield f"  {show.line(found['verdict'])}{made}"
    yield from _used(found["access"])
    yield from _sources(found["sources"])
    for relation in found["relations"]:
        yield _relation(relation)
    for judged in found["judgments"]:
        yield _judgment(judged)
    yield from _around(found)


def _used(access: dict[str, Any]) -> Iterator[str]:
    if access["count"]:
        last = show.minute(access["last_at"])
        yield f"  used in {show.plural(access['count'], 'answer')}, the last {last}"
    if access["shown"]:
        sessions = show.plural(access["sessions"], "session")
        yield f"  shown unasked {show.plural(access['shown'], 'time')} in {sessions}:"
    for one in access["latest"]:
        title = show.line(one["session_title"] or one["session"])
        yield f"    {show.minute(one['at'])}  {one['moment']}  “{title}”: {show.line(one['reason'])}"


def _sources(sources: list[dict[str, Any]]) -> Iterator[str]:
    """The events with their words; which transcript they stand in is told where it changes."""
    last = ""
    for source in sources:
        event, at = source["event"], source["position"]
        what = event["tool"] or event["kind"]
        ids = ("line", at["line"]), ("tool use", at["tool_use"]), ("prompt", at["prompt"])
        place = next((f"  {name} {show.line(one)}" for name, one in ids if one), "")
        yield f"  from event {event['id']}  {show.minute(event['at'])}  {show.line(what)}{place}"
        where = at["transcript"] or (f"session {at['session']}" if at["session"] else "")
        if where and where != last:
            yield f"    in {show.line(where)}"
        last = where
        yield from show.snippet(source["quote"], width=96)


def _around(found: dict[str, Any]) -> Iterator[str]:
    """Tell the edges, but not again the events that were told, and what their memories are called."""
    told = {f"event:{source['event']['id']}" for source in found["sources"]}
    named: dict[str, None] = {}
    for edge in found["edges"]:
        start, end = (f"{edge[f'{way}_kind']}:{edge[f'{way}_id']}" for way in ("from", "to"))
        if start == found["node"] and end in told:
            continue
        named |= dict.fromkeys((start, end))
        yield f"  {_node(edge, 'from')} {edge['type']} {_node(edge, 'to')}  ({edge['rule']})"
    for node, title in found["titles"].items():
        if node in named and node != found["node"]:
            yield f"  #{node.removeprefix('summary:')} is “{show.line(title)}”"


def _relation(relation: dict[str, Any]) -> str:
    link = relation["supersession"]
    gone = link["undone_at"]
    if relation["is_newer"]:
        way = "was superseded by" if gone else "superseded by"
    else:
        way = "had superseded" if gone else "supersedes"
    cosine = "" if link["cosine"] is None else f", cosine {link['cosine']:.3f}"
    undone = f"; taken back {show.minute(gone)}" if gone else ""
    guard = f", {show.line(link['guard'])}" if link["guard"] else ""
    return f"  {way} {show.headline(relation['other'])}\n    by rule {link['rule']}{cosine}{guard}{undone}"


def _judgment(judged: dict[str, Any]) -> str:
    said = judged["judgment"]
    undone = f" (taken back {show.minute(said['undone_at'])})" if said["undone_at"] else ""
    pair = f"#{said['newer_id']} {said['relation']} #{said['older_id']}"
    return (
        f"  judged by the {show.line(said['who'])} {show.minute(said['at'])}{undone}:"
        f" {pair}: {show.line(said['reason'])}"
    )


def _node(edge: dict[str, Any], end: str) -> str:
    kind, number = edge[f"{end}_kind"], show.line(edge[f"{end}_id"])
    return f"#{number}" if kind == "summary" else f"{kind}:{number}"

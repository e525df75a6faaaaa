"""`memd why`: where a memory comes from, and whether it is still true."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from memd.cli import door, show


def run(
    node: Annotated[
        str, typer.Argument(metavar="ID", help="12, #12, or a node such as file:/a/b.py.")
    ],
    depth: Annotated[
        int | None,
        typer.Option(metavar="N", help="How far to follow the edges: 1 to 6; 2 if left out."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, for programs.")] = False,
) -> None:
    """Show the events behind a memory, what replaced it, and what is linked to it."""
    found = door.call("memd/why", id=node, depth=depth)
    print(json.dumps(found, ensure_ascii=False) if as_json else "\n".join(_lines(found)))


def _lines(found: dict[str, Any]) -> Iterator[str]:
    memory = found["summary"]
    yield show.headline(memory) if memory else show.line(found["node"])
    made = f"; made by rule {memory['rule']}" if memory else ""
    yield f"  {show.line(found['verdict'])}{made}"
    for source in found["sources"]:
        event = source["event"]
        what = event["tool"] or event["kind"]
        yield f"  from event {event['id']}  {show.minute(event['at'])}  {what}"
        yield from show.snippet(source["quote"], width=96)
    for relation in found["relations"]:
        yield _relation(relation)
    yield from _around(found)


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
    way = "superseded by" if relation["is_newer"] else "supersedes"
    cosine = "" if link["cosine"] is None else f", cosine {link['cosine']:.3f}"
    undone = ", undone" if link["undone_at"] else ""
    guard = f", {show.line(link['guard'])}" if link["guard"] else ""
    return f"  {way} {show.headline(relation['other'])}\n    by rule {link['rule']}{cosine}{guard}{undone}"


def _node(edge: dict[str, Any], end: str) -> str:
    kind, number = edge[f"{end}_kind"], show.line(edge[f"{end}_id"])
    return f"#{number}" if kind == "summary" else f"{kind}:{number}"

"""The graph around a memory, drawn: as a tree of lines for a terminal, and as Graphviz DOT.

Every edge is drawn once, with its type and its direction; a node that hangs on several is drawn in
full where it is nearest to the one asked about. What is drawn is recalled data: no title can end a
string or a line of it.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memd.cli import show

_TITLE_CHARACTERS = 80
_PATH_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Arrow:
    """One edge, or one supersession."""

    start: str
    """A node: `summary:12`, `file:/a/b.py`."""
    type: str
    end: str
    is_undone: bool = False

    @property
    def name(self) -> str:
        """Its type, as it is drawn."""
        return f"{self.type} (undone)" if self.is_undone else self.type


def arrows(found: Mapping[str, Any]) -> list[Arrow]:
    """All that links the nodes of an answer of `memd/why`, each once."""
    drawn = [
        Arrow(
            f"{edge['from_kind']}:{edge['from_id']}",
            edge["type"],
            f"{edge['to_kind']}:{edge['to_id']}",
        )
        for edge in found["edges"]
    ]
    for one in found["relations"]:
        link = one["supersession"]
        newer, older = f"summary:{link['newer_id']}", f"summary:{link['older_id']}"
        drawn.append(Arrow(newer, "supersedes", older, is_undone=link["undone_at"] is not None))
    return list(dict.fromkeys(drawn))


def tree(found: Mapping[str, Any]) -> Iterator[str]:
    """The graph as an indented tree from the node asked about; `→` leads away from a node, `←` to it."""
    names = _names(found)
    branches = _branches(found["node"], arrows(found))
    yield names.get(found["node"]) or _plain(found["node"])
    yield from _drawn(found["node"], branches, names, "")


@dataclass(frozen=True, slots=True)
class _Branch:
    arrow: Arrow
    other: str
    is_first: bool
    """Whether the other node is drawn in full here."""


def _branches(root: str, drawn: list[Arrow]) -> dict[str, list[_Branch]]:
    """Which edges hang on which node, the nearest to the root first."""
    at: dict[str, list[Arrow]] = {}
    for arrow in drawn:
        for node in {arrow.start, arrow.end}:
            at.setdefault(node, []).append(arrow)
    reached, used = {root}, set[Arrow]()
    branches: dict[str, list[_Branch]] = {}
    waiting = deque([root])
    while waiting:
        node = waiting.popleft()
        for arrow in at.get(node, ()):
            if arrow in used:
                continue
            used.add(arrow)
            other = arrow.end if arrow.start == node else arrow.start
            branches.setdefault(node, []).append(_Branch(arrow, other, other not in reached))
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    return branches


def _drawn(
    node: str, branches: Mapping[str, list[_Branch]], names: Mapping[str, str], indent: str
) -> Iterator[str]:
    hanging = branches.get(node, [])
    for number, one in enumerate(hanging, 1):
        is_last = number == len(hanging)
        link = f"{one.arrow.name} →" if one.arrow.start == node else f"← {one.arrow.name}"
        again = "" if one.is_first else "  (drawn elsewhere)"
        name = names.get(one.other) or _plain(one.other)
        yield f"{indent}{'└─' if is_last else '├─'} {link} {name}{again}"
        if one.is_first:
            below = indent + ("   " if is_last else "│  ")
            yield from _drawn(one.other, branches, names, below)


def dot(found: Mapping[str, Any]) -> Iterator[str]:
    """The graph in the language of Graphviz, for `dot -Tsvg`."""
    names, drawn = _names(found), arrows(found)
    nodes = list(dict.fromkeys([found["node"], *(n for a in drawn for n in (a.start, a.end))]))
    numbers = {node: f"n{number}" for number, node in enumerate(nodes)}
    yield "digraph memd {"
    yield '  rankdir="LR";'
    yield '  node [shape="box", fontname="sans-serif"];'
    yield '  edge [fontname="sans-serif", fontsize="10"];'
    for node in nodes:
        shape = "" if node.startswith("summary:") else ', style="rounded"'
        bold = ', penwidth="2"' if node == found["node"] else ""
        yield f"  {numbers[node]} [label={_quoted(names.get(node) or _plain(node))}{shape}{bold}];"
    for arrow in drawn:
        style = ', style="dotted"' if arrow.is_undone else ""
        yield f"  {numbers[arrow.start]} -> {numbers[arrow.end]} [label={_quoted(arrow.name)}{style}];"
    yield "}"


def _quoted(text: str) -> str:
    """A string of DOT; a backslash of the text's own would be an escape in a label."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _names(found: Mapping[str, Any]) -> dict[str, str]:
    """What the memories and events of an answer are called."""
    events = {
        f"event:{one['event']['id']}": f"event:{one['event']['id']} {show.line(one['event']['tool'] or one['event']['kind'])}"
        for one in found["sources"]
    }
    titles = {node: title for node, title in found["titles"].items() if title}
    titles |= {
        f"summary:{one['other']['id']}": one["other"]["title"] for one in found["relations"]
    }
    if found["summary"]:
        titles[found["node"]] = found["summary"]["title"]
    return events | {
        node: f"{_plain(node)} “{_short(title, _TITLE_CHARACTERS)}”"
        for node, title in titles.items()
    }


def _plain(node: str) -> str:
    """A node by its id alone: #12, event:7, file:/a/b.py."""
    if node.startswith("summary:"):
        return f"#{show.line(node.removeprefix('summary:'))}"
    return _short(node, _PATH_CHARACTERS)


def _short(text: str, limit: int) -> str:
    flat = show.line(text)
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"

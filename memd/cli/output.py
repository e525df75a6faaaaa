"""Text rendering."""

import datetime as dt
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# MERGED from memd.cli.show:
# MERGED What the commands print: times, sizes, memories, each as lines of plain text, in local time.
# MERGED
# MERGED Text that was recalled is data: control characters never reach the terminal.


_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_KIB = 1024
_SNIPPET_LINES = 3
_TIME_MAX = 253_402_214_400_000
"""The last day of the year 9999, whatever the zone; later times have no date."""

Row = Mapping[str, Any]


def clean(text: str) -> str:
    """Take out what could move the cursor, ring or lie about the order of letters."""
    return _CONTROL.sub("", text)


def line(text: str) -> str:
    """Put a text on one line."""
    return clean(" ".join(text.split()))


def day(at: int) -> str:
    """Write a time as a local date: 2026-11-20."""
    return _local(at).strftime("%Y-%m-%d")


def weekday(at: int) -> str:
    """Name a time's local day of the week: Friday."""
    return _local(at).strftime("%A")


def minute(at: int) -> str:
    """Write a time as a local date and time: 2026-11-20 14:05."""
    return _local(at).strftime("%Y-%m-%d %H:%M")


def _local(at: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(min(max(at, 0), _TIME_MAX) / 1000, tz=dt.UTC).astimezone()


def span(seconds: float) -> str:
    """Write a duration by its two largest units: 3 h 12 min."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for size, name in _UNITS:
        count, left = divmod(left, size)
        if count or (size == 1 and not parts):
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


def size(count: int) -> str:
    """Write a number of bytes: 12.3 MB."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < _KIB:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= _KIB
    return f"{amount:.1f} GB"


def plural(count: int, noun: str) -> str:
    """Write a count with its noun: 1 memory, 1,200 memories."""
    is_ies = noun.endswith("y") and noun[-2] not in "aeiou"
    nouns = noun[:-1] + "ies" if is_ies else noun + "s"
    return f"{count:,} {noun if count == 1 else nouns}"


def note(text: str) -> str:
    """Put a note on one line, with what it advises as it is typed here."""
    return line(text).replace("project: all", "--project all")


def headline(memory: Row, *, clock: bool = False) -> str:
    """Write a memory on one line: `#12 fix  2026-11-20  title`; with `clock`, the time of day too.

    Of another project than the one where the user stands, that project's name stands behind it.
    """
    against = memory.get("contradicted_by") or ()
    marks = "".join(
        (
            f"  (superseded by #{memory['superseded_by']})"
            if memory.get("superseded_by")
            else "",
            "  (pinned)" if memory.get("pinned_at") else "",
            f"  (contradicted by {', '.join(f'#{n}' for n in against)})" if against else "",
            f"  [{line(memory['elsewhere'])}]" if memory.get("elsewhere") else "",
        )
    )
    at = (minute if clock else day)(memory["at"])
    return f"#{memory['id']} {memory['kind']}  {at}  {line(memory['title'])}{marks}"


def snippet(text: str, *, width: int) -> Iterator[str]:
    """Indent a snippet, cut to a few lines of this width."""
    words = clean(" ".join(text.split())).split(" ")
    lines: list[str] = [""]
    for word in words:
        if len(lines[-1]) + len(word) + 1 > width - 4 and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    shown = lines[:_SNIPPET_LINES]
    if len(lines) > len(shown):
        shown[-1] += " …"
    yield from (f"    {found}" for found in shown if found)


def score(hit: Row) -> str:
    """Write a score as the steps that make it: `2.53 = (lexical 1.9 + recency 0.4) * kind 1.1`."""
    signs = {"+": "+", "*": "*", "<": "at most"}
    steps, is_sum = "", False
    for part in hit["parts"]:
        if part["op"] == "*" and is_sum:
            steps, is_sum = f"({steps})", False
        is_sum |= part["op"] != "*" and bool(steps)
        step = f"{signs[part['op']]} {part['name']} {part['value']:.3g}"
        steps = f"{steps} {step}" if steps else step.removeprefix("+ ")
    ranks = [
        f"{leg} #{rank}"
        for leg in ("topic", "lexical", "vector", "learned")
        if (rank := hit.get(f"{leg}_rank")) is not None
    ]
    if hit.get("cosine") is not None:
        ranks.append(f"cosine {hit['cosine']:.3f}")
    found = f"  ({', '.join(ranks)})" if ranks else ""
    return f"    {hit['score']:.4g} = {steps}{found}"


def counts(found: Mapping[str, Any]) -> str:
    """Write reasons with their counts: ignored path 3, own tool 1."""
    return ", ".join(f"{line(str(name))} {value}" for name, value in found.items())


def table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Align labels and what stands beside them; an empty label continues the row above."""
    for label, text in rows:
        yield f"{label:<11}{clean(text)}".rstrip()


# MERGED from memd.cli.graph:
# MERGED The graph around a memory, drawn: as a tree of lines for a terminal, and as Graphviz DOT.
# MERGED
# MERGED Every edge is drawn once, with its type and its direction; a node that hangs on several is drawn in
# MERGED full where it is nearest to the one asked about. What is drawn is recalled data: no title can end a
# MERGED string or a line of it.


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
        f"event:{one['event']['id']}": f"event:{one['event']['id']} {line(one['event']['tool'] or one['event']['kind'])}"
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
        return f"#{line(node.removeprefix('summary:'))}"
    return _short(node, _PATH_CHARACTERS)


def _short(text: str, limit: int) -> str:
    flat = line(text)
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"

"""Format what commands print: times, sizes, memories and their graph, as plain text in local time.

Recalled text is data: control characters never reach the terminal.
"""

import datetime as dt
import os
import re
import sys
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Characters that move the cursor, ring the bell, change the order of letters, or are not seen at all; U+200C and U+200D,
which join letters and emoji, are left."""
_DURATION_UNITS_S = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_SNIPPET_LINES_MAX = 4
_TIME_MAX_MS = 253_402_214_400_000
"""The last day of the year 9999 in any time zone; Python has no later dates."""
_TITLE_CHARACTERS_MAX = 80
_PATH_CHARACTERS_MAX = 100

Memory = Mapping[str, Any]


def clean(text: str) -> str:
    """Remove control characters except tabs and newlines."""
    return _CONTROL.sub("", text)


def one_line(text: str) -> str:
    """Put a text on one line, without control characters."""
    return clean(" ".join(text.split()))


def format_date(at: int) -> str:
    """Format a time in UTC milliseconds as a local date: 2026-11-20."""
    return _local_time(at).strftime("%Y-%m-%d")


def format_weekday(at: int) -> str:
    """Format a time in UTC milliseconds as a local day of the week: Friday."""
    return _local_time(at).strftime("%A")


def format_time(at: int) -> str:
    """Format a time in UTC milliseconds as a local date and time: 2026-11-20 14:05."""
    return _local_time(at).strftime("%Y-%m-%d %H:%M")


def _local_time(at: int) -> dt.datetime:
    seconds = min(max(at, 0), _TIME_MAX_MS) / 1000
    return dt.datetime.fromtimestamp(seconds, tz=dt.UTC).astimezone()


def format_duration(seconds: float) -> str:
    """Format a duration by its two largest units: 3 h 12 min."""
    left = max(0, int(seconds))
    parts: list[str] = []
    for size, name in _DURATION_UNITS_S:
        count, left = divmod(left, size)
        if count or (size == 1 and not parts):
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


def format_ago(at: int, now: float) -> str:
    """Format how long ago a time was; both in UTC milliseconds: 3 h 12 min ago."""
    return f"{format_duration((now - at) / 1000)} ago"


def format_size(count: int) -> str:
    """Format a number of bytes: 12.3 MB."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1024:  # noqa: PLR2004  # a kB has as many bytes
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GB"


def plural(count: int, noun: str) -> str:
    """Format a count with its noun: 1 memory, 1,200 memories."""
    is_ies = noun.endswith("y") and noun[-2] not in "aeiou"
    nouns = noun[:-1] + "ies" if is_ies else noun + "s"
    return f"{count:,} {noun if count == 1 else nouns}"


def format_counts(counts: Mapping[str, Any]) -> str:
    """Format names with their counts: ignored path 3, own tool 1."""
    return ", ".join(f"{one_line(str(name))} {value}" for name, value in counts.items())


def format_row(label: str, text: str, width: int = 11) -> str:
    """Put a text behind its label, in a column that is as wide as this, and apart from a longer label."""
    return f"{label:<{width - 1}} {text}".rstrip()


def format_table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Align labels and texts; an empty label continues the row above."""
    yield from (format_row(label, clean(text)) for label, text in rows)


# ── Memories ─────────────────────────────────────────────────────────────────────────────────────


def format_headline(memory: Memory, *, with_time: bool = False) -> str:
    """Format a memory as one line: `#12 fix (agent)  2026-11-20  title`, then its project if another."""
    marks = [f"  ({mark})" for mark in list_marks(memory)]
    marks += [f"  [{one_line(memory['elsewhere'])}]"] if memory.get("elsewhere") else []
    at = (format_time if with_time else format_date)(memory["at"])
    title = one_line(memory["title"])
    who = f" ({memory['speaker']})" if "speaker" in memory else ""
    return f"#{memory['id']} {memory['kind']}{who}  {at}  {title}{''.join(marks)}"


def list_marks(memory: Memory) -> list[str]:
    """List what a reader must know before believing a memory: superseded by #3, pinned, contradicted by #4."""
    against, alike = memory.get("contradicted_by") or (), memory.get("alike") or ()
    marks = (
        f"of {one_line(memory['author'])}" if memory.get("author") else "",
        one_line(memory.get("unproved") or ""),
        _name_superseder(memory),
        f"{len(alike)} more like it: {', '.join(f'#{n}' for n in alike)}" if alike else "",
        one_line(memory["older_value"]) if memory.get("older_value") else "",
        "pinned" if memory.get("pinned_at") else "",
        f"from {memory['client']}" if memory.get("client") else "",
        f"replaces {one_line(memory['replaces'])}" if memory.get("replaces") else "",
        one_line(memory.get("said_since") or ""),
        memory.get("contradiction")
        or (f"contradicted by {', '.join(f'#{n}' for n in against)}" if against else ""),
    )
    return [mark for mark in marks if mark]


def _name_superseder(memory: Memory) -> str:
    number, title = memory.get("superseded_by"), memory.get("replaced_by")
    told = f": {one_line(title)}" if title else ""
    return f"superseded by #{number}{told}" if number else ""


def format_snippet(text: str, *, width: int) -> Iterator[str]:
    """Indent a snippet and cut it to a few lines of this width."""
    lines = wrap(one_line(text), width - 4, _SNIPPET_LINES_MAX)
    yield from (f"    {line}" for line in lines)


def format_score(hit: Memory) -> str:
    """Format a score by the steps that make it: `2.53 = (lexical 1.9 + recency 0.4) * kind 1.1`."""
    signs = {"+": "+", "*": "*", "<": "at most"}
    steps, is_sum = "", False
    for part in hit["parts"]:
        if part["op"] == "*" and is_sum:
            steps, is_sum = f"({steps})", False
        is_sum |= part["op"] != "*" and bool(steps)
        step = f"{signs[part['op']]} {part['name']} {part['value']:.3g}"
        steps = f"{steps} {step}" if steps else step.removeprefix("+ ")
    ranks = [
        f"{retriever} #{rank}"
        for retriever in ("topic", "lexical", "vector", "learned")
        if (rank := hit.get(f"{retriever}_rank")) is not None
    ]
    if hit.get("cosine") is not None:
        ranks.append(f"cosine {hit['cosine']:.3f}")
    return f"    {hit['score']:.4g} = {steps}" + (f"  ({', '.join(ranks)})" if ranks else "")


def format_note(text: str) -> str:
    """Put a note of the daemon on one line, with its advice as an option of the command line."""
    return one_line(text).replace("project: all", "--project all")


# ── The graph around a memory ────────────────────────────────────────────────────────────────────


def _list_edges(why: Mapping[str, Any]) -> dict[str, list[tuple[str, str]]]:
    """Node → what its edges and supersessions say, with the node at the other end: `edits →`, `← causes`."""
    found: dict[str, dict[tuple[str, str], None]] = {}
    edges = [
        (f"{e['from_kind']}:{e['from_id']}", e["type"], f"{e['to_kind']}:{e['to_id']}")
        for e in why["edges"]
    ]
    for link in (relation["supersession"] for relation in why["relations"]):
        verb = "supersedes" if link["undone_at"] is None else "supersedes (undone)"
        edges.append((f"summary:{link['newer_id']}", verb, f"summary:{link['older_id']}"))
    for start, verb, end in edges:
        found.setdefault(start, {})[f"{verb} →", end] = None
        found.setdefault(end, {})[f"← {verb}", start] = None
    return {node: list(near) for node, near in found.items()}


def format_tree(why: Mapping[str, Any]) -> Iterator[str]:
    """Draw the graph as an indented tree from the node asked about, each node once, where it is nearest.

    `→` leads away from the node above, `←` to it.
    """
    root, names, near = why["node"], _name_nodes(why), _list_edges(why)
    below: dict[str, list[tuple[str, str]]] = {root: []}
    queue = deque([root])
    while queue:
        for label, other in near.get(node := queue.popleft(), ()):
            if other not in below:
                below[other] = []
                below[node].append((label, other))
                queue.append(other)

    def draw(node: str, indent: str) -> Iterator[str]:
        for number, (label, other) in enumerate(below[node], 1):
            is_last = number == len(below[node])
            yield f"{indent}{'└─' if is_last else '├─'} {label} {names.get(other) or _name_node(other)}"
            yield from draw(other, indent + ("   " if is_last else "│  "))

    yield names.get(root) or _name_node(root)
    yield from draw(root, "")


def _name_nodes(why: Mapping[str, Any]) -> dict[str, str]:
    """Name the memories by their titles and the events by their tools."""
    titles = {node: title for node, title in why["titles"].items() if title}
    titles |= {f"summary:{r['other']['id']}": r["other"]["title"] for r in why["relations"]}
    if why["summary"]:
        titles[why["node"]] = why["summary"]["title"]
    names = {
        node: f"{_name_node(node)} “{_shorten_text(title, _TITLE_CHARACTERS_MAX)}”"
        for node, title in titles.items()
    }
    for source in why["sources"]:
        event = source["event"]
        node = f"event:{event['id']}"
        names.setdefault(node, f"{node} {one_line(event['tool'] or event['kind'])}")
    return names


def _name_node(node: str) -> str:
    """Name a node by its id: #12, event:7, file:/a/b.py."""
    if node.startswith("summary:"):
        return f"#{one_line(node.removeprefix('summary:'))}"
    return _shorten_text(node, _PATH_CHARACTERS_MAX)


def _shorten_text(text: str, limit: int) -> str:
    line = one_line(text)
    return line if len(line) <= limit else line[: limit - 1] + "…"


# ── The terminal: its width, its colours, and text made to fit ──────────────────────────

_STYLES = {
    "bold": "1", "dim": "2", "struck": "2;9", "match": "1;33", "warning": "33", "bad": "31", "good": "32",
}  # fmt: skip
_KIND_STYLES = {
    "decision": "35", "instruction": "34", "preference": "34", "fix": "32", "failure": "31",
    "change": "36", "discovery": "33", "fact": "33", "task": "95", "note": "37", "session": "2",
}  # fmt: skip
_WIDTH_MIN = 40
_QUESTION_WORDS = frozenset(
    """about and are did does for from has have how into not our should that the their them then there this was were what
    when where which who why will with you your""".split()  # noqa: SIM905  # a page of quotes reads worse
)
_WORD = re.compile(r"\w[\w.-]*\w")
_PREFIX_FROM, _LONG_FROM = 5, 7
"""Letters from which on a word may end otherwise by one letter, and by two."""


class Screen(NamedTuple):
    """The terminal or file that a command prints to."""

    width: int = 100
    is_terminal: bool = False
    """Whether to print columns for people."""
    has_color: bool = False

    def paint(self, text: str, style: str) -> str:
        """A text in a style by name, or by its numbers in the terminal's own code."""
        if not self.has_color or not text or not style:
            return text
        return f"\x1b[{_STYLES.get(style, style)}m{text}\x1b[0m"

    def paint_kind(self, kind: str, text: str) -> str:
        """A text in the colour of a kind."""
        return self.paint(text, _KIND_STYLES.get(kind, ""))

    def paint_matches(self, text: str, words: re.Pattern[str] | None, style: str = "") -> str:
        """A text in a style, with what matches `words` marked."""
        if words is None or not self.has_color:
            return self.paint(text, style)
        end, painted = 0, ""
        for found in words.finditer(text):
            painted += self.paint(text[end : found.start()], style) + self.paint(found[0], "match")
            end = found.end()
        return painted + self.paint(text[end:], style)


def find_screen() -> Screen:
    """The screen of standard output."""
    if not sys.stdout.isatty() or os.environ.get("MEMD_PLAIN"):
        return Screen()
    import shutil  # only now: `memd status` runs in health checks and loads little

    width = max(shutil.get_terminal_size().columns, _WIDTH_MIN)
    has_color = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Screen(width, is_terminal=True, has_color=has_color)


# ── Text that fits ───────────────────────────────────────────────────────────────────────────────


def measure(text: str) -> int:
    """The columns that a text takes: two for each wide character, none for a mark above another."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def cut(text: str, width: int) -> str:
    """A text of at most this many columns; `…` stands for what is missing."""
    if measure(text) <= width:
        return text
    kept = text[: max(width - 1, 0)]
    while kept and measure(kept) > width - 1:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def wrap(text: str, width: int, lines_max: int | None = None) -> Iterator[str]:
    """A text in lines of at most this many columns; the last of `lines_max` ends in `…` if there is more."""
    lines: list[str] = [""]
    for word in text.split():
        if lines[-1] and measure(lines[-1]) + measure(word) + 1 > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    if lines_max is not None and len(lines) > lines_max:
        lines[lines_max - 1] = cut(f"{lines[lines_max - 1]} …", width)
    yield from (cut(line, width) for line in lines[:lines_max] if line)


def match_words(question: str) -> re.Pattern[str] | None:
    """Make the pattern that marks a question's words in their forms; None if it has only stop words."""
    words = {word.lower() for word in _WORD.findall(question)} - _QUESTION_WORDS
    forms = sorted(map(_match_forms, words), key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(forms)})", re.IGNORECASE) if forms else None


def _match_forms(word: str) -> str:
    if not word.isalpha() or len(word) < _PREFIX_FROM:
        return rf"{re.escape(word)}(?!\w)"
    ending = 1 if len(word) < _LONG_FROM else 2
    return rf"{re.escape(word[:-ending])}\w*"

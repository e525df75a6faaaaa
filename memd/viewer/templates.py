"""The templates of the pages, and what they write: times, sizes, counts, marked words, and Markdown.

Every text is escaped by the environment. `render` shows what nobody sees, and what changes the order of letters, by
its code point: a memory came out of a transcript and may want to deceive. Times are UTC milliseconds, shown in the
zone of the machine that memd runs on.
"""

import datetime as dt
import re
from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from memd.text import WORD, content_stems, one_line, terms
from memd.viewer.visit import ALL_PROJECTS, Page, Visit

_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
    "|(?<=[\\x00-\\x7f])[\u200c\u200d]"
)
"""Controls, marks of direction, spaces without width, variation selectors and tags; joiners behind ASCII letters,
where they join nothing. U+FE0F, which makes an emoji of a sign, is left."""
_TIME_MAX_MS = 253_402_214_400_000
"""The last day of the year 9999 in any zone."""
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_AGES = (
    (365 * _DAY, "year"),
    (30 * _DAY, "month"),
    (7 * _DAY, "week"),
    (_DAY, "day"),
    (_HOUR, "hour"),
    (_MINUTE, "minute"),
)
_LABEL = re.compile(r"[A-Z][a-z]+(?: [a-z]+){0,2}(?=: )")
"""What stands before a part of a memory's text, such as `Assistant then:`."""
SECTIONS = (
    ("/", "Home"),
    ("/search", "Search"),
    ("/timeline", "Timeline"),
    ("/sessions", "Sessions"),
    ("/inbox", "Inbox"),
    ("/told", "Told"),
    ("/projects", "Projects"),
    ("/health", "Health"),
)
KINDS = (
    "decision", "fix", "failure", "change", "discovery", "preference", "instruction", "fact", "task", "note", "session",
)  # fmt: skip
SPEAKERS = ("user", "told", "agent", "tool")
CLIENTS = ("claude-code", "codex", "copilot", "cursor", "opencode", "pi")
"""The agents whose hooks memd knows."""


def reveal(text: str) -> str:
    """Put the code point in place of each character that is not seen: ⟨U+202E⟩."""
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


# ── Rendering ────────────────────────────────────────────────────────────────────────────────────


def render(template: str, visit: Visit, **context: Any) -> Markup:
    """The HTML of a template."""
    given = {"visit": visit, "link": visit.link, "now": visit.now, "may_edit": visit.may_edit}
    return Markup(reveal(_environment().get_template(template).render(given | context)))  # noqa: S704  # autoescaped


def render_page(
    visit: Visit, template: str, window: str, section: str = "", **context: Any
) -> Page:
    """A page by its template; `window` is what its window is called, `section` the path of its link in the head."""
    content = render(template, visit, section=section, **context)
    return Page(reveal(window if window == "memd" else f"{window} · memd"), content)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("memd.viewer"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, auto_reload=False, cache_size=-1,
    )  # fmt: skip
    made.filters |= {
        "age": format_age, "body": render_markdown, "clock": format_clock, "code": mark_code, "commas": "{:,}".format,
        "day": format_day, "gap": format_gap, "highlight": highlight, "iso": format_iso, "minute": format_minute, "plural": plural, "shorten": shorten,
        "size": format_size, "time": render_time,
    }  # fmt: skip
    made.globals |= {
        "ALL": ALL_PROJECTS, "SECTIONS": SECTIONS, "KINDS": KINDS, "SPEAKERS": SPEAKERS, "CLIENTS": CLIENTS,
    }  # fmt: skip
    return made


# ── Times, sizes, counts ─────────────────────────────────────────────────────────────────────────


def local_time(at: int) -> dt.datetime:
    """A time in the zone of this machine."""
    return dt.datetime.fromtimestamp(min(max(at, 0), _TIME_MAX_MS) / 1000, tz=dt.UTC).astimezone()


def to_milliseconds(moment: dt.datetime) -> int:
    """A time without a zone, taken as of this machine's, in UTC milliseconds."""
    return max(0, int(moment.timestamp() * 1000))


def format_day(at: int) -> str:
    """A date: 20 Nov 2026."""
    return local_time(at).strftime("%-d %b %Y")


def format_minute(at: int) -> str:
    """A date and time: 20 Nov 2026, 14:05."""
    return local_time(at).strftime("%-d %b %Y, %H:%M")


def format_clock(at: int) -> str:
    """A time of day: 14:05."""
    return local_time(at).strftime("%H:%M")


def format_iso(at: int) -> str:
    """A time as programs read it: 2026-11-20T14:05:00+01:00."""
    return local_time(at).isoformat(timespec="seconds")


def format_age(at: int, now: int) -> str:
    """Format an age: 3 days ago."""
    past = now - at
    if past >= _MINUTE:
        return f"{format_gap(past)} ago"
    return "in the future" if past < -_MINUTE else "just now"


def format_gap(milliseconds: int) -> str:
    """A duration by its largest unit: 3 hours."""
    size, name = next(((s, n) for s, n in _AGES if milliseconds >= s), (_SECOND, "second"))
    return plural(milliseconds // size, name)


def format_size(count: float) -> str:
    """A number of bytes: 12.3 MB."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1024:  # noqa: PLR2004  # a kB has as many bytes
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} GB"


def plural(count: int, noun: str) -> str:
    """A count with its noun: 1 memory, 1,200 memories."""
    if count == 1:
        return f"1 {noun}"
    is_ies = noun.endswith("y") and noun[-2] not in "aeiou"
    return f"{count:,} {noun[:-1] + 'ies' if is_ies else noun + 's'}"


def render_time(at: int, now: int, *, minute: bool = False) -> Markup:
    """The element of a time: the date, with the age as a tooltip."""
    text = format_minute(at) if minute else format_day(at)
    title = f"{format_minute(at)} · {format_age(at, now)}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(format_iso(at), title, text)


def shorten(text: str, limit: int) -> str:
    """A text on one line of at most this many characters; what is longer is cut before it is read."""
    return one_line(text[: limit * 4], limit)


# ── Words ────────────────────────────────────────────────────────────────────────────────────────


def mark_code(message: str) -> Markup:
    """A message of memd itself, in which `commands` are shown as code."""
    parts = enumerate(message.split("`"))
    return Markup().join(
        Markup("<code>{}</code>").format(words) if place % 2 else escape(words)
        for place, words in parts
    )


def query_terms(query: str) -> frozenset[str]:
    """The stems by which the words of a query are recognised in a text."""
    return frozenset(content_stems(query))


def highlight(text: str, wanted: Collection[str]) -> Markup:
    """The text with the words of a query marked."""
    if not wanted:
        return escape(text)
    pieces: list[Markup] = []
    last = 0
    for found in WORD.finditer(text):
        if wanted.isdisjoint(terms(found[0])):  # type: ignore[attr-defined]  # a frozenset
            continue
        pieces += [escape(text[last : found.start()]), Markup("<mark>{}</mark>").format(found[0])]
        last = found.end()
    return Markup().join([*pieces, escape(text[last:])])


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────

_BLOCKS = ("code", "fence", "list", "heading", "blockquote", "table")
_INLINE = ("backticks", "emphasis", "strikethrough", "newline")


def render_markdown(text: str) -> Markup:
    """Markdown as HTML: lists, code, headings, tables, emphasis.

    HTML, links and pictures stay the text that they are: nothing in a memory leads elsewhere or is loaded.
    """
    parser = _markdown()
    tokens = parser.parse(text)
    for token in tokens:
        if token.tag in {"th", "td"}:
            token.attrs = {}  # a style, which the policy of the page forbids
        elif token.type.startswith("heading_"):
            # The headings of a page are its own; those of a memory only look like some.
            token.tag, token.attrs = "p", {"class": "subhead"} if token.nesting == 1 else {}
        elif token.type == "inline" and token.children:
            token.children = list(_set_off_labels(token.children))
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704  # html is off


@cache
def _markdown() -> MarkdownIt:
    options = {"html": False, "linkify": False, "typographer": False, "breaks": False}
    made = MarkdownIt("zero", options).enable([*_BLOCKS, *_INLINE])
    made.add_render_rule("fence", _render_fence)
    return made


def _render_fence(_: Any, tokens: list[Token], place: int, *__: Any) -> str:
    return Markup("<pre><code>{}</code></pre>\n").format(tokens[place].content)


def _set_off_labels(children: list[Token]) -> Iterator[Token]:
    """Let the names of a memory's parts stand out, each at the beginning of a line."""
    is_first = True
    for child in children:
        found = _LABEL.match(child.content) if is_first and child.type == "text" else None
        if found:
            yield Token("label_open", "b", 1, attrs={"class": "label"})
            yield Token("text", "", 0, content=found[0])
            yield Token("label_close", "b", -1)
            child.content = child.content[found.end() :]
        if child.tag == "strong":
            child.tag = "b"
        yield child
        is_first = child.type in {"softbreak", "hardbreak"}

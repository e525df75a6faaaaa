"""A page: the request that it answers, the fields of a form, its template, and what templates write.

Every text is escaped by the environment. `render` shows what nobody sees, and what changes the order of letters, by
its code point: a memory came out of a transcript and may want to deceive. Times are UTC milliseconds, shown in the
zone of the machine that memd runs on.
"""

import datetime as dt
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from memd.errors import BadRequest
from memd.text import UNSEEN, WORD, content_stems, one_line, terms

ALL_PROJECTS = "all"
Json = dict[str, Any]
Calling = Callable[..., Json]
"""Makes one control call: its method, and parameters by name; those that are None are left out."""
Fields = Mapping[str, Any]
"""What a form has sent."""
_NUMBER_DIGITS_MAX = 15
_LOCAL = re.compile(r"#[\w-]*|/(?![/\\])[^\x00-\x20\\]*")
"""An address on this server, or a place on this page."""


def read_number(text: str) -> int | None:
    """A number as people write it, 12 or #12; None if it is none."""
    digits = text.strip().removeprefix("#")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _NUMBER_DIGITS_MAX
    return int(digits) if is_number else None


def read_text(fields: Fields, name: str) -> str:
    """A field's text, empty if it was not sent; BadRequest if it is none."""
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise BadRequest(f"{name}: a text")
    return value.strip()


def read_field_number(fields: Fields, name: str) -> int:
    """A field's number; BadRequest if it is none."""
    found = read_number(str(fields.get(name, "")))
    if found is None:
        raise BadRequest(f"{name}: a number")
    return found


@dataclass(frozen=True, slots=True)
class Page:
    """A page: the title of the window, and what its template is filled with."""

    title: str
    context: Json


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of a page."""

    call: Calling
    now: int
    """UTC milliseconds."""
    home_project: str
    """The project that is shown if an address names none: that of the directory, or all."""
    projects: Sequence[Json] = ()
    """Every project, without counts."""
    params: Mapping[str, str] = field(default_factory=dict)
    """The parameters of the address."""
    places: Mapping[str, str] = field(default_factory=dict)
    """The parts of the path that name something, such as `id`."""
    may_edit: bool = False
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Project → the most memories that this viewer has counted to hold in it, and when."""

    @property
    def project(self) -> str:
        """The project that is shown: a name, a key, or `all`."""
        return self.params.get("project") or self.home_project

    @property
    def key(self) -> str:
        """The key of the project that is shown; what the address calls it if that means none, or several."""
        named = [one["key"] for one in self.projects if self.project in {one["key"], one["name"]}]
        return named[0] if len(named) == 1 else self.project

    def link(self, path: str, **params: object) -> str:
        """An address on this server in the same project; parameters that are None or empty are left out.

        ValueError for an address that is not of this server.
        """
        given = {
            key.rstrip("_"): value
            for key, value in params.items()
            if value not in {None, "", False}
        }
        if self.project != self.home_project:
            given.setdefault("project", self.project)
        if given.get("project") == self.home_project:
            del given["project"]
        address = quote(path) + (f"?{urlencode(given)}" if given else "")
        if not _LOCAL.fullmatch(address):
            raise ValueError(f"it leads elsewhere: {address[:80]!r}")
        return address

    def same_page(self, path: str, **changes: object) -> str:
        """The same page's address with other parameters."""
        return self.link(path, **{**self.params, **changes})

    def number(self, name: str) -> int:
        """A number in the path or the parameters; BadRequest if it is none."""
        text = self.places.get(name) or self.params.get(name) or ""
        found = read_number(text)
        if found is None:
            raise BadRequest(f"{name}: a number such as 12 or #12, not {text[:40]!r}")
        return found

    def text(self, name: str) -> str:
        """A parameter; BadRequest if it is missing. No part of a path: a name may have slashes and `..`."""
        if not self.params.get(name):
            raise BadRequest(f"{name}: it is missing from the address")
        return self.params[name]

    def cursor(self) -> list[int] | None:
        """Return where the page before ended, as `after=TIME-ID` in the address."""
        numbers = [read_number(text) for text in self.params.get("after", "").split("-")]
        found = [number for number in numbers if number is not None]
        return found if len(found) == len(numbers) == 2 else None  # noqa: PLR2004  # a time and an id

    # ── Projects ─────────────────────────────────────────────────────────────────────────────────

    def label_project(self, key: str) -> str:
        """A project's name, with what tells it from namesakes.

        `ledger · home/dev` and `ledger · work/dev`, each with as few folders of its path as make the difference.
        """
        if key == ALL_PROJECTS:
            return "All projects"
        same = self._namesakes(key)
        if len(same) < 2:  # noqa: PLR2004  # one has no namesake
            return str(same[0]["name"]) if same else key
        own, *others = (one["key"].strip("/").split("/") for one in same)
        for length in range(1, len(own) + 1):
            if all(other[-length:] != own[-length:] for other in others):
                # Where the folder itself has the name of the project, the name stands there already.
                parts = own[-length:] if own[-1] != same[0]["name"] else own[-length:-1] or own
                return f"{same[0]['name']} · {'/'.join(parts)}"
        return f"{same[0]['name']} · {key}"

    def choices(self, path: str) -> list[tuple[str, str, str]]:
        """(key, what people read, address of a page) of all projects, as the head offers them.

        Addresses call a project by its key: another of the same name may come at any time.
        """
        keys = dict.fromkeys([ALL_PROJECTS, *(one["key"] for one in self.projects), self.key])
        return [
            (key, self.label_project(key), replace(self, params={}).link(path, project=key))
            for key in keys
        ]

    def _namesakes(self, key: str) -> list[Json]:
        """The project of this key first, then those of the same name; none if the key is none's."""
        own = [one for one in self.projects if one["key"] == key]
        if not own:
            return []
        return own + [
            one for one in self.projects if one["name"] == own[0]["name"] and one["key"] != key
        ]


# ── Templates ──────────────────────────────────────────────────────────────────────────────────

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
    return UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


# ── Rendering ────────────────────────────────────────────────────────────────────────────────────


def render(template: str, visit: Visit, **context: Any) -> Markup:
    """The HTML of a template."""
    given = {"visit": visit, "link": visit.link, "now": visit.now, "may_edit": visit.may_edit}
    return Markup(reveal(_environment().get_template(template).render(given | context)))  # noqa: S704  # autoescaped


def make_page(window: str, **context: Any) -> Page:
    """A page whose window is called so; `viewer/server.py:PAGES` says by which template it is shown."""
    return Page(window if window == "memd" else f"{strip_code(window)} · memd", context)


def render_page(visit: Visit, template: str, section: str, page: Page) -> Json:
    """Render what the script of a page shows: its title and its HTML; `section` is the path of its link in the head."""
    html = render(template, visit, section=section, **page.context)
    return {"title": reveal(page.title), "html": html}


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("memd.viewer"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, auto_reload=False, cache_size=-1,
    )  # fmt: skip
    made.filters |= {
        "age": format_age, "body": render_markdown, "clock": format_clock, "code": mark_code, "commas": "{:,}".format,
        "flat": flatten_markdown, "day": format_day, "gap": format_gap, "highlight": highlight, "iso": format_iso, "minute": format_minute,
        "plain": strip_code, "plural": plural, "shorten": shorten, "size": format_size, "time": render_time, "title": render_title,
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


_CODE = re.compile(r"`+([^`]+)(?:`+|(?<=…)$)")
"""Code in a title, or what is left of it where the title was cut."""


def strip_code(title: str) -> str:
    """A title as plain text, for the window, tooltips and pictures."""
    return _CODE.sub(r"\1", title)


def render_title(title: str, limit: int, wanted: Collection[str] = ()) -> Markup:
    """A title on one line of at most this many characters, with its `code` as code and the words of a query marked."""
    parts = enumerate(_CODE.split(shorten(title, limit)))
    return Markup().join(
        Markup("<code>{}</code>").format(highlight(words, wanted))
        if place % 2
        else highlight(words, wanted)
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


def flatten_markdown(text: str) -> str:
    """Return what Markdown says on one line: its paragraphs and items without their signs."""
    said = (one.children or [] for one in _markdown().parse(text) if one.type == "inline")
    lines = ("".join(part.content or " " for part in parts if not part.nesting) for parts in said)
    return " · ".join(line.strip() for line in lines if line.strip())


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

"""Parts of several pages: the head, rows of memories, links to the next page, figures."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from memd.viewer.html import Child, Markup, render, tag
from memd.viewer.visit import ALL_PROJECTS, Json, Visit
from memd.viewer.wording import highlight, plural, shorten, write_time

SECTIONS = (
    ("/", "Home"),
    ("/search", "Search"),
    ("/timeline", "Timeline"),
    ("/sessions", "Sessions"),
    ("/projects", "Projects"),
    ("/health", "Health"),
)
KINDS = (
    "decision", "fix", "failure", "change", "discovery", "preference", "instruction", "fact", "task", "note", "session",
)  # fmt: skip
SPEAKERS = ("user", "told", "agent", "tool")
CLIENTS = ("claude-code", "codex", "copilot", "cursor")
"""The agents whose hooks memd knows."""
_TITLE_CHARACTERS = 200
_SNIPPET_CHARACTERS = 600


def write_head(visit: Visit, section: str) -> Markup:
    """The head of all pages: where to go, and which project is shown."""
    links = [
        tag(
            "li",
            tag("a", name, href=visit.link(path), aria_current="page" if path == section else None),
        )
        for path, name in SECTIONS
    ]
    return tag(
        "header",
        tag("a", "Skip to the content", href="#content", class_="skip"),
        tag(
            "a",
            tag("b", "memd"),
            tag("span", "edit" if visit.may_edit else "read-only", class_="mode"),
            href=visit.link("/"),
            class_="brand",
        ),
        tag("nav", tag("ul", links), aria_label="Pages"),
        _write_project_choice(visit, section or "/"),
        class_="head",
    )


def _write_project_choice(visit: Visit, path: str) -> Markup:
    names = [ALL_PROJECTS, *(visit.name_project(one["key"]) for one in visit.projects)]
    if visit.project not in names:
        names.append(visit.project)
    options = [
        tag(
            "option",
            "All projects" if name == ALL_PROJECTS else name,
            value=name,
            selected=name == visit.project,
            data_go=visit.link(path, project=name)
            if name == visit.home_project
            else _with_project(path, name),
        )
        for name in dict.fromkeys(names)
    ]
    return tag(
        "label",
        tag("span", "Project", class_="quiet"),
        tag("select", options, data_choose=True),
        class_="project",
    )


def _with_project(path: str, name: str) -> str:
    return Visit(_no_call, 0, "", params={"project": name}).link(path)


def _no_call(*_: object, **__: object) -> Json:
    raise AssertionError("an address needs no call")


# ── Memories ─────────────────────────────────────────────────────────────────────────────────────


def write_kind(kind: str) -> Markup:
    """The kind of a memory."""
    return tag("span", kind, class_=f"kind {kind if kind in KINDS else ''}")


def write_memory_link(
    visit: Visit, memory: Mapping[str, Child | int], *, limit: int = _TITLE_CHARACTERS
) -> Markup:
    """A memory's title, which leads to its page; struck through if it is superseded."""
    title = shorten(str(memory["title"]), limit) or "(no title)"
    link = tag("a", title, href=visit.link(f"/memory/{memory['id']}"), dir="auto")
    return tag("s", link) if memory.get("superseded_by") else link


def write_row(
    visit: Visit,
    memory: Json,
    *,
    wanted: Collection[str] = (),
    below: Child = None,
    is_anchor: bool = False,
) -> Markup:
    """A memory in a list: what it says first, then what it is; an anchor can be linked to as #m12."""
    title = highlight(shorten(memory["title"], _TITLE_CHARACTERS) or "(no title)", wanted)
    link = tag("a", title, href=visit.link(f"/memory/{memory['id']}"), dir="auto", class_="title")
    snippet = memory.get("snippet")
    return tag(
        "li",
        tag("p", tag("s", link) if memory.get("superseded_by") else link, class_="headline"),
        tag(
            "p",
            highlight(shorten(snippet, _SNIPPET_CHARACTERS), wanted),
            class_="snippet",
            dir="auto",
        )
        if snippet
        else None,
        write_facts(visit, memory),
        below,
        class_="memory",
        id=f"m{memory['id']}" if is_anchor else None,
    )


def write_facts(visit: Visit, memory: Json) -> Markup:
    """The line below a title: kind, speaker, date, number, and what one should know before relying on it."""
    facts: list[Child] = [
        write_kind(memory["kind"]),
        tag("span", f"{memory.get('author') or memory['speaker']}’s word", class_="speaker"),
        write_time(memory["at"], visit.now),
        tag("span", f"#{memory['id']}", class_="number"),
    ]
    if visit.project == ALL_PROJECTS and (memory.get("project") or memory.get("elsewhere")):
        facts.append(tag("span", memory.get("project") or memory["elsewhere"], class_="place"))
    if memory.get("client"):
        facts.append(tag("span", f"from {memory['client']}", class_="place"))
    if memory.get("pinned_at"):
        facts.append(tag("span", "pinned", class_="flag"))
    if above := memory.get("superseded_by"):
        facts.append(
            tag(
                "span",
                "replaced by ",
                tag("a", f"#{above}", href=visit.link(f"/memory/{above}")),
                class_="flag warn",
            )
        )
    facts += [
        tag(
            "span",
            "contradicted by ",
            tag("a", f"#{other}", href=visit.link(f"/memory/{other}")),
            class_="flag warn",
        )
        for other in (memory.get("contradicted_by") or ())[:3]
    ]
    if memory.get("older_value"):
        facts.append(tag("span", memory["older_value"], class_="flag warn"))
    if memory.get("replaces"):
        facts.append(tag("span", f"replaces {memory['replaces']}", class_="flag"))
    return tag("p", [tag("span", one) for one in facts], class_="facts")


def write_list(visit: Visit, memories: Sequence[Json], empty: str) -> Markup:
    """A list of memories, or what to say without any."""
    if not memories:
        return tag("p", empty, class_="quiet")
    return tag("ol", [write_row(visit, one) for one in memories], class_="memories")


# ── Frames ───────────────────────────────────────────────────────────────────────────────────────


def write_section(title: str, *children: Child, more: Child = None, class_: str = "") -> Markup:
    """A part of a page with a heading, and a link to more of it."""
    return tag(
        "section",
        tag("div", tag("h2", title), more, class_="heading"),
        children,
        class_=class_ or None,
    )


def write_table(names: Sequence[str], rows: Iterable[Sequence[Child]], caption: str) -> Markup:
    """A table; on a narrow page it scrolls by itself."""
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption, class_="unseen"),
            tag("thead", tag("tr", [tag("th", name, scope="col") for name in names])),
            tag("tbody", [tag("tr", [tag("td", cell) for cell in row]) for row in rows]),
        ),
        class_="wide", tabindex=0, role="region", aria_label=caption,
    )  # fmt: skip


def write_pairs(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """Names with what they are."""
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs])


def write_next(visit: Visit, path: str, cursor: Sequence[int] | None) -> Markup:
    """The link to the next page of a list."""
    if cursor is None:
        return Markup()
    return tag(
        "p",
        tag(
            "a",
            "Older",
            href=visit.same_page(path, after=f"{cursor[0]}-{cursor[1]}"),
            class_="button",
        ),
    )


def write_kind_counts(visit: Visit, kinds: Sequence[Json]) -> Markup:
    """Write how many memories of each kind hold, each with a link to their list."""
    items = [
        tag(
            "li",
            tag(
                "a",
                tag("b", f"{one['memories'] - one['superseded']:,}"),
                " ",
                write_kind(one["kind"]),
                href=visit.link("/memories", kind=one["kind"]),
            ),
        )
        for one in kinds
        if one["memories"] > one["superseded"]
    ]
    return tag("ul", items, class_="counts")


def write_bars(
    counts: Sequence[Mapping[str, int]], labels: Sequence[Child], links: Sequence[str], what: str
) -> Markup:
    """A column for each step of time: how much happened; the table of the same numbers is for those who do not see it."""
    series = ("events", "memories", "superseded")
    tops = {name: max((one[name] for one in counts), default=0) or 1 for name in series}
    width = 100 / max(len(counts), 1)
    columns: list[Markup] = []
    for step, (count, label) in enumerate(zip(counts, labels, strict=True)):
        bars = []
        for name, base, height in (
            ("events", 60, 56),
            ("memories", 60, 56),
            ("superseded", 62, 26),
        ):
            size = height * count[name] / tops[name if name == "events" else "memories"]
            size = min(max(size, 1.5 if count[name] else 0), height)
            inset = width * (0.12 if name == "events" else 0.3)
            y = base - size if name != "superseded" else base
            bars.append(
                tag(
                    "rect",
                    x=f"{step * width + inset:.3f}",
                    y=f"{y:.2f}",
                    width=f"{width - 2 * inset:.3f}",
                    height=f"{size:.2f}",
                    class_=name,
                )
            )
        words = f"{label}: {', '.join(plural(count[n], u) for n, u in (('events', 'event'), ('memories', 'memory')))}, {count['superseded']:,} replaced"
        column = tag(
            "g",
            tag("title", words),
            bars,
            tag(
                "rect", x=f"{step * width:.3f}", y=0, width=f"{width:.3f}", height=90, class_="hit"
            ),
        )
        columns.append(
            tag("a", column, href=links[step], aria_label=words)
            if links and links[step]
            else column
        )
    picture = tag(
        "svg",
        columns,
        viewBox="0 0 100 90",
        preserveAspectRatio="none",
        class_="bars",
        role="group" if links else "img",
        aria_label=what,
    )
    legend = tag(
        "p",
        tag("span", "events", class_="key events"),
        tag("span", "memories", class_="key memories"),
        tag("span", "replaced", class_="key superseded"),
        class_="legend",
    )
    ends = (
        tag("p", tag("span", labels[0]), tag("span", labels[-1]), class_="ends") if labels else None
    )
    return render([picture, ends, legend])

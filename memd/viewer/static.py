"""One self-contained page of a project or of the answer to a question: no script, no server, nothing from elsewhere."""

import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from memd.viewer.html import Child, Markup, render, tag
from memd.viewer.parts import write_kind_counts, write_row, write_section
from memd.viewer.search import write_parts
from memd.viewer.server import ViewSettings, connect, load_asset
from memd.viewer.visit import ALL_PROJECTS, Json, Visit
from memd.viewer.wording import format_minute, plural, query_terms, write_body

_MEMORIES_MAX = 500
_HITS_MAX = 50
_MEMORY = re.compile(r"/memory/(\d+)")
_TITLES = {
    "pinned": "Pinned",
    "rules": "Standing rules",
    "decisions": "Decisions that hold",
    "failures": "Open failures",
    "tasks": "To be done",
}


@dataclass(frozen=True, slots=True)
class _FileVisit(Visit):
    """A visit whose links stay within the page."""

    def link(self, path: str, **_: object) -> str:
        """The place of a memory on this page; of anything else the top."""
        found = _MEMORY.match(path)
        return f"#m{found[1]}" if found else "#content"


def make_static_page(settings: ViewSettings, query: str) -> str:
    """The HTML of a project, or of the answer to a question."""
    with connect(settings) as visit:
        local = _FileVisit(visit.call, visit.now, visit.project, visit.projects)
        where = "all projects" if visit.project == ALL_PROJECTS else visit.project
        title = f"“{query}” in {where}" if query else f"What memd knows of {where}"
        content = _write_answer(local, query) if query else _write_project(local)
    return _wrap(title, render([tag("h1", title), _write_date(visit), content]))


def _write_date(visit: Visit) -> Markup:
    return tag(
        "p",
        f"Written on {format_minute(visit.now)} by memd view. It does not change any more.",
        class_="quiet",
    )


def _wrap(title: str, content: Markup) -> str:
    style = load_asset("style.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{title} · memd"),
        tag("style", Markup(style)),
    )
    body = tag("body", tag("main", content, id="content"))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _write_project(visit: Visit) -> Child:
    found = visit.call("memd/overview", project=visit.project, limit=_HITS_MAX)
    listed = visit.call("memd/list", project=visit.project, limit=_MEMORIES_MAX)
    shown: set[int] = set()
    content: list[Child] = [write_kind_counts(visit, found["kinds"])]
    for name, title in _TITLES.items():
        memories = _take_unshown(found[name], shown)
        if memories:
            content.append(write_section(title, _write_whole(visit, memories)))
    rest = _take_unshown(listed["memories"], shown)
    content.append(write_section("Everything else, the newest first", _write_whole(visit, rest)))
    if listed["next"]:
        content.append(
            tag(
                "p",
                f"Older memories are left out: this page has {plural(len(shown), 'memory')}.",
                class_="notice",
            )
        )
    return content


def _take_unshown(memories: Iterable[Json], shown: set[int]) -> list[Json]:
    """Return the memories that are not on the page yet; an anchor is given once."""
    found = [one for one in memories if one["id"] not in shown]
    shown.update(one["id"] for one in found)
    return found


def _write_whole(visit: Visit, memories: list[Json]) -> Markup:
    rows = [
        write_row(visit, {**one, "snippet": None}, below=_write_text(one), is_anchor=True)
        for one in memories
    ]
    return tag("ol", rows, class_="memories")


def _write_text(memory: Json, *more: Child) -> Markup:
    text = tag("div", write_body(memory["body"]), class_="text", dir="auto")
    return tag("details", tag("summary", f"The whole text of #{memory['id']}"), text, more)


def _write_answer(visit: Visit, query: str) -> Child:
    found = visit.call(
        "memd/search", query=query, project=visit.project, k=_HITS_MAX, show_all=True
    )
    wanted = query_terms(query)
    rows = [
        write_row(
            visit,
            hit,
            wanted=wanted,
            below=_write_text(hit, write_parts(hit["parts"], hit["score"])),
            is_anchor=True,
        )
        for hit in found["hits"]
    ]
    return [
        tag("p", tag("b", found["verdict"]), f": {found['reason']}" if found["reason"] else ""),
        tag("ol", rows, class_="memories"),
    ]

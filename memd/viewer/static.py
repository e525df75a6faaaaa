"""Pages that stand alone: a project, the answer to a question, or a session; no script, no server, nothing from elsewhere."""

import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources

from markupsafe import Markup

from memd.viewer.overview import arrange_session, name_session, read_whole_session
from memd.viewer.page import ALL_PROJECTS, Json, Visit, query_terms, render
from memd.viewer.search import read_steps

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


def load_asset(name: str) -> str:
    """One of the files beside this module."""
    return resources.files("memd.viewer").joinpath(name).read_text(encoding="utf-8")


def write_page(visit: Visit, query: str = "", session: str = "") -> str:
    """The HTML of a session, of the answer to a question, or of what is known of a project."""
    if session:
        return _write_session(visit, session)
    return _write_answer(visit, query) if query else _write_project(visit)


def write_session_file(visit: Visit) -> str:
    """The same of the session in the address, for the button of its page."""
    return _write_session(visit, visit.places["key"])


def _write_project(visit: Visit) -> str:
    """The HTML of what is known of a project."""
    found = visit.call("memd/overview", project=visit.project, limit=_HITS_MAX)
    listed = visit.call("memd/list", project=visit.project, limit=_MEMORIES_MAX)
    shown: set[int] = set()
    sections = [(title, _take_unshown(found[name], shown)) for name, title in _TITLES.items()]
    rest = _take_unshown(listed["memories"], shown)
    return _wrap(
        visit,
        "offline_project.html",
        f"What memd knows of {_name_place(visit)}",
        kinds=found["kinds"],
        sections=[*sections, ("Everything else, the newest first", rest)],
        left_out=len(shown) if listed["next"] else 0,
    )


def _take_unshown(memories: Iterable[Json], shown: set[int]) -> list[Json]:
    """Return the memories that are not on the page yet; an anchor is given once."""
    found = [one for one in memories if one["id"] not in shown]
    shown.update(one["id"] for one in found)
    return found


def _write_answer(visit: Visit, query: str) -> str:
    """The HTML of the answer to a question."""
    found = visit.call(
        "memd/search", query=query, project=visit.project, k=_HITS_MAX, show_all=True
    )
    hits = [(hit, read_steps(hit["parts"])) for hit in found["hits"]]
    return _wrap(
        visit,
        "offline_answer.html",
        f"“{query}” in {_name_place(visit)}",
        found=found,
        hits=hits,
        wanted=query_terms(query),
    )


def _write_session(visit: Visit, key: str) -> str:
    """The HTML of a session, in which secrets were looked for once more."""
    found = read_whole_session(visit, key)
    return _wrap(
        visit,
        "offline_session.html",
        name_session(found),
        found=found,
        memories=_list_memories(found),
        **arrange_session(found),
    )


def _list_memories(found: Json) -> list[Json]:
    """The memories that a session left, and those that it was told, of which the titles are known."""
    known = {one["id"]: one for one in [*found["told"], *found["left"]]}
    return [known[number] for number in sorted(known)]


def _name_place(visit: Visit) -> str:
    return "all projects" if visit.project == ALL_PROJECTS else visit.label_project(visit.project)


def _wrap(visit: Visit, template: str, title: str, **context: object) -> str:
    style = load_asset("style.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    local = _FileVisit(visit.call, visit.now, visit.project, visit.projects)
    made = render(template, local, title=title, policy=policy, style=Markup(style), **context)  # noqa: S704  # our own
    return f"{made}\n"

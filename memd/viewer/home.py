"""Home: what memd knows of a project in one view; lists by kind."""

from memd.viewer.activity import write_activity
from memd.viewer.html import Markup, render, tag
from memd.viewer.parts import (
    KINDS,
    SPEAKERS,
    write_kind_counts,
    write_list,
    write_memory_link,
    write_next,
    write_row,
    write_section,
)
from memd.viewer.visit import ALL_PROJECTS, Json, Page, Visit
from memd.viewer.wording import plural, shorten, write_time

_SHOWN = 5
_SNIPPET_CHARACTERS = 240


def show_home(visit: Visit) -> Page:
    """Show the newest knowledge: what holds, what is open, what changed, and whether memd is well."""
    found = visit.call("memd/overview", project=visit.project, limit=_SHOWN)
    where = "all projects" if visit.project == ALL_PROJECTS else visit.project
    if not found["kinds"]:
        return Page("memd", _welcome(where), "/")
    content = [
        tag("h1", "What memd knows of ", tag("em", where), tabindex=-1),
        _write_health(visit),
        _write_last_session(visit),
        write_kind_counts(visit, found["kinds"]),
        write_activity(visit, found["first_at"], found["last_at"]),
        tag(
            "div",
            _section(
                visit,
                "Standing rules",
                found["rules"],
                "No rule is known yet.",
                kind="instruction preference",
            ),
            _section(
                visit,
                "Decisions that hold",
                found["decisions"],
                "No decision is known yet.",
                kind="decision",
            ),
            _section(
                visit,
                "Open failures",
                found["failures"],
                "No failure is open.",
                "all failures",
                kind="failure",
            ),
            _write_inbox_part(visit, found["contradictions"]),
            _section(visit, "To be done", found["tasks"], "Nothing was put off.", kind="task")
            if found["tasks"]
            else None,
            _section(visit, "Pinned", found["pinned"], "", pinned="1") if found["pinned"] else None,
            _section(visit, "Newest", found["latest"], "Nothing yet."),
            _write_replaced(visit, found["replaced"]),
            class_="columns",
        ),
    ]
    return Page("memd", render(content), "/")


def _welcome(where: str) -> Markup:
    return render(
        [
            tag("h1", "Nothing is known of ", tag("em", where), " yet", tabindex=-1),
            tag(
                "p",
                "memd learns from the sessions of your agent. ",
                tag("code", "memd import --all"),
                " brings past ones, ",
                tag("code", "memd remember"),
                " stores a sentence.",
            ),
        ]
    )


def _write_health(visit: Visit) -> Markup:
    status = visit.call("memd/status")
    is_well = status["health"] == "healthy"
    why = "" if is_well else f": {'; '.join(status['reasons'])}"
    return tag(
        "p",
        tag("span", "", class_=f"light {'well' if is_well else 'ill'}"),
        tag(
            "a",
            "memd is well" if is_well else f"memd is {status['health']}",
            href=visit.link("/health"),
        ),
        f"{why} · {plural(status['summaries']['count'], 'memory')} and {plural(status['events']['count'], 'event')} in all",
        class_="quiet",
    )


def _write_last_session(visit: Visit) -> Markup | None:
    """The last session, and how much it was told."""
    sessions = visit.call("memd/sessions", project=visit.project, limit=1)["sessions"]
    if not sessions:
        return None
    (last,) = sessions
    title = shorten(last["title"] or "", 80) or "without a prompt"
    return tag(
        "p",
        "The last session: ",
        tag("a", title, href=visit.link(f"/session/{last['key']}"), dir="auto"),
        ", ",
        write_time(last["started_at"], visit.now),
        f"; it was told {plural(last['shown'], 'memory')} and left {last['memories']:,}",
        class_="quiet",
    )


def _section(
    visit: Visit, title: str, memories: list[Json], empty: str, more: str = "all", **choice: str
) -> Markup:
    """A few memories, and a link to all of their kind, which may say that these are others, too."""
    place = visit.link("/memories", **choice)
    link = tag("a", more, href=place, aria_label=f"{title}: {more}")
    return write_section(title, write_list(visit, memories, empty), more=link)


def _write_inbox_part(visit: Visit, count: int) -> Markup:
    learned = visit.call("memd/review/list", project=visit.project, limit=1)["count"]
    new = tag(
        "p",
        tag(
            "a", f"{plural(learned, 'memory')} learned since you looked", href=visit.link("/inbox")
        ),
    )
    if not count:
        quiet = tag("p", "No two memories contradict each other.", class_="quiet")
        return write_section("Waits for you", new if learned else None, quiet)
    found = visit.call("memd/judge/open", project=visit.project, limit=_SHOWN)
    more = tag("a", plural(count, "pair"), href=visit.link("/inbox"))
    pairs = write_open_pairs(visit, found["pairs"])
    return write_section("Waits for you", new if learned else None, pairs, more=more)


def write_open_pairs(visit: Visit, pairs: list[list[Json]]) -> Markup:
    """Pairs of memories of which only one can hold."""
    items = [
        tag(
            "li",
            tag(
                "p",
                "Only one of these can hold. ",
                tag(
                    "a",
                    "Judge",
                    href=visit.link(f"/judge/{newer['id']}/{older['id']}"),
                    aria_label=f"Judge #{newer['id']} and #{older['id']}",
                ),
                class_="quiet",
            ),
            tag("ol", write_row(visit, newer), write_row(visit, older), class_="memories"),
            class_="pair",
        )
        for newer, older in pairs
    ]
    return tag("ul", items, class_="pairs")


def _write_replaced(visit: Visit, pairs: list[Json]) -> Markup:
    if not pairs:
        return Markup()
    items = [
        tag(
            "li",
            tag(
                "p",
                tag(
                    "s",
                    write_memory_link(visit, {**pair["older"], "superseded_by": None}, limit=120),
                ),
            ),
            tag("p", "→ ", write_memory_link(visit, pair["newer"], limit=120)),
            tag("p", write_time(pair["newer"]["at"], visit.now), class_="facts"),
        )
        for pair in pairs
    ]
    return write_section("Replaced lately", tag("ul", items, class_="replaced"))


# ── Lists ────────────────────────────────────────────────────────────────────────────────────────


def show_memories(visit: Visit) -> Page:
    """Memories of a kind, a speaker, or pinned; newest first, page by page."""
    kinds = [kind for kind in visit.params.get("kind", "").split() if kind in KINDS]
    speaker = visit.params.get("speaker", "")
    hidden = visit.params.get("superseded") == "1"
    pinned = visit.params.get("pinned") == "1"
    found = visit.call(
        "memd/list",
        project=visit.project,
        kinds=kinds,
        speaker=speaker if speaker in SPEAKERS else None,
        pinned=pinned,
        include_superseded=hidden,
        after=visit.cursor(),
    )
    what = (
        "Pinned memories"
        if pinned
        else f"{', '.join(kinds).capitalize()} memories"
        if kinds
        else "Memories"
    )
    other = visit.same_page("/memories", superseded=None if hidden else "1", after=None)
    content = [
        tag(
            "h1",
            what,
            " ",
            tag("span", "also what was replaced" if hidden else "that hold", class_="quiet"),
            tabindex=-1,
        ),
        tag(
            "p",
            tag(
                "a", "Show only what holds" if hidden else "Show also what was replaced", href=other
            ),
        ),
        write_list(
            visit,
            [
                {**one, "snippet": shorten(one["body"], _SNIPPET_CHARACTERS)}
                for one in found["memories"]
            ],
            "There are none.",
        ),
        write_next(visit, "/memories", found["next"]),
    ]
    return Page(f"{what} · memd", render(content), "/")

"""A memory: what it says, whose word it is, its quotes, what replaced it and what it replaced, its graph, its uses."""

from collections.abc import Sequence

from memd.viewer.graph import draw_graph
from memd.viewer.html import Child, Markup, render, tag
from memd.viewer.parts import write_facts, write_memory_link, write_pairs, write_section
from memd.viewer.visit import Json, Page, Visit, read_number
from memd.viewer.wording import format_size, plural, shorten, write_body, write_time

PART_CHARACTERS = 20_000
"""Of a longer text a page shows this much at a time."""
_EDITED_RULE = "edited"
_QUOTES_SHOWN = 12
_FILES_SHOWN = 100
_VERDICTS = {
    "current": "It holds.",
    "unconfirmed": "It holds as far as memd knows: it was said once.",
    "expired": "It has expired.",
    "archived": "It was put away, and shows again when it is said again.",
}


def show_memory(visit: Visit) -> Page:
    """Everything about one memory."""
    number = visit.number("id")
    found = visit.call("memd/why", id=number, depth=2)
    (memory,) = visit.call("memd/get", ids=[number])["memories"]
    title = shorten(memory["title"], 300) or "(no title)"
    content = [
        tag(
            "h1",
            tag("s", title) if memory["superseded_by"] else title,
            tabindex=-1,
            dir="auto",
            class_="memory-title",
        ),
        write_facts(visit, memory),
        _write_verdict(visit, found),
        _write_actions(visit, memory),
        _write_text(visit, memory),
        _write_supersessions(visit, found),
        _write_judgments(visit, found),
        _write_sources(visit, found["sources"]),
        _write_graph(visit, found),
        _write_uses(visit, found["access"]),
        _write_origin(visit, memory, found),
    ]
    return Page(f"#{number} {title[:60]} · memd", render(content))


def _write_verdict(visit: Visit, found: Json) -> Markup:
    verdict = found["verdict"]
    is_well = verdict in {"current", "unconfirmed"}
    words: Child = _VERDICTS.get(verdict, f"{verdict[:1].upper()}{verdict[1:]}.")
    others = [
        tag(
            "a",
            f"judge it and #{other}",
            href=visit.link(f"/judge/{found['summary']['id']}/{other}"),
        )
        for other in found["contradicted_by"]
    ]
    return tag(
        "p",
        tag("b", words),
        [[" ", one] for one in others],
        [tag("br"), *(f" {one}." for one in found["values"])] if found["values"] else [],
        [[tag("br"), f" Check: {one}."] for one in found["checks"]],
        class_="verdict-line" if is_well else "verdict-line warn",
    )


def _write_actions(visit: Visit, memory: Json) -> Markup:
    if not visit.may_edit:
        hint = tag("code", "memd view --edit")
        return tag("p", "To edit, pin, judge or forget it: ", hint, class_="facts")
    path = f"/memory/{memory['id']}"
    pin = "Unpin…" if memory["pinned_at"] else "Pin…"
    holds = not memory["superseded_by"]
    names = (
        ("Edit…", "edit", holds),
        ("Take the edit back…", "take-back", holds and memory["rule"] == _EDITED_RULE),
        (pin, "pin", True),
        ("Judge…", "judge", True),
        ("Forget…", "forget", True),
    )
    links = [
        tag("a", name, href=visit.link(f"{path}/{what}"), class_="button")
        for name, what, is_offered in names
        if is_offered
    ]
    return tag("p", links, class_="actions")


def _write_text(visit: Visit, memory: Json) -> Markup:
    text = memory["body"]
    parts = max(1, -(-len(text) // PART_CHARACTERS))
    part = min(max(read_number(visit.params.get("part", "")) or 1, 1), parts)
    start = (part - 1) * PART_CHARACTERS
    pages = None
    if parts > 1:
        around = [number for number in (part - 1, part + 1) if 1 <= number <= parts]
        links = [
            tag(
                "a",
                f"part {number}",
                href=visit.same_page(f"/memory/{memory['id']}", part=number),
                class_="button",
            )
            for number in around
        ]
        pages = tag(
            "p",
            f"Part {part} of {parts}; {format_size(len(text.encode('utf-8', 'replace')))} in all. ",
            links,
        )
    return render(
        [
            tag(
                "div", write_body(text[start : start + PART_CHARACTERS]), class_="text", dir="auto"
            ),
            pages,
        ]
    )


def _write_supersessions(visit: Visit, found: Json) -> Child:
    """Write what replaced a memory above it, and what it replaced below, each with the reason."""
    newer = [one for one in found["relations"] if one["is_newer"]]
    older = [one for one in found["relations"] if not one["is_newer"]]
    if not newer and not older:
        return None
    here = tag("li", tag("b", "this memory"), class_="here")
    items = [
        *(_write_link(visit, one) for one in reversed(newer)),
        here,
        *(_write_link(visit, one) for one in older),
    ]
    return write_section("What replaced what", tag("ol", items, class_="chain"))


def _write_link(visit: Visit, relation: Json) -> Markup:
    link, other = relation["supersession"], relation["other"]
    undone = link["undone_at"] is not None
    verb = "had replaced" if undone else "replaced"
    reason = [
        f"rule {link['rule']}",
        f"cosine {link['cosine']:.3f}" if link["cosine"] is not None else "",
        link["guard"],
    ]
    pair = f"/judge/{link['newer_id']}/{link['older_id']}"
    return tag(
        "li",
        tag("p", write_memory_link(visit, {**other, "superseded_by": None if relation["is_newer"] or undone else True}, limit=160)),
        tag(
            "p",
            f"#{link['newer_id']} {verb} #{link['older_id']} on ", write_time(link["at"], visit.now),
            f": {', '.join(one for one in reason if one)}",
            ["; undone on ", write_time(link["undone_at"], visit.now)] if undone else None,
            [" · ", tag("a", "undo", href=visit.link(pair), aria_label=f"Undo that #{link['newer_id']} replaces #{link['older_id']}")] if visit.may_edit and not undone else None,
            class_="facts",
        ),
        class_="undone" if undone else None,
    )  # fmt: skip


def _write_judgments(visit: Visit, found: Json) -> Child:
    if not found["judgments"]:
        return None
    items = [
        tag(
            "li",
            tag("p", tag("q", judged["reason"], dir="auto")),
            tag(
                "p", f"the {judged['who']}, ", write_time(judged["at"], visit.now),
                f": #{judged['newer_id']} {judged['relation']} #{judged['older_id']}",
                "; taken back" if judged["undone_at"] else "", class_="facts",
            ),
        )
        for judged in (one["judgment"] for one in found["judgments"])
    ]  # fmt: skip
    return write_section("Judgments", tag("ul", items))


def _write_sources(visit: Visit, sources: Sequence[Json]) -> Child:
    if not sources:
        return None
    shown = [_write_source(visit, one) for one in sources[:_QUOTES_SHOWN]]
    rest = [_write_source(visit, one) for one in sources[_QUOTES_SHOWN:]]
    more = (
        tag("details", tag("summary", f"{len(rest)} more"), tag("ul", rest, class_="quotes"))
        if rest
        else None
    )
    return write_section("Where it comes from", tag("ul", shown, class_="quotes"), more)


def _write_source(visit: Visit, source: Json) -> Markup:
    event, position = source["event"], source["position"]
    what = event["tool"] or event["kind"].replace("_", " ")
    places = (("message", "line"), ("tool use", "tool_use"), ("prompt", "prompt"))
    place = next((f"{name} {position[key]}" for name, key in places if position[key]), "")
    file = position["transcript"] or (
        f"session {position['session']}" if position["session"] else ""
    )
    return tag(
        "li",
        tag("blockquote", source["quote"], dir="auto") if source["quote"] else None,
        tag(
            "p",
            tag("a", f"{what}", href=visit.link("/node", id=f"event:{event['id']}")), ", ",
            write_time(event["at"], visit.now, with_minute=True),
            [" · ", tag("code", file), f", {place}" if place else ""] if file else None,
            class_="facts",
        ),
    )  # fmt: skip


def _write_graph(visit: Visit, found: Json) -> Child:
    picture = draw_graph(visit, found)
    return write_section("What it is linked to", picture) if picture else None


def _write_uses(visit: Visit, access: Json) -> Markup:
    if not access["count"] and not access["shown"]:
        return write_section(
            "Uses",
            tag(
                "p", "No answer has returned it yet, and no session was told of it.", class_="quiet"
            ),
        )
    used = ["Returned by ", plural(access["count"], "answer")] + (
        [", last on ", write_time(access["last_at"], visit.now)] if access["last_at"] else []
    )
    shown = f"; told to agents unasked {plural(access['shown'], 'time')} in {plural(access['sessions'], 'session')}"
    items = [
        tag(
            "li",
            write_time(one["at"], visit.now, with_minute=True), f", {one['moment']}: ",
            tag("a", shorten(one["session_title"] or one["session"], 80), href=visit.link(f"/session/{one['session']}"), dir="auto"),
            tag("span", f" {one['reason']}", class_="quiet"),
        )
        for one in access["latest"]
    ]  # fmt: skip
    return write_section(
        "Uses",
        tag("p", used, shown if access["shown"] else "", "."),
        tag("ul", items, class_="uses") if items else None,
    )


def _write_origin(visit: Visit, memory: Json, found: Json) -> Markup:
    files = [tag("li", _write_file(visit, file, found)) for file in memory["files"][:_FILES_SHOWN]]
    pairs: list[tuple[str, Child]] = [
        ("Project", memory["project"]),
        ("Whose word", memory["authority"]),
        ("Made by", f"rule {memory['rule']}" + (f": {found['rule']}" if found["rule"] else "")),
        ("Said", plural(memory["duplicates"], "time")),
        ("Confidence", f"{memory['confidence']:.2f}"),
    ]
    key = next(
        (one["position"]["session"] for one in found["sources"] if one["position"]["session"]), ""
    )
    if memory["session_title"] or key:
        title = tag("span", shorten(memory["session_title"] or key, 120), dir="auto")
        pairs.insert(
            1, ("Session", tag("a", title, href=visit.link(f"/session/{key}")) if key else title)
        )
    if memory["topic_key"]:
        pairs.append(("Topic key", tag("code", memory["topic_key"])))
    if memory["tags"]:
        pairs.append(("Tags", ", ".join(memory["tags"])))
    if memory["expires_at"]:
        pairs.append(("Expires", write_time(memory["expires_at"], visit.now)))
    if files:
        pairs.append(("Files", tag("ul", files, class_="files")))
    return write_section("About it", write_pairs(pairs))


def _write_file(visit: Visit, file: str, found: Json) -> Markup:
    """A file that a memory names, which leads to its page where the graph knows it by its whole path."""
    ends = (edge["to_id"] for edge in found["edges"] if edge["to_kind"] == "file")
    path = next((end for end in ends if end == file or end.endswith(f"/{file}")), None)
    name = tag("code", file)
    return tag("a", name, href=visit.link("/node", id=f"file:{path}")) if path else name


def show_node(visit: Visit) -> Page:
    """A file or an event: what is known of it, by its edges."""
    name = visit.params.get("id", "")
    found = visit.call("memd/why", id=name, depth=2, project=visit.project)
    kind, _, rest = found["node"].partition(":")
    numbers = {
        end
        for edge in found["edges"]
        for end in (_read_summary(edge, "from"), _read_summary(edge, "to"))
        if end
    }
    memories = (
        visit.call("memd/get", ids=sorted(numbers, reverse=True)[:50])["memories"]
        if numbers
        else []
    )
    items = [
        tag("li", write_memory_link(visit, one), write_facts(visit, one), class_="memory")
        for one in memories
    ]
    content = [
        tag("h1", kind.capitalize(), " ", tag("code", rest), tabindex=-1),
        tag("ul", [_write_source(visit, one) for one in found["sources"]], class_="quotes")
        if found["sources"]
        else None,
        write_section(
            "Memories around it",
            tag("ul", items, class_="memories") if items else tag("p", "None.", class_="quiet"),
        ),
        _write_graph(visit, found),
    ]
    return Page(f"{rest[:60]} · memd", render(content))


def _read_summary(edge: Json, way: str) -> int | None:
    return int(edge[f"{way}_id"]) if edge[f"{way}_kind"] == "summary" else None

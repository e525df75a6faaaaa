"""Search: as one types, with the parts of each score, and why a memory is not among the hits."""

import re
from collections.abc import Sequence

from memd.errors import BadRequest
from memd.viewer.html import Child, Markup, render, tag
from memd.viewer.parts import CLIENTS, KINDS, SPEAKERS, write_row
from memd.viewer.visit import Json, Page, Visit, read_number
from memd.viewer.wording import plural, query_terms

_HITS = 10
_HITS_MAX = 50
"""What one question brings at most: of these a speaker's are chosen."""
_PAGES_MAX = 200
_FILTERS = ("kind", "speaker", "client", "since", "until")
_FILE_NAME = re.compile(r"[\w./-]*\w\.[A-Za-z]\w{0,7}")
_VERDICTS = {"found": "Found", "weak": "Near it, perhaps not it", "nothing": "Not known"}
_PART_NAMES = {
    "lexical": "its words",
    "vector": "its meaning",
    "learned": "its meaning, by the model",
    "unlearned": "its meaning, not yet by the model",
    "spelling": "how its words are spelt",
    "topic": "its topic key",
    "recency": "how recent it is",
    "session": "its session",
    "previous": "the memory before it",
    "next": "the memory after it",
    "coverage": "how much of the question it has",
    "confidence": "how sure it is",
    "quality": "how complete it is",
}
_MISSES = {"rank": "it matches less well than the hits", "expired": "it has expired"}


def show_search(visit: Visit) -> Page:
    """The form, and below it the answer."""
    query = visit.params.get("q", "")
    content = [
        tag("h1", "Search", tabindex=-1, class_="unseen"),
        _write_form(visit, query),
        tag(
            "div",
            [_write_file_link(visit, query.strip()), _write_answer(visit, query)]
            if query.strip()
            else _write_hints(),
            id="results",
            aria_live="polite",
        ),
    ]
    return Page(f"{query[:60]} · memd" if query else "Search · memd", render(content), "/search")


def _write_hints() -> Markup:
    return tag(
        "p",
        "Ask in plain words: ", tag("q", "why did we choose this"), ", ", tag("q", "what failed last week"), ". ",
        tag("code", '"a phrase"'), ", ", tag("code", "prefix*"), " and ", tag("code", "OR"), " work, too.",
        class_="quiet",
    )  # fmt: skip


def _write_file_link(visit: Visit, query: str) -> Child:
    """The way to what the graph knows of a file, if the question is nothing but a file's name."""
    if not _FILE_NAME.fullmatch(query):
        return None
    link = tag(
        "a", "What is known of the file ", tag("code", query), href=visit.link("/node", id=query)
    )
    return tag("p", link)


def _write_form(visit: Visit, query: str) -> Markup:
    return tag(
        "form",
        tag(
            "p",
            tag("label", "Search for", for_="q", class_="unseen"),
            tag("input", type="search", id="q", name="q", value=query, placeholder="What do you want to know?", autocomplete="off", data_focus=True),
            class_="ask",
        ),
        tag(
            "details",
            tag("summary", "Filters", _name_filters(visit)),
            tag(
                "div",
                _write_choice(visit, "kind", "Kind", KINDS),
                _write_choice(visit, "speaker", "Speaker", SPEAKERS),
                _write_choice(visit, "client", "Client", CLIENTS),
                _write_field(visit, "since", "From", "2026-11-01, last week, 30d"),
                _write_field(visit, "until", "Until", "yesterday"),
                tag("label", tag("input", type="checkbox", name="superseded", value="1", checked=visit.params.get("superseded") == "1"), " also what was replaced", class_="tick"),
                class_="filters",
            ),
            open=any(visit.params.get(name) for name in (*_FILTERS, "superseded")),
        ),
        tag("input", type="hidden", name="project", value=visit.params["project"]) if visit.params.get("project") else None,
        data_live="/search", role="search",
    )  # fmt: skip


def _name_filters(visit: Visit) -> str:
    given = [visit.params[name] for name in _FILTERS if visit.params.get(name)]
    return f": {', '.join(given)}" if given else ""


def _write_choice(visit: Visit, name: str, title: str, values: Sequence[str]) -> Markup:
    chosen = visit.params.get(name)
    options = [
        tag("option", "any", value=""),
        *(tag("option", one, value=one, selected=one == chosen) for one in values),
    ]
    return tag("label", tag("span", title), tag("select", options, name=name))


def _write_field(visit: Visit, name: str, title: str, example: str) -> Markup:
    value = visit.params.get(name, "")
    return tag(
        "label",
        tag("span", title),
        tag("input", name=name, value=value, placeholder=example, autocomplete="off"),
    )


# ── The answer ───────────────────────────────────────────────────────────────────────────────────


def _ask(visit: Visit, query: str, **more: object) -> Json:
    kind, speaker = visit.params.get("kind"), visit.params.get("speaker")
    page = _read_page(visit)
    return visit.call(
        "memd/search",
        **{
            "query": query,
            "project": visit.project,
            "k": _HITS_MAX if speaker else _HITS,
            "offset": 0 if speaker else page * _HITS,
            "kinds": [kind] if kind in KINDS else [],
            "source": visit.params.get("client") or None,
            "since": visit.params.get("since") or None,
            "until": visit.params.get("until") or None,
            "include_superseded": visit.params.get("superseded") == "1",
            "show_all": True,
            **more,
        },
    )


def _read_page(visit: Visit) -> int:
    return min(read_number(visit.params.get("page", "")) or 0, _PAGES_MAX)


def _write_answer(visit: Visit, query: str) -> Child:
    try:
        found = _ask(visit, query)
    except BadRequest as error:
        return tag("p", str(error), class_="notice", role="alert")
    hits, speaker = found["hits"], visit.params.get("speaker")
    if speaker in SPEAKERS:
        hits = [hit for hit in hits if hit["speaker"] == speaker]
    wanted = query_terms(query)
    best = max((hit["score"] for hit in hits), default=0) or 1
    note = " ".join(found["notes"])
    hidden = ", ".join(
        f"{plural(count, 'memory')} {reason}" for reason, count in found["suppressed"].items()
    )
    return [
        tag(
            "p",
            tag("b", _VERDICTS[found["verdict"]], class_=f"verdict {found['verdict']}"),
            f" · {found['reason']}" if found["reason"] else "",
            f" · {note}" if note else "",
            f" · hidden: {hidden}" if hidden else "",
            f" · {found['took_ms']:.0f} ms",
            class_="quiet",
        ),
        [
            tag("p", f"{leg} did not answer: {why}", class_="notice")
            for leg, why in found["degraded"].items()
        ],
        tag("p", "The nearest of what is known:", class_="quiet")
        if found["verdict"] == "nothing" and hits
        else None,
        tag(
            "ol",
            [write_row(visit, hit, wanted=wanted, below=_write_score(hit, best)) for hit in hits],
            class_="memories hits",
        ),
        _write_pages(visit, len(found["hits"]), speaker in SPEAKERS),
        _write_question_form(visit, query),
    ]


def _write_pages(visit: Visit, shown: int, by_speaker: bool) -> Child:
    page = _read_page(visit)
    if by_speaker:
        return tag(
            "p",
            f"Of the {shown} best hits, those of the {visit.params['speaker']}.",
            class_="quiet",
        )
    links = [
        tag("a", name, href=visit.same_page("/search", page=number or None), class_="button")
        for name, number, is_there in (
            ("Better hits", page - 1, page > 0),
            ("More", page + 1, shown == _HITS),
        )
        if is_there
    ]
    return tag("p", links, class_="pages") if links else None


def _write_question_form(visit: Visit, query: str) -> Markup:
    return tag(
        "form",
        tag("label", "Why is this one not here? ", tag("input", name="id", inputmode="numeric", placeholder="#12", size=8, required=True, pattern="#?[0-9]+")),
        tag("input", type="hidden", name="q", value=query),
        [tag("input", type="hidden", name=name, value=visit.params[name]) for name in ("kind", "since", "until", "superseded", "project") if visit.params.get(name)],
        tag("button", "Explain"),
        data_visit="/whynot", class_="quiet",
    )  # fmt: skip


# ── A score and its parts ────────────────────────────────────────────────────────────────────────


def _read_steps(parts: Sequence[Json]) -> list[tuple[str, float, str]]:
    """(name, what it changes of the score, in words) of each part, in order; the changes add up to the score."""
    steps = []
    score = 0.0
    for part in parts:
        value, before = part["value"], score
        if part["op"] == "+":
            score += value
            words = f"{value:+.3f}"
        elif part["op"] == "*":
            score *= value
            words = f"× {value:.3f}"
        else:
            score = min(score, value)
            words = f"at most {value:.3f}"
        steps.append((part["name"], score - before, words))
    return steps


def _write_score(hit: Json, best: float) -> Markup:
    """The score as a bar of its parts, as long as it is of the best score; all of it in words behind it."""
    steps = _read_steps(hit["parts"])
    gained = sum(change for _, change, _ in steps if change > 0) or 1
    shown = 100 * max(hit["score"], 0) / best
    place, bars = 0.0, []
    for name, change, _ in steps:
        if change <= 0:
            continue
        width = shown * change / gained
        bars.append(
            tag(
                "rect",
                tag("title", f"{_PART_NAMES.get(name, name)}: {change:+.3f}"),
                x=f"{place:.2f}",
                y=0,
                width=f"{width:.2f}",
                height=6,
                class_=f"part {name if name in _PART_NAMES else 'other'}",
            )
        )
        place += width
    picture = tag(
        "svg",
        bars,
        viewBox="0 0 100 6",
        preserveAspectRatio="none",
        class_="score",
        aria_hidden="true",
    )
    return tag(
        "details",
        tag(
            "summary",
            tag("span", f"{hit['score']:.2f}", class_="number"),
            picture,
            tag("span", "score of ", f"#{hit['id']}", class_="unseen"),
        ),
        write_parts(hit["parts"], hit["score"]),
        class_="scored",
    )


def write_parts(parts: Sequence[Json], score: float) -> Markup:
    """Write each part of a score in a line, and their sum."""
    lines = [
        tag(
            "li",
            tag("span", words, class_="number"),
            " ",
            tag("span", "", class_=f"swatch {name if name in _PART_NAMES else 'other'}"),
            _PART_NAMES.get(name, name),
        )
        for name, _, words in _read_steps(parts)
    ]
    return tag(
        "ul",
        lines,
        tag("li", tag("span", f"= {score:.3f}", class_="number"), " score"),
        class_="parts",
    )


# ── Why not this one? ────────────────────────────────────────────────────────────────────────────


def show_why_not(visit: Visit) -> Page:
    """Show why a memory is not among the hits of a question, or its score if it is."""
    query = visit.params.get("q", "")
    number = visit.number("id")
    (memory,) = visit.call("memd/get", ids=[number], project="all")["memories"]
    found = _ask(visit, query, explain=True, k=_HITS, offset=0)
    traced = next((one for one in found["trace"] if one["summary_id"] == number), None)
    content = [
        tag("h1", f"Why not #{number}?", tabindex=-1),
        tag("p", "For the question ", tag("q", query), ":"),
        tag("ol", write_row(visit, memory, wanted=query_terms(query)), class_="memories"),
        _explain_candidate(traced, found) if traced else _explain_absence(visit, memory, found),
        tag(
            "p",
            tag(
                "a",
                "Back to the answer",
                href=visit.link("/search", **{**visit.params, "id": None}),
                class_="button",
            ),
        ),
    ]
    return Page(f"Why not #{number}? · memd", render(content), "/search")


def _explain_candidate(traced: Json, found: Json) -> Child:
    verdict, _, more = traced["verdict"].partition(";")
    if verdict == "hit":
        words = f"It is among the hits{f' ({more.strip()})' if more else ''}."
    elif found["verdict"] == "nothing":
        words = (
            "Nothing counts as an answer: "
            + (found["reason"] or "no memory has what was asked for")
            + "."
        )
    else:
        words = f"It was looked at and left out: {_MISSES.get(verdict, traced['verdict'])}."
    if not traced["parts"]:
        return tag("p", words)  # hidden ones get no score
    last = min((hit["score"] for hit in found["hits"]), default=None)
    ranks = ", ".join(f"{rank} by {leg}" for leg, rank in traced["ranks"].items() if rank)
    place = (
        f"Its rank: {ranks}."
        if ranks
        else "No retriever found it; it is a neighbour of one that was found."
    )
    shared = f" Words that it has of the question: {', '.join(traced['terms']) or 'none'}."
    score = (
        "" if last is None else f" Its score is {traced['score']:.3f}, the last hit’s {last:.3f}."
    )
    return [
        tag("p", words),
        tag("p", place, shared, score),
        write_parts(traced["parts"], traced["score"]),
    ]


def _explain_absence(visit: Visit, memory: Json, found: Json) -> Child:
    reasons = []
    names = {one["id"]: one["key"] for one in visit.projects}
    here = {visit.project, "global"}
    key = names.get(memory["project_id"])
    if (
        visit.project != "all"
        and key != "global"
        and visit.name_project(key) not in here
        and key not in here
    ):
        reasons.append(
            f"it belongs to the project {memory['project']}, and {visit.project} was searched"
        )
    if memory["superseded_by"] and visit.params.get("superseded") != "1":
        reasons.append(
            f"#{memory['superseded_by']} has replaced it, and what was replaced is left out"
        )
    if visit.params.get("kind") and memory["kind"] != visit.params["kind"]:
        reasons.append(
            f"it is a {memory['kind']}, and only the kind {visit.params['kind']} was searched"
        )
    if visit.params.get("since") or visit.params.get("until"):
        reasons.append("it may be of another time than was asked for")
    notes = " ".join(found["notes"])
    if not reasons:
        reasons.append(
            "neither its words nor its meaning are near enough to the question: no retriever found it"
        )
    return [
        tag("p", f"It was not looked at: {'; '.join(reasons)}."),
        tag("p", f"The question was understood so: {notes}.") if notes else None,
    ]

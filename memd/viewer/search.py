"""Search: as one types, with the parts of each score, and why a memory is not among the hits."""

import re
from collections.abc import Sequence

from memd.errors import BadRequest
from memd.viewer.page import (
    KINDS,
    SPEAKERS,
    Json,
    Page,
    Visit,
    make_page,
    plural,
    query_terms,
    read_number,
)

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
    given = [visit.params[name] for name in _FILTERS if visit.params.get(name)]
    return make_page(
        query[:60] if query else "Search",
        query=query,
        given=given,
        answer=_answer(visit, query) if query.strip() else None,
        file=query.strip() if _FILE_NAME.fullmatch(query.strip()) else None,
    )


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


def _answer(visit: Visit, query: str) -> Json:
    """The template's values from an answer, or from what was wrong with the question."""
    try:
        found = _ask(visit, query)
    except BadRequest as error:
        return {"error": str(error)}
    hits, speaker, page = found["hits"], visit.params.get("speaker"), _read_page(visit)
    by_speaker = speaker in SPEAKERS
    if by_speaker:
        hits = [hit for hit in hits if hit["speaker"] == speaker]
    hidden = [f"{plural(count, 'memory')} {why}" for why, count in found["suppressed"].items()]
    best = max((hit["score"] for hit in hits), default=0) or 1
    notes = [" ".join(found["notes"]), f"hidden: {', '.join(hidden)}" if hidden else ""]
    return {
        "error": "",
        "found": found,
        "verdict": _VERDICTS[found["verdict"]],
        "wanted": query_terms(query),
        "facts": [one for one in (found["reason"], *notes, f"{found['took_ms']:.0f} ms") if one],
        "hits": [(hit, read_steps(hit["parts"]), measure_bars(hit, best)) for hit in hits],
        "by_speaker": by_speaker,
        "page": page,
        "has_more": len(found["hits"]) == _HITS,
    }


# ── A score and its parts ────────────────────────────────────────────────────────────────────────


def read_steps(parts: Sequence[Json]) -> list[Json]:
    """Name, class, change of the score, and words of each part, in order; the changes add up to the score."""
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
        name = part["name"]
        css = name if name in _PART_NAMES else "other"
        steps.append(
            {
                "name": _PART_NAMES.get(name, name),
                "css": css,
                "change": score - before,
                "words": words,
            }
        )
    return steps


def measure_bars(hit: Json, best: float) -> list[Json]:
    """The bars of the parts that a score gained by, together as long as the score is of the best one's 100."""
    gains = [one for one in read_steps(hit["parts"]) if one["change"] > 0]
    gained = sum(one["change"] for one in gains) or 1
    place, bars = 0.0, []
    for one in gains:
        width = 100 * max(hit["score"], 0) / best * one["change"] / gained
        bars.append({**one, "x": place, "width": width})
        place += width
    return bars


# ── Why not this one? ────────────────────────────────────────────────────────────────────────────


def show_why_not(visit: Visit) -> Page:
    """Show why a memory is not among the hits of a question, or its score if it is."""
    query = visit.params.get("q", "")
    number = visit.number("id")
    (memory,) = visit.call("memd/get", ids=[number], project="all")["memories"]
    found = _ask(visit, query, explain=True, k=_HITS, offset=0)
    traced = next((one for one in found["trace"] if one["summary_id"] == number), None)
    lines = _explain_candidate(traced, found) if traced else _explain_absence(visit, memory, found)
    return make_page(
        f"Why not #{number}?",
        query=query,
        memory=memory,
        wanted=query_terms(query),
        lines=lines,
        traced=traced,
        steps=read_steps(traced["parts"]) if traced else [],
    )


def _explain_candidate(traced: Json, found: Json) -> list[str]:
    verdict, _, more = traced["verdict"].partition(";")
    if verdict == "hit":
        words = f"It is among the hits{f' ({more.strip()})' if more else ''}."
    elif found["verdict"] == "nothing":
        why = found["reason"] or "no memory has what was asked for"
        words = f"Nothing counts as an answer: {why}."
    else:
        words = f"It was looked at and left out: {_MISSES.get(verdict, traced['verdict'])}."
    if not traced["parts"]:
        return [words]
    ranks = ", ".join(f"{rank} by {leg}" for leg, rank in traced["ranks"].items() if rank)
    place = (
        f"Its rank: {ranks}."
        if ranks
        else "No retriever found it; it is a neighbour of one that was found."
    )
    shared = f"Words that it has of the question: {', '.join(traced['terms']) or 'none'}."
    last = min((hit["score"] for hit in found["hits"]), default=None)
    score = (
        "" if last is None else f"Its score is {traced['score']:.3f}, the last hit’s {last:.3f}."
    )
    return [words, f"{place} {shared} {score}"]


def _explain_absence(visit: Visit, memory: Json, found: Json) -> list[str]:
    reasons = []
    names = {one["id"]: one["key"] for one in visit.projects}
    key = names.get(memory["project_id"])
    if visit.project not in {"all", memory["project"], key} and key != "global":
        reasons.append(
            f"it belongs to the project {memory['project']}, and {visit.label_project(visit.project)} was searched"
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
    if not reasons:
        reasons.append(
            "neither its words nor its meaning are near enough to the question: no retriever found it"
        )
    lines = [f"It was not looked at: {'; '.join(reasons)}."]
    notes = " ".join(found["notes"])
    return [*lines, f"The question was understood so: {notes}."] if notes else lines

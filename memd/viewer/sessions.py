"""Sessions: each to read, with what it was told and what it left beside it; what told lines cost, and did they help."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from memd.viewer.page import Json, Page, Visit, make_page, shorten

_WEEKS = 4
_EVENTS_MAX = 5_000
"""Events of a session that is written as one file."""
_PAGE_EVENTS = 500
_FILES_SHOWN = 12
_TOLD_COUNTS = {
    "sessions": "Sessions told", "lines": "Lines", "used": "Seen used", "overruled": "Overruled", "ignored": "Not used",
}  # fmt: skip


def show_sessions(visit: Visit) -> Page:
    """The sessions of a project, newest first."""
    found = visit.call("memd/sessions", project=visit.project, after=visit.cursor())
    has_clients = len({one["client"] for one in found["sessions"]}) > 1
    return make_page(
        "Sessions",
        found=found,
        has_clients=has_clients,
        **{} if visit.cursor() else read_weeks(visit),
    )


def read_weeks(visit: Visit) -> Json:
    """Lines shown to agents in the last weeks, their outcomes, and what memd cost."""
    found = visit.call("memd/told", weeks=_WEEKS)
    weeks = [one for one in found["weeks"] if one["told"]["lines"] or one["costs"]]
    costs = sorted({name for week in weeks for name in week["costs"]})
    rows = [
        (words, [f"{week['told'][name]:,}" for week in weeks])
        for name, words in _TOLD_COUNTS.items()
    ]
    rows.append(("Tokens", [f"{_sum_costs(week, 'tokens'):,}" for week in weeks]))
    rows += [
        (f"Tokens: {name}", [f"{week['costs'].get(name, {}).get('tokens', 0):,}" for week in weeks])
        for name in costs
    ]
    waits = [_sum_costs(week, "wait_ms") / 1000 for week in weeks]
    rows.append(("Agents waited in memd", [f"{wait:,.1f} s" for wait in waits]))
    return {"weeks": weeks, "waits": waits, "rows": rows}


def _sum_costs(week: Json, name: str) -> int:
    return sum(cost[name] for cost in week["costs"].values())


def show_told(visit: Visit) -> Page:
    """Texts told to agents, by weeks and by session, and how much was seen used."""
    sessions = visit.call("memd/sessions", project=visit.project)["sessions"]
    told = [one for one in sessions if one["shown"]]
    return make_page("Told, and did it help", told=told, **read_weeks(visit))


# ── One session ──────────────────────────────────────────────────────────────────────────────────


def show_session(visit: Visit) -> Page:
    """One session to read: what was said and done, and beside it what it was told and what it left."""
    after = visit.cursor()
    found = visit.call("memd/session", session=visit.places["key"], after=after)
    title = name_session(found)
    return make_page(
        title[:60], title=title, found=found, **arrange_session(found, is_first=after is None)
    )


def read_whole_session(visit: Visit, key: str) -> Json:
    """A session for a file that leaves this machine: secrets are looked for once more; at most its first events."""
    found: Json = visit.call("memd/session", session=key, limit=_PAGE_EVENTS, check_secrets=True)
    events, after = list(found["events"]), found["next"]
    while after and len(events) < _EVENTS_MAX:
        page = visit.call(
            "memd/session", session=key, limit=_PAGE_EVENTS, after=after, check_secrets=True
        )
        events += page["events"]
        after = page["next"]
    return {**found, "events": events, "next": after}


def name_session(found: Json) -> str:
    """The title of a session for people."""
    return shorten(found["title"] or "", 200) or "A session without a prompt"


def arrange_session(found: Json, *, is_first: bool = True) -> Json:
    """The page of a session: a summary on top, its turns, and what stands beside each.

    What it was told and what it left stand beside the turn in which that happened; on a later page of a long session
    only that of its own time.
    """
    turns = _split_turns(found["events"])
    starts = [turn[0]["at"] for turn in turns] or [found["started_at"]]
    until = found["next"][0] if found["next"] else None
    beside: list[dict[str, list[Json]]] = [{"told": [], "left": []} for _ in starts]
    for name, items in (("told", found["told"]), ("left", reversed(found["left"]))):
        for one in items:
            if (is_first or one["at"] >= starts[0]) and (until is None or one["at"] < until):
                place = max(sum(start <= one["at"] for start in starts) - 1, 0)
                beside[place][name].append(one)
    counts: Counter[str] = Counter(found["counts"])
    return {
        "turns": [
            (turn, _group_told(side["told"]), side["left"])
            for turn, side in zip(turns or [[]], beside, strict=True)
        ],
        "prompts": counts["prompt"],
        "calls": counts["tool_result"] + counts["tool_failure"] + counts["tool_refused"],
        "failures": counts["tool_failure"],
        "compactions": counts["compact_end"],
        "shown": found["told"],
        "used": sum(one["outcome"] == "used" for one in found["told"]),
        "tokens": sum(one["tokens"] for one in found["told"]),
        "files": list(_name_files(found["files"][:_FILES_SHOWN])),
        "files_left": len(found["files"][_FILES_SHOWN:]),
        "is_first": is_first,
    }


def _name_files(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each path with its name, and with its directory's if another has that name."""
    counts = Counter(path.rpartition("/")[2] for path in paths)
    for path in paths:
        *_, directory, name = "", *path.split("/")
        yield path, f"{directory}/{name}" if counts[name] > 1 and directory else name


def _split_turns(events: Sequence[Json]) -> list[list[Json]]:
    """The events from each prompt of the session to the next; calls of tools that follow each other are one item."""
    turns: list[list[Json]] = []
    for is_call, items in groupby(events, key=lambda one: one["what"] == "tool"):
        found = list(items)
        if is_call:
            calls = {"what": "tools", "at": found[0]["at"], "calls": found}
            turns[-1].append(calls) if turns else turns.append([calls])
            continue
        for one in found:
            if one["what"] == "prompt" or not turns:
                turns.append([])
            turns[-1].append(one)
    return turns


def _group_told(told: Sequence[Json]) -> list[tuple[str, int, list[Json]]]:
    """(moment, time, lines) of what was told at once."""
    groups = groupby(told, key=lambda one: (one["moment"], one["at"]))
    return [(moment, at, list(lines)) for (moment, at), lines in groups]


def show_context(visit: Visit) -> Page:
    """Show what a session that begins now would be shown, word for word."""
    prompt = visit.params.get("prompt", "")
    found = visit.call("memd/context", directory=visit.key, prompt=prompt or None, explain=True)
    return make_page(
        "What a session would be told",
        found=found,
        prompt=prompt,
        told=[one for one in found["memories"] if one["shown"]],
        untold=[one for one in found["memories"] if not one["shown"]],
    )

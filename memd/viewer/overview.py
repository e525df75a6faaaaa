"""Home, a project in one view; the inbox; projects and switches; health; rounds of consolidation; and sessions.

A session is there to read, with what it was told and what it left beside it; what told lines cost, and did they help.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from memd.viewer.page import (
    KINDS,
    SPEAKERS,
    Fields,
    Json,
    Page,
    Visit,
    format_age,
    format_gap,
    format_size,
    make_page,
    plural,
    read_field_number,
    read_number,
    read_text,
    render,
    shorten,
)
from memd.viewer.search import choose_recent

_NO_PROJECTS = frozenset({"global", "scratch"})
"""Keys of what has no directory: it has no other name, and is not merged."""
_STATES = (
    ("on", "Capture what happens there, and tell sessions what is known."),
    ("capture-only", "Capture, but tell sessions nothing unasked."),
    ("recall-only", "Tell sessions what is known, but capture nothing new."),
    ("off", "Neither. Searches are still answered."),
)


# ── Projects ─────────────────────────────────────────────────────────────────────────────────────


def show_projects(visit: Visit) -> Page:
    """Every project with what is known of it, the one used last first."""
    found = visit.call("memd/projects")["projects"]
    found.sort(key=lambda one: -(one["last_event_at"] or one["last_memory_at"] or 0))
    return make_page("Projects", projects=found)


def show_project(visit: Visit) -> Page:
    """One project: why it is one, its directories, its switch."""
    found = visit.call("memd/project", project=visit.text("name"))
    is_named = found["key"] not in _NO_PROJECTS
    title = found["name"][:60]
    return make_page(title, found=found, is_named=is_named)


def show_rename(visit: Visit) -> Page:
    """A form for a project's name."""
    found = visit.call("memd/project", project=visit.text("name"))
    title = f"Rename {found['name'][:60]}"
    return make_page(title, found=found)


def rename(visit: Visit, fields: Fields) -> Json:
    """Rename a project."""
    given = {"project": read_text(fields, "project"), "name": read_text(fields, "name")}
    done = visit.call("memd/project/rename", **given)
    return {"say": f"It is called {done['name']} now.", "go": "/projects"}


def show_merge(visit: Visit) -> Page:
    """Show the projects that one may be merged into, then what the merge would move."""
    found = visit.call("memd/project", project=visit.text("name"))
    into = visit.params.get("into", "")
    others = [
        one["key"] for one in visit.projects if one["key"] not in {found["key"], *_NO_PROJECTS}
    ]
    plan = None
    if into:
        plan = visit.call("memd/project/merge", project=found["key"], into=into, dry_run=True)
    return make_page(
        f"Merge {found['name'][:60]}", found=found, into=into, others=others, plan=plan
    )


def merge(visit: Visit, fields: Fields) -> Json:
    """Merge two projects."""
    given = {"project": read_text(fields, "project"), "into": read_text(fields, "into")}
    done = visit.call("memd/project/merge", **given, dry_run=False)
    moved = f"{plural(done['memories'], 'memory')} moved to {done['into']['name']}."
    return {"say": moved, "go": "/projects"}


def show_unmerge(visit: Visit) -> Page:
    """Show what undoing a merge does."""
    key = visit.params.get("key", "")
    return make_page("Take a merge back", key=key)


def unmerge(visit: Visit, fields: Fields) -> Json:
    """Take a merge back."""
    done = visit.call("memd/project/merge/undo", project=read_text(fields, "project"))
    back = f"{plural(done['memories'], 'memory')} went back to {done['project']['name']}."
    return {"say": back, "go": "/projects"}


def show_switch(visit: Visit) -> Page:
    """Show the switches of a project, to change them."""
    found = visit.call("memd/project", project=visit.text("name"))
    title = f"Switch {found['name'][:60]}"
    return make_page(title, found=found, states=_STATES)


def switch(visit: Visit, fields: Fields) -> Json:
    """Switch a project."""
    name = read_text(fields, "project")
    done = visit.call("memd/switch", state=read_text(fields, "state"), project=name)
    said = f"{visit.label_project(name)}: {done['here']['switch']['reason']}."
    return {"say": said, "go": visit.link("/project", name=name)}


# ── Health ───────────────────────────────────────────────────────────────────────────────────────


def show_health(visit: Visit) -> Page:
    """Show the health of memd."""
    status = visit.call("memd/status")
    runs = visit.call("memd/consolidate/runs")["runs"]
    backups = visit.call("memd/backups")["backups"]
    sync = visit.call("memd/sync")
    is_well = status["health"] == "healthy"
    return make_page(
        "Health",
        status=status,
        runs=runs,
        backups=backups,
        sync=sync,
        is_well=is_well,
        lines=_describe_health(visit, status, backups, sync),
    )


def _describe_health(visit: Visit, status: Json, backups: list[Json], sync: Json) -> list[str]:
    """Say how memd is in sentences that need none of its words."""
    summaries, events, embedder = status["summaries"], status["events"], status["embedder"]
    waiting = summaries["to_index"]
    holding = summaries["count"] - summaries["superseded"]
    last = events["last_at"]
    made = [one["at"] for one in backups if not one["is_aside"]]
    up = format_gap(int(status["uptime_s"] * 1000) or 1)
    heard = (
        f"last heard of an agent {format_age(last, visit.now)}"
        if last
        else "has not heard of an agent yet"
    )
    size = format_size(status["vault"]["bytes"])
    kept = f"{summaries['superseded']:,} more were replaced and are kept"
    is_whole = status["books"]["balanced"]
    lines = [
        f"It has run for {up}, and {heard}.",
        f"It holds {plural(holding, 'memory')}; {kept}. All of it takes {size} on this disk.",
        f"{plural(waiting, 'memory')} cannot be found yet: they wait to be indexed."
        if waiting
        else "All of them can be found.",
        "Nothing that agents reported was lost."
        if is_whole
        else "Some events that agents reported are not accounted for.",
        _describe_meaning(embedder),
        f"The last backup was made {format_age(max(made), visit.now)}."
        if made
        else "There is no backup yet: `memd backup` makes one.",
    ]
    if summaries["contradictions"]:
        lines.append(
            f"{plural(summaries['contradictions'], 'pair')} of memories contradict each other and wait for your judgment."
        )
    if sync["places"]:
        lines.append(f"Memories are shared by {plural(len(sync['places']), 'place')}.")
    return lines


def _describe_meaning(embedder: Json) -> str:
    learned = embedder.get("learned")
    if learned and learned["state"] == "ready":
        done = f"{learned['coverage']:.0%} of the texts are read"
        return f"Questions are also understood by meaning, by the model {learned['model']}: {done}."
    return (
        "Questions are answered by their words and words like them; no model reads their meaning."
    )


def render_findings(visit: Visit) -> str:
    """Write the doctor's findings on the vault: first those that are not well."""
    findings = visit.call("memd/doctor")["findings"]
    ill = [one for one in findings if one["verdict"] != "ok"]
    return render("findings.html", visit, ill=ill, well=[one for one in findings if one not in ill])


def show_undo_run(visit: Visit) -> Page:
    """Show what undoing a round of consolidation brings back."""
    number = visit.number("run")
    plan = visit.call("memd/consolidate/undo", what=f"r{number}", dry_run=True)["report"]
    return make_page(f"Undo r{number}", number=number, plan=plan)


def undo_run(visit: Visit, fields: Fields) -> Json:
    """Undo a round."""
    number = read_field_number(fields, "run")
    done = visit.call("memd/consolidate/undo", what=f"r{number}", dry_run=False)["report"]
    return {"say": f"Undone: {plural(len(done['shown']), 'memory')} shows again.", "go": "/health"}


_SHOWN = 5
_LEARNED_SHOWN = 50
_VERDICTS = (
    ("keep", "Keep", "k"), ("reject", "Reject", "r"), ("everywhere", "Hold everywhere", "g"), ("seen", "Next", "n"),
)  # fmt: skip
"""Verdict, the word on its button, and the key that presses it."""
_DONE = {
    "keep": "is kept, and does not ask again",
    "reject": "is rejected: it is told no more, and never learned again",
    "everywhere": "holds everywhere now",
    "seen": "stays as it is",
    "undo": "waits for you again",
}


def show_home(visit: Visit) -> Page:
    """Show the newest knowledge: what holds, what is open, what changed, and whether memd is well."""
    found = visit.call("memd/overview", project=visit.project, limit=_SHOWN)
    if not found["kinds"]:
        return make_page("memd", found=found)
    pairs: list[list[Json]] = []
    if found["contradictions"]:
        pairs = visit.call("memd/judge/open", project=visit.project, limit=_SHOWN)["pairs"]
    return make_page(
        "memd",
        found=found,
        pairs=pairs,
        status=visit.call("memd/status"),
        drop=_find_drop(visit, found["kinds"]),
        sessions=visit.call("memd/sessions", project=visit.project, limit=1)["sessions"],
        learned=visit.call("memd/review/list", project=visit.project, limit=0)["count"],
        recent=choose_recent(found["first_at"], found["last_at"], visit.now),
    )


def _find_drop(visit: Visit, kinds: list[Json]) -> tuple[int, int] | None:
    """(how many fewer hold, since when) than this viewer has counted in the project before; None if none."""
    holding = sum(one["memories"] - one["superseded"] for one in kinds)
    most, at = visit.counted.get(visit.project, (0, 0))
    if holding >= most:
        visit.counted[visit.project] = holding, visit.now
        return None
    return most - holding, at


def show_memories(visit: Visit) -> Page:
    """Memories of a kind, a speaker, or pinned; newest first, page by page."""
    kinds = [kind for kind in visit.params.get("kind", "").split() if kind in KINDS]
    speaker = visit.params.get("speaker", "")
    has_replaced = visit.params.get("superseded") == "1"
    is_pinned = visit.params.get("pinned") == "1"
    found = visit.call(
        "memd/list",
        project=visit.project,
        kinds=kinds,
        speaker=speaker if speaker in SPEAKERS else None,
        pinned=is_pinned,
        include_superseded=has_replaced,
        after=visit.cursor(),
    )
    what = f"{', '.join(kinds)} memories".strip().capitalize()
    title = "Pinned memories" if is_pinned else what
    return make_page(title, title=title, found=found, has_replaced=has_replaced)


# ── The inbox ────────────────────────────────────────────────────────────────────────────────────


def show_inbox(visit: Visit) -> Page:
    """Return what was learned and nobody has looked at, then the pairs of which only one can hold."""
    learned = visit.call("memd/review/list", project=visit.project, limit=_LEARNED_SHOWN)
    found = visit.call("memd/judge/open", project=visit.project, limit=100)
    by_session = groupby(learned["memories"], key=lambda one: one["session"])
    undo = read_number(visit.params.get("undo", ""))
    return make_page(
        "Inbox",
        learned=learned,
        sessions=[(key, list(memories)) for key, memories in by_session],
        found=found,
        undo=undo,
        verdicts=_VERDICTS,
    )


def show_rejected(visit: Visit) -> Page:
    """Return what the user rejected, and how often it came again."""
    found = visit.call("memd/review/list", project=visit.project, rejected=True, limit=500)
    return make_page("Rejected", memories=found["memories"])


def review(visit: Visit, fields: Fields) -> Json:
    """Say something of a memory, or take it back."""
    number, verdict = read_field_number(fields, "id"), read_text(fields, "verdict")
    visit.call("memd/review", ids=[number], verdict=verdict)
    undo = None if verdict == "undo" else number
    return {"say": f"#{number} {_DONE[verdict]}.", "go": visit.link("/inbox", undo=undo)}


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

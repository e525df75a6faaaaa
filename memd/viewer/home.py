"""Home: what memd knows of a project in one view; lists by kind; the inbox."""

from itertools import groupby

from memd.viewer.page import (
    KINDS,
    SPEAKERS,
    Fields,
    Json,
    Page,
    Visit,
    make_page,
    read_field_number,
    read_number,
    read_text,
)
from memd.viewer.timeline import choose_recent

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
        learned=visit.call("memd/review/list", project=visit.project, limit=1)["count"],
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

"""What was done to a memory, as an agent reads it: remembered, forgotten, pinned, judged.

Not here: recalled text (format.py).
"""

from typing import Any

from memd.consolidate.curator import Forgotten, Remembered
from memd.consolidate.judge import Candidate, Judged
from memd.models import Summary
from memd.serve import fit, when

_ROOM = 16_000


def remembered(kept: Remembered, project: str, now: int) -> dict[str, Any]:
    """`mem_remember`: its id, what became of it, and what somebody should judge."""
    shown: dict[str, Any] = {"id": kept.id, "outcome": kept.outcome, "project": project}
    if kept.superseded:
        shown["superseded"] = list(kept.superseded)
    if kept.candidates:
        rows = [_candidate(one, now) for one in kept.candidates]
        shown |= {"candidates": rows, "judgment_required": True}
    return shown


def _candidate(one: Candidate, now: int) -> dict[str, Any]:
    return {
        "id": one.id,
        "title": fit.text(one.title, 200),
        "kind": one.kind.value,
        "at": when.iso(one.at),
        "age": when.age(one.at, now),
        "likeness": fit.number(one.likeness, 3),
        "finding": fit.text(one.finding, 300),
    }


def judged(done: Judged) -> dict[str, Any]:
    """`mem_judge`: what holds of the two now, and what that hides and shows."""
    shown: dict[str, Any] = {"id": done.id, "other": done.other, "outcome": done.outcome}
    told = {
        "relation": done.relation and done.relation.value,
        "hidden": list(done.hidden),
        "shown": list(done.shown),
        "was": done.was,
    }
    return {**shown, **{name: value for name, value in told.items() if value}}


def forgotten(gone: Forgotten) -> dict[str, Any]:
    """`mem_forget`: what went, or would go, and what that does to others."""
    rows = [{"id": one.id, "title": fit.text(one.title, 100)} for one in gone.summaries]
    shown: dict[str, Any] = {
        "dry_run": gone.is_dry_run,
        "would_forget" if gone.is_dry_run else "forgot": fit.items(rows, _ROOM // 2)[0],
        "events": gone.events,
    }
    if gone.count > len(rows):
        shown["memories"] = gone.count
    if gone.kept_events:
        shown["kept_events"] = gone.kept_events
    if gone.backups:
        shown["backups"] = len(gone.backups)
    if gone.sessions:
        titles = [fit.text(title, 100) for title in gone.sessions]
        shown["sessions"] = fit.items(titles, _ROOM // 8)[0]
    for name in ("revived", "also_in", "unknown"):
        numbers = list(getattr(gone, name))
        if numbers:
            shown[name] = fit.items(numbers, _ROOM // 8)[0]
    if gone.is_dry_run:
        again = "nothing was erased; repeat with dry_run: false"
        shown |= {"token": gone.token} if gone.token else {}
        shown["next"] = f"{again} and this token" if gone.token else again
    return shown


def pinned(summary: Summary) -> dict[str, Any]:
    """`mem_pin`: the memory as it stands now."""
    return {
        "id": summary.id,
        "title": fit.text(summary.title, 100),
        "pinned": summary.pinned_at is not None,
        "tier": summary.tier.value,
    }

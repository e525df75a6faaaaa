"""What was done to a memory, as an agent reads it: remembered, forgotten, pinned.

Not here: recalled text (format.py).
"""

from typing import Any

from memd.consolidate.curator import Forgotten, Remembered
from memd.models import Summary
from memd.serve import fit

_ROOM = 16_000


def remembered(kept: Remembered, project: str) -> dict[str, Any]:
    """`mem_remember`: its id, and what became of it."""
    shown: dict[str, Any] = {"id": kept.id, "outcome": kept.outcome, "project": project}
    return {**shown, "superseded": list(kept.superseded)} if kept.superseded else shown


def forgotten(gone: Forgotten) -> dict[str, Any]:
    """`mem_forget`: what went, or would go, and what that does to others."""
    rows = [{"id": one.id, "title": fit.text(one.title, 100)} for one in gone.summaries]
    shown: dict[str, Any] = {
        "dry_run": gone.is_dry_run,
        "would_forget" if gone.is_dry_run else "forgot": fit.items(rows, _ROOM // 2)[0],
        "events": gone.events,
    }
    for name in ("revived", "also_in", "unknown"):
        numbers = list(getattr(gone, name))
        if numbers:
            shown[name] = fit.items(numbers, _ROOM // 8)[0]
    return (
        {**shown, "next": "nothing was erased; repeat with dry_run: false"}
        if gone.is_dry_run
        else shown
    )


def pinned(summary: Summary) -> dict[str, Any]:
    """`mem_pin`: the memory as it stands now."""
    return {
        "id": summary.id,
        "title": fit.text(summary.title, 100),
        "pinned": summary.pinned_at is not None,
        "tier": summary.tier.value,
    }

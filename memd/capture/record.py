"""One transaction of the intake: events, the sessions they belong to, and the books. Knows no waiting.

Nothing is entered that is not counted, and nothing counted that is not entered: received is always
stored + duplicate + filtered + refused, even after a crash in mid-commit.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memd.capture.adapters import Ignored, Refused
from memd.capture.identity import Identity
from memd.models import EventKind, NewEvent
from memd.store import books, events, projects
from memd.store.database import Connection
from memd.text import one_line

Outcome = Literal["stored", "duplicate", "filtered", "refused"]
_TITLE_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a request; `seq` is the event's number if it is stored (now or before)."""

    outcome: Outcome
    seq: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request ready to be stored: redacted, with its project."""

    source: str
    verdict: NewEvent | Ignored | Refused
    project: Identity | None = None


def record(tx: Connection, everything: Sequence[Prepared], now: int) -> list[Receipt]:
    """Store what is to be stored, in order, and enter all of it in the books."""
    receipts = [_record_one(tx, prepared, now) for prepared in everything]
    for source in sorted({prepared.source for prepared in everything}):
        entries: Counter[tuple[str, str]] = Counter()
        for prepared, receipt in zip(everything, receipts, strict=True):
            if prepared.source == source:
                entries["received", ""] += 1
                entries[receipt.outcome, receipt.reason or ""] += 1
        books.enter(tx, source, entries)
    return receipts


def _record_one(tx: Connection, prepared: Prepared, now: int) -> Receipt:
    event, project = prepared.verdict, prepared.project
    if isinstance(event, Refused):
        return Receipt("refused", reason=event.reason)
    if isinstance(event, Ignored):
        return Receipt("filtered", reason=event.reason)
    assert project is not None  # an event is only made where its project is known
    if books.is_forgotten(tx, event.key):
        return Receipt("filtered", reason="forgotten")
    project_id = projects.ensure_project(tx, project.key, project.name, project.reason, now)
    session_id = projects.ensure_session(tx, event.session, project_id, event.at)
    seq, is_new = events.append(tx, event, session_id)
    if not is_new:
        return Receipt("duplicate", seq)
    projects.session_happened(tx, session_id, event.at, _title(event))
    return Receipt("stored", seq)


def _title(event: NewEvent) -> str | None:
    prompt = event.payload.get("prompt")
    if event.kind is not EventKind.PROMPT or not isinstance(prompt, str):
        return None
    return one_line(prompt, _TITLE_CHARACTERS) or None

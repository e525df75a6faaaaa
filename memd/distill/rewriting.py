"""What a model may write up next, what becomes of what it wrote, and what it may cost. Knows no waiting.

The ledger is one note in the vault: how many replies the day has cost, and which turns were tried, each
at which revision. So a restart neither forgets what was spent nor asks again what was refused; a turn
that the rules have revised since is another turn. Never shown to a model: a turn with anything private
in it, or of a project or session that is switched off.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memd.distill import quality
from memd.distill.parse import Written
from memd.models import Draft, Event, EventKind, Summary
from memd.store import books, events, links, projects, summaries, switches, writings
from memd.store.database import Connection
from memd.text import PRIVATE

DAY_MS = 86_400_000
"""An older turn is left as it is."""
TURNS_MAX = 1_000
_NOTE = "writer"
_HEADING = "Learnt:"


@dataclass(frozen=True, slots=True)
class Ledger:
    """What has been asked of the model."""

    day: int = 0
    """Days since 1970, UTC."""
    calls: int = 0
    """Replies on that day."""
    tried: Mapping[int, int] = field(default_factory=dict)
    """Summary → the revision of it that the model has had its say on."""

    def today(self, now: int) -> "Ledger":
        """The same on the day of `now`: a new day has cost nothing yet."""
        day = now // DAY_MS
        return self if day == self.day else replace(self, day=day, calls=0)


def ledger(tx: Connection) -> Ledger:
    """Read the ledger; one that cannot be read is a new one."""
    try:
        said: Any = json.loads(books.note(tx, _NOTE) or "{}")
        tried = {int(key): int(value) for key, value in said.get("tried", {}).items()}
        return Ledger(int(said.get("day", 0)), int(said.get("calls", 0)), tried)
    except (ValueError, TypeError, AttributeError):
        return Ledger()


def _keep(tx: Connection, new: Ledger) -> Ledger:
    value = {"day": new.day, "calls": new.calls, "tried": new.tried}
    books.write_note(tx, _NOTE, json.dumps(value, separators=(",", ":")))
    return new


def spend(tx: Connection, limit: int, now: int) -> Ledger | None:
    """Pay for one reply before it is asked for; None if the day's are spent."""
    kept = ledger(tx).today(now)
    return _keep(tx, replace(kept, calls=kept.calls + 1)) if kept.calls < limit else None


def give_back(tx: Connection, now: int) -> Ledger:
    """There was no reply: it has cost nothing."""
    kept = ledger(tx).today(now)
    return _keep(tx, replace(kept, calls=max(kept.calls - 1, 0)))


@dataclass(frozen=True, slots=True)
class Look:
    """What there is to do. `waiting` counts the turns that could be written up now or soon."""

    ledger: Ledger
    waiting: int
    turn: Summary | None


def look(tx: Connection, now: int, idle_ms: int, failures: Mapping[int, int]) -> Look:
    """The newest turn that is over and was not tried; those that failed less often come first."""
    kept = ledger(tx).today(now)
    open_turns = writings.open_turns(tx, now - DAY_MS, now, TURNS_MAX)
    fresh = [number for number, revisions in open_turns if kept.tried.get(number) != revisions]
    fresh.sort(key=lambda number: failures.get(number, 0))
    for number in fresh:
        summary = summaries.get(tx, number)
        if summary is not None and _may_be_shown(tx, summary, now, idle_ms):
            return Look(kept, len(fresh), summary)
    return Look(kept, 0, None)


def _may_be_shown(tx: Connection, summary: Summary, now: int, idle_ms: int) -> bool:
    """Whether the turn is over, and nothing in it is private or switched off."""
    ids = [event_id for event_id, _ in links.sources_of(tx, summary.id)]
    said = events.by_ids(tx, ids).values()
    is_over = now - summary.at >= idle_ms or any(event.kind is EventKind.STOP for event in said)
    return is_over and not _is_private(summary, *said) and _is_on(tx, summary)


def _is_private(summary: Summary, *said: Event) -> bool:
    texts = [summary.title, summary.body]
    texts += [json.dumps(event.payload, ensure_ascii=False) for event in said]
    return any(PRIVATE in text for text in texts)


def _is_on(tx: Connection, summary: Summary) -> bool:
    project = projects.project(tx, summary.project_id)
    session = projects.session(tx, summary.session_id or 0)
    key = session.key if session else None
    return project is not None and switches.effective(tx, project.key, key).captures


def put(tx: Connection, turn: Summary, written: Written, model: str, now: int) -> bool:
    """Let what the model wrote stand, the rules' own text below it; False if the turn has changed."""
    body = _body(written.facts, turn.body)
    new = writings.WriteUp(
        turn.id, turn.revisions, written.title, body, max(turn.quality, quality.of(body)), model
    )
    return writings.write_up(tx, new, now)


def leave(tx: Connection, turn: Summary, now: int) -> Ledger:
    """The model has had its say on this revision of the turn."""
    kept = ledger(tx).today(now)
    still_open = {number for number, _ in writings.open_turns(tx, now - DAY_MS, now, TURNS_MAX)}
    tried = {number: rev for number, rev in kept.tried.items() if number in still_open}
    if turn.id in still_open:
        tried[turn.id] = turn.revisions
    return _keep(tx, replace(kept, tried=tried))


def _body(facts: tuple[str, ...], body: str) -> str:
    if not facts:
        return body
    return "\n".join((_HEADING, *(f"- {fact}" for fact in facts), "", body))


def stands(known: Summary, draft: Draft) -> bool:
    """Whether a model has written up just this draft: distilling it again must not undo that."""
    return (
        known.rule.startswith(writings.BY_MODEL)
        and (known.kind, known.files, known.tags) == (draft.kind, draft.files, draft.tags)
        and (known.body == draft.body or known.body.endswith("\n\n" + draft.body))
    )

"""Take back the last change of any kind, or one of the last.

What each table records of a change is enough to take it back; what is not recorded or is erased for good says so, with
what can be done instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from memd.belief import rejections, supersede
from memd.consolidate import judgments, projects, runs
from memd.errors import BadRequest
from memd.models import RELATION_WORDS, Authority
from memd.store import summaries
from memd.store.database import Connection
from memd.store.pages import reviews
from memd.store.pages.reviews import Change, latest_changes

_LOOKED_AT = 100
"""Changes among which one is looked for that can be undone."""
_VERDICTS = {
    "rejected": "it is told again, and waits for your review",
    "everywhere": "what holds everywhere goes, and what it hid is shown again",
}
_REVIEWED_AGAIN = "it waits for your review again"


@dataclass(frozen=True, slots=True)
class UndoableChange:
    """A change, and what taking it back does."""

    name: str
    at: int
    by: str
    did: str
    title: str
    """Of the memory that it is about; empty if there is none."""
    effect: str
    """What taking it back does; empty if that is impossible."""
    refusal: str = ""
    """Why it cannot be taken back, and what to do."""


def list_changes(tx: Connection, limit: int) -> list[UndoableChange]:
    """The latest changes, the last first."""
    return [_describe(tx, one) for one in _read(tx, limit)]


def undo_change(tx: Connection, name: str | None, now: int) -> UndoableChange:
    """Take back the last change, or the one of this name. BadRequest if that is impossible, with what to do."""
    found = _read(tx, 1, name)
    if not found:
        raise BadRequest(
            "nothing was changed yet that could be undone"
            if name is None
            else f"there is no change {name!r} that holds; `memd undo --list` names the last ten"
        )
    change = _describe(tx, found[0])
    if change.refusal:
        before = next(
            (one for one in list_changes(tx, _LOOKED_AT) if one.at <= change.at and one.effect),
            None,
        )
        other = (
            f"; `memd undo {before.name}` takes back what came before: {before.did}"
            if before
            else ""
        )
        raise BadRequest(f"{change.did}, which cannot be undone: {change.refusal}{other}")
    _take_back(tx, found[0], now)
    return change


def _read(tx: Connection, limit: int, name: str | None = None) -> list[Change]:
    return latest_changes(tx, judgments.EDITED, runs.UNDONE, limit=limit, name=name)


# ── What it was, and what undoing does ─────────────────────────────────────────────────────────


def _describe(tx: Connection, change: Change) -> UndoableChange:
    did, effect, refusal = _find_words(change)
    has_memory = change.one and change.kind not in {"consolidated", "forgotten"}
    memory = summaries.get_summary(tx, change.one) if has_memory else None
    title = memory.title if memory else ""
    return UndoableChange(change.name, change.at, change.by, did, title, effect, refusal)


def _find_words(change: Change) -> tuple[str, str, str]:
    """(what was done, what undoing does, why it cannot be undone)."""
    one, other, text = f"#{change.one}", f"#{change.other}", change.text
    target = change.name[2:]
    words: Mapping[str, tuple[str, str, str]] = {
        "judged": (
            f"{one} {RELATION_WORDS.get(text, text)} {other}",
            f"{other} is shown again beside {one}"
            if text in judgments.HIDING_RELATIONS
            else "the judgment goes, and what held before holds again",
            "",
        ),
        "edited": (f"{other} was edited, into {one}", f"{other} holds again, in its old words", ""),
        "superseded": (f"{one} hides {other} ({text})", f"{other} is shown again beside {one}", ""),
        "consolidated": (
            f"run r{change.one} hid {change.other} and marked {text} contradictions",
            "what it hid is shown again, and its contradictions go",
            "",
        ),
        "pinned": (f"{one} was pinned", f"{one} is pinned no more", ""),
        "reviewed": (f"{one} was reviewed: {text}", _VERDICTS.get(text, _REVIEWED_AGAIN), ""),
        "enforced": (f"{one} is enforced", f"{one} is only told again", ""),
        "merged": (
            f"project {target} was merged into {text}", f"{target} gets back what it had", "",
        ),
        "switched": (
            f"memd was switched for {target}", "",
            "what it was before is not recorded; `memd switch on` there, or another state, sets it",
        ),
        "remembered": (
            f"{one} was remembered", "",
            f"only erasing takes that back: `memd forget {change.one}`",
        ),
        "forgotten": (
            "something was forgotten", "",
            "it is erased for good; a backup from before has it: `memd backup --list`, `memd restore FILE`",
        ),
    }  # fmt: skip
    return words[change.kind]


# ── Taking back ────────────────────────────────────────────────────────────────────────────────


def _take_back(tx: Connection, change: Change, now: int) -> None:
    match change.kind:
        case "judged" | "superseded" | "edited":
            judgments.undo_judgment(tx, change.one, change.other, Authority.USER_HAND, now)
        case "consolidated":
            runs.undo(tx, runs.UndoTarget(run=change.one), now)
        case "pinned":
            if (one := summaries.get_summary(tx, change.one)) is not None:
                supersede.unpin(tx, one, Authority.USER_HAND)
        case "reviewed":
            rejections.take_back(tx, change.one)
        case "enforced":
            reviews.set_enforced(tx, change.one, now, is_on=False)
        case _:  # merged
            projects.undo_merge(tx, change.name.removeprefix("m:"), now)

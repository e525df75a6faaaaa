"""Turns that a model may write up, and the one change that it may make to one. Knows no model.

A turn as the rules wrote it has the rule `turn`; what a model has improved says by whom, and is a
candidate again only when the rules have revised it. What a person pinned, what is superseded and what
anybody remembered by hand is never among them. Not here: which of them is next, and what to write.
"""

from dataclasses import dataclass

import apsw

from memd.text import storable

RULE = "turn"
BY_MODEL = "turn, written by "
"""How the rule of a turn begins that a model has written up; the model's name follows."""
_OPEN_TO_IT = (
    f"s.rule = '{RULE}' AND s.tier = 'captured' AND s.pinned_at IS NULL AND s.session_id IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM supersessions x WHERE x.older_id = s.id AND x.undone_at IS NULL)"
)


@dataclass(frozen=True, slots=True)
class WriteUp:
    """What is to stand instead of a turn's own words, as it was at one revision."""

    summary_id: int
    revisions: int
    title: str
    body: str
    quality: float
    model: str


def open_turns(tx: apsw.Connection, since: int, now: int, limit: int) -> list[tuple[int, int]]:
    """(id, revisions) of the turns since then that a model may write up, newest first."""
    rows = tx.execute(
        f"SELECT s.id, s.revisions FROM summaries s WHERE s.at >= ? AND {_OPEN_TO_IT}"
        " AND (s.expires_at IS NULL OR s.expires_at > ?) ORDER BY s.at DESC, s.id DESC LIMIT ?",
        (since, now, limit),
    )
    return [(int(number), int(revisions)) for number, revisions in rows]


def write_up(tx: apsw.Connection, new: WriteUp, now: int) -> bool:
    """Replace a turn's title and body; False if it is no longer what the model was shown."""
    # A turn's kind has no cues: nobody looks it up by its title.
    tx.execute(
        "UPDATE summaries AS s SET title = ?, body = ?, quality = ?, rule = ?, updated_at = ?,"
        f" revisions = revisions + 1, consolidated = 0 WHERE id = ? AND revisions = ? AND {_OPEN_TO_IT}",
        (storable(new.title), storable(new.body), new.quality, storable(BY_MODEL + new.model), now,
         new.summary_id, new.revisions),
    )  # fmt: skip
    return tx.changes() > 0

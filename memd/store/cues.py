"""By which words a rule or a decision is found again when a new one may repeat or replace it. Derived.

A cue is a stem of a memory's title, or of a statement that its body quotes, or a hash of the whole
title. Written with the memory, in its transaction: the full text lags behind, and a decision must
find the one it replaces before the index has seen either. Not here: what two decisions that share
a cue are to each other.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from memd.models import Kind
from memd.text import content_stems, digest, normalised, storable

KINDS = (Kind.DECISION, Kind.FACT, Kind.INSTRUCTION, Kind.PREFERENCE)
"""What can be said again, or be said no longer."""
_QUOTED = re.compile(r"“(.+?)”$", re.MULTILINE)
_CUES_MAX = 200
_BUILT = "cues"


def words(kind: Kind, title: str, body: str) -> frozenset[str]:
    """The cues of a memory; none for a kind that is never looked for. Only decisions have stems."""
    if kind not in KINDS:
        return frozenset()
    whole = f"={digest(normalised(title))}"
    if kind is not Kind.DECISION:
        return frozenset((whole,))
    stems = content_stems(" ".join((title, *_QUOTED.findall(body))))
    return frozenset((whole, *dict.fromkeys(stems[:_CUES_MAX])))


def put(tx: apsw.Connection, summary_id: int, kind: Kind, title: str, body: str) -> None:
    """Let these be the cues of a summary, instead of those it had."""
    tx.execute("DELETE FROM cues WHERE summary_id = ?", (summary_id,))
    tx.executemany(
        "INSERT INTO cues (cue, summary_id) VALUES (?, ?)",
        [(storable(cue), summary_id) for cue in sorted(words(kind, title, body))],
    )


def titled(tx: apsw.Connection, project_id: int, kind: Kind, title: str) -> list[int]:
    """The ids of a project's live summaries of this kind whose title says the same, newest first."""
    return sharing(tx, project_id, kind, (f"={digest(normalised(title))}",), limit=500)


def sharing(
    tx: apsw.Connection, project_id: int, kind: Kind, cues: Iterable[str], *, limit: int
) -> list[int]:
    """The ids of a project's live summaries of this kind with any of these cues, newest first."""
    _build(tx)
    wanted: Sequence[str] = sorted(storable(cue) for cue in cues)
    rows = tx.execute(
        "SELECT DISTINCT s.id, s.at FROM cues c CROSS JOIN summaries s ON s.id = c.summary_id"
        f" WHERE c.cue IN ({','.join('?' * len(wanted))}) AND s.project_id = ? AND s.kind = ?"
        " AND NOT EXISTS (SELECT 1 FROM supersessions x WHERE x.older_id = s.id AND x.undone_at IS NULL)"
        " ORDER BY s.at DESC, s.id DESC LIMIT ?",
        (*wanted, project_id, kind.value, limit),
    )
    return [int(row[0]) for row in rows]


def _build(tx: apsw.Connection) -> None:
    """Give the memories of a vault from before there were cues theirs, once."""
    if tx.execute("SELECT 1 FROM meta WHERE key = ?", (_BUILT,)).get:
        return
    rows: Sequence[tuple[Any, ...]] = tx.execute(
        f"SELECT id, kind, title, body FROM summaries WHERE kind IN ({','.join('?' * len(KINDS))})",
        tuple(kind.value for kind in KINDS),
    ).fetchall()
    for number, kind, title, body in rows:
        put(tx, number, Kind(kind), title, body)
    tx.execute("INSERT INTO meta VALUES (?, '1')", (_BUILT,))

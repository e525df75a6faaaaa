"""Which memories contradict each other now, and what that does to how much they are trusted.

An edge says that two memories cannot both hold; a judgment of the pair that says otherwise silences
it. Whatever changes that, changes the confidence of both in the same transaction. Not here: how much
(confidence.py), who writes the edges and the judgments.
"""

import contextlib
from collections.abc import Collection, Iterator

import apsw

from memd.store import confidence


def opponents(tx: apsw.Connection, summary_ids: Collection[int]) -> dict[int, set[int]]:
    """Each of these that is contradicted, and by which others, hidden ones too."""
    marks = ",".join("?" * len(summary_ids))
    ids = tuple(str(number) for number in summary_ids)
    rows = tx.execute(
        "WITH pairs (one, other) AS ("
        " SELECT CAST(from_id AS INTEGER), CAST(to_id AS INTEGER) FROM edges WHERE from_kind = 'summary'"
        f" AND from_id IN ({marks}) AND type = 'contradicts' AND to_kind = 'summary'"
        " UNION SELECT CAST(to_id AS INTEGER), CAST(from_id AS INTEGER) FROM edges WHERE to_kind = 'summary'"
        # The + keeps SQLite from walking through all edges of summaries.
        f" AND to_id IN ({marks}) AND type = 'contradicts' AND +from_kind = 'summary')"
        " SELECT one, other FROM pairs WHERE NOT EXISTS (SELECT 1 FROM judgments j"
        " WHERE j.undone_at IS NULL AND j.relation <> 'contradicts'"
        " AND ((j.newer_id = one AND j.older_id = other) OR (j.newer_id = other AND j.older_id = one)))",
        (*ids, *ids),
    )
    found: dict[int, set[int]] = {}
    for one, other in rows:
        found.setdefault(int(one), set()).add(int(other))
    return found


def contradicted_by(
    tx: apsw.Connection,
    summary_ids: Collection[int],
    project_ids: Collection[int] | None = None,
) -> dict[int, tuple[int, ...]]:
    """Each of these that a memory contradicts which nothing hides, in these projects (None: in any)."""
    found = opponents(tx, summary_ids) if summary_ids else {}
    others = {other for against in found.values() for other in against}
    if not others:
        return {}
    shown = {
        int(number)
        for number, project_id in tx.execute(
            f"SELECT id, project_id FROM summaries s WHERE id IN ({','.join('?' * len(others))})"
            " AND NOT EXISTS (SELECT 1 FROM supersessions x WHERE x.older_id = s.id AND x.undone_at IS NULL)",
            tuple(others),
        )
        if project_ids is None or project_id in project_ids
    }
    return {
        one: tuple(sorted(against & shown)) for one, against in found.items() if against & shown
    }


def trust(tx: apsw.Connection, first: float, summary_id: int, duplicates: int) -> float:
    """How much a memory is trusted that begins at `first` anew, and was repeated and contradicted since."""
    against = len(opponents(tx, [summary_id]).get(summary_id, ()))
    return confidence.doubted(confidence.repeated(first, 1, duplicates), 0, against)


@contextlib.contextmanager
def weighed(tx: apsw.Connection, summary_ids: Collection[int]) -> Iterator[None]:
    """Let what is done inside change how much these are trusted, as it changes what contradicts them."""
    ids = sorted(set(summary_ids))
    before = opponents(tx, ids) if ids else {}
    yield
    after = opponents(tx, ids) if ids else {}
    for number in ids:
        was, now = len(before.get(number, ())), len(after.get(number, ()))
        held = tx.execute("SELECT confidence FROM summaries WHERE id = ?", (number,)).get
        if was != now and held is not None:
            tx.execute(
                "UPDATE summaries SET confidence = ? WHERE id = ?",
                (confidence.doubted(held, was, now), number),
            )

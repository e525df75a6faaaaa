"""judgments, contradictions, confidence."""

import contextlib
from collections.abc import Collection, Iterator
from math import log2

import apsw

from memd.models import Judgment, Stance

# MERGED from memd.store.confidence:
# MERGED How much a memory is trusted: where it begins, and what raises and lowers it. Pure.
# MERGED
# MERGED Trust is counted in odds, so that what raises and what lowers it may come in any order, can be taken
# MERGED back exactly, and never makes a memory certain or worthless. A captured memory begins below one that
# MERGED somebody said on purpose. Not here: when any of this happens (doubts.py, summaries.py).


INITIAL_CONFIDENCE = {"user": 0.9, "agent": 0.8}
"""Who said it on purpose → where it begins."""
IMPORTED_CONFIDENCE = 0.5
"""Where a memory begins that was read from another place."""
CAPTURED_CONFIDENCE_MAX = 0.7
"""Where a captured memory begins at most, however certain the rule that found it."""
REPEAT_ODDS_GAIN = 0.5
"""Twice as often said: the odds rise by this part of what they were at first."""
CONTRADICTION_ODDS_FACTOR = 0.5
"""For each memory that contradicts it the odds are multiplied by this."""
_LEAST, _MOST = 0.001, 0.999
_DIGITS = 6


def initial_confidence(source: str) -> float:
    """Where a memory begins that this source gave."""
    return INITIAL_CONFIDENCE.get(source, IMPORTED_CONFIDENCE)


def captured_confidence(certainty: float) -> float:
    """Where a memory begins that a rule found with this certainty, 0 to 1."""
    return min(certainty, CAPTURED_CONFIDENCE_MAX)


def confidence_after_repeats(confidence: float, was: int, now: int) -> float:
    """After having been said `now` times in place of `was` times, each at least once."""
    return _times(confidence, _firmness(now) / _firmness(was))


def confidence_after_contradictions(confidence: float, was: int, now: int) -> float:
    """After being contradicted by `now` others in place of `was`."""
    return _times(confidence, CONTRADICTION_ODDS_FACTOR ** (now - was))


def _firmness(count: int) -> float:
    return 1 + REPEAT_ODDS_GAIN * log2(max(count, 1))


def _times(confidence: float, factor: float) -> float:
    kept = min(max(confidence, _LEAST), _MOST)
    odds = kept / (1 - kept) * factor
    return round(odds / (1 + odds), _DIGITS)


# MERGED from memd.store.doubts:
# MERGED Which memories contradict each other now, and what that does to how much they are trusted.
# MERGED
# MERGED An edge says that two memories cannot both hold; a judgment of the pair that says otherwise silences
# MERGED it. Whatever changes that, changes the confidence of both in the same transaction. Not here: how much
# MERGED (confidence.py), who writes the edges and the judgments.


def contradicting_ids(tx: apsw.Connection, summary_ids: Collection[int]) -> dict[int, set[int]]:
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


def visible_contradictions(
    tx: apsw.Connection,
    summary_ids: Collection[int],
    project_ids: Collection[int] | None = None,
) -> dict[int, tuple[int, ...]]:
    """Each of these that a memory contradicts which nothing hides, in these projects (None: in any)."""
    found = contradicting_ids(tx, summary_ids) if summary_ids else {}
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


def recompute_confidence(
    tx: apsw.Connection, first: float, summary_id: int, duplicates: int
) -> float:
    """How much a memory is trusted that begins at `first` anew, and was repeated and contradicted since."""
    against = len(contradicting_ids(tx, [summary_id]).get(summary_id, ()))
    return confidence_after_contradictions(
        confidence_after_repeats(first, 1, duplicates), 0, against
    )


@contextlib.contextmanager
def updating_confidence(tx: apsw.Connection, summary_ids: Collection[int]) -> Iterator[None]:
    """Let what is done inside change how much these are trusted, as it changes what contradicts them."""
    ids = sorted(set(summary_ids))
    before = contradicting_ids(tx, ids) if ids else {}
    yield
    after = contradicting_ids(tx, ids) if ids else {}
    for number in ids:
        was, now = len(before.get(number, ())), len(after.get(number, ()))
        held = tx.execute("SELECT confidence FROM summaries WHERE id = ?", (number,)).get
        if was != now and held is not None:
            tx.execute(
                "UPDATE summaries SET confidence = ? WHERE id = ?",
                (confidence_after_contradictions(held, was, now), number),
            )


# MERGED from memd.store.judgments:
# MERGED Judgments: what somebody said two memories are to each other, and why. One at a time holds for a pair.
# MERGED
# MERGED A judgment stands above every rule: whoever compares memories asks `verdict` first, and leaves alone
# MERGED what has one. Not here: what a judgment does to the memories (consolidate/judging.py).


_COLUMNS = "id, newer_id, older_id, relation, reason, who, at, undone_at"


def _judgment(row: tuple[int, int, int, str, str, str, int, int | None]) -> Judgment:
    number, newer_id, older_id, relation, reason, who, at, undone_at = row
    return Judgment(number, newer_id, older_id, Stance(relation), reason, who, at, undone_at)


def put_judgment(  # noqa: PLR0913  # one argument a column
    tx: apsw.Connection,
    *,
    newer_id: int,
    older_id: int,
    relation: Stance,
    reason: str,
    who: str,
    at: int,
) -> int:
    """Write down what `newer` is to `older`; its id. The pair must have no judgment that holds."""
    with updating_confidence(tx, (newer_id, older_id)):
        return int(
            tx.execute(
                "INSERT INTO judgments (newer_id, older_id, relation, reason, who, at)"
                " VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
                (newer_id, older_id, relation.value, reason, who, at),
            ).get
        )


def undo_judgment(tx: apsw.Connection, judgment: Judgment, at: int) -> bool:
    """Let it hold no longer; the row stays, marked. False if it was undone already."""
    with updating_confidence(tx, (judgment.newer_id, judgment.older_id)):
        tx.execute(
            "UPDATE judgments SET undone_at = ? WHERE id = ? AND undone_at IS NULL",
            (at, judgment.id),
        )
        return tx.changes() > 0


def judgment_between(tx: apsw.Connection, one_id: int, other_id: int) -> Judgment | None:
    """The judgment of this pair, in any order, that holds now."""
    row = tx.execute(
        f"SELECT {_COLUMNS} FROM judgments WHERE undone_at IS NULL"
        " AND ((newer_id = ?1 AND older_id = ?2) OR (newer_id = ?2 AND older_id = ?1))",
        (one_id, other_id),
    ).fetchone()
    return _judgment(row) if row else None


def stance_between(tx: apsw.Connection, one_id: int, other_id: int) -> Stance | None:
    """What somebody said this pair is to each other, in any order; None if nobody did, or undid it."""
    found = judgment_between(tx, one_id, other_id)
    return found.relation if found else None


def stances_of_pairs(
    tx: apsw.Connection, summary_ids: Collection[int]
) -> dict[tuple[int, int], Stance]:
    """Every pair, the smaller id first, that one of these is part of → what it was judged to be."""
    marks = ",".join("?" * len(summary_ids))
    rows = tx.execute(
        "SELECT min(newer_id, older_id), max(newer_id, older_id), relation FROM judgments"
        f" WHERE undone_at IS NULL AND (newer_id IN ({marks}) OR older_id IN ({marks}))",
        (*summary_ids, *summary_ids),
    )
    return {(int(low), int(high)): Stance(relation) for low, high, relation in rows}


def judgments_of(tx: apsw.Connection, summary_id: int) -> list[Judgment]:
    """Every judgment that this memory is part of, undone ones too, oldest first."""
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM judgments WHERE newer_id = ?1 OR older_id = ?1 ORDER BY at, id",
        (summary_id,),
    )
    return [_judgment(row) for row in rows]

"""summaries and their lookup keys."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from memd.models import Draft, Kind, Summary, Tier
from memd.store import judgments
from memd.store.filter import NOT_SUPERSEDED, Filter
from memd.text import content_stems, digest, normalised, storable

# MERGED from memd.store.summaries:
# MERGED summaries and their lookup keys.


# MERGED from memd.store.cues:
# MERGED By which words a rule or a decision is found again when a new one may repeat or replace it. Derived.
# MERGED
# MERGED A cue is a stem of a memory's title, or of a statement that its body quotes, or a hash of the whole
# MERGED title. Written with the memory, in its transaction: the full text lags behind, and a decision must
# MERGED find the one it replaces before the index has seen either. Not here: what two decisions that share
# MERGED a cue are to each other.


KEYED_KINDS = (Kind.DECISION, Kind.FACT, Kind.INSTRUCTION, Kind.PREFERENCE)
"""What can be said again, or be said no longer."""
_QUOTED = re.compile(r"“(.+?)”$", re.MULTILINE)
_CUES_MAX = 200
_BUILT = "cues"


def lookup_keys(kind: Kind, title: str, body: str) -> frozenset[str]:
    """The cues of a memory; none for a kind that is never looked for. Only decisions have stems."""
    if kind not in KEYED_KINDS:
        return frozenset()
    whole = f"={digest(normalised(title))}"
    if kind is not Kind.DECISION:
        return frozenset((whole,))
    stems = content_stems(" ".join((title, *_QUOTED.findall(body))))
    return frozenset((whole, *dict.fromkeys(stems[:_CUES_MAX])))


def put_lookup_keys(
    tx: apsw.Connection, summary_id: int, kind: Kind, title: str, body: str
) -> None:
    """Let these be the cues of a summary, instead of those it had."""
    tx.execute("DELETE FROM cues WHERE summary_id = ?", (summary_id,))
    tx.executemany(
        "INSERT INTO cues (cue, summary_id) VALUES (?, ?)",
        [(storable(cue), summary_id) for cue in sorted(lookup_keys(kind, title, body))],
    )


def ids_with_title(tx: apsw.Connection, project_id: int, kind: Kind, title: str) -> list[int]:
    """The ids of a project's live summaries of this kind whose title says the same, newest first."""
    return ids_sharing_keys(tx, project_id, kind, (f"={digest(normalised(title))}",), limit=500)


def ids_sharing_keys(
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
        f"SELECT id, kind, title, body FROM summaries WHERE kind IN ({','.join('?' * len(KEYED_KINDS))})",
        tuple(kind.value for kind in KEYED_KINDS),
    ).fetchall()
    for number, kind, title, body in rows:
        put_lookup_keys(tx, number, Kind(kind), title, body)
    tx.execute("INSERT INTO meta VALUES (?, '1')", (_BUILT,))


# MERGED from memd.store.summaries:
# MERGED Summaries: what is remembered. Triggers tell `changes` of every write.


_COLUMNS = (
    "s.id, s.uid, s.project_id, s.session_id, s.kind, s.tier, s.source, s.title, s.body, s.at,"
    " s.created_at, s.updated_at, s.rule, s.episode, s.topic_key, s.tags, s.files, s.expires_at,"
    " s.pinned_at, s.confidence, s.quality, s.revisions, s.duplicates,"
    " (SELECT newer_id FROM supersessions x WHERE x.older_id = s.id AND x.undone_at IS NULL),"
    " s.archived_at"
)


@dataclass(frozen=True, slots=True)
class SummaryOwner:
    """Whose summary it is: what a draft does not know about itself."""

    project_id: int
    session_id: int | None
    source: str
    episode: str | None = None


def _summary(row: tuple[Any, ...]) -> Summary:
    values = list(row)
    values[4], values[5] = Kind(row[4]), Tier(row[5])
    values[15:17] = (() if text == "[]" else tuple(json.loads(text)) for text in row[15:17])
    (number, uid, project_id, session_id, kind, tier, source, title, body, at, created_at, updated_at,
     rule, episode, topic_key, tags, files, expires_at, pinned_at, confidence, quality, revisions,
     duplicates, superseded_by, archived_at) = values  # fmt: skip
    return Summary(
        id=number, uid=uid, project_id=project_id, session_id=session_id, kind=kind, tier=tier,
        source=source, title=title, body=body, at=at, created_at=created_at, updated_at=updated_at,
        rule=rule, episode=episode, topic_key=topic_key, tags=tags, files=files,
        expires_at=expires_at, pinned_at=pinned_at, confidence=confidence, quality=quality,
        revisions=revisions, duplicates=duplicates, superseded_by=superseded_by,
        archived_at=archived_at,
    )  # fmt: skip


def put_summary(
    tx: apsw.Connection, uid: str, draft: Draft, owner: SummaryOwner, now: int
) -> tuple[int, str]:
    """Write a draft under `uid`: its id, and `created`, `revised`, `unchanged` or `forgotten` (id 0)."""
    if tx.execute("SELECT 1 FROM forgotten WHERE key = ?", (uid,)).get:
        return 0, "forgotten"
    title, body = storable(draft.title), storable(draft.body)
    tags, files = (
        storable(json.dumps(x, ensure_ascii=False)) for x in (draft.tags, draft.files)
    )
    old = tx.execute(
        "SELECT id, kind, title, body, tags, files, duplicates FROM summaries WHERE uid = ?",
        (uid,),
    ).fetchone()
    if old is not None:
        if old[1:-1] == (draft.kind.value, title, body, tags, files):
            return int(old[0]), "unchanged"
        tx.execute(
            "UPDATE summaries SET kind = ?, title = ?, body = ?, tags = ?, files = ?, at = ?, updated_at = ?,"
            " confidence = ?, quality = ?, rule = ?, revisions = revisions + 1, consolidated = 0 WHERE id = ?",
            (draft.kind.value, title, body, tags, files, draft.at, now,
             judgments.recompute_confidence(tx, draft.confidence, old[0], old[-1]), draft.quality, draft.rule, old[0]),
        )  # fmt: skip
        put_lookup_keys(tx, int(old[0]), draft.kind, title, body)
        return int(old[0]), "revised"
    number = tx.execute(
        "INSERT INTO summaries (uid, project_id, session_id, episode, kind, tier, source, title, body,"
        " topic_key, tags, files, at, created_at, updated_at, expires_at, confidence, quality, rule)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (uid, owner.project_id, owner.session_id, owner.episode, draft.kind.value, draft.tier.value,
         owner.source, title, body, draft.topic_key, tags, files, draft.at, now, now,
         draft.expires_at, draft.confidence, draft.quality, draft.rule),
    ).get  # fmt: skip
    put_lookup_keys(tx, int(number), draft.kind, title, body)
    return int(number), "created"


def get_summary(tx: apsw.Connection, summary_id: int) -> Summary | None:
    """One summary, or None."""
    row = tx.execute(
        f"SELECT {_COLUMNS} FROM summaries s WHERE s.id = ?", (summary_id,)
    ).fetchone()
    return _summary(row) if row else None


def summary_by_uid(tx: apsw.Connection, uid: str) -> Summary | None:
    """The summary with this uid, or None."""
    row = tx.execute(f"SELECT {_COLUMNS} FROM summaries s WHERE s.uid = ?", (uid,)).fetchone()
    return _summary(row) if row else None


def summaries_by_ids(tx: apsw.Connection, summary_ids: Sequence[int]) -> dict[int, Summary]:
    """These summaries by id; unknown ids are left out."""
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM summaries s WHERE s.id IN ({','.join('?' * len(summary_ids))})",
        tuple(summary_ids),
    )
    return {row[0]: _summary(row) for row in rows}


def episode_summaries(tx: apsw.Connection, session_id: int, episode: str) -> list[Summary]:
    """Everything that was distilled from one episode."""
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM summaries s WHERE s.session_id = ? AND s.episode = ? ORDER BY s.id",
        (session_id, episode),
    )
    return [_summary(row) for row in rows]


def live_summaries(
    tx: apsw.Connection,
    project_id: int,
    kinds: Sequence[Kind] = (),
    *,
    before: int | None = None,
    limit: int = 500,
) -> list[Summary]:
    """A project's summaries that nothing supersedes, newest first."""
    wanted = [kind.value for kind in kinds] or [kind.value for kind in Kind]
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM summaries s WHERE s.project_id = ? AND s.at <= ?"
        f" AND s.kind IN ({','.join('?' * len(wanted))}) AND {NOT_SUPERSEDED}"
        " ORDER BY s.at DESC, s.id DESC LIMIT ?",
        (project_id, 2**62 if before is None else before, *wanted, limit),
    )
    return [_summary(row) for row in rows]


def topic_summaries(
    tx: apsw.Connection, topic_key: str, project_ids: Sequence[int]
) -> list[Summary]:
    """Every value that this topic key has had in these projects, newest first."""
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM summaries s WHERE s.topic_key = ?"
        f" AND s.project_id IN ({','.join('?' * len(project_ids))}) ORDER BY s.at DESC, s.id DESC",
        (topic_key, *project_ids),
    )
    return [_summary(row) for row in rows]


def ids_on_topic(tx: apsw.Connection, topic_key: str) -> list[int]:
    """The ids of everything that ever held this topic key, newest first."""
    rows = tx.execute(
        "SELECT id FROM summaries WHERE topic_key = ? ORDER BY at DESC, id DESC", (topic_key,)
    )
    return [int(row[0]) for row in rows]


@dataclass(frozen=True, slots=True)
class SummaryHead:
    """What ranking needs to know of a summary without reading its body."""

    title: str
    episode: str | None
    superseded_by: int | None
    superseded_at: int | None
    """The event time of the summary that supersedes it."""


def summary_heads(tx: apsw.Connection, summary_ids: Sequence[int]) -> dict[int, SummaryHead]:
    """The heads of these summaries by id; unknown ids are left out."""
    rows = tx.execute(
        "SELECT s.id, s.title, s.session_id || ':' || s.episode, x.newer_id, n.at FROM summaries s"
        " LEFT JOIN supersessions x ON x.older_id = s.id AND x.undone_at IS NULL"
        " LEFT JOIN summaries n ON n.id = x.newer_id"
        f" WHERE s.id IN ({','.join('?' * len(summary_ids))})",
        tuple(summary_ids),
    )
    return {row[0]: SummaryHead(*row[1:]) for row in rows}


def summaries_around(
    tx: apsw.Connection, wanted: Filter, at: int, *, before: int, after: int, pivot: int = 0
) -> list[Summary]:
    """The nearest wanted summaries by event time around (`at`, `pivot`), oldest first."""
    where, values = wanted.condition()
    older = tx.execute(
        f"SELECT {_COLUMNS} FROM summaries s WHERE {where} AND (s.at, s.id) < (?, ?)"
        " ORDER BY s.at DESC, s.id DESC LIMIT ?",
        (*values, at, pivot, before),
    ).fetchall()
    newer = tx.execute(
        f"SELECT {_COLUMNS} FROM summaries s WHERE {where} AND (s.at, s.id) >= (?, ?)"
        " ORDER BY s.at, s.id LIMIT ?",
        (*values, at, pivot, after),
    ).fetchall()
    return [_summary(row) for row in (*reversed(older), *newer)]


def to_consolidate(tx: apsw.Connection, limit: int, after: int = 0) -> list[Summary]:
    """Summaries that consolidation has not looked at since they were last written, in order of id.

    Only those whose id is higher than `after`.
    """
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM summaries s WHERE s.consolidated = 0 AND s.id > ?"
        " ORDER BY s.id LIMIT ?",
        (after, limit),
    )
    return [_summary(row) for row in rows]


def mark_consolidated(tx: apsw.Connection, summaries: Sequence[Summary]) -> None:
    """Consolidation has looked at these, as they were then."""
    tx.executemany(
        "UPDATE summaries SET consolidated = 1 WHERE id = ? AND updated_at = ?",
        [(s.id, s.updated_at) for s in summaries],
    )


def strengthen_summary(tx: apsw.Connection, summary_id: int, now: int, times: int = 1) -> None:
    """The same thing was said again; with -1 times, that is taken back."""
    found: list[Any] = tx.execute(
        "SELECT duplicates, confidence FROM summaries WHERE id = ?", (summary_id,)
    ).fetchall()
    for duplicates, held in found:
        count = max(duplicates + times, 1)
        tx.execute(
            "UPDATE summaries SET duplicates = ?, confidence = ?, updated_at = ?, archived_at = NULL"
            " WHERE id = ?",
            (
                count,
                judgments.confidence_after_repeats(held, duplicates, count),
                now,
                summary_id,
            ),
        )


def renew_summary(
    tx: apsw.Connection, summary_id: int, *, at: int, expires_at: int | None, now: int
) -> None:
    """Say again what had gone: it holds from `at` on, until it expires (never with None)."""
    tx.execute(
        "UPDATE summaries SET at = ?, expires_at = ?, updated_at = ?, consolidated = 0,"
        " archived_at = NULL WHERE id = ?",
        (at, expires_at, now, summary_id),
    )


def pin_summary(tx: apsw.Connection, summary_id: int, pinned_at: int | None) -> None:
    """Pin a summary (its tier becomes core), or unpin it with None."""
    tx.execute(
        "UPDATE summaries SET archived_at = NULL, pinned_at = ?1, tier = CASE WHEN ?1 IS NOT NULL THEN 'core'"
        " WHEN rule = 'imported:file' THEN 'file'"
        " WHEN rule = 'imported' OR source IN ('agent', 'user') THEN 'agent'"
        " ELSE 'captured' END WHERE id = ?2",
        (pinned_at, summary_id),
    )


def delete_summary(tx: apsw.Connection, summary_id: int) -> None:
    """Remove a summary and its place in the graph; supersessions and judgments go with it."""
    against = judgments.contradicting_ids(tx, [summary_id]).get(summary_id, set())
    with judgments.updating_confidence(tx, against):
        tx.execute("DELETE FROM summaries WHERE id = ?", (summary_id,))
        tx.execute(
            "DELETE FROM edges WHERE (from_kind = 'summary' AND from_id = ?1)"
            " OR (to_kind = 'summary' AND to_id = ?1)",
            (str(summary_id),),
        )


def summary_counts(tx: apsw.Connection) -> dict[str, int]:
    """`summaries`, `superseded`, `pinned` and `to_consolidate` of the whole vault."""
    return {
        "summaries": int(tx.execute("SELECT count(*) FROM summaries").get),
        "superseded": int(
            tx.execute("SELECT count(*) FROM supersessions WHERE undone_at IS NULL").get
        ),
        "pinned": int(
            tx.execute("SELECT count(*) FROM summaries WHERE pinned_at IS NOT NULL").get
        ),
        "to_consolidate": int(
            tx.execute("SELECT count(*) FROM summaries WHERE consolidated = 0").get
        ),
    }


# MERGED from memd.store.forms:
# MERGED Forms of summaries: a hash of what a text says, equal for those that differ in nothing but its dress.


_LIKE = (
    "SELECT f.summary_id FROM forms f JOIN summaries s ON s.id = f.summary_id"
    " WHERE f.form = ? AND s.project_id = ? AND s.id != ? AND NOT EXISTS"
    " (SELECT 1 FROM supersessions x WHERE x.older_id = s.id AND x.undone_at IS NULL)"
    " ORDER BY f.summary_id DESC LIMIT ?"
)


def put_forms(tx: apsw.Connection, forms: Mapping[int, int]) -> None:
    """Write the forms of these summaries, of those that are still there."""
    tx.executemany(
        "INSERT OR REPLACE INTO forms (summary_id, form) SELECT id, ? FROM summaries WHERE id = ?",
        [(form, number) for number, form in forms.items()],
    )


def pairs_of_equal_form(
    tx: apsw.Connection, wanted: Iterable[tuple[int, int, int]], limit: int
) -> set[tuple[int, int]]:
    """Pairs of live summaries of one project and form, the smaller id first.

    `wanted` are (summary id, project id, form), of which each meets at most `limit` others.
    """
    found: set[tuple[int, int]] = set()
    for number, project_id, form in wanted:
        for (other,) in tx.execute(_LIKE, (form, project_id, number, limit)):
            found.add((min(number, int(other)), max(number, int(other))))
    return found


def summaries_without_form(
    tx: apsw.Connection, below: int, limit: int
) -> list[tuple[int, str, str]]:
    """(id, title, body) of the next summaries below an id that were looked at and have no form."""
    rows: list[Any] = tx.execute(
        "SELECT s.id, s.title, s.body FROM summaries s WHERE s.id < ? AND s.consolidated"
        " AND NOT EXISTS (SELECT 1 FROM forms f WHERE f.summary_id = s.id) ORDER BY s.id DESC LIMIT ?",
        (below, limit),
    ).fetchall()
    return [(int(number), title, body) for number, title, body in rows]


# MERGED from memd.store.writings:
# MERGED Turns that a model may write up, and the one change that it may make to one. Knows no model.
# MERGED
# MERGED A turn as the rules wrote it has the rule `turn`; what a model has improved says by whom, and is a
# MERGED candidate again only when the rules have revised it. What a person pinned, what is superseded and what
# MERGED anybody remembered by hand is never among them. Not here: which of them is next, and what to write.


TURN_RULE = "turn"
MODEL_RULE_PREFIX = "turn, written by "
"""How the rule of a turn begins that a model has written up; the model's name follows."""
_OPEN_TO_IT = (
    f"s.rule = '{TURN_RULE}' AND s.tier = 'captured' AND s.pinned_at IS NULL AND s.session_id IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM supersessions x WHERE x.older_id = s.id AND x.undone_at IS NULL)"
)


@dataclass(frozen=True, slots=True)
class TurnRewrite:
    """What is to stand instead of a turn's own words, as it was at one revision."""

    summary_id: int
    revisions: int
    title: str
    body: str
    quality: float
    model: str


def rewritable_turns(
    tx: apsw.Connection, since: int, now: int, limit: int
) -> list[tuple[int, int]]:
    """(id, revisions) of the turns since then that a model may write up, newest first."""
    rows = tx.execute(
        f"SELECT s.id, s.revisions FROM summaries s WHERE s.at >= ? AND {_OPEN_TO_IT}"
        " AND (s.expires_at IS NULL OR s.expires_at > ?) ORDER BY s.at DESC, s.id DESC LIMIT ?",
        (since, now, limit),
    )
    return [(int(number), int(revisions)) for number, revisions in rows]


def rewrite_turn(tx: apsw.Connection, new: TurnRewrite, now: int) -> bool:
    """Replace a turn's title and body; False if it is no longer what the model was shown."""
    # A turn's kind has no cues: nobody looks it up by its title.
    tx.execute(
        "UPDATE summaries AS s SET title = ?, body = ?, quality = ?, rule = ?, updated_at = ?,"
        f" revisions = revisions + 1, consolidated = 0 WHERE id = ? AND revisions = ? AND {_OPEN_TO_IT}",
        (storable(new.title), storable(new.body), new.quality, storable(MODEL_RULE_PREFIX + new.model), now,
         new.summary_id, new.revisions),
    )  # fmt: skip
    return tx.changes() > 0

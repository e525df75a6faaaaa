"""Summaries and the lookup keys and text hashes by which they are found before the index knows them.

Triggers write every change of a summary to `changes`, from which the index learns it.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw
from apsw import Connection

from memd.models import (
    ENDING_RULES,
    STATED_KINDS,
    UNPROVED_MARK,
    Authority,
    Draft,
    Kind,
    Summary,
    Tier,
    noted_rule,
)
from memd.store import SummaryHead, judgments, ledger
from memd.store.filter import ENDS_NOTHING, HIDES, NOT_SUPERSEDED, Filter, marks
from memd.store.queries import (
    count_rows,
    fetch_all,
    fetch_column,
    fetch_ids,
    fetch_rows,
    has_rows,
    json_text,
)
from memd.text import content_stems, storable

_COLUMNS = (
    "s.id, s.uid, s.project_id, s.session_id, s.kind, s.tier, s.source, s.title, s.body, s.at,"
    " s.created_at, s.updated_at, s.rule, s.episode, s.topic_key, s.tags, s.files, s.expires_at,"
    " s.pinned_at, s.confidence, s.quality, s.revisions, s.duplicates,"
    f" (SELECT newer_id FROM supersessions x WHERE x.older_id = s.id AND {HIDES}),"
    f" coalesce(s.archived_at, iif(s.rule IN {ENDING_RULES} AND {ENDS_NOTHING}, s.updated_at, NULL)), s.authority, s.pinned_by, s.author,"
    " (SELECT v.at FROM reviews v WHERE v.summary_id = s.id AND v.verdict = 'rejected')"
)
"""In the order of the fields of Summary."""
_NEWEST_FIRST = " ORDER BY s.at DESC, s.id DESC"


@dataclass(frozen=True, slots=True)
class SummaryOwner:
    """The project and session that a summary belongs to, which its draft does not know."""

    project_id: int
    session_id: int | None
    source: str
    episode: str | None = None


def put_summary(
    tx: Connection, uid: str, draft: Draft, owner: SummaryOwner, now: int
) -> tuple[int, str]:
    """Write a draft under `uid`: its id, and `created`, `revised`, `unchanged` or `forgotten` (id 0)."""
    if ledger.is_forgotten(tx, uid):
        return 0, "forgotten"
    title, body = storable(draft.title), storable(draft.body)
    tags, files = storable(json_text(draft.tags)), storable(json_text(draft.files))
    topic_key = draft.topic_key and fold_topic(draft.topic_key)
    old = tx.execute(
        "SELECT id, kind, title, body, tags, files, duplicates FROM summaries WHERE uid = ?", (uid,)
    ).fetchone()
    if old is None:
        number = tx.execute(
            "INSERT INTO summaries (uid, project_id, session_id, episode, kind, tier, source, title, body,"
            " topic_key, tags, files, at, created_at, updated_at, expires_at, confidence, quality, rule, authority)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (uid, owner.project_id, owner.session_id, owner.episode, draft.kind.value, draft.tier.value,
             owner.source, title, body, topic_key, tags, files, draft.at, now, now,
             draft.expires_at, draft.confidence, draft.quality, draft.rule, draft.authority.code),
        ).get  # fmt: skip
        outcome = "created"
    elif old[1:-1] == (draft.kind.value, title, body, tags, files):
        # A greater authority may say the same: the user, of what only an agent's import had told.
        tx.execute(
            "UPDATE summaries SET authority = ?1, updated_at = ?2, consolidated = 0"
            " WHERE id = ?3 AND authority < ?1",
            (draft.authority.code, now, old[0]),
        )
        return int(old[0]), "unchanged"
    else:
        number = old[0]
        with judgments.changing_standing(tx, number):
            tx.execute(
                "UPDATE summaries SET kind = ?, title = ?, body = ?, tags = ?, files = ?, at = ?, updated_at = ?,"
                " quality = ?, rule = ?, authority = ?, revisions = revisions + 1, consolidated = 0 WHERE id = ?",
                (draft.kind.value, title, body, tags, files, draft.at, now, draft.quality, draft.rule,
                 draft.authority.code, number),
            )  # fmt: skip
        judgments.put_first_confidence(tx, number, draft.confidence, old[-1])
        outcome = "revised"
    put_lookup_keys(tx, int(number), draft.kind, title, body)
    return int(number), outcome


def get_summary(tx: Connection, summary_id: int) -> Summary | None:
    """One summary, or None."""
    return next(iter(_select_summaries(tx, "s.id = ?", (summary_id,))), None)


def id_by_name(tx: Connection, name: str) -> int | None:
    """The only summary with this name, `m` and how its uid begins; None if there is none, or several."""
    beginning = name.removeprefix("m")
    sql = "SELECT id FROM summaries WHERE uid >= ?1 AND uid < ?1 || 'g' LIMIT 2"
    found = fetch_ids(tx, sql, (beginning,))
    return found[0] if len(found) == 1 else None


def summary_by_uid(tx: Connection, uid: str) -> Summary | None:
    """The summary with this uid, or None."""
    return next(iter(_select_summaries(tx, "s.uid = ?", (uid,))), None)


def summaries_by_ids(tx: Connection, summary_ids: Sequence[int]) -> dict[int, Summary]:
    """Return these summaries by id; unknown ids are left out."""
    found = _select_summaries(tx, f"s.id IN ({marks(summary_ids)})", tuple(summary_ids))
    return {summary.id: summary for summary in found}


def has_of_session(tx: Connection, session_id: int, project_ids: Sequence[int]) -> bool:
    """Return whether a session left memories in one of these projects."""
    condition = f"summaries WHERE session_id = ? AND project_id IN ({marks(project_ids)})"
    return has_rows(tx, condition, (session_id, *project_ids))


def episode_summaries(tx: Connection, session_id: int, episode: str) -> list[Summary]:
    """Everything that was distilled from one episode."""
    condition = "s.session_id = ? AND s.episode = ? ORDER BY s.id"
    return _select_summaries(tx, condition, (session_id, episode))


def session_summaries(
    tx: Connection, session_id: int, rules: Sequence[str], since: int
) -> list[Summary]:
    """Return a session's live summaries from a time on that rules with these prefixes distilled."""
    condition = " OR ".join("substr(s.rule, 1, ?) = ?" for _ in rules)
    values = [value for rule in rules for value in (len(rule), rule)]
    sql = f"s.session_id = ? AND s.at >= ? AND ({condition}) AND {NOT_SUPERSEDED} ORDER BY s.id"
    return _select_summaries(tx, sql, (session_id, since, *values))


_IS_CAPTURED = "tier IN ('captured', 'core') AND episode IS NOT NULL"
"""What the user pins is of the tier core."""


def has_captured(tx: Connection) -> bool:
    """Return whether the vault has any memory that was distilled from a turn."""
    return has_rows(tx, f"summaries WHERE {_IS_CAPTURED}")


def captured_summaries(tx: Connection, session_id: int) -> list[Summary]:
    """The memories that were distilled from a session's turns."""
    condition = f"s.session_id = ? AND s.{_IS_CAPTURED} ORDER BY s.id"
    return _select_summaries(tx, condition, (session_id,))


def mark_earlier(tx: Connection, summary_ids: Sequence[int], now: int) -> None:
    """Mark what an earlier version of the rules asserted and the present one would not: it is shown after others."""
    tx.executemany(
        "UPDATE summaries SET tags = json_insert(tags, '$[#]', ?1), confidence = min(confidence, ?2), updated_at = ?3"
        " WHERE id = ?4 AND NOT EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?1)",
        [(EARLIER_VERSION, _EARLIER_CONFIDENCE, now, number) for number in summary_ids],
    )


def move_summary(tx: Connection, summary_id: int, uid: str, episode: str) -> None:
    """Move a memory: to the uid of a slot, and the turn that has the slot."""
    tx.execute("UPDATE summaries SET uid = ?, episode = ? WHERE id = ?", (uid, episode, summary_id))


def topic_summaries(tx: Connection, topic_key: str, project_ids: Sequence[int]) -> list[Summary]:
    """Every value that this topic key has had in these projects, newest first."""
    condition = f"s.topic_key = ? AND s.project_id IN ({marks(project_ids)}){_NEWEST_FIRST}"
    return _select_summaries(tx, condition, (fold_topic(topic_key), *project_ids))


def summaries_around(
    tx: Connection, wanted: Filter, at: int, *, before: int, after: int, pivot: int = 0
) -> list[Summary]:
    """The nearest wanted summaries by event time around (`at`, `pivot`), oldest first."""
    where, values = wanted.condition()
    sql = f"{where} AND (s.at, s.id) < (?, ?){_NEWEST_FIRST} LIMIT ?"
    older = _select_summaries(tx, sql, (*values, at, pivot, before))
    sql = f"{where} AND (s.at, s.id) >= (?, ?) ORDER BY s.at, s.id LIMIT ?"
    return [*reversed(older), *_select_summaries(tx, sql, (*values, at, pivot, after))]


def to_consolidate(tx: Connection, limit: int, after: int = 0) -> list[Summary]:
    """Summaries with ids above `after` that were not consolidated since their last change, by id."""
    sql = "s.consolidated = 0 AND s.id > ? ORDER BY s.id LIMIT ?"
    return _select_summaries(tx, sql, (after, limit))


def _select_summaries(tx: Connection, condition: str, values: tuple[Any, ...]) -> list[Summary]:
    """The summaries `s` that meet the rest of a query after WHERE."""
    return fetch_rows(
        tx, _to_summary, f"SELECT {_COLUMNS} FROM summaries s WHERE {condition}", values
    )


def _to_summary(*row: Any) -> Summary:
    values = list(row)
    values[4:6] = Kind(row[4]), Tier(row[5])
    values[-4:-2] = Authority.of(row[-4], row[12]), row[-3] and Authority.of(row[-3])
    values[15:17] = (() if text == "[]" else tuple(json.loads(text)) for text in row[15:17])
    return Summary(*values)


def ids_on_topic(tx: Connection, topic_key: str) -> list[int]:
    """The ids of everything that ever held this topic key, newest first."""
    sql = "SELECT id FROM summaries WHERE topic_key = ? ORDER BY at DESC, id DESC"
    return fetch_ids(tx, sql, (fold_topic(topic_key),))


def summary_heads(tx: Connection, summary_ids: Sequence[int]) -> dict[int, SummaryHead]:
    """The heads of these summaries by id; unknown ids are left out."""
    rows = tx.execute(
        # In the order of the fields of SummaryHead.
        "SELECT s.id, s.project_id, s.kind, s.at, s.title, s.body, s.session_id || ':' || s.episode,"
        " x.newer_id, n.at FROM summaries s"
        f" LEFT JOIN supersessions x ON x.older_id = s.id AND {HIDES}"
        f" LEFT JOIN summaries n ON n.id = x.newer_id WHERE s.id IN ({marks(summary_ids)})",
        tuple(summary_ids),
    )
    return {row[0]: SummaryHead._make(row) for row in rows}


def shown_places(
    tx: Connection, passage_ids: Mapping[int, int]
) -> dict[int, tuple[str, str | None, int | None, int | None]]:
    """Summary id → the name of its project, the title of its session, and [start, stop) of a passage in its body.

    `passage_ids` names a passage of each summary; a passage that is gone has no place.
    """
    rows = tx.execute(
        "SELECT s.id, coalesce(p.name, ''), n.title, g.start, g.stop FROM summaries s"
        " LEFT JOIN projects p ON p.id = s.project_id LEFT JOIN sessions n ON n.id = s.session_id"
        f" LEFT JOIN passages g ON g.id IN ({marks(passage_ids)}) AND g.summary_id = s.id"
        f" WHERE s.id IN ({marks(passage_ids)})",
        (*passage_ids.values(), *passage_ids),
    )
    return {row[0]: row[1:] for row in rows}


def summary_counts(tx: Connection) -> dict[str, int]:
    """`summaries`, `superseded`, `pinned`, `contradictions` and `to_consolidate` of the whole vault."""
    return {
        "summaries": count_rows(tx, "summaries"),
        "superseded": count_rows(tx, "supersessions WHERE undone_at IS NULL"),
        "pinned": count_rows(tx, "summaries WHERE pinned_at IS NOT NULL"),
        "contradictions": judgments.count_open_contradictions(tx),
        "to_consolidate": count_rows(tx, "summaries WHERE consolidated = 0"),
    }


# ── Changes ────────────────────────────────────────────────────────────────────────────────────


def mark_consolidated(tx: Connection, summaries: Sequence[Summary]) -> None:
    """Mark these as consolidated, unless they were changed since they were read."""
    sql = "UPDATE summaries SET consolidated = 1 WHERE id = ? AND updated_at = ?"
    tx.executemany(sql, [(s.id, s.updated_at) for s in summaries])


def strengthen_summary(
    tx: Connection, summary_id: int, said_at: int | None, times: int = 1
) -> None:
    """Count a repetition of the same statement; with -1 times, take one back.

    `said_at`: when an authority that may said it, so that it is newer than other values; None: nobody did.
    """
    sql = "SELECT duplicates, confidence FROM summaries WHERE id = ?"
    for duplicates, stored in fetch_all(tx, sql, (summary_id,)):
        count = max(duplicates + times, 1)
        confidence = judgments.confidence_after_repeats(stored, duplicates, count)
        sql = (
            "UPDATE summaries SET duplicates = ?, confidence = ?, updated_at = coalesce(?, updated_at),"
            " archived_at = NULL WHERE id = ?"
        )
        tx.execute(sql, (count, confidence, said_at, summary_id))


def renew_summary(
    tx: Connection, summary_id: int, *, at: int, expires_at: int | None, now: int
) -> None:
    """Make a hidden or expired summary hold from `at` on, until it expires (never with None)."""
    tx.execute(
        "UPDATE summaries SET at = ?, expires_at = ?, updated_at = ?, consolidated = 0,"
        " archived_at = NULL WHERE id = ?",
        (at, expires_at, now, summary_id),
    )


def pin_summary(
    tx: Connection, summary_id: int, pinned_at: int | None, by: Authority = Authority.USER_HAND
) -> None:
    """Pin a summary (its tier becomes core if the user does), or unpin it with None."""
    with judgments.changing_standing(tx, summary_id):
        tx.execute(
            "UPDATE summaries SET archived_at = NULL, pinned_at = ?1, pinned_by = iif(?1 IS NULL, NULL, ?3),"
            f" tier = CASE WHEN ?1 IS NOT NULL AND ?3 >= {Authority.USER_PROMPT.code} THEN 'core'"
            " WHEN rule = 'imported:file' THEN 'file'"
            " WHEN rule = 'imported' OR source IN ('agent', 'user') THEN 'agent'"
            " ELSE 'captured' END WHERE id = ?2",
            (pinned_at, summary_id, by.code),
        )


def raise_authority(
    tx: Connection, summary: Summary, authority: Authority, body: str, now: int
) -> None:
    """Let a summary be the word of a greater speaker, who puts it in this body."""
    rule = noted_rule(summary.rule) if authority is Authority.USER_TOLD else summary.rule
    with judgments.changing_standing(tx, summary.id):
        sql = "UPDATE summaries SET authority = ?, rule = ?, body = ?, updated_at = ?, consolidated = 0 WHERE id = ?"
        tx.execute(sql, (authority.code, rule, storable(body), now, summary.id))
    put_lookup_keys(tx, summary.id, summary.kind, summary.title, body)


def unproved_notes(tx: Connection, session_id: int, since: int) -> list[Summary]:
    """Return the agents' notes since then whose words are not proved by the record, oldest first.

    In this session, or in its project by a client that did not say in which session.
    """
    sql = (
        "(s.session_id = ?1 OR s.session_id IS NULL AND s.project_id = (SELECT project_id FROM sessions WHERE id = ?1))"
        f" AND s.created_at >= ?2 AND s.source = 'agent' AND s.authority = {Authority.AGENT_CALL.code}"
        " AND s.rule LIKE 'remembered%' AND instr(s.body, ?3) > 0 ORDER BY s.id"
    )
    return _select_summaries(tx, sql, (session_id, since, UNPROVED_MARK))


def delete_summary(tx: Connection, summary_id: int) -> None:
    """Delete a summary and its edges; the schema deletes its supersessions and judgments."""
    against = judgments.contradicting_ids(tx, [summary_id]).get(summary_id, set())
    with judgments.updating_confidence(tx, against):
        tx.execute("DELETE FROM summaries WHERE id = ?", (summary_id,))
        sql = "DELETE FROM edges WHERE (from_kind = 'summary' AND from_id = ?1) OR (to_kind = 'summary' AND to_id = ?1)"
        tx.execute(sql, (str(summary_id),))


# ── Lookup keys (the table `cues`) ─────────────────────────────────────────────────────────────
# A key is a stem of a memory's title and of its statement: of what its body quotes, else of the body. It
# is written in the memory's transaction, because a statement must find the one that it repeats or
# replaces before the index has seen either.

_QUOTED = re.compile(r"“(.+?)”$", re.MULTILINE)
_KEYED_CHARACTERS = 1_000
"""Characters of a body without quotations from which keys are taken."""
_KEYS_MAX = 200
"""Stems of one memory that become keys."""
_KEY_COUNT_MAX = 1_000
"""Up to how many memories the keys of a question are told apart by rarity."""
KEYS_BUILT_NOTE = "cues:3"
"""The note that all memories have these keys; its number grows when the keys change."""


def lookup_keys(kind: Kind, title: str, body: str) -> frozenset[str]:
    """The lookup keys of a memory; some kinds have none."""
    if kind not in STATED_KINDS:
        return frozenset()
    stems = content_stems(" ".join((title, *(_QUOTED.findall(body) or [body[:_KEYED_CHARACTERS]]))))
    return frozenset(list(dict.fromkeys(stems))[:_KEYS_MAX])


def put_lookup_keys(tx: Connection, summary_id: int, kind: Kind, title: str, body: str) -> None:
    """Replace the lookup keys of a summary."""
    tx.execute("DELETE FROM cues WHERE summary_id = ?", (summary_id,))
    tx.executemany(
        "INSERT INTO cues (cue, summary_id) VALUES (?, ?)",
        [(storable(key), summary_id) for key in sorted(lookup_keys(kind, title, body))],
    )


def ids_sharing_most_keys(
    tx: Connection,
    project_ids: Sequence[int],
    kinds: Sequence[Kind],
    keys: Sequence[str],
    *,
    limit: int,
) -> list[int]:
    """The ids of these projects' live summaries with half of these keys or more, those with most first.

    Of as many keys, the newest first.
    """
    build_lookup_keys(tx)
    wanted = _sort_keys_by_rarity(tx, {storable(key) for key in keys})
    needed = (len(keys) + 1) // 2
    # A memory with this many of all keys has the rest of them among the rarest, which are in few rows.
    common = needed // 2
    rare = wanted[: len(wanted) - common]
    return fetch_ids(
        tx,
        "SELECT s.id FROM"
        f" (SELECT summary_id FROM cues WHERE cue IN ({marks(rare)})"
        " GROUP BY summary_id HAVING count(*) >= ?) candidates"
        " CROSS JOIN summaries s ON s.id = candidates.summary_id"
        f" CROSS JOIN cues c ON c.summary_id = s.id AND c.cue IN ({marks(wanted)})"
        f" WHERE s.project_id IN ({marks(project_ids)}) AND s.kind IN ({marks(kinds)}) AND {NOT_SUPERSEDED}"
        " GROUP BY s.id HAVING count(*) >= ? ORDER BY count(*) DESC, s.at DESC, s.id DESC LIMIT ?",
        (
            *rare, needed - common, *wanted, *project_ids, *(kind.value for kind in kinds),
            needed, limit,
        ),
    )  # fmt: skip


def _sort_keys_by_rarity(tx: Connection, keys: Iterable[str]) -> list[str]:
    sql = (
        "SELECT value FROM json_each(?) ORDER BY"
        " (SELECT count(*) FROM (SELECT 1 FROM cues WHERE cue = value LIMIT ?)), value"
    )
    return fetch_column(tx, sql, (json.dumps(list(keys)), _KEY_COUNT_MAX))


def ids_sharing_keys(
    tx: Connection, project_id: int, kind: Kind, keys: Iterable[str], *, limit: int
) -> list[int]:
    """The ids of a project's live summaries of this kind with any of these keys, newest first."""
    build_lookup_keys(tx)
    wanted = sorted(storable(key) for key in keys)
    sql = (
        "SELECT DISTINCT s.id, s.at FROM cues c CROSS JOIN summaries s ON s.id = c.summary_id"
        f" WHERE c.cue IN ({marks(wanted)}) AND s.project_id = ? AND s.kind = ? AND {NOT_SUPERSEDED}"
        f"{_NEWEST_FIRST} LIMIT ?"
    )
    return fetch_ids(tx, sql, (*wanted, project_id, kind.value, limit))


def build_lookup_keys(tx: Connection) -> None:
    """Write the keys of memories that are older than the table, once in a vault's life."""
    if ledger.read_note(tx, KEYS_BUILT_NOTE):
        return
    sql = f"SELECT id, kind, title, body FROM summaries WHERE kind IN ({marks(STATED_KINDS)})"
    for number, kind, title, body in fetch_all(tx, sql, STATED_KINDS):
        put_lookup_keys(tx, number, Kind(kind), title, body)
    ledger.write_note(tx, KEYS_BUILT_NOTE, "1")


# ── Text hashes: a hash of what a text says, equal for texts that differ only in formatting ──────────


def put_text_hashes(tx: Connection, hashes: Mapping[int, int]) -> None:
    """Write the text hashes of these summaries, unless they were deleted."""
    sql = "INSERT OR REPLACE INTO forms (summary_id, form) SELECT id, ? FROM summaries WHERE id = ?"
    tx.executemany(sql, [(text_hash, number) for number, text_hash in hashes.items()])


def find_equal_texts(
    tx: Connection, wanted: Iterable[tuple[int, int, int]], limit: int
) -> set[tuple[int, int]]:
    """Pairs of live summaries of one project and text hash, the smaller id first.

    `wanted` are (summary id, project id, text hash), of which each is paired with at most `limit` others.
    """
    sql = (
        "SELECT f.summary_id FROM forms f JOIN summaries s ON s.id = f.summary_id"
        f" WHERE f.form = ? AND s.project_id = ? AND s.id != ? AND {NOT_SUPERSEDED}"
        " ORDER BY f.summary_id DESC LIMIT ?"
    )
    return {
        (min(number, other), max(number, other))
        for number, project_id, text_hash in wanted
        for other in fetch_ids(tx, sql, (text_hash, project_id, number, limit))
    }


def list_unhashed_summaries(tx: Connection) -> list[int]:
    """The summaries without a text hash, which are those that were not examined yet, and few others."""
    return fetch_ids(tx, "SELECT id FROM summaries EXCEPT SELECT summary_id FROM forms")


def reopen_summaries(tx: Connection, summary_ids: Iterable[int]) -> None:
    """Have these summaries consolidated again."""
    sql = "UPDATE summaries SET consolidated = 0 WHERE id = ? AND consolidated"
    tx.executemany(sql, [(number,) for number in summary_ids])


# ── Turns that a model may rewrite ─────────────────────────────────────────────────────────────
# The rules write a turn's summary with the rule `turn`. The rule of a rewritten one names the model,
# so it is a candidate again only after the rules have revised it.

TURN_RULE = "turn"
EARLIER_VERSION = "earlier-version"
"""Tag of what an earlier version of the rules asserted and today's would not."""
_EARLIER_CONFIDENCE = 0.2
MODEL_RULE_PREFIX = "turn, written by "
"""Beginning of the rule of a turn that a model has rewritten; the model's name follows."""
_IS_REWRITABLE = (
    f"s.rule = '{TURN_RULE}' AND s.tier = 'captured' AND s.pinned_at IS NULL"
    f" AND s.authority < {Authority.USER_PROMPT.code}"
    f" AND s.session_id IS NOT NULL AND {NOT_SUPERSEDED}"
)


@dataclass(frozen=True, slots=True)
class TurnRewrite:
    """A model's new text for a turn's summary, made from one revision of it."""

    summary_id: int
    revisions: int
    title: str
    body: str
    quality: float
    model: str


def rewritable_turns(tx: Connection, since: int, now: int, limit: int) -> list[tuple[int, int]]:
    """(id, revisions) of the turns since then that a model may rewrite, newest first."""
    sql = (
        f"SELECT s.id, s.revisions FROM summaries s WHERE s.at >= ? AND {_IS_REWRITABLE}"
        f" AND (s.expires_at IS NULL OR s.expires_at > ?){_NEWEST_FIRST} LIMIT ?"
    )
    return fetch_all(tx, sql, (since, now, limit))


def rewrite_turn(tx: Connection, new: TurnRewrite, now: int) -> bool:
    """Replace a turn's title and body; False if it has changed since the model read it.

    From then on it is an agent's text at most, whoever spoke before.
    """
    # Lookup keys stay as they are: this kind has none.
    tx.execute(
        "UPDATE summaries AS s SET title = ?, body = ?, quality = ?, rule = ?, updated_at = ?,"
        f" authority = min(authority, {Authority.AGENT_TEXT.code}),"
        f" revisions = revisions + 1, consolidated = 0 WHERE id = ? AND revisions = ? AND {_IS_REWRITABLE}",
        (storable(new.title), storable(new.body), new.quality, storable(MODEL_RULE_PREFIX + new.model),
         now, new.summary_id, new.revisions),
    )  # fmt: skip
    return tx.changes() > 0


# ── Speakers of rows that do not name theirs: of an older vault or export, or another program ──
# A migration and the import of records call these, so that both find the same speaker.

_IMPORTED = {
    "user": Authority.USER_HAND,
    "import:markdown": Authority.TOOL_OUTPUT,
    "import:okf": Authority.TOOL_OUTPUT,
    "import:claude-memory": Authority.AGENT_CALL,
    "import:knowledge-graph": Authority.AGENT_CALL,
}
"""Source of memories → whose they are: what the user enters, notes in files that anybody may have written, files that
the agent keeps by its tools. What another program has summed up is an agent's text."""
_SAID = {
    "user": Authority.USER_PROMPT,
    "agent": Authority.AGENT_TEXT,
    "tool": Authority.TOOL_OUTPUT,
}
_EXPLICIT = {"user": Authority.USER_HAND, "agent": Authority.AGENT_CALL}
_KINDS_OF_USER = frozenset({Kind.INSTRUCTION, Kind.PREFERENCE, Kind.FACT, Kind.TASK})
"""Kinds that are only captured from the user's own sentences."""
_LINE_OF_USER = "User: “"
"""The beginning of a line of a captured decision that quotes the user."""
_ROWS_PER_READ = 1_000


def fold_topic(topic_key: str) -> str:
    """A topic key as it is stored: keys that differ only in case name one slot."""
    folded = unicodedata.normalize("NFKC", topic_key).casefold()
    # A few letters fold into what folds again.
    return folded if folded == topic_key else fold_topic(folded)


def imported_authority(source: str, speaker: str | None = None) -> Authority:
    """Return the authority of what an importer (`import:markdown`) or the user brings.

    `speaker`: whose word the file says that it is. A file can say less of itself than its source allows, never more.
    """
    allowed = _IMPORTED.get(source, Authority.AGENT_TEXT)
    return allowed if speaker is None else min(allowed, _SAID[speaker])


def correct_authority(source: str, authority: int) -> int:
    """Return the code of the authority of a stored memory; an earlier memd took notes in files for the user's prompts."""
    is_file = _IMPORTED.get(source) is Authority.TOOL_OUTPUT
    return (
        Authority.TOOL_OUTPUT.code
        if is_file and authority == Authority.USER_PROMPT.code
        else authority
    )


def derive_authority(source: str, kind: str, rule: str, body: str) -> Authority:
    """Derive the authority of a stored memory from where it comes from."""
    if source in _EXPLICIT:
        return _EXPLICIT[source]
    if source.startswith("import:"):
        return imported_authority(source)
    if kind == Kind.DECISION and rule.startswith("decision:"):
        is_users = any(line.startswith(_LINE_OF_USER) for line in body.splitlines())
        return Authority.USER_PROMPT if is_users else Authority.AGENT_TEXT
    if kind in _KINDS_OF_USER and rule.startswith(f"{kind}:"):
        return Authority.USER_PROMPT
    return Authority.TOOL_OUTPUT if kind == Kind.FAILURE else Authority.AGENT_TEXT


def store_speakers(connection: apsw.Connection) -> None:
    """Store the speaker of every memory of an older vault, and fold the topic keys."""
    last = 0
    rows: list[tuple[Any, ...]]
    while rows := connection.execute(
        "SELECT id, source, kind, rule, body, topic_key FROM summaries WHERE id > ? ORDER BY id LIMIT ?",
        (last, _ROWS_PER_READ),
    ).fetchall():
        last = rows[-1][0]
        connection.executemany(
            "UPDATE summaries SET authority = ? WHERE id = ?",
            [(derive_authority(*told).code, number) for number, *told, _ in rows],
        )
        # Apart, and only what changes: a memory with another key is indexed again.
        connection.executemany(
            "UPDATE summaries SET topic_key = ? WHERE id = ?",
            [
                (folded, number)
                for number, *_, topic in rows
                if topic is not None and (folded := fold_topic(topic)) != topic
            ],
        )

"""Shared things read from the vault's tables, and newer versions of them written into the tables.

A statement is the content of one row, or of the last of several rows about the same pair. Its hash is kept in
the register, so that a difference means that something was changed here since. Every function works in the
caller's transaction.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apsw import Connection

from memd.models import SETTINGS_NODE, Authority, EdgeType, Kind
from memd.store import Fields, judgments, ledger, links, projects, reviews, summaries
from memd.store.filter import marks
from memd.store.queries import (
    count_rows,
    fetch_all,
    fetch_column,
    fetch_int,
    insert_returning_id,
    insert_row,
    json_text,
    row_id,
)
from memd.store.reviews import Review
from memd.text import digest

SYNC_RULE = "sync"
"""The rule of supersessions and edges that follow from what devices said, so that nobody sends them."""
_MEMORY_COLUMNS = (
    "kind", "source", "title", "body", "topic_key", "tags", "files", "at", "created_at", "updated_at",
    "expires_at", "quality", "revisions", "duplicates", "rule", "authority",
)  # fmt: skip
_SETTINGS = (
    "(SELECT json_group_array(json_array(x.type, x.to_id, json(x.detail))) FROM (SELECT e.type, e.to_id, e.detail"
    " FROM edges e WHERE e.from_kind = 'summary' AND e.from_id = CAST(m.id AS TEXT)"
    f" AND +e.to_kind = '{SETTINGS_NODE}' ORDER BY e.to_id, e.type) x HAVING count(*))"
)
"""What a memory has set in files: by that another device knows which value holds."""
_SETTING_EDGES = frozenset({EdgeType.EDITS, EdgeType.REFERENCES})
_BOTH_OWN = "n.author = '' AND o.author = ''"
"""A teammate's memory travels over the team's server, and what relates it to others is this vault's own affair."""
_UNKNOWN = "(SELECT u.fields FROM unknown_fields u WHERE (u.kind, u.one, u.link, u.other) = ('summary', m.uid, '', ''))"
_JUDGE = (
    f"(SELECT iif(j.who = 'user', {Authority.USER_HAND.code}, {Authority.AGENT_CALL.code}) FROM judgments j"
    " WHERE j.undone_at IS NULL AND j.newer_id = x.newer_id AND j.older_id = x.older_id)"
)


@dataclass(frozen=True, slots=True)
class SharedRow:
    """One shared thing as the tables have it. `one` and `other` are uids, or keys of projects."""

    one: str
    link: str
    other: str
    at: int
    """When it was stated or retracted, UTC milliseconds."""
    voice: int
    """The greatest authority that stands in it."""
    content: tuple[Any, ...] | None
    """In the order of its kind's fields; None if it was retracted."""
    rule: str = ""
    project: str = ""
    """The key of a memory's project."""
    confidence: float = 0.0
    unknown: str | None = None
    """JSON of a memory's fields that only a newer memd knows."""

    @property
    def hash(self) -> str:
        """A hash of the content; "" if it was retracted."""
        if self.content is None:
            return ""
        return digest(repr(self.content), *filter(None, [self.unknown]))


_SOURCES: Mapping[str, str] = {
    "memory": f"m.uid, '', '', m.updated_at, m.authority, 1, m.rule, p.key, m.confidence, {_UNKNOWN},"
    f" {', '.join(f'm.{name}' for name in _MEMORY_COLUMNS)}, {_SETTINGS}"
    " FROM summaries m JOIN projects p ON p.id = m.project_id WHERE m.author = ''",
    "pin": "m.uid, '', '', m.pinned_at, coalesce(m.pinned_by, 5), 1, '', '', 0, NULL, m.pinned_at, coalesce(m.pinned_by, 5)"
    " FROM summaries m WHERE m.pinned_at IS NOT NULL AND m.author = ''",
    # A rejection outranks what a device said that did not know of it.
    "review": "m.uid, '', '', v.at, iif(v.verdict = 'rejected', 5, 4), 1, '', '', 0, NULL, v.verdict, v.at,"
    " (SELECT f.uid FROM summaries f WHERE f.id = v.follows)"
    " FROM reviews v JOIN summaries m ON m.id = v.summary_id WHERE m.author = ''",
    "supersession": "n.uid, '', o.uid, coalesce(x.undone_at, x.at), max(iif(x.undone_at IS NULL, 0, 4),"
    f" iif(x.rule = 'judged', coalesce({_JUDGE}, 3), n.authority),"
    " o.authority, coalesce(o.pinned_by, 0)), x.undone_at IS NULL, x.rule, '', 0, NULL,"
    " x.rule, x.cosine, x.guard, x.at FROM supersessions x"
    f" JOIN summaries n ON n.id = x.newer_id JOIN summaries o ON o.id = x.older_id WHERE {_BOTH_OWN}",
    "judgment": "min(n.uid, o.uid), '', max(n.uid, o.uid), coalesce(x.undone_at, x.at),"
    f" iif(x.who = 'user', {Authority.USER_HAND.code}, {Authority.AGENT_CALL.code}), x.undone_at IS NULL,"
    " '', '', 0, NULL, n.uid, x.relation, x.reason, x.who, x.at FROM judgments x"
    f" JOIN summaries n ON n.id = x.newer_id JOIN summaries o ON o.id = x.older_id WHERE {_BOTH_OWN}",
    "edge": "n.uid, x.type, o.uid, x.at, 0, 1, x.rule, '', 0, NULL, x.confidence, x.rule, x.at,"
    " json_remove(x.detail, '$.run') FROM edges x"
    " JOIN summaries n ON n.id = CAST(x.from_id AS INTEGER) JOIN summaries o ON o.id = CAST(x.to_id AS INTEGER)"
    " WHERE x.from_kind = 'summary' AND x.to_kind = 'summary'"
    f" AND x.from_id <> x.to_id AND {_BOTH_OWN}",
}  # fmt: skip
"""Kind → its columns and tables."""
_CONDITIONS: Mapping[str, tuple[str, str]] = {
    "memory": ("m.uid = ?1", "m.id"),
    "pin": ("m.uid = ?1", "m.id"),
    "review": ("m.uid = ?1", "m.id"),
    "supersession": ("n.uid = ?1 AND o.uid = ?3", "x.undone_at IS NULL, x.id"),
    "judgment": ("n.uid IN (?1, ?3) AND o.uid IN (?1, ?3)", "x.undone_at IS NULL, x.id"),
    "edge": ("n.uid = ?1 AND x.type = ?2 AND o.uid = ?3", "x.id"),
}
"""Kind → (the condition for one thing, the order in which the last row counts)."""


def read_statements(tx: Connection, kind: str) -> dict[tuple[str, str, str], SharedRow]:
    """Read the tables' state of every memory, pin, supersession, judgment or edge, by its ends.

    Memories are many: `each_statement` yields them one by one.
    """
    return {(one.one, one.link, one.other): one for one in each_statement(tx, kind)}


def each_statement(tx: Connection, kind: str) -> Iterator[SharedRow]:
    """Yield the same, one row after the other: of several about one thing the last counts."""
    for row in tx.execute(f"SELECT {_SOURCES[kind]} ORDER BY {_CONDITIONS[kind][1]}"):
        yield _to_statement(row)


def read_statement(tx: Connection, kind: str, one: str, link: str, other: str) -> SharedRow | None:
    """Read the tables' state of one thing; None if they never had it."""
    condition, order = _CONDITIONS[kind]
    sql = f"SELECT {_SOURCES[kind]} AND {condition} AND ?2 IS ?2 AND ?3 IS ?3 ORDER BY {order}"
    rows = fetch_all(tx, sql, (one, link, other))
    return _to_statement(rows[-1]) if rows else None


def _to_statement(row: tuple[Any, ...]) -> SharedRow:
    one, link, other, at, voice, is_live, rule, project, confidence, unknown, *content = row
    if len(content) > len(_MEMORY_COLUMNS) and content[-1] is None:
        content.pop()  # so what has set nothing hashes as ever
    held = tuple(content) if is_live else None
    return SharedRow(one, link, other, at, voice, held, rule, project, confidence, unknown)


def last_content(tx: Connection, newer: str, older: str) -> tuple[Any, ...] | None:
    """Return the content of the last supersession of a pair, whether it holds or not."""
    sql = (
        "SELECT x.rule, x.cosine, x.guard, x.at FROM supersessions x JOIN summaries n ON n.id = x.newer_id"
        " JOIN summaries o ON o.id = x.older_id WHERE n.uid = ? AND o.uid = ? AND x.rule <> ?"
        " ORDER BY x.undone_at IS NULL DESC, x.id DESC LIMIT 1"
    )
    return tx.execute(sql, (newer, older, SYNC_RULE)).fetchone()


# ── Memories ───────────────────────────────────────────────────────────────────────────────────


def memory_fields(tx: Connection, said: SharedRow) -> Fields:
    """The fields of a memory's record."""
    assert said.content is not None
    settings = said.content[len(_MEMORY_COLUMNS) :]
    fields: Fields = dict(zip(_MEMORY_COLUMNS, said.content, strict=False))
    if settings:
        fields["settings"] = {"edges": json.loads(settings[0])}
    fields |= {name: json.loads(fields[name]) for name in ("tags", "files")}
    number = row_id(tx, "summary", said.one) or 0
    first = judgments.first_confidence(tx, number, fields["duplicates"], said.confidence)
    return {"project": said.project, "confidence": first, **fields}


def put_memory(tx: Connection, uid: str, fields: Fields, project_id: int) -> None:
    """Write a memory's row, or replace what it says; its session, pin and links stay as they are here."""
    values = {name: fields[name] for name in _MEMORY_COLUMNS}
    values |= {"tags": json_text(fields["tags"]), "files": json_text(fields["files"])}
    number = row_id(tx, "summary", uid)
    if number is None:
        row = values | {
            "uid": uid, "project_id": project_id, "tier": "captured", "confidence": fields["confidence"],
        }  # fmt: skip
        number = insert_returning_id(tx, "summaries", row)
        summaries.pin_summary(tx, number, None)  # which finds the tier
    else:
        values |= {"project_id": project_id, "consolidated": 0}
        sql = f"UPDATE summaries SET ({', '.join(values)}) = ({marks(values)}) WHERE id = ?"
        with judgments.changing_standing(tx, number):
            tx.execute(sql, (*values.values(), number))
    judgments.put_first_confidence(tx, number, fields["confidence"], fields["duplicates"])
    summaries.put_lookup_keys(tx, number, Kind(fields["kind"]), fields["title"], fields["body"])
    if edges := _read_settings(number, fields):
        sql = "DELETE FROM edges WHERE from_kind = 'summary' AND from_id = ? AND +to_kind = ?"
        tx.execute(sql, (str(number), SETTINGS_NODE))
        links.add_edges(tx, edges)


def _read_settings(number: int, fields: Fields) -> list[links.NewEdge]:
    """The edges to what a memory from elsewhere has set, as far as they have the form that is read here."""
    found = fields.get("settings", {}).get("edges")
    made = []
    for row in found if isinstance(found, list) else ():
        type_, file, detail = row if isinstance(row, list) and len(row) == 3 else ("", "", None)  # noqa: PLR2004  # type, file, detail
        rows = detail.get("set") if isinstance(detail, dict) else None
        is_read = isinstance(rows, list) and all(map(_is_setting, rows))
        if is_read and isinstance(file, str) and type_ in list(_SETTING_EDGES):
            edge = links.NewEdge(
                "summary", str(number), EdgeType(type_), SETTINGS_NODE, file, SYNC_RULE,
                fields["at"], detail=detail or {},
            )  # fmt: skip
            made.append(edge)
    return made


def _is_setting(row: Any) -> bool:
    """Return whether this is a key, its former value and its new one."""
    is_row = isinstance(row, list) and len(row) == 3 and isinstance(row[0], list)  # noqa: PLR2004  # as said
    return is_row and all(isinstance(text, str) for text in (*row[0], *row[1:]))


def forgotten_keys(tx: Connection) -> set[str]:
    """The hashes of all that was forgotten on purpose."""
    return set(fetch_column(tx, "SELECT key FROM forgotten"))


def forgotten_but_there(tx: Connection) -> list[int]:
    """The memories that were forgotten elsewhere and are still to be erased here."""
    return fetch_column(
        tx, "SELECT s.id FROM forgotten f JOIN summaries s ON s.uid = f.key ORDER BY s.id"
    )


NEWER_NOTE = "sync newer at "
"""With the name of a place: which records there a newer memd wrote, as JSON."""


def count_newer(tx: Connection, place: str) -> int:
    """Count the records at a sync target that were skipped because only a newer memd understands them."""
    noted = json.loads(ledger.read_note(tx, NEWER_NOTE + place) or "{}")
    return sum(sum(found.values()) for found in noted.get("logs", {}).values())


def count_erasures(tx: Connection) -> int:
    """Count how often text was erased from this vault on purpose."""
    names = ("erased forgotten", "erased private")
    return sum(int(ledger.read_note(tx, name) or 0) for name in names)


# ── What relates memories ──────────────────────────────────────────────────────────────────────


def put_statement(
    tx: Connection, name: tuple[str, str], rows: Sequence[int], value: Fields | None, at: int
) -> None:
    """Let this be said of a memory, or of two, or nothing any more; `at`: when that version was made.

    `name`: its kind, and the type of an edge.
    """
    kind, link = name
    if kind == "pin":
        by = Authority.of(value["by"]) if value else Authority.USER_HAND
        summaries.pin_summary(tx, rows[0], value["at"] if value else None, by)
    elif kind == "review":
        _put_review(tx, rows[0], value)
    elif kind == "supersession":
        _put_supersession(tx, (rows[0], rows[1]), value, at)
    elif kind == "judgment":
        _put_judgment(tx, (rows[0], rows[1]), value, at)
    else:
        _put_edge(tx, ("summary", str(rows[0])), EdgeType(link), ("summary", str(rows[1])), value)


def _put_review(tx: Connection, summary_id: int, value: Fields | None) -> None:
    if value is None:
        reviews.drop_review(tx, summary_id)
        return
    follows = value["follows"] and row_id(tx, "summary", value["follows"])
    reviews.put_review(tx, Review(summary_id, value["verdict"], value["at"], follows))


def _put_supersession(tx: Connection, pair: tuple[int, int], value: Fields | None, at: int) -> None:
    """Keep what a supersession says, as one that does not hold: which hold is decided for all of them together."""
    sql = "UPDATE supersessions SET undone_at = ? WHERE newer_id = ? AND older_id = ? AND undone_at IS NULL"
    tx.execute(sql, (at, *pair))
    if value is None:
        return
    sql = "SELECT max(id) FROM supersessions WHERE newer_id = ? AND older_id = ? AND rule <> ?"
    found = fetch_int(tx, sql, (*pair, SYNC_RULE))
    row = {"newer_id": pair[0], "older_id": pair[1], "undone_at": at}
    row |= {name: value[name] for name in ("rule", "cosine", "guard", "at")}
    if found is None:
        insert_row(tx, "supersessions", row)
    else:
        sql = f"UPDATE supersessions SET ({', '.join(row)}) = ({marks(row)}) WHERE id = ?"
        tx.execute(sql, (*row.values(), found))


def _put_judgment(tx: Connection, pair: tuple[int, int], value: Fields | None, at: int) -> None:
    """Let this judgment of a pair hold instead of the one that held, or none."""
    held = judgments.judgment_between(tx, *pair)
    if held is not None:
        judgments.undo_judgment(tx, held, at)
    if value is None:
        return
    newer_id = row_id(tx, "summary", value["newer"].rpartition("+")[0])
    row = {"newer_id": newer_id, "older_id": pair[0] if newer_id == pair[1] else pair[1]}
    row |= {name: value[name] for name in ("relation", "reason", "who", "at")}
    with judgments.updating_confidence(tx, pair):
        insert_row(tx, "judgments", row)


def _put_edge(
    tx: Connection, start: links.Node, type_: EdgeType, end: links.Node, value: Fields | None
) -> None:
    links.drop_edge(tx, start, type_, end)
    if value is not None:
        said = (value[name] for name in ("rule", "at", "confidence", "detail"))
        links.add_edges(tx, [links.NewEdge(*start, type_, *end, *said)])


# ── Which supersessions hold ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class MemoryHead:
    """The fields that decide which of two memories may hide the other. Times are UTC milliseconds."""

    id: int
    project_id: int
    topic_key: str | None
    at: int
    said_at: int
    """When somebody said it last; of what was read from events, their time."""
    is_explicit: int
    """Whether a person or an agent wrote it, so that it changes only when it is said again."""
    is_edit: int
    authority: int
    pinned_by: int
    pinned_at: int
    author: str
    """The teammate who said it; "" of the vault's own."""


def read_heads(tx: Connection, *, has_team: bool = False) -> dict[str, MemoryHead]:
    """Every memory that is not to be erased, by its uid: this vault's own, with `has_team` teammates', too.

    A teammate's has the authority and the time of its greatest version, whose word it is here notwithstanding.
    """
    is_explicit = "source IN ('agent', 'user')"
    is_repeated = f"{is_explicit} AND updated_at > created_at"
    rows = tx.execute(
        f"SELECT uid, id, project_id, topic_key, at, iif({is_repeated}, max(at, updated_at), at), {is_explicit},"
        f" rule = 'edited', {judgments.AUTHORITY.format('summaries')},"
        " coalesce(pinned_by, 0) * 10, coalesce(pinned_at, 0), author FROM summaries WHERE author = ''"
        " AND uid NOT IN (SELECT key FROM forgotten)"
        " UNION ALL SELECT s.uid, s.id, s.project_id, s.topic_key, s.at, max(s.at, max(t.wall)), 0, 0,"
        " max(t.rank) * 10, 0, 0, s.author FROM summaries s JOIN team_said t ON t.uid = s.uid AND t.state = 'shared'"
        " WHERE ? AND s.author <> '' AND s.topic_key IS NOT NULL AND s.uid NOT IN (SELECT key FROM forgotten)"
        " GROUP BY s.id",
        (has_team,),
    )
    return {uid: MemoryHead(*values) for uid, *values in rows}


def read_rules(tx: Connection) -> dict[tuple[str, str], tuple[str, int]]:
    """(uid of the newer, uid of the older) → (rule, time) of what was said last to hide which."""
    sql = (
        "SELECT n.uid, o.uid, x.rule, x.at FROM supersessions x JOIN summaries n ON n.id = x.newer_id"
        " JOIN summaries o ON o.id = x.older_id WHERE x.rule <> ? ORDER BY x.undone_at IS NULL, x.id"
    )
    return {(row[0], row[1]): (row[2], row[3]) for row in fetch_all(tx, sql, (SYNC_RULE,))}


def read_refusals(tx: Connection, rule: str) -> list[tuple[str, str, int]]:
    """(uid of the newer, uid of the older, when) of what contradicts because a rule might not hide it."""
    sql = (
        "SELECT n.uid, o.uid, x.at FROM edges x JOIN summaries n ON n.id = CAST(x.from_id AS INTEGER)"
        " JOIN summaries o ON o.id = CAST(x.to_id AS INTEGER) WHERE x.from_kind = 'summary'"
        f" AND x.to_kind = 'summary' AND x.type = '{EdgeType.CONTRADICTS}' AND x.rule = ? AND {_BOTH_OWN}"
    )
    return fetch_all(tx, sql, (rule,))


def hold_supersessions(tx: Connection, wanted: set[tuple[int, int]], now: int) -> None:
    """Let exactly these (newer, older) of the known pairs hold.

    Rows of memories that are to be erased stay as they are: forgetting hands them on.
    """
    sql = (
        "SELECT x.newer_id, x.older_id, x.id FROM supersessions x WHERE x.undone_at IS NULL AND x.rule <> ?"
        " AND NOT EXISTS (SELECT 1 FROM summaries s LEFT JOIN forgotten f ON f.key = s.uid"
        " WHERE s.id IN (x.newer_id, x.older_id) AND (f.key IS NOT NULL OR s.author <> ''))"
    )
    live = {(newer, older): number for newer, older, number in fetch_all(tx, sql, (SYNC_RULE,))}
    for pair in sorted(live.keys() - wanted):
        links.undo_supersession(tx, live[pair], now)
    sql = (
        "UPDATE OR IGNORE supersessions SET undone_at = NULL WHERE id = (SELECT max(id) FROM supersessions"
        " WHERE newer_id = ? AND older_id = ? AND rule <> ?)"
    )
    for newer, older in sorted(wanted - live.keys()):
        _drop_derived(tx, older)
        tx.execute(sql, (newer, older, SYNC_RULE))


def _drop_derived(tx: Connection, older: int) -> None:
    sql = "DELETE FROM supersessions WHERE older_id = ? AND rule = ? AND undone_at IS NULL"
    tx.execute(sql, (older, SYNC_RULE))


def replace_derived(
    tx: Connection,
    hidden: set[tuple[int, int]],
    contradicting: Mapping[tuple[int, int], str],
    guard: str,
    now: int,
) -> None:
    """Let exactly these supersessions and contradictions follow from what devices said."""
    sql = "SELECT newer_id, older_id FROM supersessions WHERE rule = ? AND undone_at IS NULL"
    there = set(fetch_all(tx, sql, (SYNC_RULE,)))
    for _, older in sorted(there - hidden):
        _drop_derived(tx, older)
    for newer, older in sorted(hidden - there):
        links.supersede(
            tx, newer_id=newer, older_id=older, rule=SYNC_RULE, cosine=None, guard=guard, at=now
        )
    sql = (
        "SELECT CAST(from_id AS INTEGER), CAST(to_id AS INTEGER) FROM edges WHERE rule = ?"
        " AND from_kind = 'summary' AND to_kind = 'summary'"
    )
    known = set(fetch_all(tx, sql, (SYNC_RULE,)))
    for newer, older in sorted(known - contradicting.keys()):
        ends = ("summary", str(newer)), ("summary", str(older))
        links.drop_edge(tx, ends[0], EdgeType.CONTRADICTS, ends[1], SYNC_RULE)
    links.add_edges(
        tx,
        [
            links.NewEdge(
                "summary", str(newer), EdgeType.CONTRADICTS, "summary", str(older), SYNC_RULE, now,
                detail={"finding": contradicting[newer, older]},
            )
            for newer, older in sorted(contradicting.keys() - known)
        ],
    )  # fmt: skip


# ── Projects ───────────────────────────────────────────────────────────────────────────────────


def project_keys(tx: Connection) -> dict[str, str]:
    """Every key that a project has or had → the key by which it goes now."""
    found = {key: key for key in fetch_column(tx, "SELECT key FROM projects")}
    return found | {key: into for key, into, _ in aliases(tx)}


def aliases(tx: Connection) -> list[tuple[str, str, int]]:
    """(key, key of the project that it stands for, since when) of each alias."""
    sql = "SELECT a.key, p.key, a.at FROM aliases a JOIN projects p ON p.id = a.project_id"
    return fetch_all(tx, sql)


def projects_with_memories(tx: Connection) -> dict[str, tuple[str, int]]:
    """Key → (name, when it was made) of every project that has memories."""
    sql = "SELECT key, name, created_at FROM projects WHERE id IN (SELECT project_id FROM summaries) ORDER BY id"
    return {key: (name, at) for key, name, at in fetch_all(tx, sql)}


def count_own_sessions(tx: Connection, key: str) -> int:
    """Count the sessions of a project that ran on this device."""
    found = projects.project_by_key(tx, key)
    return count_rows(tx, "sessions WHERE project_id = ?", (found.id,)) if found else 0

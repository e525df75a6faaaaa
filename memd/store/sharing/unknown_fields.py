"""Fields of rows that only a newer memd knows: they are kept, and go with the row wherever it goes."""

import json
from collections.abc import Mapping
from typing import Any

from apsw import Connection

from memd.store.queries import compact_json
from memd.text import digest

UnknownName = tuple[str, str, str, str]
"""Kind of record, what it is of, what else names it, the other end."""
_NAMES: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "project": ("key", "", ()), "alias": ("key", "", ()), "session": ("uid", "", ()),
    "event": ("key", "", ()), "summary": ("uid", "", ()), "supersession": ("newer", "older", ()),
    "edge": ("from", "to", ("from_kind", "type", "to_kind")), "judgment": ("newer", "older", ()),
    "use": ("summary", "", ()), "review": ("summary", "", ()), "together": ("one", "other", ()),
    "injection": ("summary", "session", ("moment", "at")), "switch": ("target", "", ("scope",)),
    "forgotten": ("key", "", ()),
}  # fmt: skip
"""Kind of record → the fields that name it: what it is of, the other end or "", the rest."""
_ROWS = frozenset({"uid", "newer", "older", "summary", "session", "one", "other"})
"""Fields that name a row by its uid, and so go with it."""


def find_name(kind: str, fields: Mapping[str, Any]) -> UnknownName:
    """The name of a record, in which no words are."""
    one, other, rest = _NAMES[kind]
    link = digest(*(str(fields[name]) for name in rest)) if rest else ""
    return kind, _name_end(kind, one, fields), link, _name_end(kind, other, fields)


def _name_end(kind: str, field: str, fields: Mapping[str, Any]) -> str:
    if not field:
        return ""
    is_row = (
        field in _ROWS
        or (kind, field) == ("event", "key")
        or fields.get(f"{field}_kind") in {"summary", "event", "session"}
    )
    return str(fields[field]) if is_row else digest(kind, str(fields[field]))


def read_all(tx: Connection) -> dict[UnknownName, dict[str, Any]]:
    """Everything that is kept: name of the record → its unknown fields."""
    rows = tx.execute("SELECT kind, one, link, other, fields FROM unknown_fields")
    return {(kind, one, link, other): json.loads(fields) for kind, one, link, other, fields in rows}


def read_of_memory(tx: Connection, uid: str) -> dict[str, Any]:
    """The unknown fields of a memory."""
    found = tx.execute(
        "SELECT fields FROM unknown_fields WHERE (kind, one, link, other) = ('summary', ?, '', '')",
        (uid,),
    ).get
    return json.loads(found) if found else {}


def put_of_memory(tx: Connection, uid: str, fields: Mapping[str, Any]) -> None:
    """Let these be the unknown fields of a memory."""
    put(tx, ("summary", uid, "", ""), fields)


def put(
    tx: Connection, name: UnknownName, fields: Mapping[str, Any], *, or_ignore: bool = False
) -> None:
    """Keep the unknown fields of a record, or forget that it had any; `or_ignore`: unless some are kept."""
    if not fields:
        if not or_ignore:
            tx.execute(
                "DELETE FROM unknown_fields WHERE (kind, one, link, other) = (?, ?, ?, ?)", name
            )
        return
    verb = "INSERT OR IGNORE" if or_ignore else "INSERT OR REPLACE"
    tx.execute(
        f"{verb} INTO unknown_fields (kind, one, link, other, fields) VALUES (?, ?, ?, ?, ?)",
        (*name, compact_json(fields)),
    )

"""The rows of claude-mem's database as memories: observations, session summaries, directives. Pure.

Its tables have changed a good deal: columns came, two were renamed, and before the observations there
were `memories`. So a row is read by the columns that are there, each under the names it has had. Its
sessions are those of the client that it watched, so what it knows joins what memd knows of them. Not
here: opening the file (store/foreign.py).
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from memd.models import Kind
from memd.transfer import record
from memd.transfer.record import ForeignMemory

Row = Mapping[str, str | None]
"""Column → its value as text."""

SESSION_TABLE = "sdk_sessions"
_NAMES: Mapping[str, tuple[str, ...]] = {
    "session": ("memory_session_id", "sdk_session_id", "session_id"),
    "content": ("content_session_id", "claude_session_id"),
    "client": ("platform_source",),
    "project": ("merged_into_project", "project"),
    "at": ("created_at_epoch", "created_at"),
    "text": ("text", "content"),
    "files": ("files_modified", "files_edited", "files_touched"),
}
"""Our name of a column → the names that it has had; the first that holds something counts."""
_KINDS = {
    "bugfix": Kind.FIX,
    "feature": Kind.CHANGE,
    "refactor": Kind.CHANGE,
    "security_alert": Kind.DISCOVERY,
    "security_note": Kind.DISCOVERY,
}
_SUMMARY = (
    ("request", "Asked"),
    ("investigated", "Looked into"),
    ("learned", "Learned"),
    ("completed", "Done"),
    ("next_steps", "Next"),
    ("notes", "Notes"),
)


@dataclass(frozen=True, slots=True)
class WatchedSession:
    """A session of the client that was watched."""

    key: str
    client: str


def read_sessions(rows: Iterator[Row]) -> dict[str, WatchedSession]:
    """claude-mem's own id of a session → the session of the client."""
    found = {}
    for row in rows:
        own, key = _first(row, "session"), _first(row, "content")
        if key:
            client = _first(row, "client") or "claude"
            session = WatchedSession(key, "claude-code" if client == "claude" else client)
            found[own or key] = found[key] = session
    return found


def memory_tables(there: Mapping[str, Collection[str]]) -> list[str]:
    """Which of these tables hold memories, in the order to read them; empty: it is not claude-mem's."""
    return [
        name
        for name in _READERS
        if name in there and ("id" in there[name]) and set(there[name]) & {"project", "content"}
    ]


def read_row(table: str, row: Row, known: Mapping[str, WatchedSession]) -> list[ForeignMemory]:
    """The memories of one row; none if it says nothing."""
    made = _READERS[table](row)
    if made is None or not made[1].strip():
        return []
    heading, text, kind, words, paths = made
    own = _first(row, "session")
    session = known.get(own)
    cut = record.split_text(text.strip())
    return [
        ForeignMemory(
            title=record.make_title(
                heading, "" if len(cut) == 1 else f"({number} of {len(cut)})"
            ),
            text=piece,
            part=record.part_name(
                table, own, row.get("id") or "", "" if number == 1 else f"[{number}]"
            ),
            kind=kind,
            at=_at(row),
            tags=record.clean_tags(words),
            files=record.clean_files(paths),
            session=session.key if session else own or None,
            client=session.client if session else None,
            project=_first(row, "project") or None,
        )
        for number, piece in enumerate(cut, start=1)
    ]


_Made = tuple[str, str, Kind, list[str], list[str]]
"""Title, text, kind, tags, files."""


def _observation(row: Row) -> _Made:
    type_ = (row.get("type") or "").strip()
    kind = _KINDS.get(type_) or (Kind(type_) if type_ in set(Kind) else Kind.NOTE)
    facts = "\n".join(f"- {fact}" for fact in _list(row.get("facts")))
    said = (row.get("subtitle"), row.get("narrative"), facts, _first(row, "text"))
    text = "\n\n".join(word.strip() for word in said if word and word.strip())
    heading = row.get("title") or ""
    words = [*([type_] if type_ != kind.value else []), *_list(row.get("concepts"))]
    paths = [*_list(_first(row, "files")), *_list(row.get("files_read"))]
    return heading or text, text or heading, kind, words, paths


def _summary(row: Row) -> _Made:
    said = [(label, (row.get(name) or "").strip()) for name, label in _SUMMARY]
    text = "\n\n".join(f"{label}: {words}" for label, words in said if words)
    heading = next((words for _, words in said if words), "")
    paths = [*_list(_first(row, "files")), *_list(row.get("files_read"))]
    return heading, text, Kind.SESSION, [], paths


def _directive(row: Row) -> _Made | None:
    if (row.get("status") or "active") != "active":
        return None
    text = row.get("content") or ""
    return text, text, Kind.INSTRUCTION, [], []


def _overview(row: Row) -> _Made:
    text = row.get("content") or ""
    return text, text, Kind.SESSION, [], []


_READERS: Mapping[str, Callable[[Row], _Made | None]] = {
    "observations": _observation,
    "session_summaries": _summary,
    "directives": _directive,
    "memories": _observation,
    "overviews": _overview,
}
"""Each table that is read, and how."""


def _first(row: Row, name: str) -> str:
    found = ((row.get(column) or "").strip() for column in _NAMES[name])
    return next((value for value in found if value), "")


def _at(row: Row) -> int | None:
    found = (record.parse_time_ms(row.get(column)) for column in _NAMES["at"])
    return next((at for at in found if at is not None), None)


def _list(value: str | None) -> list[str]:
    """A list that was written as JSON; in old rows one text, or words between commas."""
    text = (value or "").strip()
    if not text or text == "null":
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return [word.strip() for word in text.split(",")] if "\n" not in text else [text]
    if not isinstance(found, list):
        return [str(found)]
    return [" ".join(str(one).split()) for one in found if one not in (None, "")]

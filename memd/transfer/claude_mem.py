"""Read the rows of claude-mem's database: observations, session summaries, directives.

Its columns were added and renamed over time, so a row is read by the columns that it has. Its sessions
are those of the client that it watched, so its memories join what memd has of them.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from memd.models import Kind
from memd.transfer.record import ForeignMemory, clean_files, clean_tags, parse_time_ms, split_memory

Row = Mapping[str, str | None]
"""Column → its value as text."""

SESSION_TABLE = "sdk_sessions"
_COLUMN_NAMES: Mapping[str, tuple[str, ...]] = {
    "session": ("memory_session_id", "sdk_session_id", "session_id"),
    "content": ("content_session_id", "claude_session_id"),
    "client": ("platform_source",),
    "project": ("merged_into_project", "project"),
    "at": ("created_at_epoch", "created_at"),
    "text": ("text", "content"),
    "files": ("files_modified", "files_edited", "files_touched"),
}
"""A column → the names that it has had; the first with a value counts."""
_KINDS = {
    "bugfix": Kind.FIX,
    "feature": Kind.CHANGE,
    "refactor": Kind.CHANGE,
    "security_alert": Kind.DISCOVERY,
    "security_note": Kind.DISCOVERY,
}
_SUMMARY_LABELS = (
    ("request", "Asked"),
    ("investigated", "Looked into"),
    ("learned", "Learned"),
    ("completed", "Done"),
    ("next_steps", "Next"),
    ("notes", "Notes"),
)
"""The columns of a session summary, and what stands before each in the memory."""


@dataclass(frozen=True, slots=True)
class WatchedSession:
    """A session of the client that claude-mem watched."""

    key: str
    client: str


def memory_tables(tables: Mapping[str, Collection[str]]) -> list[str]:
    """Return the tables with memories, in the order to read them; none: it is not claude-mem's.

    `tables`: name → columns.
    """
    return [
        name
        for name in _ROW_READERS
        if name in tables and "id" in tables[name] and set(tables[name]) & {"project", "content"}
    ]


def read_sessions(rows: Iterator[Row]) -> dict[str, WatchedSession]:
    """Return both ids of a session, claude-mem's own and the client's → the session."""
    found = {}
    for row in rows:
        own, key = _read_column(row, "session"), _read_column(row, "content")
        if key:
            client = _read_column(row, "client") or "claude"
            session = WatchedSession(key, "claude-code" if client == "claude" else client)
            found[own or key] = found[key] = session
    return found


def read_row(table: str, row: Row, sessions: Mapping[str, WatchedSession]) -> list[ForeignMemory]:
    """Return the memories of one row; none if it has no text."""
    title, text, kind, tags, files = _ROW_READERS[table](row)
    if not text.strip():
        return []
    own = _read_column(row, "session")
    session = sessions.get(own)
    times = (parse_time_ms(row.get(column)) for column in _COLUMN_NAMES["at"])
    return list(
        split_memory(
            ForeignMemory(
                title=title,
                text=text.strip(),
                part=f"{table} {own} {row.get('id') or ''}",
                kind=kind,
                at=next((at for at in times if at is not None), None),
                tags=clean_tags(tags),
                files=clean_files(files),
                session=session.key if session else own or None,
                client=session.client if session else None,
                project=_read_column(row, "project") or None,
            )
        )
    )


_RowContent = tuple[str, str, Kind, list[str], list[str]]
"""Title, text, kind, tags, files."""


def _read_observation(row: Row) -> _RowContent:
    type_ = (row.get("type") or "").strip()
    kind = _KINDS.get(type_) or (Kind(type_) if type_ in set(Kind) else Kind.NOTE)
    facts = "\n".join(f"- {fact}" for fact in _parse_list(row.get("facts")))
    texts = (row.get("subtitle"), row.get("narrative"), facts, _read_column(row, "text"))
    text = "\n\n".join(part.strip() for part in texts if part and part.strip())
    title = row.get("title") or ""
    tags = [*([type_] if type_ != kind.value else []), *_parse_list(row.get("concepts"))]
    return title or text, text or title, kind, tags, _read_files(row)


def _read_summary(row: Row) -> _RowContent:
    texts = [(label, (row.get(name) or "").strip()) for name, label in _SUMMARY_LABELS]
    text = "\n\n".join(f"{label}: {part}" for label, part in texts if part)
    title = next((part for _, part in texts if part), "")
    return title, text, Kind.SESSION, [], _read_files(row)


def _read_directive(row: Row) -> _RowContent:
    is_active = (row.get("status") or "active") == "active"
    text = (row.get("content") or "") if is_active else ""
    return text, text, Kind.INSTRUCTION, [], []


def _read_overview(row: Row) -> _RowContent:
    text = row.get("content") or ""
    return text, text, Kind.SESSION, [], []


_ROW_READERS: Mapping[str, Callable[[Row], _RowContent]] = {
    "observations": _read_observation,
    "session_summaries": _read_summary,
    "directives": _read_directive,
    "memories": _read_observation,
    "overviews": _read_overview,
}


def _read_column(row: Row, name: str) -> str:
    found = ((row.get(column) or "").strip() for column in _COLUMN_NAMES[name])
    return next((value for value in found if value), "")


def _read_files(row: Row) -> list[str]:
    return [*_parse_list(_read_column(row, "files")), *_parse_list(row.get("files_read"))]


def _parse_list(value: str | None) -> list[str]:
    """Parse a JSON list; old rows have one text, or words between commas."""
    text = (value or "").strip()
    if not text or text == "null":
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return [word.strip() for word in text.split(",")] if "\n" not in text else [text]
    if not isinstance(found, list):
        return [str(found)]
    return [" ".join(str(item).split()) for item in found if item not in (None, "")]

"""Parsers of the memories of other programs: claude-mem, the reference MCP memory server, Codex CLI.

claude-mem keeps observations, session summaries and directives as rows of a database.

Its columns were added and renamed over time, so a row is read by the columns that it has. Its sessions
are those of the client that it watched, so its memories join what memd has of them.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memd.models import GLOBAL_PROJECT, Kind
from memd.text import digest
from memd.transfer import (
    ForeignMemory,
    ReadIssues,
    clean_files,
    clean_tags,
    parse_time_ms,
    part_name,
    split_memory,
)

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


# ── The reference MCP memory server ───────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Entity:
    name: str
    type: str = ""
    line: int | None = None
    observations: dict[str, None] = field(default_factory=dict)
    relations: dict[str, None] = field(default_factory=dict)


def read_graph(lines: Iterable[bytes], at: int | None, issues: ReadIssues) -> list[ForeignMemory]:
    """Return the memories of a graph; `at` is when its file was changed, for it has no other times."""
    entities: dict[str, _Entity] = {}
    relations: list[tuple[int, Mapping[str, Any]]] = []
    for number, record in _parse_lines(lines, issues):
        if record.get("type") == "relation" or "relationType" in record:
            relations.append((number, record))
        elif not _add_entity(entities, number, record):
            issues.broken.append(f"line {number}: neither an entity nor a relation")
    for number, record in relations:
        if not _add_relation(entities, number, record):
            issues.broken.append(f"line {number}: a relation without both its ends")
    return [memory for entity in entities.values() for memory in _make_memories(entity, at)]


def _parse_lines(
    lines: Iterable[bytes], issues: ReadIssues
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, raw in enumerate(lines, start=1):
        text = raw.decode("utf-8", "replace").strip().removeprefix("\ufeff")
        if not text:
            continue
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            issues.broken.append(f"line {number}: no JSON")
            continue
        record = record if isinstance(record, dict) else {}
        if not isinstance(record.get("entities"), list):
            yield number, record
            continue
        # A whole graph in one object, as the server's read_graph tool returns it.
        relations = record.get("relations")
        parts = (*record["entities"], *(relations if isinstance(relations, list) else ()))
        yield from ((number, part) for part in parts if isinstance(part, dict))


def _add_entity(entities: dict[str, _Entity], number: int, record: Mapping[str, Any]) -> bool:
    name, observations = _clean_text(record.get("name")), record.get("observations") or []
    if not name or not isinstance(observations, list):
        return False
    entity = entities.setdefault(name, _Entity(name))
    entity.type = entity.type or _clean_text(record.get("entityType"))
    entity.line = entity.line or number
    entity.observations |= dict.fromkeys(filter(None, map(_clean_text, observations)))
    return True


def _add_relation(entities: dict[str, _Entity], number: int, record: Mapping[str, Any]) -> bool:
    start, end = _clean_text(record.get("from")), _clean_text(record.get("to"))
    verb = _clean_text(record.get("relationType")) or "relates to"
    if not start or not end:
        return False
    for name in dict.fromkeys((start, end)):
        entity = entities.setdefault(name, _Entity(name, line=number))
        entity.relations[f"{start} {verb} {end}"] = None
    return True


def _make_memories(entity: _Entity, at: int | None) -> Iterator[ForeignMemory]:
    title = f"{entity.name} ({entity.type})" if entity.type else entity.name
    lines = (title, *(f"- {line}" for line in (*entity.observations, *entity.relations)))
    return split_memory(
        ForeignMemory(
            title=title,
            text="\n".join(lines),
            part=entity.name,
            line=entity.line,
            kind=Kind.FACT,
            at=at,
            tags=clean_tags([entity.type]),
        )
    )


def _clean_text(value: object) -> str:
    """Return a text on one line; some forks of the server have it in an object."""
    if isinstance(value, dict):
        value = value.get("content") or value.get("text")
    return " ".join(value.split()) if isinstance(value, str) else ""


# ── Codex CLI ─────────────────────────────────────────────────────────────────────────────────────

SUMMARY = "memory_summary.md"
INDEX = "MEMORY.md"
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*")
_GROUP = re.compile(r"Task Group:\s*(.+)", re.IGNORECASE)
_DIRECTORY = re.compile(r"\bcwd=(/[^\s;,]*)")
_ITEM = re.compile(r"[-*]\s+(.*)")
_TASKS = re.compile(r"\s*(?:\[Task \d+\])+\s*$")
"""Which tasks of the group an item was learned in."""
_TITLE_CHARACTERS = 100
_CODEX_KINDS = {
    "user preferences": Kind.PREFERENCE,
    "user profile": Kind.FACT,
    "reusable knowledge": Kind.FACT,
    "general tips": Kind.FACT,
    "failures and how to do differently": Kind.DISCOVERY,
}
"""Heading of a list → the kind of its items; other lists lead to files."""
_PROFILE = "user profile"


def read_codex_memory(name: str, text: str, at: int | None) -> list[ForeignMemory]:
    """Return the memories of `MEMORY.md` or `memory_summary.md`; `at` is when it was changed, UTC ms."""
    is_summary = name == SUMMARY
    group = directory = ""
    kind: Kind | None = None
    heading = ""
    found: list[ForeignMemory] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if begun := _HEADING.fullmatch(line.strip()):
            heading = begun[2].lower()
            kind = _CODEX_KINDS.get(heading)
            if named := _GROUP.fullmatch(begun[2]):
                group, directory = named[1], ""
            continue
        if line.startswith("applies_to:") and (place := _DIRECTORY.search(line)):
            directory = place[1]
        item = _ITEM.fullmatch(line)
        said = item[1] if item else line.strip()
        if (
            kind is None
            or not said
            or (item is None and line[:1] not in (" ", "\t") and heading != _PROFILE)
        ):
            continue
        if item is None and found and line[:1] in (" ", "\t"):
            found[-1] = replace(found[-1], text=f"{found[-1].text}\n{line.strip()}")
            continue
        memory = ForeignMemory(
            "", said, line=number, kind=kind, at=at, tags=clean_tags([group, heading]),
            directory=directory or None, project=GLOBAL_PROJECT if is_summary else group or None,
        )  # fmt: skip
        found.append(memory)
    return list(_name_all(found))


def _name_all(memories: list[ForeignMemory]) -> Iterator[ForeignMemory]:
    """Give each memory a title of its first words, and a part that stays the same when others come and go."""
    seen: set[str] = set()
    for memory in memories:
        text = _TASKS.sub("", memory.text)
        part = part_name(memory.project or "", digest(text)[:16])
        if part in seen or not any(c.isalnum() for c in text):
            continue
        seen.add(part)
        yield replace(memory, title=_first_words(text), text=text, part=part)


def _first_words(text: str) -> str:
    line = text.split("\n", 1)[0].strip()
    if len(line) <= _TITLE_CHARACTERS:
        return line
    head = line[: _TITLE_CHARACTERS - 1]
    return f"{head[: head.rfind(' ')] if ' ' in head else head}…"

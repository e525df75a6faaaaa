"""Read `memory.jsonl` of the reference MCP memory server: a memory for each entity.

A line is an entity (a name, a type, observations) or a relation between two. The memory of an entity has
its observations and its relations in both directions. A broken line costs nothing else.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memd.models import Kind
from memd.transfer.record import ForeignMemory, ReadIssues, clean_tags, split_memory


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

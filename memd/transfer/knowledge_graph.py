"""The memory of the reference MCP memory server, `memory.jsonl`, as memories: one for each entity. Pure.

A line is an entity (a name, a type, observations) or a relation between two. An entity becomes a fact
of its observations and its relations, both ways, named by the entity, so that it keeps its place when
they change. What is broken is told by its line, and costs nothing else.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memd.models import Kind
from memd.transfer import record as transfer_record
from memd.transfer.record import ForeignMemory, ReadIssues


@dataclass(slots=True)
class _Entity:
    name: str
    type: str = ""
    line: int | None = None
    observations: dict[str, None] = field(default_factory=dict)
    relations: dict[str, None] = field(default_factory=dict)


def read_graph(
    lines: Iterable[bytes], at: int | None, trouble: ReadIssues
) -> list[ForeignMemory]:
    """The memories of a graph; `at` is when its file was last written, for it keeps no other times."""
    entities: dict[str, _Entity] = {}
    relations: list[tuple[int, Mapping[str, Any]]] = []
    for number, record in _records(lines, trouble):
        if record.get("type") == "relation" or "relationType" in record:
            relations.append((number, record))
        elif not _add(entities, number, record):
            trouble.broken.append(f"line {number}: neither an entity nor a relation")
    for number, record in relations:
        if not _relate(entities, number, record):
            trouble.broken.append(f"line {number}: a relation without both its ends")
    return [made for one in entities.values() for made in _entries(one, at)]


def _records(
    lines: Iterable[bytes], trouble: ReadIssues
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, raw in enumerate(lines, start=1):
        text = raw.decode("utf-8", "replace").strip().removeprefix("\ufeff")
        if not text:
            continue
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            trouble.broken.append(f"line {number}: no JSON")
            continue
        whole = record if isinstance(record, dict) else {}
        if isinstance(
            whole.get("entities"), list
        ):  # a whole graph, as a tool of the server shows it
            relations = whole.get("relations")
            parts = (*whole["entities"], *(relations if isinstance(relations, list) else ()))
            yield from ((number, part) for part in parts if isinstance(part, dict))
        else:
            yield number, whole


def _add(entities: dict[str, _Entity], number: int, record: Mapping[str, Any]) -> bool:
    name, seen = _word(record.get("name")), record.get("observations")
    if not name or not isinstance(seen or [], list):
        return False
    entity = entities.setdefault(name, _Entity(name))
    entity.type = entity.type or _word(record.get("entityType"))
    entity.line = entity.line or number
    entity.observations |= dict.fromkeys(filter(None, map(_observation, seen or [])))
    return True


def _relate(entities: dict[str, _Entity], number: int, record: Mapping[str, Any]) -> bool:
    start, end = _word(record.get("from")), _word(record.get("to"))
    how = _word(record.get("relationType")) or "relates to"
    if not start or not end:
        return False
    for name in dict.fromkeys((start, end)):
        entity = entities.setdefault(name, _Entity(name, line=number))
        entity.relations[f"{start} {how} {end}"] = None
    return True


def _entries(entity: _Entity, at: int | None) -> Iterator[ForeignMemory]:
    head = f"{entity.name} ({entity.type})" if entity.type else entity.name
    said = (*entity.observations, *entity.relations)
    cut = transfer_record.split_text("\n".join((head, *(f"- {line}" for line in said))))
    for number, piece in enumerate(cut, start=1):
        yield ForeignMemory(
            title=transfer_record.make_title(
                head, "" if len(cut) == 1 else f"({number} of {len(cut)})"
            ),
            text=piece,
            part=transfer_record.part_name(entity.name, "" if number == 1 else f"[{number}]"),
            line=entity.line,
            kind=Kind.FACT,
            at=at,
            tags=transfer_record.clean_tags([entity.type]),
        )


def _observation(given: object) -> str:
    """An observation is a text; in some descendants of the server an object that has one."""
    if isinstance(given, dict):
        given = given.get("content") or given.get("text")
    return _word(given)


def _word(given: object) -> str:
    return " ".join(given.split()) if isinstance(given, str) else ""

"""Everything about an answer, for programs: the command line, scripts, benches. Pure.

Values become JSON by their own names, nothing rounded and nothing left out. Not here: the small
form that agents read (format.py).
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from memd.models import Summary
from memd.recall.types import Answer


def plain(value: object) -> Any:
    """The value as JSON: a dataclass as an object, a tuple as a list, an enum as its text."""
    if isinstance(value, enum.Enum):
        return value.value
    if value is None or isinstance(value, str | int | float):
        return value
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(inner) for inner in value]
    return str(value)


def answer(found: Answer, *, waited: str | None, note: str | None) -> dict[str, Any]:
    """An answer whole, with each memory's fields beside its score, and which others say otherwise."""
    shown: dict[str, Any] = plain(found)
    against = shown.pop("contradicted")
    shown["hits"] = [{**hit.pop("summary"), **hit} for hit in shown["hits"]]
    for hit in shown["hits"]:
        hit["contradicted_by"] = against.get(str(hit["id"]), [])
    if waited:
        shown["waited"] = waited
    if note:
        shown["notes"] = [*shown["notes"], note]
    return shown


def memory(
    summary: Summary,
    project: str | None,
    session_title: str | None,
    contradicted_by: Sequence[int] = (),
) -> dict[str, Any]:
    """A memory whole."""
    return {
        **plain(summary),
        "project": project,
        "session_title": session_title or None,
        "contradicted_by": list(contradicted_by),
    }

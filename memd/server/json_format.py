"""JSON of answers and memories, and JSON schemas of pydantic types as plain as any MCP client can read. Pure."""

import ast
import functools
import inspect
import json
import sys
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from pydantic import Field
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from memd.models import Authority, Summary
from memd.recall.types import Answer

JsonObject = dict[str, Any]
"""A JSON object: the result of a call, or a part of one."""
_SUMMARY_FIELDS = frozenset(field.name for field in fields(Summary))
"""What only a memory has, whatever the payload of an event beside it is."""


def encode_json(value: object) -> bytes:
    """Compact JSON of any value: a dataclass is an object, an enum is its text, a NaN is null."""
    try:
        return to_json(value, inf_nan_mode="null", fallback=_convert_other)
    except PydanticSerializationError:  # a text with half of a surrogate pair
        text = json.dumps(to_plain(value), ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def to_plain(value: object) -> Any:
    """The value in the types of JSON, as `encode_json` writes it."""
    return to_jsonable_python(value, fallback=_convert_other)


def _convert_other(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)


def name_speakers(value: object, clients: Container[str] = ()) -> Any:
    """The value in the types of JSON, in which each memory names its speaker, and its client if that is one of these.

    `speaker` and `pinned_by` are `user`, `agent` or `tool`, of a teammate's memory `team`; `authority` says it
    more exactly, in words.
    """
    return _name_speakers(to_plain(value), clients)


def _name_speakers(plain: Any, clients: Container[str]) -> Any:
    if isinstance(plain, list):
        return [_name_speakers(one, clients) for one in plain]
    if not isinstance(plain, dict):
        return plain
    named = {key: _name_speakers(inner, clients) for key, inner in plain.items()}
    if named.keys() >= _SUMMARY_FIELDS:
        pinned_by, authority = named["pinned_by"], Authority(named["authority"])
        named["pinned_by"] = None if pinned_by is None else Authority(pinned_by).speaker
        named |= {"speaker": authority.speaker, "authority": authority.description}
        if named["author"]:
            named |= {"speaker": "team", "authority": f"{named['author']} of the team"}
        if named["source"] in clients:
            named["client"] = named["source"]
    return named


def format_answer(answer: Answer, *, waited: str | None, notes: Iterable[str]) -> JsonObject:
    """An answer with the fields of each memory beside its score, and with what contradicts it."""
    formatted: JsonObject = to_plain(answer)
    contradicted = formatted.pop("contradicted")
    del formatted["evidence"], formatted["listed"], formatted["precedence"]
    formatted["hits"] = [{**hit.pop("summary"), **hit} for hit in formatted["hits"]]
    for hit in formatted["hits"]:
        hit["contradicted_by"] = contradicted.get(str(hit["id"]), [])
    if waited:
        formatted["waited"] = waited
    formatted["notes"] = [*formatted["notes"], *notes]
    return formatted


JsonSchema = dict[str, Any]
Docstrings = Mapping[str, Mapping[str, str]]
"""Class → field → what its docstring says."""


def says(description: str) -> Any:
    """Metadata of a type: its description in a schema, where no field's docstring says another."""
    return Field(description=description)


@functools.cache
def field_docstrings(module: str) -> Docstrings:
    """The docstrings of all fields in a module.

    Pydantic's `use_attribute_docstrings` finds the same, but takes 4 ms a class when it is imported.
    """
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {
        one.name: dict(_documented_fields(one))
        for one in tree.body
        if isinstance(one, ast.ClassDef)
    }


def _documented_fields(of: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in zip(of.body, of.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            yield field.target.id, " ".join(str(below.value.value).split())


def plain_schema(schema: JsonSchema, docstrings: Docstrings) -> JsonSchema:
    """Pydantic's schema without references, choices, nulls and titles, and with descriptions."""
    plain = _simplify_node(schema, schema.get("$defs", {}), docstrings)
    plain.pop("description", None)  # the class's own docstring
    return plain


def _simplify_node(
    node: JsonSchema, definitions: Mapping[str, JsonSchema], docstrings: Docstrings
) -> JsonSchema:
    if "$ref" in node:
        definition = dict(definitions[node["$ref"].rpartition("/")[2]])
        definition.pop("description", None)
        node = {**definition, **node}
    options = [
        _simplify_node(one, definitions, docstrings)
        for one in node.get("anyOf", ())
        if one != {"type": "null"}
    ]
    plain: JsonSchema = {}
    for option in options:
        plain |= option
    if len(options) > 1:
        plain["type"] = [option["type"] for option in options]
    plain |= {
        key: value
        for key, value in node.items()
        if key not in {"$ref", "$defs", "anyOf", "title"}
        and not (key == "default" and value in (None, "", []))
        and not (key == "additionalProperties" and value is True)
    }
    if "properties" in plain:
        described = docstrings.get(node.get("title", ""), {})
        plain["properties"] = {
            name: _simplify_node(inner, definitions, docstrings)
            | ({"description": described[name]} if name in described else {})
            for name, inner in plain["properties"].items()
        }
        plain.setdefault("required", [])
    for key in ("items", "additionalProperties"):
        if isinstance(plain.get(key), dict):
            plain[key] = _simplify_node(plain[key], definitions, docstrings)
    return plain

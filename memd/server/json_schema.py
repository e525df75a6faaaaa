"""JSON schemas of pydantic types, as plain as any MCP client can read them. Pure."""

import ast
import functools
import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

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

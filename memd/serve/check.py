"""Checking values against JSON schemas, with messages for people. Pure.

Whether a value fits is asked first (shape.py), since nearly all do; only what does not is worth a
validator that says why. Messages name the field and never repeat a long value: `k: 0 is less than the
minimum of 1`. Not here: the schemas (schemas.py).
"""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from memd.errors import BadRequest, Broken
from memd.serve import shape

_NAMES = {
    "object": "an object", "array": "a list", "string": "a text", "integer": "a whole number",
    "number": "a number", "boolean": "true or false", "null": "null",
}  # fmt: skip
_BOUNDS = {
    "maxLength": "longer than {} characters",
    "minLength": "must not be empty",
    "maxItems": "more than {} items",
    "minItems": "fewer than {} items",
}
_MESSAGE_CHARACTERS = 200


class Checker:
    """One tool's two schemas, ready to be held against values."""

    def __init__(self, takes: Mapping[str, Any], gives: Mapping[str, Any]) -> None:
        self._takes, self._gives = takes, gives
        self._may_be_taken, self._may_be_given = shape.compiled(takes), shape.compiled(gives)

    def arguments(self, value: Mapping[str, Any]) -> None:
        """Raise a BadRequest that names the argument that is wrong."""
        if self._may_be_taken(value):
            return
        error = best_match(Draft202012Validator(self._takes).iter_errors(value))
        if error is not None:
            raise BadRequest(_said(error))

    def result(self, value: Mapping[str, Any]) -> None:
        """Raise Broken if memd itself does not keep its promise."""
        if self._may_be_given(value):
            return
        error = next(Draft202012Validator(self._gives).iter_errors(value), None)
        if error is not None:
            raise Broken(f"memd made a result that breaks its own schema at {error.json_path}")


def _said(error: ValidationError) -> str:
    where = ".".join(str(part) for part in error.absolute_path)
    what = _what(error)
    return f"{where}: {what}" if where else what


def _what(error: ValidationError) -> str:
    rule, wanted, got = error.validator, error.validator_value, error.instance
    if rule == "additionalProperties":
        known = list(error.schema["properties"])
        extra = next(name for name in got if name not in known)
        return f"{extra[:60]}: there is no such argument; there are {', '.join(known)}"
    if rule == "type":
        names = [wanted] if isinstance(wanted, str) else wanted
        return f"{_kind(got)} is not {' or '.join(_NAMES[name] for name in names)}"
    if rule == "required":
        missing = next(name for name in wanted if name not in got)
        return f"{missing}: is needed"
    return _bounds(error) or error.message[:_MESSAGE_CHARACTERS]


def _bounds(error: ValidationError) -> str | None:
    wanted = error.validator_value
    if error.validator == "enum":
        return f"must be one of {', '.join(str(one) for one in wanted)}"
    return _BOUNDS.get(str(error.validator), "").format(wanted) or None


def _kind(value: object) -> str:
    if isinstance(value, str | int | float) and len(repr(value)) <= 40:  # noqa: PLR2004  # shown whole
        return repr(value) if isinstance(value, str) else str(value).lower()
    names = {dict: "object", list: "array", str: "string", type(None): "null"}
    return _NAMES.get(names.get(type(value), "number"), "this")

"""Whether a value fits a JSON schema of ours, yes or no: compiled once into nested functions. Pure.

Every answer is held to its own schema, so this is on the way of each: fifty times quicker than a
validator that can also say what is wrong (check.py asks one of those where the answer is no). Knows
what our schemas use of draft 2020-12, and refuses to compile anything else.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Fits = Callable[[Any], bool]


def _is_integer(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


_TYPES: Mapping[str, Fits] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": _is_integer,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
_SAYS_NOTHING = frozenset({"description", "default", "title"})
_BESIDE = frozenset({"properties", "required", "additionalProperties"})


def compiled(schema: Mapping[str, Any]) -> Fits:
    """A function that tells whether a value fits; a ValueError for a keyword that is not known here."""
    tests: list[Fits] = []
    for keyword, wanted in schema.items():
        if keyword in _SAYS_NOTHING or keyword in _BESIDE:
            continue
        if keyword not in _KEYWORDS:
            raise ValueError(f"a schema of ours uses {keyword!r}, which is not known here")
        tests.append(_KEYWORDS[keyword](wanted))
    if _BESIDE & schema.keys():
        tests.append(_object(schema))
    return _all(tests)


def _all(tests: Sequence[Fits]) -> Fits:
    """All of these in turn. Written out, for a generator would take longer than what it asks."""
    if len(tests) == 1:
        return tests[0]

    def fits(value: Any) -> bool:
        for test in tests:  # noqa: SIM110  # see above
            if not test(value):
                return False
        return True

    return fits


def _type(wanted: str | list[str]) -> Fits:
    if isinstance(wanted, str):
        return _TYPES[wanted]
    tests = [_TYPES[name] for name in wanted]
    return lambda value: any(test(value) for test in tests)


def _enum(wanted: list[str]) -> Fits:
    if not all(isinstance(one, str) for one in wanted):
        raise ValueError("an enum of ours holds something else than texts")
    known = frozenset(wanted)
    return lambda value: isinstance(value, str) and value in known


def _items(wanted: Mapping[str, Any]) -> Fits:
    each = compiled(wanted)
    return lambda value: not isinstance(value, list) or all(map(each, value))


def _bound(kind: str, test: Callable[[Any], bool]) -> Fits:
    """A bound says nothing of values of another kind."""
    concerns = _TYPES[kind]
    return lambda value: not concerns(value) or test(value)


_KEYWORDS: Mapping[str, Callable[[Any], Fits]] = {
    "type": _type,
    "enum": _enum,
    "items": _items,
    "minimum": lambda least: _bound("number", lambda value: value >= least),
    "maximum": lambda most: _bound("number", lambda value: value <= most),
    "minLength": lambda least: _bound("string", lambda value: len(value) >= least),
    "maxLength": lambda most: _bound("string", lambda value: len(value) <= most),
    "minItems": lambda least: _bound("array", lambda value: len(value) >= least),
    "maxItems": lambda most: _bound("array", lambda value: len(value) <= most),
}


def _object(schema: Mapping[str, Any]) -> Fits:
    """The fields of an object: those that must be there, those that are known, and any others."""
    fields = {name: compiled(one) for name, one in schema.get("properties", {}).items()}
    required = frozenset(schema.get("required", ()))
    others = schema.get("additionalProperties", True)
    other = (lambda _: others) if isinstance(others, bool) else compiled(others)

    def fits(value: Any) -> bool:
        if not isinstance(value, dict):
            return True
        if not required <= value.keys():
            return False
        for name, one in value.items():  # noqa: SIM110  # as in `_all`
            if not fields.get(name, other)(one):
                return False
        return True

    return fits

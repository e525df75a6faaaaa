"""Helpers of the translations: reading fields of unknown shape, and the names of tools. Pure."""

import json
from collections.abc import Mapping
from typing import Any

Payload = Mapping[str, Any]

PERSONAL = frozenset({"user_email", "userEmail"})
"""Fields that say who the user is. They are not stored."""
_JSON_CHARACTERS_MAX = 1_000_000
"""Characters of a text that is read as JSON."""


def get_text(payload: Payload, *names: str) -> str | None:
    """Return the first of these fields that is a text with something in it."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def has_texts(payload: Payload, *names: str) -> bool:
    """Return whether each of these fields is a text with something in it."""
    return all(get_text(payload, name) for name in names)


def get_id(payload: Payload, *names: str) -> str | None:
    """Return the first of these fields that is an id, on one line: some clients join two ids by a line break."""
    found = get_text(payload, *names)
    return None if found is None else "_".join(found.split()) or None


def read_json(value: Any) -> Any:
    """Return what a text with a JSON object or list in it says; any other value as it is."""
    if not isinstance(value, str) or len(value) > _JSON_CHARACTERS_MAX:
        return value
    if value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def rename(payload: Payload, names: Mapping[str, str]) -> dict[str, Any]:
    """Return a payload with these fields renamed, and without the personal ones. A field already there stays."""
    return {
        names.get(key, key): value
        for key, value in payload.items()
        if key not in PERSONAL and not (key in names and names[key] in payload)
    }

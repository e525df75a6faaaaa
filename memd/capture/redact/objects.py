"""Secrets in JSON values: under a secret name, in an object that describes one, in a list of numbers. Pure.

A string (or the strings of a list) under a secret name is redacted whole, unless it only refers to a secret.
Numbers, booleans and None stay. Values nested deeper than 150 levels are redacted.
"""

import functools
import re
from collections.abc import Callable
from typing import Any

from memd.capture.redact.documents import is_key_bytes
from memd.capture.redact.formats import is_login
from memd.capture.redact.names import (
    doubtful_rule,
    is_label,
    is_likely_secret,
    is_reference,
    is_secret_under,
    is_working_directory,
    secret_rule,
)
from memd.capture.redact.tokens import PLACEHOLDER, compile_regex

_DEPTH_MAX = 150
_FIELD_NAME = r"(?i)pass(?:word|wd|code|phrase|wort)|pwd|secret|api[ _-]?key|#pass\b"
_FIELDS = ("selector", "element", "label", "field", "placeholder", "target", "name", "id")
_COOKIE_MARKS = frozenset({"httpOnly", "sameSite", "domain", "expirationDate", "hostOnly"})
_PLAIN_KEY = re.compile(r"[A-Za-z_]{1,19}")
"""Too short to hold a secret."""
_TELLING_KEYS = frozenset({"auth", "value", "data", "stringData"})
_KEYS_CACHED = 1_024
_COOKIE_MIN = 8
_FIELD_MAX = 100
_RedactText = Callable[[str], str]


def redact_members(value: Any, redact: _RedactText) -> Any:
    """Redact the strings and keys of a JSON value."""
    return _redact_value(value, _DEPTH_MAX, redact)


def _redact_value(value: Any, depth: int, redact: _RedactText) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return _redact_object(value, depth - 1, redact) if depth else "[REDACTED:depth]"
    if isinstance(value, list | tuple):
        if not depth:
            return "[REDACTED:depth]"
        if is_key_bytes(value):
            return "[REDACTED:key-bytes]"
        items = [_redact_value(item, depth - 1, redact) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value


def _redact_object(members: dict[Any, Any], depth: int, redact: _RedactText) -> dict[Any, Any]:
    # `{"name": "DB_PASSWORD", "value": "…"}` names its secret in a field of its own.
    named = next((members[k] for k in ("name", "key") if isinstance(members.get(k), str)), "")
    given = _find_given(members)
    is_manifest = members.get("kind") == "Secret"
    clean: dict[Any, Any] = {}
    for key, value in members.items():
        if isinstance(key, str) and key not in given and _says_nothing(key):
            clean[_free_key(key, clean)] = _redact_value(value, depth, redact)
            continue
        shown = redact(key) if isinstance(key, str) else key
        if is_manifest and key in {"data", "stringData"} and isinstance(value, dict):
            value = {k: _redact_given(v, "kubernetes-secret") for k, v in value.items()}  # noqa: PLW2901
        elif key in given and secret_rule(_strip_placeholders(named)) is None:
            value = _redact_given(value, given[key])  # noqa: PLW2901
        name = redact(named) if key == "value" else shown
        clean[_free_key(shown, clean)] = _redact_member(
            _strip_placeholders(name), value, depth, redact
        )
    return clean


@functools.lru_cache(maxsize=_KEYS_CACHED)
def _says_nothing(key: str) -> bool:
    """Whether a key is no secret itself, and says of no value that it is one; most are such."""
    return (
        _PLAIN_KEY.fullmatch(key) is not None
        and key not in _TELLING_KEYS
        and secret_rule(key) is None
        and doubtful_rule(key) is None
    )


def _find_given(members: dict[Any, Any]) -> dict[Any, str]:
    """Return the rule by member for an object that describes a cookie or what was typed into a password field."""
    value = members.get("value")
    if (
        isinstance(value, str)
        and len(value) >= _COOKIE_MIN
        and is_likely_secret(value)
        and "name" in members
        and not _COOKIE_MARKS.isdisjoint(members)
    ):
        return {"value": "cookie"}
    typed = [key for key in ("value", "text") if isinstance(members.get(key), str)]
    if not typed:
        return {}
    fields = [members[key] for key in _FIELDS if isinstance(members.get(key), str)]
    if not any(
        compile_regex(_FIELD_NAME).search(field) for field in fields if len(field) <= _FIELD_MAX
    ):
        return {}
    return {key: "field-value" for key in typed if is_likely_secret(members[key])}


def _redact_given(value: Any, rule: str) -> Any:
    return f"[REDACTED:{rule}]" if isinstance(value, str) and not is_reference(value) else value


def _strip_placeholders(name: Any) -> str:
    """Remove placeholders from a name: a redacted part says nothing about the value."""
    if not isinstance(name, str):
        return ""
    return compile_regex(PLACEHOLDER).sub("", name) if "[REDACTED:" in name else name


def _redact_member(name: str, value: Any, depth: int, redact: _RedactText) -> Any:
    rule = secret_rule(name)
    if rule is None and isinstance(value, str | list | tuple):
        rule = _doubtful_rule(name, value)
    if rule is not None and isinstance(value, list | tuple):
        items = [_redact_member(name, item, depth, redact) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if rule is None or not isinstance(value, str):
        return _redact_value(value, depth, redact)
    if is_reference(value) or is_working_directory(name, value) or is_label(name, value):
        return redact(value)
    if _is_question(name) and rule != "password" and len(value.split()) > 1:
        return redact(value)  # what the user chose; a token has no spaces
    return f"[REDACTED:{rule}]"


def _is_question(name: str) -> bool:
    return name.rstrip().endswith("?") and len(name.split()) > 1


def _doubtful_rule(name: str, value: Any) -> str | None:
    """Return the rule for a name that holds a secret only if the value looks like one."""
    if name == "auth" and isinstance(value, str) and is_login(value):
        return "docker-auth"
    rule = doubtful_rule(name)
    if rule is None or isinstance(value, str):
        return rule if rule is not None and is_secret_under(name, value) else None
    likely = [isinstance(item, str) and is_secret_under(name, item) for item in value]
    return rule if likely and all(likely) else None


def _free_key(key: Any, taken: dict[Any, Any]) -> Any:
    """Return the key, numbered if another was redacted to the same, so that no member is lost."""
    if key not in taken or not isinstance(key, str):
        return key
    number = 2
    while f"{key}#{number}" in taken:
        number += 1
    return f"{key}#{number}"

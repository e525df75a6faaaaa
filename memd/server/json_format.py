"""Complete JSON of answers and memories, for the command line and other programs. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from memd.recall.types import Answer

JsonObject = dict[str, Any]
"""A JSON object: the result of a call, or a part of one."""


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


def format_answer(answer: Answer, *, waited: str | None, note: str | None) -> JsonObject:
    """An answer with the fields of each memory beside its score, and with what contradicts it."""
    formatted: JsonObject = to_plain(answer)
    contradicted = formatted.pop("contradicted")
    formatted["hits"] = [{**hit.pop("summary"), **hit} for hit in formatted["hits"]]
    for hit in formatted["hits"]:
        hit["contradicted_by"] = contradicted.get(str(hit["id"]), [])
    if waited:
        formatted["waited"] = waited
    if note:
        formatted["notes"] = [*formatted["notes"], note]
    return formatted

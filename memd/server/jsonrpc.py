"""JSON-RPC 2.0, one message a line: bytes to lines, lines to messages, results and errors to lines; their JSON. Pure.

`parse_line` never raises: a line that is no message is an `InvalidLine` with the error to answer.
Below: the JSON of answers and memories, and JSON schemas of pydantic types as plain as any MCP client can read.
"""

import ast
import functools
import inspect
import json
import math
import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pydantic import Field
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from memd.belief.notes import describe_unproved
from memd.errors import BadRequest, Broken, MemdError
from memd.models import Authority, Summary
from memd.recall import Answer
from memd.text import MAYBE_UNSEEN, UNSEEN

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
SERVER_ERROR = -32000

DEPTH_MAX = 128
"""Levels of nesting in a message. It keeps every recursive walk below Python's recursion limit."""
COSTLY_MAX = 100_000
"""Commas, brackets and surrogate escapes in a line. Parsing more would block the event loop too long."""
PREFACE_VERSION = 1
INTERNAL_ERROR_MESSAGE = "memd could not do this; see the log"
_COSTLY = (b",", b"[", b"{", b"\\ud", b"\\uD")
_PREFACE_FIELDS = ("cwd", "project", "session", "client", "speaker")
_PREFACE_CHARACTERS_MAX = 4_096
_BOM = b"\xef\xbb\xbf"
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")

Id = str | int


@dataclass(frozen=True, slots=True)
class Call:
    """A request, or a notification if `id` is None."""

    id: Id | None
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preface:
    """A client's description of itself, sent before the first message."""

    cwd: str | None = None
    project: str | None = None
    session: str | None = None
    client: str | None = None
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class InvalidLine:
    """A line that is no message, and the error to answer it with."""

    code: int
    message: str
    id: Id | None = None


Message = Call | Preface | InvalidLine


class LineSplitter:
    """Cuts a stream into lines. Holds at most `limit` bytes and one chunk."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self.is_overfull = False
        """A line is longer than the limit. That line and everything after it is dropped."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their line ends."""
        if self.is_overfull:
            return []
        first, *others = chunk.split(b"\n")
        self._rest += first
        lines: list[bytes] = []
        if others:
            lines = [self.take_rest(), *others[:-1]]
            self._rest += others[-1]
        too_long = next((i for i, line in enumerate(lines) if len(line) > self._limit), None)
        if too_long is not None or self.held > self._limit:
            self.is_overfull = True
            self.take_rest()
        return lines[:too_long]

    @property
    def held(self) -> int:
        """Bytes of the unfinished line."""
        return len(self._rest)

    def take_rest(self) -> bytes:
        """Remove and return the unfinished line."""
        rest, self._rest = bytes(self._rest), bytearray()
        return rest


def parse_line(line: bytes) -> Message | None:
    """The message on a line; None for an empty line, and for a response, as memd sends no requests."""
    text = line.removeprefix(_BOM).strip()
    if not text:
        return None
    if len(text) > COSTLY_MAX and sum(map(text.count, _COSTLY)) > COSTLY_MAX:
        return InvalidLine(
            INVALID_REQUEST,
            f"this line has more than {COSTLY_MAX} commas, brackets and \\ud escapes; send it in parts",
        )
    try:
        value = _DECODER.decode(text.decode("utf-8"))
    except RecursionError:
        return InvalidLine(INVALID_REQUEST, f"nested deeper than {DEPTH_MAX} levels")
    except ValueError as error:
        return InvalidLine(PARSE_ERROR, f"not JSON: {_explain_parse_error(error)}")
    if _is_too_deep(text, value):
        return InvalidLine(INVALID_REQUEST, f"nested deeper than {DEPTH_MAX} levels")
    return _classify_value(_replace_lone_surrogates(text, value))


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _parse_finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("the number is too large")
    return number


# Made once: making one takes as long as reading a short line.
_DECODER = json.JSONDecoder(parse_constant=_reject_constant, parse_float=_parse_finite)


def _explain_parse_error(error: ValueError) -> str:
    """Locate the error in the JSON, without repeating what was sent."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    return "a number that JSON does not have"


def _is_too_deep(text: bytes, value: object) -> bool:
    if text.count(b"[") + text.count(b"{") <= DEPTH_MAX:
        return False
    level: list[object] = [value]
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return any(isinstance(item, dict | list) for item in level)


def _replace_lone_surrogates(text: bytes, value: Any) -> Any:
    r"""`"\ud83d"` alone is legal JSON but not valid text: nothing could store, log or answer it."""
    if not _SURROGATE_ESCAPE.search(text):
        return value
    clean = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
    return json.loads(clean.decode("utf-16", "replace"))


def _classify_value(value: Any) -> Message | None:
    if isinstance(value, list):
        return InvalidLine(INVALID_REQUEST, "this is a batch: send one message a line")
    if not isinstance(value, dict):
        return InvalidLine(INVALID_REQUEST, "this is no JSON-RPC object")
    if "memd" in value and "jsonrpc" not in value:
        return _read_preface(value)
    given = value.get("id")
    known = given if isinstance(given, str | int) and not isinstance(given, bool) else None
    if value.get("jsonrpc") != "2.0":
        return InvalidLine(INVALID_REQUEST, 'the message lacks "jsonrpc": "2.0"', known)
    if "method" not in value and ("result" in value or "error" in value):
        return None
    return _read_call(value, known)


def _read_call(value: dict[str, Any], known: Id | None) -> Message:
    method, params = value.get("method"), value.get("params")
    if not isinstance(method, str) or not method:
        return InvalidLine(INVALID_REQUEST, "the message has no method", known)
    if "id" in value and known is None:
        return InvalidLine(INVALID_REQUEST, "id: a text or a whole number is needed")
    if params is not None and not isinstance(params, dict):
        return InvalidLine(INVALID_PARAMS, "params: an object is needed", known)
    return Call(known, method, params or {})


def _read_preface(value: dict[str, Any]) -> Preface | InvalidLine:
    if value["memd"] != PREFACE_VERSION:
        return InvalidLine(
            INVALID_REQUEST, f"memd: this daemon speaks version {PREFACE_VERSION} only"
        )
    return Preface(
        **{
            name: text
            for name in _PREFACE_FIELDS
            if isinstance(text := value.get(name), str)
            and 0 < len(text) <= _PREFACE_CHARACTERS_MAX
            and "\0" not in text
        }
    )


def result_line(call_id: Id, result: object) -> bytes:
    """The response to a request."""
    return encode_json({"jsonrpc": "2.0", "id": call_id, "result": result}) + b"\n"


def error_line(call_id: Id | None, code: int, message: str, data: object = None) -> bytes:
    """The error that answers a request, or a line that is no message (`call_id` None)."""
    error: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return encode_json({"jsonrpc": "2.0", "id": call_id, "error": error}) + b"\n"


def failure_line(call_id: Id | None, error: BaseException) -> bytes:
    """The error that answers a failed request. Its `data` names memd's error class for the client."""
    code = INVALID_PARAMS if isinstance(error, BadRequest) else SERVER_ERROR
    kind = type(error) if isinstance(error, MemdError) else Broken
    return error_line(call_id, code, public_message(error), {"error": kind.__name__})


def public_message(error: BaseException) -> str:
    """The message of a MemdError; of any other error only that the log has it."""
    return error.name_commands() if isinstance(error, MemdError) else INTERNAL_ERROR_MESSAGE


# ── JSON of answers and memories, and schemas ─────────────────────────────────────────────────────

JsonObject = dict[str, Any]
"""A JSON object: the result of a call, or a part of one."""
_SUMMARY_FIELDS = frozenset(field.name for field in fields(Summary))
"""What only a memory has, whatever the payload of an event beside it is."""
_ESCAPES = (b"\\u", b"\\b", b"\\f")
"""Of controls, in JSON."""


def encode_json(value: object) -> bytes:
    """Compact JSON of any value: a dataclass is an object, an enum is its text, a NaN is null."""
    try:
        return to_json(value, inf_nan_mode="null", fallback=_convert_other)
    except PydanticSerializationError:  # a text with half of a surrogate pair
        text = json.dumps(to_plain(value), ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def encode_seen(result: JsonObject) -> tuple[JsonObject, bytes]:
    """A result and its JSON, both without the characters that are not seen, or that turn what is."""
    text = encode_json(result)
    if not any(map(text.count, _ESCAPES)) and not MAYBE_UNSEEN.search(text.decode()):
        return result, text  # most often: to look through all at once is quick
    result = _drop_unseen(result)
    return result, encode_json(result)


def _drop_unseen(value: Any) -> Any:
    if isinstance(value, str):
        return UNSEEN.sub("", value)
    if isinstance(value, dict):
        return {key: _drop_unseen(one) for key, one in value.items()}
    return [_drop_unseen(one) for one in value] if isinstance(value, list | tuple) else value


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
        if doubt := describe_unproved(named["body"], authority, is_pinned=pinned_by is not None):
            named["unproved"] = doubt
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
    for node, below in zip(of.body, of.body[1:], strict=False):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            yield node.target.id, " ".join(str(below.value.value).split())


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

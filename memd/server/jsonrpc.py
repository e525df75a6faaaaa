"""JSON-RPC 2.0, one message a line: bytes to lines, lines to messages, results and errors to lines. Pure.

`parse_line` never raises: a line that is no message is an `InvalidLine` with the error to answer.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memd.errors import BadRequest, Broken, MemdError
from memd.server.json_format import encode_json

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

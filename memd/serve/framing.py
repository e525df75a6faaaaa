"""One JSON-RPC 2.0 message a line: bytes to lines, lines to calls, answers to lines. Pure.

Whatever stands on a line, `read` returns a value and never raises: a refused line is a value too,
with the error to answer. Not here: sockets, and what the methods mean.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memd.serve import gentle

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
BROKEN = -32000

DEPTH_MAX = 128
"""Nested deeper than this is no message of ours; it also keeps every walk below the recursion limit."""
_PIECE = 65_536
LARGE = 20
"""Items in a list of an answer from which it is written elsewhere than on the event loop."""
PREFACE_VERSION = 1
_PREFACE_FIELDS = ("cwd", "project", "session", "client")
_PREFACE_CHARACTERS = 4_096
_BOM = b"\xef\xbb\xbf"
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

Id = str | int


@dataclass(frozen=True, slots=True)
class Call:
    """A request, or a notification if `id` is None."""

    id: Id | None
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """An answer of the client's, to something that it was never asked."""


@dataclass(frozen=True, slots=True)
class Preface:
    """What the bridge says about its client before the first message."""

    cwd: str | None = None
    project: str | None = None
    session: str | None = None
    client: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that is no request, and the error to answer it with."""

    code: int
    message: str
    id: Id | None = None


Read = Call | Response | Preface | Refused


class Lines:
    """Cuts a stream into lines. Holds at most `limit` bytes and one chunk."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        # A long line is put together once: growing it bit by bit would leave holes in the memory.
        self._pieces: list[bytes] = []
        self._pieces_bytes = 0
        self.is_overfull = False
        """A line is longer than the limit; it and everything after it is gone."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their ends."""
        if self.is_overfull:
            return []
        first, *others = chunk.split(b"\n")
        self._rest += first
        lines: list[bytes] = []
        if others:
            whole = [self.rest(), *others[:-1]]
            self._rest += others[-1]
            for line in whole:
                if len(line) > self._limit:
                    self.is_overfull = True
                    break
                lines.append(line)
        elif len(self._rest) >= _PIECE:
            self._pieces.append(bytes(self._rest))
            self._pieces_bytes += len(self._rest)
            self._rest = bytearray()
        if self.is_overfull or self.held > self._limit:
            self.is_overfull = True
            self.rest()
        return lines

    @property
    def held(self) -> int:
        """Bytes of a line that has no end yet."""
        return self._pieces_bytes + len(self._rest)

    def rest(self) -> bytes:
        """What came after the last line end, once there is no more to come."""
        rest = b"".join([*self._pieces, self._rest])
        self._rest = bytearray()
        self._pieces.clear()
        self._pieces_bytes = 0
        return rest


def read(line: bytes) -> Read | None:
    """What a line says; None for an empty one."""
    text = line.removeprefix(_BOM).strip()
    if not text:
        return None
    try:
        value = _DECODER.decode(text.decode("utf-8"))
    except RecursionError:
        return Refused(INVALID_REQUEST, f"nested deeper than {DEPTH_MAX} levels")
    except ValueError as error:
        return Refused(PARSE_ERROR, f"not JSON: {_reason(error)}")
    if _is_too_deep(text, value):
        return Refused(INVALID_REQUEST, f"nested deeper than {DEPTH_MAX} levels")
    return _message(_without_lone_surrogates(text, value))


def read_long(line: bytes, pause: Callable[[], None]) -> Read | None:
    """`read` for a long line and a thread of its own: others come in between, at the latest at `pause`."""
    text = line.removeprefix(_BOM).strip()
    if not text:
        return None
    try:
        value = gentle.parse(
            text.decode("utf-8"),
            depth_max=DEPTH_MAX,
            pause=pause,
            parse_float=_finite,
            parse_constant=_no_constant,
        )
    except (RecursionError, gentle.TooDeep):
        return Refused(INVALID_REQUEST, f"nested deeper than {DEPTH_MAX} levels")
    except gentle.TooMany:
        return Refused(
            INVALID_REQUEST, f"a message may hold {gentle.VALUES_MAX} values at most"
        )
    except ValueError as error:
        return Refused(PARSE_ERROR, f"not JSON: {_reason(error)}")
    return _message(value)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("the number is too large")
    return number


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
"""Made once: each would take as long as reading or writing a short line."""


def _reason(error: ValueError) -> str:
    """Where it is wrong, without repeating what was sent."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    return (
        "not UTF-8"
        if isinstance(error, UnicodeDecodeError)
        else "a number that JSON does not have"
    )


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


def _without_lone_surrogates(text: bytes, value: Any) -> Any:
    r"""`"\ud83d"` alone is legal JSON and no text: nothing could store, log or answer it."""
    if not _SURROGATE.search(text):
        return value
    clean = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
    return json.loads(clean.decode("utf-16", "replace"))


def _message(value: Any) -> Read:
    if not isinstance(value, dict):
        what = (
            "a batch: send one message a line"
            if isinstance(value, list)
            else "no JSON-RPC object"
        )
        return Refused(INVALID_REQUEST, f"this is {what}")
    if "memd" in value and "jsonrpc" not in value:
        return _preface(value)
    number = value.get("id")
    known = number if isinstance(number, str | int) and not isinstance(number, bool) else None
    if value.get("jsonrpc") != "2.0":
        return Refused(INVALID_REQUEST, 'the message lacks "jsonrpc": "2.0"', known)
    if "method" not in value and ("result" in value or "error" in value):
        return Response()
    return _call(value, known)


def _call(value: dict[str, Any], known: Id | None) -> Read:
    method, params = value.get("method"), value.get("params")
    if not isinstance(method, str) or not method:
        return Refused(INVALID_REQUEST, "the message has no method", known)
    if "id" in value and known is None:
        return Refused(INVALID_REQUEST, "id: a text or a whole number is needed")
    if params is not None and not isinstance(params, dict):
        return Refused(INVALID_PARAMS, "params: an object is needed", known)
    return Call(known, method, params or {})


def _preface(value: dict[str, Any]) -> Preface | Refused:
    if value["memd"] != PREFACE_VERSION:
        return Refused(
            INVALID_REQUEST, f"memd: this daemon speaks version {PREFACE_VERSION} only"
        )
    told = {name: value.get(name) for name in _PREFACE_FIELDS}
    return Preface(
        **{
            name: text
            for name, text in told.items()
            if isinstance(text, str)
            and 0 < len(text) <= _PREFACE_CHARACTERS
            and "\0" not in text
        }
    )


def result_line(number: Id, result: object) -> bytes:
    """The answer to a request. A ValueError if the result is no JSON."""
    return _line({"jsonrpc": "2.0", "id": number, "result": result})


def is_large(result: object) -> bool:
    """Whether to write this answer with `large_result_line`."""
    return isinstance(result, dict) and any(
        isinstance(value, list) and len(value) > LARGE for value in result.values()
    )


def large_result_line(number: Id, result: Mapping[str, Any]) -> bytes:
    """`result_line`, piece by piece, for a thread of its own: others come in between."""
    head = _written({"jsonrpc": "2.0", "id": number})
    fields = [f"{_written(str(name))}:{_in_pieces(value)}" for name, value in result.items()]
    line = head[:-1] + ',"result":{' + ",".join(fields) + "}}\n"
    return line.encode("utf-8", "replace")


def _in_pieces(value: object) -> str:
    if not isinstance(value, list):
        return _written(value)
    return "[" + ",".join([_written(one) for one in value]) + "]"


def error_line(number: Id | None, code: int, message: str, data: object = None) -> bytes:
    """The error that answers a request, or a line that was none."""
    error: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return _line({"jsonrpc": "2.0", "id": number, "error": error})


def _line(message: dict[str, object]) -> bytes:
    return _written(message).encode("utf-8", "replace") + b"\n"


def _written(value: object) -> str:
    return _ENCODER.encode(value)

"""How much of a payload is kept, and that none of it is a secret: cut, then redacted, then cut. Pure.

A long text keeps its head and its tail. Redacting all of it would hold the agent up, and cutting it
first could leave half a secret that no pattern knows any more. So spans (`<private>`, PEM) go from
the whole text in one linear pass; the two ends are taken with a margin to spare, redacted, and then
lose the margin, in which a secret may have been cut in two. Standard library only: the hook uses it.
"""

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from memd.capture.redact import redact_value
from memd.capture.redact.blocks import redact_blocks
from memd.import_graph import FileImports, read_imports

RedactValue = Callable[[Any], Any]
"""Takes and returns a JSON value without secrets; a text stays a text."""


class PayloadLimits(NamedTuple):
    """How much is kept. Bytes are of UTF-8."""

    field_bytes: int = 32_768
    total_bytes: int = 262_144
    depth: int = 16
    items: int = 500


PAYLOAD_LIMITS = PayloadLimits()
MARGIN_CHARACTERS = 16_384
"""Characters. Longer than any header line or token that a pattern must see whole."""
_KEY_CHARACTERS = 200
_SMALL = 1_024
_SNAP = 200
_NUMBER_MAX = 2**63
_DEPTH_MARK = "… [nested too deep] …"
_TOTAL_MARK = "… [payload too large] …"

_READS = frozenset({"Read", "Glob", "Grep", "LS", "NotebookRead"})
_EDITS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
_REPEATED = {"content": "content", "oldString": "old_string", "newString": "new_string"}
_MEASURES = frozenset({"path", "bytes", "lines"})
_IMPORT_KEYS = frozenset((*FileImports._fields, "calls"))
"""Keys that may follow the measures; earlier versions noted `calls`, too."""
_IDS = (
    "session_id",
    "prompt_id",
    "tool_use_id",
    "agent_id",
    "uuid",
    "hook_event_name",
    "tool_name",
)
_PLAIN_ID = re.compile(
    r"[0-9a-fA-F-]{1,64}|(?:srv)?toolu_[A-Za-z0-9]{1,64}|id-[0-9a-f]{32}"
    r"|(?:[A-Z][a-z]{1,20}){1,4}|mcp__[A-Za-z0-9_-]{1,120}"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_payload(
    payload: Any, limits: PayloadLimits = PAYLOAD_LIMITS, redact: RedactValue = redact_value
) -> Any:
    """A JSON value that may be written down: bounded, redacted, valid UTF-8, finite numbers only.

    The ids of an object's top level survive the cutting and the redaction (one that looks like a
    secret becomes its hash): everything else hangs on them.
    """
    room = _PayloadBudget(limits, redact)
    if not isinstance(payload, Mapping):
        return redact(room.fit(payload, 0))
    ids = {
        name: _id(payload[name], redact) for name in _IDS if isinstance(payload.get(name), str)
    }
    rest = {key: value for key, value in payload.items() if key not in ids}
    kept = redact(room.fit_object(rest, 0))
    return {**ids, **kept}


def trim_tool_response(payload: Any, *, keep_reads: bool) -> Any:
    """The payload of a tool event without what is bulk and no memory.

    What a file was read as becomes its path, its size and the names of what it imports; an edit's
    answer loses what its input said.
    """
    if not isinstance(payload, Mapping) or "tool_response" not in payload:
        return payload
    tool, given, response = (
        payload.get(k) for k in ("tool_name", "tool_input", "tool_response")
    )
    given = given if isinstance(given, Mapping) else {}
    if not isinstance(tool, str):  # it may be a list, which no set can be asked for
        return payload
    if tool in _READS and not keep_reads:
        noted = _named(given, response) if tool == "Read" else {}
        return {**payload, "tool_response": {**_measured(given, response), **noted}}
    if tool in _EDITS and isinstance(response, Mapping):
        slim = {k: v for k, v in response.items() if not _is_repeated(k, v, given)}
        return {**payload, "tool_response": slim}
    return payload


def truncate_text(text: str, limit: int, redact: RedactValue) -> str:
    """A text of at most `limit` bytes: head and tail with the cut said, and no half secret in it."""
    text = _SURROGATE.sub("\ufffd", text) if not text.isascii() else text
    if utf8_size(text) <= limit:
        return text
    text = str(redact_blocks(text))
    if utf8_size(text) <= limit:
        return text
    share = max(limit - _SNAP, _SNAP) // 2
    reach = share + MARGIN_CHARACTERS
    if len(text) <= 2 * reach:
        # Short enough to be redacted whole: then no end of it is a cut one.
        whole = str(redact(text))
        head, tail = whole[:share], whole[-share:]
    else:
        head = _without_margin(str(redact(text[:reach])))[:share]
        tail = _without_margin(str(redact(text[-reach:]))[::-1])[:share][::-1]
    head, tail = _first_bytes(head, share), _last_bytes(tail, share)
    return f"{head}… [{len(text) - len(head) - len(tail):,} characters cut] …{tail}"


def utf8_size(text: str) -> int:
    """Bytes of the text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class _PayloadBudget:
    """What is left of a payload's room while it is being filled."""

    def __init__(self, limits: PayloadLimits, redact: RedactValue) -> None:
        self._limits = limits
        self._redact = redact
        self._left = limits.total_bytes

    def fit(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._fit_text(value)
        if value is None or isinstance(value, bool | int | float):
            return _number(value)
        if depth >= self._limits.depth or self._left <= 0:
            return _TOTAL_MARK if self._left <= 0 else _DEPTH_MARK
        if isinstance(value, Mapping):
            return self.fit_object(value, depth)
        return self._fit_list(value, depth) if isinstance(value, Sequence) else str(type(value))

    def fit_object(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        """Small values first, so that a huge one cannot push them out; in the order they came."""
        items = list(value.items())
        fitted = {
            index: self.fit(item, depth + 1)
            for index, (_, item) in sorted(
                enumerate(items[: self._limits.items]),
                key=lambda entry: not _is_small(entry[1][1]),
            )
        }
        kept = {self._name(items[index][0]): fitted[index] for index in sorted(fitted)}
        if len(items) > self._limits.items:
            kept["…"] = f"[{len(items) - self._limits.items:,} more cut]"
        return kept

    def _name(self, key: Any) -> str:
        name = truncate_text(str(key), _KEY_CHARACTERS * 4, self._redact)
        self._left -= len(name)
        return name

    def _fit_list(self, value: Sequence[Any], depth: int) -> list[Any]:
        kept = [self.fit(item, depth + 1) for item in value[: self._limits.items]]
        if len(value) > self._limits.items:
            kept.append(f"… [{len(value) - self._limits.items:,} more cut] …")
        return kept

    def _fit_text(self, text: str) -> str:
        if len(text) > _SMALL and self._left <= 0:
            return _TOTAL_MARK
        kept = truncate_text(
            text, min(self._limits.field_bytes, max(self._left, _SMALL * 4)), self._redact
        )
        self._left -= utf8_size(kept)
        return kept


def _id(value: str, redact: RedactValue) -> str:
    # A random id looks like a secret. Two of them redacted would be one, and an event lost.
    if _PLAIN_ID.fullmatch(value) or (len(value) <= _KEY_CHARACTERS and redact(value) == value):
        return _SURROGATE.sub("\ufffd", value)
    raw = value.encode("utf-8", "surrogatepass")
    return "id-" + hashlib.blake2b(raw, digest_size=16).hexdigest()


def _is_small(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _SMALL
    return not isinstance(value, Mapping | Sequence)


def _number(value: Any) -> Any:
    """A number, truth value or null that JSON and SQLite can hold."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return (
        "… [huge number] …" if isinstance(value, int) and abs(value) >= _NUMBER_MAX else value
    )


def _without_margin(piece: str) -> str:
    """A redacted piece without its last characters, in which a secret may have been cut in two."""
    kept = piece[:-MARGIN_CHARACTERS] if len(piece) > MARGIN_CHARACTERS else ""
    end = kept.rstrip()
    space = max(end.rfind(" ", len(end) - _SNAP), end.rfind("\n", len(end) - _SNAP))
    return kept[: space + 1] if space > 0 else kept


def _first_bytes(text: str, limit: int) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    end = min(limit, len(raw))
    while end < len(raw) and raw[end] & 0xC0 == 0x80:  # noqa: PLR2004  # a UTF-8 continuation byte
        end -= 1
    return raw[:end].decode("utf-8", "surrogatepass")


def _last_bytes(text: str, limit: int) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    start = max(len(raw) - limit, 0)
    while start < len(raw) and raw[start] & 0xC0 == 0x80:  # noqa: PLR2004  # as above
        start += 1
    return raw[start:].decode("utf-8", "surrogatepass")


def _measured(given: Mapping[str, Any], response: Any) -> dict[str, Any]:
    if isinstance(response, Mapping) and _is_measured(response):
        return dict(response)
    texts = list(_texts(response, 0))
    path = next(
        (p for k in ("file_path", "notebook_path", "path") if (p := given.get(k))), None
    )
    return {
        "path": path,
        "bytes": sum(utf8_size(text) for text in texts),
        "lines": sum(text.count("\n") + (not text.endswith("\n")) for text in texts if text),
    }


def _is_measured(response: Mapping[Any, Any]) -> bool:
    return _MEASURES <= set(response) <= _MEASURES | _IMPORT_KEYS


def _named(given: Mapping[str, Any], response: Any) -> dict[str, Any]:
    """The names of what a file imports: the graph of files is made of them, and its text is not kept."""
    path = given.get("file_path")
    if not isinstance(path, str) or (isinstance(response, Mapping) and _is_measured(response)):
        return {}
    named = read_imports(path, str(redact_blocks("\n".join(_texts(response, 0)))))
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in named._asdict().items()
        if value
    }


def _texts(value: Any, depth: int) -> Sequence[str]:
    """What was read: the contents and names in an answer, not its labels."""
    if isinstance(value, str):
        return [value]
    if depth > PAYLOAD_LIMITS.depth:
        return []
    if isinstance(value, Mapping):
        inner = [v for k, v in value.items() if k not in ("type", "filePath", "mode")]
        return [text for item in inner for text in _texts(item, depth + 1)]
    if isinstance(value, Sequence):
        return [text for item in value for text in _texts(item, depth + 1)]
    return []


def _is_repeated(name: str, value: Any, given: Mapping[str, Any]) -> bool:
    if name == "originalFile":
        return True
    return name in _REPEATED and given.get(_REPEATED[name]) == value

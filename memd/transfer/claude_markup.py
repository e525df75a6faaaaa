"""What Claude Code puts around words and results, taken off. Pure.

A prompt comes with reminders that nobody typed, a compaction's summary with instructions for the
next agent, a long result as a preview with the path of the rest, an image as a megabyte of letters.
Not here: which line means what (transcripts.py); memd's own blocks and secrets, which the ingestor takes
out of everything.
"""

import datetime as dt
import math
import re
from collections.abc import Mapping
from typing import Any

_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_PRIVATE = re.compile(r"<private>.*?(?:</private>|\Z)", re.DOTALL | re.IGNORECASE)
_WRAPPER = re.compile(
    r"<(?:command-(?:name|message|args)|local-command-[a-z]+|bash-(?:input|stdout|stderr)"
    r"|user-memory-input|task-notification)>"
)
_LOCAL = "<local-command-"
_SAVED_START, _SAVED_END = "<persisted-output>", "</persisted-output>"
_SAVED = re.compile(
    r"<persisted-output>[^\n]{0,200}\n?[^\n]{0,200}?saved to: *([^\n<]{1,4096}?\.(?:txt|json))(?=\s|<)"
)
_TOO_LONG = re.compile(
    r"Error: result \([^)\n]{1,100}\) exceeds maximum allowed tokens\. Output has been saved to "
    r"([^\n]{1,4096}?\.(?:txt|json))\b"
)
_SAVED_WITHIN = 1_000
"""Characters of a result in which its preview begins: before it stands at most how the command ended."""
_RESULTS = ("tool_response", "error")
_DEPTH = 8
_SENT_DEPTH = 64
"""Half of what the wire takes, and four times what is kept: one deep line must not cost its file."""
_TOO_DEEP = "… [nested too deep] …"
_SUMMARY_START = "Summary:\n"
_SUMMARY_ENDS = (
    "\n\nIf you need specific details from before compaction",
    "\n\nPlease continue the conversation from where",
    "\nContinue the conversation from where",
    "\nPlease continue the conversation from where",
)
_MILLISECOND = dt.timedelta(milliseconds=1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def message_blocks(content: Any) -> list[Mapping[str, Any]]:
    """The blocks of a message; none if it is plain text."""
    return [b for b in content if isinstance(b, Mapping)] if isinstance(content, list) else []


def message_text(content: Any) -> str:
    """The text of a message, without the client's reminders."""
    if isinstance(content, str):
        texts = [content]
    else:
        found = (
            block.get("text")
            for block in message_blocks(content)
            if block.get("type") == "text"
        )
        texts = [text for text in found if isinstance(text, str)]
    return _REMINDER.sub("", "\n".join(texts)).strip()


def is_private_text(text: str) -> bool:
    """Whether a person marked all of this as private."""
    rest, count = _PRIVATE.subn("", text)
    return count > 0 and not any(c.isalnum() for c in rest)


def is_command_markup(text: str) -> bool:
    """Whether this is a command or its output in the client's wrapping."""
    return _WRAPPER.match(text) is not None


def is_local_output(text: str) -> bool:
    """Whether this is what the client itself answered to a command: no agent ever saw it."""
    return text.startswith(_LOCAL)


def typed_command(text: str) -> str | None:
    """The command as it was typed, such as `/review auth.py`; None if the wrapping holds none."""
    name = _within(text, "command-name")
    if name is None:
        return None
    typed = f"{name} {_within(text, 'command-args') or ''}".strip()
    return typed if typed.startswith("/") else f"/{typed}"


def _within(text: str, tag: str) -> str | None:
    """What stands between the first of these tags and the end of it."""
    _, start, rest = text.partition(f"<{tag}>")
    inner, end, _ = rest.partition(f"</{tag}>")
    return inner.strip() if start and end else None


def compaction_summary(text: str) -> str:
    """A compaction's summary without the words that the client puts around it."""
    start = text.find(_SUMMARY_START)
    body = text[start + len(_SUMMARY_START) :] if start >= 0 else text
    ends = [at for mark in _SUMMARY_ENDS if (at := body.rfind(mark)) >= 0]
    return body[: min(ends)].strip() if ends else body.strip()


def find_saved_path(payload: Mapping[str, Any]) -> str | None:
    """Where the client says that it put the whole of this result; None if it is here."""
    for name in _RESULTS:
        if (found := _saved_path(payload.get(name))) is not None:
            return found
    return None


def insert_saved_output(payload: Mapping[str, Any], output: str) -> dict[str, Any]:
    """The payload with this output where the preview of it stood."""
    return {k: _filled(v, output) if k in _RESULTS else v for k, v in payload.items()}


def strip_images(value: Any, depth: int = 0) -> Any:
    """A result with the size of every image instead of its letters."""
    if depth >= _DEPTH:
        return value
    if isinstance(value, list):
        return [strip_images(item, depth + 1) for item in value]
    if not isinstance(value, Mapping):
        return value
    held = value.get("source", value.get("file", value))
    data = held.get("data", held.get("base64")) if isinstance(held, Mapping) else None
    if value.get("type") in ("image", "document") and isinstance(data, str):
        return {"type": value["type"], "characters": len(data)}
    return {key: strip_images(item, depth + 1) for key, item in value.items()}


def limit_for_wire(value: Any, depth: int = 0) -> Any:
    """A value as the wire can carry it: of what is nested deep a mark, finite numbers only."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if not isinstance(value, Mapping | list):
        return value
    if depth >= _SENT_DEPTH:
        return _TOO_DEEP
    if isinstance(value, list):
        return [limit_for_wire(item, depth + 1) for item in value]
    return {key: limit_for_wire(item, depth + 1) for key, item in value.items()}


def parse_timestamp_ms(timestamp: Any) -> int | None:
    """A line's time as UTC milliseconds; None if it is none that a clock ever showed."""
    if not isinstance(timestamp, str):
        return None
    try:
        moment = dt.datetime.fromisoformat(timestamp)
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
        at = (zoned - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        return None
    return at if at >= 0 else None  # no clock of a client was ever before 1970


def _saved_path(value: Any) -> str | None:
    if isinstance(value, str):
        start = max(value.find(_SAVED_START, 0, _SAVED_WITHIN), 0)
        match = _SAVED.match(value, start) or _TOO_LONG.match(value)
        return match.group(1) if match else None
    if isinstance(value, Mapping):
        named = value.get("persistedOutputPath")
        return named if isinstance(named, str) else _saved_path(value.get("stdout"))
    texts = (block.get("text") for block in message_blocks(value))
    return next((path for text in texts if (path := _saved_path(text)) is not None), None)


def _filled(value: Any, output: str) -> Any:
    if isinstance(value, str):
        if _saved_path(value) is None:
            return value
        start = max(value.find(_SAVED_START, 0, _SAVED_WITHIN), 0)
        end = value.rfind(_SAVED_END, start)
        return value[:start] + output + (value[end + len(_SAVED_END) :] if end >= 0 else "")
    if isinstance(value, Mapping):
        is_whole = isinstance(value.get("persistedOutputPath"), str)
        inline = value.get("stdout")
        return {**value, "stdout": output if is_whole else _filled(inline, output)}
    if isinstance(value, list):
        return [
            {**block, "text": _filled(block["text"], output)} if "text" in block else block
            for block in message_blocks(value)
        ]
    return value

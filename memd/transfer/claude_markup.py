"""Remove what Claude Code adds to texts and results.

It adds reminders to prompts, and instructions for the next agent to a compaction's summary.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_PRIVATE = re.compile(r"<private>.*?(?:</private>|\Z)", re.DOTALL | re.IGNORECASE)
_LOCAL = "<local-command-"
_IMAGE_DEPTH_MAX = 8
"""Images are searched to this depth."""
_WIRE_DEPTH_MAX = 64
"""Half of what the daemon takes, and four times what it stores: a deeper line must not cost its file."""
_TOO_DEEP = "… [nested too deep] …"
_REFUSALS = (
    "The user doesn't want to proceed",
    "The user doesn't want to take this action",
    "Permission for this tool use was denied.",
)
"""The result of a call that the user did not let run begins with one of these."""
_REFUSAL_WORDS = re.compile(
    r"(?:To tell you how to proceed, the user said|The user said):[ \t]*\n?"
)
_REFUSAL_NOTE = "\n\nNote: The user's next message may contain a correction"
"""The client's advice to the agent after the user's words."""
_UNSAID = (
    "The user wants to clarify these questions.",
    "The user has indicated they have provided enough",
)
"""What the client says in the user's place when a question is answered with a button."""
_COMPACTED = "This session is being continued from a previous conversation"
"""So begins what a client says after a compaction; one before 1.1 does not mark it otherwise."""
_SUMMARY_START = "Summary:\n"
_SUMMARY_ENDS = (
    "\n\nIf you need specific details from before compaction",
    "\n\nPlease continue the conversation from where",
    "\nContinue the conversation from where",
    "\nPlease continue the conversation from where",
)


_MEMORY_NOTE = re.compile(r"\s*<user-memory-input>(?P<note>.*?)</user-memory-input>", re.DOTALL)


def read_typed_note(text: str) -> str:
    """The note that the user typed with the client's shortcut for its memory, as he typed it; empty if it is none."""
    match = _MEMORY_NOTE.match(text)
    note = match["note"].strip().lstrip("#").strip() if match else ""
    return f"# {note}" if note else ""


def message_blocks(content: Any) -> list[Mapping[str, Any]]:
    """Return the blocks of a message; none if it is plain text."""
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def has_result(content: Any) -> bool:
    """Return whether a message gives the result of a tool call."""
    return any(block.get("type") == "tool_result" for block in message_blocks(content))


def message_text(content: Any) -> str:
    """Return the text of a message without the client's reminders."""
    return _REMINDER.sub("", join_texts(content, "text")).strip()


def join_texts(parts: Any, *types: str) -> str:
    """Return the text of a message: of its parts, those of these types, or with any `text` if none is named."""
    if isinstance(parts, str):
        return parts
    if isinstance(parts, dict):
        parts = [parts]
    return "\n".join(_list_texts(parts, types)) if isinstance(parts, list) else ""


def _list_texts(parts: list[Any], types: tuple[str, ...]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict) and (not types or part.get("type") in types):
            text = part.get("text")
            if isinstance(text, str):
                yield text


def is_private_text(text: str) -> bool:
    """Return whether the user marked all of a text as private."""
    rest, count = _PRIVATE.subn("", text)
    return count > 0 and not any(c.isalnum() for c in rest)


def is_local_output(text: str) -> bool:
    """Return whether a text is the client's own answer to a command, which no agent ever saw."""
    return text.startswith(_LOCAL)


def refusal_words(text: str) -> str | None:
    """Return what the user said instead of letting a tool call run; None if the result is no refusal."""
    if not text.startswith(_REFUSALS):
        return None
    found = _REFUSAL_WORDS.search(text)
    said = text[found.end() :].partition(_REFUSAL_NOTE)[0].strip() if found else ""
    return "" if said.startswith(_UNSAID) else said


def typed_command(text: str) -> str | None:
    """Return a command as it was typed, such as `/review auth.py`; None if the markup has none."""
    name = _text_in_tag(text, "command-name")
    if name is None:
        return None
    typed = f"{name} {_text_in_tag(text, 'command-args') or ''}".strip()
    return typed if typed.startswith("/") else f"/{typed}"


def _text_in_tag(text: str, tag: str) -> str | None:
    _, start, rest = text.partition(f"<{tag}>")
    inner, end, _ = rest.partition(f"</{tag}>")
    return inner.strip() if start and end else None


def is_compaction(text: str) -> bool:
    """Return whether a text is the client's, which continues from a summary."""
    return text.startswith(_COMPACTED)


def compaction_summary(text: str) -> str:
    """Return a compaction's summary without the client's instructions around it."""
    start = text.find(_SUMMARY_START)
    body = text[start + len(_SUMMARY_START) :] if start >= 0 else text
    ends = [at for mark in _SUMMARY_ENDS if (at := body.rfind(mark)) >= 0]
    return body[: min(ends)].strip() if ends else body.strip()


def strip_images(value: Any, depth: int = 0) -> Any:
    """Return a result with the size of each image instead of its data."""
    if depth >= _IMAGE_DEPTH_MAX:
        return value
    if isinstance(value, list):
        return [strip_images(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    holder = value.get("source", value.get("file", value))
    data = holder.get("data", holder.get("base64")) if isinstance(holder, dict) else None
    if value.get("type") in ("image", "document") and isinstance(data, str):
        return {"type": value["type"], "characters": len(data)}
    return {key: strip_images(item, depth + 1) for key, item in value.items()}


def limit_for_wire(value: Any, depth: int = 0) -> Any:
    """Return a value that a request can have: of limited depth, and with finite numbers only."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if not isinstance(value, (dict, list)):
        return value
    if depth >= _WIRE_DEPTH_MAX:
        return _TOO_DEEP
    if isinstance(value, list):
        return [limit_for_wire(item, depth + 1) for item in value]
    return {key: limit_for_wire(item, depth + 1) for key, item in value.items()}

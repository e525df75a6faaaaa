"""A session's events as people read them: prompts, answers, and tool calls with what went in and came out. Pure."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from memd.distill.edits import text_at
from memd.distill.text import strip_injected
from memd.machine_text import USER, find_prompt_origin
from memd.models import Event, EventKind
from memd.server.json_format import JsonObject

_CHARACTERS_MAX = 20_000
"""Of a longer text the beginning is told."""
_HEADLINE_MAX = 200
_SAID = {
    EventKind.PROMPT: ("prompt", "prompt"),
    EventKind.NOTIFICATION: ("prompt", "prompt"),
    EventKind.AGENT_TEXT: ("answer", "text"),
    EventKind.STOP: ("answer", "last_assistant_message"),
    EventKind.SUBAGENT_STOP: ("answer", "last_assistant_message"),
    EventKind.COMPACT_END: ("compaction", "compact_summary"),
}
"""Kind of event → who speaks, and the field with the words."""
_TOOLS = {
    EventKind.TOOL_RESULT: "done",
    EventKind.TOOL_FAILURE: "failed",
    EventKind.TOOL_REFUSED: "refused",
    EventKind.TOOL_CALL: "unanswered",
}
"""Kind of event → how the call of a tool ended."""
_HEADLINES = (
    "command", "file_path", "notebook_path", "path", "pattern", "query", "url", "description", "prompt", "question",
)  # fmt: skip
"""The arguments of a call that tell best what it does, the most telling first."""
_UNREAD = frozenset({"fingerprint", "structuredPatch", "originalFile"})
"""Fields of an answer that are for programs, or repeat what went in."""
READ_KINDS = (*_SAID, *_TOOLS)


def describe_events(events: Iterable[Event]) -> Iterator[JsonObject]:
    """Tell what people read of each event; a call whose result is among them, and an empty text, are left out."""
    found = list(events)
    answered = {_call_id(one) for one in found if one.kind is not EventKind.TOOL_CALL}
    for event in found:
        is_answered = event.kind is EventKind.TOOL_CALL and _call_id(event) in answered
        told = None if is_answered else _describe(event)
        if told is not None:
            yield {"id": event.id, "at": event.at, "agent": event.agent, **told}


def _describe(event: Event) -> JsonObject | None:
    if event.kind in _TOOLS:
        return _describe_call(event)
    speaker, field = _SAID[event.kind]
    text = strip_injected(text_at(event.payload, field)) or text_at(event.payload, "error")
    origin = find_prompt_origin(event.payload) if speaker == "prompt" else USER
    return {"what": speaker, "text": _cut(text), "origin": origin} if text.strip() else None


def _describe_call(event: Event) -> JsonObject:
    given, answer = event.payload.get("tool_input"), event.payload.get("tool_response")
    arguments: Mapping[str, Any] = given if isinstance(given, Mapping) else {"": given}
    named = (str(arguments[name]).strip() for name in _HEADLINES if arguments.get(name))
    output = text_at(event.payload, "error") or text_at(event.payload, "said")
    return {
        "what": "tool",
        "tool": event.tool or "a tool",
        "outcome": _TOOLS[event.kind],
        "headline": next(named, "").partition("\n")[0][:_HEADLINE_MAX],
        "input": _cut(_write_arguments(arguments)),
        "output": _cut(output or _write_answer(answer)),
        "file": text_at(event.payload, "tool_input", "file_path"),
    }


def _write_arguments(arguments: Mapping[str, Any]) -> str:
    """The arguments of a call, each below its name; those of one line behind it."""
    lines = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else _to_json(value)
        lines.append(f"{name}:\n{text}" if "\n" in text else f"{name}: {text}" if name else text)
    return "\n".join(lines)


def _write_answer(answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    if isinstance(answer, Mapping) and isinstance(answer.get("stdout"), str):
        return "\n".join(part for part in (answer["stdout"], text_at(answer, "stderr")) if part)
    if isinstance(answer, Mapping):
        answer = {name: value for name, value in answer.items() if name not in _UNREAD}
    return "" if answer is None else _to_json(answer)


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _call_id(event: Event) -> str:
    return text_at(event.payload, "tool_use_id")


def _cut(text: str) -> str:
    left = len(text) - _CHARACTERS_MAX
    return text if left <= 0 else f"{text[:_CHARACTERS_MAX]}\n… {left:,} characters more"


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value in which each text, but no name of a field, is changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {name: map_texts(one, change) for name, one in value.items()}
    return [map_texts(one, change) for one in value] if isinstance(value, list | tuple) else value

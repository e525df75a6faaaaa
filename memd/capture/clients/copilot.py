"""Copilot CLI, and VS Code's sessions that run through it: two forms of one payload. Pure.

Hooks that are registered under Claude Code's names get Claude Code's fields and a time in words; those under the
client's own names get its own fields, without the event's name, which their hook has to be told.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from memd.capture.clients import tools
from memd.capture.clients.tools import get_text, has_texts, rename

NAME = "copilot"
_EVENTS: Mapping[str, str] = {
    **tools.CAMEL_EVENTS,
    "userPromptSubmitted": "UserPromptSubmit",
    "agentStop": "Stop",
    "notification": "Notification",
}
_FIELDS: Mapping[str, str] = {
    "sessionId": "session_id",
    "hookEventName": "hook_event_name",
    "transcriptPath": "transcript_path",
    "toolName": "tool_name",
    "toolArgs": "tool_input",
    "toolCallId": "tool_use_id",
    "toolResult": "tool_response",
    "tool_result": "tool_response",
    "initialPrompt": "initial_prompt",
    "stopReason": "stop_reason",
    "agentName": "agent_type",
    "agentId": "agent_id",
    "customInstructions": "custom_instructions",
    "lastAssistantMessage": "last_assistant_message",
}
_FAILED = frozenset({"failure", "error", "denied", "rejected"})
_SHELL_END = re.compile(r"\s*<shellId: \S+ completed with exit code (-?\d+)>\s*\Z")
"""How the text of a shell's result ends: a command that failed is a success of the tool."""
_TIME_MAX = 253_402_300_800_000
"""UTC milliseconds of the year 10000."""


def has_marks(payload: Mapping[str, Any]) -> bool:
    """Return whether a payload is of Copilot: a time in words beside the event's name, or its own form of fields."""
    if get_text(payload, "sessionId") and ("timestamp" in payload or "hookEventName" in payload):
        return True
    return has_texts(payload, "timestamp", "hook_event_name", "session_id")


def translate(payload: Mapping[str, Any], event: str | None = None) -> dict[str, Any]:
    """Return a payload in the words of Claude Code's hooks."""
    fields = rename(payload, _FIELDS)
    name = tools.name_event(fields, event, _EVENTS)
    if name == "SessionStart" and fields.get("source", "new") == "new":
        fields["source"] = "startup"
    if name == "Stop":
        # It stands in the transcript, from which it is read later.
        fields.setdefault("last_assistant_message", None)
    at = fields.get("timestamp")
    if isinstance(at, int) and not isinstance(at, bool) and 0 < at < _TIME_MAX:
        moment = datetime.fromtimestamp(at / 1000, UTC)  # as the other form of the payload has it
        fields["timestamp"] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    tool = tools.translate_call(fields)
    if tool is not None and "tool_response" in fields:
        _read_result(fields, tool)
    return fields


def _read_result(fields: dict[str, Any], tool: str) -> None:
    """Take the text out of a call's result, and tell a call that failed from one that did not."""
    response = fields["tool_response"]
    kind = text = None
    if isinstance(response, Mapping):
        kind = get_text(response, "resultType", "result_type")
        text = get_text(response, "textResultForLlm", "text_result_for_llm")
    ended = _SHELL_END.search(text) if text and tool in ("Bash", "PowerShell") else None
    if ended and text:
        text = text[: ended.start()]
    is_failure = kind in _FAILED or bool(ended and int(ended[1]))
    if is_failure and fields.get("hook_event_name") == "PostToolUse":
        del fields["tool_response"]
        head = f"Exit code {ended[1]}\n" if ended else ""
        fields |= {"hook_event_name": "PostToolUseFailure", "error": head + (text or "")}
    elif tool == "Bash" and text is not None:
        fields["tool_response"] = {"stdout": text}
    else:
        fields["tool_response"] = tools.translate_response(tool, response if text is None else text)

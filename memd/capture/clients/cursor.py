"""Cursor, editor and `cursor-agent`: events in camel case, no directory but the workspace's roots. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from memd.capture.clients import tools
from memd.capture.clients.tools import get_id, get_text, rename

NAME = "cursor"
_EVENTS: Mapping[str, str] = {
    **tools.CAMEL_EVENTS,
    "beforeSubmitPrompt": "UserPromptSubmit",
    "afterAgentResponse": "AgentText",
    "stop": "Stop",
}
_FIELDS: Mapping[str, str] = {
    "generation_id": "prompt_id",
    "tool_output": "tool_response",
    "error_message": "error",
    "subagent_id": "agent_id",
    "subagent_type": "agent_type",
}


def has_marks(payload: Mapping[str, Any]) -> bool:
    """Return whether a payload is of Cursor, which says its version."""
    return get_text(payload, "cursor_version") is not None


def translate(payload: Mapping[str, Any], event: str | None = None) -> dict[str, Any]:
    """Return a payload in the words of Claude Code's hooks."""
    fields = rename(payload, _FIELDS)
    name = tools.name_event(fields, event, _EVENTS)
    if name == "Stop":
        fields.setdefault("last_assistant_message", None)  # told before, by afterAgentResponse
    if name == "SessionStart":
        fields.setdefault("source", "startup")
    session = get_id(payload, "session_id", "conversation_id")
    if session is not None:
        fields["session_id"] = session
    if root := _find_root(payload):
        fields["cwd"] = root
    if use := get_id(payload, "tool_use_id"):
        fields["tool_use_id"] = use
    tool = tools.translate_call(fields)
    if tool is not None and "tool_response" in fields:
        fields["tool_response"] = tools.translate_response(tool, fields["tool_response"])
    return fields


def _find_root(payload: Mapping[str, Any]) -> str | None:
    """Return the first folder of the workspace: Cursor's hooks run in the user's settings, not in the project."""
    roots = payload.get("workspace_roots")
    if not isinstance(roots, Sequence) or isinstance(roots, str):
        return None
    return next((root for root in roots if isinstance(root, str) and root), None)

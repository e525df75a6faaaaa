"""Codex CLI: the hooks of Claude Code, with an id of the turn. Pure.

Seen with 0.169.0. A call that fails ends in PostToolUse like one that succeeds, without its exit code; that stands in
the session's rollout by then, from which `capture.prepare` adds it as `exit_code`.
"""

import re
from collections.abc import Mapping
from typing import Any

from memd.capture.clients import tools
from memd.capture.clients.tools import get_text, rename

NAME = "codex"
EXIT_CODE = "exit_code"
"""Field of a payload with the exit code of its command, where a rollout tells it."""
_FIELDS: Mapping[str, str] = {"turn_id": "prompt_id"}
_ROLLOUT = re.compile(r"(?:.*/)?rollout-[^/]+\.jsonl(?:\.zst)?")
_OWN_ID_EVENTS = frozenset({"UserPromptSubmit", "Stop"})
"""Events that a subagent has, too, under the same names."""


def has_marks(payload: Mapping[str, Any]) -> bool:
    """Return whether a payload is of Codex: its turns have ids, and its transcripts are rollouts."""
    if get_text(payload, "turn_id") and ("permission_mode" in payload or "model" in payload):
        return True
    return bool(_ROLLOUT.fullmatch(get_text(payload, "transcript_path") or ""))


def translate(payload: Mapping[str, Any], _: str | None = None) -> dict[str, Any]:
    """Return a payload in the words of Claude Code's hooks."""
    fields = rename(payload, _FIELDS)
    code = fields.pop(EXIT_CODE, None)
    name = get_text(fields, "hook_event_name") or ""
    if name in _OWN_ID_EVENTS and get_text(fields, "agent_id"):
        fields["hook_event_name"] = (
            f"Subagent{name}"  # what an agent tells another one is not the user's word
        )
    if get_text(fields, "tool_name") and tools.is_only_patch(fields.get("tool_input")):
        fields["tool_name"] = "apply_patch"  # Codex runs none: it changes the files itself
    tool = tools.translate_call(fields)
    if "tool_response" in fields and tool is not None:
        fields["tool_response"] = tools.translate_response(tool, fields["tool_response"])
        _add_outcome(fields, tool, code)
    return fields


def _add_outcome(fields: dict[str, Any], tool: str, code: int | None) -> None:
    """Tell a command that failed from one that did not; if its end is unknown, it proves nothing."""
    output = fields["tool_response"]
    is_result = fields.get("hook_event_name") == "PostToolUse"
    if tool != "Bash" or not is_result or not isinstance(output, str):
        return
    if code is None:
        fields["tool_response"] = {"stdout": output, "interrupted": True}
    elif code != 0:
        del fields["tool_response"]
        fields |= {"hook_event_name": "PostToolUseFailure", "error": f"Exit code {code}\n{output}"}
    else:
        fields["tool_response"] = {"stdout": output}

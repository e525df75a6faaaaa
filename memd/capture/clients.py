"""Recognize the client of a payload, and translate it into the words of Claude Code's hooks, which are memd's own.

Each client has a function that translates one payload, of its hook or of its transcript. Everything after
that (limits, redaction, keys, distilling) knows one vocabulary, so the same session becomes the same memories whoever
tells it. A translation leaves what is already in that vocabulary as it is.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memd.capture import client_tools as tools
from memd.capture.client_tools import get_id, get_text, has_texts, rename
from memd.models import AGENTS_IMPORT

CLAUDE_CODE = "claude-code"
CODEX, COPILOT, CURSOR = "codex", "copilot", "cursor"
WITHOUT_TIMES = frozenset({CURSOR})
"""Clients whose transcripts have neither ids nor times: of a session that hooks told, nothing of these is stored."""
WITHOUT_IDS = frozenset({COPILOT, CURSOR})
"""Clients whose hooks or transcripts name no call and no message, so that only the words tell that two are one."""
UNKNOWN = "unknown"
"""The client of payloads that no other one could have sent. They are kept as they are, and nothing is made of them."""

_PLUGGED_OR_IMPORTED: Mapping[str, str] = {
    "gemini-cli": "Gemini CLI",
    "opencode": "OpenCode",
    "pi": "Pi",
    "aider": "Aider",
}
"""Name of a client whose payloads a plugin or an importer of memd's makes → what people call it."""
PLUGGED = frozenset({"opencode", "pi"})
"""Those in which a plugin of memd's listens."""
_OTHER_TOOLS: Mapping[str, str] = {
    "run_shell_command": "Bash",
    "read": "Read",
    "write": "Write",
    "replace": "Edit",
    "read_many_files": "Read",
    "search_file_content": "Grep",
    "google_web_search": "WebSearch",
    "patch": "Edit",
    "find": "Glob",
    "list": "LS",
}
"""Name of a tool → Claude Code's, beside those that other clients have, too."""

Payload = Mapping[str, Any]
TOLD_SOURCES = frozenset({"import", "transcript", AGENTS_IMPORT})
"""Sources that know whose file they read."""


@dataclass(frozen=True, slots=True)
class KnownClient:
    """A program whose agent's sessions memd keeps."""

    name: str
    """As it is stored, and as a hook says it."""
    title: str
    """As people call it."""
    has_marks: Callable[[Payload], bool]
    """Whether only this client sends such a payload."""
    translate: Callable[[Payload, str | None], Payload]
    """(payload, the event's name if the hook was told it) → payload in the words of Claude Code's hooks."""


# ── Codex CLI ─────────────────────────────────────────────────────────────────────────────────────
# Codex CLI: the hooks of Claude Code, with an id of the turn.
# Seen with 0.169.0. A call that fails ends in PostToolUse like one that succeeds, without its exit code; that stands in
# the session's rollout by then, from which `capture.prepare` adds it as `exit_code`.


EXIT_CODE = "exit_code"
"""Field of a payload with the exit code of its command, where a rollout tells it."""
_CODEX_FIELDS: Mapping[str, str] = {"turn_id": "prompt_id"}
_ROLLOUT = re.compile(r"(?:.*/)?rollout-[^/]+\.jsonl(?:\.zst)?")
_OWN_ID_EVENTS = frozenset({"UserPromptSubmit", "Stop"})
"""Events that a subagent has, too, under the same names."""


def is_codex(payload: Mapping[str, Any]) -> bool:
    """Return whether a payload is of Codex: its turns have ids, and its transcripts are rollouts."""
    if get_text(payload, "turn_id") and ("permission_mode" in payload or "model" in payload):
        return True
    return bool(_ROLLOUT.fullmatch(get_text(payload, "transcript_path") or ""))


def translate_codex(payload: Mapping[str, Any], _: str | None = None) -> dict[str, Any]:
    """Return a payload in the words of Claude Code's hooks."""
    fields = rename(payload, _CODEX_FIELDS)
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


# ── Copilot CLI ───────────────────────────────────────────────────────────────────────────────────
# Copilot CLI, and VS Code's sessions that run through it: two forms of one payload.
# Hooks that are registered under Claude Code's names get Claude Code's fields and a time in words; those under the
# client's own names get its own fields, without the event's name, which their hook has to be told.


_COPILOT_EVENTS: Mapping[str, str] = {
    **tools.CAMEL_EVENTS,
    "userPromptSubmitted": "UserPromptSubmit",
    "agentStop": "Stop",
    "notification": "Notification",
}
_COPILOT_FIELDS: Mapping[str, str] = {
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


def is_copilot(payload: Mapping[str, Any]) -> bool:
    """Return whether a payload is of Copilot: a time in words beside the event's name, or its own form of fields."""
    if get_text(payload, "sessionId") and ("timestamp" in payload or "hookEventName" in payload):
        return True
    return has_texts(payload, "timestamp", "hook_event_name", "session_id")


def translate_copilot(payload: Mapping[str, Any], event: str | None = None) -> dict[str, Any]:
    """Return a payload in the words of Claude Code's hooks."""
    fields = rename(payload, _COPILOT_FIELDS)
    name = tools.name_event(fields, event, _COPILOT_EVENTS)
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


# ── Cursor ────────────────────────────────────────────────────────────────────────────────────────
# Cursor, editor and `cursor-agent`: events in camel case, no directory but the workspace's roots.


_CURSOR_EVENTS: Mapping[str, str] = {
    **tools.CAMEL_EVENTS,
    "beforeSubmitPrompt": "UserPromptSubmit",
    "afterAgentResponse": "AgentText",
    "stop": "Stop",
}
_CURSOR_FIELDS: Mapping[str, str] = {
    "generation_id": "prompt_id",
    "tool_output": "tool_response",
    "error_message": "error",
    "subagent_id": "agent_id",
    "subagent_type": "agent_type",
}


def is_cursor(payload: Mapping[str, Any]) -> bool:
    """Return whether a payload is of Cursor, which says its version."""
    return get_text(payload, "cursor_version") is not None


def translate_cursor(payload: Mapping[str, Any], event: str | None = None) -> dict[str, Any]:
    """Return a payload in the words of Claude Code's hooks."""
    fields = rename(payload, _CURSOR_FIELDS)
    name = tools.name_event(fields, event, _CURSOR_EVENTS)
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


# ── All of them ────────────────────────────────────────────────────────────────────────────────────


def _translate_plugged_or_imported(
    payload: Mapping[str, Any], _: str | None = None
) -> dict[str, Any]:
    """Return a payload in the words of Claude Code's hooks."""
    fields = rename(payload, {})
    tools.translate_call(fields, _OTHER_TOOLS)
    return fields


def _keep_unchanged(payload: Payload, _: str | None) -> Payload:
    return payload


CLIENTS: Mapping[str, KnownClient] = {
    one.name: one
    for one in (
        # In the order in which their marks are looked for.
        KnownClient(CURSOR, "Cursor", is_cursor, translate_cursor),
        KnownClient(CODEX, "Codex CLI", is_codex, translate_codex),
        KnownClient(COPILOT, "Copilot CLI", is_copilot, translate_copilot),
        KnownClient(CLAUDE_CODE, "Claude Code", lambda _: False, _keep_unchanged),
        *(
            KnownClient(name, title, lambda _: False, _translate_plugged_or_imported)
            for name, title in _PLUGGED_OR_IMPORTED.items()
        ),
    )
}


def recognise(stated: str, payload: Any, source: str = "live") -> str:
    """Return the name of the client that sent a payload.

    `stated` is what its hook was told. The payload's own marks count more: Cursor runs Claude Code's hooks too.
    What is no object stays its stated client's, and is refused later.
    """
    if not isinstance(payload, Mapping) or payload.keys() == {"raw"}:
        return stated if stated in CLIENTS else UNKNOWN
    if source not in TOLD_SOURCES:
        for client in CLIENTS.values():
            if client.has_marks(payload):
                return client.name
    return stated if stated in CLIENTS else UNKNOWN


def list_if_several(names: Collection[str]) -> frozenset[str]:
    """Return the clients among these names, or nothing if there is only one: then nothing need be said of it."""
    found = CLIENTS.keys() & names
    return frozenset(found) if len(found) > 1 else frozenset()


def translate(client: str, payload: Any, event: str | None = None) -> tuple[str, Any]:
    """Return (client, payload in the words of Claude Code's hooks).

    What does not say its session and what happened is kept as it is, as nobody's.
    """
    if client not in CLIENTS or not isinstance(payload, Mapping) or payload.keys() == {"raw"}:
        return client, payload
    translated = CLIENTS[client].translate(payload, event)
    is_known = has_texts(translated, "session_id", "hook_event_name")
    return (client, translated) if is_known else (UNKNOWN, payload)

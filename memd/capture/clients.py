"""Recognize the client of a payload, and translate it into the words of Claude Code's hooks, which are memd's own.

Each client has a function that translates one payload, of its hook or of its transcript. Everything after
that (limits, redaction, keys, distilling) knows one vocabulary, so the same session becomes the same memories whoever
tells it. A translation leaves what is already in that vocabulary as it is. Tool calls, in the names and fields of Claude
Code's tools, are read in shapes as seen: Codex CLI 0.169.0, Copilot CLI 1.0.102 and Pi 1.5.2 run; Cursor's as its hook
pages and public traces tell them.
"""

import json
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memd.models import AGENTS_IMPORT

Payload = Mapping[str, Any]

CAMEL_EVENTS: Mapping[str, str] = {
    name[0].lower() + name[1:]: name
    for name in (
        "SessionStart", "SessionEnd", "PreToolUse", "PostToolUse", "PostToolUseFailure",
        "SubagentStart", "SubagentStop", "PreCompact",
    )
}  # fmt: skip
"""Name of an event in camel case → Claude Code's name, where they differ in nothing else."""
PERSONAL = frozenset({"user_email", "userEmail"})
"""Fields that say who the user is. They are not stored."""
_JSON_CHARACTERS_MAX = 1_000_000
"""Characters of a text that is read as JSON."""
_NAMES: Mapping[str, str] = {
    **dict.fromkeys(
        ("bash", "shell", "local_shell", "exec_command", "shell_command", "run_terminal_cmd", "run_in_terminal",
         "run_terminal_command"), "Bash",
    ),
    "powershell": "PowerShell",
    **dict.fromkeys(("view", "read_file", "readfile"), "Read"),
    **dict.fromkeys(("create", "create_file", "write_file"), "Write"),
    **dict.fromkeys(
        ("apply_patch", "applypatch", "edit", "str_replace", "str_replace_editor", "edit_file", "search_replace",
         "strreplace", "replace_string_in_file", "multiedit", "multi_replace_string_in_file"), "Edit",
    ),
    "edit_notebook": "NotebookEdit",
    **dict.fromkeys(("grep", "grep_search", "rg"), "Grep"),
    **dict.fromkeys(("glob", "file_search", "glob_file_search"), "Glob"),
    **dict.fromkeys(("ls", "list_dir", "list_directory"), "LS"),
    **dict.fromkeys(("web_fetch", "fetch_webpage", "webfetch"), "WebFetch"),
    **dict.fromkeys(("web_search", "websearch"), "WebSearch"),
    **dict.fromkeys(("task", "spawn_agent", "runsubagent"), "Task"),
}  # fmt: skip
"""Name of a tool in lower case → name of Claude Code's tool that does the same. Others keep their name."""
_INPUTS: Mapping[str, str] = {
    "cmd": "command",
    "filePath": "file_path",
    "path": "file_path",
    "target_file": "file_path",
    "old_str": "old_string",
    "oldString": "old_string",
    "oldText": "old_string",
    "new_str": "new_string",
    "newString": "new_string",
    "newText": "new_string",
    "file_text": "content",
    "contents": "content",
    "code_edit": "new_string",
    "workdir": "cwd",
    "working_directory": "cwd",
}
"""Field of a tool's input → Claude Code's name of it."""
_PLACE_TOOLS = frozenset({"Grep", "Glob", "LS"})
"""Tools whose `path` is a place to look in, not a file."""
_SHELL_STARTS = frozenset({"bash", "sh", "zsh", "dash"})
_PATCH = "*** Begin Patch"
_PATCHING = re.compile(r"\s*apply_patch\s*<<\s*[\"']?\w+[\"']?\n\*\*\* Begin Patch\n")
_PATCH_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$")
_PATCH_MOVE = re.compile(r"^\*\*\* Move to: (.+?)\s*$")


def name_tool(name: str) -> str:
    """Return Claude Code's name of a tool; the name itself if it has none of its own."""
    return _NAMES.get(name.lower(), name)


def translate_input(tool: str, given: Any, cwd: str | None) -> Any:
    """Return the input of a tool, called by Claude Code's name of it, in Claude Code's fields."""
    given = read_json(given)
    if isinstance(given, str) and tool == "Edit":
        given = {"command": given}
    if isinstance(given, str) and tool in ("Bash", "PowerShell"):
        return {"command": given}
    if not isinstance(given, Mapping):
        return given
    patch = next(
        (
            one
            for key in ("command", "cmd", "input", "patch", "patchText")
            if _is_patch(one := given.get(key))
        ),
        None,
    )
    if tool == "Edit" and patch is not None:
        return read_patch(str(patch), cwd)
    known = {
        key: value for key, value in given.items() if not (key == "path" and tool in _PLACE_TOOLS)
    }
    renamed = {_INPUTS.get(key, key): value for key, value in known.items()}
    if isinstance(edits := renamed.get("edits"), list):  # several of one file, as Pi writes them
        renamed["edits"] = [_rename_texts(edit) for edit in edits]
    command = renamed.get("command")
    if tool == "Bash" and isinstance(command, list):
        renamed["command"] = _join_command(command)
    return {**{key: value for key, value in given.items() if key not in known}, **renamed}


def _rename_texts(edit: Any) -> Any:
    if not isinstance(edit, Mapping) or not {"oldText", "newText"} & edit.keys():
        return edit
    return {_INPUTS[key] if key in {"oldText", "newText"} else key: edit[key] for key in edit}


def translate_call(fields: dict[str, Any], names: Mapping[str, str] | None = None) -> str | None:
    """Put name and input of a payload's tool into Claude Code's words; return the name. `names`: those that go first."""
    told = get_text(fields, "tool_name")
    if told is None:
        return None
    tool = (names or {}).get(told) or name_tool(told)
    given = translate_input(tool, fields.get("tool_input"), get_text(fields, "cwd"))
    fields |= {"tool_name": tool, "tool_input": given}
    return tool


def name_event(fields: dict[str, Any], event: str | None, names: Mapping[str, str]) -> str:
    """Put the event of a payload into Claude Code's words, or the one that its hook was told; return it."""
    told = get_text(fields, "hook_event_name") or event or ""
    if told:
        fields["hook_event_name"] = names.get(told, told)
    return names.get(told, told)


def is_only_patch(given: Any) -> bool:
    """Return whether the input of a shell is nothing but a patch for Codex's own `apply_patch`."""
    command = given.get("command", given.get("cmd")) if isinstance(given, Mapping) else None
    return isinstance(command, str) and bool(_PATCHING.match(command))


def _is_patch(value: Any) -> bool:
    return isinstance(value, str) and _PATCH in value


def _join_command(words: list[Any]) -> str:
    """Return a command as a line; of `bash -lc LINE` the line."""
    match [str(word) for word in words]:
        case [shell, flags, line] if shell.rpartition("/")[2] in _SHELL_STARTS and flags[:1] == "-":
            return line
        case texts:
            return shlex.join(texts)


def read_patch(patch: str, cwd: str | None) -> dict[str, Any]:
    """Return the edits of a patch in Codex's form: `file_path` of the first file, and `edits`, one for each file."""
    edits: list[dict[str, str]] = []
    old: list[str] = []
    new: list[str] = []
    is_new_file = False

    def finish() -> None:
        if not edits:
            return
        if is_new_file:
            edits[-1]["content"] = "\n".join(new)
        else:
            edits[-1] |= {"old_string": "\n".join(old), "new_string": "\n".join(new)}

    for line in patch.splitlines():
        if found := _PATCH_FILE.match(line):
            finish()
            old, new, is_new_file = [], [], found[1] == "Add"
            edits.append({"file_path": _make_absolute(found[2], cwd)})
        elif edits and (moved := _PATCH_MOVE.match(line)):
            edits[-1]["file_path"] = _make_absolute(moved[1], cwd)
        elif edits and not line.startswith(("***", "@@")):
            if line[:1] in ("-", " "):
                old.append(line[1:])
            if line[:1] in ("+", " "):
                new.append(line[1:])
    finish()
    first = edits[0]["file_path"] if edits else ""
    return {"file_path": first, "edits": edits} if edits else {"patch": patch}


def _make_absolute(path: str, cwd: str | None) -> str:
    return path if path.startswith("/") or not cwd else f"{cwd.rstrip('/')}/{path}"


def translate_response(tool: str, response: Any) -> Any:
    """Return what a tool answered, with a command's output where Claude Code has it."""
    response = read_json(response)
    if tool != "Bash" or not isinstance(response, Mapping):
        return response
    for key in ("stdout", "output", "aggregated_output", "text", "textResultForLlm"):
        if isinstance(response.get(key), str):
            return {**{k: v for k, v in response.items() if k != key}, "stdout": response[key]}
    return response


def get_text(payload: Payload, *names: str) -> str | None:
    """Return the first of these fields that is a text with something in it."""
    for name in names:
        value = payload.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def has_texts(payload: Payload, *names: str) -> bool:
    """Return whether each of these fields is a text with something in it."""
    return all(get_text(payload, name) for name in names)


def get_id(payload: Payload, *names: str) -> str | None:
    """Return the first of these fields that is an id, on one line: some clients join two ids by a line break."""
    found = get_text(payload, *names)
    return None if found is None else "_".join(found.split()) or None


def read_json(value: Any) -> Any:
    """Return what a text with a JSON object or list in it says; any other value as it is."""
    if not isinstance(value, str) or len(value) > _JSON_CHARACTERS_MAX:
        return value
    if value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def rename(payload: Payload, names: Mapping[str, str]) -> dict[str, Any]:
    """Return a payload with these fields renamed, and without the personal ones. A field already there stays."""
    return {
        names.get(key, key): value
        for key, value in payload.items()
        if key not in PERSONAL and not (key in names and names[key] in payload)
    }


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
    if get_text(fields, "tool_name") and is_only_patch(fields.get("tool_input")):
        fields["tool_name"] = "apply_patch"  # Codex runs none: it changes the files itself
    tool = translate_call(fields)
    if "tool_response" in fields and tool is not None:
        fields["tool_response"] = translate_response(tool, fields["tool_response"])
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
    **CAMEL_EVENTS,
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
    name = name_event(fields, event, _COPILOT_EVENTS)
    if name == "SessionStart" and fields.get("source", "new") == "new":
        fields["source"] = "startup"
    if name == "Stop":
        # It stands in the transcript, from which it is read later.
        fields.setdefault("last_assistant_message", None)
    at = fields.get("timestamp")
    if isinstance(at, int) and not isinstance(at, bool) and 0 < at < _TIME_MAX:
        moment = datetime.fromtimestamp(at / 1000, UTC)  # as the other form of the payload has it
        fields["timestamp"] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    tool = translate_call(fields)
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
        fields["tool_response"] = translate_response(tool, response if text is None else text)


# ── Cursor ────────────────────────────────────────────────────────────────────────────────────────
# Cursor, editor and `cursor-agent`: events in camel case, no directory but the workspace's roots.


_CURSOR_EVENTS: Mapping[str, str] = {
    **CAMEL_EVENTS,
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
    name = name_event(fields, event, _CURSOR_EVENTS)
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
    tool = translate_call(fields)
    if tool is not None and "tool_response" in fields:
        fields["tool_response"] = translate_response(tool, fields["tool_response"])
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
    translate_call(fields, _OTHER_TOOLS)
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

"""Tool calls of other clients in the names and fields of Claude Code's tools, and reading fields of unknown shape. Pure.

Shapes as seen: Codex CLI 0.169.0, Copilot CLI 1.0.102 and Pi 1.5.2 run; Cursor's as its hook pages and public traces tell them.
"""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

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

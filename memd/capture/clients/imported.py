"""Clients whose payloads are memd's own, of its plugin or its importer: only their tools need Claude Code's words. Pure."""

from collections.abc import Mapping
from typing import Any

from memd.capture.clients import tools
from memd.capture.clients.fields import get_text, rename

TITLES: Mapping[str, str] = {
    "gemini-cli": "Gemini CLI",
    "opencode": "OpenCode",
    "pi": "Pi",
    "aider": "Aider",
}
"""Name of a client → what people call it."""
PLUGGED = frozenset({"opencode", "pi"})
"""Those in which a plugin of memd's listens."""
_NAMES: Mapping[str, str] = {
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


def translate(payload: Mapping[str, Any], _: str | None = None) -> dict[str, Any]:
    """Return a payload in the words of Claude Code's hooks."""
    fields = rename(payload, {})
    tool = get_text(fields, "tool_name")
    if tool is not None:
        tool = fields["tool_name"] = _NAMES.get(tool) or tools.name_tool(tool)
        cwd = get_text(fields, "cwd")
        fields["tool_input"] = tools.translate_input(tool, fields.get("tool_input"), cwd)
    return fields

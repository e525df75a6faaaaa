"""Recognize the client of a payload, and translate it into the words of Claude Code's hooks, which are memd's own.

Each client has a module with a function that translates one payload, of its hook or of its transcript. Everything after
that (limits, redaction, keys, distilling) knows one vocabulary, so the same session becomes the same memories whoever
tells it. A translation leaves what is already in that vocabulary as it is.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from memd.capture.clients import codex, copilot, cursor, tools
from memd.capture.clients.tools import has_texts, rename
from memd.models import AGENTS_IMPORT

CLAUDE_CODE = "claude-code"
CODEX, COPILOT, CURSOR = codex.NAME, copilot.NAME, cursor.NAME
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
        KnownClient(cursor.NAME, "Cursor", cursor.has_marks, cursor.translate),
        KnownClient(codex.NAME, "Codex CLI", codex.has_marks, codex.translate),
        KnownClient(copilot.NAME, "Copilot CLI", copilot.has_marks, copilot.translate),
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

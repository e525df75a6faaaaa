"""Recognize the client of a payload, and translate it into the words of Claude Code's hooks, which are memd's own.

Each client has a module with a function that translates one payload, of its hook or of its transcript. Everything after
that (limits, redaction, keys, distilling) knows one vocabulary, so the same session becomes the same memories whoever
tells it. A translation leaves what is already in that vocabulary as it is.
"""

from memd.capture.clients.codex import EXIT_CODE
from memd.capture.clients.codex import NAME as CODEX
from memd.capture.clients.copilot import NAME as COPILOT
from memd.capture.clients.cursor import NAME as CURSOR
from memd.capture.clients.table import (
    CLIENTS,
    PLUGGED,
    UNKNOWN,
    KnownClient,
    list_if_several,
    recognise,
    translate,
)

__all__ = [
    "CLIENTS",
    "CODEX",
    "COPILOT",
    "CURSOR",
    "EXIT_CODE",
    "PLUGGED",
    "UNKNOWN",
    "WITHOUT_IDS",
    "WITHOUT_TIMES",
    "KnownClient",
    "list_if_several",
    "recognise",
    "translate",
]

WITHOUT_TIMES = frozenset({CURSOR})
"""Clients whose transcripts have neither ids nor times: of a session that hooks told, nothing of these is stored."""
WITHOUT_IDS = frozenset({COPILOT, CURSOR})
"""Clients whose hooks or transcripts name no call and no message, so that only the words tell that two are one."""

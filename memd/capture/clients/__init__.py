"""Recognize the client of a payload, and translate it into the words of Claude Code's hooks, which are memd's own.

Each client has a module with a function that translates one payload, of its hook or of its transcript. Everything after
that (limits, redaction, keys, distilling) knows one vocabulary, so the same session becomes the same memories whoever
tells it. A translation leaves what is already in that vocabulary as it is.
"""

from memd.capture.clients.codex import EXIT_CODE as EXIT_CODE
from memd.capture.clients.table import CLIENTS as CLIENTS
from memd.capture.clients.table import CODEX as CODEX
from memd.capture.clients.table import COPILOT as COPILOT
from memd.capture.clients.table import CURSOR as CURSOR
from memd.capture.clients.table import PLUGGED as PLUGGED
from memd.capture.clients.table import UNKNOWN as UNKNOWN
from memd.capture.clients.table import WITHOUT_IDS as WITHOUT_IDS
from memd.capture.clients.table import WITHOUT_TIMES as WITHOUT_TIMES
from memd.capture.clients.table import KnownClient as KnownClient
from memd.capture.clients.table import list_if_several as list_if_several
from memd.capture.clients.table import recognise as recognise
from memd.capture.clients.table import translate as translate

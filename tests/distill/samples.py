"""The recorded sessions of the real client, as events: what capture makes of them, in small."""

import json
import pathlib
import re

from memd.models import EventKind, NewEvent, SessionRef
from memd.store import events, projects
from tests.factories import AT

DATA = pathlib.Path(__file__).parent.parent / "data" / "claude-code"
LEDGER = DATA / "ledger" / "hooks.jsonl"
EVERY_EVENT = DATA / "every-event" / "hook-samples.jsonl"
DIRECTORY = "/home/dev/ledger"

KINDS = {
    "SessionStart": EventKind.SESSION_START,
    "UserPromptSubmit": EventKind.PROMPT,
    "PreToolUse": EventKind.TOOL_CALL,
    "PostToolUse": EventKind.TOOL_RESULT,
    "PostToolUseFailure": EventKind.TOOL_FAILURE,
    "SubagentStart": EventKind.SUBAGENT_START,
    "SubagentStop": EventKind.SUBAGENT_STOP,
    "Stop": EventKind.STOP,
    "PreCompact": EventKind.COMPACT_START,
    "PostCompact": EventKind.COMPACT_END,
    "SessionEnd": EventKind.SESSION_END,
}
_REDACTIONS = (
    (re.compile(r"<private>.*?</private>"), "[REDACTED:private]"),
    (re.compile(r"wJalrXUtnFEMI\S+"), "[REDACTED:aws-secret-key]"),
    (re.compile(r"AKIA\w{16}"), "[REDACTED:aws-access-key]"),
)


def recorded(path):
    """Every hook call in a recording as a new event, in order, redacted."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        for pattern, mark in _REDACTIONS:
            line = pattern.sub(mark, line)  # noqa: PLW2901  # the same line, clean
        call = json.loads(line)
        found.append(_event(number, call, call["stdin"]))
    return found


def _event(number, call, payload):
    return NewEvent(
        session=SessionRef("claude-code", payload["session_id"], payload["cwd"]),
        key=f"recorded-{number}",
        kind=KINDS[payload["hook_event_name"]],
        name=payload["hook_event_name"],
        at=int(call.get("t", 1_795_000_000) * 1000) + (0 if "t" in call else number),
        source="live",
        payload=payload,
        turn=payload.get("prompt_id"),
        tool=payload.get("tool_name"),
        agent=payload.get("agent_id"),
    )


def store(tx, found):
    """What capture does with new events; their numbers."""
    ids = []
    for event in found:
        project = projects.ensure_project(tx, DIRECTORY, "ledger", "its directory", AT)
        session = projects.ensure_session(tx, event.session, project, event.at)
        title = event.payload.get("prompt") if event.kind == "prompt" else None
        projects.extend_session(tx, session, event.at, title)
        ids.append(events.append_event(tx, event, session)[0])
    return ids

"""Claude Code hook payloads to events."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from memd.capture.redact import redact
from memd.models import EventKind, NewEvent, SessionRef
from memd.text import digest, normalised

# MERGED from memd.capture.adapters.verdict:
# MERGED What may become of a payload instead of an event. Pure.


@dataclass(frozen=True, slots=True)
class Ignored:
    """Understood, and not kept. Counted as filtered."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Not understood. Counted as refused."""

    reason: str


# MERGED from memd.capture.adapters.claude_code:
# MERGED Claude Code's hook payloads, as events with their idempotence keys. Pure.
# MERGED
# MERGED Keys are made of what the hook and the transcript both say, so that live capture, a second copy of
# MERGED the hook and a later import converge on one row. A session that is forked or resumed elsewhere takes
# MERGED its lines along under another session's name, so an id that is like no other in the world names its
# MERGED event alone; only a weak one needs its session beside it. A prompt may end more than once (a stop hook that
# MERGED lets the agent go on, two compactions in a long turn), so what was said is part of those keys: its
# MERGED words alone, for the transcript keeps the text in another dress. Unknown fields and events are kept.
# MERGED The payload is expected to be clean already (bound.py).


CLIENT = "claude-code"

_KINDS: Mapping[str, EventKind] = {
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
    "Notification": EventKind.NOTIFICATION,
}
_NOISE = frozenset({"env", "environ", "environment"})
DRAFT_SESSION = "empty-state-draft"
"""What another editor that runs Claude Code's hooks calls the session that it has not begun."""
_SAID_CHARACTERS = 4_000
_SAID_WORDS = 100
_NAME_CHARACTERS = 200
_COPIES_MS = 2_000
_UNIQUE_ID = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:srv)?toolu_[A-Za-z0-9]{16,}"
    r"|a(?:[a-z_]+-)?[0-9a-f]{16}|id-[0-9a-f]{32}"
)
"""Ids of prompts, lines, calls and agents that no two sessions share unless one copied the other's.
A gateway to other models may number its calls anew in every session; those are not among them."""
_SUMMARY = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL)


def adapt_hook_payload(
    payload: Any, at: int, *, directory: str | None, source: str
) -> NewEvent | Ignored | Refused:
    """One hook payload as an event. `directory` is the session's stable root, if it is known."""
    if not isinstance(payload, Mapping):
        return Refused("the payload is not an object")
    session, name = _text(payload, "session_id"), _text(payload, "hook_event_name")
    if session is None:
        raw = set(payload) == {"raw"}
        return Refused("the payload is not JSON" if raw else "the payload has no session_id")
    if name is None:
        return Refused("the payload has no hook_event_name")
    if session == DRAFT_SESSION:
        return Ignored("a session that has not begun")
    if _is_compaction_agent(name, payload):
        return Ignored("the compaction's own agent")
    kept = {key: value for key, value in payload.items() if key not in _NOISE}
    parts = _key(name, kept, at)
    bound_key = digest(CLIENT, session, name, *parts)
    is_alone = bool(_UNIQUE_ID.fullmatch(parts[1]))
    return NewEvent(
        session=SessionRef(CLIENT, session, directory or _text(payload, "cwd")),
        key=digest(CLIENT, name, *parts) if is_alone else bound_key,
        kind=_KINDS.get(name, EventKind.OTHER),
        name=name[:_NAME_CHARACTERS],
        at=at,
        source=source,
        payload=kept,
        turn=_text(payload, "prompt_id"),
        tool=_text(payload, "tool_name"),
        agent=_text(payload, "agent_id"),
        former_keys=(bound_key,) if is_alone else (),
    )


def _text(payload: Mapping[str, Any], name: str) -> str | None:
    value = payload.get(name)
    return value if isinstance(value, str) and value else None


def _is_compaction_agent(name: str, payload: Mapping[str, Any]) -> bool:
    """Every compaction ends a nameless subagent whose answer PostCompact brings again."""
    said = payload.get("last_assistant_message")
    return (
        name == "SubagentStop"
        and payload.get("agent_type") == ""
        and isinstance(said, str)
        and "<summary>" in said
    )


def _key(name: str, payload: Mapping[str, Any], at: int) -> tuple[str, ...]:
    """What tells this event from every other one of its session and name."""
    parts = _PARTS[name](payload) if name in _PARTS else None
    if parts is not None:
        return parts
    # Nothing names it: two copies of one hook say the same within milliseconds.
    content = json.dumps(payload, sort_keys=True, default=str)
    return ("copy", digest(content), str(at // _COPIES_MS))


def _turn(payload: Mapping[str, Any]) -> tuple[str, ...] | None:
    turn = _text(payload, "prompt_id") or _text(payload, "uuid")
    return None if turn is None else ("turn", turn)


def _tool(payload: Mapping[str, Any]) -> tuple[str, ...] | None:
    use = _text(payload, "tool_use_id")
    return None if use is None else ("tool", use)


def _agent(payload: Mapping[str, Any]) -> tuple[str, ...] | None:
    agent = _text(payload, "agent_id")
    return None if agent is None else ("agent", agent)


def _agent_end(payload: Mapping[str, Any]) -> tuple[str, ...] | None:
    agent = _agent(payload)
    return None if agent is None else (*agent, _said(payload.get("last_assistant_message")))


def _turn_end(payload: Mapping[str, Any]) -> tuple[str, ...] | None:
    turn = _turn(payload)
    return None if turn is None else (*turn, _said(payload.get("last_assistant_message")))


def _compaction(payload: Mapping[str, Any]) -> tuple[str, ...] | None:
    turn = _turn(payload)
    return None if turn is None else (*turn, _said(payload.get("compact_summary")))


def _said(text: Any) -> str:
    """A name for what was said: its first words, redacted by the full rules whatever is configured."""
    if not isinstance(text, str):
        return ""
    bare = summary.group(1) if (summary := _SUMMARY.search(text)) else text
    words = normalised(redact(bare.strip()[:_SAID_CHARACTERS])).split()
    return digest(" ".join(words[:_SAID_WORDS]))


_PARTS: Mapping[str, Callable[[Mapping[str, Any]], tuple[str, ...] | None]] = {
    "UserPromptSubmit": _turn,
    "PreToolUse": _tool,
    "PostToolUse": _tool,
    "PostToolUseFailure": _tool,
    "SubagentStart": _agent,
    "SubagentStop": _agent_end,
    "Stop": _turn_end,
    "PreCompact": _turn,
    "PostCompact": _compaction,
}


# MERGED from memd.capture.adapters:
# MERGED One file per client: its payloads in, memd's events out.


__all__ = ["ADAPTERS", "Adapter", "Ignored", "Refused", "find_adapter"]


class Adapter(Protocol):
    """Turns one clean payload of a client into an event, or says why not. `at` is UTC ms."""

    def __call__(
        self, payload: Any, at: int, *, directory: str | None, source: str
    ) -> NewEvent | Ignored | Refused:
        """One payload, as its client sent it."""


ADAPTERS: Mapping[str, Adapter] = {CLIENT: adapt_hook_payload}


def find_adapter(client: str) -> Adapter | None:
    """The adapter of a client, or None if memd does not know it."""
    return ADAPTERS.get(client)

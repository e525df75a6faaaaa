"""Hook payloads in Claude Code's words to events with idempotence keys. Pure; payloads are already truncated and redacted.

`clients` translates what other clients say into these words.

A key is made of what the hook and the transcript both contain, so that live capture, a second copy of the hook
and a later import become one row. A forked or resumed session repeats lines under another session id, so an id
that is unique in the world identifies its event alone; a weak id is combined with its session. A prompt may end
more than once (a stop hook that lets the agent continue, two compactions in a long turn), so the words of the
answer are part of those keys; only the words, because the transcript formats the text differently. Should two
different events have one key all the same, `write` tells them apart before the second is taken for a copy.
"""

import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memd.capture.clients import UNKNOWN
from memd.capture.redact import redact
from memd.capture.truncate import mask_id
from memd.machine_text import ORIGIN, USER, find_prompt_origin, is_machine_text
from memd.models import COPY_ID, ELSEWHERE, TITLE_EVENT, EventKind, NewEvent, SessionRef
from memd.text import digest, is_private, normalised

CLIENT = "claude-code"
DRAFT_SESSION = "empty-state-draft"
"""The session id that an editor which runs Claude Code's hooks sends before its session has begun."""

_KINDS: Mapping[str, EventKind] = {
    "SessionStart": EventKind.SESSION_START,
    "UserPromptSubmit": EventKind.PROMPT,
    "PreToolUse": EventKind.TOOL_CALL,
    "PostToolUse": EventKind.TOOL_RESULT,
    "PostToolUseFailure": EventKind.TOOL_FAILURE,
    "SubagentStart": EventKind.SUBAGENT_START,
    "SubagentStop": EventKind.SUBAGENT_STOP,
    "Stop": EventKind.STOP,
    "AgentText": EventKind.AGENT_TEXT,
    "ToolRefused": EventKind.TOOL_REFUSED,
    "PreCompact": EventKind.COMPACT_START,
    "PostCompact": EventKind.COMPACT_END,
    "SessionEnd": EventKind.SESSION_END,
    "Notification": EventKind.NOTIFICATION,
    "StopFailure": EventKind.NOTIFICATION,
    "PermissionDenied": EventKind.NOTIFICATION,
    "CwdChanged": EventKind.OTHER,
    "WorktreeCreate": EventKind.OTHER,
    "WorktreeRemove": EventKind.OTHER,
    "TaskCreated": EventKind.OTHER,
    "TaskCompleted": EventKind.OTHER,
    "SubagentUserPromptSubmit": EventKind.OTHER,
}
_NOTHING_NEW: Mapping[str, str] = {
    "PostToolBatch": "each of its calls has told itself",
    "MessageDisplay": "the stop tells the whole message",
    "InstructionsLoaded": "it names a file that is there to be read",
    "PermissionRequest": "the call or its refusal follows",
    "UserPromptExpansion": "the prompt follows",
    "PreSkillShellCommand": "it only is about to run",
    "TeammateIdle": "it tells that nothing happens",
    "ConfigChange": "it is about the client",
    "FileChanged": "whoever changed the file, no agent did",
    "DirectoryAdded": "it grants access, and nothing is done there yet",
    "PreModelSwitch": "it is about the client",
    "PostModelSwitch": "it is about the client",
    "Setup": "it is about the client",
    "Interrupt": "the turn ends without a stop",
    "Elicitation": "it is a server's form",
    "ElicitationResult": "what is entered there is for the server",
}
"""Events of Claude Code and Codex CLI that memd knows, does not register for, and counts as filtered → why nothing of them stands.

Also without a registration are CwdChanged, TaskCreated and TaskCompleted, because what follows them says the
same (each event's directory, the turn's answer), and WorktreeCreate and WorktreeRemove, because a hook
for them takes the place of what the client does itself. They are kept should another hook tell them."""
_DROPPED_FIELDS = frozenset({"env", "environ", "environment", "user_email", ELSEWHERE, COPY_ID})
"""Fields that may hold secrets or say who the user is, and some that only memd writes."""
_SESSION_FIELDS = ("session_id", "sessionId", "conversation_id", "conversationId", "thread_id")
_NAME_FIELDS = ("hook_event_name", "hookEventName", "event", "type")
"""Where an unknown client may say its session and what happened."""
_FORMER_NAMES: Mapping[str, str] = {"PermissionDenied": "PostToolUseFailure"}
"""Name of an event → what an older memd called it when it read a transcript."""
_FORMER_MASK = "ses_"
"""How ids begin that an older memd took for secrets."""
_JOINING = frozenset({"session_id", "agent_id"})
_VERSION_FIELDS = ("cursor_version", "client_version", "cli_version", "version")
_PLAIN_NAME = re.compile(r"[\w.:+-]{1,60}", re.ASCII)
_SAID = {"UserPromptSubmit": "prompt", "AgentText": "text", "Stop": "last_assistant_message"}
"""Name of an event → the field with the spoken text."""
_ANSWER_CHARACTERS = 4_000
"""Characters of an answer, and"""
_ANSWER_WORDS = 100
"""words of these, that its event's key is made of."""
_NAME_CHARACTERS = 200
_COPIES_MS = 2_000
"""Milliseconds within which equal payloads without an id are copies of one event."""
_UNIQUE_ID = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:(?:srv)?toolu|call)_[A-Za-z0-9]{16,}"
    r"|a(?:[a-z_]+-)?[0-9a-f]{16}|id-[0-9a-f]{32}"
)
"""Ids of prompts, lines, calls and agents that two sessions share only if one copied the other.
A gateway to other models may restart its call numbers in every session; those do not match."""
_COMPACT_SUMMARY = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL)

KeyParts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ignored:
    """The payload is understood but not stored. Counted as filtered."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The payload is not understood. Counted as refused."""

    reason: str


def adapt_hook_payload(
    payload: Any, at: int, *, directory: str | None, source: str, client: str = CLIENT
) -> NewEvent | Ignored | Refused:
    """Convert one payload. `at` is UTC ms, `directory` the session's stable root, if it is known."""
    if not isinstance(payload, Mapping) or payload.keys() == {"raw"}:
        return _refuse_shape(payload)
    session, name = _get_text(payload, "session_id"), _get_text(payload, "hook_event_name")
    if session is None:
        return Refused("the payload has no session_id")
    if name is None:
        return Refused("the payload has no hook_event_name")
    if reason := _find_nothing(session, name, payload):
        return Ignored(reason)
    fields = {key: value for key, value in payload.items() if key not in _DROPPED_FIELDS}
    if name == "UserPromptSubmit" and (origin := find_prompt_origin(fields)) != USER:
        fields[ORIGIN] = origin
    parts = _key_parts(name, fields, at)
    is_unique = bool(_UNIQUE_ID.fullmatch(parts[1]))
    keys: KeyParts = ()
    for one in (name, _FORMER_NAMES.get(name)):
        if one is not None:
            session_key = digest(client, session, one, *parts)
            keys += (digest(client, one, *parts), session_key) if is_unique else (session_key,)
    if session.startswith(_FORMER_MASK):  # OpenCode's
        told = {key: _hash_former(value) for key, value in fields.items() if key in _JOINING}
        former = _key_parts(name, {**fields, **told}, at)
        keys += (digest(client, told["session_id"], name, *former),)
        keys += (digest(client, name, *former),) if _UNIQUE_ID.fullmatch(former[1]) else ()
    if copied := _copy_parts(name, payload):
        keys = (digest(client, session, name, *copied), *keys)
    return NewEvent(
        session=SessionRef(client, session, directory or _get_text(payload, "cwd")),
        key=keys[0],
        kind=_find_kind(name, fields),
        name=name[:_NAME_CHARACTERS],
        at=at,
        source=source,
        payload=fields,
        turn=_get_text(payload, "prompt_id"),
        tool=_get_text(payload, "tool_name"),
        agent=_get_text(payload, "agent_id"),
        former_keys=keys[1:],
    )


def keep_unknown_payload(
    payload: Any, at: int, *, directory: str | None, source: str, client: str
) -> NewEvent | Refused:
    """Keep a payload that no client is known to send, as it is. Nothing is distilled from it."""
    if not isinstance(payload, Mapping) or payload.keys() == {"raw"}:
        return _refuse_shape(payload)
    fields = {key: value for key, value in payload.items() if key not in _DROPPED_FIELDS}
    session = next(filter(None, (_get_text(payload, name) for name in _SESSION_FIELDS)), client)
    name = next(filter(None, (_get_text(payload, name) for name in _NAME_FIELDS)), client)
    content = json.dumps(fields, sort_keys=True, default=str)
    return NewEvent(
        session=SessionRef(client, session, directory or _get_text(payload, "cwd")),
        key=digest(client, session, "copy", digest(content), str(at // _COPIES_MS)),
        kind=EventKind.OTHER,
        name=name[:_NAME_CHARACTERS],
        at=at,
        source=source,
        payload=fields,
    )


def describe_unknown(event: NewEvent) -> str:
    """Return what an event is called, and of which client and version, if memd does not know its kind; else nothing."""
    if event.kind is not EventKind.OTHER or event.name in _KINDS or event.name == TITLE_EVENT:
        return ""
    if event.session.client == UNKNOWN:
        return ""  # counted by its client
    version = next(filter(None, (_get_text(event.payload, name) for name in _VERSION_FIELDS)), "")
    name = event.name if _PLAIN_NAME.fullmatch(event.name) else "of another name"
    words = (name, "from", event.session.client, version if _PLAIN_NAME.fullmatch(version) else "")
    return " ".join(filter(None, words))


def _hash_former(value: Any) -> Any:
    is_former = isinstance(value, str) and value.startswith(_FORMER_MASK)
    return mask_id(value) if is_former else value


def _refuse_shape(payload: Any) -> Refused:
    is_raw = isinstance(payload, Mapping)
    return Refused("the payload is not JSON" if is_raw else "the payload is not an object")


def _find_kind(name: str, payload: Mapping[str, Any]) -> EventKind:
    """Return an event's kind; a prompt that no person typed, or that is no text, is only a notification.

    One in which all is private stays a prompt, whoever sent it, because it makes its turn private.
    """
    kind, prompt = _KINDS.get(name, EventKind.OTHER), payload.get("prompt", "")
    is_users = isinstance(prompt, str) and not is_machine_text(prompt)
    is_users = is_users and (ORIGIN not in payload or is_private(prompt))
    return EventKind.NOTIFICATION if kind is EventKind.PROMPT and not is_users else kind


def _get_text(payload: Mapping[str, Any], name: str) -> str | None:
    value = payload.get(name)
    return value if isinstance(value, str) and value else None


def _find_nothing(session: str, name: str, payload: Mapping[str, Any]) -> str:
    """Return why an event tells nothing; empty if it does."""
    if session == DRAFT_SESSION:
        return "a session that has not begun"
    if _is_compaction_agent(name, payload):
        return "the compaction's own agent"
    return f"{name}: {_NOTHING_NEW[name]}" if name in _NOTHING_NEW else ""


def _is_compaction_agent(name: str, payload: Mapping[str, Any]) -> bool:
    """Return whether this ends the nameless subagent of a compaction, whose answer PostCompact repeats."""
    answer = payload.get("last_assistant_message")
    return (
        name == "SubagentStop"
        and payload.get("agent_type") == ""
        and isinstance(answer, str)
        and "<summary>" in answer
    )


def _key_parts(name: str, payload: Mapping[str, Any], at: int) -> KeyParts:
    """Return what distinguishes this event from every other one of its session and name."""
    parts = _ID_READERS[name](payload) if name in _ID_READERS else None
    if parts is not None:
        return parts
    content = json.dumps(payload, sort_keys=True, default=str)
    return ("copy", digest(content), _get_text(payload, "timestamp") or str(at // _COPIES_MS))


def _copy_parts(name: str, payload: Mapping[str, Any]) -> KeyParts | None:
    """Copy the fields that a line of an old client's transcript shares with its copies, whose uuid may differ."""
    copy_id, said = _get_text(payload, COPY_ID), payload.get(_SAID.get(name, ""))
    return None if copy_id is None or not said else ("said", copy_id, _answer_digest(said))


def _turn_id(payload: Mapping[str, Any]) -> KeyParts | None:
    turn = _get_text(payload, "prompt_id") or _get_text(payload, "uuid")
    return None if turn is None else ("turn", turn)


def _line_id(payload: Mapping[str, Any]) -> KeyParts | None:
    line = _get_text(payload, "uuid")
    return None if line is None else ("line", line)


def _tool_id(payload: Mapping[str, Any]) -> KeyParts | None:
    use = _get_text(payload, "tool_use_id")
    return None if use is None else ("tool", use)


def _title_id(payload: Mapping[str, Any]) -> KeyParts | None:
    title = _get_text(payload, "title")
    return None if title is None else ("title", str(payload.get("title_kind")), digest(title))


def _agent_id(payload: Mapping[str, Any]) -> KeyParts | None:
    agent = _get_text(payload, "agent_id")
    return None if agent is None else ("agent", agent)


def _with_answer(
    read_id: Callable[[Mapping[str, Any]], KeyParts | None], field: str
) -> Callable[[Mapping[str, Any]], KeyParts | None]:
    def read(payload: Mapping[str, Any]) -> KeyParts | None:
        parts = read_id(payload)
        return None if parts is None else (*parts, _answer_digest(payload.get(field)))

    return read


def _answer_digest(text: Any) -> str:
    return _digest_answer(text) if isinstance(text, str) else ""


@functools.lru_cache(maxsize=1)  # an event's key and its copies' are made of the same answer
def _digest_answer(text: str) -> str:
    """Digest an answer's first words, redacted by all rules whatever is configured."""
    bare = summary.group(1) if (summary := _COMPACT_SUMMARY.search(text)) else text
    words = normalised(redact(bare.strip()[:_ANSWER_CHARACTERS])).split()
    return digest(" ".join(words[:_ANSWER_WORDS]))


_ID_READERS: Mapping[str, Callable[[Mapping[str, Any]], KeyParts | None]] = {
    "UserPromptSubmit": _turn_id,
    "PreToolUse": _tool_id,
    "PostToolUse": _tool_id,
    "PostToolUseFailure": _tool_id,
    "SubagentStart": _agent_id,
    "SubagentStop": _with_answer(_agent_id, "last_assistant_message"),
    "Stop": _with_answer(_turn_id, "last_assistant_message"),
    "AgentText": _line_id,
    "ToolRefused": _tool_id,
    TITLE_EVENT: _title_id,
    "StopFailure": _with_answer(_turn_id, "last_assistant_message"),
    "PermissionDenied": _tool_id,
    "PreCompact": _turn_id,
    "PostCompact": _with_answer(_turn_id, "compact_summary"),
}

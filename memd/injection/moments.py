"""Injection moments: when a client lets memd add context for its agent, and what is injected then. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from memd.capture import claude_code, clients
from memd.models import Kind

SessionStart = Literal["startup", "resume", "clear", "compact"]
MomentName = Literal[SessionStart, "prompt", "stop", "rule", "file", "failure", "subagent"]
"""A `rule` is one that is about to be broken."""
STARTS = get_args(SessionStart)
_PATH_FIELDS = ("file_path", "notebook_path")
_SUBAGENT_FIELDS = ("prompt", "task", "description")


@dataclass(frozen=True, slots=True)
class EndedCall:
    """The arguments of a tool call that ended, and its error if it failed."""

    paths: tuple[str, ...] = ()
    command: str = ""
    directory: str | None = None
    """Where it ran."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class InjectionMoment:
    """A moment at which memd may inject context."""

    client: str
    session: str
    """The client's own id of the session."""
    name: MomentName
    event: str
    """The client's own name of the event."""
    prompt: str = ""
    """What the user typed; of a subagent what it was asked to do, if its client says so."""
    directory: str | None = None
    event_id: int | None = None
    """The event of this moment, if it was stored."""
    call: EndedCall | None = None
    """The call of a tool that has just ended."""
    transcript: str | None = None
    agent_type: str = ""

    @property
    def is_start(self) -> bool:
        """Return whether a session begins, or continues after it lost its context or was left."""
        return self.name in STARTS

    @property
    def is_call(self) -> bool:
        """Return whether a tool call has ended: most are worth nothing."""
        return self.name in ("file", "failure")


@dataclass(frozen=True, slots=True)
class InjectionCandidate:
    """A memory that may be injected, and why it is or is not. `group` is empty for a prompt."""

    id: int
    kind: Kind
    title: str
    at: int
    group: str
    shown: bool
    why: str


@dataclass(frozen=True, slots=True)
class InjectedContext:
    """Text to inject. `text` is None if there is nothing, and `reason` says why, or how much it is."""

    reason: str
    text: str | None = None
    project: str = ""
    candidates: tuple[InjectionCandidate, ...] = ()

    @property
    def shown(self) -> tuple[InjectionCandidate, ...]:
        """The memories in the text."""
        return tuple(one for one in self.candidates if one.shown)


def read_moment(client: str, payload: Any, directory: str | None) -> InjectionMoment | None:
    """The injection moment of a hook event; None if it is none, or the client is not known."""
    if not isinstance(payload, Mapping):
        return None
    session, event = payload.get("session_id"), payload.get("hook_event_name")
    if not isinstance(session, str) or session in ("", claude_code.DRAFT_SESSION):
        return None
    if not isinstance(event, str) or event not in _EVENTS.get(client, ()):
        return None
    # A subagent is told at its start, and nothing else.
    if payload.get("agent_id") and event != "SubagentStart":
        return None
    name = _name_moment(payload)
    if name is None:
        return None
    cwd = _text(payload, "cwd")
    fields = {"prompt": ("prompt",), "subagent": _SUBAGENT_FIELDS}.get(name, ())
    text = next(filter(None, (_text(payload, one) for one in fields)), "")
    return InjectionMoment(
        client, session, name, event, text or "", directory or cwd,
        call=_read_call(payload, cwd) if name in ("file", "failure") else None,
        transcript=_text(payload, "transcript_path"), agent_type=_text(payload, "agent_type") or "",
    )  # fmt: skip


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) and value else None


def _read_call(payload: Mapping[str, Any], cwd: str | None) -> EndedCall:
    given = payload.get("tool_input")
    fields = given if isinstance(given, Mapping) else {}
    command = _text(fields, "command") if payload.get("tool_name") == "Bash" else None
    directory = _text(fields, "cwd") or cwd
    error = _text(payload, "error") or ""
    return EndedCall(tuple(_list_paths(fields)), command or "", directory, error)


def _list_paths(fields: Mapping[str, Any]) -> Iterator[str]:
    """List the files given to a tool, of an edit of several files each."""
    edits = fields.get("edits")
    for one in (fields, *(edits if isinstance(edits, list) else ())):
        if isinstance(one, Mapping):
            yield from filter(None, (_text(one, name) for name in _PATH_FIELDS))


def _name_moment(payload: Mapping[str, Any]) -> MomentName | None:
    event, source = payload["hook_event_name"], payload.get("source")
    if event == "UserPromptSubmit":
        return "prompt"
    if event == "PostToolUse":
        return "file"
    if event == "PostToolUseFailure":
        # What the user broke off has not failed.
        return None if payload.get("is_interrupt") is True else "failure"
    if event == "SubagentStart":
        # A compaction's own agent has no type.
        return "subagent" if payload.get("agent_type") else None
    # A turn that an answer to its end has continued ends without another, or it would never end.
    if event == "Stop":
        return "stop" if payload.get("stop_hook_active") is False else None
    # A forked session has its whole context already; other sources are not known.
    return source if source in STARTS else None


def hook_output(moment: InjectionMoment, text: str) -> dict[str, Any]:
    """The text as the client's hook prints it."""
    event = moment.event
    if moment.client == clients.COPILOT:
        return {"additionalContext": text}  # it drops the nested form (seen with 1.0.102)
    if moment.client == clients.CURSOR:
        return {"additional_context": text}
    if event == "Stop":
        return {"decision": "block", "reason": text}
    if (
        moment.client == clients.CODEX
    ):  # its hook of a call that failed is that of one that succeeded
        event = event.removesuffix("Failure")
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


_COMMON = ("SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure")
_EVENTS: Mapping[str, Sequence[str]] = {
    claude_code.CLIENT: (*_COMMON, "SubagentStart", "Stop"),
    clients.CODEX: _COMMON,
    clients.COPILOT: _COMMON,
    clients.CURSOR: ("SessionStart",),
    # memd's own plugins, which take what Claude Code does.
    **dict.fromkeys(clients.PLUGGED, (*_COMMON, "SubagentStart")),
}
"""The events at which a client takes context: only those whose hook may fail or be late without the agent being held up."""

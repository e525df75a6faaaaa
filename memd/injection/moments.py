"""Injection moments: when a client lets memd add context for its agent, and what is injected then. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from memd.capture import claude_code, clients
from memd.models import Kind

SessionStart = Literal["startup", "resume", "clear", "compact"]
MomentName = Literal[SessionStart, "prompt", "stop", "rule"]
"""A `rule` is one that is about to be broken."""


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
    directory: str | None = None
    event_id: int | None = None
    """The event of this moment, if it was stored."""


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
    """What to inject. `text` is None if there is nothing, and `reason` says why, or how much it is."""

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
    # The main agent tells a subagent what it needs.
    if client not in _FORMS or event not in _FORMS[client].events or payload.get("agent_id"):
        return None
    name = _name_moment(payload)
    if name is None:
        return None
    cwd, prompt = payload.get("cwd"), payload.get("prompt")
    directory = directory or (cwd if isinstance(cwd, str) else None)
    text = prompt if name == "prompt" and isinstance(prompt, str) else ""
    return InjectionMoment(client, session, name, event, text, directory)


def _name_moment(payload: Mapping[str, Any]) -> MomentName | None:
    event, source = payload["hook_event_name"], payload.get("source")
    if event == "UserPromptSubmit":
        return "prompt"
    # A turn that an answer to its end has continued ends without another, or it would never end.
    if event == "Stop":
        return "stop" if payload.get("stop_hook_active") is False else None
    # A forked session has its whole context already; other sources are not known.
    return source if source in get_args(SessionStart) else None


def hook_output(moment: InjectionMoment, text: str) -> dict[str, Any]:
    """The text as the client's hook prints it."""
    return _FORMS[moment.client].write(moment.event, text)


@dataclass(frozen=True, slots=True)
class _ContextForm:
    """The events at which a client takes context, and how its hook prints it.

    Only events whose hook may fail or be late without the agent being held up.
    """

    events: tuple[str, ...]
    write: Callable[[str, str], dict[str, Any]]


def _write_nested(event: str, text: str) -> dict[str, Any]:
    if event == "Stop":
        return {"decision": "block", "reason": text}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _write_copilots(_: str, text: str) -> dict[str, Any]:
    return {"additionalContext": text}  # it drops the nested form (seen with 1.0.102)


def _write_cursors(_: str, text: str) -> dict[str, Any]:
    return {"additional_context": text}


_BOTH = ("SessionStart", "UserPromptSubmit")
_FORMS: Mapping[str, _ContextForm] = {
    claude_code.CLIENT: _ContextForm((*_BOTH, "Stop"), _write_nested),
    clients.CODEX: _ContextForm(_BOTH, _write_nested),
    clients.COPILOT: _ContextForm(_BOTH, _write_copilots),
    clients.CURSOR: _ContextForm(("SessionStart",), _write_cursors),
}

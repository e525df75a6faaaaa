"""The moments at which an agent is shown something: how clients say them and take it, what was found. Pure.

One function per client reads its event; `output` is the shape in which clients take the text. Not
here: what is looked for, and the words around it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from memd.capture import claude_code
from memd.models import Kind

Moment = Literal["startup", "resume", "clear", "compact", "prompt"]


@dataclass(frozen=True, slots=True)
class Opening:
    """A moment at which an agent may be shown something."""

    client: str
    session: str
    """The client's own id of it."""
    moment: Moment
    event: str
    """The client's own name of the event."""
    prompt: str = ""
    directory: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """One candidate, whether it is shown, and in words why. `group` is empty for a prompt's."""

    id: int
    kind: Kind
    title: str
    at: int
    group: str
    is_shown: bool
    why: str


@dataclass(frozen=True, slots=True)
class Looked:
    """What there is to show; `text` is None if nothing is, and `reason` says why, or how much."""

    reason: str
    text: str | None = None
    project: str = ""
    session_id: int | None = None
    verdicts: tuple[Verdict, ...] = ()

    @property
    def shown(self) -> tuple[Verdict, ...]:
        """What is behind the fence."""
        return tuple(one for one in self.verdicts if one.is_shown)


def opening(client: str, payload: Any, directory: str | None) -> Opening | None:
    """What this event asks for; None if it is no such moment, or the client is not known."""
    read = _READ.get(client)
    return read(payload, directory) if read and isinstance(payload, Mapping) else None


def output(asked: Opening, text: str) -> dict[str, Any]:
    """The text as the client wants it from its hook."""
    return {
        "hookSpecificOutput": {"hookEventName": asked.event, "additionalContext": text},
    }


_SOURCES: Mapping[str, Moment] = {
    "startup": "startup",
    "resume": "resume",
    "clear": "clear",
    "compact": "compact",
}
"""A fork brings its whole context along; what is not known is left alone."""


def _claude_code(payload: Mapping[str, Any], directory: str | None) -> Opening | None:
    session, event = payload.get("session_id"), payload.get("hook_event_name")
    if not isinstance(session, str) or not session or payload.get("agent_id"):
        return None  # a subagent is briefed by its agent
    if session == claude_code.DRAFT_SESSION:
        return None
    cwd = payload.get("cwd")
    place = directory or (cwd if isinstance(cwd, str) else None)
    if event == "UserPromptSubmit":
        prompt = payload.get("prompt")
        text = prompt if isinstance(prompt, str) else ""
        return Opening(claude_code.CLIENT, session, "prompt", event, text, place)
    source = payload.get("source")
    if event == "SessionStart" and isinstance(source, str) and source in _SOURCES:
        return Opening(claude_code.CLIENT, session, _SOURCES[source], event, "", place)
    return None


_READ: Mapping[str, Callable[[Mapping[str, Any], str | None], Opening | None]] = {
    claude_code.CLIENT: _claude_code
}

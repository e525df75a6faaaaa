"""An event as evidence: its own words, and where it stands in what its client wrote down. Pure."""

from memd.models import Event
from memd.recall.answer import Position

QUOTE_CHARACTERS = 400
_TELLING = (
    "prompt",
    "last_assistant_message",
    "message",
    "error",
    "command",
    "file_path",
    "summary",
)
"""Where an event's own words are, if no quote of it was kept."""


def quoted(quote: str, event: Event) -> str:
    """The quote that was kept of the event, else the event's own words; at most 400 characters."""
    return _cut(quote) or told(event)


def told(event: Event) -> str:
    """The event's own words, if it has any."""
    given = event.payload.get("tool_input")
    inner = given if isinstance(given, dict) else {}
    found = (source.get(key) for source in (event.payload, inner) for key in _TELLING)
    return _cut(next((text for text in found if isinstance(text, str) and text.strip()), ""))


def position(event: Event) -> Position:
    """Where to find it; of a subagent's event, in the subagent's own transcript if that is said."""
    own = _text(event, "agent_transcript_path")
    return Position(
        transcript=own or _text(event, "transcript_path"),
        session=_text(event, "session_id"),
        line=_text(event, "uuid"),
        prompt=event.turn or _text(event, "prompt_id"),
        tool_use=_text(event, "tool_use_id"),
    )


def _text(event: Event, key: str) -> str:
    value = event.payload.get(key)
    return value if isinstance(value, str) else ""


def _cut(text: str) -> str:
    flat = text.strip()
    return (
        flat if len(flat) <= QUOTE_CHARACTERS else flat[: QUOTE_CHARACTERS - 1].rstrip() + "…"
    )

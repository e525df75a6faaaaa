"""What was said in a session before an episode: short messages mean nothing without it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memd.distill.edits import text_at
from memd.distill.episodes import Episode, EpisodeContext, Exchange, Utterance
from memd.distill.text import strip_injected
from memd.machine_text import USER, find_prompt_origin
from memd.models import Event, EventKind
from memd.store import events
from memd.store.database import Connection
from memd.text import is_private

_BEFORE_MAX = 3
"""So many exchanges before an episode are read with it."""
_KEYS = {
    EventKind.PROMPT: "prompt",
    EventKind.STOP: "last_assistant_message",
    EventKind.AGENT_TEXT: "text",
}

Exchanges = Mapping[str, tuple[Exchange, ...]]
"""By the key of an episode."""


def read_exchanges(
    tx: Connection, session_id: int, due: Sequence[Episode], context: EpisodeContext
) -> Exchanges:
    """The exchanges before each episode, the latest first."""
    if not due:
        return {}
    since, until = min(e.events[0].at for e in due), max(e.events[-1].at for e in due)
    found = events.spoken_events(tx, session_id, since, until, before=_BEFORE_MAX, after=0)
    said = _read_said(found, context)
    before = {}
    for episode in due:
        own = {event.id for event in episode.events}
        first = episode.events[0]
        earlier = [
            one
            for one in said
            if one.event_id not in own and (one.at, one.event_id) < (first.at, first.id)
        ]
        before[episode.key] = tuple(reversed(_find_exchanges(earlier)[-_BEFORE_MAX:]))
    return before


@dataclass(frozen=True, slots=True)
class _HeardText:
    """What was said in one event. `at` is UTC milliseconds."""

    event_id: int
    at: int
    kind: EventKind
    text: str


def _read_said(found: Sequence[Event], context: EpisodeContext) -> list[_HeardText]:
    """What was said in those of these events that say something."""
    return [
        _HeardText(e.id, e.at, e.kind, _read_text(e, context)) for e in found if e.kind in _KEYS
    ]


def _find_exchanges(said: Sequence[_HeardText]) -> list[Exchange]:
    """The exchanges that these words are, in order of time."""
    found: list[Exchange] = []
    prompt, texts, answer, at = "", list[str](), None, 0
    for one in said:
        if one.kind is EventKind.PROMPT:
            found += [_make_exchange(prompt, texts, answer, at)] if prompt or answer else []
            prompt, texts, answer, at = one.text, [], None, one.at
        elif one.kind is EventKind.STOP and one.text:
            answer = Utterance(one.event_id, one.at, one.text, "Assistant")
        elif one.text:
            texts.append(one.text)
    return found + ([_make_exchange(prompt, texts, answer, at)] if prompt or answer else [])


def _make_exchange(
    prompt: str, texts: Sequence[str], answer: Utterance | None, at: int
) -> Exchange:
    first = next(iter(texts), answer.text if answer else "")
    return Exchange(prompt, answer, first, at, tuple(texts))


def _read_text(event: Event, context: EpisodeContext) -> str:
    text = text_at(event.payload, _KEYS[event.kind])
    is_others = event.kind is EventKind.PROMPT and find_prompt_origin(event.payload) != USER
    return "" if is_others or is_private(text) else strip_injected(text, context.own_tags)

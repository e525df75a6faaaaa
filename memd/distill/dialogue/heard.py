"""What was said in a session before and after an episode: short messages mean nothing without it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memd.distill.edits import text_at
from memd.distill.episodes import Episode, EpisodeContext, Exchange, Utterance
from memd.distill.sentences import strip_injected
from memd.machine_text import USER, find_prompt_origin
from memd.models import Event, EventKind
from memd.store import events
from memd.store.database import Connection
from memd.text import is_private

_BEFORE_MAX, AFTER_MAX = 3, 12
"""So many exchanges before and after an episode are read with it. What an agent was sure of may be refuted late."""
_KEYS = {
    EventKind.PROMPT: "prompt",
    EventKind.STOP: "last_assistant_message",
    EventKind.AGENT_TEXT: "text",
}

Exchanges = Mapping[str, tuple[Exchange, ...]]
"""By the key of an episode."""


def read_exchanges(
    tx: Connection, session_id: int, due: Sequence[Episode], context: EpisodeContext
) -> tuple[Exchanges, Exchanges]:
    """(exchanges before each episode, the latest first; those after it, the next first)."""
    if not due:
        return {}, {}
    since, until = min(e.events[0].at for e in due), max(e.events[-1].at for e in due)
    found = events.spoken_events(tx, session_id, since, until, before=_BEFORE_MAX, after=AFTER_MAX)
    said = _read_said(found, context)
    before, after = {}, {}
    for episode in due:
        own = {event.id for event in episode.events}
        first, last = episode.events[0], episode.events[-1]
        others = [one for one in said if one.event_id not in own]
        earlier = [one for one in others if (one.at, one.event_id) < (first.at, first.id)]
        later = [one for one in others if (one.at, one.event_id) > (last.at, last.id)]
        before[episode.key] = tuple(reversed(_find_exchanges(earlier)[-_BEFORE_MAX:]))
        after[episode.key] = tuple(_find_exchanges(later)[:AFTER_MAX])
    return before, after


def read_exchange(said: Sequence[Event], context: EpisodeContext) -> Exchange | None:
    """What was said in one turn; None if the user said nothing."""
    own = [event for event in said if event.agent is None]
    found = _find_exchanges(_read_said(own, context))
    return found[0] if found and found[0].prompt else None


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

"""What was said in a session before and after an episode: short messages mean nothing without it."""

from collections.abc import Mapping, Sequence

from memd.distill.episodes import Episode, EpisodeContext, Exchange, Utterance, text_at
from memd.distill.sentences import strip_injected
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
    said = events.spoken_events(tx, session_id, since, until, before=_BEFORE_MAX, after=AFTER_MAX)
    before, after = {}, {}
    for episode in due:
        own = {event.id for event in episode.events}
        first, last = episode.events[0], episode.events[-1]
        others = [event for event in said if event.id not in own]
        earlier = [event for event in others if (event.at, event.id) < (first.at, first.id)]
        later = [event for event in others if (event.at, event.id) > (last.at, last.id)]
        before[episode.key] = tuple(reversed(find_exchanges(earlier, context)[-_BEFORE_MAX:]))
        after[episode.key] = tuple(find_exchanges(later, context)[:AFTER_MAX])
    return before, after


def read_exchange(said: Sequence[Event], context: EpisodeContext) -> Exchange | None:
    """What was said in one turn; None if the user said nothing."""
    found = find_exchanges([event for event in said if event.agent is None], context)
    return found[0] if found and found[0].prompt else None


def find_exchanges(said: Sequence[Event], context: EpisodeContext) -> list[Exchange]:
    """The exchanges that these events are, in order of time."""
    found: list[Exchange] = []
    prompt, texts, answer, at = "", list[str](), None, 0
    for event in said:
        if event.kind not in _KEYS:
            continue
        text = _read_text(event, context)
        if event.kind is EventKind.PROMPT:
            found += [_make_exchange(prompt, texts, answer, at)] if prompt or answer else []
            prompt, texts, answer, at = text, [], None, event.at
        elif event.kind is EventKind.STOP and text:
            answer = Utterance(event.id, event.at, text, "Assistant")
        elif text:
            texts.append(text)
    return found + ([_make_exchange(prompt, texts, answer, at)] if prompt or answer else [])


def _make_exchange(
    prompt: str, texts: Sequence[str], answer: Utterance | None, at: int
) -> Exchange:
    first = next(iter(texts), answer.text if answer else "")
    return Exchange(prompt, answer, first, at, tuple(texts))


def _read_text(event: Event, context: EpisodeContext) -> str:
    text = text_at(event.payload, _KEYS[event.kind])
    return "" if is_private(text) else strip_injected(text, context.own_tags)

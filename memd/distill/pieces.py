"""Read which turns of a session are one piece of work, and whose memory is written again when a turn joins or leaves one.

The memory of a piece belongs to its first turn. A turn that goes on with it has no memory of its own beside the
statements in it; once it is distilled, the first turn is distilled again with it. Which memory tells of which prompt
is in the edges of the memory's sources, so that a turn that arrives late takes others out of their piece, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from memd.distill import continuing
from memd.distill.continuing import PIECE_EVENTS_MAX, PIECE_TURNS_MAX, Place, TurnOutline
from memd.distill.edits import EDIT_TOOLS, text_at
from memd.distill.episodes import (
    Episode,
    EpisodeContext,
    Exchange,
    LaterTurn,
    Utterance,
    slot_uid,
    split_episodes,
)
from memd.distill.text import OWN_TAGS, is_short, strip_injected
from memd.machine_text import USER, find_prompt_origin
from memd.models import Event, EventKind, Session
from memd.store import events, ledger, links, summaries
from memd.store.database import Connection
from memd.text import is_private

_TURNS_BACK, _TURNS_BACK_MAX = 16, 256
"""So many turns are looked back for the first one of a piece, more only while that is needed."""
_TURN_SLOT = "turn"
_TURN_KINDS = (EventKind.PROMPT, EventKind.STOP)
"""A turn has one of these; without a prompt it goes on with the last one."""


@dataclass(frozen=True, slots=True)
class SessionTurns:
    """The turns of a part of a session, and what piece each belongs to."""

    session: Session
    turns: tuple[TurnOutline, ...]
    places: Mapping[str, Place]
    now: int
    idle_ms: int

    def list_members(self, head: str) -> list[TurnOutline]:
        """The turns of a piece, its first one first."""
        return [turn for turn in self.turns if self.places[turn.key].head == head]

    def find_end(self, turn: TurnOutline) -> int:
        """When the next turn begins; UTC milliseconds."""
        return next((one.at for one in self.turns if one.at > turn.at), 2**62)


def join_due(
    tx: Connection,
    session: Session,
    due: Sequence[Episode],
    pending: AbstractSet[int],
    now: int,
    idle_ms: int,
) -> list[Episode]:
    """The episodes that are due, each with its place in a piece of work, and those that are written again for them.

    `pending`: the events of the session that are not distilled. `now` and `idle_ms` are milliseconds.
    """
    told = [one for one in due if any(e.kind in _TURN_KINDS for e in one.events)]
    if not told:
        return list(due)
    known = _read_turns(tx, session, told, now, idle_ms)
    mine = {one.key: one for one in due}
    wanted = dict.fromkeys(mine) | dict.fromkeys(_find_affected(tx, known, mine.keys()))
    read = _PieceReader(tx, known, pending, dict(mine))
    found = [
        replace(read.place(one), is_due=key in mine)
        for key in wanted
        if (one := read.find(key)) is not None
    ]
    return sorted(found, key=lambda one: (one.events[0].at, one.events[0].id))


def join_all(found: Sequence[Event], episodes: Sequence[Episode]) -> list[Episode]:
    """Episodes of a session that is read whole, each with its place in a piece of work; turns not among them are left."""
    turns = continuing.outline_turns(found, OWN_TAGS)
    by_key = {one.key: one for one in episodes}
    unusable = {turn.key for turn in turns if turn.key not in by_key}
    sizes = {one.key: len(one.events) for one in episodes}
    places = continuing.find_places(turns, unusable, sizes)
    members: dict[str, list[str]] = {}
    for key, place in places.items():
        members.setdefault(place.head, []).append(key)
    return [
        _place(one, places, [by_key[k] for k in members.get(one.key, ())[1:]]) for one in episodes
    ]


def _place(one: Episode, places: Mapping[str, Place], later: Iterable[Episode]) -> Episode:
    place = places.get(one.key)
    if place is None or place.head != one.key:
        return replace(one, continues=place.head if place else "", later=())
    turns = tuple(LaterTurn(places[other.key].role, other.events) for other in later)
    return replace(one, continues="", later=turns)


# ── Reading ──────────────────────────────────────────────────────────────────────────────────────


def _read_turns(
    tx: Connection, session: Session, due: Sequence[Episode], now: int, idle_ms: int
) -> SessionTurns:
    """The turns around those that are due, from the beginning of every piece that one of them may belong to."""
    first = min(one.events[0].at for one in due)
    last = max(one.events[0].at for one in due)
    back = continuing.TURNS_BEFORE
    while True:
        found = events.spoken_events(
            tx, session.id, first, last, before=back + continuing.TURNS_BEFORE, after=PIECE_TURNS_MAX,
            kinds=(*_TURN_KINDS, EventKind.NOTIFICATION),
        )  # fmt: skip
        turns = _complete(tx, session.id, continuing.outline_turns(found, OWN_TAGS))
        known = SessionTurns(session, tuple(turns), _find_places(tx, session, turns), now, idle_ms)
        if back >= _TURNS_BACK_MAX or _is_whole(known, {one.key for one in due}, back):
            return known
        back = max(_TURNS_BACK, 2 * back)


def _is_whole(known: SessionTurns, due: AbstractSet[str], back: int) -> bool:
    """Whether the first turns of the pieces of what is due are surely among the turns that were read."""
    numbers = {turn.key: number for number, turn in enumerate(known.turns)}
    first = next((number for key, number in numbers.items() if key in due), 0)
    is_from_beginning = first < back + continuing.TURNS_BEFORE
    heads = (numbers[known.places[key].head] for key in due if key in numbers)
    return is_from_beginning or min(heads) >= continuing.TURNS_BEFORE


def _complete(tx: Connection, session_id: int, turns: Sequence[TurnOutline]) -> list[TurnOutline]:
    """The turns, each with whether it changed files, and if it was interrupted with what the agent said last in it."""
    found = []
    for number, turn in enumerate(turns):
        until = turns[number + 1].at if number + 1 < len(turns) else 2**62
        if not turn.is_answered and (
            event := events.last_agent_text(tx, session_id, turn.at, until)
        ):
            turn = replace(turn, answer=continuing.read_text(event, OWN_TAGS))  # noqa: PLW2901
        used = events.tools_used(tx, session_id, turn.at, until)
        has_edits = not used.isdisjoint(EDIT_TOOLS)
        found.append(replace(turn, has_edits=has_edits, has_calls=bool(used)))
    return found


def _find_places(
    tx: Connection, session: Session, turns: Sequence[TurnOutline]
) -> Mapping[str, Place]:
    """The places of the turns, with what the vault knows of those that are in pieces."""
    places = continuing.find_places(turns)
    joined = {place.head for key, place in places.items() if place.head != key}
    if not joined:
        return places
    ends = [*(turn.at for turn in turns[1:]), 2**62]
    sizes, unusable = {}, set()
    for turn, end in zip(turns, ends, strict=True):
        if places[turn.key].head in joined:
            sizes[turn.key] = events.count_between(tx, session.id, turn.at, end)
            if _is_unusable(tx, session, turn, end):
                unusable.add(turn.key)
    return continuing.find_places(turns, unusable, sizes)


def _is_unusable(tx: Connection, session: Session, turn: TurnOutline, end: int) -> bool:
    """Whether a turn's memory was forgotten, or only a part of its events is left."""
    return ledger.is_forgotten(tx, slot_uid(session, turn.key, _TURN_SLOT)) or events.has_compacted(
        tx, session.id, turn.at, end
    )


def _find_affected(tx: Connection, known: SessionTurns, due: AbstractSet[str]) -> Iterable[str]:
    """The keys of the turns that are not due and whose memory is another one with what is due."""
    is_after = False
    for number, turn in enumerate(known.turns):
        is_after = is_after or turn.key in due
        if not is_after:
            continue
        is_after_due = number > 0 and known.turns[number - 1].key in due
        if is_after_due and turn.key not in due and is_short(turn.prompt):
            yield turn.key  # `2` is read with the options that arrive after it
        head = known.places[turn.key].head
        tellers = _find_tellers(tx, known.session, turn)
        if turn.key in due:
            yield from (key for key in (head, *tellers) if key not in due)
        elif tellers and tellers != {head}:
            yield from (key for key in (turn.key, head, *tellers) if key not in due)


def _find_tellers(tx: Connection, session: Session, turn: TurnOutline) -> set[str]:
    """The keys of the turns whose memory tells of this turn's prompt by now."""
    found = summaries.summaries_by_ids(tx, links.derived_from(tx, turn.event_id)).values()
    return {
        one.episode
        for one in found
        if one.episode
        and one.session_id == session.id
        and one.uid == slot_uid(session, one.episode, _TURN_SLOT)
    }


@dataclass(slots=True)
class _PieceReader:
    """Reads the episodes of a piece that are not due themselves."""

    tx: Connection
    known: SessionTurns
    pending: AbstractSet[int]
    found: dict[str, Episode]

    def find(self, key: str) -> Episode | None:
        """The episode of a key; None if it is not there, or waits to be distilled itself."""
        if key not in self.found:
            turn = next((one for one in self.known.turns if one.key == key), None)
            episode = self._read(turn) if turn else None
            if episode is None or any(event.id in self.pending for event in episode.events):
                return None
            self.found[key] = episode
        return self.found[key]

    def place(self, one: Episode) -> Episode:
        """The episode with its place, and with the turns that go on with it if it is the first of its piece."""
        if one.key not in self.known.places:
            return one
        members = self.known.list_members(one.key)[1:]
        later = (found for turn in members if (found := self.find(turn.key)) is not None)
        return _place(one, self.known.places, later)

    def _read(self, turn: TurnOutline) -> Episode | None:
        number = self.known.session.id
        if turn.turn:
            found = events.turn_events(self.tx, number, [turn.turn], PIECE_EVENTS_MAX)
        else:
            end = self.known.find_end(turn)
            found = events.events_between(self.tx, number, turn.at, end, PIECE_EVENTS_MAX)
        episodes = split_episodes(found, self.known.now, self.known.idle_ms)
        return next((one for one in episodes if one.key == turn.key), None)


# ── What was said before an episode ───────────────────────────────────────────────────────────────

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

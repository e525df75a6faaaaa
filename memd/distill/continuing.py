"""Which turn of a session goes on with the work of an earlier one. Pure.

Of turns labelled by readers, a prompt of up to three words after which no file is changed carries on with the work before it
in 87 % (`commit`, `run the tests`, `thanks`); any other begins something that somebody looks for. A prompt that a client
sent by itself, or that repeats an unanswered one, carries on, too.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from memd.distill import text as sentences
from memd.distill.edits import is_edit, text_at
from memd.distill.episodes import Role, Utterance, find_sender
from memd.distill.proof.disputes import find_denials
from memd.machine_text import is_machine_text
from memd.models import ELSEWHERE, Event, EventKind
from memd.text import content_stems, is_private, normalised

TURNS_BEFORE = 4
"""So many turns before a prompt may decide what it continues."""
PIECE_TURNS_MAX = 12
PIECE_EVENTS_MAX = 3_000
"""Turns and events of one piece of work; a longer one is told in several memories."""
_REPEATED_JACCARD = 0.7


@dataclass(frozen=True, slots=True)
class TurnOutline:
    """What was said in a turn, as far as it tells whether it goes on with another."""

    key: str
    """Of its episode."""
    event_id: int
    """Of its prompt."""
    at: int
    """When it was said, in UTC milliseconds."""
    turn: str | None
    """The client's id of it."""
    prompt: str
    answer: str
    """What the agent said last; empty if it said nothing."""
    is_answered: bool = True
    """Whether the turn ended with that answer; if not, it was interrupted."""
    is_private: bool = False
    place: str = ""
    """The key of the project where it happened, if that is not its session's."""
    has_edits: bool = False
    """Whether files were changed in it."""
    has_calls: bool = False
    """Whether anything was done in it, be it looking."""
    sender: str = ""
    """Who sent the prompt, where no person typed it."""


_GOING_ON = frozenset((EventKind.TOOL_RESULT, EventKind.STOP, EventKind.AGENT_TEXT))
"""Events with which a turn may begin that nobody has prompted."""


def find_continued(
    turn: TurnOutline, earlier: Sequence[TurnOutline]
) -> tuple[TurnOutline, Role] | None:
    """The turn whose memory this one belongs to, among the `earlier` ones, the latest first, and in what way; maybe none."""
    if not earlier or turn.is_private or earlier[0].is_private or turn.place != earlier[0].place:
        return None
    if turn.sender:
        return None
    last, said = earlier[0], turn.prompt.strip()
    if not said or is_machine_text(said) or _is_said_again(turn, last):
        return last, Role.RESUMED
    # An interrupted prompt that brought nothing stands between a message and its answer.
    heard = next((one for one in earlier if one.answer and not one.is_private), None)
    if heard is None or turn.has_edits or not sentences.is_short(said):
        return None
    if said.endswith(("?", "\uff1f")) or _denies(turn):
        return None
    return heard, Role.FOLLOWS


def _denies(turn: TurnOutline) -> bool:
    """Whether a message says that something is still broken, which disputes the fix before it."""
    return bool(find_denials(Utterance(turn.event_id, turn.at, turn.prompt, "User")))


def _is_said_again(turn: TurnOutline, last: TurnOutline) -> bool:
    """Whether a prompt is the last one again, whose work was interrupted, or the very same and neither brought anything.

    A watchdog may send the same line hundreds of times. What was interrupted before anything was done leaves nothing.
    """
    if last.is_answered:
        is_idle = not (turn.has_calls or last.has_calls)
        return is_idle and normalised(turn.prompt) == normalised(last.prompt)
    one, other = (frozenset(content_stems(text)) for text in (turn.prompt, last.prompt))
    is_same = bool(one) and len(one & other) >= _REPEATED_JACCARD * len(one | other)
    return last.has_edits and is_same


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a turn in a piece of work."""

    head: str
    """The key of the turn that the piece begins with."""
    role: Role


def find_places(
    turns: Sequence[TurnOutline],
    unusable: AbstractSet[str] = frozenset(),
    sizes: Mapping[str, int] | None = None,
) -> Mapping[str, Place]:
    """Key of each of these successive turns → its place. The first few may have another in a longer sequence.

    `unusable`: keys of turns that are left as they are. `sizes`: key → how many events the turn has.
    """
    places: dict[str, Place] = {}
    members: dict[str, list[str]] = {}
    prompted = {turn.key for turn in turns if turn.prompt}
    for number, turn in enumerate(turns):
        earlier = turns[max(0, number - TURNS_BEFORE) : number][::-1]
        found = None if turn.key in unusable else find_continued(turn, earlier)
        place = Place(turn.key, Role.HEAD)
        if found and (head := places[found[0].key].head) not in unusable:
            size = sum((sizes or {}).get(key, 0) for key in (*members[head], turn.key))
            has_room = len(prompted.intersection(members[head])) < PIECE_TURNS_MAX
            if (has_room or not turn.prompt) and size <= PIECE_EVENTS_MAX:
                place = Place(head, found[1])
        places[turn.key] = place
        members.setdefault(place.head, []).append(turn.key)
    return places


def outline_turns(found: Sequence[Event], own_tags: tuple[str, ...]) -> list[TurnOutline]:
    """The turns that these events of a session begin, in order of time. Its own agent's words count, no subagent's.

    The client begins one without a prompt when a task in the background has ended: it goes on with the last one.
    """
    turns: dict[str, TurnOutline] = {}
    current = ""
    for event in sorted(found, key=lambda one: (one.at, one.id)):
        if event.agent is not None:
            continue
        if event.kind is EventKind.PROMPT or find_sender(event):
            current = event.turn or f"event-{event.id}"
            turns.setdefault(current, _begin_turn(current, event, own_tags))
        key = event.turn or current
        if key not in turns and not (turns and event.kind in _GOING_ON):
            continue
        turns.setdefault(key, _begin_turn(key, event, own_tags))
        if event.kind is EventKind.TOOL_RESULT:
            has_edits = turns[key].has_edits or is_edit(event)
            turns[key] = replace(turns[key], has_edits=has_edits, has_calls=True)
        elif event.kind is EventKind.STOP:
            answer = read_text(event, own_tags) or turns[key].answer
            turns[key] = replace(turns[key], answer=answer, is_answered=True)
        elif event.kind is EventKind.AGENT_TEXT and not turns[key].is_answered:
            answer = read_text(event, own_tags) or turns[key].answer
            turns[key] = replace(turns[key], answer=answer)
    return list(turns.values())


def _begin_turn(key: str, event: Event, own_tags: tuple[str, ...]) -> TurnOutline:
    sender = find_sender(event)
    prompt = "" if sender else text_at(event.payload, "prompt")
    return TurnOutline(
        key=key,
        event_id=event.id,
        at=event.at,
        turn=event.turn,
        prompt=sentences.strip_injected(prompt, own_tags),
        answer="",
        is_answered=False,
        is_private=is_private(prompt),
        place=text_at(event.payload, ELSEWHERE),
        sender=sender,
    )


def read_text(event: Event, own_tags: tuple[str, ...]) -> str:
    """What the agent says in an event; empty if that is private."""
    key = "last_assistant_message" if event.kind is EventKind.STOP else "text"
    text = text_at(event.payload, key)
    return "" if is_private(text) else sentences.strip_injected(text, own_tags)

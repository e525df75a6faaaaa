"""Which turn of a session goes on with the work of an earlier one. Pure.

Of turns labelled by readers, a prompt of up to three words after which no file is changed carries on with the work before it
in 87 % (`commit`, `run the tests`, `thanks`); any other begins something that somebody looks for. A prompt that a client
sent by itself, or that repeats an unanswered one, carries on, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from memd.distill import episodes
from memd.distill import text as sentences
from memd.distill.edits import is_edit, text_at
from memd.distill.episodes import (
    Episode,
    EpisodeContext,
    Exchange,
    Role,
    Story,
    Utterance,
    find_sender,
)
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


# ── The turns of a piece of work, read together ───────────────────────────────────────────────────

_SUBSTANCE_CHARACTERS = 160
"""A closing message without work behind it is an outcome from this length on."""
_SUMMARY_CHARACTERS = 300
"""From this length on the message after a few words may sum up the whole piece."""
_EXCHANGES_MAX = 3


@dataclass(frozen=True, slots=True)
class Part:
    """One turn of a piece of work."""

    story: Story
    role: Role
    before: tuple[Exchange, ...]
    """What was said before it, the latest first."""


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work."""

    parts: tuple[Part, ...]
    """Its turns, in order."""
    main: Part
    """The one that tells best what came of it."""
    whole: Story
    """All of them as one story; its `answer` is the message that tells the outcome."""
    is_open: bool = False
    """Whether something is being done in it: what comes of that is not known yet."""

    @property
    def asking(self) -> Part:
        """The main turn; where nobody prompted it, the last one before it that somebody did."""
        until = self.parts[: self.parts.index(self.main) + 1]
        return next((one for one in reversed(until) if one.story.prompts), self.main)

    @property
    def later(self) -> tuple[Part, ...]:
        """The turns that went on with it."""
        return self.parts[1:]


def read_work(episode: Episode, story: Story, context: EpisodeContext) -> Work:
    """The piece of work that an episode, which tells this story, begins."""
    later = [(one.role, one.events) for one in episode.later if not _is_private(one.events)]
    stories = [(Role.HEAD, story)]
    stories += [(role, episodes.read_story(found, context)) for role, found in later]
    earlier = tuple(context.before.get(episode.key, ()))
    parts: list[Part] = []
    for role, one in stories:
        parts.append(Part(one, role, earlier))
        earlier = (_as_exchange(one), *earlier)[:_EXCHANGES_MAX]
    main = _find_main(parts)
    is_open = episode.ended_by is None and bool(story.commands or story.reads)
    if len(parts) == 1:
        return Work(tuple(parts), main, main.story, is_open)
    followed = (event for _, found in later for event in found)
    events = sorted((*episode.events, *followed), key=lambda e: (e.at, e.id))
    whole = episodes.read_story(events, context)
    outcome = _find_outcome(parts, main)
    answers = (*(said for said in whole.answers if said not in outcome), *outcome)
    return Work(tuple(parts), main, replace(whole, answers=answers), is_open)


def _is_private(found: tuple[Event, ...]) -> bool:
    prompts = (event for event in found if event.kind is EventKind.PROMPT)
    return any(is_private(event.payload.get("prompt")) for event in prompts)


def _as_exchange(story: Story) -> Exchange:
    answer = story.answers[-1] if story.answers else None
    first = story.texts[0].text if story.texts else ""
    return Exchange(story.prompt, answer or (story.texts[-1] if story.texts else None), first)


def _find_main(parts: list[Part]) -> Part:
    """The last turn that changed files, of those that do the work before those that mend it or check it."""
    doing = [one for one in parts if one.role in (Role.HEAD, Role.RESUMED)]
    for some in (doing, parts):
        if changed := [one for one in some if one.story.edits]:
            return changed[-1]
    told = [one for one in doing if len(one.story.told) >= _SUBSTANCE_CHARACTERS]
    return (told or [one for one in doing if one.story.told] or parts)[-1]


def _find_outcome(parts: list[Part], main: Part) -> tuple[Utterance, ...]:
    """The message that tells the outcome: the main turn's, or what sums up the piece after its last task in the background."""
    for one in reversed(parts[parts.index(main) + 1 :]):
        if not one.story.prompts and len(one.story.told) >= _SUMMARY_CHARACTERS:
            return one.story.answers[-1:]
        if one.role is Role.FOLLOWS and len(one.story.told) >= max(
            _SUMMARY_CHARACTERS, len(main.story.told)
        ):
            return one.story.answers[-1:]
    return main.story.answers[-1:]


def list_messages(work: Work) -> Iterator[str]:
    """What the agent said at the end of each turn but the one that tells the outcome, in order."""
    for one in work.parts:
        if one.story.told and one.story.told != work.whole.answer:
            yield one.story.told

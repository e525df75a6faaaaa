"""Which turn of a session goes on with the work of an earlier one, and in what way. Pure.

A go-ahead, a choice, a short correction, a chore and an interrupted prompt that is said again mean nothing without
what they answer. Whether a turn goes on depends only on its prompt and on what was said in the turns right before it.
Whatever may begin something new stays a turn of its own.
"""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from memd.distill import sentences
from memd.distill.dialogue import acts
from memd.distill.dialogue.acts import ActKind
from memd.distill.edits import is_edit, text_at
from memd.distill.episodes import Role, Utterance, find_sender
from memd.distill.outcome.requests import is_deictic
from memd.distill.proof.disputes import find_denials
from memd.machine_text import is_machine_text
from memd.models import ELSEWHERE, Event, EventKind
from memd.text import content_stems, is_private, normalised, words

TURNS_BEFORE = 4
"""So many turns before a prompt may decide what it continues."""
PIECE_TURNS_MAX = 12
PIECE_EVENTS_MAX = 3_000
"""Turns and events of one piece of work; a longer one is told in several memories."""
_GO_AHEAD_WORDS_MAX = 14
_CORRECTION_WORDS_MAX = 14
_CHORE_WORDS_MAX = 12
_CHARACTERS_MAX = 200
_REPEATED_JACCARD = 0.7
_KNOWN_SHARE = 0.5
"""Of the stems of `ok, …` so many come from what was said before, where it is a go-ahead."""


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
_YES = re.compile(
    r"^\W*(?:yes|yeah|yep|yup|sure|agreed?|correct|exactly|absolutely|definitely|sounds good|perfect|go ahead|go for it|do it|please do|makes sense|let'?s do (?:it|that|this)|ja|oui|si|sí|vale|klar|genau)\b",
    re.IGNORECASE,
)
_OKAY = re.compile(r"^\W*(?:ok(?:ay)?|k|alright|all right|great|good|cool|nice|fine|right|let'?s|lets)\b", re.IGNORECASE)  # fmt: skip
_GO_ON = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|yes|sorry|please|now|so|just|oops|my bad|ah|well|thanks|then)\b[\s,.!]*)*(?:continue|go on|keep going|carry on|proceed|resume|try again|retry|again|weiter|continuez?)\b(?:\s+(?:please|now|with (?:it|that|this|the work)|where you (?:left off|stopped)|from where you \w+(?: \w+)?|working))*[\s.!]*$",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"^\W*(?:(?:hm+|oh|ah|ok(?:ay)?|sorry|well|yes|please)\b[\s,.!:]*)*(?:no|nope|nah|also|and also|instead|only|wait|actually|not|rather|except|plus|make (?:it|that|them)|use .{1,40} instead|don'?t|do not|undo|revert|rename (?:it|that|them))\b",
    re.IGNORECASE,
)
_ORDERS = re.compile(r"\b(?:can|could|would|will) (?:you|we)\b|\bplease\b", re.IGNORECASE)
_WANTS_TO_KNOW = re.compile(
    r"\b(?:explain|check|show|describe|look|list|tell|summari[sz]e|review|find|search|compare|verify|tests?|docs?|analy[sz]e|elaborate)\b",
    re.IGNORECASE,
)
_ASKS_HOW_IT_IS = re.compile(
    r"^(?:question\W+)?(?:what|why|how (?!about\b|would\b|should\b|could\b)|where|when|which|who|is|are|was|were|does|did|has|have|do (?!it\b|that\b|this\b|you think\b|not\b)|explain|(?:double.?)?check|(?:have|take) a look|look|show|tell|find|review|compare|summari[sz]e|analy[sz]e|investigate|help me understand|list|search|see)\b",
    re.IGNORECASE,
)
_DELIBERATES = re.compile(
    r"\b(?:what do you think|thoughts|should (?:we|i)|would it|could we|can we|let'?s|makes? sense|how about|what about|any other|alternatives?|propos\w+|suggest\w*|recommend\w*|better|prefer|instead|i feel|i wonder|i think|worth)\b",
    re.IGNORECASE,
)
_OPENING = r"^\W*(?:(?:ok(?:ay)?|yes|great|good|perfect|cool|nice|now|then|and|also|please|pls|thanks|thank you|so|lgtm|looks good|let'?s|lets|just|go ahead(?: and)?|(?:can|could|would|will) (?:you|we)(?: please)?|i (?:want|need) you to|we can)\b[\s,.!:-]*)*"
_CHECKS = r"(?:tests?|unit tests?|integration tests?|linters?|lint|checks?|test suite|suite|build|formatter|type ?check(?:s|er|ing)?|ci|everything|them|it)"
_ITS_OBJECT = r"(?=\s*(?:$|[.,;!?&:-]|(?:and|it|this|that|these|those|them|all|everything|the|your|my|our|to|into|onto|on|from|now|please|then|again|changes|with|first|main|master|upstream|origin)\b))"
_CHORE = re.compile(
    rf"{_OPENING}(?:(?:git )?(?:commit|push|stage|amend|squash|stash){_ITS_OBJECT}|(?:make|create|do|write) (?:a |the |another )?(?:git )?commit\b|(?:git )?(?:merge|rebase|pull){_ITS_OBJECT}"
    rf"|(?:re-?)?run (?:(?:all|the|our|unit|integration|full|whole|e2e|of)\s+)*{_CHECKS}\b|(?:lint|format|fmt|build|compile|test)(?: (?:it|this|everything|the code|again))?[\s.!?]*$"
    r"|(?:open|create|make|raise|submit|draft|update) (?:a |the |an )?(?:draft |new )?(?:pr|pull request|mr|merge request)\b|(?:add|update) (?:a |the )?(?:changelog|release notes)\b|tag (?:it|this|the release)\b)",
    re.IGNORECASE,
)
_CHORE_COMMAND = re.compile(r"^/(?:[\w-]+:)*(?:git-)?(?:commit|push|pr|create-pr|lint|format|test)\b", re.IGNORECASE)  # fmt: skip


def find_continued(
    turn: TurnOutline, earlier: Sequence[TurnOutline]
) -> tuple[TurnOutline, Role] | None:
    """The turn whose memory this one belongs to, among the `earlier` ones, the latest first, and in what way; maybe none.

    A go-ahead that brought work has an outcome of its own, so it has a memory of its own that says what `yes` meant.
    """
    found = find_answered(turn, earlier)
    if found is None or (found[1] is Role.GO_AHEAD and turn.has_calls):
        return None
    return found


def find_answered(
    turn: TurnOutline, earlier: Sequence[TurnOutline]
) -> tuple[TurnOutline, Role] | None:
    """The turn that this one answers, among the `earlier` ones, the latest first, and in what way; maybe none."""
    if not earlier or turn.is_private or earlier[0].is_private or turn.place != earlier[0].place:
        return None
    if turn.sender:
        return None
    last, said = earlier[0], turn.prompt.strip()
    if not said or is_machine_text(said) or _GO_ON.match(said) or _is_said_again(turn, last):
        return last, Role.RESUMED
    # An interrupted prompt that brought nothing stands between an offer and its answer.
    heard = next((one for one in earlier if one.answer and not one.is_private), None)
    if heard is None or len(said) > _CHARACTERS_MAX or "\n" in said or _denies(turn):
        return None
    role = _find_role(said, heard)
    if role is None or (role is Role.GO_AHEAD and _has_answered(heard)):
        return None
    return heard, role


def _denies(turn: TurnOutline) -> bool:
    """Whether a message says that something is still broken, which disputes the fix before it."""
    return bool(find_denials(Utterance(turn.event_id, turn.at, turn.prompt, "User")))


def _has_answered(heard: TurnOutline) -> bool:
    """Whether a turn found out how things are: that stays true whatever is done about it afterwards."""
    asked = sentences.strip_politeness(sentences.extract_own_words(heard.prompt) or heard.prompt)
    return (
        not heard.has_edits
        and _ASKS_HOW_IT_IS.match(asked) is not None
        and _DELIBERATES.search(asked) is None
    )


def _find_role(said: str, heard: TurnOutline) -> Role | None:
    number = len(words(said))
    if _CHORE_COMMAND.match(said) or (number <= _CHORE_WORDS_MAX and _CHORE.match(said)):
        return Role.CHORE
    if sentences.is_command(said):
        return None
    if number <= _CORRECTION_WORDS_MAX and _CORRECTS.match(said) and not _asks(said):
        return Role.CORRECTION
    return Role.GO_AHEAD if _is_go_ahead(said, heard) else None


def _is_go_ahead(said: str, heard: TurnOutline) -> bool:
    is_short = len(words(said)) <= _GO_AHEAD_WORDS_MAX
    if is_deictic(said) and not _asks(said):
        return not _WANTS_TO_KNOW.search(said)
    act = acts.read_answer(said, [heard.answer], heard.prompt)
    if act is not None and act.kind is not ActKind.AGREED:
        return is_short or not _ORDERS.search(said)
    if not is_short or _asks(said):
        return False
    if _YES.match(said):
        return True
    return _OKAY.match(said) is not None and _is_known(said, f"{heard.prompt}\n{heard.answer}")


def _asks(said: str) -> bool:
    """Whether a message wants an answer rather than work: `could you also push?` wants work."""
    bare = sentences.strip_politeness(said)
    return sentences.is_question(bare) and _ORDERS.search(said) is None


def _is_known(said: str, before: str) -> bool:
    mine = frozenset(content_stems(said))
    return len(mine & frozenset(content_stems(before))) >= _KNOWN_SHARE * len(mine)


def _is_said_again(turn: TurnOutline, last: TurnOutline) -> bool:
    """Whether a prompt is the last one again, which was interrupted, or the very same and neither brought anything.

    A watchdog may send the same line hundreds of times.
    """
    if last.is_answered:
        is_idle = not (turn.has_calls or last.has_calls)
        return is_idle and normalised(turn.prompt) == normalised(last.prompt)
    one, other = (frozenset(content_stems(text)) for text in (turn.prompt, last.prompt))
    return bool(one) and len(one & other) >= _REPEATED_JACCARD * len(one | other)


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

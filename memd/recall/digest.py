"""What of a project's memories a session begins with: worth, fair shares, one verdict each. Pure.

Candidates come in groups. Groups that lead may take half of the room before the others begin. Then
whoever has used least of the room puts its next best down, so that no group fills the page while
another waits, and what one does not need is the others'. Within a group what is pinned comes first,
then what is worth most: how recent it is for its kind, how often it was said again, how often it was
asked for. What was only shown unasked counts for nothing: it would keep itself on top.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memd.models import AHEAD_MS, Kind
from memd.store.rows import Card

DAY_MS = 86_400_000
_HALF_LIFE_DAYS = {
    Kind.INSTRUCTION: 365.0,
    Kind.PREFERENCE: 365.0,
    Kind.DECISION: 120.0,
    Kind.FAILURE: 7.0,
}
_HALF_LIFE_OTHERS = 30.0
_REPEATS_WEIGHT = 0.15
_USES_WEIGHT = 0.1
_LEADING_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Group:
    """Candidates under one heading."""

    name: str
    cards: tuple[Card, ...]
    leads: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """One candidate, whether it is shown, and in words why."""

    card: Card
    group: str
    is_shown: bool
    why: str


@dataclass(slots=True)
class _Queue:
    """A group while its cards are put down."""

    group: Group
    waiting: list[Card]
    kept: list[Card]
    used: int = 0


Cost = Callable[[Card], int]
"""What a card's line takes of the room."""


def worth(card: Card, now: int) -> float:
    """What a card is worth beside others of its group; recency is 1 now and ½ after a half-life."""
    half = _HALF_LIFE_DAYS.get(card.kind, _HALF_LIFE_OTHERS)
    age = _age(card, now) / DAY_MS
    return float(
        0.5 ** (age / half)
        + _REPEATS_WEIGHT * math.log2(1 + max(card.repeats, 0))
        + _USES_WEIGHT * math.log2(1 + card.uses)
    )


def select(
    groups: Sequence[Group], room: int, now: int, cost: Cost, heading: Callable[[str], int]
) -> list[Choice]:
    """A verdict for every card, in the order in which they are to stand: by group, best first.

    `cost` and `heading` say in the unit of `room` what a card's line and a group's heading take.
    A card of two groups belongs to the first.
    """
    queues, twins = _queues(groups, now)
    leading = [queue for queue in queues if queue.group.leads]
    left = room
    if leading:
        share = int(room * _LEADING_SHARE)
        left = room - share + _fill(leading, share, cost, heading)
    _fill(queues, left, cost, heading)
    chosen: list[Choice] = []
    for queue in queues:
        name = queue.group.name
        chosen += [Choice(card, name, True, _why(card, now)) for card in queue.kept]
        chosen += [Choice(card, name, False, "no room left") for card in queue.waiting]
        chosen += [Choice(card, name, False, why) for card, why in twins[name]]
    return chosen


def _queues(
    groups: Sequence[Group], now: int
) -> tuple[list[_Queue], dict[str, list[tuple[Card, str]]]]:
    """Each group's cards in order, once each; and those that say what another one says."""
    queues: list[_Queue] = []
    twins: dict[str, list[tuple[Card, str]]] = {}
    ids: set[int] = set()
    titles: dict[tuple[Kind, str], int] = {}
    for group in groups:
        waiting: list[Card] = []
        same = twins.setdefault(group.name, [])
        for card in sorted(
            group.cards, key=lambda c: (not c.is_pinned, -worth(c, now), -c.at, -c.id)
        ):
            if card.id in ids:
                continue
            ids.add(card.id)
            said = (card.kind, " ".join(card.title.lower().split()).rstrip(".!… "))
            if said in titles:
                same.append((card, f"says the same as #{titles[said]}"))
                continue
            titles[said] = card.id
            waiting.append(card)
        queues.append(_Queue(group, waiting, []))
    return queues, twins


def _fill(
    queues: Sequence[_Queue], room: int, cost: Cost, heading: Callable[[str], int]
) -> int:
    """Put down what fits; the room that is left."""
    open_ = [queue for queue in queues if queue.waiting]
    while open_:
        queue = min(open_, key=lambda one: one.used)
        price = cost(queue.waiting[0]) + (0 if queue.kept else heading(queue.group.name))
        if price > room:
            open_ = [one for one in open_ if one is not queue]
            continue
        queue.kept.append(queue.waiting.pop(0))
        queue.used += price
        room -= price
        if not queue.waiting:
            open_ = [one for one in open_ if one is not queue]
    return room


def _age(card: Card, now: int) -> int:
    """In ms. What a wrong clock dated ahead is as old as it lies ahead: else it would lead for years."""
    gone = now - card.at
    return -gone if gone <= -AHEAD_MS else max(gone, 0)


def _why(card: Card, now: int) -> str:
    days = _age(card, now) // DAY_MS
    parts = ["pinned"] if card.is_pinned else []
    parts.append("today" if days == 0 else f"{days} d old")
    if card.repeats > 0:
        parts.append(f"said again {card.repeats}×")
    if card.uses:
        parts.append(f"asked for {card.uses}×")
    return ", ".join(parts)

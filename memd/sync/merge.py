"""Decide, without I/O, which version of a record holds and which memory hides which.

Both are functions of what is known, whatever the order in which it was learned.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memd.models import Authority
from memd.sync.records import Record, Stamp
from memd.text import digest

OUTRANKED = "a greater voice said the other elsewhere"
OTHER_VALUE = "another value of the same topic, said on another device"


def is_greater(new: Record, rank: int, stamp: Stamp, known_value: object) -> bool:
    """Whether a version replaces the one with this rank, stamp and value.

    Equal stamps of different values come from a device that lost its memory: any order will do, if it is one.
    """
    if (new.rank, new.stamp) != (rank, stamp):
        return (new.rank, new.stamp) > (rank, stamp)
    return _hash_value(new.value) > _hash_value(known_value)


def _hash_value(value: object) -> str:
    return digest(json.dumps(value, sort_keys=True, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class Claim:
    """One memory is said to hide another. `strength` orders claims: rank, stamp, names."""

    newer: str
    older: str
    rank: int
    strength: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Decisions:
    """(newer, older) of what holds, and of what contradicts because the greater voice was not known."""

    holding: frozenset[tuple[str, str]]
    outranked: frozenset[tuple[str, str]]


def decide_claims(
    claims: Iterable[Claim],
    standings: Mapping[str, int],
    separated: frozenset[frozenset[str]],
    directed: Mapping[frozenset[str], str],
) -> Decisions:
    """Choose the claims that hold: the strongest first, none against a greater voice, a judgment or another.

    `standings`: memory → the authority that it has by its speaker or its pin. `separated`: pairs that were
    judged to hold beside each other. `directed`: pair that was judged → the memory that hides the other.
    A memory is hidden once, and nothing hides itself through others.
    """
    above: dict[str, str] = {}
    outranked = set()
    for claim in sorted(claims, key=lambda one: one.strength, reverse=True):
        pair = frozenset((claim.newer, claim.older))
        if pair in separated or directed.get(pair, claim.newer) != claim.newer:
            continue
        if claim.rank < standings[claim.older]:
            outranked.add((claim.newer, claim.older))
        elif claim.older not in above and not _is_above(above, claim.older, claim.newer):
            above[claim.older] = claim.newer
    return Decisions(
        frozenset((newer, older) for older, newer in above.items()), frozenset(outranked)
    )


def _is_above(above: Mapping[str, str], wanted: str, current: str | None) -> bool:
    """Whether `wanted` hides `current`, directly or through others."""
    while current is not None and current != wanted:
        current = above.get(current)
    return current == wanted


@dataclass(frozen=True, slots=True)
class TopicValue:
    """A visible value of a topic. `place` is the project and the topic, `order` the time and the name."""

    name: str
    place: tuple[object, ...]
    order: tuple[object, ...]
    device: str
    authority: int
    standing: int
    pinned_by: int


def decide_topics(
    values: Sequence[TopicValue], settled: frozenset[frozenset[str]]
) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """(newer, older) of values that hide one of another device, and of those that may not and contradict it."""
    hidden: set[tuple[str, str]] = set()
    contradicting: set[tuple[str, str]] = set()
    places: dict[tuple[object, ...], list[TopicValue]] = {}
    for value in values:
        places.setdefault(value.place, []).append(value)
    for same in places.values():
        staying: list[TopicValue] = []
        for one in sorted(same, key=lambda value: value.order, reverse=True):
            rivals = [
                newer for newer in staying
                if newer.device != one.device and frozenset((newer.name, one.name)) not in settled
            ]  # fmt: skip
            above = next((newer for newer in rivals if _may_replace(newer, one)), None)
            if above is not None:
                hidden.add((above.name, one.name))
                continue
            contradicting.update((newer.name, one.name) for newer in rivals[:1])
            staying.append(one)
    return hidden, contradicting


def _may_replace(newer: TopicValue, older: TopicValue) -> bool:
    return older.pinned_by < Authority.USER_PROMPT.code and newer.authority >= older.standing

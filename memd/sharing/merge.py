"""Decide, without I/O, which version of a record holds and which memory hides which.

Both are functions of all that is known, whatever the order in which it was learned, and whatever was derived
from a part of it before, on whichever device.

The value of a topic is the one that was said last, as in one vault: all values that are known, hidden ones too, are
replayed in order of time, each hiding what is visible when it is said, unless a greater voice, a pin of that time, a
judgment or a retraction is against it. What loses only because a greater voice was not known becomes a contradiction.
"""

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memd.belief.changes import CHANGED_VALUE_RULE
from memd.belief.supersede import NEAR_DUPLICATE_RULE, SAID_AGAIN_RULE, TOPIC_KEY_RULE
from memd.models import Authority
from memd.sharing.records import Stamp
from memd.store.judgments import JUDGED_RULE
from memd.text import digest

OUTRANKED = "a greater voice said the other elsewhere"
OTHER_VALUE = "another value of the same topic, said on another device"
_RULES_OF_RETURN = frozenset(
    {NEAR_DUPLICATE_RULE, JUDGED_RULE, SAID_AGAIN_RULE, CHANGED_VALUE_RULE}
)
"""Rules after which only one of the two holds: the one that was said last."""


def hash_value(value: object) -> str:
    """Return by what two values compare that have one stamp, as of a device that lost its memory: any order will do."""
    return digest(json.dumps(value, sort_keys=True, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class Value:
    """A memory as a value: the fields that decide which one hides the other. Times are UTC milliseconds."""

    name: str
    authority: int
    """As Authority has it; a record's rank is its tenth."""
    first_at: int
    said_at: int
    """When it was said last by an authority that may: of two values of a topic the one said last holds."""
    noted_at: int = 0
    """The same by the clock of its record, which is never before what its device knew; 0 of what only events say."""
    place: tuple[object, ...] | None = None
    """Project, author and topic; None of what has no topic."""
    pinned_by: int = 0
    pinned_at: int = 0
    is_edit: bool = False
    """Whether it rewords a former version, instead of giving the topic another value."""

    def standing_at(self, at: int) -> int:
        """Return its authority, by its speaker or its pin, when another value was stated."""
        return max(self.authority, self.pinned_by if self.pinned_at <= at else 0)

    def may_hide(self, older: "Value", at: int) -> bool:
        """Return whether stating this may hide another value."""
        is_pinned = older.pinned_at <= at and older.pinned_by >= Authority.USER_PROMPT
        return not is_pinned and self.authority >= older.standing_at(at)


Pair = tuple[str, str]
"""(newer, older)"""


@dataclass(frozen=True, slots=True)
class Claim:
    """One memory is said to hide another. `strength` orders claims: rank, stamp, names."""

    newer: str
    older: str
    rank: int
    strength: tuple[object, ...]
    rule: str = ""
    at: int = 0
    noted_at: int = 0
    """By the clock of its record, which is not before those of the two memories as its device knew them."""

    @property
    def pair(self) -> Pair:
        """(newer, older)."""
        return self.newer, self.older


@dataclass(frozen=True, slots=True)
class Knowledge:
    """All statements on values and pairs of them, whatever was decided on them before and where."""

    values: Mapping[str, Value]
    claims: Sequence[Claim] = ()
    retracted: Mapping[Pair, int] = field(default_factory=dict)
    """Retracted claim → when."""
    refused: Mapping[Pair, int] = field(default_factory=dict)
    """Pair of a topic's values that contradict each other, because the newer was no greater authority → when."""
    separated: frozenset[frozenset[str]] = frozenset()
    """Pairs that were judged to hold beside each other."""
    directed: Mapping[frozenset[str], str] = field(default_factory=dict)
    """Pair that was judged → the memory that hides the other."""
    shown: Mapping[str, int] = field(default_factory=dict)
    """Memory whose hiding was retracted → when; only a later statement hides it again."""
    rewordings: Container[str] = frozenset()
    """Edits of versions that are known: they hold in the place of those, and replace nothing else."""
    order: Mapping[str, tuple[int, int, str]] = field(default_factory=dict)
    """Where a value stands among those of its topic."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """The supersessions that hold."""

    holding: frozenset[Pair]
    """Those that somebody said."""
    derived: frozenset[Pair]
    """Those that follow from the values of one topic."""
    outranked: frozenset[Pair]
    """Pairs that contradict each other, because the greater authority was not known where the other spoke."""
    rivals: frozenset[Pair]
    """The same of values of one topic."""


def decide(known: Knowledge) -> Decisions:
    """Decide which memory hides which, as a single vault would that received all statements in order of time."""
    known = replace(known, values=_date_repeated_edits(known))
    claims, directed = _weigh_repetitions(known)
    topical = [one for one in claims if _is_of_topic(known, one)]
    said = {one.pair: one.noted_at for one in topical}
    above: dict[str, str] = {}
    outranked = _choose_claims(known, [c for c in claims if c.pair not in said], directed, above)
    known = replace(
        known, directed=directed, shown=_find_shown(known), rewordings=_find_rewordings(known),
        order=_order_values(known.values, topical),
    )  # fmt: skip
    hidden, rivals = _replay_topics(known, said)
    for newer, older in sorted(hidden, key=lambda pair: known.order[pair[0]], reverse=True):
        if older not in above:
            _hide_by_topic(known, newer, older, said, above)
    for newer, older in _find_rival_edits(known):
        if older not in above and not _is_above(above, older, newer):
            above[older] = newer
    pairs = {(newer, older) for older, newer in above.items()}
    spoken = pairs & {one.pair for one in known.claims}
    return Decisions(
        frozenset(spoken), frozenset(pairs - spoken), frozenset(outranked),
        frozenset(pair for pair in rivals if above.keys().isdisjoint(pair)),
    )  # fmt: skip


def _date_repeated_edits(known: Knowledge) -> dict[str, Value]:
    """Return the values, dating an edit to when the version that it rewords was last stated before it."""
    values = dict(known.values)
    for claim in sorted(known.claims, key=lambda one: one.strength[1:]):
        edit, former = values[claim.newer], values[claim.older]
        is_edit = edit.is_edit and edit.place == former.place
        if is_edit and edit.said_at < former.said_at <= edit.noted_at:
            values[edit.name] = replace(edit, said_at=former.said_at)
    return values


def _weigh_repetitions(known: Knowledge) -> tuple[list[Claim], dict[frozenset[str], str]]:
    """The claims and directed judgments without those that ended because the older memory was said again.

    Where the rule lets only one of the two hold, the older one hides the newer from then on.
    """
    claims, directed = [], dict(known.directed)
    for claim in known.claims:
        newer, older = known.values[claim.newer], known.values[claim.older]
        if claim.rule != JUDGED_RULE and known.retracted.get(claim.pair[::-1], -1) > claim.noted_at:
            continue  # somebody has let both stand
        if older.noted_at <= claim.noted_at or (
            claim.rule == JUDGED_RULE and older.authority < _read_authority(known, claim)
        ):
            claims.append(claim)
            continue
        may_return = older.may_hide(newer, older.said_at)
        if claim.rule == NEAR_DUPLICATE_RULE and not may_return:
            claims.append(claim)
        elif claim.rule in _RULES_OF_RETURN:
            directed.pop(frozenset(claim.pair), None)
            rank = older.authority // 10
            strength = rank, Stamp(older.said_at, 0, ""), claim.older, claim.newer
            claims.append(
                Claim(*claim.pair[::-1], rank, strength, "", older.said_at, older.noted_at)
            )
    return claims, directed


def _read_authority(known: Knowledge, claim: Claim) -> int:
    """The authority of a claim: of who judged, else of the newer memory, which its rank names only roughly."""
    spoken = 0 if claim.rule == JUDGED_RULE else known.values[claim.newer].authority
    return max(claim.rank * 10, spoken)


def _find_rival_edits(known: Knowledge) -> Iterator[Pair]:
    """Yield pairs of edits of one memory, made on devices that did not know of each other: each edit with the last one."""
    edits: dict[str, list[Value]] = {}
    for newer, older in {claim.pair for claim in known.claims} - known.retracted.keys():
        if known.values[newer].is_edit and known.values[newer].place == known.values[older].place:
            edits.setdefault(older, []).append(known.values[newer])
    for rivals in edits.values():
        *others, last = sorted(rivals, key=lambda value: (value.noted_at, known.order[value.name]))
        for value in others:
            names, shown = frozenset((last.name, value.name)), known.shown.get(value.name, -1)
            is_settled = (
                names in known.separated or names in known.directed or shown >= last.said_at
            )
            if not is_settled and last.may_hide(value, last.said_at):
                yield last.name, value.name


def _find_shown(known: Knowledge) -> dict[str, int]:
    """Memory whose hiding was retracted → when. An edit stands where its former version stood."""
    shown: dict[str, int] = {}
    for (_, older), at in known.retracted.items():
        shown[older] = max(at, shown.get(older, at))
    for claim in sorted(known.claims, key=lambda one: one.strength[1:]):
        if known.values[claim.newer].is_edit and claim.older in shown:
            shown.setdefault(claim.newer, shown[claim.older])
    return shown


def _find_rewordings(known: Knowledge) -> set[str]:
    pairs = (*(claim.pair for claim in known.claims), *known.retracted)
    values = ((known.values[newer], known.values[older]) for newer, older in pairs)
    return {new.name for new, old in values if new.is_edit and new.place == old.place}


def _order_values(
    values: Mapping[str, Value], claims: Iterable[Claim]
) -> dict[str, tuple[int, int, str]]:
    """Order values by when they were stated; a device that stated one to replace another knew that it was later."""
    order = {value.name: (value.said_at, 0, value.name) for value in values.values()}
    for claim in sorted(claims, key=lambda one: one.strength[1:]):
        if order[claim.newer] < order[claim.older]:
            at, step, _ = order[claim.older]
            order[claim.newer] = at, step + 1, claim.newer
    return order


def _is_of_topic(known: Knowledge, claim: Claim) -> bool:
    """Return whether a claim says no more than that one value of a topic is later than another."""
    places = {known.values[name].place for name in claim.pair}
    return claim.rule == TOPIC_KEY_RULE and len(places) == 1 and None not in places


def _choose_claims(
    known: Knowledge,
    claims: Iterable[Claim],
    directed: Mapping[frozenset[str], str],
    above: dict[str, str],
) -> set[Pair]:
    """Let claims hold: the strongest first, none against a greater authority, a judgment or another.

    A memory is hidden once, and nothing hides itself through others. Returns what a greater authority forbids.
    """
    outranked = set()
    for claim in sorted(claims, key=lambda one: one.strength, reverse=True):
        pair = frozenset(claim.pair)
        if pair in known.separated or directed.get(pair, claim.newer) != claim.newer:
            continue
        if _read_authority(known, claim) < known.values[claim.older].standing_at(claim.at):
            outranked.add(claim.pair)
        elif claim.older not in above and not _is_above(above, claim.older, claim.newer):
            above[claim.older] = claim.newer
    return outranked


def _replay_topics(known: Knowledge, said: Mapping[Pair, int]) -> tuple[set[Pair], set[Pair]]:
    """(values that a newer one hides, values that it may not hide and contradicts), topic by topic.

    Whenever a value is said it hides what is visible then, as `remember` does it in one vault.
    """
    hidden: set[Pair] = set()
    rivals: set[Pair] = set()
    places: dict[tuple[object, ...], list[Value]] = {}
    for value in known.values.values():
        if value.place is not None:
            places.setdefault(value.place, []).append(value)
    for same in places.values():
        if len(same) > 1:
            above, against = _replay_topic(known, said, same)
            hidden.update((newer, older) for older, newer in above.items())
            rivals |= against
    return hidden, rivals


def _replay_topic(
    known: Knowledge, said: Mapping[Pair, int], values: Sequence[Value]
) -> tuple[dict[str, str], set[Pair]]:
    """(value → the one that hides it, values of which the first contradicts the other)."""
    events = [(known.order[value.name], value) for value in values]
    events += [
        ((value.first_at, 0, value.name), value) for value in values
        if value.first_at < value.said_at
    ]  # fmt: skip
    visible: dict[str, Value] = {}
    above: dict[str, str] = {}
    rivals: set[Pair] = set()
    for (at, *_), new in sorted(events, key=lambda event: event[0]):
        visible.pop(new.name, None)
        above.pop(new.name, None)
        rivals -= {pair for pair in rivals if new.name in pair}
        is_rewording = new.name in known.rewordings and at == new.first_at
        for old in list(visible.values()):
            if is_rewording or _stand_apart(known, said, new, old, at):
                continue
            if new.may_hide(old, at):
                above[old.name] = new.name
                del visible[old.name]
            else:
                rivals.add((new.name, old.name))
        visible[new.name] = new
    return above, rivals


def _stand_apart(
    known: Knowledge, said: Mapping[Pair, int], new: Value, old: Value, at: int
) -> bool:
    """Return whether somebody has let the older of two values stand since the newer was stated."""
    pair, names = (new.name, old.name), frozenset((new.name, old.name))
    if names in known.separated or known.directed.get(names, new.name) != new.name:
        return True
    if pair in said:
        return known.shown.get(old.name, -1) >= said[pair]
    if known.refused.get(pair) == at:
        return True  # not what was refused to a lesser authority that said the same later
    settled = known.retracted.get(pair[::-1]), known.shown.get(old.name)
    return any(then is not None and then >= at for then in settled)


def _hide_by_topic(
    known: Knowledge, newer: str, older: str, said: Mapping[Pair, int], above: dict[str, str]
) -> None:
    """Hide a value behind the first value that was said to hide it, else behind the one that replaced it.

    So it stays hidden when a later one is forgotten.
    """
    spoken = [
        name
        for name, behind in said
        if behind == older and known.order[name] > known.order[older]
        and not _stand_apart(
            known, said, known.values[name], known.values[older], known.values[name].said_at
        )
    ]  # fmt: skip
    for name in (*sorted(spoken, key=known.order.__getitem__), newer):
        if not _is_above(above, older, name):
            above[older] = name
            return


def _is_above(above: Mapping[str, str], wanted: str, current: str | None) -> bool:
    """Return whether `wanted` hides `current`, directly or through others."""
    while current is not None and current != wanted:
        current = above.get(current)
    return current == wanted

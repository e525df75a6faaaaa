"""Choose which of a session's candidates are shown within a size budget, and which say the same as another.

Candidates come in groups. Leading groups may use half of the budget before the others start. Then comes all that
stands, each authority in room of its own, the greatest first, so that no number of a lesser authority displaces a greater,
and what teammates and agents say in the room that the user's own words leave:
pinned memories, rules, then the best rated: by recency for their kind, by repetition, by use. Last is the work.
Being shown lifts nothing, or it would keep a memory on top; being shown and not used sinks it among its like.

Titles that say the same are shown once. Two statements under one title that do not state the same are both
shown, each with the words that tell it from the other. Of other memories the one that is shown names the rest.
"""

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from memd.belief.claims import statement_text
from memd.belief.compare import compare
from memd.belief.decide import VALUE_KINDS, are_twins
from memd.belief.notes import show_said, split_note
from memd.belief.polarity import tells_of_others
from memd.models import CLOCK_SKEW_MAX_MS, ORDER_KINDS, UNPROVED_MARK, Authority, Kind
from memd.store import ContextCandidate
from memd.text import content_stems, normalised, one_line, split_sentences

DAY_MS = 86_400_000
TITLES_CACHED = 1_024
"""Titles of which it is kept what they say: the sessions of a project begin with nearly the same."""
_HALF_LIFE_DAYS, _HALF_LIFE_DAYS_RULES = 120.0, 365.0
"""Of whatever stands the newest comes first, a fact or a task as a decision; only rules age more slowly."""
_REPEATS_WEIGHT = _USES_WEIGHT = 0.35
"""What was asked for or said again half a dozen times is told like what is new."""
_IGNORED_WEIGHT = 0.1
"""So much a line sinks for each session that was shown it and did not use it."""
_LEADING_SHARE = 0.5
LINES_MAX = 20
"""Lines at the start of a session."""
_VOICE_SHARE = 0.7
"""What an authority may take of the room that greater ones left, while a lesser one has something to say."""
_TEAMMATES_AUTHORITY = (Authority.AGENT_CALL + Authority.USER_TOLD) / 2
_QUOTED_AUTHORITY = Authority.USER_TOLD - 1
"""Of a refused note, which is told by the sentence of the user's that it quotes: it may be what ends a note that was proved."""
_RULE_KINDS = {Kind.INSTRUCTION, Kind.PREFERENCE}
_STATEMENT_KINDS = VALUE_KINDS | {Kind.TASK}
_NEAR_JACCARD = 0.8
"""Jaccard of the stems of two titles from which they may say the same."""
_NEAR_STEMS_MIN = 4
"""Shorter titles differ in what they are about if they differ in a word."""
_WORDING = frozenset({"tense", "qualifier", "order"})
"""Differences between the titles of two turns that are one of wording: `fix`, `fixed`, `fixed again`."""
_OTHERS_NAMED = 3
_REMARK_CHARACTERS = 80
NO_ROOM = "no room left"
_ENOUGH = "enough of this group are shown"


@dataclass(frozen=True, slots=True)
class CandidateGroup:
    """Candidates under one heading."""

    name: str
    candidates: tuple[ContextCandidate, ...]
    leads: bool = False
    limit: int | None = None
    """How many are shown at most."""
    is_by_time: bool = False
    """Whether the latest come first, and not the best rated."""
    is_ordered: bool = False
    """Whether they stand in their order already."""
    stands: bool = False
    """Whether it holds until it is replaced, and so is told whole if there is room."""
    is_brief: bool = False
    """Whether its lines stay short even if there is room."""


@dataclass(frozen=True, slots=True)
class CandidateChoice:
    """One candidate, whether it is shown, and in words why."""

    candidate: ContextCandidate
    group: str
    is_shown: bool
    why: str


CandidateCost = Callable[[ContextCandidate], int]
HeadingCost = Callable[[str], int]


@dataclass(slots=True)
class _GroupQueue:
    """A group while its candidates are chosen."""

    group: CandidateGroup
    waiting: list[ContextCandidate] = field(default_factory=list)
    chosen: list[ContextCandidate] = field(default_factory=list)
    repeated: list[tuple[ContextCandidate, str]] = field(default_factory=list)
    """Candidates that say what another one says, and why they are left out."""
    used: int = 0

    @property
    def is_full(self) -> bool:
        """Return whether it shows as many as it may."""
        return self.group.limit is not None and len(self.chosen) >= self.group.limit


def choose_candidates(
    groups: Sequence[CandidateGroup],
    budget: int,
    now: int,
    cost: CandidateCost,
    heading_cost: HeadingCost,
    spared: int = 0,
) -> list[CandidateChoice]:
    """A verdict for every candidate, by group, best first.

    `cost` and `heading_cost` measure a candidate's line and a group's heading in the unit of `budget`, of which brief
    groups leave `spared`.
    A candidate of two groups belongs to the first.
    """
    queues = _queue_candidates(groups, now)
    leading = [queue for queue in queues if queue.group.leads]
    standing = [queue for queue in queues if queue.group.stands]
    brief = [queue for queue in queues if queue.group.is_brief]
    work = [queue for queue in queues if queue not in (*leading, *standing, *brief)]
    room = _TokenBudget(budget, LINES_MAX, cost, heading_cost)
    if leading:
        _fill_budget(leading, room, int(budget * _LEADING_SHARE))
    reserved = sum(room.price(queue, one) for queue in work[:1] for one in queue.waiting[:1])
    _fill_standing(standing, room, reserved, now)
    for queue in standing:
        queue.chosen = _pair_contradictions(queue.chosen)
    _fill_budget([*leading, *work], room)
    _fill_budget(brief, room, room.left - spared)
    return [choice for queue in queues for choice in _list_choices(queue, now)]


def _list_choices(queue: _GroupQueue, now: int) -> Iterator[CandidateChoice]:
    name = queue.group.name
    left_out = _ENOUGH if queue.is_full else NO_ROOM
    for one in queue.chosen:
        yield CandidateChoice(one, name, True, _explain_choice(one, now))
    for one in queue.waiting:
        yield CandidateChoice(one, name, False, left_out)
    for one, why in queue.repeated:
        yield CandidateChoice(one, name, False, why)


def _queue_candidates(groups: Sequence[CandidateGroup], now: int) -> list[_GroupQueue]:
    """Queue each group's candidates in order, once each, without those whose title another one has."""
    queues = [_GroupQueue(group) for group in groups]
    ids: set[int] = set()
    for queue in queues:
        for one in _order_group(queue.group, now):
            if one.id not in ids:
                ids.add(one.id)
                queue.waiting.append(one)
    remarks, repeated = _merge_equal_titles([one for queue in queues for one in queue.waiting])
    for queue in queues:
        queue.repeated = [(one, repeated[one.id]) for one in queue.waiting if one.id in repeated]
        queue.waiting = [
            replace(one, remark=remarks[one.id]) if remarks.get(one.id) else one
            for one in queue.waiting
            if one.id not in repeated
        ]
    return queues


def _order_group(group: CandidateGroup, now: int) -> list[ContextCandidate]:
    if group.is_ordered:
        return list(group.candidates)
    if group.is_by_time:
        return sorted(group.candidates, key=lambda c: (measure_age(c, now), -c.id))
    ordered = sorted(
        group.candidates, key=lambda c: (not c.is_pinned, -rate_candidate(c, now), -c.at, -c.id)
    )
    return _pair_contradictions(ordered)


def _pair_contradictions(ordered: Sequence[ContextCandidate]) -> list[ContextCandidate]:
    """Put both sides of a contradiction next to each other, in the better place of the two."""
    waiting = {one.id: one for one in ordered}
    found: list[ContextCandidate] = []
    for one in ordered:
        sides = [waiting.pop(n) for n in (one.id, *one.contradicted_by) if n in waiting]
        found += _order_sides(sides)
    return found


def _order_sides(sides: Sequence[ContextCandidate]) -> list[ContextCandidate]:
    """Put the greater authority first, but of what the user said, typed or told by an agent, the newest."""
    ids = {side.id for side in sides}

    def measure(one: ContextCandidate) -> tuple[bool, bool, int, int, int]:
        is_his = one.authority >= Authority.USER_TOLD and not one.author
        overruled = 0 if is_his else len(ids.intersection(one.overruled_by))
        return not one.is_pinned, not is_his, overruled, -one.at, -one.id

    return sorted(sides, key=measure)


# ── What says the same ───────────────────────────────────────────────────────────────────────────


def _merge_equal_titles(
    candidates: Iterable[ContextCandidate],
) -> tuple[dict[int, str], dict[int, str]]:
    """Return (id of a kept memory → its difference from the others, id of a repeat → why it is left out)."""
    titles: dict[str, list[ContextCandidate]] = {}
    for one in candidates:
        titles.setdefault(_title_key(one.title), []).append(one)
    remarks: dict[int, str] = {}
    repeated: dict[int, str] = {}
    for equal in titles.values():
        if len(equal) > 1:
            _merge_title(sorted(equal, key=lambda one: -one.authority), remarks, repeated)
    return remarks, repeated


def _merge_title(
    equal: Sequence[ContextCandidate], remarks: dict[int, str], repeated: dict[int, str]
) -> None:
    """Keep the first of those that say the same; `equal` has the greatest speaker first."""
    kept: dict[int, ContextCandidate] = {}
    others: dict[int, list[int]] = {}
    for one in equal:
        twin = next((other for other in kept.values() if _says_the_same(other, one)), None)
        if twin is None:
            kept[one.id] = one
            continue
        is_lesser = one.authority < twin.authority
        greater, same = "a greater speaker says the same", f"says the same as #{twin.id}"
        repeated[one.id] = greater if is_lesser else same
        if not _is_statement(one):
            others.setdefault(twin.id, []).append(one.id)
    for one in kept.values():
        different = next((other for other in kept.values() if other is not one), None)
        own = _find_own_words(one.body, different.body) if different else ""
        named = ", ".join(f"#{number}" for number in others.get(one.id, ())[:_OTHERS_NAMED])
        remarks[one.id] = "; ".join(filter(None, (own, f"also {named}" if named else "")))


@functools.lru_cache(TITLES_CACHED)
def _title_key(title: str) -> str:
    """Return a key that is equal for titles that say the same in a list."""
    return normalised(title) or title


def _is_statement(one: ContextCandidate) -> bool:
    return one.kind in _STATEMENT_KINDS


def _says_the_same(one: ContextCandidate, other: ContextCandidate) -> bool:
    """Return whether one of two memories with equal titles is enough: always, but for statements that differ."""
    if is_told_by_his_words(one) and is_told_by_his_words(other):
        return True
    if not (_is_statement(one) and _is_statement(other)):
        return True
    texts = (statement_text(c.title, c.body) for c in (one, other))
    return compare(*texts).agrees


def _find_own_words(mine: str, other: str) -> str:
    """The first sentence of a body that another one does not have."""
    theirs = f" {normalised(other)} "
    for sentence in split_sentences(mine):
        form = normalised(sentence)
        if form and f" {form} " not in theirs:
            return one_line(sentence, _REMARK_CHARACTERS)
    return ""


@dataclass(slots=True)
class _ShownTitles:
    """Titles chosen so far, to find titles that nearly say the same."""

    shown: list[tuple[frozenset[str], ContextCandidate]] = field(default_factory=list)

    def add(self, one: ContextCandidate) -> ContextCandidate | None:
        """Add this title, or return one here that says nearly the same."""
        stems = _list_title_stems(one.title)
        for others, other in self.shown:
            is_near = (
                _are_near(stems, others)
                and _titles_agree(other, one)
                and _says_the_same(other, one)
            )
            if is_near or _are_twins(other, one):
                return other
        self.shown.append((stems, one))
        return None


def _are_twins(one: ContextCandidate, other: ContextCandidate) -> bool:
    is_noted = show_said(one.body) or show_said(other.body)
    return bool(is_noted) and are_twins((one.title, one.body), (other.title, other.body))


def _titles_agree(one: ContextCandidate, other: ContextCandidate) -> bool:
    difference = compare(one.title, other.title)
    is_said = _is_statement(one) or _is_statement(other)
    return difference.agrees or (not is_said and _WORDING.issuperset(difference.aspects))


@functools.lru_cache(TITLES_CACHED)
def _list_title_stems(title: str) -> frozenset[str]:
    return frozenset(content_stems(title))


def _are_near(one: frozenset[str], other: frozenset[str]) -> bool:
    shared = len(one & other)
    is_long = min(len(one), len(other)) >= _NEAR_STEMS_MIN
    return is_long and shared >= _NEAR_JACCARD * len(one | other)


# ── What fits ────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _TokenBudget:
    """The space left on the page, and the lines on it."""

    left: int
    lines: int
    cost: CandidateCost
    heading_cost: HeadingCost
    titles: _ShownTitles = field(default_factory=_ShownTitles)

    def price(self, queue: _GroupQueue, one: ContextCandidate) -> int:
        """Return what a line takes, with the heading if it is the first under it."""
        return self.cost(one) + (0 if queue.chosen else self.heading_cost(queue.group.name))

    def admit(self, queue: _GroupQueue, one: ContextCandidate, limit: int) -> int | None:
        """Put a line on the page and return its price, 0 if another says the same; None without room."""
        # A line must be written to know its price: none is where there is no room for any.
        if self.lines <= 0 or queue.is_full or (price := self.price(queue, one)) > limit:
            return None
        queue.waiting.remove(one)
        twin = self.titles.add(one)
        if twin is not None:
            queue.repeated.append((one, f"says nearly the same as #{twin.id}"))
            return 0
        queue.chosen.append(one)
        queue.used += price
        self.left -= price
        self.lines -= 1
        return price


def _fill_standing(
    queues: Sequence[_GroupQueue], room: _TokenBudget, reserved: int, now: int
) -> None:
    """Show what stands: what the user typed, entered, proved or was quoted with first, then what only others say."""
    waiting = [(one, queue) for queue in queues for one in queue.waiting]
    waiting.sort(key=lambda pair: _rank_standing(pair[0], now))
    waiting = _follow_contradictions(waiting)
    own = [pair for pair in waiting if _shown_authority(pair[0]) >= _QUOTED_AUTHORITY]
    _fill_voices(own, room, reserved)
    _fill_voices([pair for pair in waiting if pair not in own], room, reserved)


def _fill_voices(
    waiting: Sequence[tuple[ContextCandidate, _GroupQueue]], room: _TokenBudget, reserved: int
) -> None:
    """Show each authority in its own room, the greatest first, then what is left over to all in order."""
    voices: dict[float, list[tuple[ContextCandidate, _GroupQueue]]] = {}
    for one, queue in waiting:
        voices.setdefault(_shown_authority(one), []).append((one, queue))
    ordered = [voices[voice] for voice in sorted(voices, reverse=True)]
    for number, said in enumerate(ordered):
        is_awaited = any(_is_noted(one) for lesser in ordered[number + 1 :] for one, _ in lesser)
        share = _VOICE_SHARE if is_awaited else 1.0
        own, lines = (room.left - reserved) * share, room.lines * share
        for one, queue in said:
            price = room.admit(queue, one, int(own)) if lines >= 1 else None
            own, lines = own - (price or 0), lines - bool(price)
    for one, queue in waiting:
        if room.lines > 0 and one in queue.waiting:
            room.admit(queue, one, room.left - reserved)


def _is_noted(one: ContextCandidate) -> bool:
    """Return whether it was deliberately noted or pinned, and not distilled from a turn by a rule."""
    return one.episode is None or one.is_pinned


def _rank_standing(one: ContextCandidate, now: int) -> tuple[float, ...]:
    """Return a key that is less for what is shown first: greater authority, pinned, rules, on the branch, best rated."""
    return (
        -_shown_authority(one),
        not one.is_pinned,
        one.kind not in _RULE_KINDS,
        not one.is_of_branch,
        -rate_candidate(one, now),
        -one.at,
        -one.id,
    )


def _shown_authority(one: ContextCandidate) -> float:
    """Return the authority it is shown under: a pin, the user's words, their echo in a note, a teammate's, an agent's."""
    if one.is_pinned_by_user:
        return float(Authority.USER_HAND + 1)
    if is_told_by_his_words(one):
        return float(_QUOTED_AUTHORITY)
    return min(float(one.authority), _TEAMMATES_AUTHORITY) if one.author else float(one.authority)


def is_told_by_his_words(one: ContextCandidate) -> bool:
    """Return whether a line is the sentence of the user's that a refused note quotes."""
    return UNPROVED_MARK in one.body and bool(split_note(one.body).heard)


def is_his_statement(one: ContextCandidate) -> bool:
    """Return whether a refused rule or decision is told by a sentence of the user's that does not tell what others say."""
    heard = split_note(one.body).heard if UNPROVED_MARK in one.body else ""
    return bool(heard) and one.kind in ORDER_KINDS and not tells_of_others(heard)


def tell_heard(one: ContextCandidate) -> tuple[ContextCandidate, str]:
    """Return an unproved note with the words of the user that it quotes in its place, and why it is not told at all."""
    if one.authority >= Authority.USER_TOLD or UNPROVED_MARK not in one.body or one.is_pinned:
        return one, ""
    note = split_note(one.body)
    refuted = f"what it quotes is not the user's word: {note.refuted}" if note.refuted else ""
    if not note.heard:
        return one, refuted
    voice = Authority.USER_TOLD if is_his_statement(one) else one.authority
    return replace(one, title=f"he said “{note.heard}”", authority=voice), refuted


def _follow_contradictions(
    ordered: Sequence[tuple[ContextCandidate, _GroupQueue]],
) -> list[tuple[ContextCandidate, _GroupQueue]]:
    """Put the best contradiction of a statement right behind it; the others keep their places."""
    waiting = {one.id: (one, queue) for one, queue in ordered}
    found: list[tuple[ContextCandidate, _GroupQueue]] = []
    for one, _ in ordered:
        if one.id in waiting:
            found.append(waiting.pop(one.id))
            if one.contradicted_by:
                other = next((n for n in waiting if n in one.contradicted_by), None)
                found += [] if other is None else [waiting.pop(other)]
    return found


def _fill_budget(
    queues: Sequence[_GroupQueue], room: _TokenBudget, budget: int | None = None
) -> None:
    """Let the group that has used least add its next, until nothing fits."""
    left = room.left if budget is None else budget
    open_queues = [queue for queue in queues if queue.waiting and not queue.is_full]
    while open_queues:
        queue = min(open_queues, key=lambda one: one.used)
        price = room.admit(queue, queue.waiting[0], left)
        left -= price or 0
        if price is None or not queue.waiting or queue.is_full:
            open_queues = [one for one in open_queues if one is not queue]


def rate_candidate(candidate: ContextCandidate, now: int) -> float:
    """Rate a candidate within its group; recency is 1 now and ½ after a half-life."""
    half_life_days = _HALF_LIFE_DAYS_RULES if candidate.kind in _RULE_KINDS else _HALF_LIFE_DAYS
    return float(
        0.5 ** (measure_age(candidate, now) / DAY_MS / half_life_days)
        + _REPEATS_WEIGHT * math.log2(1 + max(candidate.repeats, 0))
        + _USES_WEIGHT * math.log2(1 + candidate.uses)
        - _IGNORED_WEIGHT * math.log2(1 + candidate.ignored)
    )


def measure_age(candidate: ContextCandidate, now: int) -> int:
    """Measure an age in ms. A memory dated in the future is as old as it lies ahead: else it would lead for years."""
    elapsed = now - candidate.at
    return -elapsed if elapsed <= -CLOCK_SKEW_MAX_MS else max(elapsed, 0)


def _explain_choice(candidate: ContextCandidate, now: int) -> str:
    days = measure_age(candidate, now) // DAY_MS
    parts = ["pinned"] if candidate.is_pinned else []
    parts.append("today" if days == 0 else f"{days} d old")
    if candidate.repeats > 0:
        parts.append(f"said again {candidate.repeats}×")
    if candidate.uses:
        parts.append(f"used {candidate.uses}×")
    if candidate.ignored:
        parts.append(f"not used in the last {candidate.ignored} sessions that were shown it")
    return ", ".join(parts)

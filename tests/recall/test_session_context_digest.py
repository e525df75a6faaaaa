from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memd.models import Kind
from memd.recall.session_context import (
    DAY_MS,
    CandidateGroup,
    choose_candidates,
    rate_candidate,
)
from memd.store.types import ContextCandidate

NOW = 1_800_000_000_000


def card(number, *, days=0.0, kind=Kind.DECISION, title=None, **more):
    at = NOW - int(days * DAY_MS)
    return ContextCandidate(number, 1, None, kind, title or f"card {number}", at, at, **more)


def group(name, *cards, leads=False):
    return CandidateGroup(name, cards, leads)


def chosen(groups, room, cost=10, heading=0):
    found = choose_candidates(groups, room, NOW, lambda _: cost, lambda _: heading)
    return [c.candidate.id for c in found if c.is_shown]


def test_the_recent_the_repeated_and_the_asked_for_are_worth_more():
    plain = card(1, days=100)
    assert rate_candidate(card(1), NOW) == 1.0
    assert rate_candidate(plain, NOW) < rate_candidate(card(1, days=10), NOW)
    assert rate_candidate(plain, NOW) < rate_candidate(replace(plain, repeats=3), NOW)
    assert rate_candidate(plain, NOW) < rate_candidate(replace(plain, uses=3), NOW)
    assert rate_candidate(replace(plain, kind=Kind.INSTRUCTION), NOW) > rate_candidate(
        plain, NOW
    )
    assert rate_candidate(card(1, days=-5), NOW) == 1.0


def test_what_a_wrong_clock_dated_ahead_does_not_lead_until_then():
    ahead = card(1, days=-4_000)
    assert rate_candidate(ahead, NOW) == rate_candidate(card(1, days=4_000), NOW)
    assert chosen([group("a", ahead, card(2, days=3))], 10) == [2]


def test_the_pinned_come_first():
    old = card(1, days=900, is_pinned=True)
    assert chosen([group("a", card(2), old)], 10) == [1]
    assert chosen([group("a", card(2), old)], 20) == [1, 2]


def test_every_group_gets_its_share_before_one_takes_all():
    many = [card(n, days=n) for n in range(1, 50)]
    few = [card(n, days=n) for n in range(100, 103)]
    found = chosen([group("many", *many), group("few", *few)], 80)
    assert sorted(n for n in found if n >= 100) == [100, 101, 102]
    assert len(found) == 8


def test_what_leads_gets_half_before_the_others_begin():
    lost = [card(n, days=n) for n in range(1, 30)]
    rest = [card(n, days=n) for n in range(100, 130)]
    found = chosen([group("lost", *lost, leads=True), group("rest", *rest)], 100)
    assert [n for n in found if n < 100] == [1, 2, 3, 4, 5]
    assert len(found) == 10


def test_a_heading_takes_room_once():
    assert chosen([group("a", card(1), card(2, days=1))], 25, heading=5) == [1, 2]
    assert chosen([group("a", card(1), card(2, days=1))], 24, heading=5) == [1]
    assert chosen([group("a", card(1))], 14, heading=5) == []


def test_what_two_groups_have_stands_in_the_first():
    found = choose_candidates(
        [group("a", card(1)), group("b", card(1))], 99, NOW, lambda _: 1, lambda _: 0
    )
    assert [(c.group, c.is_shown) for c in found] == [("a", True)]


def test_what_says_the_same_is_told_once():
    cards = card(1, title="It FAILS"), card(2, days=1, title="it  fails!")
    found = choose_candidates([group("a", *cards)], 99, NOW, lambda _: 1, lambda _: 0)
    assert {c.candidate.id: c.why for c in found} == {1: "today", 2: "says the same as #1"}


def test_a_verdict_tells_why():
    told = card(1, days=3, is_pinned=True, repeats=2, uses=4)
    (one,) = choose_candidates([group("a", told)], 99, NOW, lambda _: 1, lambda _: 0)
    assert one.why == "pinned, 3 d old, said again 2×, asked for 4×"
    (one,) = choose_candidates([group("a", told)], 0, NOW, lambda _: 1, lambda _: 0)
    assert (one.is_shown, one.why) == (False, "no room left")


@given(
    st.lists(st.lists(st.integers(1, 60), max_size=12), max_size=5),
    st.integers(0, 300), st.integers(0, 30), st.booleans(),
)  # fmt: skip
def test_the_room_is_never_exceeded_and_nothing_is_lost(sizes, room, heading, leads):
    costs, groups = {}, []
    for place, group_sizes in enumerate(sizes):
        numbers = range(100 * place, 100 * place + len(group_sizes))
        costs |= dict(zip(numbers, group_sizes, strict=True))
        groups.append(
            CandidateGroup(str(place), tuple(card(n) for n in numbers), leads and place == 1)
        )
    found = choose_candidates(groups, room, NOW, lambda c: costs[c.id], lambda _: heading)
    assert sorted(c.candidate.id for c in found) == sorted(costs)
    used = sum(costs[c.candidate.id] for c in found if c.is_shown)
    used += heading * len({c.group for c in found if c.is_shown})
    assert used <= room

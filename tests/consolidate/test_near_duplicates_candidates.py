import pytest

from memd.consolidate.near_duplicates import (
    CANDIDATES_MAX,
    LEARNED_COSINE_MIN,
    Neighbour,
    select_candidates,
)
from memd.models import Kind
from tests.factories import AT, make_summary

NOW = AT + 1


def said(text, number=1, *, kind=Kind.FACT, **more):
    return make_summary(text, text, id=number, kind=kind, **more)


MINE = said("The retry limit of the gateway is 5")


def ask(*near, judged=(), mine=MINE):
    return select_candidates(mine, near, judged, NOW)


def test_what_is_alike_is_told_with_what_differs():
    (one,) = ask(Neighbour(said("The retry limit of the gateway is 3", 2), 0.8))
    assert (one.id, one.kind, one.likeness) == (2, Kind.FACT, pytest.approx(0.8))
    assert one.finding == "number: 3 → 5"


def test_shared_words_are_enough_and_so_is_a_learned_model():
    assert ask(Neighbour(said("Its retry limit of the gateway is small", 2), 0.5))
    other = said("Requests are attempted again at most thrice", 2)
    assert not ask(Neighbour(other, 0.1, LEARNED_COSINE_MIN - 0.01))
    assert ask(Neighbour(other, 0.1, LEARNED_COSINE_MIN))


def test_what_has_little_in_common_is_not_asked_about():
    assert not ask(Neighbour(said("The docs are built with Sphinx", 2), 0.46))


def test_what_a_rule_decides_is_not_asked_about():
    assert not ask(Neighbour(said("the retry limit, of the gateway: is 5!", 2), 0.99))
    assert not ask(
        Neighbour(said("The retry limit of the gateway is 3", 2, superseded_by=7), 0.9)
    )
    assert not ask(
        Neighbour(said("The retry limit of the gateway is 3", 2, expires_at=NOW), 0.9)
    )
    assert not ask(Neighbour(MINE, 1.0))


def test_what_somebody_has_judged_is_not_asked_about_again():
    assert not ask(Neighbour(said("The retry limit of the gateway is 3", 2), 0.9), judged={2})


def test_what_happened_in_a_turn_competes_with_nothing():
    text = "The retry limit of the gateway is 3"
    assert not ask(Neighbour(said(text, 2, kind=Kind.CHANGE), 0.9))
    change = said(text, 1, kind=Kind.CHANGE)
    assert not ask(Neighbour(said("The retry limit of the gateway is 5", 2), 0.9), mine=change)


def test_only_the_most_alike_few_are_told_best_first():
    near = [
        Neighbour(said(f"The retry limit of the gateway is {n}", n), n / 100)
        for n in range(70, 80)
    ]
    found = ask(*near)
    assert len(found) == CANDIDATES_MAX
    assert [one.likeness for one in found] == sorted((o.likeness for o in found), reverse=True)

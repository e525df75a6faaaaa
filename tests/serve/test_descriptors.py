import resource

import pytest

from memd.serve import descriptors


@pytest.fixture
def limits(monkeypatch):
    """The limits of a process that may be changed without changing ours."""
    held = {"now": (256, 4_096)}
    monkeypatch.setattr(descriptors.resource, "getrlimit", lambda _: held["now"])

    def change(_, wanted):
        if wanted[0] > held.get("most", wanted[0]):
            raise ValueError
        held["now"] = wanted

    monkeypatch.setattr(descriptors.resource, "setrlimit", change)
    return held


def test_the_limit_is_raised_for_all_connections_and_the_house(limits):
    assert descriptors.provide(1_024) == 1_024
    assert limits["now"] == (1_024 + descriptors.RESERVE, 4_096)


def test_who_may_not_have_so_many_lets_fewer_in(limits):
    limits["now"] = (256, 1_000)
    assert descriptors.provide(1_024) == 1_000 - descriptors.RESERVE


def test_a_system_that_refuses_what_it_promised_is_believed(limits):
    limits["most"] = 512
    assert descriptors.provide(1_024) == 256 - descriptors.RESERVE


@pytest.mark.parametrize("soft", [10_000, resource.RLIM_INFINITY])
def test_a_limit_that_is_high_enough_is_left_alone(limits, soft):
    limits["now"] = (soft, soft)
    assert descriptors.provide(1_024) == 1_024
    assert limits["now"] == (soft, soft)

import io
import json

import pytest

from memd.consolidate import sifting


@pytest.fixture
def told():
    """What the process answers to these lines, and when its alarm was set."""

    def told(*said):
        out, armed = io.StringIO(), []
        sifting.main((json.dumps(one) for one in said), out, armed.append)
        assert armed == [True, False] * len(said)
        return [json.loads(line) for line in out.getvalue().splitlines()]

    return told


def test_a_pattern_is_answered_with_nothing_and_values_with_what_is_left_of_them(told):
    values = ["a zebra", {"zebra": [1, None, "zebras"]}, 2.5]
    put = sifting.PUT_THERE
    assert told("zebra", values, []) == [
        None,
        [f"a {put}", {put: [1, None, f"{put}s"]}, 2.5],
        [],
    ]


@pytest.mark.parametrize("pattern", ["(", "x*", "(?P<", "a{99999999999999}"])
def test_a_pattern_that_cannot_be_meant_is_answered_with_why(told, pattern):
    assert told(pattern)[0]


def test_a_lone_half_of_a_character_goes_through_as_it_is(told):
    assert told("x", ["\ud83dx"])[1] == [f"\ud83d{sifting.PUT_THERE}"]

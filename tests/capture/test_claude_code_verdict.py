"""A verdict is its reason."""

from memd.capture.claude_code import Ignored, Refused


def test_ignored_and_refused_are_never_the_same():
    assert Ignored("x") != Refused("x")
    assert Ignored("x") == Ignored("x")

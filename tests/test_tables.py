"""A test of a table fails if one of its rows does, and tells which."""

import inspect

import pytest

from tests.tables import every_row


def test_each_row_that_fails_is_told_and_the_others_run():
    seen = []

    @every_row("one, other", [(1, 1), (1, 2), pytest.param(3, 4, id="last"), (5, 5)])
    def check(one, other):
        seen.append(one)
        assert one == other

    with pytest.raises(BaseExceptionGroup, match="2 of 4 rows fail") as caught:
        check()
    assert seen == [1, 1, 3, 5]
    assert [error.__notes__ for error in caught.value.exceptions] == [
        ["in the row (1, 2)"],
        ["in the row 'last'"],
    ]


def test_two_tables_are_tried_in_all_combinations_and_what_is_no_column_stays_a_fixture():
    seen = []

    @every_row("a", [1, 2], ids=["x", "y"])
    @every_row("b", [3, 4])
    def check(a, b, fixture):
        seen.append((a, b, fixture))

    assert list(inspect.signature(check).parameters) == ["fixture"]
    check(fixture=0)
    assert seen == [(1, 3, 0), (1, 4, 0), (2, 3, 0), (2, 4, 0)]


def test_what_ought_to_be_raised_and_is_not_fails_the_row():
    @every_row("value", [0])
    def check(value):
        with pytest.raises(ZeroDivisionError):
            assert value == 0

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        check()

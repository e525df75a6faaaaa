import pytest
from pydantic import ValidationError

from memd.models import Kind
from memd.serve import arguments as ask


def test_control_calls_reach_every_project_by_id_and_agents_only_theirs():
    assert ask.Get(ids=[1]).project == "current"
    assert ask.ControlGet(ids=[1]).project == "all"


def test_a_kind_may_come_as_text_even_where_types_are_strict():
    assert ask.Search.model_validate({"kinds": ["fix"]}, strict=True).kinds == [Kind.FIX]


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": "5"},
        {"k": True},
        {"k": 0},
        {"ids": []},
        {"since": True},
        {"offset": -1},
        {"new": 1},
    ],
)
def test_what_does_not_fit_is_refused(wrong):
    with pytest.raises(ValidationError):
        ask.ControlSearch.model_validate(wrong, strict=True)


def test_a_directory_may_be_as_long_as_a_system_takes():
    assert ask.Captured(client="c", payload={}, directory="/" + "a" * 4_000)
    with pytest.raises(ValidationError):
        ask.Captured(client="c", payload={}, directory="/" + "a" * 4_096)

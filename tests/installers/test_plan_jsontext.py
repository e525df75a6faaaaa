import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.errors import BadRequest
from memd.installers import plan

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip
manners = st.sampled_from(
    [
        {},
        {"indent": 2},
        {"indent": 4, "ensure_ascii": False},
        {"indent": "\t"},
        {"separators": (",", ":")},
    ]
)


@given(values, values, manners, st.sampled_from(["", "\n", "\r\n"]))
def test_whatever_is_written_says_what_it_should(old, new, manner, end):
    text = json.dumps(old, **manner) + end
    changed = plan.edit(text, new)
    assert json.dumps(plan.parse(changed)) == json.dumps(new)
    assert changed.endswith(end)
    assert plan.edit(text, old) == text


@given(st.dictionaries(st.text(max_size=3), values, min_size=1, max_size=4), values, manners)
def test_what_is_added_and_taken_away_again_leaves_no_trace(old, added, manner):
    text = json.dumps(old, **manner)
    name = "added"
    assert plan.edit(plan.edit(text, {**old, name: added}), old) == text


@given(st.lists(values, min_size=1, max_size=4), values, manners)
def test_the_same_holds_for_the_end_of_a_list(old, added, manner):
    text = json.dumps(old, **manner)
    assert plan.edit(plan.edit(text, [*old, added]), old) == text


def test_hand_made_layout_stays_where_nothing_changes():
    text = '{\r\n\t"a" : [1.0,  2],\r\n\t"b": {"c": "\\u00e9"} ,\r\n\t"d": 1e2\r\n}'
    value = {**json.loads(text), "e": {"f": [True]}}
    assert plan.edit(text, value) == text[:-3] + (
        ',\r\n\t"e": {\r\n\t\t"f": [\r\n\t\t\ttrue\r\n\t\t]\r\n\t}\r\n}'
    )


def test_new_members_stand_like_their_neighbours():
    text = '{\n    "a": [\n        {"x": 1}\n    ],\n    "b": [1, 2]\n}\n'
    value = {"a": [{"x": 1}, {"y": 2}], "b": [1, 2, 3]}
    assert plan.edit(text, value) == (
        '{\n    "a": [\n        {"x": 1},\n        {\n            "y": 2\n        }\n    ],\n'
        '    "b": [1, 2, 3]\n}\n'
    )


def test_what_was_one_line_stays_one_line():
    assert plan.edit('{"a":1}', {"a": 1, "b": {"c": []}}) == '{"a":1, "b": {"c": []}}'


def test_numbers_and_truth_are_not_mixed_up():
    assert plan.edit("[1, true, 1.0]", [True, 1, 1]) == "[true, 1, 1]"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n  "a": 1,\n  // mine\n}', "line 3, column 3: a comment"),
        ("[1 /* one */]", "line 1, column 4: a comment"),
        ('{"a": 1,}', "line 1, column"),
        ("", "line 1, column 1"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', 'the key "c" stands twice'),
        ("[NaN]", "NaN is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("\ufeff{}", "line 1, column 1"),
    ],
)
def test_what_is_not_plain_json_is_refused_with_its_place(text, said):
    with pytest.raises(BadRequest, match=said):
        plan.edit(text, {})
    with pytest.raises(BadRequest, match=said):
        plan.parse(text)

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.errors import BadRequest
from memd.installers import file_changes
from memd.installers.file_changes import FileChange, JsonFile


@pytest.fixture
def path(tmp_path):
    return tmp_path / "settings.json"


def added(value):
    return {**value, "b": 2}


def test_a_missing_and_an_empty_file_say_nothing_yet(path):
    assert JsonFile.read(path).change(added) == FileChange(path, None, b'{\n  "b": 2\n}\n')
    path.write_bytes(b" \n")
    assert JsonFile.read(path).change(added).after == b'{\n  "b": 2\n}\n'


def test_only_what_changes_is_changed(path):
    before = b'{ "a":  [1,2] }'
    path.write_bytes(before)
    change = JsonFile.read(path).change(added)
    assert (change.before, change.after) == (before, b'{ "a":  [1,2], "b": 2 }')
    assert JsonFile.read(path).change(dict) == FileChange(path, before, before)


def test_the_mark_that_an_editor_put_before_the_text_stays(path):
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert JsonFile.read(path).value == {"a": 1}
    assert JsonFile.read(path).change(added).after == b'\xef\xbb\xbf{"a": 1, "b": 2}'
    path.write_bytes(b"\xef\xbb\xbf")
    assert JsonFile.read(path).value == {}


def test_a_file_that_would_say_nothing_goes(path):
    path.write_bytes(b'{"a": 1}')
    assert JsonFile.read(path).change(lambda _: {}).after is None


def test_a_file_that_says_nothing_and_stays_so_is_not_touched(path):
    path.write_bytes(b"{}")
    assert not JsonFile.read(path).change(dict).is_needed


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{\n "a": 1,\n // no\n}', "line 3, column 2: a comment"),
        (b'{"a": \xff}', "byte 6 is not UTF-8"),
        (b"[]", "holds no object"),
        (b"{", "line 1, column 2"),
    ],
)
def test_a_broken_file_is_named_and_left_alone(path, content, said):
    path.write_bytes(content)
    with pytest.raises(BadRequest, match=said) as refused:
        JsonFile.read(path)
    assert refused.value.message.startswith(f"{path}: ")
    assert "Nothing was changed" in refused.value.message
    assert path.read_bytes() == content


def test_what_a_change_cannot_deal_with_is_told_with_the_file_s_name(path):
    def refuse(_):
        raise BadRequest("its `a` is odd")

    path.write_bytes(b"{}")
    with pytest.raises(BadRequest, match=r"settings\.json: its `a` is odd\. Nothing was changed"):
        JsonFile.read(path).change(refuse)


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
    changed = file_changes.edit(text, new)
    assert json.dumps(file_changes.parse(changed)) == json.dumps(new)
    assert changed.endswith(end)
    assert file_changes.edit(text, old) == text


@given(st.dictionaries(st.text(max_size=3), values, min_size=1, max_size=4), values, manners)
def test_what_is_added_and_taken_away_again_leaves_no_trace(old, added, manner):
    text = json.dumps(old, **manner)
    name = "added"
    assert file_changes.edit(file_changes.edit(text, {**old, name: added}), old) == text


@given(st.lists(values, min_size=1, max_size=4), values, manners)
def test_the_same_holds_for_the_end_of_a_list(old, added, manner):
    text = json.dumps(old, **manner)
    assert file_changes.edit(file_changes.edit(text, [*old, added]), old) == text


def test_hand_made_layout_stays_where_nothing_changes():
    text = '{\r\n\t"a" : [1.0,  2],\r\n\t"b": {"c": "\\u00e9"} ,\r\n\t"d": 1e2\r\n}'
    value = {**json.loads(text), "e": {"f": [True]}}
    assert file_changes.edit(text, value) == text[:-3] + (
        ',\r\n\t"e": {\r\n\t\t"f": [\r\n\t\t\ttrue\r\n\t\t]\r\n\t}\r\n}'
    )


def test_new_members_stand_like_their_neighbours():
    text = '{\n    "a": [\n        {"x": 1}\n    ],\n    "b": [1, 2]\n}\n'
    value = {"a": [{"x": 1}, {"y": 2}], "b": [1, 2, 3]}
    assert file_changes.edit(text, value) == (
        '{\n    "a": [\n        {"x": 1},\n        {\n            "y": 2\n        }\n    ],\n'
        '    "b": [1, 2, 3]\n}\n'
    )


def test_what_was_one_line_stays_one_line():
    assert file_changes.edit('{"a":1}', {"a": 1, "b": {"c": []}}) == '{"a":1, "b": {"c": []}}'


def test_numbers_and_truth_are_not_mixed_up():
    assert file_changes.edit("[1, true, 1.0]", [True, 1, 1]) == "[true, 1, 1]"


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
        file_changes.edit(text, {})
    with pytest.raises(BadRequest, match=said):
        file_changes.parse(text)

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.serve import gentle

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def parse(text, pause=lambda: None):
    return gentle.parse(
        text, depth_max=20, pause=pause, parse_float=float, parse_constant=lambda _: math.nan
    )


@given(VALUES, st.booleans())
def test_it_reads_what_the_usual_parser_reads(value, is_ascii):
    text = json.dumps(value, ensure_ascii=is_ascii, indent=1)
    assert parse(text) == json.loads(text)


@given(st.text(alphabet='{}[]",:1e-\\u0d8t '))
def test_it_refuses_what_the_usual_parser_refuses(text):
    try:
        wanted = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011  # any kind of it
            parse(text)
    else:
        assert json.dumps(parse(text)).count("fffd") or parse(text) == wanted


def test_half_a_pair_becomes_a_replacement_in_values_and_names():
    assert parse(r'{"\ud83d":["\ud83d x","\ude00","\ud83d\ude00"]}') == {
        "\ufffd": ["\ufffd x", "\ufffd", "😀"]
    }


def test_many_halves_in_a_long_text_let_the_others_in():
    paused = []
    assert parse(r'"' + r"\ud83d" * 50_000 + '"', lambda: paused.append(1)) == "\ufffd" * 50_000
    assert len(paused) >= 3


def test_it_has_a_depth():
    assert parse("[" * 20 + "]" * 20)
    for one in ("[", '{"a":'):
        with pytest.raises(gentle.TooDeep):
            parse(one * 21)
        with pytest.raises(gentle.TooDeep):
            parse(one * 500_000)


def test_it_counts_values_and_lets_the_others_in():
    paused = []
    assert len(parse("[" + "1," * 5_000 + "1]", lambda: paused.append(1))) == 5_001
    assert len(paused) == 10
    with pytest.raises(gentle.TooMany):
        parse("[" + "[]," * gentle.VALUES_MAX + "1]")


def test_the_last_of_two_equal_names_counts():
    assert parse('{"a":1,"a":2}') == {"a": 2}

from hypothesis import given
from hypothesis import strategies as st

from memd.server import mcp_format


@given(st.text(max_size=200), st.integers(0, 120))
def test_a_text_fits_its_room(value, room):
    shown = mcp_format.text(value, room)
    assert shown == "" or mcp_format.size(shown) <= room


@given(st.text(max_size=200), st.integers(0, 120))
def test_a_head_fits_its_room(value, room):
    shown = mcp_format.head(value, room)
    assert shown in {"", value} or mcp_format.size(shown) <= room


def test_a_text_that_fits_is_left_alone():
    assert mcp_format.text("why did login answer 500", 100) == "why did login answer 500"
    assert mcp_format.head("two\nlines", 100) == "two\nlines"


def test_what_a_model_reads_is_counted_in_bytes_not_characters():
    assert mcp_format.size("ä") == 4
    assert mcp_format.size('"') == 4
    assert len(mcp_format.text("ä" * 100, 42).encode()) <= 40


@given(st.lists(st.text(max_size=10)), st.integers(0, 100))
def test_items_are_kept_from_the_beginning_and_the_rest_counted(values, room):
    kept, left_out = mcp_format.items(values, room)
    assert values == kept + values[len(kept) :]
    assert len(kept) + left_out == len(values)
    assert not kept or mcp_format.size(kept) <= room + 1


def test_numbers_are_rounded_to_what_matters():
    assert mcp_format.number(0.0320123456) == 0.03201
    assert mcp_format.number(1.0) == 1
    assert isinstance(mcp_format.number(1.0), int)
    assert mcp_format.number(0.87123, 3) == 0.871

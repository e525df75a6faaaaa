from hypothesis import given
from hypothesis import strategies as st

from memd.distill import quality


def test_reasons_files_and_structure_make_a_better_memory():
    bare = "It works now."
    rich = "Asked: why does login fail?\nCause: `decode` in auth.py raised because the token has no dots.\n- fixed"
    assert quality.of(bare) < 0.25
    assert quality.of(rich) > 0.75


@given(st.text(max_size=500))
def test_quality_is_between_nothing_and_one(text):
    assert 0 <= quality.of(text) <= 1

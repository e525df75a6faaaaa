import pytest
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


@pytest.mark.parametrize("piece", ["OR", "-1", "a_", "a-", "a/"])
def test_a_long_word_is_read_once(piece):
    quality.of(piece * 200_000)


@pytest.mark.parametrize(
    ("text", "names_a_file"),
    [
        ("see src/app.py", True),
        ("in app-1.toml", True),
        ("-a.txt", True),
        ("--.txt", False),
        ("a/", False),
    ],
)
def test_a_file_is_worth_something(text, names_a_file):
    assert (
        quality.of(text) > quality.of(text.replace(".", " ").replace("/", " "))
    ) is names_a_file

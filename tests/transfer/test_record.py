import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.transfer import record


@pytest.mark.parametrize(
    ("given_", "at"),
    [
        (1_700_000_000, 1_700_000_000_000),
        ("1700000000123", 1_700_000_000_123),
        ("2024-01-02", 1_704_153_600_000),
        ('"2024-01-02T03:04:05Z"', 1_704_164_645_000),
        ("2024-01-02T03:04:05+01:00", 1_704_161_045_000),
        ("20240102", 1_704_153_600_000),
        (None, None),
        ("soon", None),
        ("99999999999999999999", None),
        ("1950-01-01", None),
    ],
)
def test_a_time_is_read_as_people_and_programs_write_it(given_, at):
    assert record.parse_time_ms(given_) == at


def test_a_short_text_is_one_piece():
    assert record.split_text("a\n\nb") == ["a\n\nb"]


def test_a_long_text_is_cut_between_paragraphs():
    text = "\n\n".join(f"{n} " + "word " * 900 for n in range(30))
    cut = record.split_text(text)
    assert len(cut) == 4
    assert "".join(cut).replace("\n", "") == text.replace("\n", "")
    assert all(piece[0].isdigit() for piece in cut)


@given(st.text(st.sampled_from("aé\n "), min_size=1, max_size=400))
def test_no_piece_is_too_large_and_no_word_is_lost(seed):
    text = seed * 400
    cut = record.split_text(text)
    assert all(len(piece.encode()) <= record.TEXT_BYTES for piece in cut)
    bare = "".join(text.split())
    assert "".join("".join(cut).split()) == bare


def test_tags_files_and_parts_fit_the_wire():
    assert record.clean_tags([" #a ", "", "a", "b\nc"]) == ("a", "b c")
    assert len(record.clean_tags(str(n) for n in range(50))) == 20
    assert record.clean_files(["/a", "x" * 2_000, "", "/a"]) == ("/a",)
    assert record.part_name("a", "", "b") == "a b"
    one, other = record.part_name("x" * 900 + "1"), record.part_name("x" * 900 + "2")
    assert one != other
    assert len(one) < 500
    assert len(record.make_title("word " * 100, "(1 of 2)")) <= record.TITLE_CHARACTERS

from hypothesis import given
from hypothesis import strategies as st

from memd import transfer
from tests.tables import every_row


@every_row(
    ("given_", "at"),
    [
        (1_700_000_000, 1_700_000_000_000),
        ("1700000000123", 1_700_000_000_123),
        ("2024-01-02", 1_704_153_600_000),
        ('"2024-01-02T03:04:05Z"', 1_704_164_645_000),
        ("2024-01-02T03:04:05+01:00", 1_704_161_045_000),
        (None, None),
        (1_700_000_000.5, 1_700_000_000_500),
        ("1700000000.123456", 1_700_000_000_123),
        (1_700_000_000_123_456, 1_700_000_000_123),
        (1_700_000_000_123_456_789, 1_700_000_000_123),
        ("soon", None),
        (True, None),
        (1e300, None),
        ("1950-01-01", None),
        ("0001-01-01T00:00:00Z", None),
        ("2026-11-20T15:26:10.158", 1_795_188_370_158),
        ("", None),
        (5, None),
    ],
)
def test_times_of_people_and_programs_are_parsed(given_, at):
    assert transfer.parse_time_ms(given_) == at


@given(st.text(st.sampled_from("aé\n "), min_size=1, max_size=400))
def test_no_piece_is_too_large_and_no_character_is_lost(seed):
    text = seed * 400
    cut = transfer.split_text(text)
    assert all(len(piece.encode()) <= transfer.TEXT_BYTES_MAX for piece in cut)
    bare = "".join(text.split())
    assert "".join("".join(cut).split()) == bare


def test_tags_files_and_part_names_are_limited():
    assert transfer.clean_tags([" #a ", "", "a", "b\nc"]) == ("a", "b c")
    assert len(transfer.clean_tags(str(n) for n in range(50))) == 20
    assert transfer.clean_files(["/a", "x" * 2_000, "", "/a"]) == ("/a",)
    assert transfer.part_name("a", "", "b") == "a b"
    one, other = transfer.part_name("x" * 900 + "1"), transfer.part_name("x" * 900 + "2")
    assert one != other
    assert len(one) < 500

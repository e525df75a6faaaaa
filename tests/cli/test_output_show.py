import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.cli import output

HOUR = 3_600
NOON = 1_800_000_000_000


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"), (-5, "0 s"), (59.9, "59 s"), (60, "1 min"), (61, "1 min 1 s"),
        (3 * HOUR + 12 * 60 + 7, "3 h 12 min"), (25 * HOUR, "1 d 1 h"), (86_400 * 400, "400 d"),
    ],
)  # fmt: skip
def test_a_duration_is_told_by_its_two_largest_units(seconds, said):
    assert output.span(seconds) == said


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 kB"),
        (12_900_000, "12.3 MB"),
        (5 * 2**30, "5.0 GB"),
    ],
)
def test_a_size_is_told_in_a_unit_that_fits(count, said):
    assert output.size(count) == said


def test_one_memory_and_two_memories():
    assert output.plural(1, "memory") == "1 memory"
    assert output.plural(1_200, "memory") == "1,200 memories"
    assert output.plural(0, "file") == "0 files"
    assert output.plural(2, "key") == "2 keys"


def test_a_memory_s_headline_has_its_id_kind_day_and_title():
    memory = {"id": 12, "kind": "fix", "at": NOON, "title": "Login\nanswered 500"}
    assert output.headline(memory) == f"#12 fix  {output.day(NOON)}  Login answered 500"


def test_what_was_replaced_or_pinned_is_marked():
    memory = {
        "id": 1,
        "kind": "note",
        "at": NOON,
        "title": "t",
        "superseded_by": 7,
        "pinned_at": 1,
    }
    assert output.headline(memory).endswith("t  (superseded by #7)  (pinned)")


def test_recalled_text_cannot_speak_to_the_terminal():
    """A memory is data: it may not recolour, move the cursor or turn the letters round."""
    assert output.clean("a\x1b[31mred\x07\x9b2J\u202eb") == "a[31mred2Jb"


@given(st.text(max_size=400), st.integers(20, 100))
def test_a_snippet_is_at_most_three_indented_lines(text, width):
    lines = list(output.snippet(text, width=width))
    assert len(lines) <= 3
    assert all(line.startswith("    ") for line in lines)


def test_a_score_shows_the_steps_that_make_it():
    hit = {
        "score": 2.5, "cosine": 0.91, "lexical_rank": 1, "vector_rank": 3, "topic_rank": None,
        "parts": [
            {"name": "lexical", "value": 2.0, "op": "+"}, {"name": "kind", "value": 1.25, "op": "*"},
        ],
    }  # fmt: skip
    assert output.score(hit).strip() == (
        "2.5 = lexical 2 * kind 1.25  (lexical #1, vector #3, cosine 0.910)"
    )


def test_a_sum_that_is_multiplied_stands_in_parentheses_and_no_ranks_leave_none():
    steps = (
        ("+", "a", 1),
        ("+", "b", 2),
        ("*", "c", 3),
        ("*", "d", 4),
        ("+", "e", 5),
        ("*", "f", 2),
    )
    parts = [{"op": op, "name": name, "value": value} for op, name, value in steps]
    told = output.score({"score": 82, "parts": parts})
    assert told == "    82 = ((a 1 + b 2) * c 3 * d 4 + e 5) * f 2"
    assert output.score({"score": 1, "parts": parts[:1]}) == "    1 = a 1"


def test_what_belongs_to_another_project_says_to_which():
    memory = {"id": 1, "kind": "note", "at": NOON, "title": "t", "elsewhere": "led\nger"}
    assert output.headline(memory).endswith("t  [led ger]")


def test_a_table_aligns_and_continues():
    assert list(output.table([("books", "1"), ("", "2")])) == ["books      1", "           2"]


@pytest.mark.parametrize("at", [-1, 10**15, 2**62])
def test_a_time_without_a_date_does_not_stop_the_page(at):
    assert output.day(at) in {"1969-12-31", "1970-01-01", "9999-12-30", "9999-12-31"}


def test_a_table_moves_no_cursor():
    assert list(output.table([("vault", "a\x1b[31mb\u202ec")])) == ["vault      a[31mbc"]

import io
import re

from rich.console import Console

from memd.cli import explain
from tests.tables import every_row


def part(name, value, op="+"):
    return {"name": name, "value": value, "op": op}


def candidate(number, parts, **more):
    return {
        "summary_id": number, "title": "Login answered 500", "score": 1.0, "parts": parts,
        "ranks": {}, "cosine": None, "terms": [], "verdict": "hit", **more,
    }  # fmt: skip


def answer(*rows):
    return {
        "profile": "memd",
        "space": None,
        "took_ms": 3.25,
        "candidates": len(rows),
        "trace": rows,
    }


def draw(*rows, width=120):
    out = io.StringIO()
    explain.print_trace(answer(*rows), Console(file=out, width=width))
    return out.getvalue()


def test_each_share_of_a_score_is_as_long_as_it_is_large():
    letters = {"lexical": "l", "vector": "v"}
    shares = [part("lexical", 1.5), part("vector", 0.5)]
    assert explain.format_bar(shares, letters, longest=2.0).plain == "l" * 18 + "v" * 6
    assert explain.format_bar(shares, letters, longest=4.0).plain == "l" * 9 + "v" * 3


def test_a_part_that_is_no_share_has_its_number():
    letters = {"lexical": "l", "recency": "r", "cap": "c"}
    parts = [part("lexical", 1.0), part("recency", 0.83, "*"), part("cap", 1.0, "<")]
    assert explain.format_bar(parts, letters, longest=24.0).plain == "l ×0.83r  ≤1.00c"
    assert explain.format_bar([part("lexical", -0.2)], letters, longest=1.0).plain == " −0.20l"


def test_a_factor_of_1_is_left_out():
    assert (
        explain.format_bar([part("recency", 0.9996, "*")], {"recency": "r"}, longest=1.0).plain
        == ""
    )


@every_row("longest", [0.0, -1.0])
def test_a_score_of_0_has_no_bar(longest):
    assert explain.format_bar([part("lexical", 0.0)], {"lexical": "l"}, longest).plain == ""


def test_every_part_has_a_letter_of_its_own():
    names = ["coverage", "context", "confidence", "coactivation", "cap", "cap_pinned", "c", "x"]
    letters = explain.choose_letters(names + names)
    assert list(letters) == names
    assert len(set(letters.values())) == len(names)
    assert letters["coverage"] == "c"


def test_a_candidate_has_ranks_cosine_score_bar_and_verdict():
    text = draw(
        candidate(12, [part("lexical", 1.0)], ranks={"lexical": 2}, cosine=0.5, score=0.83),
        candidate(7, [part("vector", 0.5)], ranks={"vector": 1}, verdict="superseded by #12"),
    )
    first, second = (line for line in text.splitlines() if "Login" in line)
    assert re.search(r"#12 +2 +– +0\.500 +0\.83 +l{24} +hit +Login answered 500", first)
    assert re.search(r"#7 +– +1 +– +1 +v{12} +superseded by #12 +Login answered 500", second)
    assert "l lexical  v vector" in text
    assert "profile memd, space None, 3.2 ms, 2 candidates" in text
    assert "topic" not in text


def test_a_narrow_terminal_cuts_titles_not_figures():
    title = "A title that is far too long for so narrow a terminal, and says so at its end"
    text = draw(candidate(12, [part("lexical", 1.0)], title=title, score=0.8312), width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert "0.8312" in text
    assert "…" in text


def test_recalled_text_is_neither_markup_nor_control_characters():
    text = draw(candidate(1, [part("lexical", 1.0)], title="[bold]x[/bold] [/] \x1b[2Jy"))
    assert "[bold]x[/bold] [/]" in text
    assert "\x1b" not in text


def test_an_answer_without_candidates_is_one_line():
    assert draw() == "profile memd, space None, 3.2 ms, 0 candidates\n"

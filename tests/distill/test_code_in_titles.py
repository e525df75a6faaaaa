"""Marks of emphasis go, signs of code stay: a title never tells another number, glob or call than was said."""

import pytest

from memd.consolidate.curator import _first_sentence
from memd.distill.own_words import read_own_sentences
from memd.distill.text import format_title, read_options, read_statements, strip_markup
from memd.distill.titles.features import shorten
from memd.text import split_sentences, strip_emphasis
from tests.distill.test_titles import name
from tests.tables import read_tables

TABLES = read_tables("distill/code_in_titles")

TEXT = TABLES["TEXT"]
EMPHASIS = TABLES["EMPHASIS"]


@pytest.mark.parametrize("text", TEXT)
def test_signs_of_code_are_no_emphasis(text):
    assert strip_emphasis(text) == text


@pytest.mark.parametrize(("text", "bare"), EMPHASIS.items())
def test_marks_of_emphasis_go(text, bare):
    assert strip_emphasis(text) == bare


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("The backoff in a.py is now 2**n seconds, at most 2**6.", "2**n seconds, at most 2**6"),
        ("a.py now globs src/**/*.tmp and calls f(*args, **kwargs) on each.", "f(*args, **kwargs)"),
        ("The worker takes jobs with `SELECT ... FOR UPDATE SKIP LOCKED` now.", "`SELECT ... FOR"),
        ("Before each commit run go test ./...", "go test ./..."),
        ("The hook compares git diff main ... feature before it pushes.", "main ... feature"),
        ("Releases are cut with **two tags** on `main`.", "with two tags on"),
    ],
)
def test_a_title_tells_code_as_it_was_said(said, title):
    assert title in name("go on with the next step, please", said)


def test_every_place_that_strips_markup_leaves_code():
    glob = "src/**/*.tmp and 2**n of 2**6"
    assert strip_markup(f"**Note**: {glob}") == f"Note: {glob}"
    assert read_statements(f"**One. Two.** {glob}")[-1].text == f"Two. {glob}"
    assert [one.text for one in read_statements("**kwargs are passed. *.log stays.")] == [
        "**kwargs are passed.",
        "*.log stays.",
    ]
    offered = f"Which?\n1. **Keep** {glob}\n2. **Drop all**: the rest"
    assert read_options(offered) == (("1", f"Keep {glob}"), ("2", "Drop all: the rest"))
    said = [one.said for one in read_own_sentences("Never edit __init__ files, *never* use 2**n.")]
    assert said == ["Never edit __init__ files, never use 2**n."]


def test_no_sentence_ends_within_code():
    assert split_sentences("Use `a. B` and f(...) there. Then `SELECT ... FOR`.") == (
        "Use `a. B` and f(...) there.",
        "Then `SELECT ... FOR`.",
    )


def test_the_beginning_and_the_end_of_a_title_keep_flags_paths_and_signs():
    assert format_title("--no-verify is never used.") == "--no-verify is never used"
    assert format_title("- done: -1 is returned") == "Done: -1 is returned"
    assert _first_sentence("Run go test ./...") == "Run go test ./..."
    call = f"The loader calls merge(*args, **kwargs) {'for each of the rows ' * 6}"
    assert "merge(*args, **kwargs)" in shorten(call)


def test_what_code_follows_leads_to_it_and_what_comes_behind_is_a_sentence_of_its_own():
    told = read_statements(
        "`is_whole()` checks the buffer with\n```sh\nbash -n <<EOF\n```\nThe word is `EOF`."
    )
    assert [(one.text, one.leads) for one in told] == [
        ("`is_whole()` checks the buffer with", True),
        ("The word is `EOF`.", False),
    ]

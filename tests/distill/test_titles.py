"""A title is a sentence that was said, or two that are joined: chosen by weights, never a bare question or half a sentence."""

import json
import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memd.distill.episodes import EpisodeContext, read_story
from memd.distill.titles import UNCHECKED, features, name_turn
from memd.distill.titles.features import (
    TITLE_CHARACTERS,
    WEIGHTS,
    list_candidates,
    shipped_ranker,
    shorten,
)
from memd.recall.provenance import explain_node
from memd.server.mcp_history import format_why
from tests.distill.written import Desk
from tests.factories import make_event
from tests.tables import every_row

CONTEXT = EpisodeContext(roots=("/home/dev/shop",))


def story(prompt, answer, *events):
    said = make_event("stop", id=90, last_assistant_message=answer)
    return read_story([make_event(id=1, prompt=prompt), *events, said], CONTEXT)


def name(prompt, answer, *events, is_proven=True):
    return name_turn(story(prompt, answer, *events), CONTEXT, is_proven=is_proven).text


HARBOUR = (
    "Here is what I found. The ferry timetable read the winter tariff in July, because `season_of` compared months as text.\n\n"
    "## Changes\n\n- `tariffs.py`: months are compared as numbers\n- A test for July\n\nLet me know if you want the spring tariff, too!"
)


def test_an_outcome_is_told_and_no_preamble_or_offer():
    title = name("why does the ferry timetable show the winter tariff?", HARBOUR)
    assert "winter tariff" in title
    for words in ("Here is what I found", "Let me know", "?"):
        assert words not in title


def test_two_short_sentences_that_say_different_things_are_joined():
    answer = "The mailer waits for the queue now.\n\nRefunds are written to `ledger.csv`."
    title = name("go on", answer)
    assert "queue" in title
    assert "ledger.csv" in title


def test_what_is_left_to_do_is_joined_to_nothing_that_was_done():
    answer = "The mailer waits for the queue now.\n\nStill open:\n\n- Refunds have to be written to `ledger.csv`"
    title = name("go on", answer)
    assert "queue" in title
    assert "ledger.csv" not in title


@every_row(
    ("listed", "outcome"),
    [
        ("name sec/op B/op allocs/op decode-2 encode-2 geomean", "The decoder reuses its buffer and is a third faster."),
        ("H1, H2, H3, H4, M2, M3, M4, L2, L3, L4", "The sharing dialog no longer leaks the public key."),
        ("claude, codex, gemini, copilot, cursor, opencode", "All six agents read the skill from one folder now."),
        ("`21b60a2c`, `25ebb219`, `a17794a7`", "The three commits are on the release branch."),
    ],
)  # fmt: skip
def test_a_list_of_names_or_a_row_of_a_table_is_no_title(listed, outcome):
    title = name("go on with it", f"{listed}\n\n{outcome}")
    assert title == outcome.rstrip(".")
    assert name("go on with it", listed)  # there is nothing else


def test_what_was_asked_stands_as_the_subject_before_what_came_of_it():
    title = name("Is the harbour gate locked at night?", "By nine, from the porter's lodge.")
    asked, _, told = title.partition(": ")
    assert (asked, told) == (
        "Is the harbour gate locked at night",
        "By nine, from the porter's lodge",
    )


def test_a_title_keeps_the_language_of_the_session():
    title = name(
        "warum fährt die Fähre nicht?", "Die Fähre fährt nicht, weil der Fahrplan im Winter endet."
    )
    assert "Fahrplan" in title
    title = name(
        "なぜ予約が二重になるのですか",
        "予約が二重になる原因は、確認ボタンが二回送信されることでした。",
    )
    assert "予約" in title


def test_without_proof_a_title_says_that_a_fix_is_unchecked():
    prompt, answer = (
        "the cart is empty after a login, fix it",
        "Fixed the empty cart after a login.",
    )
    assert name(prompt, answer, is_proven=False).startswith(UNCHECKED)
    assert not name(prompt, answer).startswith(UNCHECKED)


def test_the_project_s_own_directory_is_no_part_of_a_title():
    title = name(
        "move the tariff table",
        "Moved the tariff table to /home/dev/shop/data/tariffs.csv for all ferries.",
    )
    assert "/home/dev/shop" not in title
    assert "data/tariffs.csv" in title


def test_what_a_prompt_shows_between_fences_names_nothing():
    order = "Always open the lower gate before the upper one is closed."
    title = name(
        f"what does this say?\n\n```\n{order}\n```",
        f"It says: {order}\n\nThe note is about the gates of the lock.",
    )
    assert "lower gate before" not in title


def test_a_sentence_that_is_a_memory_of_its_own_is_no_title():
    rule = "From now on always name branches after the ferry line."
    found = story(f"Rename the branch. {rule}", "Renamed the branch to `line-4`.")
    assert "From now on" not in name_turn(found, CONTEXT, (rule,), is_proven=True).text


@every_row(
    ("text", "shown"),
    [
        ("The gate opens (see the plan of the harbour from last year, page four) at nine and closes at five on every day of the week but Sunday.",
         "The gate opens at nine and closes at five on every day of the week but Sunday."),
        ("The timetable of the ferries reads the tariff of the month; the month is compared as a number now, and a test has both July and January.",
         "The timetable of the ferries reads the tariff of the month"),
    ],
)  # fmt: skip
def test_a_long_sentence_loses_asides_and_is_cut_where_a_clause_ends(text, shown):
    assert shorten(text) == shown


@given(st.text(max_size=400), st.text(max_size=800), st.booleans())
def test_every_title_is_one_line_within_its_length(prompt, answer, is_proven):
    title = name(prompt, answer, is_proven=is_proven)
    assert len(title) <= TITLE_CHARACTERS
    assert "\n" not in title


def test_the_same_turn_gets_the_same_title_and_says_why():
    found = story("why does the ferry timetable show the winter tariff?", HARBOUR)
    one, other = (name_turn(found, CONTEXT, is_proven=True) for _ in range(2))
    assert one == other
    assert {why for why, _ in one.reasons} <= set(features.REASONS)
    assert any(value for _, value in one.reasons)


def test_the_weights_fit_the_features_and_are_small():
    found = story("why does the ferry timetable show the winter tariff?", HARBOUR)
    candidates = list_candidates(found)
    texts = features.read_texts(found)
    words = features.measure_words(texts, candidates)
    assert words.table.shape == (len(words.stems), len(features.WORD_FEATURES))
    ranker = shipped_ranker()
    assert ranker.words.features.max() < len(features.WORD_FEATURES)
    assert ranker.sentences.features.max() < len(features.SENTENCE_FEATURES)
    rated = ranker.rate_words(words.table)
    assert ((rated > 0) & (rated < 1)).all()
    assert WEIGHTS.stat().st_size < 300_000


def test_the_card_beside_the_weights_says_where_they_are_from():
    card = json.loads(WEIGHTS.with_suffix(".json").read_text(encoding="utf-8"))
    assert card["people"] > 1
    assert card["left out"] == []
    assert card["numpy"] == np.__version__


async def test_why_tells_in_words_what_chose_a_title(db, clock):
    desk = Desk(db, clock)
    turn = await desk.turn()
    why = await explain_node(db, "summary", str(turn.id), depth=0, project_ids=None)
    told = format_why(why, clock())["because"]
    assert told.startswith("the whole turn")
    chosen = told.partition("what counted most: ")[2]
    assert len(re.findall(r"[a-z ]+ \([+-]0\.\d\d\)", chosen)) == 3
    assert any(reason in chosen for reason in features.REASONS)

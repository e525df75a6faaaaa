from dataclasses import replace

import pytest

from memd.injection import lines
from memd.injection.choice import CandidateGroup
from memd.models import Kind
from memd.store.types import ContextCandidate
from tests.indexed_vault import NOW

MINUTE = 60_000


def make_candidate(number, title, kind=Kind.CHANGE, **more):
    """A memory of a turn: `session` and `turn` say which, `ago` how many minutes before."""
    at = NOW - more.pop("ago", 0) * MINUTE
    session = more.pop("session", 1)
    if kind in (Kind.CHANGE, Kind.FIX):
        more = {"edited": (f"{number}.py",), **more}
    return ContextCandidate(
        number, 1, session, kind, title, at, at, episode=more.pop("turn", f"t{number}"), **more
    )


def faults(*candidates, bodies=None):
    """Candidate → why it is not worth a line."""
    return lines.find_unfit([CandidateGroup("a", candidates)], bodies or {}, NOW)


def test_what_changed_a_file_or_was_committed_is_an_outcome_whatever_its_words():
    assert faults(make_candidate(1, "Added retries to the webhook sender")) == {}
    assert faults(make_candidate(1, "Let me look at the lock", edited=())) == {
        1: "nothing shows that it changed anything"
    }
    committed = make_candidate(1, "Batch ref updates", edited=(), commits=("batch ref updates",))
    assert faults(committed) == {}


def test_what_a_secret_was_taken_out_of_says_nothing():
    assert faults(make_candidate(1, "Use [REDACTED:token] for staging", Kind.DECISION)) != {}


def test_of_the_last_sessions_few_lines_are_shown_and_the_most_of_the_latest():
    done = [
        make_candidate(10 * s + n, title, session=s, ago=100 * s + n)
        for s in (1, 2, 3, 4)
        for n, title in enumerate(
            ("Added a login page", "Moved exports to a queue", "Renamed the search index")
        )
    ]
    left_out = faults(*done)
    shown = [one.id for one in done if one.id not in left_out]
    assert [number // 10 for number in shown] == [1, 1, 2, 3]
    assert set(left_out.values()) == {"others of the last sessions tell more"}


def test_a_change_of_many_files_tells_more_than_a_comment():
    many = make_candidate(1, "Moved the readers into a package", edited=("a.py", "b.py", "c.py"))
    others = [make_candidate(n, f"Updated a comment on loop {n}", edited=("a.py",)) for n in (2, 3)]
    assert 1 not in faults(*others, many)


def test_what_one_turn_decided_and_did_is_told_once_in_the_user_s_words():
    said = make_candidate(
        1, "Let's use pnpm for all packages, npm is slow", Kind.DECISION, turn="t"
    )
    did = make_candidate(2, "Replaced npm by pnpm in all packages", turn="t")
    other = make_candidate(3, "Added a dark theme to the settings", turn="u")
    assert faults(said, did, other) == {2: "#1 says it"}


@pytest.mark.parametrize("kind", [Kind.INSTRUCTION, Kind.PREFERENCE, Kind.DECISION])
def test_a_statement_stands_however_many_sessions_came_after_it_and_a_task_does_not(kind):
    old = make_candidate(1, "Always write row_count in the header", kind, session=9, ago=900_000)
    done = [make_candidate(n, f"Added page {n} to the menu", session=n, ago=n) for n in (2, 3, 4)]
    assert 1 not in faults(old, *done)
    assert 1 in faults(replace(old, kind=Kind.TASK), *done)


def test_what_was_not_chosen_is_left_to_a_search_and_of_a_contradiction_both_sides_are_told():
    done = make_candidate(9, "Added the export page to the menu")
    declined = make_candidate(1, "Declined: one table for each tenant", Kind.DECISION)
    doubtful = make_candidate(
        2, "Exports go to the archive disk", Kind.DECISION, contradicted_by=(7,)
    )
    assert set(faults(declined, doubtful, done)) == {1}


def test_what_was_said_for_one_session_is_no_line_of_another():
    rule = make_candidate(1, "Only read the files and edit nothing", Kind.INSTRUCTION, session=7, tags=("scope:session",))  # fmt: skip
    groups = [CandidateGroup("a", (rule,))]
    assert faults(rule) == {1: "said for another session"}
    assert lines.find_unfit(groups, {}, NOW, 8) == {1: "said for another session"}
    assert lines.find_unfit(groups, {}, NOW, 7) == {}
    assert faults(replace(rule, is_pinned=True)) == {}
    assert faults(replace(rule, tags=("scope:branch", "scope:for-now"))) == {}


def test_a_failure_is_open_if_the_last_session_ended_with_it():
    failed = make_candidate(1, "test_login fails: 401", Kind.FAILURE)
    assert faults(failed, bodies={1: "Ran: `pytest` → ok\nRan: `pytest -x` → failed"}) == {}
    assert set(faults(failed, bodies={1: "Ran: `pytest` → failed\nRan: `pytest` → ok"})) == {1}
    later = make_candidate(2, "Added a page to the menu", session=2)
    assert set(faults(later, replace(failed, session_id=3))) == {1}


def test_what_a_later_turn_changed_again_is_not_told_as_it_was():
    first = make_candidate(1, "Changed the sync switch from on to true", ago=9)
    again = make_candidate(2, "The sync switch is now a real boolean", ago=5)
    other = make_candidate(3, "Added a dark theme to the settings", ago=7)
    assert faults(first, again, other) == {1: "#2 tells of it later"}


def test_what_stands_in_files_that_were_edited_again_comes_after_the_rest():
    first = make_candidate(
        1, "The script now builds with make and runs it", ago=9, edited=("run.sh",)
    )
    others = [
        make_candidate(2, "Added colours to the terminal", ago=5, edited=("run.sh",)),
        make_candidate(3, "Added a page for orders", ago=7, edited=("orders.py",)),
    ]
    assert set(faults(first, *others)) == {1}
    assert faults(first, others[1]) == {}


def test_beyond_the_latest_session_only_what_is_of_the_last_day_is_shown():
    hours = 60
    latest = make_candidate(1, "Added a dark theme to the settings", session=1, ago=90 * hours)
    older = make_candidate(2, "Moved the readers into a package", session=2, ago=99 * hours)
    why = "neither of the latest session nor of the last day"
    assert faults(latest, older) == {2: why}
    assert faults(replace(latest, at=NOW), replace(older, at=NOW - 9 * hours * MINUTE)) == {}


@pytest.mark.parametrize(
    ("title", "body", "whole"),
    [
        (
            "Keep the fixtures in one place and never…",
            "User: “ok, keep the fixtures in one place and never load them from v1.2 dumps. Then push.”",
            "Keep the fixtures in one place and never load them from v1.2 dumps",
        ),
        (
            "Chosen: the per-file pool (whose lines go first, the agent's or…",
            "Assistant asked: “whose lines go first, the\nagent's or the user's?”\nUser: “the pool”",
            "Chosen: the per-file pool (whose lines go first, the agent's or the user's?",
        ),
        ("A title that ends", "A title that ends. And more", "A title that ends"),
        ("Said in other words than the body…", "Nothing alike.", "Said in other words than the body…"),
        ("too short…", "it is too short to be found", "too short…"),
    ],
)  # fmt: skip
def test_a_title_that_was_cut_off_gets_the_rest_of_its_sentence(title, body, whole):
    assert lines.complete_title(title, body, 200) == whole


def test_a_completed_title_has_its_limit():
    title, body = "one two three four…", "one two three four " + "and on " * 99
    assert len(lines.complete_title(title, body, 60)) <= 60

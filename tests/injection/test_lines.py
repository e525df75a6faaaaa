from dataclasses import replace

import pytest

from memd.injection import lines
from memd.injection.choice import CandidateGroup
from memd.models import Authority, Kind
from memd.store import ContextCandidate
from tests.indexed_vault import NOW
from tests.tables import every_row, read_tables

TABLES = read_tables("injection/lines")

MINUTE = 60_000


def make_candidate(number, title, kind=Kind.CHANGE, **more):
    """A memory of a turn: `session` and `turn` say which, `ago` how many minutes before."""
    at = NOW - more.pop("ago", 0) * MINUTE
    session = more.pop("session", 1)
    return ContextCandidate(
        number, 1, session, kind, title, at, at, episode=more.pop("turn", f"t{number}"), **more
    )


def faults(*candidates, bodies=None):
    """Candidate → why it is not worth a line, or that work went on from it."""
    unfit, earlier = lines.find_unfit([CandidateGroup("a", candidates)], bodies or {}, NOW)
    return unfit | dict.fromkeys(earlier, "went on")


@pytest.mark.parametrize(
    "title",
    ["We keep sessions in SQLite rather than Redis", "We chose Redis", "Chosen: JSON lines with a checksum",
     "Use the mirror since it answers faster than the registry", "Only release from `main`",
     "Make sure that every migration can be undone", "No new dependency in this repository", "Exports: move them to the queue"],
)  # fmt: skip
def test_a_statement_that_names_what_it_is_about_stands_alone(title):
    assert lines.stands_alone(title)


@pytest.mark.parametrize(
    "title",
    ["Remove this again", "Revert those changes, the old ones were fine", "Agreed: move it below the menu",
     "Let's rename it to `export`", "Real lists", "Keep the pages as they were", "That should still be a warning",
     "Chosen: the second option", "Put a limit on those requests"],
)  # fmt: skip
def test_a_statement_that_points_at_what_was_said_does_not(title):
    assert not lines.stands_alone(title)
    assert faults(make_candidate(1, title, Kind.DECISION))[1].startswith("it says nothing")


def test_what_the_user_asked_to_be_reminded_of_stands_alone_however_short():
    his = Authority.USER_PROMPT
    asked = make_candidate(1, "Descale the boiler", Kind.TASK, authority=his)
    pointing = make_candidate(2, "Do that boiler again", Kind.TASK, authority=his)
    claimed = make_candidate(3, "Sweep the chimney", Kind.TASK)
    assert set(faults(asked, pointing, claimed)) == {2, 3}


def test_where_the_last_three_sessions_were_left_is_told_once_each():
    done = [
        make_candidate(10 * s + n, title, session=s, ago=100 * s + n)
        for s in (1, 2, 3, 4)
        for n, title in enumerate(
            ("Added a login page", "Moved exports to a queue", "Renamed the search index")
        )
    ]
    left_out = faults(*done)
    assert [one.id for one in done if one.id not in left_out] == [10, 20, 30]
    assert set(left_out.values()) == {"went on"}


@pytest.mark.parametrize("title", ["Done", "All of it", "Pushed"])
def test_an_outcome_that_names_nothing_is_none(title):
    assert set(faults(make_candidate(1, title))) == {1}


@every_row("title", TABLES["what_was_said_to_somebody_who_was_there_is_no_report_of_work"])
def test_what_was_said_to_somebody_who_was_there_is_no_report_of_work(title):
    assert set(faults(make_candidate(1, title))) == {1}


def test_work_is_told_by_its_commits_and_an_earlier_report_takes_the_place_of_a_remark():
    remark = make_candidate(1, "I have committed the two files you changed", commits=("fix(menu): close on Escape",))  # fmt: skip
    assert faults(remark) == {}
    assert next(lines.write_statements(remark)) == "fix(menu): close on Escape"
    many = replace(remark, commits=("feat: a", "fix: b", "docs: c"))
    assert next(lines.write_statements(many)) == "fix: b; docs: c"
    report = make_candidate(2, "Exports run on the queue", ago=5)
    assert faults(replace(remark, commits=()), report).keys() == {1}


@every_row(("question", "title", "line"), TABLES["an_answer_stands_behind_its_question"])
def test_an_answer_stands_behind_its_question(question, title, line):
    body = f"Chosen: it.\nAssistant asked: “{question}”\nUser: “it”"
    answer = make_candidate(1, title, Kind.DECISION, body=body)
    assert next(lines.write_statements(answer)) == line
    assert lines.shorten_sentence(line, 20).endswith(line.rpartition(" → ")[2])


@every_row(
    ("sentence", "line"), TABLES["a_line_does_not_begin_with_the_project_that_the_page_names"]
)
def test_a_line_does_not_begin_with_the_project_that_the_page_names(sentence, line):
    assert lines.drop_project(sentence, "cipher-box") == line
    assert lines.drop_project(sentence, "") == sentence


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
    assert lines.find_unfit(groups, {}, NOW, 8)[0] == {1: "said for another session"}
    assert lines.find_unfit(groups, {}, NOW, 7)[0] == {}
    assert faults(replace(rule, is_pinned=True)) == {}
    assert faults(replace(rule, tags=("scope:branch", "scope:for-now"))) == {}


def test_a_failure_is_open_if_the_last_session_ended_with_it():
    failed = make_candidate(1, "test_login fails: 401", Kind.FAILURE)
    assert faults(failed, bodies={1: "Ran: `pytest` → ok\nRan: `pytest -x` → failed"}) == {}
    assert set(faults(failed, bodies={1: "Ran: `pytest` → failed\nRan: `pytest` → ok"})) == {1}
    later = make_candidate(2, "Added a page to the menu", session=2)
    assert set(faults(later, replace(failed, session_id=3))) == {1}


def test_a_completed_title_has_its_limit():
    title, body = "one two three four…", "one two three four " + "and on " * 99
    assert len(lines.complete_title(title, body, 60)) <= 60


@pytest.mark.parametrize(
    ("title", "body", "whole"),
    TABLES["a_title_that_was_cut_off_gets_the_rest_of_its_sentence"],
)  # fmt: skip
def test_a_title_that_was_cut_off_gets_the_rest_of_its_sentence(title, body, whole):
    assert lines.complete_title(title, body, 200) == whole


def test_an_abbreviation_does_not_end_a_title_that_was_cut_off():
    body = "Hooks are set in the harness (e.g. `settings.json`), not by the tool. Then more."
    whole = "Hooks are set in the harness (e.g. `settings.json`), not by the tool"
    assert lines.complete_title("Hooks are set in the harness (e.g…", body, 200) == whole


@pytest.mark.parametrize(
    ("sentence", "shortened"), TABLES["a_sentence_is_shortened_by_what_it_says_beside_itself"]
)
def test_a_sentence_is_shortened_by_what_it_says_beside_itself(sentence, shortened):
    assert lines.shorten_sentence(sentence, 30) == shortened
    assert lines.shorten_sentence(sentence, 99) == sentence


@pytest.mark.parametrize(
    "rule",
    ["Every table has an index; never on text columns", "Deploy on Fridays, so long as nobody is away if it fails",
     "Use the mirror for packages; only the registry for images"],
)  # fmt: skip
def test_what_denies_excepts_or_sets_a_condition_stays(rule):
    assert lines.shorten_sentence(rule, 20) == rule


def test_of_a_rule_only_asides_and_reasons_are_left_out():
    rule = "Do not build the site after each change; ask me at the end"
    assert lines.shorten_sentence(rule, 40, is_rule=True) == rule
    assert lines.shorten_sentence(rule, 40) == "Do not build the site after each change…"
    reason = "Run the checks before each push because nobody looks at the build"
    assert lines.shorten_sentence(reason, 40, is_rule=True) == "Run the checks before each push…"


@every_row(
    ("sentence", "reports"),
    [
        ("The totals are not shown in the cart", True), ("The menu doesn't close anymore.", True), ("I don't see a banner at all", True),
        ("Do not show the totals in the cart", False), ("Totals that are not shown cost nothing", False),
        ("We don't support Windows", False), ("Nobody may see what is not paid", False), ("Totals must not be shown", False),
        ("A pass rate cannot be measured by assertions", False),
    ],
)  # fmt: skip
def test_what_is_reported_as_missing_differs_from_what_is_ruled_out(sentence, reports):
    assert lines.reports_lack(sentence) is reports


FIXED = [("Totals: fixed", "Answered: The totals are fixed.")]


@every_row(
    ("sentence", "work", "went_on", "solved"),
    [
        ("The totals are not shown in the cart", [], True, True), ("The totals are not shown in the cart", FIXED, False, False),
        ("The totals are always shown without tax", FIXED, True, False), ("Totals should not be cached", FIXED, True, False),
        ("Seems like the totals in the cart are broken", FIXED, True, True), ("Seems like the totals in the cart are broken", [], True, False),
        ("The page of totals crashes", [("Totals", "Asked: x\nCommitted: fix(cart): show totals")], True, True),
    ],
)  # fmt: skip
def test_a_report_is_solved_by_what_was_changed_for_it_and_a_limit_is_not(
    sentence, work, went_on, solved
):
    assert lines.is_solved(sentence, work, went_on=went_on) is solved


@every_row(
    ("sentence", "later", "solved"),
    TABLES["what_is_said_to_be_missing_is_solved_by_later_work_that_names_it"],
)
def test_what_is_said_to_be_missing_is_solved_by_later_work_that_names_it(sentence, later, solved):
    assert lines.is_solved(sentence, [], [later], went_on=False) is solved


def test_work_that_was_taken_back_or_turned_later_is_not_told():
    redis = make_candidate(1, "Sessions moved", ago=90, commits=("Keep sessions in Redis", "Add a health page"))  # fmt: skip
    retry = make_candidate(2, "Retries of the webhook sender", session=2, ago=60)
    back = make_candidate(3, "Webhooks", session=3, ago=30, commits=('Revert "Retries of the webhook sender"',))  # fmt: skip
    rule = make_candidate(4, "Sessions are kept in SQLite, no longer in Redis", Kind.DECISION, session=3)  # fmt: skip
    kept = lines.drop_turned([back, retry, redis], [rule])
    assert [(one.id, one.commits) for one in kept] == [(3, back.commits), (1, ("Add a health page",))]  # fmt: skip
    before = replace(rule, at=redis.at - 1)
    assert lines.drop_turned([redis], [before]) == [redis]


def test_what_earlier_work_of_a_session_left_open_is_told_with_its_last_work_unless_that_went_on():
    def work(number, title, *left, ago, **more):
        return make_candidate(number, title, ago=ago, left_open=left, **more)

    last = work(3, "Added pages to the search", "The search has no tests yet", ago=1, edited=("search.py",))  # fmt: skip
    queue = work(2, "Moved exports to a queue", "The queue of exports is not durable", ago=2, edited=("queue.py",))  # fmt: skip
    draft = work(1, "Drafted the pages", "The pages lack an index", ago=3, edited=("search.py",))
    gathered = {one.id: one.left_open for one in lines.gather_open([last, queue, draft])}
    assert gathered == {3: (*last.left_open, *queue.left_open), 2: (), 1: ()}
    said = replace(last, body="Answered: The queue of exports is durable now, too.")
    assert lines.gather_open([said, queue])[0].left_open == last.left_open


def test_a_line_is_cut_before_a_piece_of_code_and_not_within_it():
    code = "The report of all orders was slow without an index for `SELECT id FROM orders WHERE customer = ? ORDER BY at`"
    assert lines.cut_line(code, 90) == "The report of all orders was slow without an index for…"
    assert lines.cut_line(code, 200) == code
    assert lines.cut_line("Run `one two three four five six seven eight`", 20).startswith(
        "Run `one"
    )


def test_a_title_of_one_word_and_what_was_redacted_are_not_told():
    told = faults(
        make_candidate(1, "pypng"),
        make_candidate(2, "Read the cards with pypng", session=2),
        make_candidate(3, "The wifi has the password [REDACTED:password]", Kind.FACT, turn=None),
        make_candidate(4, "The door code is [REDACTED:pin]", Kind.NOTE, turn=None, is_pinned=True),
    )
    assert told == {
        1: "it says nothing without what was said before it",
        3: "a part of it is private",
    }


def test_work_that_only_names_its_files_is_not_told():
    bare = make_candidate(1, "Changed src/wdg.c, Makefile", edited=("/p/src/wdg.c", "/p/Makefile"))
    told = make_candidate(2, "Changed the sessions tree so that it opens at once", edited=("/p/tree.c",), ago=1)  # fmt: skip
    assert faults(bare, told) == {1: "it says nothing without what was said before it"}

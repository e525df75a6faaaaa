from dataclasses import replace

from memd.belief.changes import StandingStatement, find_corrections, find_outdated
from tests.tables import every_row, read_tables

TABLES = read_tables("belief/outdated")


def outdated(*texts, **later):
    """The numbers of the statements, made in this order, that a later one outdates."""
    made = [StandingStatement(n, 1, text, n, 5.0) for n, text in enumerate(texts, 1)]
    if later:
        made[-1] = StandingStatement(len(made), 1, texts[-1], len(made), **{"rank": 5.0, **later})
    return find_outdated(made)


OLDER = "Exports are written to the archive disk, because the queue loses what is older than a day"


@every_row("later", TABLES["a_later_statement_about_the_same_thing_outdates_an_older_one"])
def test_a_later_statement_about_the_same_thing_outdates_an_older_one(later):
    assert outdated(OLDER, later) == {1: 2}


@every_row("later", TABLES["what_says_more_of_it_or_of_something_near_it_leaves_it_standing"])
def test_what_says_more_of_it_or_of_something_near_it_leaves_it_standing(later):
    assert outdated(OLDER, later) == {}


def test_statements_that_are_made_alike_for_many_things_all_stand():
    texts = [f"The export of table {n} runs on the queue of worker {n + 3} at night" for n in range(20)]  # fmt: skip
    assert outdated(*texts) == {}
    assert outdated("The red queue holds a day of messages", "The blue queue holds a week of messages") == {}  # fmt: skip


def test_only_a_later_one_of_no_lesser_voice_in_the_same_project_and_scope_outdates():
    later = "Exports are now written to the queue"
    assert outdated(OLDER, later, rank=4.0) == {}
    assert outdated(OLDER, later, rank=6.0) == {1: 2}
    assert outdated(OLDER, later, tags=("scope:tests",)) == {}
    assert outdated(OLDER, later, tags=("red",)) == {1: 2}
    assert outdated(later, OLDER) == {}
    first, second = StandingStatement(1, 1, OLDER, 1, 5.0), StandingStatement(2, 2, later, 2, 5.0)
    assert find_outdated([first, second]) == {}


def test_a_later_statement_that_something_turned_is_named_whoever_says_it():
    older = StandingStatement(
        1, 1, "Transcripts are read by conversation, filtered by the session's start", 1, 9.0
    )
    later = StandingStatement(
        2,
        1,
        "Filtering transcripts by the session's start emptied each of them; an offset is used instead",
        2,
        1.0,
    )
    other = StandingStatement(3, 1, "Filtering transcripts in the viewer needs two clicks", 3, 9.0)
    assert find_corrections([older, later, other]) == {1: 2}
    assert find_corrections([later, older]) == {1: 2}
    assert find_corrections([older, replace(later, project_id=2)]) == {}

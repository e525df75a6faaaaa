"""Questions about a time, through the whole search."""

import pytest

from memd.models import Kind
from memd.recall import period
from memd.time_expressions import DAY_MS
from tests.factories import supersede
from tests.indexed_vault import NOW, IndexedVault
from tests.tables import every_row

TODAY = NOW - NOW % DAY_MS
"""2027-01-15, a Friday; NOW is at 8:00."""


@pytest.fixture
def library(db):
    return IndexedVault(db)


async def test_only_memories_of_the_time_in_the_question_are_hits(library):
    library.put("Login retries three times", days_ago=5)
    then = library.put("Login retries five times", days_ago=1)
    answer = await library.ask("How often did login retry yesterday?")
    assert [hit.summary.id for hit in answer.hits] == [then]
    assert answer.notes[0] == "only 2027-01-14"


async def test_the_words_of_the_time_are_no_content(library):
    library.put("The yesterday button of the calendar", days_ago=1)
    wanted = library.put("Login retries five times", days_ago=1)
    assert (await library.ids("How often did login retry yesterday?"))[0] == wanted


async def test_if_nothing_is_from_then_the_nearest_answers_and_a_note_says_so(library):
    outside = library.put("Login retries three times", days_ago=5)
    answer = await library.ask("How often did login retry yesterday?")
    assert [hit.summary.id for hit in answer.hits] == [outside]
    assert answer.notes[0] == "nothing from 2027-01-14; the nearest outside it"


async def test_a_filter_of_the_caller_wins(library):
    old = library.put("Login retries three times", days_ago=5)
    library.put("Login retries five times", days_ago=1)
    answer = await library.ask("How often did login retry yesterday?", until=NOW - 3 * DAY_MS)
    assert [hit.summary.id for hit in answer.hits] == [old]
    assert not any("2027-01-14" in note for note in answer.notes)


async def test_a_question_of_the_past_counts_from_there(library):
    then = library.put("Login retries three times", days_ago=5)
    library.put("Login retries five times", days_ago=1)
    found = await library.ids("How often did login retry yesterday?", as_of=NOW - 4 * DAY_MS)
    assert found == [then]


async def test_what_was_done_is_told_in_the_order_of_time(library):
    library.put("Drew the logo", days_ago=9, kind=Kind.CHANGE)
    second = library.put("Chose Redis for sessions", days_ago=1, kind=Kind.DECISION)
    first = library.put("Split the parser", days_ago=1.2, kind=Kind.CHANGE)
    library.put("Redis keeps sessions", days_ago=1, kind=Kind.FACT)
    answer = await library.ask("What did we do yesterday?")
    assert [hit.summary.id for hit in answer.hits] == [first, second]
    assert answer.notes[0] == "only 2027-01-14, in order of time"
    assert answer.hits[0].score > 0


async def test_what_was_decided_is_told_by_decisions(library):
    library.put("Split the parser", days_ago=1.1, kind=Kind.CHANGE)
    wanted = library.put("Chose Redis for sessions", days_ago=1, kind=Kind.DECISION)
    assert await library.ids("What did we decide yesterday?") == [wanted]


async def test_a_time_of_notes_alone_is_told_by_notes(library):
    wanted = library.put("The office is closed", days_ago=1, kind=Kind.NOTE)
    assert await library.ids("What happened yesterday?") == [wanted]


async def test_a_turn_is_told_once_and_each_session_before_the_second_turn_of_another(library):
    busy = [
        library.put(
            f"Step {i}", days_ago=1.2 - i / 100, kind=Kind.CHANGE, session="one", episode=f"e{i}"
        )
        for i in range(6)
    ]
    library.put("Step 0 failed", days_ago=1.2, kind=Kind.FAILURE, session="one", episode="e0")
    other = library.put("Wrote docs", days_ago=1.3, kind=Kind.CHANGE, session="two", episode="e9")
    answer = await library.ask("What did we do yesterday?", k=3)
    assert [hit.summary.id for hit in answer.hits] == [other, busy[4], busy[5]]
    assert "3 of 7 turns of that time" in answer.notes
    following = await library.ids("What did we do yesterday?", k=3, offset=3)
    assert following == busy[1:4]


async def test_of_a_time_without_work_the_nearest_is_told(library):
    library.put("Drew the logo", days_ago=90, kind=Kind.CHANGE)
    near = library.put("Split the parser", days_ago=20, kind=Kind.CHANGE)
    answer = await library.ask("What did we do yesterday?", k=1)
    assert [hit.summary.id for hit in answer.hits] == [near]
    assert answer.notes == ("nothing from 2027-01-14; the nearest outside it",)


async def test_a_time_alone_is_a_question(library):
    wanted = library.put("Split the parser", days_ago=1, kind=Kind.CHANGE)
    assert await library.ids("yesterday") == [wanted]


async def test_a_past_session_is_found_by_its_place_before_the_one_that_asks(library):
    oldest = library.put("Split the parser", days_ago=3, kind=Kind.CHANGE, session="one")
    middle = library.put("Chose Redis", days_ago=2, kind=Kind.DECISION, session="two")
    newest = library.put("Wrote docs", days_ago=1, kind=Kind.CHANGE, session="three")
    asked = "What did we do in the last session?"
    assert await library.ids(asked) == [newest]
    assert await library.ids(asked, asking_session="three") == [middle]
    answer = await library.ask("What was done three sessions ago?")
    assert [hit.summary.id for hit in answer.hits] == [oldest]
    assert answer.notes[0] == "only the session of 2027-01-12, in order of time"
    assert await library.ids("What was done in the last two sessions?") == [middle, newest]


async def test_a_session_that_never_was_is_said(library):
    wanted = library.put("Split the parser", days_ago=3, kind=Kind.CHANGE, session="one")
    answer = await library.ask("How was the parser split four sessions ago?")
    assert [hit.summary.id for hit in answer.hits] == [wanted]
    assert answer.notes[0] == "there is only 1 earlier session; the time was not used"


@every_row(
    ("text", "kinds"),
    [
        ("are there open tasks?", (Kind.TASK,)),
        ("what is still open?", (Kind.TASK,)),
        ("open", ()),
        ("what is open in the harbour?", ()),
        ("Which decisions hold?", (Kind.DECISION,)),
        ("what rules apply", (Kind.INSTRUCTION, Kind.PREFERENCE)),
        ("list all failures and fixes", (Kind.FAILURE, Kind.FIX)),
        ("what are the current conventions and preferences?", (Kind.INSTRUCTION, Kind.PREFERENCE)),
        ("decisions about Redis", ()),
        ("which rule applies to commit messages", ()),
        ("task queue", ()),
        ("", ()),
    ],
)
def test_a_question_that_names_nothing_but_a_kind_lists_it(text, kinds):
    assert period.asks_for_kinds(text) == kinds


async def test_what_there_is_of_a_kind_is_listed_newest_first(library, db):
    first = library.put("Use SQLite", kind=Kind.DECISION, days_ago=9)
    library.put("Added a test of decisions that hold", kind=Kind.CHANGE)
    hidden = library.put("Use Redis", kind=Kind.DECISION, days_ago=7)
    last = library.put("Use Postgres", kind=Kind.DECISION, days_ago=3)
    supersede(db, last, hidden, at=NOW)
    answer = await library.ask("which decisions hold?")
    assert [hit.summary.id for hit in answer.hits] == [last, first]
    assert (answer.verdict, answer.notes) == (
        "found",
        ("all 2 of kind decision, the newest first",),
    )
    answer = await library.ask("which decisions hold?", k=1, offset=1)
    assert [hit.summary.id for hit in answer.hits] == [first]
    # Where there is none of the kind, the words are looked for.
    library.put("Tasks are kept there", "in a file")
    answer = await library.ask("what tasks are there")
    assert answer.verdict == "weak"
    assert answer.reason == "no memory is a task; these have the words"

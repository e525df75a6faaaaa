import pytest

from memd.belief import values
from memd.belief.values import asks_for_former
from memd.models import EdgeType, Kind
from memd.store import links
from tests.indexed_vault import IndexedVault
from tests.tables import every_row, read_tables

TABLES = read_tables("recall/present_values")


@pytest.fixture
def library(db):
    return IndexedVault(db)


@pytest.mark.parametrize(
    ("older", "newer", "question", "now"),
    TABLES["what_holds_comes_before_an_older_value_which_says_so"],
)
async def test_what_holds_comes_before_an_older_value_which_says_so(
    library, older, newer, question, now
):
    old = library.put(older, days_ago=30, kind=Kind.FACT)
    new = library.put(newer, days_ago=2, kind=Kind.CHANGE)
    answer = await library.ask(question)
    assert [hit.summary.id for hit in answer.hits][:2] == [new, old]
    assert answer.hits[0].older_value is None
    assert answer.hits[1].older_value == f"older value; now: {now} (#{new})"


async def test_asked_for_what_was_before_the_older_value_comes_first(library):
    old = library.put("The gateway has an upload timeout of 10 s", days_ago=30)
    new = library.put(
        "Changed the upload timeout of the gateway from 10 s to 30 s", "", kind=Kind.CHANGE
    )
    asked = "What did the upload timeout of the gateway use to be?"
    assert await library.ids(asked) == [old, new]
    assert await library.ids("What is the upload timeout of the gateway?") == [new, old]


async def test_a_value_that_came_back_is_not_older(library):
    library.put("The gateway has an upload timeout of 10 s", days_ago=30)
    for days, was, now in ((20, "10 s", "30 s"), (10, "30 s", "10 s")):
        library.put(
            f"Changed the upload timeout of the gateway from {was} to {now}",
            days_ago=days,
            kind=Kind.CHANGE,
        )
    answer = await library.ask("What is the upload timeout of the gateway?")
    (first,) = [hit for hit in answer.hits if hit.summary.title.startswith("The gateway")]
    assert first.older_value is None


async def test_a_value_that_a_later_memory_has_again_is_not_older(library):
    library.put("The gateway has an upload timeout of 10 s", days_ago=30)
    library.put(
        "Changed the upload timeout of the gateway from 10 s to 30 s", days_ago=20, kind=Kind.CHANGE
    )
    library.put("Wrote down that the gateway has an upload timeout of 10 s", days_ago=1)
    answer = await library.ask("What is the upload timeout of the gateway?")
    assert len(answer.hits) == 3
    assert all(hit.older_value is None for hit in answer.hits)


async def test_a_setting_that_came_back_is_not_older(library):
    for days, retries in ((30, 5), (20, 3), (10, 5)):
        library.put(
            f"Upload retries, {days} days ago: max_upload_retries = {retries}",
            days_ago=days,
            kind=Kind.CHANGE,
        )
    answer = await library.ask("How many upload retries are there?")
    older = {hit.summary.title: bool(hit.older_value) for hit in answer.hits}
    assert [older[title] for title in sorted(older)] == [False, True, False]


@pytest.mark.parametrize(
    ("older", "newer", "kind"),
    [
        ("The login step of CI has 3 retries", "Changed client retries from 3 to 5", Kind.CHANGE),
        ("The gateway timeout is 10 s", "We could raise the gateway timeout from 10 s to 30 s", Kind.CHANGE),
        ("The gateway timeout is 10 s", "Changed the gateway timeout from 10 s to 30 s", Kind.DISCOVERY),
        ("The gateway keeps a `string` timeout", "Changed the gateway timeout from `string` to `Duration`", Kind.CHANGE),
        ("Gateway timeout: gateway_lines_seen = 3", "Gateway timeout: gateway_lines_seen = 9", Kind.CHANGE),
        ("The gateway timeout is 110 s", "Changed the gateway timeout from 10 s to 30 s", Kind.CHANGE),
        ("The gateway timeout went from 10 s to 30 s", "Changed the gateway timeout from 10 s to 30 s", Kind.CHANGE),
    ],
)  # fmt: skip
async def test_what_is_another_value_or_only_weighed_makes_nothing_older(
    library, older, newer, kind
):
    library.put(older, days_ago=30)
    library.put(newer, days_ago=2, kind=kind)
    answer = await library.ask("What about the gateway timeout, or retries?")
    assert len(answer.hits) == 2
    assert all(hit.older_value is None for hit in answer.hits)


async def test_other_projects_have_values_of_their_own(library):
    library.put("The gateway timeout is 10 s", days_ago=30, project="/b")
    library.put("Changed the gateway timeout from 10 s to 30 s", days_ago=2, kind=Kind.CHANGE)
    answer = await library.ask("What is the gateway timeout?")
    assert all(hit.older_value is None for hit in answer.hits)


@every_row(
    ("question", "is_former"),
    [
        ("What did the limit use to be?", True), ("What was the limit before?", True), ("What was it called previously?", True),
        ("the old name of the command", True), ("We used to ship weekly, why?", True),
        ("Which tool is used to format code?", False), ("What happens before a commit?", False), ("Is it still slow?", False),
        ("What is the limit now?", False),
    ],
)  # fmt: skip
def test_a_question_for_what_was_before_is_told_from_others(question, is_former):
    assert asks_for_former(question) is is_former


@every_row(
    ("text", "names"),
    [
        ("What do I call to tidy up, vault clean or vault session cleanup?", ("vault clean", "vault session cleanup")),
        ("Postgres 15 or Postgres 16?", ("Postgres 15", "Postgres 16")),
        ("Is the flag called `--dry-run` or `--dry`?", ("--dry-run", "--dry")),
        ("does it run on Linux or macOS?", ()),
        ("unit tests or integration tests?", ()),
        ("as a string or a boolean?", ()),
        ("why was it vault clean or vault cleanup?", ()),
        ("Should the file be committed or ignored?", ()),
    ],
)  # fmt: skip
def test_a_question_may_ask_which_of_two_names_of_one_thing_holds(text, names):
    assert values.read_alternatives(text) == names


async def test_of_two_names_the_one_that_was_used_last_comes_first(db):
    library = IndexedVault(db)
    renamed = library.put(
        "Agreed: the command is vault session cleanup now, to tidy up orphaned data", days_ago=30
    )
    last = library.put("Documented that vault clean tidies what was left behind", days_ago=2)
    both = library.put("Compared vault clean with vault session cleanup", days_ago=1)
    question = "What is the command to tidy up orphaned data, vault clean or vault session cleanup?"
    answer = await library.ask(question)
    ids = [hit.summary.id for hit in answer.hits]
    assert ids.index(last) < ids.index(renamed)
    marks = {hit.summary.id: hit.older_value for hit in answer.hits}
    assert marks == {renamed: f"older value; now: vault clean (#{last})", last: None, both: None}
    asked = "Was it vault clean or vault session cleanup before?"
    assert all(hit.older_value is None for hit in (await library.ask(asked)).hits)


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    TABLES["asked_for_the_present_the_newer_of_two_that_both_hold_comes_first"],
)
async def test_asked_for_the_present_the_newer_of_two_that_both_hold_comes_first(
    library, older, newer, question
):
    old = library.put(older, days_ago=60, kind=Kind.FACT)
    new = library.put(newer, days_ago=30, kind=Kind.FACT)
    other = library.put("The office has a barrel of storage labels", days_ago=1, kind=Kind.FACT)
    answer = await library.ask(question)
    assert [hit.summary.id for hit in answer.hits if hit.summary.id != other] == [new, old]
    assert answer.hits[0].summary.id == new


async def test_adverbs_of_the_present_are_not_looked_for(library):
    wanted = library.put("Lena is on call for payments", days_ago=60, kind=Kind.FACT)
    library.put("Logs of payments are kept for thirty days", days_ago=1, kind=Kind.FACT)
    answer = await library.ask("who is on call for payments these days")
    assert answer.hits[0].summary.id == wanted


async def test_what_says_that_something_turned_comes_before_what_held_before(library):
    was = library.put(
        "Log firmware errors with ESP_LOGI and never with printf", days_ago=9, kind=Kind.DECISION
    )
    now = library.put(
        "Log firmware errors with printf again, ESP_LOGI is off", days_ago=2, kind=Kind.DECISION
    )
    library.put("The printer is on the second floor", days_ago=1, kind=Kind.FACT)
    answer = await library.ask("log firmware errors with ESP_LOGI and never with printf")
    assert [hit.summary.id for hit in answer.hits][:2] == [now, was]


async def test_of_two_of_one_speaker_that_contradict_each_other_the_later_comes_first(library):
    was = library.put("Alerts go to the pager of the shift", days_ago=9, kind=Kind.DECISION)
    now = library.put("Alerts go to the chat", days_ago=2, kind=Kind.DECISION)
    edge = links.NewEdge("summary", str(now), EdgeType.CONTRADICTS, "summary", str(was), "rule", 1)
    library.db.write_now(lambda tx: links.add_edges(tx, [edge]))
    answer = await library.ask("do alerts go to the pager of the shift")
    assert [hit.summary.id for hit in answer.hits] == [now, was]


@pytest.mark.parametrize("is_of_same_words", [True, False])
async def test_what_replaced_a_task_comes_before_the_work_that_tells_of_the_same_words(
    library, db, is_of_same_words
):
    told = library.put(
        "Noted: the siren still has to be tested", "Is the siren tested? It still has to be tested.",
        days_ago=9, kind=Kind.DISCOVERY,
    )  # fmt: skip
    task = library.put("The siren still has to be tested", days_ago=9, kind=Kind.TASK)
    done = library.put("Siren: works up to 90 dB, tested on the roof", days_ago=1, kind=Kind.FACT)

    def relate(tx):
        for number, event in ((told, 7), (task, 7 if is_of_same_words else 8)):
            start = ("summary", str(number), EdgeType.DERIVES_FROM, "event", str(event))
            links.add_edges(tx, [links.NewEdge(*start, "turn", 1)])
        links.supersede(tx, newer_id=done, older_id=task, rule="r", cosine=None, guard="", at=1)

    db.write_now(relate)
    found = await library.ids("is the siren tested?")
    assert found == ([done, told] if is_of_same_words else [told, done])

import pytest

from memd.models import SessionRef
from memd.store import events, projects
from tests.factories import make_new_event
from tests.indexed_vault import DAY, NOW, IndexedVault


@pytest.fixture
def library(db):
    return IndexedVault(db)


def say(library, text, *, days_ago=0.0, kind="prompt", session="s1", project="/a"):
    field = "prompt" if kind == "prompt" else "last_assistant_message"
    at = NOW - int(days_ago * DAY)

    def write(tx):
        project_id = projects.ensure_project(tx, project, project, "", 1)
        number = projects.ensure_session(tx, SessionRef("c", session), project_id, at)
        projects.extend_session(tx, number, at, f"Title of {session}")
        return events.append_event(tx, make_new_event(kind, at=at, **{field: text}), number)[0]

    return library.db.write_now(write)


async def turns(library, text, **more):
    return (await library.ask(text, include_turns=True, **more)).turns


async def test_what_was_said_stands_beside_the_hits_and_never_among_them(library):
    number = library.put("kettle decision", "teal")
    event = say(library, "Which colour has the kettle?", days_ago=1)
    answer = await library.ask("kettle", include_turns=True)
    assert [hit.summary.id for hit in answer.hits] == [number]
    (turn,) = answer.turns
    assert (turn.event_id, turn.role, turn.rank, turn.at) == (event, "user", 1, NOW - DAY)
    assert (turn.session_title, turn.snippet) == ("Title of s1", "Which colour has the kettle?")
    same = await library.ask("kettle")
    assert same.turns == ()
    assert [hit.score for hit in same.hits] == [hit.score for hit in answer.hits]


async def test_a_long_passage_shows_where_it_matches(library):
    say(
        library,
        "Nothing here. " * 50 + "The kettle is teal. " + "More of it. " * 50,
        kind="stop",
    )
    (turn,) = await turns(library, "kettle")
    assert turn.snippet.startswith("The kettle is teal.")
    assert len(turn.snippet) <= 200
    assert turn.role == "assistant"


async def test_each_filter_holds_for_turns_too(library):
    old = say(library, "the kettle", days_ago=9)
    new = say(library, "the kettle", days_ago=1, session="s2", project="/b")
    ids = {}
    for name, more in {
        "all": {},
        "project": {"project_ids": (2,)},
        "session": {"session_id": 1},
        "since": {"since": NOW - 5 * DAY},
        "until": {"until": NOW - 5 * DAY},
        "as_of": {"as_of": NOW - 5 * DAY, "until": NOW},
        "k": {"k": 1},
    }.items():
        ids[name] = [turn.event_id for turn in await turns(library, "kettle", **more)]
    assert ids == {
        "all": [new, old], "project": [new], "session": [old], "since": [new], "until": [old],
        "as_of": [old], "k": [new],
    }  # fmt: skip


async def test_a_question_without_words_has_no_turns(library):
    say(library, "the kettle")
    assert await turns(library, "", topic_key="tea.kind") == ()


async def test_they_are_there_while_the_index_is_still_loading(library):
    say(library, "the kettle")
    question = library.asked("kettle", include_turns=True)
    answer = await library.recaller.search(question)
    assert "index" in answer.degraded
    assert len(answer.turns) == 1


@pytest.mark.parametrize("text", ['"', "a* OR (", 'NEAR("kettle"', "kettle^2 -x", "col:kettle"])
async def test_nothing_that_can_be_typed_is_a_syntax_error(library, text):
    say(library, "the kettle")
    await turns(library, text + " kettle")

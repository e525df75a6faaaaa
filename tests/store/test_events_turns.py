import pytest

from memd.models import SessionRef
from memd.store import events, projects
from memd.store.events import TurnFilter
from tests.factories import AT, make_new_event


def say(db, kind="prompt", *, at=AT, session="s1", project="/a", **payload):
    def write(tx):
        project_id = projects.ensure_project(tx, project, project, "", 1)
        number = projects.ensure_session(tx, SessionRef("c", session), project_id, at)
        projects.extend_session(tx, number, at, f"Title of {session}")
        event = make_new_event(kind, at=at, session=session, **payload)
        return events.append_event(tx, event, number)[0], number, project_id

    return db.write_now(write)


def count_turns(tx):
    return tx.execute("SELECT count(*) FROM turns_fts").get


def find(db, expression, limit=10, **where):
    found = db.read_now(lambda tx: events.match_turns(tx, expression, TurnFilter(**where), limit))
    return [spoken.event_id for spoken in found]


@pytest.mark.parametrize(
    ("kind", "field", "role"),
    [
        ("prompt", "prompt", "user"),
        ("stop", "last_assistant_message", "assistant"),
        ("subagent_stop", "last_assistant_message", "assistant"),
        ("compact_end", "compact_summary", "assistant"),
        ("agent_text", "text", "assistant"),
        ("tool_refused", "said", "user"),
    ],
)
def test_what_was_said_is_found_as_soon_as_it_is_stored(db, kind, field, role):
    number, session, _ = say(db, kind, **{field: "The kettle is teal."})
    (spoken,) = db.read_now(lambda tx: events.match_turns(tx, '"kettles"', TurnFilter(), 5))
    assert (spoken.event_id, spoken.session_id, spoken.role) == (number, session, role)
    assert (spoken.text, spoken.at, spoken.session_title) == (
        "The kettle is teal.", AT, "Title of s1",
    )  # fmt: skip


def test_the_best_comes_first_and_of_equals_the_newer(db):
    old, _, _ = say(db, prompt="kettle", at=AT)
    new, _, _ = say(db, prompt="kettle", at=AT + 5)
    both, _, _ = say(db, prompt="kettle teal", at=AT)
    assert find(db, '"kettle" OR "teal"') == [both, new, old]
    assert find(db, '"kettle" OR "teal"', limit=2) == [both, new]


def test_each_bound_keeps_what_it_says(db):
    here, session, project = say(db, prompt="kettle", at=AT)
    there, _, _ = say(db, prompt="kettle", at=AT + 10, session="s2", project="/b")
    assert find(db, '"kettle"', project_ids=(project,)) == [here]
    assert find(db, '"kettle"', project_ids=()) == []
    assert find(db, '"kettle"', session_id=session) == [here]
    assert find(db, '"kettle"', since=AT + 10) == [there]
    assert find(db, '"kettle"', until=AT) == [here]
    assert find(db, '"kettle"', since=AT, until=AT + 10, project_ids=(project,)) == [here]


def test_a_forgotten_event_leaves_no_turn_and_after_a_purge_no_word(db):
    number, _, _ = say(db, prompt="xylophone")
    db.write_now(lambda tx: events.forget_events(tx, [number], 1))
    db.write_now(events.purge_turns)
    assert find(db, '"xylophone"') == []
    assert db.read_now(count_turns) == 0
    blobs = db.read_now(
        lambda tx: [row[0] for row in tx.execute("SELECT block FROM turns_fts_data")]
    )
    assert not any(b"xyloph" in blob for blob in blobs)


def test_rebuilding_finds_the_same(db):
    one, _, _ = say(db, prompt="kettle")
    gone, _, _ = say(db, prompt="kettle")
    db.write_now(lambda tx: events.forget_events(tx, [gone], 1))
    db.write_now(events.rebuild_turns)
    assert find(db, '"kettle"') == [one]
    assert db.read_now(count_turns) == 1

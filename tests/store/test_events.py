import pytest

from memd.models import EventKind, NewEvent, SessionRef
from memd.store import books, events, projects

REF = SessionRef("claude-code", "s")


@pytest.fixture
def session(db):
    def begin(tx):
        return projects.ensure_session(
            tx, REF, projects.ensure_project(tx, "/a", "a", "", 1), 1
        )

    return db.write_now(begin)


def new(key, *, at=1, kind=EventKind.TOOL_RESULT, payload=None, tool=None):
    return NewEvent(
        session=REF,
        key=key,
        kind=kind,
        name=kind.value,
        at=at,
        source="live",
        payload=payload or {},
        tool=tool,
    )


def append(db, session, event):
    return db.write_now(lambda tx: events.append(tx, event, session))


def test_an_event_is_stored_once(db, session):
    first, fresh = append(db, session, new("k"))
    assert fresh
    assert append(db, session, new("other"))[1]
    assert append(db, session, new("k")) == (first, False)


def test_an_event_comes_back_as_it_went_in(db, session):
    payload = {"prompt": "naïve 😀", "n": [1, None, True]}
    number, _ = append(db, session, new("k", kind=EventKind.PROMPT, payload=payload, at=7))
    event = db.read_now(lambda tx: events.by_ids(tx, [number, 99]))[number]
    assert (event.payload, event.kind, event.at) == (payload, EventKind.PROMPT, 7)


def test_pending_events_wait_by_session_until_they_are_distilled(db, session):
    ids = [append(db, session, new(f"k{i}", at=i))[0] for i in range(3)]
    assert db.read_now(events.pending_sessions) == [(session, 0, 1)]
    assert db.read_now(lambda tx: events.pending_ids(tx, session)) == set(ids)
    assert db.read_now(lambda tx: events.any_pending_through(tx, ids[0]))
    db.write_now(lambda tx: events.mark_distilled(tx, ids[:2]))
    assert not db.read_now(lambda tx: events.any_pending_through(tx, ids[1]))
    assert db.read_now(events.counts) == {"events": 3, "pending": 1, "last_at": 1}


def test_a_session_is_read_from_the_prompt_on_that_an_event_belongs_to(db, session):
    for i, kind in enumerate(
        [
            EventKind.PROMPT,
            EventKind.STOP,
            EventKind.PROMPT,
            EventKind.TOOL_RESULT,
            EventKind.STOP,
        ]
    ):
        append(db, session, new(f"k{i}", at=i * 10, kind=kind))
    assert [e.at for e in db.read_now(lambda tx: events.of_session(tx, session, 30, 100))] == [
        20,
        30,
        40,
    ]
    assert [e.at for e in db.read_now(lambda tx: events.of_session(tx, session, 30, 1))] == [20]


def test_what_commands_are_for_is_known_by_project(db, session):
    tool = {"tool_input": {"command": "make", "description": "Build it"}}
    append(db, session, new("k", payload=tool, tool="Bash"))
    append(db, session, new("l", payload={"tool_input": {"command": "ls"}}, tool="Bash"))
    assert db.read_now(lambda tx: events.command_descriptions(tx, 1)) == {"make": "Build it"}


def test_a_forgotten_event_leaves_only_its_hash(db, session):
    number, _ = append(db, session, new("k"))
    db.write_now(lambda tx: events.forget(tx, [number], 5))
    assert db.read_now(lambda tx: events.by_ids(tx, [number])) == {}
    assert db.read_now(lambda tx: books.is_forgotten(tx, "k"))


def test_half_of_a_surrogate_pair_is_stored_as_a_question_mark(db, session):
    number, _ = append(db, session, new("k", payload={"prompt": "half \ud83d"}, tool="\ud83d"))
    assert db.read_now(lambda tx: events.by_ids(tx, [number]))[number].payload == {
        "prompt": "half ?"
    }

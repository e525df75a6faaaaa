import dataclasses
from dataclasses import replace

import pytest

from memd.models import EventKind, NewEvent, SessionRef
from memd.store import events, ledger, projects
from tests.factories import AT, make_new_event

REF = SessionRef("claude-code", "s")


@pytest.fixture
def session(db):
    def begin(tx):
        return projects.ensure_session(tx, REF, projects.ensure_project(tx, "/a", "a", "", 1), 1)

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
    return db.write_now(lambda tx: events.append_event(tx, event, session))


def test_an_event_is_stored_once(db, session):
    first, fresh = append(db, session, new("k"))
    assert fresh
    assert append(db, session, new("other"))[1]
    assert append(db, session, new("k")) == (first, False)


def test_pending_events_wait_by_session_until_they_are_distilled(db, session):
    ids = [append(db, session, new(f"k{i}", at=i))[0] for i in range(3)]
    assert db.read_now(events.pending_sessions) == [session]
    assert db.read_now(lambda tx: events.pending_ids(tx, session)) == set(ids)
    assert db.read_now(lambda tx: events.has_pending_through(tx, ids[0]))
    db.write_now(lambda tx: events.mark_distilled(tx, ids[:2]))
    assert not db.read_now(lambda tx: events.has_pending_through(tx, ids[1]))
    counts = {"events": 3, "pending": 1, "sessions": 1, "last_at": 1, "unknown": 0}
    assert db.read_now(events.event_counts) == counts


def test_a_session_is_read_from_the_prompt_on_that_an_event_belongs_to(db, session):
    for i, kind in enumerate(
        [EventKind.PROMPT, EventKind.STOP, EventKind.PROMPT, EventKind.TOOL_RESULT, EventKind.STOP]
    ):
        append(db, session, new(f"k{i}", at=i * 10, kind=kind))
    assert [e.at for e in db.read_now(lambda tx: events.session_events(tx, session, 30, 100))] == [
        20,
        30,
        40,
    ]
    assert [e.at for e in db.read_now(lambda tx: events.session_events(tx, session, 30, 1))] == [20]


def test_what_commands_are_for_is_known_by_project(db, session):
    tool = {"tool_input": {"command": "make", "description": "Build it"}}
    append(db, session, new("k", payload=tool, tool="Bash"))
    append(db, session, new("l", payload={"tool_input": {"command": "ls"}}, tool="Bash"))
    assert db.read_now(lambda tx: events.command_descriptions(tx, 1)) == {"make": "Build it"}


def test_a_forgotten_event_leaves_only_its_hash(db, session):
    number, _ = append(db, session, new("k"))
    db.write_now(lambda tx: events.forget_events(tx, [number], 5))
    assert db.read_now(lambda tx: events.events_by_ids(tx, [number])) == {}
    assert db.read_now(lambda tx: ledger.is_forgotten(tx, "k"))


def test_half_of_a_surrogate_pair_is_stored_as_a_question_mark(db, session):
    number, _ = append(db, session, new("k", payload={"prompt": "half \ud83d"}, tool="\ud83d"))
    assert db.read_now(lambda tx: events.events_by_ids(tx, [number]))[number].payload == {
        "prompt": "half ?"
    }


def marks(db, *found):
    def write(tx):
        project = projects.ensure_project(tx, "/p", "p", "", AT)
        session = projects.ensure_session(tx, found[0].session, project, AT)
        return [events.append_event(tx, event, session)[0] for event in found]

    return db.write_now(write)


def test_a_session_loses_its_context_when_it_is_compacted_or_cleared(db):
    marks(db, make_new_event("session_start", at=1), make_new_event(at=2))
    assert db.read_now(lambda tx: events.last_context_loss(tx, 1)) is None
    marks(db, make_new_event("compact_start", at=3), make_new_event("compact_end", at=5))
    assert db.read_now(lambda tx: events.last_context_loss(tx, 1)) == 3
    cleared = make_new_event("session_start", at=9)
    marks(db, replace(cleared, payload={"source": "clear"}))
    assert db.read_now(lambda tx: events.last_context_loss(tx, 1)) == 9


def test_what_happened_and_was_asked_last_leaves_the_asking_event_out(db):
    first, _, third, start = marks(
        db,
        make_new_event(at=1, prompt="one"),
        make_new_event("stop", at=2),
        make_new_event(at=3, prompt="two"),
        make_new_event("session_start", at=4),
    )
    assert db.read_now(lambda tx: events.last_time_except(tx, 1, start)) == 3
    assert db.read_now(lambda tx: events.last_time_except(tx, 1, third)) == 2
    assert db.read_now(lambda tx: events.prompts_except(tx, 1, third, 9)) == ["one"]
    assert db.read_now(lambda tx: events.prompts_except(tx, 1, None, 9)) == ["two", "one"]
    assert db.read_now(lambda tx: events.last_time_except(tx, 7, first)) is None


def test_prompts_of_a_session_are_found_by_the_marks_index_alone(db):
    marks(db, make_new_event(prompt="one"))
    asked = []

    def planned(tx):
        tx.exec_trace = lambda _, sql, values: asked.append((sql, values)) or True
        try:
            events.prompts_except(tx, 1, None, 9)
            events.next_prompt(tx, 1, 0)
            events.last_context_loss(tx, 1)
        finally:
            tx.exec_trace = None
        return [
            " ".join(row[3] for row in tx.execute(f"EXPLAIN QUERY PLAN {sql}", values))
            for sql, values in asked
        ]

    assert all("events_marks" in plan for plan in db.read_now(planned))


def test_new_prompts_are_found_by_the_last_event_that_was_seen(db):
    first, _, third = marks(
        db, make_new_event(prompt="one"), make_new_event("stop"), make_new_event(prompt="two")
    )
    assert db.read_now(lambda tx: events.look_for_prompt(tx, first)) == (third, True)
    assert db.read_now(lambda tx: events.look_for_prompt(tx, third)) == (third, False)
    asked = []

    def read(tx):
        tx.exec_trace = lambda _, sql, values: asked.append((sql, values)) or True
        try:
            found = events.prompts_after(tx, 1, first, 2**62)
            events.look_for_prompt(tx, first)
        finally:
            tx.exec_trace = None
        plans = (tx.execute(f"EXPLAIN QUERY PLAN {sql}", values) for sql, values in asked)
        return [one.id for one in found], [row[3] for plan in plans for row in plan]

    ids, plan = db.read_now(read)
    assert ids == [third]
    found = [line for line in plan if " events" in line]
    assert len(found) == 3
    assert all("rowid>?" in line or line == "SEARCH events" for line in found), found


def said(key, text, *, at, turn=None):
    event = new(key, at=at, kind=EventKind.PROMPT, payload={"prompt": text})
    return dataclasses.replace(event, turn=turn)


def test_an_event_follows_the_prompt_of_its_turn_or_the_last_one_before_it(db, session):
    def fill(tx):
        for event in (
            said("a", "first", at=10, turn="t1"),
            said("b", "second", at=20, turn="t2"),
            said("c", "nameless", at=30),
        ):
            events.append_event(tx, event, session)

    db.write_now(fill)

    def own(turn):
        return db.read_now(lambda tx: events.prompts_of_turn(tx, session, turn))

    def before(turn, at):
        return db.read_now(lambda tx: events.prompt_before(tx, session, turn, at))

    assert not db.read_now(lambda tx: events.has_prompt(tx, session + 1))
    assert db.read_now(lambda tx: events.has_prompt(tx, session))
    assert (own("t1"), own("t2"), own("t3")) == ([(10, "first")], [(20, "second")], [])
    assert before(None, 25) == "second"
    assert before(None, 5) is None
    assert before("t3", 25) is None  # that prompt is another turn's
    assert before("t3", 35) == "nameless"
    assert db.read_now(lambda tx: events.prompts_before(tx, session, 20)) == ["first", "second"]


def test_the_rest_of_a_turn_is_what_its_prompt_brought_about(db, session):
    def fill(tx):
        kinds = (EventKind.PROMPT, EventKind.TOOL_RESULT, EventKind.STOP, EventKind.SESSION_END)
        for n, kind in enumerate(kinds):
            for turn in ("t1", "t2"):
                event = dataclasses.replace(new(f"{turn}{n}", kind=kind), turn=turn)
                events.append_event(tx, event, session)

    db.write_now(fill)

    def rest(*span):
        return db.read_now(lambda tx: events.turn_ids_except_prompt(tx, session, "t1", *span))

    assert rest(0, 2**62) == [3, 5]
    assert rest(0, 0) == []


def test_an_event_that_is_stored_under_a_former_key_is_the_same_event(db, session):
    old, _ = append(db, session, new("old"))
    renamed = dataclasses.replace(new("new"), former_keys=("older", "old"))
    assert append(db, session, renamed) == (old, False)

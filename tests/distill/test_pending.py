import pytest

from memd.distill.pending import Request, load, plans, sessions
from memd.distill.record import record_all
from memd.store import events, projects
from tests.make import AT, make_new_event

IDLE = 600_000


@pytest.fixture
def happens(db):
    """Store events of one session; their numbers."""

    def store(*found):
        def write(tx):
            project = projects.ensure_project(tx, "/home/dev/ledger", "ledger", "", AT)
            session = projects.ensure_session(tx, found[0].session, project, AT)
            for event in found:
                projects.session_happened(tx, session, event.at, "Add a parser")
            return [events.append(tx, event, session)[0] for event in found]

        return db.write_now(write)

    return store


@pytest.fixture
def due(db):
    def read(through=None, now=AT):
        return db.read_now(lambda tx: load(tx, Request(1, now, IDLE, 8_000, through)))

    return read


def test_nothing_is_due_while_a_turn_goes_on(happens, due):
    happens(make_new_event(prompt="x"), make_new_event("tool_call", at=AT + 1))
    assert due() is None
    assert due(now=AT + 1 + IDLE) is not None
    assert due(now=AT + 1 - IDLE) is not None, "the clock was set back meanwhile"


def test_somebody_who_waits_gets_an_open_turn_too(happens, due):
    first, second = happens(
        make_new_event(prompt="x"), make_new_event(prompt="y", turn="t2", at=AT + 5)
    )
    assert [e.key for e in due(through=first).episodes] == ["t1"]
    assert [e.key for e in due(through=second).episodes] == ["t1", "t2"]
    assert due(through=0) is None


def test_events_that_yield_nothing_are_loose(happens, due):
    numbers = happens(make_new_event("session_start", turn=None))
    assert due().loose == tuple(numbers)
    assert due().episodes == ()


def test_a_late_event_brings_its_whole_turn_along(db, happens, due):
    numbers = happens(
        make_new_event(prompt="x", at=AT),
        make_new_event("stop", at=AT + 1, last_assistant_message="Done."),
        make_new_event(prompt="y", turn="t2", at=AT + 2),
    )
    db.write_now(lambda tx: events.mark_distilled(tx, numbers))
    happens(make_new_event("tool_result", at=AT + 9, tool_name="Read"))
    (episode,) = due(through=99).episodes
    assert [event.kind.value for event in episode.events] == ["prompt", "stop", "tool_result"]


def test_a_prompt_that_comes_after_its_turn_was_distilled_is_due_at_once(db, happens, due):
    numbers = happens(make_new_event("stop", at=AT + 1, last_assistant_message="Done."))
    db.write_now(lambda tx: events.mark_distilled(tx, numbers))
    happens(make_new_event(prompt="x", at=AT))
    (episode,) = due().episodes
    assert [event.kind.value for event in episode.events] == ["prompt", "stop"]


def test_a_plan_accounts_for_the_pending_events_of_its_episode(db, happens, due):
    numbers = happens(
        make_new_event(prompt="Explain the parser to me."),
        make_new_event("stop", at=AT + 1, last_assistant_message="It recurses."),
    )
    db.write_now(lambda tx: events.mark_distilled(tx, numbers[:1]))
    (plan,) = plans(due())
    assert plan.event_ids == (numbers[1],)
    assert [draft.slot for draft in plan.drafts] == ["turn"]


def test_the_rules_know_the_session_the_project_and_its_commands(happens, due):
    happens(
        make_new_event(
            "tool_call",
            turn="t0",
            tool_name="Bash",
            tool_input={"command": "make", "description": "Build"},
        ),
        make_new_event(prompt="Always run make.", at=AT + 1),
        make_new_event("stop", at=AT + 2),
    )
    context = due().context
    assert context.session_title == "Add a parser"
    assert context.roots == ("/home/dev/ledger",)
    assert context.descriptions == {"make": "Build"}


def test_who_waits_for_an_event_does_not_stand_behind_an_import(happens, db):
    first, *_ = happens(make_new_event(session="old", prompt="x"))
    happens(make_new_event(session="older", prompt="x", turn="t2"))
    asked, *_ = happens(make_new_event(session="new", prompt="x", turn="t3"))
    assert db.read_now(lambda tx: sessions(tx, None)) == [1, 2, 3]
    assert db.read_now(lambda tx: sessions(tx, asked)) == [3, 1, 2]
    assert db.read_now(lambda tx: sessions(tx, first)) == [1, 2, 3]
    assert db.read_now(lambda tx: sessions(tx, 99)) == [1, 2, 3]


def wrote(path, content, **more):
    given = {"file_path": path, "content": content}
    return make_new_event("tool_result", tool_name="Write", tool_input=given, **more)


def test_a_file_that_an_earlier_turn_wrote_is_known_to_a_later_one(db, happens, due):
    happens(
        make_new_event(prompt="Write the token store"),
        wrote("/home/dev/ledger/store.py", "class Row: ...\n", at=AT + 1),
        make_new_event("stop", at=AT + 2, last_assistant_message="Done."),
    )
    first = due()
    assert first.known_files == ()
    db.write_now(lambda tx: record_all(tx, plans(first), first.session, AT))
    happens(
        make_new_event(prompt="Use it", turn="t2", at=AT + 3),
        wrote("/home/dev/ledger/auth.py", "import store\n", turn="t2", at=AT + 4),
        make_new_event("stop", turn="t2", at=AT + 5, last_assistant_message="Done."),
    )
    second = due()
    assert second.known_files == ("/home/dev/ledger/store.py",)
    (plan,) = plans(second)
    assert [(one.path, one.target) for one in plan.files] == [
        ("/home/dev/ledger/auth.py", "/home/dev/ledger/store.py")
    ]

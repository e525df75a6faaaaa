from memd.models import SessionRef
from memd.store import projects

REF = SessionRef("claude-code", "abc", "/home/dev/ledger")


def make(tx, key="/a", name="a"):
    return projects.ensure_project(tx, key, name, "because", 1)


def test_a_project_is_made_once(db):
    first, second = db.write_now(make), db.write_now(make)
    assert first == second
    assert db.read_now(lambda tx: projects.project(tx, first)).reason == "because"
    assert db.read_now(lambda tx: projects.project(tx, 99)) is None


def test_projects_are_found_by_key_and_by_name(db):
    db.write_now(make)
    db.write_now(lambda tx: make(tx, "/b/a"))
    assert [p.key for p in db.read_now(lambda tx: projects.find_projects(tx, "a"))] == [
        "/a",
        "/b/a",
    ]
    assert [p.key for p in db.read_now(lambda tx: projects.find_projects(tx, "/a"))] == ["/a"]
    assert len(db.read_now(projects.projects)) == 2


def test_global_is_a_project_like_any_other(db):
    number = db.write_now(lambda tx: projects.ensure_global(tx, 1))
    assert db.read_now(lambda tx: projects.project(tx, number)).key == "global"


def test_a_session_keeps_the_project_it_began_in(db):
    a, b = db.write_now(make), db.write_now(lambda tx: make(tx, "/b", "b"))
    first = db.write_now(lambda tx: projects.ensure_session(tx, REF, a, 10))
    assert db.write_now(lambda tx: projects.ensure_session(tx, REF, b, 20)) == first
    assert db.read_now(lambda tx: projects.session(tx, first)).project_id == a


def test_a_session_spans_its_events_and_is_titled_by_the_first(db):
    number = db.write_now(lambda tx: projects.ensure_session(tx, REF, make(tx), 10))
    for at, title in ((30, None), (5, "First words"), (20, "Later words")):
        db.write_now(
            lambda tx, at=at, title=title: projects.session_happened(tx, number, at, title)
        )
    session = db.read_now(lambda tx: projects.sessions(tx, [number, 77]))[number]
    assert (session.started_at, session.last_event_at, session.title) == (5, 30, "First words")


def test_a_session_is_found_by_the_beginning_of_its_key(db):
    db.write_now(lambda tx: projects.ensure_session(tx, REF, make(tx), 10))
    assert [s.key for s in db.read_now(lambda tx: projects.find_sessions(tx, "ab"))] == ["abc"]
    assert db.read_now(lambda tx: projects.find_sessions(tx, "%")) == []

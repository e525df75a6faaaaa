from memd.models import SessionRef
from memd.store import events, projects
from tests.factories import make_new_event

REF = SessionRef("claude-code", "abc", "/home/dev/ledger")


def make(tx, key="/a", name="a"):
    return projects.ensure_project(tx, key, name, "because", 1)


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
        db.write_now(lambda tx, at=at, title=title: projects.extend_session(tx, number, at, title))
    session = db.read_now(lambda tx: projects.sessions(tx, [number, 77]))[number]
    assert (session.started_at, session.last_event_at, session.title) == (5, 30, "First words")


def test_a_session_is_found_by_the_beginning_of_its_key(db):
    db.write_now(lambda tx: projects.ensure_session(tx, REF, make(tx), 10))
    assert [s.key for s in db.read_now(lambda tx: projects.find_sessions(tx, "ab"))] == ["abc"]
    assert db.read_now(lambda tx: projects.find_sessions(tx, "%")) == []


def merged(tx, source="/a", into="/b", now=2):
    return projects.merge_project(
        tx, projects.project_by_key(tx, source), projects.project_by_key(tx, into), now
    )


def test_a_merged_key_means_the_project_that_stayed(db):
    def write(tx):
        for key, name in (("/a", "a"), ("/b", "b"), ("/c", "c")):
            make(tx, key, name)
        projects.ensure_session(tx, REF, projects.project_by_key(tx, "/a").id, 10)
        return merged(tx), merged(tx, "/b", "/c", 3)

    first, second = db.write_now(write)
    assert (first.sessions, first.memories, first.aliases) == (1, 0, 0)
    assert (second.sessions, second.aliases) == (1, 1)
    (left,) = db.read_now(projects.projects)
    assert db.write_now(make) == left.id
    assert [db.read_now(lambda tx, k=k: projects.project_by_key(tx, k)) for k in ("/a", "/b", "/c")] == [
        left, left, left,
    ]  # fmt: skip
    assert db.read_now(projects.project_aliases) == {left.id: ["/a", "/b"]}


def test_a_project_is_found_by_the_name_and_key_of_what_was_merged_into_it(db):
    def write(tx):
        make(tx, "/dev/shop-api", "shop-api")
        make(tx, "/dev/shop", "shop")
        merged(tx, "/dev/shop-api", "/dev/shop")

    db.write_now(write)
    for name in ("shop-api", "/dev/shop-api", "shop"):
        found = db.read_now(lambda tx, name=name: projects.find_projects(tx, name))
        assert [one.key for one in found] == ["/dev/shop"], name
    assert db.read_now(lambda tx: projects.find_projects(tx, "api")) == []


def test_the_project_with_this_key_comes_before_those_with_this_name(db):
    db.write_now(lambda tx: make(tx, "/dev/shop", "shop"))
    db.write_now(lambda tx: make(tx, "shop", "shop"))
    found = db.read_now(lambda tx: projects.find_projects(tx, "shop"))
    assert [one.key for one in found] == ["shop", "/dev/shop"]


def test_a_project_is_counted_and_renamed(db):
    def write(tx):
        number = make(tx)
        session = projects.ensure_session(tx, REF, number, 10)
        for kind in ("prompt", "stop"):
            events.append_event(tx, make_new_event(kind), session)
        projects.extend_session(tx, session, 50, None)
        projects.rename_project(tx, number, "money")
        return number, make(tx, "/b", "b")

    number, other = db.write_now(write)
    tallies = db.read_now(projects.count_by_project)
    assert tallies[number] == projects.ProjectCounts(1, 0, 2, 50)
    assert tallies[other] == projects.ProjectCounts()
    assert db.read_now(lambda tx: projects.project(tx, number)).name == "money"
    assert db.write_now(make) == number
    assert db.read_now(lambda tx: projects.project(tx, number)).name == "money"


def test_a_known_session_says_where_it_belongs(db):
    assert db.read_now(lambda tx: projects.session_and_project(tx, REF)) is None
    number = db.write_now(lambda tx: projects.ensure_session(tx, REF, make(tx), 10))
    assert db.read_now(lambda tx: projects.session_and_project(tx, REF)) == (number, "/a")


def test_the_sessions_of_a_project_come_newest_first_without_those_dated_ahead_or_empty(db):
    def work(tx):
        here = projects.ensure_project(tx, "/p", "p", "", 1)
        for key, at in (("a", 5), ("b", 7), ("c", 10**12), ("empty", 8)):
            session = projects.ensure_session(tx, SessionRef("c", key), here, at)
            kind = "session_start" if key == "empty" else "prompt"
            tx.execute(
                "INSERT INTO events (key, session_id, kind, name, at, source, payload)"
                " VALUES (?, ?, ?, 'n', ?, 'live', '{}')",
                (key, session, kind, at),
            )
        return [[s.key for s in projects.recent_sessions(tx, here, 5, now)] for now in (10, 10**12)]

    assert db.write_now(work) == [["b", "a"], ["c", "b", "a"]]

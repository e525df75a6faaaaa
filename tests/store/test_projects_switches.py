from memd.models import SessionRef
from memd.store import projects
from memd.store.projects import PROJECT_SCOPE, SESSION_SCOPE


def put(db, scope, target, captures, recalls, now=1):
    db.write_now(lambda tx: projects.put_switch(tx, scope, target, captures, recalls, now))


def effective(db, project="/dev/ledger", session="s1"):
    found = db.read_now(lambda tx: projects.effective_switch(tx, project, session))
    return found.captures, found.recalls, found.reason


def test_nothing_said_means_on(db):
    assert effective(db) == (True, True, "on everywhere")
    assert effective(db, session=None) == (True, True, "on everywhere")


def test_a_session_says_more_than_its_project(db):
    put(db, PROJECT_SCOPE, "/dev/ledger", False, False)
    put(db, SESSION_SCOPE, "s1", True, False)
    assert effective(db) == (True, False, "switched to capture only for this session")
    assert effective(db, session="s2")[:2] == (False, False)
    assert effective(db, session=None)[:2] == (False, False)


def test_what_is_said_last_holds_until_it_is_dropped(db):
    put(db, PROJECT_SCOPE, "/dev/ledger", True, False)
    put(db, PROJECT_SCOPE, "/dev/ledger", False, True)
    assert effective(db) == (False, True, "switched to recall only for project ledger")
    drop = lambda tx: projects.drop_switch(tx, PROJECT_SCOPE, "/dev/ledger")  # noqa: E731
    assert [db.write_now(drop), db.write_now(drop)] == [True, False]
    assert effective(db)[:2] == (True, True)


def test_a_merged_project_follows_the_one_that_stayed(db):
    def merge(tx):
        ids = [projects.ensure_project(tx, key, key[1:], "", 1) for key in ("/a", "/b")]
        one, other = (projects.project(tx, number) for number in ids)
        projects.merge_project(tx, one, other, 2)

    db.write_now(merge)
    put(db, PROJECT_SCOPE, "/a", False, False)
    assert effective(db, "/a") == effective(db, "/b") == (
        False, False, "switched off for project b"
    )  # fmt: skip
    assert [said.target for said in db.read_now(projects.list_switches)] == ["/b"]


def test_everything_said_is_listed_by_its_name(db):
    def known(tx):
        number = projects.ensure_project(tx, "/dev/ledger", "money", "", 1)
        session = projects.ensure_session(tx, SessionRef("claude-code", "s1"), number, 1)
        projects.extend_session(tx, session, 1, "Fix the login")

    db.write_now(known)
    for scope, target in (
        (SESSION_SCOPE, "s1"),
        (SESSION_SCOPE, "s2"),
        (PROJECT_SCOPE, "/dev/ledger"),
    ):
        put(db, scope, target, False, True, now=7)
    listed = db.read_now(projects.list_switches)
    assert [(said.scope, said.name) for said in listed] == [
        ("project", "money"), ("session", "Fix the login"), ("session", "s2"),
    ]  # fmt: skip
    assert (listed[0].captures, listed[0].recalls, listed[0].at) == (False, True, 7)

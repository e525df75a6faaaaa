import pytest

from memd.models import Draft, EdgeType, Kind, SessionRef
from memd.store import links, projects, summaries


@pytest.fixture
def put(db):
    def write(title, project="/a", session=None):
        def work(tx):
            project_id = projects.ensure_project(tx, project, project, "", 1)
            session_id = session and projects.ensure_session(
                tx, SessionRef("c", session), project_id, 1
            )
            owner = summaries.SummaryOwner(project_id, session_id, "c")
            draft = Draft("t", Kind.FACT, title, "", 1, "r", ())
            return (
                summaries.put_summary(tx, title, draft, owner, 1)[0],
                project_id,
                session_id,
            )

        return db.write_now(work)

    return write


def link(db, number, type_, kind, node):
    edge = links.NewEdge("summary", str(number), type_, kind, str(node), "r", 1)
    db.write_now(lambda tx: links.add_edges(tx, [edge]))


def test_a_session_knows_the_files_of_its_own_memories_the_latest_first(db, put):
    (mine, _, session), (other, _, _) = put("a", session="s"), put("b", session="t")
    for number, path in ((mine, "/1"), (mine, "/2"), (other, "/3")):
        link(db, number, EdgeType.EDITS, "file", path)
    link(db, mine, EdgeType.DERIVES_FROM, "event", 4)
    assert db.read_now(lambda tx: links.files_of_session(tx, session)) == ["/2", "/1"]
    assert db.read_now(lambda tx: links.files_of_session(tx, session, 1)) == ["/2"]


def test_a_file_is_told_of_by_the_projects_whose_memories_say_so(db, put):
    (number, project, _), (_, other, _) = put("a"), put("b", "/b")
    link(db, number, EdgeType.EDITS, "file", "/1")
    told = [
        db.read_now(lambda tx, ids=ids: links.has_edge_to(tx, "file", "/1", ids))
        for ids in ([project], [other], [other, project], [])
    ]
    assert told == [True, False, True, False]

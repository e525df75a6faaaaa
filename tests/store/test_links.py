import pytest

from memd.models import Draft, EdgeType, Kind, SessionRef
from memd.store import judgments, links, projects, summaries
from tests.factories import make_draft


@pytest.fixture
def three(db):
    def make(tx):
        owner = summaries.SummaryOwner(projects.ensure_project(tx, "/a", "a", "", 1), None, "agent")
        return [
            summaries.put_summary(
                tx, f"u{i}", Draft("t", Kind.NOTE, f"t{i}", "b", i, "r", ()), owner, 1
            )[0]
            for i in range(3)
        ]

    return db.write_now(make)


def supersede(db, newer, older):
    return db.write_now(
        lambda tx: links.supersede(
            tx, newer_id=newer, older_id=older, rule="r", cosine=0.96, guard="same", at=5
        )
    )


def test_a_summary_is_superseded_once_and_never_in_a_cycle(db, three):
    a, b, c = three
    assert supersede(db, b, a)
    assert supersede(db, c, a) is None
    assert supersede(db, c, b)
    assert supersede(db, a, c) is None
    assert supersede(db, a, a) is None
    assert db.read_now(lambda tx: links.final_superseder(tx, a)) == c


def test_final_superseder_is_the_end_of_the_chain(db, three):
    a, b, c = three
    supersede(db, b, a)
    supersede(db, c, b)
    found = db.read_now(
        lambda tx: links.with_final_superseders(tx, summaries.summaries_by_ids(tx, three))
    )
    assert {number: one.superseded_by for number, one in found.items()} == {a: c, b: c, c: None}


def test_a_supersession_can_be_undone_and_leaves_its_trace(db, three):
    a, b, c = three
    row = supersede(db, b, a)
    assert db.write_now(lambda tx: links.undo_supersession(tx, row, 9))
    assert not db.write_now(lambda tx: links.undo_supersession(tx, row, 9))
    assert db.read_now(lambda tx: summaries.get_summary(tx, a)).superseded_by is None
    assert supersede(db, c, a)
    history = db.read_now(lambda tx: links.supersessions_of(tx, a))
    assert [(s.newer_id, s.undone_at) for s in history] == [(b, 9), (c, None)]


def test_edges_are_written_once_and_seen_from_both_ends(db):
    edge = links.NewEdge(
        "summary", "1", EdgeType.EDITS, "file", "/x.py", "turn", 1, detail={"n": 1}
    )
    assert db.write_now(lambda tx: links.add_edges(tx, [edge, edge])) == 1
    assert db.write_now(lambda tx: links.add_edges(tx, [edge])) == 0
    for kind, node in (("summary", "1"), ("file", "/x.py")):
        (found,) = db.read_now(lambda tx, k=kind, n=node: links.edges_at(tx, k, n))
        assert (found.type, found.detail) == (EdgeType.EDITS, {"n": 1})


def test_sources_are_edges_with_a_quote(db):
    edges = [
        links.NewEdge(
            "summary",
            "1",
            EdgeType.DERIVES_FROM,
            "event",
            str(i),
            "turn",
            1,
            detail={"quote": f"q{i}"},
        )
        for i in (10, 9)
    ]
    db.write_now(lambda tx: links.add_edges(tx, edges))
    assert db.read_now(lambda tx: links.sources_of(tx, 1)) == [(9, "q9"), (10, "q10")]
    assert db.read_now(lambda tx: links.derived_from(tx, 9)) == [1]
    db.write_now(lambda tx: links.drop_edges_from(tx, 1))
    assert db.read_now(lambda tx: links.sources_of(tx, 1)) == []


def test_edges_are_found_by_the_beginning_of_where_they_end_and_dropped_one_by_one(db):
    def link(tx):
        ends = ("/a.md#x", "/a.md#\U0010fffd", "/a.md.bak#x", "/a")
        new = [
            links.NewEdge("summary", "1", EdgeType.DERIVES_FROM, "origin", end, "r", 1)
            for end in ends
        ]
        links.add_edges(tx, new)

    db.write_now(link)

    def below():
        edges = db.read_now(lambda tx: links.edges_below(tx, "origin", "/a.md#"))
        return [edge.to_id for edge in edges]

    assert below() == ["/a.md#x", "/a.md#\U0010fffd"]
    start, end = ("summary", "1"), ("origin", "/a.md#x")
    db.write_now(lambda tx: links.drop_edge(tx, start, EdgeType.REFERENCES, end))
    assert len(below()) == 2
    db.write_now(lambda tx: links.drop_edge(tx, start, EdgeType.DERIVES_FROM, end))
    assert below() == ["/a.md#\U0010fffd"]


def test_no_question_about_the_end_of_an_edge_walks_through_all_edges(db):
    asked = []

    def work(tx):
        tx.exec_trace = lambda _, sql, given: asked.append((sql, given)) or True
        try:
            links.derived_from(tx, 1)
            links.drop_orphan_nodes(tx, [("file", "/a.py")])
            links.neighbours(tx, "event", "1")
            judgments.contradicting_ids(tx, [1])
            judgments.replaced_beside(tx, [1])
            links.has_edge_to(tx, "file", "/a.py", [1])
            links.files_of_session(tx, 1)
        finally:
            tx.exec_trace = None
        return [
            row[3] for sql, given in asked for row in tx.execute(f"EXPLAIN QUERY PLAN {sql}", given)
        ]

    found = [line for line in db.write_now(work) if "edges" in line or " e " in line]
    assert len(found) >= 11
    assert all("_id=?" in line for line in found), found


def put_named_summary(db):
    def write(tx):
        owner = summaries.SummaryOwner(projects.ensure_global(tx, 1), None, "test")
        return summaries.put_summary(tx, "u", make_draft(), owner, 1)[0]

    return db.write_now(write)


def test_half_a_character_is_no_error(db):
    one = put_named_summary(db)
    db.write_now(lambda tx: links.put_entities(tx, one, [("a\ud800.py", "file")]))
    (name,) = db.read_now(lambda tx: links.entities_of(tx, [one]))[one]
    assert name.startswith("a")


@pytest.fixture
def put_session_summary(db):
    def write(title, project="/a", session=None):
        def work(tx):
            project_id = projects.ensure_project(tx, project, project, "", 1)
            session_id = session and projects.ensure_session(
                tx, SessionRef("c", session), project_id, 1
            )
            owner = summaries.SummaryOwner(project_id, session_id, "c")
            draft = Draft("t", Kind.FACT, title, "", 1, "r", ())
            return (summaries.put_summary(tx, title, draft, owner, 1)[0], project_id, session_id)

        return db.write_now(work)

    return write


def link_summary(db, number, type_, kind, node):
    edge = links.NewEdge("summary", str(number), type_, kind, str(node), "r", 1)
    db.write_now(lambda tx: links.add_edges(tx, [edge]))


def test_a_session_knows_the_files_of_its_own_memories_the_latest_first(db, put_session_summary):
    (mine, _, session), (other, _, _) = (
        put_session_summary("a", session="s"),
        put_session_summary("b", session="t"),
    )
    for number, path in ((mine, "/1"), (mine, "/2"), (other, "/3")):
        link_summary(db, number, EdgeType.EDITS, "file", path)
    link_summary(db, mine, EdgeType.DERIVES_FROM, "event", 4)
    assert db.read_now(lambda tx: links.files_of_session(tx, session)) == ["/2", "/1"]
    assert db.read_now(lambda tx: links.files_of_session(tx, session, 1)) == ["/2"]


def test_has_edge_to_considers_the_memories_of_the_given_projects(db, put_session_summary):
    (number, project, _), (_, other, _) = (put_session_summary("a"), put_session_summary("b", "/b"))
    link_summary(db, number, EdgeType.EDITS, "file", "/1")
    told = [
        db.read_now(lambda tx, ids=ids: links.has_edge_to(tx, "file", "/1", ids))
        for ids in ([project], [other], [other, project], [])
    ]
    assert told == [True, False, True, False]

import pytest

from memd.errors import BadRequest, UnknownId
from memd.models import Draft, EdgeType, EventKind, Kind, NewEvent, SessionRef
from memd.recall.provenance import EDGES_MAX, QUOTE_CHARACTERS, why
from memd.store import events, links, projects, summaries


class Graph:
    """Nodes and edges, and a way to ask about them."""

    def __init__(self, db):
        self.db = db
        self.here = self._project("/a")
        self.there = self._project("/b")

    def _project(self, key):
        return self.db.write_now(lambda tx: projects.ensure_project(tx, key, key, "", 1))

    def summary(self, title, project_id=None, **more):
        owner = summaries.Owner(project_id or self.here, None, "c")
        draft = Draft("slot", Kind.FACT, title, "", 1, "rule", (), **more)
        return self.db.write_now(
            lambda tx: summaries.put(tx, f"{title}{project_id}", draft, owner, 1)
        )[0]

    def event(self, key, project_id=None, **payload):
        project_id = project_id or self.here
        ref = SessionRef("c", f"s{project_id}")
        event = NewEvent(ref, key, EventKind.PROMPT, "p", 1, "live", payload)

        def append(tx):
            return events.append(tx, event, projects.ensure_session(tx, ref, project_id, 1))

        return self.db.write_now(append)[0]

    def link(self, from_, type_, to, **detail):
        edge = links.NewEdge(*from_, type_, *to, "rule", 1, detail=detail)
        self.db.write_now(lambda tx: links.link(tx, [edge]))

    def derives(self, summary, event, quote=""):
        self.link(
            ("summary", str(summary)), EdgeType.DERIVES_FROM, ("event", str(event)), quote=quote
        )

    def contradicts(self, newer, older):
        self.link(("summary", str(newer)), EdgeType.CONTRADICTS, ("summary", str(older)))

    def supersede(self, newer, older, rule="near-duplicate"):
        return self.db.write_now(
            lambda tx: links.supersede(
                tx, newer_id=newer, older_id=older, rule=rule, cosine=0.96, guard="same", at=1
            )
        )

    async def why(self, node, kind="summary", depth=1, now=None, project_ids=()):
        project_ids = project_ids if project_ids is None else project_ids or (self.here,)
        return await why(
            self.db, kind, str(node), depth=depth, project_ids=project_ids, now=now
        )


@pytest.fixture
def graph(db):
    return Graph(db)


async def test_a_memory_tells_the_events_it_came_from_with_their_words(graph):
    quoted, bare = (
        graph.event("k1", prompt="the whole prompt"),
        graph.event("k2", prompt="we use Redis"),
    )
    number = graph.summary("Redis")
    graph.derives(number, quoted, "the prompt")
    graph.derives(number, bare)
    found = await graph.why(number)
    assert (found.node, found.verdict, found.summary.title) == (
        f"summary:{number}",
        "current",
        "Redis",
    )
    assert [(s.event.id, s.quote) for s in found.sources] == [
        (quoted, "the prompt"),
        (bare, "we use Redis"),
    ]
    assert {edge.type for edge in found.edges} == {EdgeType.DERIVES_FROM}


async def test_a_quote_is_never_long(graph):
    number = graph.summary("x")
    graph.derives(number, graph.event("k1"), "q" * 5_000)
    graph.derives(number, graph.event("k2", tool_input={"command": "c" * 5_000}))
    graph.derives(number, graph.event("k3", tool_input="odd", prompt=7))
    quotes = [source.quote for source in (await graph.why(number)).sources]
    assert [len(quote) for quote in quotes] == [QUOTE_CHARACTERS, QUOTE_CHARACTERS, 0]


async def test_the_chain_of_supersession_is_told_both_ways(graph):
    a, b, c, d = (graph.summary(title) for title in "abcd")
    for newer, older in ((b, a), (c, b), (d, c)):
        graph.supersede(newer, older, "topic-key")
    found = await graph.why(b)
    assert [(r.other.id, r.is_newer) for r in found.relations] == [
        (c, True),
        (d, True),
        (a, False),
    ]
    one = found.relations[0].supersession
    assert (one.rule, one.cosine, one.guard) == ("topic-key", 0.96, "same")
    assert found.verdict == f"superseded by #{d} (topic-key, via #{c})"
    assert (await graph.why(c)).verdict == f"superseded by #{d} (topic-key)"
    assert (await graph.why(d)).verdict == "current"


async def test_an_undone_supersession_is_told_and_no_longer_counts(graph):
    old, new, newest = (graph.summary(title) for title in ("old", "new", "newest"))
    row = graph.supersede(new, old)
    graph.supersede(newest, new)
    graph.db.write_now(lambda tx: links.undo(tx, row, 9))
    found = await graph.why(old)
    assert [(r.other.id, r.supersession.undone_at) for r in found.relations] == [(new, 9)]
    assert found.verdict == "current"


async def test_what_a_newer_memory_contradicts_says_so_until_that_one_goes(graph):
    old, new, newest = (graph.summary(title) for title in ("old", "new", "newest"))
    graph.contradicts(new, old)
    assert (await graph.why(old)).verdict == f"contradicted by #{new}"
    assert (await graph.why(new)).verdict == "current"
    graph.supersede(newest, new)
    assert (await graph.why(old)).verdict == "current"


async def test_a_memory_that_has_expired_says_so(graph):
    number = graph.summary("x", expires_at=50)
    assert (await graph.why(number, now=50)).verdict == "expired"
    assert (await graph.why(number, now=49)).verdict == "current"


async def test_edges_are_followed_both_ways_to_a_depth(graph):
    one, two, three = (graph.summary(title) for title in ("one", "two", "three"))
    graph.link(("summary", str(one)), EdgeType.EDITS, ("file", "/a.py"))
    graph.link(("summary", str(two)), EdgeType.REFERENCES, ("file", "/a.py"))
    graph.link(("summary", str(two)), EdgeType.CAUSES, ("summary", str(three)))
    steps = [
        [edge.type.value for edge in (await graph.why(one, depth=depth)).edges]
        for depth in range(5)
    ]
    assert steps == [
        [],
        ["edits"],
        ["edits", "references"],
        *[["edits", "references", "causes"]] * 2,
    ]
    titles = (await graph.why(one, depth=3)).titles
    assert titles == {
        f"summary:{one}": "one",
        f"summary:{two}": "two",
        f"summary:{three}": "three",
    }


async def test_a_circle_of_edges_ends(graph):
    one, two = graph.summary("one"), graph.summary("two")
    graph.link(("summary", str(one)), EdgeType.CAUSES, ("summary", str(two)))
    graph.link(("summary", str(two)), EdgeType.CAUSED_BY, ("summary", str(one)))
    assert len((await graph.why(one, depth=6)).edges) == 2


async def test_there_are_never_too_many_edges(graph):
    number = graph.summary("hub")
    edges = [
        links.NewEdge("summary", str(number), EdgeType.EDITS, "file", f"/{i}", "rule", 1)
        for i in range(EDGES_MAX + 50)
    ]
    graph.db.write_now(lambda tx: links.link(tx, edges))
    assert len((await graph.why(number, depth=6)).edges) == EDGES_MAX


async def test_nothing_of_another_project_is_shown(graph):
    mine, theirs = graph.summary("mine"), graph.summary("theirs", graph.there)
    event = graph.event("k", graph.there)
    for node in (("summary", str(mine)), ("summary", str(theirs)), ("event", str(event))):
        graph.link(node, EdgeType.EDITS, ("file", "/shared.py"))
    found = await graph.why("/shared.py", kind="file", depth=3)
    assert [edge.from_id for edge in found.edges] == [str(mine)]
    assert found.titles == {f"summary:{mine}": "mine"}
    assert len((await graph.why("/shared.py", kind="file", project_ids=None)).edges) == 3
    for node, kind in ((theirs, "summary"), (event, "event")):
        with pytest.raises(UnknownId, match="belongs to another project"):
            await graph.why(node, kind=kind)


async def test_an_event_is_its_own_source(graph):
    event = graph.event("k", prompt="hello")
    found = await graph.why(event, kind="event")
    assert (found.node, found.verdict, found.summary) == (f"event:{event}", "recorded", None)
    assert found.sources[0].quote == "hello"


@pytest.mark.parametrize(
    ("kind", "node"),
    [
        ("summary", "999"), ("summary", "x"), ("summary", "-1"), ("summary", "9" * 40), ("summary", ""),
        ("summary", "²"), ("event", "999"), ("file", "/nowhere"), ("odd", "thing"), ("file", "\ud800"),
    ],
)  # fmt: skip
async def test_what_is_not_there_is_unknown(graph, kind, node):
    with pytest.raises(UnknownId):
        await graph.why(node, kind=kind)


async def test_an_id_may_be_written_with_leading_zeros(graph):
    number = graph.summary("x")
    graph.link(("summary", str(number)), EdgeType.EDITS, ("file", "/a.py"))
    assert len((await graph.why(f"00{number}")).edges) == 1


@pytest.mark.parametrize("depth", [-1, 7])
async def test_a_depth_has_bounds(graph, depth):
    with pytest.raises(BadRequest, match="depth"):
        await graph.why(graph.summary("x"), depth=depth)

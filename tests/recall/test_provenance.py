import re
from pathlib import Path

import pytest

from memd.errors import BadRequest, UnknownId
from memd.models import (
    NOTED,
    Authority,
    Draft,
    EdgeType,
    EventKind,
    Kind,
    NewEvent,
    SessionRef,
    Stance,
    Tier,
)
from memd.recall import TranscriptPosition, UsageHistory, provenance
from memd.recall.provenance import EDGES_MAX, QUOTE_CHARACTERS, explain_node
from memd.store import SummaryUse, events, judgments, links, projects, summaries, usage
from memd.store.usage import NewInjection
from tests.factories import make_draft, make_event, make_new_event
from tests.tables import every_row


class Graph:
    """Nodes and edges, and a way to ask about them."""

    def __init__(self, db):
        self.db = db
        self.here = self._project("/a")
        self.there = self._project("/b")

    def _project(self, key):
        return self.db.write_now(lambda tx: projects.ensure_project(tx, key, key, "", 1))

    def summary(self, title, project_id=None, kind=Kind.NOTE, **more):
        owner = summaries.SummaryOwner(project_id or self.here, None, "c")
        draft = Draft("slot", kind, title, "", 1, more.pop("rule", "rule"), (), **more)
        return self.db.write_now(
            lambda tx: summaries.put_summary(tx, f"{title}{project_id}", draft, owner, 1)
        )[0]

    def event(self, key, project_id=None, **payload):
        project_id = project_id or self.here
        ref = SessionRef("c", f"s{project_id}")
        event = NewEvent(ref, key, EventKind.PROMPT, "p", 1, "live", payload)

        def append(tx):
            return events.append_event(tx, event, projects.ensure_session(tx, ref, project_id, 1))

        return self.db.write_now(append)[0]

    def link(self, from_, type_, to, **detail):
        edge = links.NewEdge(*from_, type_, *to, "rule", 1, detail=detail)
        self.db.write_now(lambda tx: links.add_edges(tx, [edge]))

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
        return await explain_node(
            self.db, kind, str(node), depth=depth, project_ids=project_ids, now=now
        )


@pytest.fixture
def graph(db):
    return Graph(db)


async def test_a_memory_names_the_events_it_came_from_with_quotes(graph):
    quoted, bare = (
        graph.event("k1", prompt="the whole prompt", transcript_path="/t/s.jsonl", uuid="u"),
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
    place = found.sources[0].position
    assert (place.transcript, place.line) == ("/t/s.jsonl", "u")
    assert {edge.type for edge in found.edges} == {EdgeType.DERIVES_FROM}


async def test_a_quote_is_never_long(graph):
    number = graph.summary("x")
    graph.derives(number, graph.event("k1"), "q" * 5_000)
    graph.derives(number, graph.event("k2", tool_input={"command": "c" * 5_000}))
    graph.derives(number, graph.event("k3", tool_input="odd", prompt=7))
    quotes = [source.quote for source in (await graph.why(number)).sources]
    assert [len(quote) for quote in quotes] == [QUOTE_CHARACTERS, QUOTE_CHARACTERS, 0]


async def test_the_chain_of_supersessions_is_followed_both_ways(graph):
    a, b, c, d = (graph.summary(title) for title in "abcd")
    for newer, older in ((b, a), (c, b), (d, c)):
        graph.supersede(newer, older, "topic-key")
    found = await graph.why(b)
    assert [(r.other.id, r.is_newer) for r in found.relations] == [(c, True), (d, True), (a, False)]
    one = found.relations[0].supersession
    assert (one.rule, one.cosine, one.guard) == ("topic-key", 0.96, "same")
    assert found.verdict == f"superseded by #{d} (topic-key, via #{c})"
    assert (await graph.why(c)).verdict == f"superseded by #{d} (topic-key)"
    assert (await graph.why(d)).verdict == "current"


async def test_an_undone_supersession_is_shown_and_no_longer_counts(graph):
    old, new, newest = (graph.summary(title) for title in ("old", "new", "newest"))
    row = graph.supersede(new, old)
    graph.supersede(newest, new)
    graph.db.write_now(lambda tx: links.undo_supersession(tx, row, 9))
    found = await graph.why(old)
    assert [(r.other.id, r.supersession.undone_at) for r in found.relations] == [(new, 9)]
    assert found.verdict == "current"


async def test_two_that_contradict_each_other_both_say_so_until_one_goes(graph):
    old, new, newest = (graph.summary(title) for title in ("old", "new", "newest"))
    graph.contradicts(new, old)
    assert (await graph.why(old)).verdict == f"contradicted by #{new}"
    assert (await graph.why(new)).verdict == f"contradicted by #{old}"
    assert (await graph.why(new)).contradicted_by == (old,)
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
    assert titles == {f"summary:{one}": "one", f"summary:{two}": "two", f"summary:{three}": "three"}


async def test_a_circle_of_edges_ends(graph):
    one, two = graph.summary("one"), graph.summary("two")
    graph.link(("summary", str(one)), EdgeType.CAUSES, ("summary", str(two)))
    graph.link(("summary", str(two)), EdgeType.DERIVES_FROM, ("summary", str(one)))
    assert len((await graph.why(one, depth=6)).edges) == 2


async def test_there_are_never_too_many_edges(graph):
    number = graph.summary("hub")
    edges = [
        links.NewEdge("summary", str(number), EdgeType.EDITS, "file", f"/{i}", "rule", 1)
        for i in range(EDGES_MAX + 50)
    ]
    graph.db.write_now(lambda tx: links.add_edges(tx, edges))
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


async def test_a_claim_stated_once_is_unconfirmed_until_it_is_judged(graph):
    said, other = graph.summary("said", kind=Kind.DECISION), graph.summary("other")
    assert (await graph.why(said)).verdict == "unconfirmed"
    assert (await graph.why(other)).verdict == "current"
    row = graph.db.write_now(
        lambda tx: judgments.put_judgment(
            tx, newer_id=said, older_id=other, relation=Stance.COMPATIBLE, reason="both hold",
            who="user", at=5,
        )
    )  # fmt: skip
    assert row
    found = await graph.why(said)
    assert (found.verdict, found.judgments[0].judgment.reason) == ("current", "both hold")


@pytest.mark.parametrize(
    ("kind", "rule", "tier", "verdict"),
    [
        (Kind.INSTRUCTION, "instruction:always", Tier.CAPTURED, "unconfirmed"),
        (Kind.FIX, "stated-fix", Tier.CAPTURED, "unconfirmed"),
        (Kind.FIX, "same-command", Tier.CAPTURED, "current"),
        (Kind.FACT, "remembered", Tier.AGENT, "unconfirmed"),
        (Kind.FACT, "remembered", Tier.FILE, "current"),
        (Kind.CHANGE, "turn", Tier.CAPTURED, "current"),
    ],
)
async def test_only_what_was_picked_up_and_may_be_wrong_needs_confirming(
    graph, kind, rule, tier, verdict
):
    number = graph.summary("x", kind=kind, rule=rule, tier=tier)
    assert (await graph.why(number)).verdict == verdict


@pytest.mark.parametrize(
    ("authority", "rule"), [(Authority.USER_TOLD, NOTED), (Authority.USER_PROMPT, "said:always")]
)
async def test_what_the_user_said_holds_though_he_said_it_once(graph, authority, rule):
    number = graph.summary("x", kind=Kind.FACT, tier=Tier.AGENT, authority=authority, rule=rule)
    assert (await graph.why(number)).verdict == "current"


async def test_a_repeated_or_pinned_memory_is_confirmed(graph):
    again, pinned = graph.summary("a", kind=Kind.FACT), graph.summary("b", kind=Kind.FACT)
    graph.db.write_now(lambda tx: summaries.strengthen_summary(tx, again, 2))
    graph.db.write_now(lambda tx: summaries.pin_summary(tx, pinned, 2))
    assert {(await graph.why(number)).verdict for number in (again, pinned)} == {"current"}


async def test_why_describes_the_rule_in_words(graph):
    number = graph.summary("x", rule="same-command")
    assert "the same command passed" in (await graph.why(number)).rule


async def test_use_is_counted_across_projects_but_sessions_of_others_are_not_named(graph):
    number = graph.summary("x")
    graph.event("k1", prompt="hi")
    graph.event("k2", graph.there, prompt="hi")

    def use(tx):
        usage.record_uses(tx, {number: SummaryUse(3, 70)}, {})
        shown = [
            NewInjection(1, number, "prompt", 80, "it fits"),
            NewInjection(2, number, "startup", 90, "rule"),
        ]
        usage.record_injections(tx, shown)

    graph.db.write_now(use)
    told = (await graph.why(number)).access
    assert (told.count, told.last_at, told.shown, told.sessions) == (3, 70, 2, 2)
    assert [(one.moment, one.at) for one in told.latest] == [("prompt", 80)]
    everywhere = (await graph.why(number, project_ids=None)).access
    assert [one.moment for one in everywhere.latest] == ["startup", "prompt"]
    assert (await graph.why(graph.summary("y"))).access.count == 0


async def test_edges_between_files_are_visible_from_projects_that_know_the_first_file(graph):
    mine, theirs = graph.summary("mine"), graph.summary("theirs", graph.there)
    graph.link(("summary", str(mine)), EdgeType.EDITS, ("file", "/a.py"))
    graph.link(("summary", str(theirs)), EdgeType.EDITS, ("file", "/b.py"))
    graph.link(("file", "/a.py"), EdgeType.IMPORTS, ("file", "/lib.py"))
    graph.link(("file", "/b.py"), EdgeType.IMPORTS, ("file", "/lib.py"))
    found = await graph.why("/lib.py", kind="file")
    assert [edge.from_id for edge in found.edges] == ["/a.py"]
    assert len((await graph.why("/lib.py", kind="file", project_ids=None)).edges) == 2
    assert [e.type.value for e in (await graph.why(mine, depth=2)).edges] == ["edits", "imports"]


def test_the_latest_injections_are_listed_and_all_are_counted(db):
    def write(tx):
        project = projects.ensure_project(tx, "/a", "a", "", 1)
        session = projects.ensure_session(tx, make_new_event().session, project, 1)
        owner = summaries.SummaryOwner(project, session, "c")
        number, _ = summaries.put_summary(tx, "u", make_draft(), owner, 1)
        shown = [NewInjection(session, number, "prompt", at, "it fits") for at in range(30)]
        usage.record_injections(tx, shown)
        return number, project

    number, project = db.write_now(write)
    told = db.read_now(lambda tx: provenance.read_usage(tx, number, (project,)))
    assert (told.shown, told.sessions, told.latest[0].at) == (30, 1, 29)
    assert len(told.latest) == provenance.LATEST_MAX
    assert db.read_now(lambda tx: provenance.read_usage(tx, 999, None)) == UsageHistory()


def test_a_stored_quote_goes_before_the_event_s_own_words():
    event = make_event(prompt="the whole prompt")
    assert provenance.quote_event("the prompt", event) == "the prompt"
    assert provenance.quote_event("  ", event) == "the whole prompt"


def test_an_event_says_where_it_stands_as_far_as_it_knows():
    event = make_event(
        transcript_path="/t/s.jsonl", session_id=1, uuid="u1", tool_use_id="toolu_1", turn="p1"
    )
    assert provenance.locate_in_transcript(event) == TranscriptPosition(
        "/t/s.jsonl", "", "u1", "p1", "toolu_1"
    )
    assert provenance.locate_in_transcript(make_event(turn=None, uuid=7)) == TranscriptPosition()
    inner = make_event(transcript_path="/t/s.jsonl", agent_transcript_path="/t/agent.jsonl")
    assert provenance.locate_in_transcript(inner).transcript == "/t/agent.jsonl"


MEMD = Path(__file__).parent.parent.parent / "memd"


@every_row(
    "rule", ["turn", "decision:chose", "decision:new-one", "instruction:always", "imported:x"]
)
def test_a_rule_has_a_description(rule):
    assert len(provenance.describe_rule(rule).split()) > 2


def test_an_unknown_rule_has_no_description():
    assert provenance.describe_rule("test") == ""


def test_every_rule_that_the_code_names_has_words():
    named = re.compile(r'^(?:\w*RULE|REPEAT|STATEMENT|PASSED_LATER) = "([\w:-]+)"', re.MULTILINE)
    rooms = ("belief", "consolidate", "distill", "store")
    found = {
        rule
        for room in rooms
        for path in (MEMD / room).rglob("*.py")
        for rule in named.findall(path.read_text(encoding="utf-8"))
    }
    assert {rule for rule in found if not provenance.describe_rule(rule)} == set()


def test_every_rule_of_a_family_has_words_and_none_has_those_of_the_judge():
    named = re.compile(r'"((?:asked|said|found|answer):[a-z-]+)"')
    found = {
        rule
        for path in (MEMD / "distill").rglob("*.py")
        for rule in named.findall(path.read_text(encoding="utf-8"))
    }
    assert {"said:remember", "said:decided", "answer:chosen"} <= found
    assert {rule for rule in found if not provenance.describe_rule(rule)} == set()
    judge = provenance.describe_rule("asked")
    assert {rule for rule in found if provenance.describe_rule(rule) == judge} == set()


async def test_a_file_is_found_by_its_name_if_it_is_one_only(graph):
    def edits(title, path, project=None):
        number = graph.summary(title, project)
        graph.link(("summary", str(number)), EdgeType.EDITS, ("file", path))

    edits("a", "/src/auth.py")
    edits("b", "/src/oauth.py")
    edits("c", "/other/auth.py", graph.there)
    assert (await graph.why("auth.py", "file")).node == "file:/src/auth.py"
    assert (await graph.why("src/auth.py", "file")).node == "file:/src/auth.py"
    assert (
        await graph.why("/other/auth.py", "file", project_ids=None)
    ).node == "file:/other/auth.py"
    with pytest.raises(
        BadRequest, match=r"auth\.py is 2 files; name one: /other/auth\.py, /src/auth\.py"
    ):
        await graph.why("auth.py", "file", project_ids=None)
    with pytest.raises(UnknownId, match=r"nothing is known of the file uth\.py"):
        await graph.why("uth.py", "file")

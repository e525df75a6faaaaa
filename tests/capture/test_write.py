"""Recording: one transaction in which what is stored and what is counted agree."""

from dataclasses import replace

from memd.capture.claude_code import Ignored, Refused
from memd.capture.project import ProjectIdentity
from memd.capture.write import PreparedItem, Receipt, store_items
from memd.models import EdgeType, EventKind, NewEvent, SessionRef
from memd.store import events, ledger, links, projects, summaries
from memd.text import PRIVATE
from tests.factories import make_draft

PROJECT = ProjectIdentity("/p", "p", "the directory")


def prompt(key, text="Fix the  login\nplease", at=5, session="s", source="live"):
    event = NewEvent(
        session=SessionRef("claude-code", session, "/p"), key=key, kind=EventKind.PROMPT,
        name="UserPromptSubmit", at=at, source=source, payload={"prompt": text},
    )  # fmt: skip
    return PreparedItem(source, event, PROJECT)


async def test_everything_gets_its_receipt_in_order_and_the_ledger_balances(db):
    everything = [
        prompt("a"),
        PreparedItem("live", Ignored("ignored path: dist/")),
        PreparedItem("spool", Refused("torn spool line")),
        prompt("a", source="spool"),
        prompt("b"),
    ]
    receipts = await db.write(lambda tx: store_items(tx, everything, 1))
    assert receipts == [
        Receipt("stored", 1),
        Receipt("filtered", reason="ignored path: dist/"),
        Receipt("refused", reason="torn spool line"),
        Receipt("duplicate", 1),
        Receipt("stored", receipts[4].seq),
    ]
    assert await db.read(ledger.balance) == {
        "received": 5, "stored": 2, "duplicate": 1, "filtered": 1, "refused": 1
    }  # fmt: skip
    assert await db.read(lambda tx: ledger.outcome_reasons(tx, "filtered")) == {
        "ignored path: dist/": 1
    }


async def test_the_session_has_its_project_its_span_and_the_title_of_its_first_prompt(db):
    everything = [prompt("a", at=50), prompt("b", "another", at=90), prompt("c", "x", at=20)]
    await db.write(lambda tx: store_items(tx, everything, 1))
    session = await db.read(lambda tx: projects.session(tx, 1))
    assert session.title == "Fix the login please"
    assert (session.started_at, session.last_event_at) == (20, 90)
    assert (await db.read(lambda tx: projects.project(tx, session.project_id))).key == "/p"


async def test_what_was_forgotten_does_not_come_back(db):
    await db.write(lambda tx: store_items(tx, [prompt("a")], 1))
    await db.write(lambda tx: events.forget_events(tx, [1], 2))
    receipts = await db.write(lambda tx: store_items(tx, [prompt("a", source="import")], 3))
    assert receipts == [Receipt("filtered", reason="forgotten")]
    assert (await db.read(events.event_counts))["events"] == 0


async def test_nothing_that_was_not_stored_makes_a_session(db):
    await db.write(lambda tx: store_items(tx, [PreparedItem("live", Ignored("x"))], 1))
    assert await db.read(projects.projects) == []


async def test_a_rehearsal_returns_every_outcome_and_stores_nothing(db):
    everything = [prompt("a"), prompt("a"), PreparedItem("import", Refused("not an object"))]
    for _ in range(2):
        foreseen = await db.rehearse(lambda tx: store_items(tx, everything, 1))
        assert [receipt.outcome for receipt in foreseen] == ["stored", "duplicate", "refused"]
    assert await db.read(projects.projects) == []
    assert (await db.read(ledger.balance))["received"] == 0
    recorded = await db.write(lambda tx: store_items(tx, everything, 1))
    assert [receipt.outcome for receipt in recorded] == ["stored", "duplicate", "refused"]


async def test_what_was_forgotten_under_a_former_key_does_not_come_back(db):
    await db.write(lambda tx: store_items(tx, [prompt("old")], 1))
    await db.write(lambda tx: events.forget_events(tx, [1], 2))
    again = prompt("new")
    again = replace(again, verdict=replace(again.verdict, former_keys=("old",)))
    receipts = await db.write(lambda tx: store_items(tx, [again], 3))
    assert receipts == [Receipt("filtered", reason="forgotten")]


async def test_what_is_remembered_of_an_early_private_turn_alone_goes_with_it(db):
    tool = replace(prompt("t").verdict, kind=EventKind.TOOL_RESULT, turn="p1", payload={"x": 1})
    public = replace(prompt("a").verdict, turn="p0")
    early = [PreparedItem("live", event, PROJECT) for event in (public, tool)]
    seqs = [receipt.seq for receipt in await db.write(lambda tx: store_items(tx, early, 1))]

    def distil(tx):
        found = []
        for uid, sources in enumerate((seqs[1:], seqs, seqs[1:])):
            owner = summaries.SummaryOwner(1, 1, "test")
            number, _ = summaries.put_summary(tx, f"u{uid}", make_draft(), owner, 1)
            links.add_edges(
                tx,
                [
                    links.NewEdge(
                        "summary", str(number), EdgeType.DERIVES_FROM, "event", str(seq), "r", 1
                    )
                    for seq in sources
                ],
            )
            found.append(number)
        summaries.pin_summary(tx, found[2], 1)
        told = links.NewEdge("summary", str(found[0]), EdgeType.EDITS, "file", "/a", "r", 1)
        named = links.NewEdge("file", "/a", EdgeType.IMPORTS, "file", "/b", "r", 1)
        links.add_edges(tx, [told, named])
        return found

    alone, shared, pinned = await db.write(distil)
    private = replace(prompt("b", PRIVATE).verdict, turn="p1")
    (receipt,) = await db.write(
        lambda tx: store_items(tx, [PreparedItem("live", private, PROJECT)], 2)
    )
    assert receipt.has_erased
    left = await db.read(lambda tx: summaries.summaries_by_ids(tx, [alone, shared, pinned]))
    assert set(left) == {shared, pinned}
    assert await db.read(lambda tx: links.edges_at(tx, "file", "/a")) == []

"""A merge moves everything, keeps every directory known, and lets the newest value of a topic hold."""

import pytest

from memd.consolidate.projects import PROJECT_MERGE_RULE, ReplacedMemory
from memd.consolidate.remember import NewMemory
from memd.errors import BadRequest
from memd.models import EdgeType, SessionRef
from memd.store import fulltext, ledger, projects, summaries
from tests.consolidate.conftest import make_curator


@pytest.fixture
def nudges():
    return []


@pytest.fixture
def curator(vault, nudges):
    return make_curator(vault, lambda: nudges.append(1))


@pytest.fixture
def other(vault):
    return vault.project("/b")


def known(db):
    return [one.key for one in db.read_now(projects.projects)]


async def test_everything_moves_and_is_indexed_again(vault, db, curator, other, nudges):
    session = vault.session("s", vault.project_id)
    vault.event("hello", session)
    number = vault.put("a body", session_id=session)
    db.write_now(
        lambda tx: fulltext.remove_changes(tx, [seq for seq, _ in fulltext.pending_changes(tx, 9)])
    )
    done = await curator.merge("/a", "/b", dry_run=False)
    assert (done.sessions, done.memories, done.events, done.aliases) == (1, 1, 1, ("/a",))
    assert known(db) == ["/b"]
    assert vault.get(number).project_id == other
    assert db.read_now(lambda tx: projects.session(tx, session)).project_id == other
    assert [n for _, n in db.read_now(lambda tx: fulltext.pending_changes(tx, 9))] == [number]
    waiting = db.read_now(lambda tx: summaries.to_consolidate(tx, 9, 0))
    assert [one.id for one in waiting] == [number]
    assert nudges == [1]


async def test_a_dry_run_reports_the_same_and_changes_nothing(vault, db, curator, other, nudges):
    vault.put("old", topic_key="t", at=1)
    vault.put("new", topic_key="t", at=2, project_id=other)
    would = await curator.merge("/a", "/b", dry_run=True)
    assert would.is_dry_run
    assert known(db) == ["/a", "/b"]
    assert (nudges, vault.supersessions(1)) == ([], [])
    did = await curator.merge("/a", "/b", dry_run=False)
    assert (did.replaced, did.memories) == (would.replaced, would.memories)


async def test_what_is_pinned_or_hidden_or_over_is_left_alone(vault, db, curator, clock, other):
    pinned = vault.put("pinned", topic_key="a", at=1)
    db.write_now(lambda tx: summaries.pin_summary(tx, pinned, clock()))
    newer = vault.put("new", topic_key="a", at=2, project_id=other)
    hidden = vault.put("hidden", topic_key="b", at=9)
    vault.supersede(vault.put("hides", topic_key="x", at=9), hidden)
    vault.put("live", topic_key="b", at=1, project_id=other)
    vault.put("over", topic_key="c", at=9, expires_at=clock())
    vault.put("live", topic_key="c", at=1, project_id=other)
    done = await curator.merge("/a", "/b", dry_run=False)
    assert done.replaced == ()
    assert done.kept == (ReplacedMemory(newer, pinned, "a"),)
    assert vault.supersessions(pinned) == []
    (edge,) = [e for e in vault.edges(pinned) if e.type is EdgeType.CONTRADICTS]
    assert (edge.from_id, edge.rule) == (str(newer), PROJECT_MERGE_RULE)


@pytest.mark.usefixtures("other")
async def test_a_switch_moves_along_unless_the_other_project_has_one(vault, db, curator):
    vault.project("/c")
    db.write_now(lambda tx: projects.put_switch(tx, projects.PROJECT_SCOPE, "/a", False, False, 1))
    done = await curator.merge("/a", "/b", dry_run=False)
    assert done.switch == "switched off: holds for /b from then on"
    db.write_now(lambda tx: projects.put_switch(tx, projects.PROJECT_SCOPE, "/c", True, False, 2))
    done = await curator.merge("/b", "/c", dry_run=False)
    assert done.switch == "switched off: gives way to what was said of /c"
    assert done.aliases == ("/b", "/a")
    found = db.read_now(lambda tx: projects.effective_switch(tx, "/a", None))
    assert (found.captures, found.recalls) == (True, False)


async def test_the_same_text_in_a_merged_directory_is_one_memory(vault, db, curator, other):
    """Also what was forgotten there stays forgotten, whichever key an import says."""

    def said(key, text, source="user"):
        return NewMemory(text, project_key=key, project_name=key, source=source)

    first = await curator.remember(said("/a", "The build needs make."))
    lie = await curator.remember(said("/a", "A lie."))
    await curator.forget([lie.id], dry_run=False)
    await curator.merge("/a", "/b", dry_run=False)
    for key in ("/a", "/b"):
        again = await curator.remember(said(key, "The build needs make."))
        assert (again.outcome, again.id) == ("duplicate", first.id)
        back = await curator.remember(said(key, "A lie.", "jsonl"))
        assert back.outcome == "forgotten"
    new = await curator.remember(said("/a", "Something new."))
    assert vault.get(new.id).project_id == other
    assert db.read_now(ledger.balance)["received"] == 0


@pytest.mark.parametrize(
    ("source", "into", "said"),
    [
        ("/a", "/a", "is that project already"),
        ("/none", "/a", "there is no '/none'"),
        ("/a", "/none", "there is no '/none'"),
        ("global", "/a", "nothing can be merged"),
        ("/a", "scratch", "nothing can be merged"),
    ],
)
async def test_a_merge_that_makes_no_sense_is_refused(vault, curator, source, into, said):
    for key in ("global", "scratch"):
        vault.project(key)
    for dry_run in (True, False):
        with pytest.raises(BadRequest, match=said):
            await curator.merge(source, into, dry_run=dry_run)


@pytest.mark.usefixtures("other", "vault")
async def test_a_project_merged_before_is_refused_by_its_old_key(curator):
    await curator.merge("/a", "/b", dry_run=False)
    with pytest.raises(BadRequest, match="is that project already"):
        await curator.merge("/a", "/b", dry_run=False)


async def test_a_project_is_renamed(curator, vault):
    assert (await curator.rename("/a", " money  well ")).name == "money well"
    assert (await curator.rename("/a", "money well")).name == "money well"
    vault.project("/b")
    vault.project("global")
    for key, name, said in (
        ("/a", "", "at most 100 characters"),
        ("/a", "x" * 101, "at most 100 characters"),
        ("/a", "a/b", "without /"),
        ("/a", "all", "none of all, current, global, scratch"),
        ("/b", "money well", "/a is called 'money well' already"),
        ("global", "mine", "keeps its name"),
        ("/c", "mine", "there is no '/c'"),
    ):
        with pytest.raises(BadRequest, match=said):
            await curator.rename(key, name)


async def test_a_merge_is_taken_back_with_what_came_since_in_its_directory(
    vault, db, curator, clock, other
):
    first = vault.session("s", vault.project_id)
    mine = vault.put("a body", session_id=first, topic_key="ui.theme", at=5)
    theirs = vault.put("theirs", project_id=other, topic_key="ui.theme", at=9)
    vault.project("/older")
    await curator.merge("/older", "/a", dry_run=False)
    db.write_now(lambda tx: projects.put_switch(tx, projects.PROJECT_SCOPE, "/a", False, False, 1))
    await curator.merge("/a", "/b", dry_run=False)
    assert vault.get(mine).superseded_by == theirs
    ref = SessionRef("c", "later", "/a/src")
    since = db.write_now(lambda tx: projects.ensure_session(tx, ref, other, clock() + 1))
    elsewhere = db.write_now(
        lambda tx: projects.ensure_session(tx, SessionRef("c", "b", "/b"), other, clock() + 1)
    )
    undone = await curator.undo_merge("a")
    assert (undone.project.key, undone.sessions, undone.memories, undone.shown) == (
        "/a",
        2,
        1,
        (mine,),
    )
    assert known(db) == ["/b", "/a"]
    assert vault.get(mine).superseded_by is None
    sessions = db.read_now(lambda tx: projects.sessions(tx, [first, since, elsewhere]))
    assert [sessions[n].project_id for n in (first, since, elsewhere)] == [
        undone.project.id, undone.project.id, other,
    ]  # fmt: skip
    assert db.read_now(projects.project_aliases) == {undone.project.id: ["/older"]}
    assert not db.read_now(lambda tx: projects.effective_switch(tx, "/a", None)).is_on
    assert db.read_now(lambda tx: projects.effective_switch(tx, "/b", None)).is_on
    with pytest.raises(BadRequest, match="/a was not merged into another"):
        await curator.undo_merge("/a")


@pytest.mark.usefixtures("other")
@pytest.mark.parametrize("order", [("/a", "/b"), ("/b", "/a")])
async def test_merges_of_merges_are_taken_back_in_any_order(vault, db, curator, order):
    vault.project("/c")
    session = vault.session("s", vault.project_id)
    await curator.merge("/a", "/b", dry_run=False)
    await curator.merge("/b", "/c", dry_run=False)
    for key in order:
        await curator.undo_merge(key)
    assert set(known(db)) == {"/a", "/b", "/c"}
    assert db.read_now(projects.project_aliases) == {}
    home = db.read_now(lambda tx: projects.session(tx, session)).project_id
    assert db.read_now(lambda tx: projects.project(tx, home)).key == "/a"

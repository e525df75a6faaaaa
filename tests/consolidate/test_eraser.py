from pathlib import Path

import anyio
import pytest

from memd.consolidate.forget import ForgetSelection
from memd.consolidate.scrub import Eraser, RelatedFiles, make_pattern_rule
from memd.errors import BadRequest, SelectionChanged
from memd.models import EdgeType, EventKind, Kind
from memd.store import erasure, events, ledger, projects
from memd.store.erasure import ErasureBounds
from tests.whole_vault import rare


@pytest.fixture
def drains():
    return []


@pytest.fixture
def eraser(vault, clock, tmp_path, drains):
    async def bring_in():
        drains.append(1)

    places = RelatedFiles(
        str(tmp_path / "memd.log"), lambda: {"/b/one.db": clock() + 1, "/b/older.db": 1}
    )
    return Eraser(vault.db, clock, lambda: None, places, bring_in, vault.indexer.settle)


@pytest.fixture
def session(vault, clock):
    """A session with a title, an own memory, and an event that another session's memory tells of."""
    number = vault.session("one")
    vault.db.write_now(lambda tx: projects.extend_session(tx, number, clock(), "zzyzx"))
    own, shared = vault.event("zzyzx", number), vault.event("zzyzx too", number)
    mine = vault.put("zzyzx road", session_id=number)
    other = vault.put("from elsewhere", session_id=vault.session("two"))
    vault.derives(mine, own)
    vault.derives(mine, shared)
    vault.derives(other, shared)
    return number, mine, other, shared


async def test_forgetting_a_session_erases_its_title_and_reports_what_stays(
    vault, eraser, session, drains
):
    number, mine, other, shared = session
    meant = ForgetSelection(bounds=ErasureBounds(session_id=number))
    planned = await eraser.forget(meant, dry_run=True)
    assert ([one.id for one in planned.summaries], planned.events) == ([mine], 1)
    assert (planned.kept_events, planned.also_in, planned.sessions) == (1, (other,), ("zzyzx",))
    assert planned.backups == ("/b/one.db",)
    assert vault.get(mine) is not None
    assert await eraser.forget(meant, dry_run=False, token=planned.token)
    assert (vault.get(mine), len(drains)) == (None, 2)
    left = vault.db.read_now(lambda tx: projects.session(tx, number))
    assert (left.title, left.directory) == (None, None)
    assert list(vault.db.read_now(lambda tx: events.events_by_ids(tx, [shared]))) == [shared]


async def test_a_selection_that_has_changed_since_the_dry_run_is_not_erased(vault, eraser, session):
    meant = ForgetSelection(bounds=ErasureBounds(session_id=session[0]))
    planned = await eraser.forget(meant, dry_run=True)
    vault.put("one more", session_id=session[0])
    with pytest.raises(SelectionChanged, match="nothing was erased"):
        await eraser.forget(meant, dry_run=False, token=planned.token)
    assert vault.get(session[1]) is not None


async def test_a_whole_session_leaves_no_row_and_its_number_is_not_used_again(vault, eraser):
    number = vault.session("newest")
    vault.event("x", number)
    await eraser.forget(ForgetSelection(bounds=ErasureBounds(session_id=number)), dry_run=False)
    assert vault.db.read_now(lambda tx: projects.session(tx, number)) is None
    assert vault.session("later") > number


async def test_a_project_goes_with_its_name_once_nothing_belongs_to_it(vault, eraser):
    other = vault.project("/b")
    vault.event("x", vault.session("b", other))
    vault.put("y", project_id=other)
    done = await eraser.forget(
        ForgetSelection(bounds=ErasureBounds(project_id=other)), dry_run=False
    )
    assert (done.count, done.events) == (1, 1)
    assert vault.db.read_now(lambda tx: projects.project_by_key(tx, "/b")) is None
    assert vault.db.read_now(lambda tx: projects.project_by_key(tx, "/a")) is not None


async def test_many_memories_are_forgotten_in_slices_and_reported_briefly(vault, eraser):
    ids = [vault.put(f"fact {n}", at=n) for n in range(450)]
    staying = vault.put("stays", at=10**15)
    vault.supersede(ids[0], vault.put("hidden", at=10**15))
    done = await eraser.forget(ForgetSelection(bounds=ErasureBounds(until=10**10)), dry_run=False)
    assert (done.count, len(done.summaries), len(done.revived)) == (450, 200, 1)
    assert vault.live() == [staying, *done.revived]


async def test_an_empty_selection_is_refused(eraser):
    with pytest.raises(BadRequest, match="say what"):
        await eraser.forget(ForgetSelection(), dry_run=True)


async def test_with_a_forgotten_memory_go_edges_between_files_of_no_other_memory(vault, eraser):
    number, other = vault.put("x"), vault.put("y")
    for file in ("/a.py", "/b.py"):
        vault.link(("summary", str(number)), EdgeType.EDITS, ("file", file))
    vault.link(("summary", str(other)), EdgeType.EDITS, ("file", "/b.py"))
    vault.link(("file", "/a.py"), EdgeType.IMPORTS, ("file", "/c.py"))
    vault.link(("file", "/b.py"), EdgeType.IMPORTS, ("file", "/d.py"))
    await eraser.forget(ForgetSelection(ids=(number,)), dry_run=False)
    left = vault.db.read_now(
        lambda tx: {row[0] for row in tx.execute("SELECT from_id FROM edges").fetchall()}
    )
    assert left == {str(other), "/b.py"}


async def test_a_scrub_that_was_interrupted_goes_on_and_ends_with_all_of_it(vault, eraser):
    await vault.indexer.load()
    for n in range(450):
        vault.event(f"zzyzx {n}", kind=EventKind.TOOL_RESULT)
    number = vault.put("zzyzx", title="zzyzx road")
    rule = make_pattern_rule("zzyzx")
    real, count = erasure.write_texts, 0

    def failing(*given):
        nonlocal count
        count += 1
        if count > 250:
            raise KeyError
        real(*given)

    erasure.write_texts = failing
    try:
        with pytest.raises(KeyError):
            await eraser.scrub(rule, dry_run=False)
    finally:
        erasure.write_texts = real
    done = await eraser.scrub(rule, dry_run=False)
    assert done.rows == {"events": 250, "summaries": 1}
    assert vault.get(number).title == "[REDACTED:scrub] road"
    assert (await eraser.scrub(rule, dry_run=True)).rows == {}
    with anyio.fail_after(60):
        await vault.indexer.settle()


async def test_nothing_is_left_of_what_was_moved_from_page_to_page_before_it_was_forgotten(
    vault, eraser
):
    words = [rare(number) for number in range(600)]
    ids = [
        vault.put(f"We chose {word}.", title=f"Chose {word}", kind=Kind.DECISION) for word in words
    ]
    await eraser.forget(ForgetSelection(ids=tuple(ids[::2])), dry_run=False)
    files = Path(vault.db.path).parent.glob(f"{Path(vault.db.path).name}*")
    held = b"".join(file.read_bytes() for file in files if file.is_file())
    assert [word for word in words[::2] if word[:8].encode() in held] == []


async def test_an_erased_session_counts_as_forgotten_until_it_continues(vault, eraser):
    number = vault.session("one")
    uid = vault.db.read_now(lambda tx: projects.session(tx, number)).uid

    def is_forgotten():
        return vault.db.read_now(lambda tx: ledger.is_forgotten(tx, uid))

    await eraser.forget(ForgetSelection(bounds=ErasureBounds(session_id=number)), dry_run=False)
    assert is_forgotten()
    vault.session("one")
    assert not is_forgotten()

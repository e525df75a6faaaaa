"""What an older memd misplaced is put right when its transcript is imported again, unless a person has moved it."""

from dataclasses import replace

import pytest

from memd.capture.project import ProjectIdentity
from memd.capture.write import PreparedItem, store_items
from memd.models import (
    AGENTS_IMPORT,
    ELSEWHERE,
    SCRATCH_PROJECT,
    TITLE_EVENT,
    EventKind,
    NewEvent,
    SessionRef,
)
from memd.store import events, projects, summaries
from memd.store.summaries import SummaryOwner
from tests.factories import make_draft

WINDOWS = "D:\\posh"
SCRATCH = ProjectIdentity(SCRATCH_PROJECT, SCRATCH_PROJECT, "the session has no directory")
HERE = ProjectIdentity("/src/posh", "posh", "the directory")
THERE = ProjectIdentity(WINDOWS, "posh", "the directory, of another machine")
JOINED = ProjectIdentity(f"/home/me/{WINDOWS}", WINDOWS, "the directory")
IMPORTED_AT = 900_000


def item(name, at, directory, project, source="import"):
    kind = EventKind.PROMPT if name == "UserPromptSubmit" else EventKind.OTHER
    event = NewEvent(
        session=SessionRef("claude-code", "s", directory), key=f"{name}-1", kind=kind, name=name, at=at,
        source=source, payload={"prompt": "Run task lint before each commit", "cwd": directory},
    )  # fmt: skip
    return PreparedItem(source, event, project, has_root=directory is not None)


def first_import(directory, project):
    """As the older memd stored it: a title without place and time first. What is no import moves nothing."""
    return [
        item(TITLE_EVENT, IMPORTED_AT, None, SCRATCH),
        item("UserPromptSubmit", 100, directory, project, "live"),
    ]


def second_import(directory, project, source="import"):
    return [
        item("UserPromptSubmit", 100, directory, project, source),
        item(TITLE_EVENT, 100, directory, project, source),
    ]


def remember(tx, key, episode):
    """A memory of the session in a project, as distilling wrote it."""
    place = projects.project_by_key(tx, key)
    owner = SummaryOwner(place.id, 1, "claude-code", episode)
    return summaries.put_summary(tx, f"m-{episode}", make_draft("Run task lint"), owner, 100)[0]


def state(tx):
    """(key of the session's project, its directory, its span, keys of its memories' projects)."""
    one = projects.session(tx, 1)
    keys = {p.id: p.key for p in projects.projects(tx)}
    rows = tx.execute("SELECT project_id FROM summaries ORDER BY id").fetchall()
    span = one.started_at, one.last_event_at
    return keys[one.project_id], one.directory, span, [keys[number] for (number,) in rows]


@pytest.mark.parametrize(
    ("directory", "was", "right"), [("/src/posh", HERE, HERE), (WINDOWS, JOINED, THERE)]
)
async def test_a_session_without_a_place_gets_the_one_that_its_lines_tell(db, directory, was, right):  # fmt: skip
    def work(tx):
        store_items(tx, first_import(directory, was), IMPORTED_AT)
        remember(tx, SCRATCH_PROJECT, "a")
        remember(tx, was.key, "b")
        told = [one.moved for one in store_items(tx, second_import(directory, right), 950_000)]
        again = [one.moved for one in store_items(tx, second_import(directory, right), 960_000)]
        found = events.events_by_ids(tx, [1, 2])
        left = [p.key for p in projects.projects(tx)]
        return told, again, state(tx), [ELSEWHERE in found[n].payload for n in (1, 2)], left

    told, again, placed, elsewhere, left = await db.write(work)
    assert told == [f"{SCRATCH_PROJECT} → {right.key}", ""]
    assert again == ["", ""]
    assert placed == (right.key, directory, (100, 100), [right.key, right.key])
    assert elsewhere == [False, False]
    assert left == [right.key]


async def test_a_path_of_another_system_behind_one_of_this_is_put_right(db):
    def work(tx):
        store_items(tx, [item("UserPromptSubmit", 100, WINDOWS, JOINED)], IMPORTED_AT)
        remember(tx, JOINED.key, "a")
        told = [one.moved for one in store_items(tx, second_import(WINDOWS, THERE), 950_000)]
        return told, state(tx)

    told, placed = await db.write(work)
    assert told[0] == f"{JOINED.key} → {WINDOWS}"
    assert placed == (WINDOWS, WINDOWS, (100, 100), [WINDOWS])


@pytest.mark.parametrize("was", [SCRATCH, JOINED])
async def test_what_a_person_merged_or_renamed_stays(db, was):
    def work(tx, action):
        store_items(tx, [item("UserPromptSubmit", 100, WINDOWS if was is JOINED else None, was)], 1)
        action(tx, projects.project_by_key(tx, was.key))
        before = state(tx)
        receipts = store_items(tx, second_import(WINDOWS, THERE), 950_000)
        assert not any(one.moved for one in receipts)
        assert state(tx)[0] == before[0]

    def merge(tx, place):
        number = projects.ensure_project(tx, "/mine", "mine", "the directory", 1)
        projects.merge_project(tx, place, projects.project(tx, number), 1)

    await db.write(lambda tx: work(tx, lambda tx, place: projects.rename_project(tx, place.id, "mine")))  # fmt: skip
    await db.write(lambda tx: tx.execute("DELETE FROM events; DELETE FROM sessions"))
    await db.write(lambda tx: work(tx, merge))


async def test_where_a_person_merged_the_wrong_place_the_rest_goes_too(db):
    def work(tx):
        store_items(tx, first_import(WINDOWS, JOINED), IMPORTED_AT)
        number = projects.ensure_project(tx, "/mine", "mine", "the directory", 1)
        joined = projects.project_by_key(tx, JOINED.key)
        projects.merge_project(tx, joined, projects.project(tx, number), 1)
        store_items(tx, second_import(WINDOWS, THERE), 950_000)
        return state(tx)[0]

    assert await db.write(work) == "/mine"


@pytest.mark.parametrize("source", ["live", AGENTS_IMPORT, "transcript"])
async def test_only_a_persons_import_moves_a_session(db, source):
    def work(tx):
        store_items(tx, first_import("/src/posh", HERE), IMPORTED_AT)
        store_items(tx, second_import("/src/posh", HERE, source), 950_000)
        return state(tx)

    assert (await db.write(work))[:3] == (SCRATCH_PROJECT, None, (100, IMPORTED_AT))


async def test_a_session_that_went_elsewhere_stays_where_it_began(db):
    def work(tx):
        other = replace(HERE, key="/src/other", name="other")
        store_items(tx, [item("UserPromptSubmit", 100, "/src/posh", HERE)], 1)
        store_items(tx, [item(TITLE_EVENT, 200, "/src/other", other)], 2)
        return state(tx)[0]

    assert await db.write(work) == HERE.key

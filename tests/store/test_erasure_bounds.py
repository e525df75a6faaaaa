from functools import partial

import pytest

from memd.models import SessionRef
from memd.store import erasure, events, projects, summaries
from memd.store.erasure import ErasureBounds
from tests.factories import make_draft, make_new_event


@pytest.fixture
def two(db):
    """Two projects with a session each; in each a memory and an event at 10 and at 20."""

    def write(tx):
        places = []
        for name in ("/a", "/b"):
            project = projects.ensure_project(tx, name, name, "", 1)
            session = projects.ensure_session(tx, SessionRef("t", name), project, 1)
            for at in (10, 20):
                draft = make_draft(f"Straße {at}", f"tea at {at}", at=at, tags=("Mint",))
                owner = summaries.SummaryOwner(project, session, "t")
                summaries.put_summary(tx, f"{name}{at}", draft, owner, 1)
                events.append_event(tx, make_new_event(at=at, session=name, prompt="x"), session)
            places.append((project, session))
        return places

    return db.write_now(write)


@pytest.mark.usefixtures("two")
def test_the_oldest_of_memories_events_and_sessions_is_found(db):
    def oldest(*ids):
        return db.read_now(lambda tx: erasure.oldest_time(tx, *ids, {}))

    assert oldest([], [], []) is None
    assert oldest([], [2, 4], []) == 20
    assert oldest([], [2, 3], []) == 10
    assert oldest([2], [2], []) == 1  # a memory of 20 that was written at 1
    assert oldest([], [2], [1]) == 1


@pytest.mark.parametrize(
    ("bounds", "wanted"),
    [
        ({}, [1, 2, 3, 4]),
        ({"project_id": 1}, [1, 2]),
        ({"session_id": 2}, [3, 4]),
        ({"since": 20}, [2, 4]),
        ({"until": 19}, [1, 3]),
        ({"project_id": 2, "since": 10, "until": 10}, [3]),
        ({"project_id": 9}, []),
    ],
)
@pytest.mark.usefixtures("two")
def test_memories_and_events_within_bounds(db, bounds, wanted):
    meant = ErasureBounds(**bounds)
    assert db.read_now(lambda tx: erasure.ids_within(tx, "summaries", meant)) == wanted
    assert db.read_now(lambda tx: erasure.ids_within(tx, "events", meant)) == wanted


@pytest.mark.usefixtures("two")
def test_the_text_of_a_row_is_given_only_if_it_passes_the_check(db):
    def read(source, check):
        found = partial(erasure.texts_within, source=source, bounds=ErasureBounds(), check=check)
        return db.read_now(lambda tx: [row.id for row in found(tx)])

    assert read("summaries", lambda text: "10" in text) == [1, 3]
    assert read("summaries", lambda _: False) == []
    assert read("events", lambda _: True) == [1, 2, 3, 4]


@pytest.mark.usefixtures("two")
def test_sessions_are_meant_whole_only_without_a_time(db):
    def read(**bounds):
        return db.read_now(lambda tx: erasure.sessions_within(tx, ErasureBounds(**bounds)))

    assert read(project_id=1) == [1]
    assert read(session_id=2) == [2]
    assert read() == read(project_id=1, since=1) == []


def test_what_happened_where_a_session_moved_goes_with_that_project(db, two):
    (home, session), (other, _) = two

    def move(tx):
        for name, key in (("m", "/b"), ("n", "/once")):
            event = make_new_event(at=15, session="/a", prompt=name, memd_project=key)
            yield events.append_event(tx, event, session)[0]

    moved, merged = db.write_now(lambda tx: list(move(tx)))
    db.write_now(lambda tx: tx.execute("INSERT INTO aliases VALUES ('/once', ?, 1)", (other,)))

    def within(project_id):
        return db.read_now(lambda tx: erasure.ids_within(tx, "events", ErasureBounds(project_id)))

    assert within(home) == [1, 2]
    assert within(other) == [3, 4, moved, merged]

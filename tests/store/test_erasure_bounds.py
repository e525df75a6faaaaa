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
        return db.read_now(lambda tx: erasure.oldest_time(tx, *ids))

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
    assert db.read_now(lambda tx: erasure.summaries_within(tx, meant)) == wanted
    assert db.read_now(lambda tx: erasure.events_within(tx, meant)) == wanted


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("TEA", "10"), [1, 3]),
        (("strasse",), [1, 2, 3, 4]),
        (("mint", "20"), [2, 4]),
        (("100%",), []),
    ],
)
@pytest.mark.usefixtures("two")
def test_a_memory_must_contain_every_word_in_any_case(db, words, wanted):
    assert (
        db.read_now(lambda tx: erasure.summaries_containing(tx, ErasureBounds(), words)) == wanted
    )


@pytest.mark.usefixtures("two")
def test_sessions_are_meant_whole_only_without_a_time(db):
    def read(**bounds):
        return db.read_now(lambda tx: erasure.sessions_within(tx, ErasureBounds(**bounds)))

    assert read(project_id=1) == [1]
    assert read(session_id=2) == [2]
    assert read() == read(project_id=1, since=1) == []

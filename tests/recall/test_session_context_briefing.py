import pytest

from memd.models import EventKind, Kind, NewEvent, SessionRef
from memd.recall import session_context
from memd.recall.session_context import OWN_HEADING, RULES_HEADING, SessionPlace
from memd.store import events, projects, summaries, usage
from memd.store.usage import NewInjection
from tests.indexed_vault import NOW, IndexedVault

REF = SessionRef("test", "s1", "/a")


@pytest.fixture
def library(db):
    return IndexedVault(db)


@pytest.fixture
def happens(db):
    """Store an event of session s1 in project /a; its number."""

    def store(kind, at, **payload):
        def write(tx):
            project = projects.ensure_project(tx, "/a", "alpha", "", 1)
            session = projects.ensure_session(tx, REF, project, at)
            event = NewEvent(REF, f"{kind}/{at}", EventKind(kind), kind, at, "live", payload)
            return events.append_event(tx, event, session)[0]

        return db.write_now(write)

    return store


@pytest.fixture
def situate(db):
    def read(place, event_id=None):
        return db.read_now(
            lambda tx: session_context.read_session_state(
                tx, place, event_id, with_prompts=True
            )
        )

    return read


def test_nothing_is_known_of_a_place_that_nobody_has_been_in(situate):
    here = situate(SessionPlace("test", "s1", "/nowhere", "nowhere"))
    assert (here.session, here.project, here.project_ids, here.name) == (
        None,
        None,
        (),
        "nowhere",
    )
    assert here.switch.recalls
    assert here.why_seen(1, None, NOW) is None


def test_a_new_session_of_a_known_place_sees_its_project_and_what_holds_everywhere(
    db, happens, situate
):
    happens("prompt", 1)
    everywhere = db.write_now(lambda tx: projects.ensure_global(tx, 1))
    here = situate(SessionPlace("test", "new", "/a", "a"))
    assert (here.name, here.project_ids) == ("alpha", (1, everywhere))


def test_a_session_knows_what_was_asked_shown_and_lost_in_it(db, library, happens, situate):
    number = library.put("A note")
    happens("prompt", 10, prompt="one")
    happens("compact_start", 20)
    event = happens("prompt", 30, prompt="two")
    db.write_now(
        lambda tx: usage.record_injections(tx, [NewInjection(1, number, "startup", 15, "r")])
    )
    here = situate(SessionPlace("test", "s1"), event)
    assert (here.prompts, here.injected_at, here.last_at, here.context_lost_at) == (
        ("one",),
        {1: 15},
        20,
        20,
    )
    assert here.why_seen(number, None, 1) is None
    db.write_now(
        lambda tx: usage.record_injections(tx, [NewInjection(1, number, "prompt", 25, "r")])
    )
    assert (
        situate(SessionPlace("test", "s1")).why_seen(number, None, 1)
        == "shown to this session already"
    )


def test_what_a_session_did_before_it_was_compacted_is_lost_to_it(happens, situate):
    happens("prompt", 10)
    happens("compact_start", 20)
    here = situate(SessionPlace("test", "s1"))
    assert here.why_seen(9, here.session.id, 20) is None
    assert here.why_seen(9, here.session.id, 21) == "from this very session"
    assert here.why_seen(9, here.session.id + 1, 21) is None


def test_a_switch_is_read_by_the_project_and_the_session(db, happens, situate):
    happens("prompt", 10)
    db.write_now(lambda tx: projects.put_switch(tx, "project", "/a", True, False, NOW))
    assert not situate(SessionPlace("test", "s1")).switch.recalls
    db.write_now(lambda tx: projects.put_switch(tx, "session", "s1", True, True, NOW))
    assert situate(SessionPlace("test", "s1")).switch.recalls
    assert not situate(SessionPlace("test", "new", "/a")).switch.recalls


def test_candidates_come_in_groups_and_a_pinned_one_in_its_own(db, library, happens, situate):
    noted, chosen = library.put("A note"), library.put("Redis", kind=Kind.DECISION)
    for number in (noted, chosen):
        db.write_now(lambda tx, n=number: summaries.pin_summary(tx, n, NOW))
    own = library.put("SQLite", kind=Kind.DECISION, session="s1", days_ago=1)
    happens("compact_start", NOW)
    here = situate(SessionPlace("test", "s1"))
    found = db.read_now(lambda tx: session_context.read_candidates(tx, here, "startup", NOW))
    groups = {group.name: [card.id for card in group.candidates] for group in found.groups}
    assert groups[RULES_HEADING] == [noted]
    assert groups["Decisions"] == [chosen, own]
    assert OWN_HEADING not in groups
    after = db.read_now(lambda tx: session_context.read_candidates(tx, here, "compact", NOW))
    leading = {
        group.name: [card.id for card in group.candidates]
        for group in after.groups
        if group.leads
    }
    assert leading[OWN_HEADING] == [own]

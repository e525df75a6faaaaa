from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.injection import start
from memd.injection.choice import CandidateGroup, choose_candidates, rate_candidate
from memd.injection.start import DAY_MS, OWN_HEADING, RULES_HEADING, SessionPlace
from memd.models import Authority, EventKind, Kind, NewEvent, SessionRef
from memd.store import ContextCandidate, events, projects, summaries, usage
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
            lambda tx: start.read_session_state(tx, place, event_id, with_prompts=True)
        )

    return read


def test_nothing_is_known_of_a_directory_without_sessions(situate):
    here = situate(SessionPlace("test", "s1", "/nowhere", "nowhere"))
    assert (here.session, here.project, here.project_ids, here.name) == (None, None, (), "nowhere")
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
        {1: (15, "startup")},
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
    own = library.put("SQLite", kind=Kind.DECISION, session="s1", days_ago=1, authority=Authority.USER_PROMPT)  # fmt: skip
    happens("compact_start", NOW)
    here = situate(SessionPlace("test", "s1"))
    found = db.read_now(lambda tx: start.read_candidates(tx, here, "startup", NOW))
    groups = {group.name: [card.id for card in group.candidates] for group in found.groups}
    assert groups[RULES_HEADING] == [noted]
    assert groups["Decisions"] == [chosen, own]
    assert OWN_HEADING not in groups
    after = db.read_now(lambda tx: start.read_candidates(tx, here, "compact", NOW))
    leading = {
        group.name: [card.id for card in group.candidates] for group in after.groups if group.leads
    }
    assert leading[OWN_HEADING] == [own]


def make_candidate(number, *, days=0.0, kind=Kind.DECISION, title=None, **more):
    at = NOW - int(days * DAY_MS)
    return ContextCandidate(number, 1, None, kind, title or f"card {number}", at, at, **more)


def make_group(name, *cards, leads=False):
    return CandidateGroup(name, cards, leads)


def chosen_ids(groups, room, cost=10, heading=0):
    found = choose_candidates(groups, room, NOW, lambda _: cost, lambda _: heading)
    return [c.candidate.id for c in found if c.is_shown]


def test_where_room_is_short_what_was_used_comes_before_what_was_shown_in_vain():
    cards = [
        make_candidate(1, ignored=9),
        make_candidate(2, days=1),
        make_candidate(3, days=9, uses=3),
    ]
    group = CandidateGroup("a", tuple(cards), stands=True)
    assert chosen_ids([group], room=20) == [3, 2]


def test_no_number_of_sessions_in_vain_sinks_a_greater_voice_below_a_lesser_one():
    rule = make_candidate(
        1, kind=Kind.INSTRUCTION, authority=Authority.USER_PROMPT, days=300, ignored=500
    )
    others = [make_candidate(n, authority=Authority.AGENT_CALL, uses=50) for n in range(2, 30)]
    group = CandidateGroup("a", (*others, rule), stands=True)
    assert chosen_ids([group], room=30)[0] == 1
    assert 1 in chosen_ids([group], room=20)


def test_what_agents_and_teammates_say_takes_no_line_from_what_the_user_typed_or_proved():
    typed = [make_candidate(n, kind=Kind.INSTRUCTION, authority=Authority.USER_PROMPT, days=n) for n in range(1, 15)]  # fmt: skip
    task = make_candidate(20, kind=Kind.TASK, authority=Authority.USER_PROMPT, days=300)
    proved = [make_candidate(n, authority=Authority.USER_TOLD, days=200) for n in range(31, 34)]
    noted = [make_candidate(n, kind=kind, authority=Authority.AGENT_CALL, uses=9) for n, kind in ((41, Kind.FACT), (42, Kind.INSTRUCTION))]  # fmt: skip
    teams = make_candidate(50, authority=Authority.USER_HAND, author="Ada")
    groups = [
        CandidateGroup("rules", (*noted[1:], *typed, teams), stands=True),
        CandidateGroup("tasks", (task,), stands=True),
        CandidateGroup("decisions", tuple(proved), stands=True),
        CandidateGroup("known", tuple(noted[:1]), stands=True),
    ]
    own = {one.id for one in (*typed, task, *proved)}
    assert set(chosen_ids(groups, room=180)) == own
    assert set(chosen_ids(groups, room=900)) == {*own, teams.id, 42}, "twenty lines"


def test_recent_repeated_and_used_candidates_rate_higher():
    plain = make_candidate(1, days=100)
    assert rate_candidate(make_candidate(1), NOW) == 1.0
    assert rate_candidate(plain, NOW) < rate_candidate(make_candidate(1, days=10), NOW)
    assert rate_candidate(plain, NOW) < rate_candidate(replace(plain, repeats=3), NOW)
    assert rate_candidate(plain, NOW) < rate_candidate(replace(plain, uses=3), NOW)
    assert rate_candidate(replace(plain, kind=Kind.INSTRUCTION), NOW) > rate_candidate(plain, NOW)
    assert rate_candidate(make_candidate(1, days=-5), NOW) == 1.0


def test_what_a_wrong_clock_dated_ahead_does_not_lead_until_then():
    ahead = make_candidate(1, days=-4_000)
    assert rate_candidate(ahead, NOW) == rate_candidate(make_candidate(1, days=4_000), NOW)
    assert chosen_ids([make_group("a", ahead, make_candidate(2, days=3))], 10) == [2]


def test_the_pinned_come_first():
    old = make_candidate(1, days=900, is_pinned=True)
    assert chosen_ids([make_group("a", make_candidate(2), old)], 10) == [1]
    assert chosen_ids([make_group("a", make_candidate(2), old)], 20) == [1, 2]


def test_every_group_gets_its_share_before_one_takes_all():
    many = [make_candidate(n, days=n) for n in range(1, 50)]
    few = [make_candidate(n, days=n) for n in range(100, 103)]
    found = chosen_ids([make_group("many", *many), make_group("few", *few)], 80)
    assert sorted(n for n in found if n >= 100) == [100, 101, 102]
    assert len(found) == 8


def test_what_leads_gets_half_before_the_others_begin():
    lost = [make_candidate(n, days=n) for n in range(1, 30)]
    rest = [make_candidate(n, days=n) for n in range(100, 130)]
    found = chosen_ids([make_group("lost", *lost, leads=True), make_group("rest", *rest)], 100)
    assert [n for n in found if n < 100] == [1, 2, 3, 4, 5]
    assert len(found) == 10


def test_a_heading_takes_room_once():
    assert chosen_ids(
        [make_group("a", make_candidate(1), make_candidate(2, days=1))], 25, heading=5
    ) == [1, 2]
    assert chosen_ids(
        [make_group("a", make_candidate(1), make_candidate(2, days=1))], 24, heading=5
    ) == [1]
    assert chosen_ids([make_group("a", make_candidate(1))], 14, heading=5) == []


def test_what_two_groups_have_stands_in_the_first():
    found = choose_candidates(
        [make_group("a", make_candidate(1)), make_group("b", make_candidate(1))],
        99,
        NOW,
        lambda _: 1,
        lambda _: 0,
    )
    assert [(c.group, c.is_shown) for c in found] == [("a", True)]


def test_candidates_with_the_same_title_are_shown_once():
    cards = make_candidate(1, title="It FAILS"), make_candidate(2, days=1, title="it  fails!")
    found = choose_candidates([make_group("a", *cards)], 99, NOW, lambda _: 1, lambda _: 0)
    assert {c.candidate.id: c.why for c in found} == {1: "today", 2: "says the same as #1"}


def remarks(*cards):
    found = choose_candidates([make_group("a", *cards)], 999, NOW, lambda _: 1, lambda _: 0)
    return {c.candidate.id: c.candidate.remark for c in found if c.is_shown}


def test_statements_of_one_title_that_differ_are_both_shown_with_their_own_words():
    new = make_candidate(1, title="Deploy port", body="The service listens. Port 9090 since May.")
    old = make_candidate(2, days=9, title="Deploy port", body="The service listens. Port 8080.")
    assert remarks(new, old) == {1: "Port 9090 since May.", 2: "Port 8080."}
    same = make_candidate(3, days=20, title="deploy port", body="Port 8080.")
    assert set(remarks(new, old, same)) == {1, 2}


def test_of_turns_with_one_title_the_best_names_the_others():
    turns = [
        make_candidate(n, days=n, kind=Kind.CHANGE, title="Fix the tests", body=f"In file{n}.py")
        for n in (1, 2, 3)
    ]
    assert remarks(*turns) == {1: "also #2, #3"}


def test_a_turn_does_not_repeat_the_rule_that_it_holds():
    rule = make_candidate(1, days=9, title="Run the linter", kind=Kind.INSTRUCTION)
    turn = make_candidate(2, title="run the linter", kind=Kind.CHANGE)
    assert remarks(turn, rule) == {1: ""} or remarks(turn, rule) == {2: ""}
    assert len(remarks(turn, rule)) == 1


def test_titles_that_nearly_say_the_same_are_shown_once_and_other_values_are_not():
    cards = [
        make_candidate(1, title="Added retries to the webhook sender", kind=Kind.CHANGE),
        make_candidate(2, days=1, title="Add retries to webhook senders.", kind=Kind.CHANGE),
        make_candidate(3, days=2, title="Webhook sender retries 3 times with backoff now"),
        make_candidate(4, days=3, title="Webhook sender retries 5 times with backoff now"),
    ]
    assert sorted(remarks(*cards)) == [1, 3, 4]


def test_a_group_shows_no_more_than_its_limit_and_the_latest_first_if_it_is_by_time():
    cards = [make_candidate(n, days=n, uses=n * 9) for n in (1, 2, 3)]
    group = CandidateGroup("a", tuple(cards), limit=2, is_by_time=True)
    found = choose_candidates([group], 999, NOW, lambda _: 1, lambda _: 0)
    assert [c.candidate.id for c in found] == [1, 2, 3]
    assert [c.is_shown for c in found] == [True, True, False]
    assert found[-1].why == "enough of this group are shown"


def test_a_verdict_names_its_reasons():
    told = make_candidate(1, days=3, is_pinned=True, repeats=2, uses=4)
    (one,) = choose_candidates([make_group("a", told)], 99, NOW, lambda _: 1, lambda _: 0)
    assert one.why == "pinned, 3 d old, said again 2×, used 4×"
    (one,) = choose_candidates([make_group("a", told)], 0, NOW, lambda _: 1, lambda _: 0)
    assert (one.is_shown, one.why) == (False, "no room left")


@given(
    st.lists(st.lists(st.integers(1, 60), max_size=12), max_size=5),
    st.integers(0, 300), st.integers(0, 30), st.booleans(),
)  # fmt: skip
def test_the_room_is_never_exceeded_and_nothing_is_lost(sizes, room, heading, leads):
    costs, groups = {}, []
    for place, group_sizes in enumerate(sizes):
        numbers = range(100 * place, 100 * place + len(group_sizes))
        costs |= dict(zip(numbers, group_sizes, strict=True))
        groups.append(
            CandidateGroup(
                str(place), tuple(make_candidate(n) for n in numbers), leads and place == 1
            )
        )
    found = choose_candidates(groups, room, NOW, lambda c: costs[c.id], lambda _: heading)
    assert sorted(c.candidate.id for c in found) == sorted(costs)
    used = sum(costs[c.candidate.id] for c in found if c.is_shown)
    used += heading * len({c.group for c in found if c.is_shown})
    assert used <= room


def test_the_user_s_line_is_shown_and_not_the_agent_s_newer_copy():
    mine = make_candidate(1, days=9, title="Use pnpm", authority=Authority.USER_PROMPT)
    copy = make_candidate(2, title="use pnpm.", authority=Authority.AGENT_CALL)
    assert chosen_ids([make_group("rules", copy, mine)], 1_000) == [1]

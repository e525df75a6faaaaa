import pytest

from memd.models import EdgeType, Kind, SessionRef
from memd.store import SummaryUse, links, projects, session_context, summaries, usage
from tests.factories import make_draft, supersede

NOW = 1_000_000


@pytest.fixture
def remember(db):
    """Put memories into projects 1 and 2; their numbers."""
    count = iter(range(1, 1_000))

    def put(  # one argument a column
        title="A title",
        *,
        kind=Kind.DECISION,
        at=NOW,
        session=None,
        project="/p",
        episode=None,
        **fields,
    ):
        def write(tx):
            owner_id = projects.ensure_project(tx, project, project, "", 1)
            ref = SessionRef("claude-code", session) if session else None
            session_id = projects.ensure_session(tx, ref, owner_id, at) if ref else None
            if session_id:
                projects.extend_session(tx, session_id, at, f"about {session}")
            owner = summaries.SummaryOwner(owner_id, session_id, "claude-code", episode)
            draft = make_draft(title, kind=kind, at=at, **fields)
            return summaries.put_summary(tx, f"u{next(count)}", draft, owner, at)[0]

        return db.write_now(write)

    return put


def ids(db, read, *arguments, **named):
    return [card.id for card in db.read_now(lambda tx: read(tx, *arguments, **named))]


def hide(db, newer, older):
    supersede(db, newer, older, at=NOW)


def test_the_newest_of_a_kind_come_first_and_only_what_lives(db, remember):
    old, gone = remember(at=1), remember(at=2)
    remember(at=3, expires_at=NOW)
    new = remember(at=4, expires_at=NOW + 1)
    remember(at=5, kind=Kind.NOTE)
    other = remember(at=6, project="/q")
    hide(db, new, gone)
    assert ids(db, session_context.standing_candidates, [1], Kind.DECISION, NOW, 9) == [new, old]
    assert ids(db, session_context.standing_candidates, [1, 2], Kind.DECISION, NOW, 1) == [
        new,
        other,
    ]
    assert ids(db, session_context.candidates_by_ids, [old, gone, new], NOW) == [old, new]


def test_a_candidate_has_what_its_rank_depends_on(db, remember):
    number = remember("We chose Redis", at=7, session="s1")
    db.write_now(lambda tx: summaries.pin_summary(tx, number, NOW))
    db.write_now(lambda tx: summaries.strengthen_summary(tx, number, NOW))
    db.write_now(lambda tx: usage.record_uses(tx, {number: SummaryUse(3, NOW)}, {}))
    (card,) = db.read_now(lambda tx: session_context.pinned_candidates(tx, [1], NOW, 9))
    assert (card.title, card.at, card.is_pinned, card.repeats, card.uses, card.session_id) == (
        "We chose Redis", 7, True, 1, 3, 1,
    )  # fmt: skip


@pytest.mark.parametrize("rule", ["same-command", "wider-command", "same-tool", "suppressed"])
def test_a_failure_that_passed_in_its_turn_is_not_open(db, remember, rule):
    remember(kind=Kind.FAILURE, rule=rule)
    assert ids(db, session_context.open_failures, [1], 0, NOW, 9) == []


def test_of_a_session_only_its_own_and_of_failures_the_open_ones(db, remember):
    mine = remember(session="s1")
    remember(session="s2")
    remember(session="s1", kind=Kind.NOTE)
    remember(session="s1", kind=Kind.FAILURE, rule="same-command")
    failed = remember(session="s1", kind=Kind.FAILURE, rule="unmended", at=NOW - 1)
    kinds = (Kind.DECISION, Kind.FAILURE)
    assert ids(db, session_context.session_candidates, 1, kinds, NOW, 9) == [mine, failed]


def outcomes(db, *, besides=None, sessions=3, each=3, project=1):
    found = db.read_now(
        lambda tx: session_context.last_outcomes(
            tx, project, besides=besides, sessions=sessions, each=each, now=NOW
        )
    )
    return [card.id for card in found]


def test_the_last_sessions_are_those_that_ended_last_and_left_something(db, remember):
    first = remember(session="s1", at=10)
    remember("earlier", session="s2", at=20)
    last = remember("how it ended", session="s2", at=30)
    db.write_now(lambda tx: projects.ensure_session(tx, SessionRef("claude-code", "silent"), 1, 99))
    assert outcomes(db) == [last, first]
    assert outcomes(db, sessions=1) == [last]
    assert outcomes(db, besides=2) == [first]
    assert outcomes(db, project=7) == []
    for number in range(session_context.SESSIONS_EXAMINED_MAX + 1):  # opened and closed again
        ref = SessionRef("claude-code", f"empty {number}")
        db.write_now(lambda tx, ref=ref: projects.ensure_session(tx, ref, 1, 100))
    assert outcomes(db) == [last, first]


def test_of_a_session_that_changed_something_the_changes_are_shown_one_of_each_turn(db, remember):
    old = remember("one", kind=Kind.CHANGE, session="s1", at=10, episode="e1")
    fixed = remember("two", kind=Kind.FIX, session="s1", at=20, episode="e2")
    changed = remember("three", kind=Kind.CHANGE, session="s1", at=30, episode="e3")
    remember("the error of three", kind=Kind.FIX, session="s1", at=31, episode="e3")
    remember("talked about it", kind=Kind.DISCOVERY, session="s1", at=40, episode="e4")
    remember("elsewhere", kind=Kind.CHANGE, session="s1", at=50, episode="e5", project="/q")
    assert outcomes(db) == [changed, fixed, old]
    assert outcomes(db, each=2) == [changed, fixed]


def test_an_outcome_names_the_files_that_it_edited(db, remember):
    number = remember("one", kind=Kind.CHANGE, session="s1")
    edges = [
        links.NewEdge("summary", str(number), EdgeType.EDITS, "file", "/a.py", "turn", 1),
        links.NewEdge("summary", str(number), EdgeType.REFERENCES, "file", "/read.py", "turn", 1),
    ]
    db.write_now(lambda tx: links.add_edges(tx, edges))
    (card,) = db.read_now(
        lambda tx: session_context.last_outcomes(tx, 1, besides=None, sessions=1, each=1, now=NOW)
    )
    assert card.edited == ("/a.py",)


def test_a_failure_is_not_open_after_a_later_turn_of_its_session_that_changed_something(
    db, remember
):
    failed = {"kind": Kind.FAILURE, "rule": "unmended", "session": "s1"}
    remember("left behind", at=10, episode="e1", **failed)
    remember("changed", kind=Kind.CHANGE, session="s1", at=20, episode="e2")
    still = remember("in the last turn", at=19, episode="e2", **failed)
    by_hand = remember("by hand", at=1, **failed)
    assert ids(db, session_context.open_failures, [1], 0, NOW, 9) == [still, by_hand]


@pytest.mark.parametrize(
    ("read", "index"),
    [
        (
            lambda tx: session_context.standing_candidates(tx, [1], Kind.DECISION, NOW, 9),
            "summaries_by_kind",
        ),
        (lambda tx: session_context.open_failures(tx, [1], 0, NOW, 9), "summaries_by_kind"),
        (lambda tx: session_context.pinned_candidates(tx, [1], NOW, 9), "summaries_pinned"),
        (
            lambda tx: session_context.session_candidates(tx, 1, (Kind.NOTE,), NOW, 9),
            "summaries_by_session",
        ),
    ],
    ids=["newest", "open failures", "pinned", "of a session"],
)
def test_every_look_goes_by_an_index(db, remember, read, index):
    remember()
    asked = []

    def planned(tx):
        tx.exec_trace = lambda _, sql, values: asked.append((sql, values)) or True
        try:
            read(tx)
        finally:
            tx.exec_trace = None
        sql, values = asked[0]
        return " ".join(row[3] for row in tx.execute(f"EXPLAIN QUERY PLAN {sql}", values))

    plan = db.read_now(planned)
    assert index in plan
    assert "SCAN s" not in plan
    assert "TEMP B-TREE" not in plan


def test_a_session_that_a_wrong_clock_dated_ahead_is_the_last_one_only_if_all_are(db, remember):
    ahead = [remember(at=NOW + 10**12 + i, session=f"ahead{i}") for i in range(12)]

    assert outcomes(db, sessions=1) == [ahead[-1]]
    present = remember(at=NOW, session="present")
    assert outcomes(db, sessions=1) == [present]

from memd.distill.choice import reversal
from memd.distill.reverse import find_reversed
from memd.models import Kind
from tests.make import AT, make_draft, make_summary


def decision(text, **fields):
    return make_draft(
        text, text, kind=Kind.DECISION, at=AT + 10, reversal=reversal((text,)), **fields
    )


def older(text, **fields):
    return make_summary(text, kind=Kind.DECISION, **fields)


def relations(draft, *earlier):
    return [(r.older_id, r.relation) for r in find_reversed(draft, earlier)]


SQLITE = older("We keep sessions in SQLite rather than Redis", id=1)
WINDOW = older("Chose a sliding window over a fixed one", id=2)
REDIS = decision("Sessions move from SQLite to Redis")


def test_what_is_given_up_in_words_is_superseded_and_the_rest_untouched():
    (found,) = find_reversed(REDIS, [SQLITE, WINDOW])
    assert (found.older_id, found.relation) == (1, "supersedes")
    assert found.reason.startswith("says about session that sqlite is given up: “")


def test_another_value_without_a_reversal_is_a_contradiction():
    assert relations(decision("We keep sessions in Postgres"), SQLITE, WINDOW) == [
        (1, "contradicts")
    ]
    assert relations(decision("Sessions live in Postgres rather than SQLite"), SQLITE) == [
        (1, "contradicts")
    ]


def test_the_same_value_again_is_neither():
    assert relations(decision("Sessions stay in SQLite"), SQLITE) == []


def test_giving_up_the_same_thing_for_something_else_supersedes_nothing():
    queue = older("We keep the job queue in SQLite", id=3)
    assert relations(REDIS, queue) == []


def test_a_reversal_without_a_subject_needs_a_single_match():
    npm = older("We use npm for the frontend", id=1)
    docs = older("We use npm for the docs", id=2)
    switch = decision("We switched from npm to pnpm")
    assert relations(switch, npm) == [(1, "supersedes")]
    assert relations(switch, npm, docs) == []


def test_going_back_replaces_the_latest_other_choice():
    redis = older("Sessions move from SQLite to Redis", id=5, at=AT + 5)
    postgres = older("We keep sessions in Postgres", id=4)
    back = decision("We're going back to SQLite for sessions")
    assert ("supersedes", 5) in {(kind, i) for i, kind in relations(back, redis, postgres)}


def test_later_decisions_and_other_kinds_are_left_alone():
    assert relations(REDIS, older(SQLITE.title, at=AT + 99)) == []
    assert relations(REDIS, make_summary(SQLITE.title, kind=Kind.NOTE)) == []
    assert find_reversed(make_draft(REDIS.title, kind=Kind.NOTE), [SQLITE]) == []

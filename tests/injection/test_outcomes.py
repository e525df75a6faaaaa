"""What became of what sessions were shown: judged once they have ended, counted by memory, and what memd costs."""

import pytest

from memd.errors import VaultBusy
from memd.injection.outcomes import SILENT_MS, CostMeter, OutcomeJudge, judge_session
from memd.models import EventKind, Kind
from memd.store import events, links, projects, reviews, session_context, summaries, usage
from memd.store.reviews import Review
from memd.store.usage import Cost, NewInjection
from memd.time_expressions import DAY_MS
from tests.factories import AT, make_draft, make_new_event

TITLE = "Retries live in `app/net/retry_policy.py`"


@pytest.fixture
def judge(db, clock):
    def write(tx):
        project = projects.ensure_project(tx, "/p", "p", "", 1)
        owner = summaries.SummaryOwner(project, None, "agent")
        draft = make_draft(TITLE, TITLE, kind=Kind.DECISION)
        return summaries.put_summary(tx, "u1", draft, owner, 1)[0]

    assert db.write_now(write) == 1
    clock.now = AT + 100_000
    return OutcomeJudge(db, clock)


def work(path="/p/other.py", at=AT + 5_000):
    given = {"file_path": path, "old_string": "3", "new_string": "4"}
    return {"kind": EventKind.TOOL_RESULT, "at": at, "tool_name": "Edit", "tool_input": given}


USE = work("/p/app/net/retry_policy.py")


def hear(db, session, *done, ends=True, shown_at=AT + 1):
    """A session that was shown memory 1, with what was done in it."""
    said = [{"kind": EventKind.PROMPT, "at": AT + 2, "prompt": "make it try more often"}, *done]
    said += [{"kind": EventKind.SESSION_END, "at": AT + 90_000}] if ends else []

    def write(tx):
        for one in said:
            event = make_new_event(**one, session=session)
            number = projects.ensure_session(tx, event.session, 1, event.at)
            events.append_event(tx, event, number)
        tx.execute("UPDATE events SET distilled = 1")
        tx.execute("UPDATE sessions SET last_event_at = (SELECT max(at) FROM events)")
        shown = NewInjection(number, 1, "startup", shown_at, "newest")
        usage.record_injections(tx, [shown])
        return number

    return db.write_now(write)


def outcomes(db, session):
    rows = db.read_now(lambda tx: usage.session_injections(tx, session))
    return [(row.outcome, row.evidence) for row in rows]


def worth(db):
    """(uses, sessions that ignored it) of memory 1 as a session's start sees it."""
    (one,) = db.read_now(lambda tx: session_context.candidates_by_ids(tx, [1], AT))
    return one.uses, one.ignored


async def test_a_session_that_has_ended_is_judged_once(db, judge):
    number = hear(db, "s1", USE)
    await judge.judge_ended()
    assert outcomes(db, number) == [("used", "app/net/retry_policy.py")]
    await judge.judge_ended()
    assert (judge.status()["judged"], worth(db)) == (1, (1, 0))


async def test_a_session_that_goes_on_is_not_judged_until_it_is_silent_for_hours(db, judge, clock):
    number = hear(db, "s1", work(), ends=False)
    await judge.judge_ended()
    assert outcomes(db, number) == [(None, "")]
    clock.advance(ms=SILENT_MS)
    await judge.judge_ended()
    assert outcomes(db, number) == [("ignored", "")]


async def test_what_was_ignored_may_be_used_when_the_session_is_taken_up_again(db, judge):
    number = hear(db, "s1", work())
    await judge.judge_ended()
    hear(db, "s1", USE | {"at": AT + 80_000}, shown_at=AT + 70_000)
    await judge.judge_ended()
    assert [one for one, _ in outcomes(db, number)] == ["used", "used"]
    assert worth(db) == (1, 0)


async def test_sessions_that_did_not_use_it_are_counted_since_the_last_that_did(db, judge):
    for number in range(3):
        hear(db, f"a{number}", work())
    await judge.judge_ended()
    assert worth(db) == (0, 3)
    hear(db, "used", USE, shown_at=AT + 3)
    hear(db, "later", work(), shown_at=AT + 4)
    await judge.judge_ended()
    assert worth(db) == (1, 1)


async def test_what_a_statement_of_the_session_replaced_was_overruled_and_said_again_is_not(
    db, judge
):
    number = hear(db, "s1", work())

    def replace_with(title):
        def write(tx):
            owner = summaries.SummaryOwner(1, number, "user")
            draft = make_draft(title, title, kind=Kind.DECISION)
            newer = summaries.put_summary(tx, title, draft, owner, AT + 9_000)[0]
            found = [one.id for one in links.supersessions_of(tx, 1) if one.undone_at is None]
            for one in found:
                links.undo_supersession(tx, one, AT)
            links.supersede(
                tx, newer_id=newer, older_id=1, rule="test", cosine=None, guard="", at=AT + 9_000
            )

        db.write_now(write)

    replace_with(f"{TITLE}.")
    await judge.judge_ended()
    assert outcomes(db, number) == [("ignored", "")]
    replace_with("Retries live in `app/net/backoff_policy.py`")
    found = db.read_now(lambda tx: judge_session(tx, number))
    assert [one.outcome for one in found.values()] == ["overruled"]


async def test_what_the_user_rejected_in_the_session_was_overruled(db, judge):
    number = hear(db, "s1", work())
    db.write_now(lambda tx: reviews.put_review(tx, Review(1, "rejected", AT + 9_000)))
    await judge.judge_ended()
    assert outcomes(db, number) == [("overruled", "")]


# ── What nobody uses is asked about ──────────────────────────────────────────────────────────────


async def test_what_many_sessions_did_not_use_waits_in_the_inbox_until_the_user_looks(db, judge):
    def waits():
        def read(tx):
            found = summaries.summaries_by_ids(tx, [1]).values()
            return reviews.waiting_ids(tx, None, AT, 9), reviews.describe_doubts(tx, found, AT)

        return db.read_now(read)

    db.write_now(lambda tx: reviews.put_review(tx, Review(1, "seen", AT)))
    assert waits() == ([], {})
    for number in range(reviews.UNUSED_MIN):
        hear(db, f"s{number}", work())
    await judge.judge_ended()
    assert waits() == ([1], {1: f"shown in {reviews.UNUSED_MIN} sessions, never used"})
    db.write_now(lambda tx: reviews.put_review(tx, Review(1, "seen", AT + 50_000)))
    assert waits() == ([], {})
    hear(db, "one more", work(at=AT + 70_000), shown_at=AT + 60_000)
    await judge.judge_ended()
    assert (waits(), worth(db)) == (([], {}), (0, 1))


async def test_what_the_user_kept_is_not_asked_about_again(db, judge):
    db.write_now(lambda tx: reviews.put_review(tx, Review(1, "kept", AT - 1)))
    for number in range(reviews.UNUSED_MIN):
        hear(db, f"s{number}", work())
    await judge.judge_ended()
    assert db.read_now(lambda tx: reviews.waiting_ids(tx, None, AT, 9)) == []


# ── What it costs ────────────────────────────────────────────────────────────────────────────────


async def test_costs_are_added_up_by_day_and_read_by_week(db, clock):
    meter = CostMeter(clock)
    for tokens in (100, 200):
        meter.add("starts", tokens, 0.05)
    clock.advance(ms=6 * DAY_MS)
    meter.add("starts", 1)
    meter.add("answers", 50, 0.001)
    await meter.flush(db)
    clock.advance(ms=DAY_MS)
    meter.add("asks", 90)
    await meter.flush(db)
    now, past = db.read_now(lambda tx: usage.read_weeks(tx, clock(), 2))
    assert now.costs == {"starts": Cost(1, 1, 0), "answers": Cost(1, 50, 1), "asks": Cost(1, 90, 0)}
    assert past.costs == {"starts": Cost(2, 300, 100)}


async def test_costs_that_could_not_be_written_are_written_later(db, clock, monkeypatch):
    meter, write = CostMeter(clock), db.write_unsynced

    async def refuse(_):
        meter.add("starts", 7)
        raise VaultBusy("busy")

    meter.add("starts", 5)
    monkeypatch.setattr(db, "write_unsynced", refuse)
    with pytest.raises(VaultBusy):
        await meter.flush(db)
    monkeypatch.setattr(db, "write_unsynced", write)
    await meter.flush(db)
    (week,) = db.read_now(lambda tx: usage.read_weeks(tx, clock(), 1))
    assert week.costs == {"starts": Cost(2, 12, 0)}

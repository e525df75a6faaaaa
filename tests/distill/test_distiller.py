import dataclasses
from collections import Counter

import anyio
import pytest

from memd.belief.notes import Note
from memd.config import DistillConfig
from memd.distill import distiller as distilling
from memd.distill import transaction
from memd.distill.distiller import (
    Distiller,
    DueRequest,
    find_pending_sessions,
    load_due,
    plan_episodes,
)
from memd.distill.proof.reopening import leave_passed
from memd.distill.transaction import write_episodes
from memd.models import REMEMBERED, Authority, Kind
from memd.store import events, links, summaries
from memd.store.database import Database
from memd.store.summaries import SummaryOwner
from tests.distill.samples import DIRECTORY, EVERY_EVENT, LEDGER, recorded, store
from tests.factories import AT, make_draft, make_new_event


class Home:
    """A vault with a distiller, and the verbs of a scenario."""

    def __init__(self, db, clock, config=None):
        self.db, self.clock = db, clock
        self.woken = anyio.Event()
        self.distiller = Distiller(db, config or DistillConfig(), clock, self.written)

    def written(self):
        self.woken.set()

    async def happens(self, *found):
        return (await self.db.write(lambda tx: store(tx, found)))[-1]

    async def distils(self):
        """Let the distiller run until it sleeps."""
        await self.distiller._distil_ended()

    async def all(self):
        def read(tx):
            number = tx.execute("SELECT coalesce(max(id), 0) FROM summaries").get
            return list(summaries.summaries_by_ids(tx, range(1, number + 1)).values())

        return await self.db.read(read)

    async def pending(self):
        return await self.db.read(events.count_pending)

    async def of_kind(self, kind):
        return [s for s in await self.all() if s.kind is kind]

    async def edges_at(self, one):
        return await self.db.read(lambda tx: links.edges_at(tx, "summary", str(one.id)))

    async def distils_again(self):
        await self.db.write(lambda tx: tx.execute("UPDATE events SET distilled = 0"))
        await self.distils()


@pytest.fixture
def home(db, clock):
    return Home(db, clock)


def turn(*said, name="t1", at=AT, session="s1", stop=True):
    """A prompt, an answer, and a stop unless the turn goes on."""
    prompt, answer = said
    found = [make_new_event(at=at, turn=name, session=session, prompt=prompt)]
    if stop:
        found.append(
            make_new_event("stop", at=at + 1, turn=name, session=session, last_assistant_message=answer)
        )  # fmt: skip
    else:
        found.append(
            make_new_event("tool_result", at=at, turn=name, session=session, tool_name="Bash", tool_input={"command": "make"})
        )  # fmt: skip
    return found


async def rows(home):
    """Everything that the distiller wrote, without the times of writing."""
    found = [
        (s.id, s.uid, s.kind, s.title, s.body, s.at, s.superseded_by, s.duplicates, s.rule)
        for s in await home.all()
    ]
    edges = await home.db.read(
        lambda tx: tx.execute(
            "SELECT from_id, type, to_kind, to_id, detail FROM edges ORDER BY 1, 2, 3, 4"
        ).fetchall()
    )
    return found, edges


async def test_the_ledger_sessions_yield_what_a_person_would_note(home, clock):
    await home.happens(*recorded(LEDGER))
    clock.now = AT
    await home.distils()
    assert await home.pending() == 0
    (fix,) = await home.of_kind(Kind.FIX)
    assert fix.title.startswith("Login answers 500 when the token is garbage: `decode_token`")
    for words in (
        "ValueError: not enough values",
        "into a 500",
        "auth.py",
        "python3 -m unittest -q",
    ):
        assert words in fix.body
    (failure,) = await home.of_kind(Kind.FAILURE)
    assert failure.superseded_by == fix.id
    (told,) = [one for one in await home.all() if "Error: NameError" in one.body]
    assert told.kind is Kind.CHANGE, "the agent's own slip, of which it told"
    assert "Fix: changed ratelimit.py\nChanged ratelimit.py:\n- LIMITS\n+ LIMIT" in told.body
    (rule,) = await home.of_kind(Kind.INSTRUCTION)
    assert rule.title.startswith("Always run python3 -m unittest -q before")
    assert "(Run the tests)" in rule.body
    sqlite, redis = await home.of_kind(Kind.DECISION)
    assert "keep sessions in SQLite rather than Redis" in sqlite.title
    assert "move them from SQLite to Redis" in redis.title


async def test_what_the_ledger_sessions_yield_is_linked_quoted_and_clean(home):
    await home.happens(*recorded(LEDGER))
    await home.distils()
    sqlite, redis = await home.of_kind(Kind.DECISION)
    assert (sqlite.superseded_by, redis.superseded_by) == (redis.id, None)
    (row,) = await home.db.read(lambda tx: links.supersessions_of(tx, sqlite.id))
    assert (row.rule, row.cosine) == ("changed-value", None)
    assert "changed from SQLite to Redis" in row.guard
    for summary in await home.all():
        quoted = await home.db.read(lambda tx, s=summary: links.sources_of(tx, s.id))
        assert quoted
        assert all(0 < len(quote) <= 200 and "\n" not in quote for _, quote in quoted)
    (fix,) = await home.of_kind(Kind.FIX)
    failure = next(s for s in await home.of_kind(Kind.FAILURE) if "ValueError" in s.title)
    seen = {(e.from_id, e.type.value, e.to_kind, e.to_id) for e in await home.edges_at(fix)}
    assert (str(failure.id), "causes", "summary", str(fix.id)) in seen
    assert (str(fix.id), "edits", "file", f"{DIRECTORY}/auth.py") in seen
    text = repr(await rows(home))
    for hidden in ("Nordwind", "wJalrXUtnFEMI", "AKIAIOSFODNN7EXAMPLE"):
        assert hidden not in text, "capture has removed it"


async def test_the_session_of_every_event_goes_through(home):
    await home.happens(*recorded(EVERY_EVENT))
    await home.distils()
    assert await home.pending() == 0
    (summary,) = await home.all()
    assert "unix socket" not in summary.body, "memd's own answers are no memory"


async def test_distilling_everything_again_changes_nothing(home):
    await home.happens(*recorded(LEDGER))
    await home.distils()
    before = await rows(home)
    await home.distils_again()
    assert await rows(home) == before


async def test_a_distiller_that_is_stopped_between_episodes_ends_with_the_same_rows(
    home, clock, tmp_path
):
    found = recorded(LEDGER)
    await home.happens(*found)
    await home.distils()
    second = Database(str(tmp_path / "second.db"), clock())
    try:
        for _ in range(40):
            other = Home(second, clock)
            if not await other.all():
                await other.happens(*found)
            with anyio.CancelScope() as scope:
                other.distiller.on_written = scope.cancel
                await other.distils()
            if not await other.pending():
                break
        assert await other.pending() == 0
        assert await rows(other) == await rows(home)
    finally:
        second.close()


async def test_an_open_turn_waits_until_it_ends(home):
    await home.happens(*turn("Why is the build slow on CI?", "", stop=False))
    await home.distils()
    assert await home.all() == []
    assert await home.pending() == 2
    await home.happens(
        make_new_event("stop", at=AT + 5, last_assistant_message="The cache key changed daily.")
    )
    await home.distils()
    (summary,) = await home.all()
    assert summary.title.endswith("The cache key changed daily")
    assert await home.pending() == 0


async def test_settle_distils_an_open_turn_and_its_end_revises_the_same_row(home):
    seq = await home.happens(*turn("We decided to use Postgres for the queue.", "", stop=False))
    await home.distiller.settle(seq)
    before = {s.uid: s.id for s in await home.all()}
    assert len(before) == 2
    await home.happens(
        make_new_event("stop", at=AT + 5, last_assistant_message="Noted: Postgres it is.")
    )
    await home.distils()
    assert {s.uid: s.id for s in await home.all()} == before
    assert "Postgres it is" in (await home.all())[0].body


async def test_settle_leaves_later_sessions_alone(home):
    seq = await home.happens(*turn("Explain the retry policy.", "", stop=False))
    await home.happens(*turn("Explain the cache policy.", "", stop=False, session="s2"))
    await home.distiller.settle(seq)
    assert [s.title for s in await home.all()] == ["Explain the retry policy"]


async def test_a_slot_that_is_no_longer_drafted_goes_unless_it_is_pinned(home):
    first = make_new_event(prompt="Run it.")
    fails = make_new_event(
        "tool_failure", at=AT + 1, tool_name="Bash", tool_input={"command": "pytest"},
        error="Exit code 1\nKeyError: 'a'",
    )  # fmt: skip
    seq = await home.happens(first, fails)
    await home.distiller.settle(seq)
    (failure,) = await home.of_kind(Kind.FAILURE)
    await home.db.write(lambda tx: events.forget_events(tx, [seq], AT))
    await home.happens(make_new_event("stop", at=AT + 2, last_assistant_message="Nothing to see."))
    await home.db.write(lambda tx: summaries.pin_summary(tx, failure.id, AT))
    await home.distils()
    assert [s.id for s in await home.of_kind(Kind.FAILURE)] == [failure.id]
    await home.db.write(lambda tx: summaries.pin_summary(tx, failure.id, None))
    await home.distils_again()
    assert await home.of_kind(Kind.FAILURE) == []


async def test_a_repeated_instruction_strengthens_the_first_and_only_once(home):
    said = "Always run make check before you commit."
    await home.happens(*turn(said, "I will, from this commit on.", session="s1"))
    await home.happens(*turn(f"please {said.lower()}", "Understood.", session="s2", at=AT + 100))
    await home.distils()
    (rule,) = await home.of_kind(Kind.INSTRUCTION)
    assert rule.duplicates == 2
    sources = await home.db.read(lambda tx: links.sources_of(tx, rule.id))
    assert len(sources) == 2
    await home.distils_again()
    (rule,) = await home.of_kind(Kind.INSTRUCTION)
    assert rule.duplicates == 2


async def test_a_reversal_that_was_undone_stays_undone(home):
    await home.happens(*recorded(LEDGER))
    await home.distils()
    found = "SELECT id FROM supersessions WHERE rule = 'changed-value'"
    (row,) = await home.db.read(lambda tx: tx.execute(found).fetchall())
    await home.db.write(lambda tx: links.undo_supersession(tx, row[0], AT))
    await home.distils_again()
    decisions = await home.of_kind(Kind.DECISION)
    assert [s.superseded_by for s in decisions] == [None, None]


async def test_an_older_decision_that_is_imported_last_is_superseded_all_the_same(home):
    found = recorded(LEDGER)
    sessions = list(dict.fromkeys(event.session.key for event in found))
    for key in reversed(sessions):
        await home.happens(*(event for event in found if event.session.key == key))
        await home.distils()
    sqlite, redis = sorted(await home.of_kind(Kind.DECISION), key=lambda one: one.at)
    assert sqlite.superseded_by == redis.id


async def test_another_choice_without_a_reversal_only_contradicts(home):
    await home.happens(*turn("Decision: we keep sessions in SQLite.", "Noted, SQLite it is."))
    await home.happens(
        *turn("Decision: we keep sessions in Postgres.", "Noted.", session="s2", at=AT + 100)
    )
    await home.distils()
    old, new = await home.of_kind(Kind.DECISION)
    assert old.superseded_by is None
    seen = {(e.from_id, e.type.value) for e in await home.edges_at(old)}
    assert (str(new.id), "contradicts") in seen


async def test_a_forgotten_summary_does_not_come_back(home):
    await home.happens(*turn("Why does the parser recurse?", "Because the grammar is nested."))
    await home.distils()
    (summary,) = await home.all()

    def forget(tx):
        summaries.delete_summary(tx, summary.id)
        tx.execute("INSERT INTO forgotten VALUES (?, ?)", (summary.uid, AT))
        tx.execute("UPDATE events SET distilled = 0")

    await home.db.write(forget)
    await home.distils()
    assert await home.all() == []
    assert await home.pending() == 0


async def test_a_late_event_of_an_old_turn_never_makes_it_poorer(home):
    await home.happens(*turn("Why does the parser recurse?", "Because the grammar is nested."))
    await home.happens(*turn("And the printer?", "It walks the same tree.", name="t2", at=AT + 50))
    await home.distils()
    before = [s.title for s in await home.all()]
    await home.happens(
        make_new_event(
            "tool_result", at=AT + 90, tool_name="Read", tool_input={"file_path": "/a.py"}
        )
    )
    await home.distiller.settle(99)
    assert [s.title for s in await home.all()] == before
    assert await home.pending() == 0


async def test_a_session_without_turn_ids_is_distilled_too(home):
    found = [
        make_new_event("session_start", turn=None, at=AT),
        make_new_event(turn=None, at=AT + 1, prompt="Why does the parser recurse?"),
        make_new_event("stop", turn=None, at=AT + 2, last_assistant_message="The grammar is nested."),
        make_new_event(turn=None, at=AT + 3, prompt="And why does the printer recurse as well?"),
        make_new_event("tool_result", turn=None, at=AT + 4, tool_name="Edit", tool_input={"file_path": "/p/printer.py", "old_string": "a", "new_string": "b"}),
        make_new_event("session_end", turn=None, at=AT + 5),
    ]  # fmt: skip
    await home.happens(*found)
    await home.distils()
    assert [s.episode for s in await home.all()] == ["event-2", "event-4"]
    assert await home.pending() == 0


async def test_a_turn_of_thousands_of_events_ends(home, clock):
    found = [
        make_new_event("tool_call", at=AT + i, tool_name="Grep", tool_input={"pattern": "x"})
        for i in range(1, 5_600)
    ]
    first = make_new_event(prompt="Search everything for the lost key.", at=AT)
    last = make_new_event("stop", at=AT + 9_000, last_assistant_message="It is in vault.py.")
    await home.happens(first, *found, last)
    clock.now = AT + 9_000 + 600_000
    await home.distils()
    assert await home.pending() == 0
    (summary,) = await home.all()
    assert "vault.py" in summary.body


@pytest.mark.parametrize("call", ["hurry", "nudge"])
async def test_the_distiller_wakes_when_called_and_tells_the_index(home, monkeypatch, call):
    if call == "hurry":  # a turn that has ended waits for no pause
        monkeypatch.setattr("memd.distill.distiller._PAUSE_MIN_S", 600)
        monkeypatch.setattr("memd.distill.distiller._PAUSE_MAX_S", 600)
    async with anyio.create_task_group() as group:
        group.start_soon(home.distiller.run)
        await anyio.wait_all_tasks_blocked()
        await home.happens(*turn("Why does the parser recurse?", "The grammar is nested."))
        getattr(home.distiller, call)()
        with anyio.fail_after(60):
            await home.woken.wait()
        group.cancel_scope.cancel()
    status = home.distiller.status()
    assert (status["summaries"], status["episodes"], status["last_error"]) == (1, 1, None)


async def test_an_idle_turn_is_distilled_at_last(home, clock):
    edit = {"file_path": "/p/parser.py", "old_string": "a", "new_string": "b"}
    await home.happens(
        make_new_event(prompt="Make the parser recurse less."),
        make_new_event("tool_result", at=AT, tool_name="Edit", tool_input=edit),
    )
    clock.now = AT + 599_999
    await home.distils()
    assert await home.all() == []
    clock.now = AT + 600_001
    await home.distils()
    assert len(await home.all()) == 1


async def test_a_compaction_saves_what_the_open_turn_has_decided(home):
    answer = "We chose Redis over SQLite because three machines share the sessions."
    await home.happens(
        *turn("Where shall the sessions live?", answer, stop=False),
        make_new_event("subagent_stop", at=AT + 1, last_assistant_message=answer, agent_id="a1"),
        make_new_event(
            prompt="Use Redis, and from now on always ask before you pick a store.", at=AT + 2
        ),
    )
    await home.distils()
    assert await home.all() == []
    await home.happens(make_new_event("compact_start", at=AT + 3, trigger="auto"))
    await home.distils()
    assert await home.pending() == 0
    assert await home.all()


async def test_a_check_that_passes_in_a_later_turn_closes_the_failure(home):
    def ran(kind, at, name, **more):
        return make_new_event(
            kind, at=at, turn=name, tool_name="Bash", tool_input={"command": "pytest -q"}, **more
        )

    failed = ran("tool_failure", AT + 1, "t1", error="ValueError: not enough values")
    first = turn("Run the tests", "They fail.", name="t1")
    await home.happens(first[0], failed, make_new_event("stop", at=AT + 2, turn="t1"))
    await home.distils()
    (failure,) = await home.of_kind(Kind.FAILURE)
    passes = ran("tool_result", AT + 11, "t2", tool_response={"stdout": "2 passed"})
    second = turn("How is the parser now?", "They pass.", name="t2", at=AT + 10)
    await home.happens(second[0], passes, make_new_event("stop", at=AT + 12, turn="t2"))
    await home.distils()
    assert "passed-later" in {edge.rule for edge in await home.edges_at(failure)}
    # What the turn of the failure says later does not open it again.
    late = make_new_event(
        "stop", at=AT + 3, turn="t1", last_assistant_message="A ValueError it is."
    )
    await home.happens(late)
    await home.distils()
    assert "passed-later" in {edge.rule for edge in await home.edges_at(failure)}


async def test_a_turn_is_distilled_again_at_most_once_for_each_new_exchange(home, monkeypatch):
    counted = []
    real = distilling.distill_episode
    monkeypatch.setattr(
        distilling,
        "distill_episode",
        lambda episode, *rest: counted.append(episode.key) or real(episode, *rest),
    )

    closes = transaction.close_failures
    monkeypatch.setattr(  # as if each check closed something whenever its turn is written
        transaction,
        "close_failures",
        lambda tx, runs, *rest: closes(tx, runs, *rest) | {one.run.event_id for one in runs},
    )

    async def tells(number, prompt, answer, *steps):
        """A new exchange of the session; how often each turn was distilled for it."""
        at, name = AT + 20 * number, f"t{number}"
        begins, ends = turn(prompt, answer, name=name, at=at)
        ran = {"tool_name": "Bash", "tool_input": {"command": "pytest -q"}, "turn": name}
        edit = {"file_path": "/p/parser.py", "old_string": "a", "new_string": f"b{number}"}
        made = {
            "fails": (
                "tool_failure",
                {**ran, "error": "Exit code 1\nValueError: not enough values"},
            ),
            "passes": ("tool_result", {**ran, "tool_response": {"stdout": "2 passed"}}),
            "edits": ("tool_result", {"tool_name": "Edit", "tool_input": edit, "turn": name}),
        }
        done = [
            make_new_event(made[step][0], at=at + 1 + n, **made[step][1])
            for n, step in enumerate(steps)
        ]
        counted.clear()
        await home.happens(begins, *done, dataclasses.replace(ends, at=at + 9))
        await home.distils()
        assert await home.pending() == 0
        return Counter(counted)

    assert await tells(1, "Run all the tests of the parser", "They fail.", "fails") == {"t1": 1}
    passed = await tells(2, "How are the tests of the parser?", "They pass again.", "passes")
    assert passed == {"t2": 2}, "it tells what it has closed"
    fixed = await tells(3, "Fix the ValueError of the lexer", "Mended.", "fails", "edits", "passes")
    assert fixed == {"t3": 2}
    denied = await tells(4, "The tests still fail with the ValueError, it is not fixed", "I look.")
    assert denied == {"t4": 1, "t3": 1}, "its fix is disputed"
    assert await tells(5, "Thank you", "You are welcome.") == {"t4": 1, "t5": 1}, "it joins a piece"
    await home.distils()
    assert len(counted) == 2, "nothing is new"


IDLE = 600_000


@pytest.fixture
def happens(db):
    """Store events of one session; their numbers."""
    return lambda *found: db.write_now(lambda tx: store(tx, found))


@pytest.fixture
def due(db):
    def read(through=None, now=AT):
        return db.read_now(lambda tx: load_due(tx, DueRequest(1, now, IDLE, through)))

    return read


def test_nothing_is_due_while_a_turn_goes_on(happens, due):
    happens(make_new_event(prompt="x"), make_new_event("tool_call", at=AT + 1))
    assert due() is None
    assert due(now=AT + 1 + IDLE) is not None
    assert due(now=AT + 1 - IDLE) is not None, "the clock was set back meanwhile"


def test_a_waiting_caller_gets_an_open_turn_too(happens, due):
    first, second = happens(
        make_new_event(prompt="x"), make_new_event(prompt="y", turn="t2", at=AT + 5)
    )
    assert [e.key for e in due(through=first).episodes] == ["t1"]
    assert [e.key for e in due(through=second).episodes] == ["t1", "t2"]
    assert due(through=0) is None


def test_events_that_yield_nothing_are_loose(happens, due):
    numbers = happens(make_new_event("session_start", turn=None))
    assert due().loose == tuple(numbers)
    assert due().episodes == ()


def test_a_late_event_brings_its_whole_turn_along(db, happens, due):
    numbers = happens(
        make_new_event(prompt="x", at=AT),
        make_new_event("stop", at=AT + 1, last_assistant_message="Done."),
        make_new_event(prompt="Explain how the lexer works.", turn="t2", at=AT + 2),
    )
    db.write_now(lambda tx: events.mark_distilled(tx, numbers))
    happens(make_new_event("tool_result", at=AT + 9, tool_name="Read"))
    (episode,) = due(through=99).episodes
    assert [event.kind.value for event in episode.events] == ["prompt", "stop", "tool_result"]


def test_a_prompt_that_comes_after_its_turn_was_distilled_is_due_at_once(db, happens, due):
    numbers = happens(make_new_event("stop", at=AT + 1, last_assistant_message="Done."))
    db.write_now(lambda tx: events.mark_distilled(tx, numbers))
    happens(make_new_event(prompt="x", at=AT))
    (episode,) = due().episodes
    assert [event.kind.value for event in episode.events] == ["prompt", "stop"]


def test_a_plan_accounts_for_the_pending_events_of_its_episode(db, happens, due):
    numbers = happens(
        make_new_event(prompt="Explain the parser to me."),
        make_new_event("stop", at=AT + 1, last_assistant_message="It recurses by design."),
    )
    db.write_now(lambda tx: events.mark_distilled(tx, numbers[:1]))
    (plan,) = plan_episodes(due())
    assert plan.event_ids == (numbers[1],)
    assert [draft.slot for draft in plan.drafts] == ["turn"]


def test_the_rules_know_the_session_the_project_and_its_commands(happens, due):
    happens(
        make_new_event(
            "tool_call",
            turn="t0",
            tool_name="Bash",
            tool_input={"command": "make", "description": "Build"},
        ),
        make_new_event(prompt="Always run make.", at=AT + 1),
        make_new_event("stop", at=AT + 2),
    )
    context = due().context
    assert context.session_title == "Always run make."
    assert context.roots == ("/home/dev/ledger",)
    assert context.descriptions == {"make": "Build"}


def test_descriptions_of_commands_are_looked_up_only_for_a_rule(happens, due, monkeypatch):
    looked_up = []
    monkeypatch.setattr(
        events, "command_descriptions", lambda _tx, project: looked_up.append(project) or {}
    )
    happens(
        make_new_event(prompt="It always fails when I push."), make_new_event("stop", at=AT + 1)
    )
    due()
    assert not looked_up
    happens(
        make_new_event(prompt="Always run make.", at=AT + 2, turn="t2"),
        make_new_event("stop", at=AT + 3, turn="t2"),
    )
    due()
    assert looked_up


def test_a_caller_that_waits_for_an_event_does_not_queue_behind_an_import(happens, db):
    first, *_ = happens(make_new_event(session="old", prompt="x"))
    happens(make_new_event(session="older", prompt="x", turn="t2"))
    asked, *_ = happens(make_new_event(session="new", prompt="x", turn="t3"))
    assert db.read_now(lambda tx: find_pending_sessions(tx, None)) == [1, 2, 3]
    assert db.read_now(lambda tx: find_pending_sessions(tx, asked)) == [3, 1, 2]
    assert db.read_now(lambda tx: find_pending_sessions(tx, first)) == [1, 2, 3]
    assert db.read_now(lambda tx: find_pending_sessions(tx, 99)) == [1, 2, 3]


def wrote(path, content, **more):
    given = {"file_path": path, "content": content}
    return make_new_event("tool_result", tool_name="Write", tool_input=given, **more)


def test_a_file_that_an_earlier_turn_wrote_is_known_to_a_later_one(db, happens, due):
    happens(
        make_new_event(prompt="Write the token store"),
        wrote("/home/dev/ledger/store.py", "class Row: ...\n", at=AT + 1),
        make_new_event("stop", at=AT + 2, last_assistant_message="Done."),
    )
    first = due()
    assert first.known_files == ()
    db.write_now(lambda tx: write_episodes(tx, plan_episodes(first), first.session, AT))
    happens(
        make_new_event(prompt="Keep the tokens of a login", turn="t2", at=AT + 3),
        wrote("/home/dev/ledger/auth.py", "import store\n", turn="t2", at=AT + 4),
        make_new_event("stop", turn="t2", at=AT + 5, last_assistant_message="Done."),
    )
    second = due()
    assert second.known_files == ("/home/dev/ledger/store.py",)
    (plan,) = plan_episodes(second)
    assert [(one.path, one.target) for one in plan.files] == [
        ("/home/dev/ledger/auth.py", "/home/dev/ledger/store.py")
    ]


async def test_what_a_turn_left_failing_is_open_until_a_later_command_line_passes_with_it(home):
    check = "python3 -B tests/test_page.py"
    left = (
        f"`{check}` failed when it was run last: AssertionError: page width",
        "The queue is not durable.",
    )

    async def ran(at, command, **more):
        kind = "tool_failure" if more else "tool_result"
        await home.happens(
            make_new_event(
                kind,
                at=at,
                session=f"s{at}",
                tool_name="Bash",
                tool_input={"command": command},
                **more,
            )
        )
        return await home.db.read(
            lambda tx: leave_passed(
                tx, left, [tx.execute("SELECT DISTINCT project_id FROM sessions").get], AT
            )
        )

    assert await ran(AT, check, error="Exit code 1\nAssertionError: page width") == left
    assert await ran(AT + 1, "git checkout -- page.py && python3 -B tests/test_other.py") == left
    assert await ran(AT + 2, f"git checkout -- page.py; {check} || true") == left
    assert await ran(AT + 3, f"git checkout -- page.py && {check}") == left[1:]
    assert await ran(AT + 4, check, error="Exit code 1\nAssertionError: page width") == left


async def test_a_note_that_is_refused_once_its_words_have_come_is_indexed_at_once(home):
    order = "The owner has decided to empty the barn."
    await home.happens(*turn("The fan is loud.", "It is."))
    await home.distils()
    note = make_draft(
        "The barn is emptied",
        Note("The barn is emptied", quoted=order).format(),
        kind=Kind.DECISION,
        rule=REMEMBERED,
        authority=Authority.AGENT_CALL,
        at=AT + 2,
    )
    project = await home.db.read(lambda tx: tx.execute("SELECT project_id FROM sessions").get)
    owner = SummaryOwner(project, 1, "agent")
    await home.db.write(lambda tx: summaries.put_summary(tx, "n", note, owner, AT))
    page = f"from the maker's page:\n> # Fan 3\n> Keep it dry.\n> {order}\nanything in it?"
    await home.happens(*turn(page, "Nothing.", name="t2", at=AT + 5))
    home.woken = anyio.Event()
    await home.distils()
    assert home.woken.is_set()
    assert ["Not his word" in one.body for one in await home.all()] == [True]

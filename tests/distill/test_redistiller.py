import contextlib
import pathlib
import shutil
from functools import partial

import anyio
import pytest

from memd.config import DistillConfig
from memd.distill.distiller import Distiller
from memd.distill.redistill import RULES_VERSION, Redistiller, begin_if_outdated
from memd.models import Authority, EdgeType, EventKind, Kind, Stance
from memd.store import SummaryUse, judgments, ledger, links, summaries, usage
from memd.store.database import Database
from tests.conftest import StoppedClock
from tests.distill.samples import LEDGER, recorded, store
from tests.factories import AT, make_draft, make_new_event, open_new_vault

VAULTS = pathlib.Path(__file__).parent.parent / "data" / "vaults"


class Home:
    """The recorded sessions, distilled, and a worker that distils them again."""

    def __init__(self, db, clock):
        self.db, self.clock, self.written = db, clock, 0
        self.distiller = Distiller(db, DistillConfig(), clock, lambda: None)
        self.again = self.make_worker()

    def make_worker(self):
        return Redistiller(self.db, DistillConfig(), self.clock, self._count)

    def _count(self):
        self.written += 1

    async def begin(self, found):
        await self.db.write(lambda tx: store(tx, found))
        self.clock.now = AT
        await self.distiller._distil_ended()
        return self

    def sql(self, sql, values=()):
        return self.db.write_now(lambda tx: tx.execute(sql, values).fetchall())

    def dump(self):
        """All that distilling writes, without the times of writing and this worker's notes."""
        return {
            "summaries": self.sql(
                "SELECT id, uid, session_id, episode, kind, title, body, at, files, rule, authority, duplicates,"
                " pinned_at FROM summaries ORDER BY id"
            ),
            "edges": self.sql(
                "SELECT from_kind, from_id, type, to_kind, to_id, rule, detail FROM edges ORDER BY 1, 2, 3, 4, 5"
            ),
            "supersessions": self.sql(
                "SELECT newer_id, older_id, rule, undone_at FROM supersessions ORDER BY 1, 2"
            ),
            "forgotten": self.sql("SELECT * FROM forgotten ORDER BY 1"),
        }

    def ids(self):
        return [number for (number,) in self.sql("SELECT id FROM summaries ORDER BY id")]

    def one(self, number):
        return self.db.read_now(partial(summaries.get_summary, summary_id=number))

    def first(self, kind):
        ((number,),) = self.sql("SELECT min(id) FROM summaries WHERE kind = ?", (kind,))
        return self.one(number)

    def retitle(self, number, title="A title of old rules"):
        self.sql("UPDATE summaries SET title = ? WHERE id = ?", (title, number))

    def yields_no_longer(self, title="What old rules believed", kind=Kind.DISCOVERY):
        """A memory that only old rules made, of a turn that is there."""
        turn = self.first(Kind.CHANGE)

        def put(tx):
            owner = summaries.SummaryOwner(
                turn.project_id, turn.session_id, "claude-code", turn.episode
            )
            draft = make_draft(title, kind=kind, at=turn.at)
            number, _ = summaries.put_summary(tx, f"old/{title}", draft, owner, AT)
            source = links.sources_of(tx, turn.id)[0][0]
            edge = links.NewEdge(
                "summary", str(number), EdgeType.DERIVES_FROM, "event", str(source), "old", AT
            )
            links.add_edges(tx, [edge])
            return number

        return self.db.write_now(put)

    async def redistils(self):
        """Run the worker until it has distilled everything again; what it reports."""
        found = {}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.again.run)
            with anyio.fail_after(60):
                found.update(await self.again.redistil())
            tasks.cancel_scope.cancel()
        return found


@pytest.fixture(scope="module")
def distilled(tmp_path_factory):
    """A vault with the recorded sessions, distilled once: each test gets a copy."""
    path, clock = tmp_path_factory.mktemp("ledger") / "vault.db", StoppedClock()
    with contextlib.closing(open_new_vault(path, clock())) as db:
        anyio.run(Home(db, clock).begin, recorded(LEDGER))
    return path


@pytest.fixture
def home(distilled, tmp_path, clock):
    clock.now = AT
    path = shutil.copyfile(distilled, tmp_path / "ledger.db")
    with contextlib.closing(Database(str(path), AT)) as db:
        yield Home(db, clock)


def counts(report):
    return {name: report[name] for name in ("created", "revised", "deleted", "kept")}


NOTHING = {"created": 0, "revised": 0, "deleted": 0, "kept": 0}


async def test_what_todays_rules_made_is_not_changed(home):
    before = home.dump()
    assert counts(await home.redistils()) == NOTHING
    assert home.dump() == before
    assert home.written == 0


async def test_an_older_title_is_revised_and_the_memory_stays_the_same(home):
    turn = home.first(Kind.CHANGE)
    home.sql("INSERT INTO uses (summary_id, count, last_at) VALUES (?, 3, ?)", (turn.id, AT))
    before = home.dump()
    home.retitle(turn.id)
    report = await home.redistils()
    assert counts(report) == NOTHING | {"revised": 1}
    assert report["changes"] == [
        {"change": "revised", "id": turn.id, "kind": "change", "title": turn.title,
         "was": "A title of old rules"}
    ]  # fmt: skip
    assert home.dump() == before
    assert home.db.read_now(lambda tx: usage.uses_of(tx, [turn.id])[turn.id].count) == 3
    assert home.written > 0


async def test_supersessions_stay(home):
    before = home.dump()["supersessions"]
    assert before
    for (number,) in home.sql("SELECT id FROM summaries WHERE kind = 'decision'"):
        home.sql("UPDATE summaries SET body = body || ' (old)' WHERE id = ?", (number,))
    await home.redistils()
    assert home.dump()["supersessions"] == before


async def test_what_moved_to_another_slot_keeps_its_number(home):
    before, one = home.dump(), home.first(Kind.FAILURE)
    home.sql("UPDATE summaries SET uid = 'away' WHERE id = ?", (one.id,))
    assert counts(await home.redistils()) == NOTHING
    assert home.dump() == before


async def test_two_memories_that_changed_slots_keep_their_numbers(db, clock):
    prompt = "Always run make lint before you commit. Never push to the release branch by yourself."
    home = await Home(db, clock).begin(
        [
            make_new_event(at=AT, turn="t1", prompt=prompt),
            make_new_event("stop", at=AT + 1, turn="t1", last_assistant_message="Understood, noted."),
        ]
    )  # fmt: skip
    before = home.dump()
    rows = home.sql("SELECT id, uid FROM summaries WHERE kind = 'instruction' ORDER BY id")
    assert len(rows) == 2
    (one, first), (other, second) = rows
    home.sql("UPDATE summaries SET uid = 'x' WHERE id = ?", (one,))
    home.sql("UPDATE summaries SET uid = ? WHERE id = ?", (first, other))
    home.sql("UPDATE summaries SET uid = ? WHERE id = ?", (second, one))
    assert counts(await home.redistils()) == NOTHING
    assert home.dump() == before


async def test_what_the_rules_no_longer_say_is_deleted(home):
    number = home.yields_no_longer()
    report = await home.redistils()
    assert counts(report) == NOTHING | {"deleted": 1}
    assert report["changes"][0]["title"] == "What old rules believed"
    assert home.one(number) is None


@pytest.mark.parametrize("kind", [Kind.DECISION, Kind.INSTRUCTION, Kind.PREFERENCE, Kind.FACT, Kind.TASK])  # fmt: skip
async def test_what_an_earlier_version_asserted_is_kept_marked_and_less_sure(home, kind):
    number = home.yields_no_longer(kind=kind)
    report = await home.redistils()
    assert counts(report) == NOTHING | {"kept": 1}
    kept = home.one(number)
    assert kept.tags == (summaries.EARLIER_VERSION,)
    assert kept.confidence <= 0.2
    # Another run does not lose it.
    await home.redistils()
    assert home.one(number).tags == (summaries.EARLIER_VERSION,)


def pin(home, number):
    home.db.write_now(lambda tx: summaries.pin_summary(tx, number, AT, by=Authority.USER_HAND))


def judge(home, number):
    pair = {
        "newer_id": number,
        "older_id": home.first(Kind.CHANGE).id,
        "relation": Stance.UNRELATED,
    }
    home.db.write_now(lambda tx: judgments.put_judgment(tx, **pair, reason="r", who="user", at=AT))


def use(home, number):
    home.db.write_now(lambda tx: usage.record_uses(tx, {number: SummaryUse(1, AT)}, {}))


def lose_events(home, number):
    home.sql("DELETE FROM edges WHERE from_id = ? AND to_kind = 'event'", (str(number),))


def repeat(home, number):
    home.sql("UPDATE summaries SET duplicates = 2 WHERE id = ?", (number,))


@pytest.mark.parametrize(
    ("touch", "why"),
    [
        (pin, "pinned"),
        (judge, "judged"),
        (use, "a question was answered with it"),
        (lose_events, "its events are gone"),
        (repeat, "said elsewhere, too"),
    ],
)
async def test_what_a_person_has_a_hand_in_is_kept_though_the_rules_no_longer_say_it(
    home, touch, why
):
    number = home.yields_no_longer()
    touch(home, number)
    before = home.one(number)
    for _ in range(2):
        report = await home.redistils()
        assert counts(report) == NOTHING | {"kept": 1}
        assert report["changes"][0]["was"] == why
        assert home.one(number) == before


@pytest.mark.parametrize("touch", [pin, judge, lose_events])
async def test_what_is_pinned_or_judged_or_lost_its_events_stays_word_for_word(home, touch):
    number = home.first(Kind.DECISION).id
    home.retitle(number)
    touch(home, number)
    before, ids = home.one(number), home.ids()
    for _ in range(2):
        assert counts(await home.redistils()) == NOTHING
        assert home.one(number) == before
        assert home.ids() == ids


async def test_what_a_model_wrote_stays(home):
    number = home.first(Kind.CHANGE).id
    home.sql(
        "UPDATE summaries SET title = 'By a model', rule = ? WHERE id = ?",
        (f"{summaries.MODEL_RULE_PREFIX}m", number),
    )
    assert counts(await home.redistils()) == NOTHING
    assert home.one(number).title == "By a model"


async def test_a_new_statement_in_the_slot_of_another_one_that_stays_stands_beside_it(home):
    rule = home.first(Kind.INSTRUCTION)
    home.sql(
        "UPDATE summaries SET title = 'Deploy on Fridays', body = 'User: “Deploy on Fridays.”'"
        " WHERE id = ?",
        (rule.id,),
    )
    home.sql("DELETE FROM edges WHERE from_id = ? AND to_kind = 'file'", (str(rule.id),))
    pin(home, rule.id)
    report = await home.redistils()
    assert counts(report) == NOTHING | {"created": 1, "kept": 1}
    (new,) = (one for one in report["changes"] if one["change"] == "created")
    assert new["title"] == rule.title
    assert counts(await home.redistils()) == NOTHING | {"kept": 1}


async def test_what_was_forgotten_does_not_come_back_in_another_slot(home):
    rule = home.first(Kind.INSTRUCTION)
    home.sql("UPDATE summaries SET uid = uid || 'x' WHERE id = ?", (rule.id,))

    def forget(tx):
        summaries.delete_summary(tx, rule.id)
        ledger.record_forgotten(tx, rule.uid, AT)

    home.db.write_now(forget)
    before = home.dump()
    assert counts(await home.redistils()) == NOTHING
    assert home.dump() == before


async def test_a_turn_of_whose_events_only_a_part_is_left_is_left_alone(home):
    turn = home.first(Kind.CHANGE)
    home.retitle(turn.id)
    source = home.db.read_now(lambda tx: links.sources_of(tx, turn.id)[0][0])
    home.sql("INSERT INTO compactions VALUES (?, 1, 1)", (source,))
    assert counts(await home.redistils())["revised"] == 0
    assert home.one(turn.id).title == "A title of old rules"


async def test_a_preview_says_what_would_change_and_changes_nothing(home):
    turn, gone = home.first(Kind.CHANGE), home.yields_no_longer()
    home.retitle(turn.id)
    (lost,) = home.sql("SELECT id, title FROM summaries WHERE kind = 'instruction'")
    home.db.write_now(lambda tx: summaries.delete_summary(tx, lost[0]))
    before, sequence = home.dump(), home.sql("SELECT * FROM sqlite_sequence ORDER BY 1")
    notes = home.sql("SELECT * FROM meta ORDER BY 1")
    report = await home.again.preview()
    assert counts(report) == {"created": 1, "revised": 1, "deleted": 1, "kept": 0}
    assert {(one["change"], one["title"]) for one in report["changes"]} == {
        ("created", lost[1]), ("revised", turn.title), ("deleted", "What old rules believed"),
    }  # fmt: skip
    assert home.dump() == before
    assert home.sql("SELECT * FROM sqlite_sequence ORDER BY 1") == sequence
    assert home.sql("SELECT * FROM meta ORDER BY 1") == notes
    done = await home.redistils()
    assert counts(done) == counts(report)
    assert home.one(gone) is None


# ── Once, by itself ──────────────────────────────────────────────────────────────────────────────


def note(home, key="rules"):
    return home.db.read_now(partial(ledger.read_note, key=key))


async def run_until_done(home):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(home.again.run)
        with anyio.fail_after(60):
            while note(home) != str(RULES_VERSION) or note(home, "redistilling"):  # noqa: ASYNC110  # the vault tells no one
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()


async def test_an_older_vault_is_distilled_again_once_by_itself(home):
    turn = home.first(Kind.CHANGE)
    home.retitle(turn.id)
    await run_until_done(home)
    assert home.one(turn.id).title == turn.title
    home.retitle(turn.id)
    home.again = home.make_worker()
    await run_until_done(home)
    await home.db.write(begin_if_outdated)
    assert note(home, "redistilling") == ""
    assert home.one(turn.id).title == "A title of old rules"


async def test_a_new_vault_and_one_of_newer_rules_are_left_alone(db, clock):
    home = Home(db, clock)
    await run_until_done(home)
    assert note(home, "redistilling") == ""
    db.write_now(lambda tx: ledger.write_note(tx, "rules", "999"))
    await home.db.write(begin_if_outdated)
    assert note(home) == "999"


async def test_a_run_that_was_killed_goes_on_where_it_was(home):
    """It is stopped between two transactions, as by kill -9: what is not committed is not there."""
    before = home.dump()
    for (number,) in home.sql("SELECT id FROM summaries WHERE rule = 'turn'"):
        home.retitle(number)
    gone = home.yields_no_longer()
    finished, rounds = set(), 0
    while note(home) != str(RULES_VERSION):
        rounds += 1
        home.again = home.make_worker()
        await run_some_writes(home, 2 + rounds)
        finished.add(note(home, "redistilling") or "")
        assert rounds < 100
    assert rounds > 2
    assert len(finished) > 2
    assert home.dump() == before
    assert home.one(gone) is None


async def run_some_writes(home, count):
    """Let the worker commit so many transactions, and stop it before the next one."""
    real, left = home.db.write, iter(range(count))

    async def write(work, **named):
        if next(left, None) is None:
            tasks.cancel_scope.cancel()
            await anyio.lowlevel.checkpoint()
        result = await real(work, **named)
        if note(home) == str(RULES_VERSION):
            tasks.cancel_scope.cancel()
        return result

    home.db.write = write
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(home.again.run)
    finally:
        del home.db.write


async def test_a_session_whose_events_change_meanwhile_is_read_again(home):
    turn = home.first(Kind.CHANGE)
    home.retitle(turn.id)
    real, came = home.db.write, []

    async def write(work, **named):
        if not came and "rewrite_episodes" in repr(work):
            came.append(True)
            home.sql(
                "INSERT INTO events (key, session_id, kind, name, at, source, payload, distilled)"
                " VALUES ('late', ?, ?, 'x', 1, 'live', '{}', 1)",
                (turn.session_id, EventKind.OTHER),
            )
        return await real(work, **named)

    home.db.write = write
    try:
        await home.redistils()
    finally:
        del home.db.write
    assert came
    assert home.one(turn.id).title == turn.title


@pytest.fixture(params=sorted(path.name for path in VAULTS.glob("*.vault")))
def old_vault(request, tmp_path, clock):
    shutil.copy(VAULTS / request.param, tmp_path / "old.db")
    db = Database(str(tmp_path / "old.db"), clock())
    yield db
    db.close()


async def test_an_old_vault_loses_nothing_of_what_a_person_had_a_hand_in(old_vault, clock):
    home = Home(old_vault, clock)
    texts = (
        "SELECT id, uid, kind, title, body, pinned_at, (SELECT x.newer_id FROM supersessions x"
        " WHERE x.older_id = s.id AND x.undone_at IS NULL) FROM summaries s"
        " WHERE tier <> 'captured' OR pinned_at IS NOT NULL OR session_id IS NULL"
    )
    tables = ("SELECT * FROM judgments", "SELECT * FROM uses", "SELECT * FROM injections")
    before = home.sql(texts)
    assert before
    home.sql(
        "INSERT OR IGNORE INTO uses (summary_id, count, last_at) SELECT id, 1, 1 FROM summaries"
    )
    others, ids = [home.sql(one) for one in tables], home.ids()
    await run_until_done(home)
    assert set(ids) <= set(home.ids())
    assert set(before) <= set(home.sql(texts))
    assert others == [home.sql(one) for one in tables]

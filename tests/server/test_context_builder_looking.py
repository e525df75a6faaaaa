"""What would be shown: a real vault, a real index, a real recaller; only the distiller is played."""

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.config import InjectConfig
from memd.models import EventKind, Kind, NewEvent, SessionRef
from memd.server import context_builder
from memd.server.context_builder import Known, Looker
from memd.server.injection_types import Opening
from memd.store import events, links, projects, summaries, usage
from memd.store.usage import NewInjection
from tests.indexed_vault import DAY, NOW, IndexedVault

HOUR = 3_600_000


class Played:
    """The distiller: settles at once, or never."""

    def __init__(self):
        self.settled, self.stuck = [], False

    async def settle(self, through):
        self.settled.append(through)
        if self.stuck:
            await anyio.sleep_forever()


class Desk:
    """A library with somebody who looks into it."""

    def __init__(self, db):
        self.db = db
        self.library = IndexedVault(db)
        self.distiller = Played()
        self.now = NOW
        self.put = self.library.put
        self.db.write_now(lambda tx: projects.ensure_project(tx, "/a", "a", "", 1))

    async def look(
        self,
        moment="startup",
        prompt="",
        *,
        session="new",
        event=None,
        known=None,
        explain=False,
        off=None,
        **config,
    ):
        if not self.library.index.loaded:
            await self.library.indexer.load()
        await self.library.indexer.settle()
        looker = Looker(
            self.db,
            self.library.recaller,
            self.distiller,
            InjectConfig(**config, **({off: False} if off else {})),
            lambda: self.now,
        )
        asked = Opening("test", session, moment, "E", prompt, "/a")
        return await looker.look(asked, event, known or Known({}), explain=explain)

    async def ids(self, *arguments, **named):
        return [one.id for one in (await self.look(*arguments, **named)).shown]

    async def why(self, number, *arguments, **named):
        found = await self.look(*arguments, explain=True, **named)
        return next(one.why for one in found.verdicts if one.id == number)

    def happens(self, kind, at, session="s1", **payload):
        def write(tx):
            ref = SessionRef("test", session, "/a")
            number = projects.ensure_session(tx, ref, 1, at)
            projects.extend_session(tx, number, at, payload.get("prompt"))
            event = NewEvent(
                ref, f"{session}/{kind}/{at}", EventKind(kind), kind, at, "live", payload
            )
            return events.append_event(tx, event, number)[0]

        return self.db.write_now(write)

    def shown(self, number, at, session=1):
        self.db.write_now(
            lambda tx: usage.record_injections(
                tx, [NewInjection(session, number, "startup", at, "r")]
            )
        )


@pytest.fixture
def desk(db):
    return Desk(db)


async def test_of_an_empty_project_nothing_is_said(desk):
    looked = await desk.look()
    assert (looked.text, looked.shown) == (None, ())
    assert looked.reason.startswith("nothing is known that a session begins with")
    assert (await desk.look("prompt", "where do the sessions live")).text is None


async def test_an_index_has_every_group(desk):
    rule = desk.put("Always run the tests", kind=Kind.INSTRUCTION)
    choice = desk.put("We chose Redis", kind=Kind.DECISION)
    failed = desk.put("ValueError in auth", kind=Kind.FAILURE)
    everywhere = desk.put("Likes tabs", kind=Kind.PREFERENCE, project="global")
    noted = desk.put("A note")
    desk.happens("prompt", NOW - HOUR, session="before", prompt="Move the sessions")
    last = desk.put("Moved them", kind=Kind.CHANGE, session="before", days_ago=0.01)
    desk.put("Not ours", kind=Kind.DECISION, project="/b")
    looked = await desk.look()
    assert {one.group: one.id for one in looked.shown} == {
        "Preferences, instructions, pinned": rule,
        "Decisions": choice,
        "Failures without a known fix": failed,
        "Last session": last,
    }
    assert everywhere in {one.id for one in looked.shown}
    assert noted not in {one.id for one in looked.shown}
    assert "“Move the sessions”, ended with:" in looked.text


async def test_what_is_over_or_out_of_date_is_not_shown(desk):
    old, new = desk.put("SQLite", kind=Kind.DECISION), desk.put("Redis", kind=Kind.DECISION)
    desk.put("Freeze until Friday", kind=Kind.INSTRUCTION, expires_at=NOW)
    desk.put("An old failure", kind=Kind.FAILURE, days_ago=31)
    desk.db.write_now(
        lambda tx: links.supersede(
            tx, newer_id=new, older_id=old, rule="r", cosine=None, guard="", at=1
        )
    )
    assert await desk.ids() == [new]


async def test_a_pinned_note_is_shown_first(desk):
    desk.put("Always run the tests", kind=Kind.INSTRUCTION)
    noted = desk.put("The staging host is called kettle", days_ago=900)
    desk.db.write_now(lambda tx: summaries.pin_summary(tx, noted, NOW))
    assert (await desk.ids())[0] == noted


async def test_nothing_is_shown_twice(desk):
    one, two = (desk.put(f"We chose {n}", kind=Kind.DECISION) for n in ("Redis", "SQLite"))
    desk.happens("session_start", NOW - HOUR)
    desk.shown(one, NOW - HOUR)
    assert await desk.ids(session="s1") == [two]
    assert await desk.ids(session="s1", known=Known({two: NOW - 1})) == []
    assert await desk.why(one, session="s1") == "shown to this session already"
    assert set(await desk.ids(session="another")) == {one, two}
    looked = await desk.look("prompt", "did we chose Redis, SQLite", session="s1")
    assert [hit.id for hit in looked.shown] == [two]


async def test_what_the_session_did_itself_is_before_the_agent(desk):
    desk.happens("prompt", NOW - HOUR, prompt="x")
    own = desk.put(
        "We chose Redis for sessions", kind=Kind.DECISION, session="s1", days_ago=0.01
    )
    assert await desk.ids("prompt", "redis sessions", session="s1") == []
    assert (
        await desk.why(own, "prompt", "redis sessions", session="s1")
        == "from this very session"
    )
    assert await desk.ids("prompt", "redis sessions", session="another") == [own]


async def test_a_resumed_session_is_told_only_what_is_new(desk):
    desk.put("We chose Redis", kind=Kind.DECISION)
    desk.happens("stop", NOW - DAY)
    start = desk.happens("session_start", NOW, source="resume")
    assert await desk.ids("resume", session="s1", event=start) == []
    new = desk.put("We chose SQLite", kind=Kind.DECISION)
    desk.db.write_now(
        lambda tx: tx.execute(
            "UPDATE summaries SET created_at = ? WHERE id = ?", (NOW - 1, new)
        )
    )
    assert await desk.ids("resume", session="s1", event=start) == [new]
    assert "not new since" in await desk.why(1, "resume", session="s1", event=start)
    desk.shown(new, NOW - 1)
    assert await desk.ids("resume", session="s1", event=start) == []


async def test_a_compacted_session_is_told_first_what_it_lost(desk):
    desk.happens("prompt", NOW - DAY, prompt="x")
    own = desk.put("We chose Redis", kind=Kind.DECISION, session="s1", days_ago=0.5)
    desk.put("An own note", session="s1", days_ago=0.5)
    hit = desk.put("The kettle is cold")
    rule = desk.put("Always run the tests", kind=Kind.INSTRUCTION)
    desk.shown(hit, NOW - HOUR)
    start = desk.happens("session_start", NOW, source="compact")
    looked = await desk.look("compact", session="s1", event=start)
    assert [(one.id, one.group.partition(",")[0]) for one in looked.shown] == [
        (own, "From this session"),
        (hit, "Recalled in this session"),
        (rule, "Preferences"),
    ]
    assert desk.distiller.settled == [start]
    # From here on the same holds again: nothing twice.
    desk.now += 10
    for one in looked.shown:
        desk.shown(one.id, desk.now)
    desk.now += 10
    assert await desk.ids("prompt", "is the kettle cold", session="s1") == []
    assert await desk.ids("resume", session="s1") == []


async def test_a_compaction_that_a_wrong_clock_dated_ahead_lets_nothing_be_shown_twice(desk):
    hit = desk.put("The kettle is cold")
    desk.happens("session_start", NOW + 4_000 * DAY, source="compact")
    assert await desk.ids("prompt", "is the kettle cold", session="s1") == [hit]
    desk.shown(hit, NOW)
    desk.now += 10
    assert await desk.ids("prompt", "is the kettle cold", session="s1") == []


async def test_a_compaction_does_not_wait_long_for_the_distiller(desk):
    choice = desk.put("We chose Redis", kind=Kind.DECISION)
    start = desk.happens("session_start", NOW, source="compact")
    desk.distiller.stuck = True
    with anyio.fail_after(60):
        assert await desk.ids("compact", session="s1", event=start) == [choice]


async def test_what_a_cleared_session_had_seen_may_be_shown_again(desk):
    choice = desk.put("We chose Redis", kind=Kind.DECISION)
    desk.happens("session_start", NOW - DAY)
    desk.shown(choice, NOW - HOUR)
    assert await desk.ids(session="s1") == []
    assert await desk.ids("clear", session="s1") == [choice]


async def test_a_prompt_brings_what_fits_it(desk):
    fits = desk.put("Sessions live in Redis", "Three hosts share them.\n\nThe kettle is cold.")
    for number in range(5):
        desk.put(f"kettle {number}", "and nothing else")
    looked = await desk.look("prompt", "where do the sessions live in redis")
    assert [one.id for one in looked.shown] == [fits]
    assert "  Three hosts share them. The kettle is cold." in looked.text
    assert (await desk.look("prompt", "tidy up the zebra crossing")).text is None
    assert await desk.ids("prompt", "where do the sessions live in redis", floor=1.0) == [fits]
    high = await desk.look("prompt", "sessions redis zebra giraffe lion tiger", floor=0.9)
    assert (high.text, "below the floor" in high.reason) == (None, True)


async def test_what_is_private_is_not_looked_for(desk):
    desk.put("Sessions live in Redis")
    looked = await desk.look("prompt", "<private>sessions live in redis</private>")
    assert looked.reason == "nothing of it is to be seen"


async def test_a_repeated_prompt_is_not_looked_up_again(desk):
    desk.put("Sessions live in Redis")
    desk.happens("prompt", NOW - HOUR, prompt="Where do sessions live in Redis?")
    own = desk.happens("prompt", NOW, prompt="where do sessions live in redis")
    asked = ("prompt", "where do sessions live in redis")
    assert (await desk.look(*asked, session="s1", event=own)).reason.startswith(
        "the same was asked"
    )
    assert await desk.ids(*asked, session="another")


async def test_a_topic_key_is_enough(desk):
    number = desk.put("make all", topic_key="build.command")
    assert await desk.ids("prompt", "run build.command in the shed") == [number]


async def test_what_a_hit_replaces_is_told(desk):
    old, new = desk.put("Sessions live in SQLite"), desk.put("Sessions live in Redis")
    desk.db.write_now(
        lambda tx: links.supersede(
            tx, newer_id=new, older_id=old, rule="r", cosine=None, guard="", at=1
        )
    )
    looked = await desk.look("prompt", "sessions live redis")
    assert f"Sessions live in Redis (replaces #{old})" in looked.text


async def test_to_be_shown_unasked_is_not_to_be_used(desk):
    number = desk.put("Sessions live in Redis", kind=Kind.DECISION)
    assert await desk.ids() == [number]
    assert await desk.ids("prompt", "sessions redis") == [number]
    await desk.library.recaller.flush()
    assert desk.db.read_now(lambda tx: usage.uses_of(tx, [number])) == {}


@pytest.mark.parametrize(
    ("moment", "prompt", "setting"),
    [
        ("startup", "", "session_start"),
        ("prompt", "redis sessions", "prompt"),
    ],
)
async def test_what_is_configured_away_is_not_shown(desk, moment, prompt, setting):
    desk.put("Sessions live in Redis", kind=Kind.DECISION)
    looked = await desk.look(moment, prompt, off=setting)
    assert looked.text is None
    assert "config.toml" in looked.reason


@pytest.mark.parametrize(("scope", "target"), [("project", "/a"), ("session", "s1")])
async def test_what_is_switched_off_is_not_shown(desk, scope, target):
    desk.put("Sessions live in Redis", kind=Kind.DECISION)
    desk.db.write_now(lambda tx: projects.put_switch(tx, scope, target, True, False, NOW))
    for asked in (("startup", ""), ("prompt", "redis sessions")):
        looked = await desk.look(*asked, session="s1")
        assert looked.text is None
        assert "switched to capture only" in looked.reason


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.text(min_size=1, max_size=300), min_size=1, max_size=25),
    st.integers(100, 2_500),
)
async def test_whatever_is_known_the_budget_holds(desk, titles, tokens):
    desk.db.write_now(lambda tx: tx.execute("DELETE FROM summaries"))
    for number, title in enumerate(titles):
        desk.put(title, kind=list(Kind)[number % len(Kind)], days_ago=number / 10)
    looked = await desk.look(tokens=tokens)
    assert context_builder.length(looked.text or "") <= min(
        tokens * 4, context_builder.CHARACTERS_MAX
    )
    assert (looked.text is None) == (not looked.shown)


async def test_behind_many_that_were_shown_already_there_may_be_another(desk):
    numbers = [desk.put("Sessions live in Redis", f"host {n}") for n in range(12)]
    desk.happens("prompt", NOW - HOUR)
    first = await desk.ids("prompt", "sessions live redis", session="s1", ratio=0.2)
    for number in first:
        desk.shown(number, NOW - HOUR)
    second = await desk.ids("prompt", "sessions redis", session="s1", ratio=0.2)
    for number in second:
        desk.shown(number, NOW - HOUR)
    third = await desk.ids("prompt", "redis sessions live", session="s1", ratio=0.2)
    assert len({*first, *second, *third}) == 9
    assert {*first, *second, *third} <= set(numbers)


async def test_a_huge_prompt_is_read_at_its_ends_and_never_where_it_is_private(desk):
    number = desk.put("Sessions live in Redis")
    paste = "2026-11-20 12:00:00 worker heartbeat\n" * 200_000
    asked = f"Where do sessions live in Redis?\n{paste}\nThanks."
    with anyio.fail_after(60):
        assert await desk.ids("prompt", asked) == [number]
        hidden = f"<private>Where do sessions live in Redis?\n{paste}</private>"
        assert await desk.ids("prompt", hidden) == []

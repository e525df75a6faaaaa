import pytest

from memd.errors import BadRequest, UnknownId
from memd.models import Draft, EdgeType, Kind, SessionRef
from memd.recall.period import GAP_MS, read_timeline
from memd.store import links, projects, summaries
from memd.store.filter import Filter
from tests.factories import supersede

NOW = 10**12


class Past:
    """What happened, and a way to ask for it."""

    def __init__(self, db):
        self.db = db
        self.here = self._project("/a")
        self.there = self._project("/b")

    def _project(self, key):
        return self.db.write_now(lambda tx: projects.ensure_project(tx, key, key, "", 1))

    def session(self, key, project_id=None):
        def make(tx):
            found = projects.ensure_session(tx, SessionRef("c", key), project_id or self.here, 5)
            projects.extend_session(tx, found, 5, f"title of {key}")
            return found

        return self.db.write_now(make)

    def put(self, at, project_id=None, session_id=None, kind=Kind.NOTE):
        owner = summaries.SummaryOwner(project_id or self.here, session_id, "c")
        draft = Draft("slot", kind, f"at {at}", "", at, "rule", ())
        uid = f"{at}-{project_id}-{session_id}-{kind}"
        return self.db.write_now(lambda tx: summaries.put_summary(tx, uid, draft, owner, 1))[0]

    async def ask(self, around=None, at=None, session_id=None, wanted=None, **more):
        wanted = wanted or Filter(
            project_ids=(self.here,), session_id=session_id, include_superseded=True
        )
        return await read_timeline(self.db, around=around, at=at, wanted=wanted, now=NOW, **more)


@pytest.fixture
def past(db):
    return Past(db)


def ids(found):
    return [row.summary.id for row in found.rows]


async def test_around_a_memory_are_its_neighbours_by_event_time(past):
    third, first, second, fourth = (past.put(at) for at in (300, 100, 200, 400))
    found = await past.ask(around=second, before=1, after=1)
    assert ids(found) == [first, second, third]
    assert [row.is_pivot for row in found.rows] == [False, True, False]
    assert (found.pivot_at, found.more_before, found.more_after) == (200, False, True)
    assert ids(await past.ask(around=fourth, before=0, after=0)) == [fourth]


async def test_what_happened_at_the_same_moment_is_ordered_by_id(past):
    one, two, three = past.put(100), past.put(100, kind=Kind.FACT), past.put(100, kind=Kind.FIX)
    assert ids(await past.ask(around=two)) == [one, two, three]


async def test_a_superseded_memory_stays_in_the_past_and_names_its_successor(past):
    old, new = past.put(100), past.put(200)
    supersede(past.db, new, old)
    found = await past.ask(around=new)
    assert [row.summary.superseded_by for row in found.rows] == [new, None]


async def test_around_a_moment_nothing_is_the_pivot(past):
    before, after = past.put(100), past.put(300)
    found = await past.ask(at=200)
    assert (ids(found), found.pivot_at) == ([before, after], 200)
    assert not any(row.is_pivot for row in found.rows)


async def test_without_a_place_the_latest_are_shown(past):
    numbers = [past.put(at) for at in range(1, 6)]
    found = await past.ask(before=1, after=1)
    assert ids(found) == numbers[-3:]
    assert (found.more_before, found.more_after, found.pivot_at) == (True, False, NOW)


async def test_a_session_is_shown_from_its_start(past):
    session = past.session("s")
    numbers = [past.put(at, session_id=session) for at in (30, 10, 20, 40)]
    past.put(15)
    found = await past.ask(session_id=session, before=1, after=1)
    assert ids(found) == [numbers[1], numbers[2], numbers[0]]
    assert (found.more_before, found.more_after) == (False, True)
    assert {row.session_title for row in found.rows} == {"title of s"}


async def test_around_a_memory_within_a_session_only_the_session_is_seen(past):
    session = past.session("s")
    inside, outside, pivot = (
        past.put(1, session_id=session),
        past.put(2),
        past.put(3, session_id=session),
    )
    assert ids(await past.ask(around=pivot, session_id=session)) == [inside, pivot]
    with pytest.raises(UnknownId, match="does not belong to this session"):
        await past.ask(around=outside, session_id=session)


async def test_a_pause_of_an_hour_is_shown_and_a_shorter_one_is_not(past):
    past.put(0)
    past.put(GAP_MS - 1)
    past.put(2 * GAP_MS - 1)
    assert [row.gap_ms for row in (await past.ask()).rows] == [None, None, GAP_MS]


async def test_other_projects_and_kinds_are_left_out_but_the_pivot_is_shown(past):
    past.put(50, project_id=past.there)
    fact, pivot = past.put(100, kind=Kind.FACT), past.put(200)
    past.put(300)
    wanted = Filter(project_ids=(past.here,), kinds=(Kind.FACT,))
    assert ids(await past.ask(around=pivot, wanted=wanted)) == [fact, pivot]


async def test_every_project_can_be_asked_for(past):
    there, here = past.put(50, project_id=past.there), past.put(100)
    assert ids(await past.ask(around=there, wanted=Filter())) == [there, here]


@pytest.mark.parametrize("number", [999, 0, -1, 10**30])
async def test_an_unknown_id_is_said_to_be_unknown(past, number):
    with pytest.raises(UnknownId, match="no memory"):
        await past.ask(around=number)
    with pytest.raises(UnknownId, match="no such session"):
        await past.ask(session_id=number)


async def test_a_memory_of_another_project_is_refused_with_the_reason(past):
    other = past.put(50, project_id=past.there)
    with pytest.raises(UnknownId, match="belongs to another project"):
        await past.ask(around=other)
    with pytest.raises(UnknownId, match="belongs to another project"):
        await past.ask(session_id=past.session("t", past.there))


@pytest.mark.parametrize(
    "asked", [{"around": 1, "at": 1}, {"before": -1}, {"after": 201}, {"at": 10**30}]
)
async def test_a_question_that_makes_no_sense_is_refused(past, asked):
    past.put(1)
    with pytest.raises(BadRequest):
        await past.ask(**asked)


async def test_an_empty_vault_has_an_empty_past(past):
    found = await past.ask()
    assert (found.rows, found.more_before, found.more_after) == ((), False, False)


async def test_a_contradicted_memory_names_the_memories_that_contradict_it(past):
    old, new = past.put(100), past.put(200)
    elsewhere = past.put(300, project_id=past.there)
    for number in (new, elsewhere):
        edge = links.NewEdge(
            "summary", str(number), EdgeType.CONTRADICTS, "summary", str(old), "r", 1
        )
        past.db.write_now(lambda tx, edge=edge: links.add_edges(tx, [edge]))
    found = await past.ask(around=new)
    assert [row.contradicted_by for row in found.rows] == [(new,), (old,)]


async def test_the_first_row_of_another_session_is_marked(past):
    one, two = past.session("one"), past.session("two")
    for at, session in ((1, one), (2, one), (3, two), (4, None), (5, one)):
        past.put(at, session_id=session)
    rows = (await past.ask()).rows
    assert [row.begins_session for row in rows] == [True, False, True, False, True]


async def test_a_stretch_of_days_shows_all_that_happened_in_it(past):
    session = past.session("s")
    past.put(99)
    inside = [past.put(100), past.put(150, session_id=session), past.put(200)]
    past.put(201)
    found = await past.ask(between=(100, 200))
    assert (ids(found), found.is_span, found.more_before) == (inside, True, False)
    assert ids(await past.ask(between=(100, 200), session_id=session)) == inside[1:2]
    assert (await past.ask(between=(500, 600))).rows == ()


async def test_of_a_long_stretch_the_latest_are_shown(past):
    numbers = [past.put(at) for at in range(1, 204)]
    found = await past.ask(between=(1, 203))
    assert ids(found) == numbers[3:]
    assert found.more_before
    with pytest.raises(BadRequest, match="days or a place"):
        await past.ask(between=(1, 2), around=numbers[0])


async def test_what_a_wrong_clock_dated_ahead_is_not_the_latest_and_still_there(past):
    now, ahead = past.put(NOW), past.put(NOW + 4_000 * 86_400_000)
    found = await past.ask()
    assert (ids(found), found.more_after) == ([now], True)
    assert ids(await past.ask(at=NOW + 10**10)) == [now, ahead]

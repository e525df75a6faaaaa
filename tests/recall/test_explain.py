import pytest

from memd.models import Kind
from memd.recall import apply_parts
from memd.recall.search import NEAR_MISSES_MAX
from tests.factories import supersede
from tests.indexed_vault import DAY, NOW, IndexedVault


@pytest.fixture
def library(db):
    return IndexedVault(db)


def verdicts(answer):
    return {one.summary_id: one.verdict for one in answer.trace}


async def test_a_hidden_match_is_listed_with_the_reason(library, db):
    old = library.put("kettle one", days_ago=9)
    new = library.put("kettle two", days_ago=8)
    late = library.put("kettle three", expires_at=NOW - 1)
    note = library.put("kettle four", days_ago=30, kind=Kind.FIX)
    library.put("a teapot", kind=Kind.FIX)
    supersede(db, new, old)
    answer = await library.ask("kettle", kinds=(Kind.NOTE,), since=NOW - 10 * DAY, explain=True)
    assert verdicts(answer) == {
        new: "hit", old: f"superseded by #{new}", late: "expired", note: "filtered: kind, since",
    }  # fmt: skip
    assert [t.score for t in answer.trace] == [apply_parts(t.parts) for t in answer.trace]
    assert answer.trace[-1].terms == ("kettl",)


async def test_near_misses_are_never_later_or_of_another_project(library):
    seen = library.put("kettle", days_ago=9)
    library.put("kettle later", days_ago=1, kind=Kind.FIX)
    other = library.put("kettle elsewhere", days_ago=9, kind=Kind.FIX, project="/b")
    where = {"as_of": NOW - 5 * DAY, "project_ids": (1,), "kinds": (Kind.NOTE,)}
    assert verdicts(await library.ask("kettle", explain=True, **where)) == {seen: "hit"}
    where["project_ids"] = None
    answer = await library.ask("kettle", explain=True, **where)
    assert verdicts(answer) == {seen: "hit", other: "filtered: kind"}


async def test_without_explain_there_is_no_trace(library):
    library.put("kettle", kind=Kind.FIX)
    assert (await library.ask("kettle", kinds=(Kind.NOTE,))).trace == ()


async def test_at_most_twenty_near_misses_are_listed_the_best_first(library):
    ids = [library.put(f"kettle {'x ' * n}", kind=Kind.FIX) for n in range(NEAR_MISSES_MAX + 3)]
    answer = await library.ask("kettle", kinds=(Kind.NOTE,), explain=True)
    assert [one.summary_id for one in answer.trace] == ids[:NEAR_MISSES_MAX]

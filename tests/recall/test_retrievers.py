import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.index.memory_index import MemoryIndex
from memd.models import Kind
from memd.recall import retrievers
from memd.recall.retrievers import ContextRows, VisibleRows, best_rows, contains_rows
from memd.store import StoredPassage
from tests.indexed_vault import DAY, NOW, IndexedVault


@pytest.fixture
def library(db):
    return IndexedVault(db)


async def test_an_identifier_is_found_by_its_parts(library):
    wanted = library.put("Fixed", "`decodeToken` unpacked three names")
    library.put("Other", "nothing of the kind")
    assert (await library.ids("decode token"))[0] == wanted


async def test_filters_apply_before_the_pool_is_cut(db):
    library = IndexedVault(db, pool=1)
    for i in range(80):
        library.put(f"Rate limit number {i}", "rate limit", project="/b")
    wanted = library.put("A word on the rate", "limit", project="/a", kind=Kind.DECISION)
    project = db.read_now(lambda tx: tx.execute("SELECT id FROM projects WHERE key = '/a'").get)
    assert await library.ids("rate limit", project_ids=(project,)) == [wanted]
    assert await library.ids("rate limit", kinds=(Kind.DECISION,)) == [wanted]


async def test_each_filter_keeps_what_it_says(library):
    old = library.put("tea kettle one", days_ago=10, tags=("x",), session="s1", source="user")
    new = library.put("tea kettle two", days_ago=1, tags=("x", "y"), session="s2")
    assert await library.ids("kettle", since=NOW - 5 * DAY) == [new]
    assert await library.ids("kettle", until=NOW - 5 * DAY) == [old]
    assert await library.ids("kettle", as_of=NOW - 5 * DAY) == [old]
    assert await library.ids("kettle", tags=("x", "y")) == [new]
    assert await library.ids("kettle", source="user") == [old]
    assert await library.ids("kettle", source="nobody") == []
    assert await library.ids("kettle", session_id=2) == [new]
    assert await library.ids("kettle", project_ids=()) == []


async def test_a_topic_key_is_found_exactly_and_leads(library):
    library.put("build command", "make build command")
    wanted = library.put("Use make", topic_key="build.command")
    answer = await library.ask("", topic_key="build.command")
    assert [hit.summary.id for hit in answer.hits] == [wanted]
    assert answer.hits[0].channels == ("topic",)
    assert await library.ids("", topic_key="nothing") == []


async def test_phrases_must_stand_as_they_are_and_prefixes_may_go_on(library):
    wanted = library.put("One", "the model router picks")
    library.put("Two", "the router of the model")
    configured = library.put("Three", "configuration of things")
    assert await library.ids('"model router"', legs=frozenset({"lexical"})) == [wanted]
    assert await library.ids("confi*", legs=frozenset({"lexical"})) == [configured]


def test_membership_in_many_ascending_rows():
    rows = np.array([5, 0, 9, 3])
    assert contains_rows(np.array([0, 3, 4, 8]), rows).tolist() == [False, True, False, True]
    assert contains_rows(np.array([], np.int64), rows).tolist() == [False] * 4


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.booleans()), max_size=60),
    st.integers(1, 6),
    st.booleans(),
)
def test_the_best_are_those_of_sorting_everything_that_is_wanted(rows, pool, is_few):
    index = MemoryIndex()
    passages = [StoredPassage(i + 1, i // 2 + 1, i % 2, 0, b"") for i in range(len(rows))]
    index.columns.append(passages)
    index.columns.at[:] = [at for _, at, _ in rows]
    scores = np.array([score for score, *_ in rows], np.float32)
    wanted = np.array([seen for *_, seen in rows], np.bool_)
    share = np.count_nonzero(wanted) / max(len(rows), 1)
    few = np.flatnonzero(wanted) if is_few or not share else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retrievers, "_COLUMNS_MIN", 4)
        patch.setattr(retrievers, "_COLUMNS_ROOT", 1)
        context_rows = ContextRows(index, wanted)
        found = best_rows(
            index, scores, VisibleRows(wanted, share, few, context_rows, {}), pool
        ).tolist()
    every = [i for i in range(len(rows)) if wanted[i] and scores[i] > 0]
    every.sort(key=lambda i: (-scores[i], -rows[i][1], -(i // 2)))
    firsts = [i for n, i in enumerate(every) if i // 2 not in {j // 2 for j in every[:n]}]
    assert found == firsts[:pool]


async def test_what_held_until_a_time_is_seen_as_of_then_and_not_as_of_later(library):
    number = library.put("kettle code 4711", days_ago=9, expires_at=NOW - DAY)
    assert await library.ids("kettle", as_of=NOW - 5 * DAY) == [number]
    assert await library.ids("kettle") == await library.ids("kettle", as_of=NOW) == []
    later = library.put("teapot code 4712", expires_at=NOW + DAY)
    assert await library.ids("teapot") == [later]
    assert await library.ids("teapot", as_of=NOW + 2 * DAY) == []

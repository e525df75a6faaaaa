import threading

import anyio
import anyio.lowlevel
import pytest

from memd.errors import BadRequest, ConfigError, VaultError
from memd.recall import recaller
from memd.recall.recaller import USE_ENTRIES_MAX, UseCounter
from memd.store import SummaryUse, database, summaries, usage
from tests.indexed_vault import NOW, IndexedVault


@pytest.fixture
def library(db):
    return IndexedVault(db)


async def test_the_memory_with_the_words_comes_first_and_names_its_retrievers(library):
    library.put("Sessions live in Redis", "Three machines share them.")
    wanted = library.put("Login answers 401 for garbage tokens", "decode_token raised ValueError.")
    (hit, *_) = (await library.ask("garbage token login")).hits
    assert hit.summary.id == wanted
    assert hit.lexical_rank == 1
    assert hit.channels == ("lexical", "vector")
    assert 0 < hit.cosine <= 1


async def test_nothing_that_fits_is_an_empty_answer(library):
    library.put("Sessions live in Redis")
    answer = await library.ask("zygomorphic quince")
    assert answer.hits == ()


async def test_an_empty_vault_answers_with_nothing(library):
    assert (await library.ask("anything")).hits == ()


@pytest.mark.parametrize("nothing", ["", "  ", "?!", "\x00"])
async def test_a_question_without_a_word_is_refused_with_advice(library, nothing):
    with pytest.raises(BadRequest, match="no word to search for"):
        await library.ask(nothing)


@pytest.fixture
def threads(library, monkeypatch):
    """The threads in which answers were made, in order."""
    seen = []

    def answer(*args):
        seen.append(threading.get_ident())
        return made(*args)

    made = recaller.search.search_index
    monkeypatch.setattr(recaller.search, "search_index", answer)
    library.put("Sessions live in Redis")
    return seen


async def test_once_answers_are_quick_they_are_made_without_a_change_of_thread(library, threads):
    while not threads or threads[-1] != threading.get_ident():
        assert (await library.ask("redis sessions")).hits
    assert threads[0] != threading.get_ident()
    library.recaller._latency_s = 2 * recaller.INLINE_LATENCY_MAX_S
    assert (await library.ask("redis sessions")).hits
    assert threads[-1] != threading.get_ident()


async def test_the_first_answer_after_a_change_which_works_out_much_is_left_to_another_thread(
    library, threads
):
    await library.ask("redis sessions")
    library.put("Redis is gone")
    threads.clear()
    for _ in range(2):
        library.recaller._latency_s = 0.0
        await library.ask("redis sessions")
    assert [thread == threading.get_ident() for thread in threads] == [False, True]


async def test_a_concurrent_search_is_answered_in_another_thread(library, threads):
    await library.ask("redis sessions")
    threads.clear()
    library.recaller._latency_s = 0.0
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(library.recaller.search, library.asked("redis sessions"))
    assert sorted(thread == threading.get_ident() for thread in threads) == [False, False, True]


async def test_what_takes_long_or_would_have_to_wait_is_left_to_another_thread(library, threads):
    await library.ask("redis sessions")
    threads.clear()
    library.recaller._latency_s = 0.0
    await library.recaller.search(library.asked("redis sessions", explain=True))
    readers = [library.db._readers.get_nowait() for _ in range(database.READERS)]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(library.recaller.search, library.asked("redis sessions"))
        while not library.db._read_limit.borrowed_tokens:
            await anyio.lowlevel.checkpoint()
        for reader in readers:
            library.db._readers.put(reader)
    assert threading.get_ident() not in threads
    assert len(threads) == 2


async def test_a_retriever_can_be_asked_alone(library):
    library.put("Sessions live in Redis")
    lexical = await library.ask("redis sessions", legs=frozenset({"lexical"}))
    vector = await library.ask("redis sessions", legs=frozenset({"vector"}))
    assert lexical.hits[0].channels == ("lexical",)
    assert vector.hits[0].channels == ("vector",)
    with pytest.raises(BadRequest, match="legs"):
        await library.ask("redis", legs=frozenset({"telepathy"}))


async def test_a_ready_embedding_is_taken_if_it_is_one_of_the_space(library):
    wanted = library.put("Sessions live in Redis")
    vector = await library.recaller._embedder.query("Sessions live in Redis")
    assert await library.ids("", embedding=tuple(float(x) for x in vector)) == [wanted]
    with pytest.raises(BadRequest, match="768"):
        await library.ask("", embedding=(1.0, 2.0))


async def test_a_profile_of_ones_own_is_used_and_a_bad_one_refused_at_the_start(db):
    library = IndexedVault(db, {"mine": {"base": "siftcoder", "steps": []}})
    library.put("kettle")
    assert (await library.ask("kettle", profile="mine")).hits[0].score == pytest.approx(2 / 61)
    with pytest.raises(BadRequest, match="nosuch"):
        await library.ask("kettle", profile="nosuch")
    with pytest.raises(ConfigError, match="circle"):
        IndexedVault(db, {"mine": {"base": "mine"}})
    with pytest.raises(ConfigError, match=r"recall\.profile: there is no profile 'nosuch'"):
        IndexedVault(db, profile="nosuch")


def counted(db, *ids):
    return db.read_now(lambda tx: (usage.uses_of(tx, ids), usage.coactivations_of(tx, ids)))


async def test_what_an_answer_returns_is_counted_and_written_behind_its_back(library, db):
    one, two = library.put("kettle teal"), library.put("kettle")
    await library.ask("kettle")
    assert counted(db, one, two) == ({}, {})
    assert library.recaller.status()["uses_pending"] == 2
    await library.recaller.flush()
    assert counted(db, one, two) == (
        {one: SummaryUse(1, NOW), two: SummaryUse(1, NOW)},
        {(one, two): 1},
    )
    await library.recaller.flush()
    await library.ask("teal", k=1)
    await library.recaller.flush()
    assert counted(db, one)[0] == {one: SummaryUse(2, NOW)}


@pytest.mark.parametrize("more", [{"explain": True}, {"as_of": NOW}, {"count_use": False}])
async def test_looking_into_it_and_measuring_it_is_no_use(library, db, more):
    one = library.put("kettle")
    assert (await library.ask("kettle", **more)).hits
    await library.recaller.flush()
    assert counted(db, one) == ({}, {})


async def test_uses_are_written_after_a_while_at_once_if_many_and_at_a_clean_stop(
    library, db, monkeypatch
):
    one = library.put("kettle")

    async def written(count):
        with anyio.fail_after(60):
            while counted_now(await db.read(lambda tx: usage.uses_of(tx, [one]))) < count:  # noqa: ASYNC110  # the vault rings no bell
                await anyio.sleep(0.01)

    def counted_now(found):
        return found[one].count if one in found else 0

    async with anyio.create_task_group() as group:
        monkeypatch.setattr(recaller, "FLUSH_S", 0.01)
        group.start_soon(library.recaller.run)
        await library.ask("kettle")
        await written(1)
        monkeypatch.setattr(recaller, "FLUSH_S", 3600.0)
        monkeypatch.setattr(recaller, "FLUSH_HITS", 3)
        for _ in range(3):
            await library.ask("kettle")
        await written(4)
        await library.ask("kettle")
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert counted_now(await db.read(lambda tx: usage.uses_of(tx, [one]))) == 5


async def test_uses_that_cannot_be_written_are_written_the_next_time(library, db):
    one = library.put("kettle")
    await library.ask("kettle")
    await db.write(lambda tx: tx.execute("ALTER TABLE uses RENAME TO away"))
    with pytest.raises(VaultError):
        await library.recaller.flush()
    await db.write(lambda tx: tx.execute("ALTER TABLE away RENAME TO uses"))
    await library.recaller.flush()
    assert (await db.read(lambda tx: usage.uses_of(tx, [one]))) == {one: SummaryUse(1, NOW)}


async def test_a_memory_that_is_forgotten_before_its_use_is_written_makes_no_trouble(library, db):
    one = library.put("kettle")
    await library.ask("kettle")
    await db.write(lambda tx: summaries.delete_summary(tx, one))
    await library.recaller.flush()
    assert (await db.read(lambda tx: usage.uses_of(tx, [one]))) == {}


async def test_a_profile_that_says_nothing_of_k_has_five_hits(db):
    library = IndexedVault(db, {"mine": {"legs": {"lexical": 1}}, "two": {"base": "mine", "k": 2}})
    for i in range(9):
        library.put(f"kettle {i}")
    assert len(await library.ids("kettle", profile="mine")) == 5
    assert len(await library.ids("kettle", profile="two")) == 2
    assert len(await library.ids("kettle", profile="two", k=4)) == 4


def test_a_page_counts_each_of_its_hits_and_the_pairs_of_its_best_five():
    counter = UseCounter()
    counter.add([3, 1, 2], 10)
    counter.add([1], 5)
    assert counter.uses == {3: SummaryUse(1, 10), 1: SummaryUse(2, 10), 2: SummaryUse(1, 10)}
    assert counter.pairs == {(1, 3): 1, (2, 3): 1, (1, 2): 1}
    long = UseCounter()
    long.add(list(range(1, 20)), 1)
    assert len(long.pairs) == 10  # 5 · 4 / 2


def test_counts_that_could_not_be_written_are_added_to_the_newer_ones():
    unwritten, counter = UseCounter(), UseCounter()
    unwritten.add([1, 2], 10)
    counter.add([1], 30)
    counter.merge(unwritten)
    assert counter.pending == 3
    assert counter.uses == {1: SummaryUse(2, 30), 2: SummaryUse(1, 10)}
    assert counter.pairs == {(1, 2): 1}


def test_counts_that_are_never_written_do_not_grow_without_bound():
    counter = UseCounter()
    for number in range(1, USE_ENTRIES_MAX + 100):
        counter.add([number], 1)
    assert len(counter.uses) == USE_ENTRIES_MAX

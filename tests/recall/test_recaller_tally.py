from memd.recall.recaller import USE_ENTRIES_MAX, UseCounter
from memd.store.types import SummaryUse


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

from memd.recall.recaller import USE_ENTRIES_MAX, UseCounter
from memd.store.types import SummaryUse


def test_a_page_counts_each_of_its_hits_and_the_pairs_of_its_best_five():
    tally = UseCounter()
    tally.add([3, 1, 2], 10)
    tally.add([1], 5)
    counts = tally.take()
    assert counts.uses == {3: SummaryUse(1, 10), 1: SummaryUse(2, 10), 2: SummaryUse(1, 10)}
    assert counts.pairs == {(1, 3): 1, (2, 3): 1, (1, 2): 1}
    tally.add(list(range(1, 20)), 1)
    assert len(tally.take().pairs) == 10  # 5 · 4 / 2


def test_taking_begins_anew_and_what_is_given_back_counts_again():
    tally = UseCounter()
    tally.add([1, 2], 10)
    counts = tally.take()
    assert (tally.pending, tally.take().uses) == (0, {})
    tally.add([1], 30)
    tally.give_back(counts)
    assert tally.pending == 3
    again = tally.take()
    assert again.uses == {1: SummaryUse(2, 30), 2: SummaryUse(1, 10)}
    assert again.pairs == {(1, 2): 1}


def test_what_nobody_writes_down_does_not_grow_for_ever():
    tally = UseCounter()
    for number in range(1, USE_ENTRIES_MAX + 100):
        tally.add([number], 1)
    assert len(tally.take().uses) == USE_ENTRIES_MAX

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memd.index.term_dictionary import (
    TermDictionary,
    compute_signatures,
    find_candidates,
    measure_edits,
)

WORDS = st.text("abcdé", min_size=1, max_size=9)
ALPHABETS = ("abcde", "абвгд")


def count_edits(a, b):
    """Optimal string alignment, cell by cell."""
    rows = [[i + j if not i * j else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            costs = [
                rows[i - 1][j] + 1,
                rows[i][j - 1] + 1,
                rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
            ]
            if i > 1 and j > 1 and (a[i - 1], a[i - 2]) == (b[j - 2], b[j - 1]):
                costs.append(rows[i - 2][j - 2] + 1)
            rows[i][j] = min(costs)
    return rows[-1][-1]  # fmt: skip


@given(WORDS, st.lists(WORDS, max_size=20), st.integers(1, 2))
def test_edits_are_those_of_the_textbook(word, terms, limit):
    found = measure_edits(word, terms, limit).tolist()
    assert [min(n, limit + 1) for n in found] == [
        min(count_edits(word, term), limit + 1) for term in terms
    ]


@given(
    st.sampled_from(ALPHABETS).flatmap(
        lambda letters: st.lists(st.text(letters, min_size=1, max_size=9), min_size=2, max_size=20)
    ),
    st.integers(1, 2),
)
def test_no_term_that_is_near_is_left_out(written, edits):
    word, *terms = written
    written = [term.encode() for term in terms]
    starts = np.cumsum([0, *map(len, written)]).tolist()
    lengths = np.diff(starts).astype(np.uint32)
    signatures = compute_signatures(b"".join(written), starts)
    places = find_candidates(word.encode(), signatures, lengths, edits).tolist()
    assert {i for i, term in enumerate(terms) if count_edits(word, term) <= edits} <= set(places)


def test_old_and_fresh_terms_are_found_and_removed_ones_are_not():
    made = TermDictionary()
    made.load(b"bache\ncache\ncasing\nredis", b"3\n4\n5\n6")
    made.learn({"caches": 7, "coche": 8, "mache": 9})
    assert made.find_similar("cache", 1) == {4: 0, 7: 1, 8: 1}
    made.learn({"other": 4})
    assert made.find_similar("cache", 1) == {7: 1, 8: 1}
    assert TermDictionary().find_similar("cache", 2) == {}


def test_a_term_that_was_looked_for_in_vain_is_found_once_it_is_learned():
    made = TermDictionary()
    made.load(b"cache\nredis", b"4\n6")
    assert made.number("coche") is None
    made.learn({"coche": 8})
    assert made.number("coche") == 8
    made.keep([4, 8])
    assert (made.number("coche"), made.number("redis")) == (8, None)
    made.learn({"redis": 6})
    assert made.number("redis") == 6

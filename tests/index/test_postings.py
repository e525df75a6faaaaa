import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.index import postings as index_postings
from memd.index.postings import ROW_PARTS, InvertedIndex, TermStatistics
from memd.store.fulltext import POSTING

DEFAULTS = {"k1": 0.9, "b": 0.4, "title_weight": 2.0}


def blob(row):
    return np.array([(t, *n) for t, n in row.items()], POSTING).tobytes()


def length(row):
    return sum(a + b for a, b in row.values())


def append(postings, rows):
    postings.append([blob(row) for row in rows], [length(row) for row in rows])


def by_hand(rows, terms, *, k1, b, title_weight):
    """BM25 as the books have it; `rows` has None where a row was retired."""
    live = [row for row in rows if row is not None]
    average = sum(map(length, live)) / len(live) if live else 1
    found = []
    for row in rows:
        score = 0.0
        for term, weight in terms.items():
            if row is None or term not in row:
                continue
            df = sum(term in other for other in live)
            idf = math.log(1 + (len(live) - df + 0.5) / (df + 0.5))
            tf = title_weight * row[term][0] + row[term][1]
            norm = k1 * (1 - b + b * length(row) / (average or 1))
            score += weight * idf * tf * (k1 + 1) / (tf + max(norm, 1e-9))
        found.append(score)
    return found


ROWS = st.lists(
    st.dictionaries(
        st.integers(1, 9), st.tuples(st.integers(0, 3), st.integers(0, 255)).filter(any), max_size=6
    ),
    max_size=6,
)
STEPS = st.lists(
    st.one_of(ROWS, st.lists(st.integers(0, 20), max_size=4).map(tuple), st.none()), max_size=8
)


COUNTED = st.lists(
    st.dictionaries(
        st.integers(1, 5), st.tuples(st.integers(0, 2), st.integers(0, 9)).filter(any), max_size=4
    ),
    max_size=9,
)


@given(COUNTED, COUNTED, st.lists(st.integers(0, 17), max_size=7), st.sampled_from((1, 2, 10**6)))
def test_terms_of_given_rows_are_counted_and_weighed_as_by_hand_however_frequent_they_are(
    first, later, wanted, dense_min
):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("_DENSE_MIN", dense_min), ("_DENSE_SHARE", 99), ("_STEP", 4), ("_SEGMENT_MIN", 1)
        ):  # fmt: skip
            patch.setattr(index_postings, name, value)
        postings, rows, terms = InvertedIndex(), [*first, *later], [1, 2, 3, 4, 5, 6]
        for some in (first, later):
            append(postings, some)
        chosen = np.array([row for row in wanted if row < len(rows)], np.int64)
        counts = postings.count_terms(terms, chosen, 2.0)
        tfs = [[2 * (row.get(t, (0, 0)))[0] + row.get(t, (0, 0))[1] for t in terms] for row in rows]
        assert counts.T.tolist() == [tfs[row] for row in chosen]
        given_worths = {term: (0.5 + term, 0.1 * term) for term in terms}
        found = postings.add_logarithms(
            given_worths, title_weight=2.0, out=np.empty(len(rows), np.float32)
        )
        assert found.tolist() == pytest.approx(
            [
                sum(
                    w * math.log1p(tf / e)
                    for tf, (w, e) in zip(tfs[row], given_worths.values(), strict=True)
                )
                for row in range(len(rows))
            ],
            rel=1e-5,
        )


@settings(max_examples=60)
@given(
    STEPS,
    st.dictionaries(st.integers(0, 10), st.floats(0.1, 3), max_size=5),
    st.floats(0, 3),
    st.floats(0, 1),
    st.floats(0, 5),
)
def test_scores_are_those_of_plain_bm25_after_any_appends_removals_and_compactions(
    steps, terms, k1, b, title_weight
):
    postings, rows = InvertedIndex(), []
    for step in steps:
        if step is None:
            kept = np.array([row is not None for row in rows], np.bool_)
            postings.compact(np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32))
            rows = [row for row in rows if row is not None]
        elif isinstance(step, list):
            append(postings, step)
            rows += step
        else:
            gone = [number for number in step if number < len(rows)]
            postings.retire(np.array(gone, np.intp))
            rows = [None if number in gone else row for number, row in enumerate(rows)]
    found = postings.scores(terms, k1=k1, b=b, title_weight=title_weight)
    assert found.dtype == np.float32
    expected = by_hand(rows, terms, k1=k1, b=b, title_weight=title_weight)
    assert found.tolist() == pytest.approx(expected, rel=1e-4, abs=1e-6)
    for term in range(11):
        having = [n for n, row in enumerate(rows) if row is not None and term in row]
        assert postings.rows_of(term).tolist() == having
        assert postings.df(term) == len(having)
        assert [n for n in range(len(rows)) if postings.terms_in(n, [term])] == having


def test_many_small_appends_end_in_few_segments():
    postings = InvertedIndex()
    one = dict.fromkeys(range(1, 60), (0, 1))
    for _ in range(600):
        append(postings, [one])
    assert postings.n == 600
    assert len(postings._segments) <= 3
    assert postings.df(1) == 600


def test_a_title_weighs_more():
    postings = InvertedIndex()
    append(postings, [{1: (0, 1), 2: (1, 0)}, {1: (1, 0), 2: (0, 1)}, {3: (0, 2)}])
    found = postings.scores({1: 1.0}, **DEFAULTS)
    assert found[1] > found[0] > found[2] == 0


def test_cached_slices_are_looked_up_again_when_rows_change():
    postings = InvertedIndex()
    append(postings, [dict.fromkeys(range(100), (0, 1))])
    for term in range(100):
        assert postings.rows_of(term).tolist() == [0]
    append(postings, [{7: (1, 0), 99: (0, 2)}])
    assert postings.rows_of(99).tolist() == [0, 1]
    assert postings.term(7)[1].tolist() == [0, 1]
    postings.retire(np.array([0]))
    assert postings.rows_of(99).tolist() == [1]
    postings.compact(np.array([-1, 0], np.int32))
    assert postings.rows_of(99).tolist() == [0]
    assert postings.rows_of(7).tolist() == [0]


def test_rarity_is_counted_among_the_rows_that_are_seen():
    postings = InvertedIndex()
    append(postings, [{1: (0, 1)}, {1: (0, 1)}, {2: (0, 1)}, {1: (0, 1)}])
    postings.retire(np.array([3]))
    seen = np.array([True, False, True, False])
    assert (postings.df(1), postings.df(1, seen), postings.size(1)) == (2, 1, 3)
    among = TermStatistics(seen, postings.df)
    found = postings.scores({1: 1.0}, **DEFAULTS, among=among, out=np.empty(4, np.float32))
    # one of two: ln(1 + 1.5/1.5); tf and norm as for a row of average length
    assert found.tolist() == pytest.approx([math.log(2) * 1.9 / 1.9] * 2 + [0, 0])


def test_words_that_stand_nearly_everywhere_score_the_same_as_others(monkeypatch):
    rows = [{1: (n % 2, 1), 2: (0, 1 + n % 3)} for n in range(40)] + [{3: (0, 1)}] * 20
    plain, dense = InvertedIndex(), InvertedIndex()
    append(plain, rows)
    append(plain, rows[:30])
    expected = plain.scores({1: 1.0, 2: 0.5, 3: 2.0}, **DEFAULTS)
    monkeypatch.setattr(index_postings, "_DENSE_MIN", 2)
    monkeypatch.setattr(index_postings, "_DENSE_TERMS_MAX", 1)
    monkeypatch.setattr(index_postings, "_STEP", 7)
    monkeypatch.setattr(index_postings, "_SEGMENT_MIN", 1)
    append(dense, rows)
    append(dense, rows[:30])
    for _ in range(2):
        assert dense.scores({1: 1.0, 2: 0.5, 3: 2.0}, **DEFAULTS).tolist() == expected.tolist()
    heavy = dense.scores({1: 1.0}, k1=0.9, b=0.4, title_weight=0.5)
    assert heavy.tolist() == plain.scores({1: 1.0}, k1=0.9, b=0.4, title_weight=0.5).tolist()


@settings(max_examples=60)
@given(COUNTED, st.permutations([1, 2, 3, 4, 5]), st.sampled_from((1, 30, 400, 1 << 16)))
def test_words_joined_in_one_step_are_worth_to_the_last_bit_what_each_adds_alone(
    rows, terms, joined_max
):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_DENSE_MIN", 1), ("_DENSE_SHARE", 99), ("_STEP", 4)):
            patch.setattr(index_postings, name, value)
        patch.setattr(index_postings, "_JOINED_MAX", joined_max)
        postings = InvertedIndex()
        append(postings, rows)
        worths = {term: (0.3 + term / 7, 0.13 * term) for term in terms}
        found = postings.add_logarithms(
            worths, title_weight=2.0, out=np.full(len(rows), 9, np.float32)
        )
    expected = np.zeros(len(rows), np.float32)
    counts = np.arange(256, dtype=np.float32)
    for term, (weight, chance) in worths.items():
        worth = np.float32(weight) * np.log1p(counts / np.float32(chance))
        expected += worth[[2 * row.get(term, (0, 0))[0] + row.get(term, (0, 0))[1] for row in rows]]
    assert found.tolist() == expected.tolist()


def test_what_was_dropped_at_rest_is_made_again(monkeypatch):
    for name, value in (("_DENSE_MIN", 1), ("_DENSE_BYTES_AT_REST", 2 * 9)):
        monkeypatch.setattr(index_postings, name, value)
    postings = InvertedIndex()
    append(postings, [{1: (0, 1), 2: (0, 2), 3: (0, 3), 4: (1, 1)}] * 9)
    worths = dict.fromkeys((1, 2, 3, 4), (1.0, 0.5))
    first = postings.add_logarithms(worths, title_weight=2.0, out=np.empty(9, np.float32))
    assert len(postings._dense_arrays) == 4
    postings.release_memory()
    assert [term for term, _ in postings._dense_arrays] == [3, 4]
    again = postings.add_logarithms(worths, title_weight=2.0, out=np.empty(9, np.float32))
    assert again.tolist() == first.tolist()


def saved(postings):
    """What `restore` gets: read-only arrays, those of rows with room behind."""
    written = {name: part.copy() for name, part in postings.parts().items()}
    for name, part in written.items():
        if name in ROW_PARTS:
            written[name] = np.append(part, np.zeros(8, part.dtype))
        else:
            part.setflags(write=False)
    return written


@given(STEPS, STEPS)
def test_what_is_saved_and_mapped_is_as_if_it_had_never_been_saved(before, after):
    kept, rows = InvertedIndex(), 0

    def take(one, step, rows):
        if step is None:
            live = one._live[:rows].copy()
            one.compact(np.where(live, np.cumsum(live) - 1, -1).astype(np.int32))
        elif isinstance(step, list):
            append(one, step)
        else:
            one.retire(np.array([number for number in step if number < rows], np.intp))
        return one.n

    for step in before:
        rows = take(kept, step, rows)
    mapped = InvertedIndex()
    mapped.restore(kept.n, saved(kept))
    for step in after:
        take(kept, step, rows)
        rows = take(mapped, step, rows)
    assert set(mapped.terms()) == set(kept.terms())
    terms = dict.fromkeys(range(11), 1.0)
    assert mapped.scores(terms, **DEFAULTS).tolist() == kept.scores(terms, **DEFAULTS).tolist()
    for term in terms:
        assert [a.tolist() for a in mapped.term(term)] == [a.tolist() for a in kept.term(term)]

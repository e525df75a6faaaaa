import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.index.columns import Columns
from memd.index.postings import POSTING, InvertedIndex, TermStatistics
from memd.recall import retrievers
from memd.recall.retrievers import SessionTerms
from memd.store import StoredPassage

ROW = st.tuples(
    st.integers(0, 3),
    st.booleans(),
    st.dictionaries(st.integers(1, 5), st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=4),
)  # fmt: skip


def made(rows):
    """Columns and postings of (session, is seen, term → counts), and a mask of those that are seen."""
    columns, postings = Columns(), InvertedIndex()
    blobs = [np.array([(t, *n) for t, n in row.items()], POSTING).tobytes() for *_, row in rows]
    lengths = [sum(a + b for a, b in row.values()) for *_, row in rows]
    columns.append([StoredPassage(i + 1, i + 1, 0, n, b"") for i, n in enumerate(lengths)])
    columns.session_id[:] = [session for session, *_ in rows]
    postings.append(blobs, lengths)
    return columns, postings, np.array([seen for _, seen, _ in rows], np.bool_)


def by_hand(rows, terms):
    """How often each session has each term, a title twice, and how long each is, by session."""
    seen = [(session, row) for session, is_seen, row in rows if session and is_seen]
    size = max((session for session, *_ in rows), default=0) + 1
    counts = [[0.0] * size for _ in terms]
    lengths = [0.0] * size
    for session, row in seen:
        lengths[session] += sum(in_title + in_body for in_title, in_body in row.values())
        for place, term in enumerate(terms):
            in_title, in_body = row.get(term, (0, 0))
            counts[place][session] += 2 * in_title + in_body
    return counts, lengths


@given(
    st.lists(ROW, max_size=12),
    st.lists(st.integers(1, 7), max_size=5, unique=True),
    st.sampled_from((0, 1, 8)),
)
def test_each_session_is_counted_as_one_document_of_what_may_be_seen(rows, terms, per_lookup):
    columns, postings, mask = made(rows)
    sessions = SessionTerms(columns, postings, TermStatistics(mask, postings.df))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retrievers, "_POSTINGS_PER_LOOKUP", per_lookup)
        for _ in range(2):  # remembering what was counted changes nothing
            counts, lengths = sessions.count_terms(terms, 2.0, np.arange(sessions.size))
            assert (counts.tolist(), lengths.tolist()) == by_hand(rows, terms)


def test_a_word_in_few_of_many_sessions_is_looked_for_where_it_is_asked_for_alone():
    rows = [(session, True, {1: (0, 1)}) for session in range(1, 201)]
    rows += [(session, True, {2: (1, session % 5)}) for session in range(1, 101)]
    columns, postings, mask = made(rows)
    sessions = SessionTerms(columns, postings, TermStatistics(mask, postings.df))
    asked = np.array([7, 0, 150, 7], np.int32)
    assert sessions.count_terms([2], 2.0, asked)[0].tolist() == [[4, 0, 0, 4]]
    assert not sessions._cached
    assert sessions.count_terms([1], 2.0, asked)[0].tolist() == [[1, 0, 1, 1]]


def test_no_more_is_remembered_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(retrievers, "_CACHE_BYTES_MAX", 8)
    rows = [(session, True, dict.fromkeys(range(1, 6), (0, 1))) for session in (1, 2, 3)]
    columns, postings, mask = made(rows)
    sessions = SessionTerms(columns, postings, TermStatistics(mask, postings.df))
    for term in (1, 2, 3, 1):
        assert sessions.count_terms([term], 2.0, np.arange(4))[0].tolist() == [[0, 1, 1, 1]]
    assert len(sessions._cached) == 2


def test_a_word_too_frequent_for_a_byte_is_counted_right():
    rows = [(1, True, {1: (0, 255)}), (1, True, {1: (0, 255)}), (2, True, {1: (0, 1)})]
    columns, postings, mask = made(rows)
    sessions = SessionTerms(columns, postings, TermStatistics(mask, postings.df))
    for _ in range(2):
        assert sessions.count_terms([1], 2.0, np.arange(3))[0].tolist() == [[0, 510, 1]]

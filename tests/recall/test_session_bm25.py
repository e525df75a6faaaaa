import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.index.columns import Columns
from memd.index.postings import POSTING, InvertedIndex, TermStatistics
from memd.recall import retrievers
from memd.recall.profiles import LexicalSettings
from memd.recall.retrievers import SessionBm25
from memd.store.types import StoredPassage

LEXICAL = LexicalSettings(k1=1.2, b=0.4, title_weight=2.0)
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
    """BM25 of each session as one document."""
    texts: dict[int, list] = {}
    for session, seen, row in rows:
        if session and seen:
            texts.setdefault(session, []).append(row)
    lengths = {s: sum(a + b for row in of for a, b in row.values()) for s, of in texts.items()}
    lengths = {s: n for s, n in lengths.items() if n}
    count = max(len(lengths), 1)
    average = sum(lengths.values()) / count or 1
    scores = [0.0] * (max((s for s, *_ in rows), default=0) + 1)
    for term, weight in terms.items():
        tf = {s: sum(2 * r[term][0] + r[term][1] for r in texts[s] if term in r) for s in lengths}
        having = sum(value > 0 for value in tf.values())
        idf = math.log(1 + (count - having + 0.5) / (having + 0.5))
        for s, value in tf.items():
            norm = 1.2 * (1 - 0.4 + 0.4 * lengths[s] / average)
            scores[s] += weight * idf * value * 2.2 / (value + norm)
    return scores


@settings(max_examples=40, deadline=None)
@given(st.lists(ROW, max_size=12), st.lists(st.integers(1, 7), max_size=5, unique=True))
def test_each_session_is_scored_as_one_document_of_what_may_be_seen(rows, terms):
    columns, postings, mask = made(rows)
    sessions = SessionBm25(columns, postings, TermStatistics(mask, postings.df))
    asked = {term: 1.0 + term for term in terms}
    expected = pytest.approx(by_hand(rows, asked), rel=1e-4, abs=1e-6)
    assert sessions.scores(asked, LEXICAL).tolist() == expected
    assert sessions.scores(asked, LEXICAL).tolist() == expected, "nor may remembering change it"


def test_no_more_is_remembered_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(retrievers, "_CACHE_BYTES_MAX", 8)
    rows = [(session, True, dict.fromkeys(range(1, 6), (0, 1))) for session in (1, 2, 3)]
    columns, postings, mask = made(rows)
    sessions = SessionBm25(columns, postings, TermStatistics(mask, postings.df))
    for term in (1, 2, 3, 1):
        assert sessions.scores({term: 1.0}, LEXICAL)[1:].tolist() == pytest.approx(
            [0.133531] * 3, rel=1e-4
        )
    assert len(sessions._cached) == 2


def test_a_word_too_frequent_for_a_byte_is_counted_right():
    rows = [(1, True, {1: (0, 255)}), (1, True, {1: (0, 255)}), (2, True, {1: (0, 1)})]
    columns, postings, mask = made(rows)
    sessions = SessionBm25(columns, postings, TermStatistics(mask, postings.df))
    for _ in range(2):
        found = sessions.scores({1: 1.0}, LEXICAL).tolist()
        assert found == pytest.approx(by_hand(rows, {1: 1.0}), rel=1e-4)

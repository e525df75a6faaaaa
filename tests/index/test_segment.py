import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memd.index import postings
from memd.index.postings import ARRAY_NAMES, Segment

POSTINGS = st.lists(
    st.dictionaries(st.integers(1, 6), st.tuples(st.integers(0, 3), st.integers(1, 255)), max_size=5),
    max_size=8,
)  # fmt: skip


def made(rows, first=0):
    """A segment of dictionaries: term → (in title, in body)."""
    flat = [
        (term, first + at, *counts) for at, row in enumerate(rows) for term, counts in row.items()
    ]
    terms, numbers, title, body = zip(*flat, strict=True) if flat else ((), (), (), ())
    return postings.build_segment(
        np.array(terms, np.uint32),
        np.array(numbers, np.int32),
        np.array(title, np.uint8),
        np.array(body, np.uint8),
    )


def told(one: Segment):
    ends = one.starts[1:].tolist()
    return {
        term: list(zip(*(a[s:e].tolist() for a in (one.rows, one.title, one.body)), strict=True))
        for term, s, e in zip(one.terms.tolist(), one.starts.tolist(), ends, strict=False)
    }


@given(POSTINGS, POSTINGS, POSTINGS)
def test_segments_that_are_joined_are_what_one_of_all_rows_would_be(a, b, c):
    parts = [made(a), made(b, len(a)), made(c, len(a) + len(b))]
    whole, expected = postings.join_segments(parts), made([*a, *b, *c])
    assert told(whole) == told(expected)
    for name in ARRAY_NAMES:
        assert getattr(whole, name).dtype == getattr(expected, name).dtype


@given(POSTINGS, st.lists(st.booleans(), min_size=8, max_size=8))
def test_renumbering_leaves_out_the_rows_that_went_and_the_terms_only_they_had(rows, kept):
    kept = np.array(kept[: len(rows)], np.bool_)
    mapping = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    left = [row for row, stays in zip(rows, kept, strict=True) if stays]
    assert told(postings.renumber_rows(made(rows), mapping)) == told(made(left))

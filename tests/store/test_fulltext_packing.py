import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.store.fulltext import POSTING, pack_postings, unpack_postings

COUNT = st.sampled_from([0, 1, 1, 1, 2, 255])
TERM = st.one_of(st.integers(0, 300), st.integers(0, 2**32 - 1))


def flat(passages):
    rows = [(term, *counts) for passage in passages for term, counts in passage.items()]
    return np.array(rows, POSTING), [len(passage) for passage in passages]


@given(st.lists(st.dictionaries(TERM, st.tuples(COUNT, COUNT), max_size=12), max_size=6))
def test_what_is_packed_is_unpacked_in_order_of_the_terms(passages):
    blobs = pack_postings(*flat(passages))
    found, sizes = unpack_postings(blobs)
    assert sizes.tolist() == [len(passage) for passage in passages]
    assert found.tolist() == [
        (term, *passage[term]) for passage in passages for term in sorted(passage)
    ]
    assert [unpack_postings([blob])[0].tolist() for blob in blobs] == [
        [(term, *passage[term]) for term in sorted(passage)] for passage in passages
    ]


def test_a_common_posting_takes_a_byte_or_two():
    passage = dict.fromkeys(range(1, 64 * 40, 40), (0, 1))
    (blob,) = pack_postings(*flat([passage]))
    assert len(blob) <= 2 + 2 * 64


def test_a_blob_that_is_none_is_an_error_that_can_be_caught():
    with pytest.raises(ValueError, match="no postings"):
        unpack_postings([b"\x09\x00\x01\x02\x03"])

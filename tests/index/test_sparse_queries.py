import numpy as np
import pytest

from memd.embeddings.hashing import HashingEmbedder
from memd.index.quantization import BinaryCodes

WORDS = [
    "login",
    "token",
    "retry",
    "cookie",
    "schema",
    "deploy",
    "cache",
    "parser",
    "socket",
    "ledger",
    "worker",
    "index",
]
ROWS = 6_000


@pytest.fixture(scope="module")
def texts():
    chance = np.random.default_rng(4)
    return [
        " ".join([*chance.choice(WORDS, 6), f"number{i % 500}", f"part{i % 77}"])
        for i in range(ROWS)
    ]


@pytest.fixture(scope="module")
def vectors(texts):
    return HashingEmbedder().embed(texts)


@pytest.fixture
def coded(vectors):
    made = BinaryCodes(vectors.shape[1], ROWS)
    made.put(np.arange(ROWS), vectors)
    return made


def nearest(cosines, count):
    """The rows that are strictly nearer than the count-th: of what ties with it nobody is promised."""
    return np.flatnonzero(cosines > np.sort(cosines)[-count])


def questions():
    return HashingEmbedder().embed(
        [f"which {WORDS[i]} has number{31 * i} and part{7 * i}" for i in range(len(WORDS))]
    )


@pytest.mark.parametrize("share", [1, 0.4], ids=["everything", "a part"])
def test_all_of_the_nearest_are_among_few_rows_whatever_is_hidden(coded, vectors, share):
    seen = np.random.default_rng(9).random(ROWS) < share
    for query in questions():
        rows = coded.nearest(query, 200, seen)
        assert seen[rows].all()
        assert (np.diff(rows) > 0).all()
        assert len(rows) < ROWS / 4
        assert np.isin(nearest(np.where(seen, vectors @ query, -1), 150), rows).all()


def test_rows_written_kept_or_added_later_are_found(coded):
    query = HashingEmbedder().embed(["kangaroo in the glacier"])[0]
    everything = np.ones(ROWS, np.bool_)
    coded.nearest(questions()[0], 200, everything)
    coded.put(np.array([17]), query[np.newaxis])
    # Fewer than wanted have anything of it: then any rows fill up, and it is among them.
    assert 17 in coded.nearest(query, 200, everything)
    coded.keep(np.arange(10, ROWS))
    assert 7 in coded.nearest(query, 200, everything[10:])
    coded.grow(ROWS + 100)
    coded.put(np.array([ROWS]), questions()[3:4])
    assert ROWS in coded.nearest(questions()[3], 200, np.ones(ROWS + 100, np.bool_))

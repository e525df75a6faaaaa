import math

import pytest

from memd.recall.hits import none_if_nan
from tests.indexed_vault import IndexedVault


@pytest.fixture
def library(db):
    return IndexedVault(db)


async def test_a_hit_knows_its_project_its_session_and_the_passage_that_matched(library):
    long = "\n\n".join(
        f"Paragraph {i} about nothing. " + "filler words here " * 60 for i in range(8)
    )
    library.put(
        "A long story",
        long + "\n\nThe kettle is teal.",
        session="s",
        project="/home/dev/ledger",
    )
    (hit,) = (await library.ask("teal kettle")).hits
    assert hit.project == "ledger"
    assert "kettle is teal" in hit.snippet


def test_what_is_not_a_number_is_not_known():
    assert none_if_nan(math.nan) is None
    assert none_if_nan(0.5) == 0.5

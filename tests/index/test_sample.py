import pytest

from memd.index import sample
from tests.store.test_integrity import break_it, vault

__all__ = ["vault"]


def compare(vault, tokens_max=400):
    return vault.db.read_now(lambda tx: sample.compare(tx, tokens_max))


async def test_what_is_indexed_now_comes_out_the_same(vault):
    found = compare(vault)
    assert (found.verdict, found.words[:2]) == ("ok", "3 ")


async def test_an_index_of_other_settings_is_found(vault):
    found = compare(vault, tokens_max=2)
    assert (found.verdict, found.fixable) == ("problem", True)
    assert "3 of 3" in found.words


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE summaries SET body = 'other words'; DELETE FROM changes",
        "DELETE FROM terms WHERE term = 'ledger'",
    ],
)
async def test_an_index_that_is_not_of_the_truth_is_found(vault, statement):
    break_it(vault, statement)
    assert "3 of 3" in compare(vault).words

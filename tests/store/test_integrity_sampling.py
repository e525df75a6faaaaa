from memd.store import integrity
from tests.store.test_integrity import break_it, vault

__all__ = ["vault"]


async def test_a_sample_is_spread_over_all_that_is_indexed(vault):
    for number in range(7):
        vault.put(f"more {number}")
    await vault.indexer.settle()
    waiting = vault.put("not indexed")
    chosen = vault.db.read_now(lambda tx: integrity.sample_summaries(tx, 4))
    assert chosen == [1, 4, 7, 10]
    assert waiting not in vault.db.read_now(lambda tx: integrity.sample_summaries(tx, 99))


async def test_passages_are_told_with_their_words(vault):
    (one,) = vault.db.read_now(lambda tx: integrity.indexed_passages(tx, 1))
    assert (one.start, one.stop) == (0, len(vault.get(1).body))
    assert one.terms["ledger"] == (0, 1)
    assert sum(map(sum, one.terms.values())) == one.length


async def test_a_word_that_is_not_in_the_vocabulary_is_named_by_its_number(vault):
    break_it(vault, "DELETE FROM terms WHERE term = 'ledger'")
    (one,) = vault.db.read_now(lambda tx: integrity.indexed_passages(tx, 1))
    assert "ledger" not in one.terms
    assert any(term.startswith("#") for term in one.terms)

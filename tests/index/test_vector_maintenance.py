import pytest

from memd.embeddings.hashing import HashingEmbedder
from memd.errors import BadRequest
from memd.index.backfill import Backfill, VectorMaintenance
from memd.models import Space
from memd.store import vectors
from tests.index.test_backfill import FIRST, SECOND, Model, Vault

FORMER = Space("hashing", "words-ngrams", "0", 768)


@pytest.fixture
async def vault(db):
    """Memories that are known to hashing and two models, of which the second is in use."""
    vault = Vault(db, Model(), batch=64, indexed=200)
    vault.put(*(f"m{n}" for n in range(150)))
    await vault.fill()
    vault.model.current = SECOND
    await vault.fill()

    def former(tx):
        number = vectors.ensure_space(tx, FORMER)
        pairs = [
            (passage, bytes(1536)) for passage in vectors.vectors_of(tx, FIRST.name, range(1, 200))
        ]
        vectors.put_vectors(tx, number, pairs)

    db.write_now(former)
    return vault


def upkeep(vault, learned="the model"):
    learned = vault.model if learned == "the model" else learned
    return VectorMaintenance(vault.db, (HashingEmbedder(),), learned, vault.backfill)


def names(vault):
    return {weight.name for weight in vault.db.read_now(vectors.measure_spaces)}


async def test_a_rehearsal_tells_what_would_go_and_drops_nothing(vault):
    before = names(vault)
    said = await upkeep(vault).vacuum(dry_run=True)
    assert [(one.space, one.vectors) for one in said.dropped] == [
        (FIRST.name, 150),
        (FORMER.name, 150),
    ]
    assert all(one.bytes >= 150 * 8 for one in said.dropped)
    assert (said.is_dry_run, said.after, said.note) == (True, None, "")
    assert names(vault) == before


async def test_unused_spaces_are_dropped_and_the_file_shrinks(vault):
    said = await upkeep(vault).vacuum(dry_run=False)
    assert said.after < said.before
    assert names(vault) == {SECOND.name}
    assert len(vault.stored(SECOND)) == 150
    assert (await upkeep(vault).vacuum(dry_run=False)).dropped == ()


async def test_while_no_model_answers_its_possible_spaces_stay(vault):
    said = await upkeep(vault, Model(None)).vacuum(dry_run=False)
    assert [one.space for one in said.dropped] == [FORMER.name]
    assert FIRST.name in said.note
    assert names(vault) == {FIRST.name, SECOND.name}


async def test_who_does_without_a_model_needs_no_space_of_any(vault):
    said = await upkeep(vault, None).vacuum(dry_run=False)
    assert len(said.dropped) == 3
    assert names(vault) == set()


async def test_reembedding_needs_a_learned_model(vault):
    with pytest.raises(BadRequest, match="no learned model"):
        await VectorMaintenance(vault.db, (HashingEmbedder(),)).reembed()
    assert isinstance(vault.backfill, Backfill)
    assert (await upkeep(vault).reembed())["space"] == SECOND.name

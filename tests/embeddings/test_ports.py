from memd.embeddings.hashing import HashingEmbedder
from memd.embeddings.ports import Embedder, LocalEmbedder


class FarAway:
    """An embedder that is asked over a network."""

    space = HashingEmbedder().space

    async def documents(self, texts):
        return HashingEmbedder().embed(texts)

    async def query(self, text):
        return HashingEmbedder().embed([text])[0]


def test_the_hashing_embedder_can_be_called_in_a_thread():
    assert isinstance(HashingEmbedder(), LocalEmbedder)


def test_an_embedder_that_only_waits_is_not_taken_for_a_local_one():
    assert not isinstance(FarAway(), LocalEmbedder)


def test_any_class_with_the_verbs_is_an_embedder():
    embedder: Embedder = FarAway()
    assert embedder.space.provider == "hashing"

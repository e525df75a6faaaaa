import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memd.embeddings import LocalEmbedder, hashing
from memd.embeddings.hashing import HashingEmbedder

EMBEDDER = HashingEmbedder()


def vector(text):
    return EMBEDDER.embed([text])[0]


def cosine(one, other):
    return float(vector(one) @ vector(other))


def test_it_can_be_called_in_a_thread():
    assert isinstance(EMBEDDER, LocalEmbedder)


def test_another_process_computes_the_same_vector():
    text = "Login answered 500 because decode_token raised KeyError"
    script = (
        "from memd.embeddings.hashing import HashingEmbedder; import sys;"
        f"sys.stdout.write(HashingEmbedder().embed([{text!r}]).tobytes().hex())"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        check=True,
        text=True,
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": "."},
    )
    assert found.stdout == vector(text).tobytes().hex()


def test_the_space_is_pinned_so_that_stored_vectors_stay_comparable():
    """Another value here means another version of the space."""
    assert EMBEDDER.space.name == "hashing/words-ngrams/2/768"
    found = vector("redis keeps sessions")
    assert np.flatnonzero(np.abs(found) > 0.2).tolist() == [255, 275, 608]


def test_inflected_words_are_near():
    assert cosine("the tests are failing", "the test fails") > 0.6


def test_a_misspelt_word_is_nearer_than_another_word():
    assert cosine("authentication", "authentification") > 0.3
    assert cosine("authentication", "database") < 0.15


def test_an_identifier_is_near_its_parts():
    assert cosine("decodeToken", "decode token") > 0.4
    assert cosine("decode_token", "decodeToken") > 0.4


@given(st.text(max_size=200))
def test_any_text_has_length_one_or_no_feature_at_all(text):
    length = float(np.linalg.norm(vector(text)))
    assert length == 0 or abs(length - 1) < 1e-5


def test_the_words_of_much_text_are_given_back_and_have_the_same_vectors_again():
    text = " ".join(f"word{number}" for number in range(hashing._WORDS_KEPT_MAX + 1))
    before = vector(text)
    hashing.clear_word_cache()
    assert hashing._hash_word.cache_info().currsize == 0
    assert np.array_equal(vector(text), before)


def test_the_words_of_a_few_questions_are_kept():
    hashing._hash_word.cache_clear()
    vector("why does login fail")
    hashing.clear_word_cache()
    assert hashing._hash_word.cache_info().currsize == 4

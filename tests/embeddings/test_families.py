import pytest

from memd.embeddings.families import prefixes, space_of
from memd.embeddings.provider import Served


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("nomic-embed-text", "search_query: ", "search_document: "),
        ("nomic-embed-text-v2-moe:latest", "search_query: ", "search_document: "),
        ("hf.co/nomic-ai/Nomic-Embed-Text-v1.5-GGUF", "search_query: ", "search_document: "),
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("e5-small-v2", "query: ", "passage: "),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("Snowflake/snowflake-arctic-embed-m-v2.0", "query: ", ""),
        ("all-minilm", "", ""),
        ("bge-m3", "", ""),
        ("multilingual-e5-large-instruct", "", ""),
    ],
)
def test_a_model_is_asked_as_it_was_trained(model, query, document):
    assert prefixes(model) == (query, document)


@pytest.mark.parametrize(
    "model", ["mxbai-embed-large", "snowflake-arctic-embed:137m", "bge-base-en-v1.5"]
)
def test_some_want_an_instruction_before_a_question_and_nothing_before_a_text(model):
    query, document = prefixes(model)
    assert query.startswith("Represent this sentence")
    assert document == ""


def test_a_space_says_all_that_makes_its_vectors_comparable():
    space = space_of(Served("ollama", "nomic-embed-text:latest", "sha256:" + "ab" * 32), 256)
    assert space.name == "ollama/nomic-embed-text/1/256/abababababab"
    assert (space.query_prefix, space.document_prefix) == (
        "search_query: ",
        "search_document: ",
    )


def test_another_digest_is_another_space():
    one, other = (Served("ollama", "m", digest) for digest in ("a" * 64, "b" * 64))
    assert space_of(one, 8).name != space_of(other, 8).name

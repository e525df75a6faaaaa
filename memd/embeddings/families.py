"""What a family of models wants to read before a question and before a text, and its space. Pure.

Models trained with prefixes find worse without them, and no server adds them. A change of any line
here changes vectors, so it is a new VERSION. Not here: whether a model is there.
"""

import re

from memd.embeddings.provider import Served
from memd.models import Space

VERSION = "1"
_DIGEST_CHARACTERS = 12

_SEARCH = "Represent this sentence for searching relevant passages: "
_FAMILIES = (
    (r"nomic-embed-code", "Represent this query for searching relevant code: ", ""),
    (r"nomic-embed", "search_query: ", "search_document: "),
    (r"\be5\b(?!.*(?:instruct|mistral))", "query: ", "passage: "),
    (r"mxbai-embed", _SEARCH, ""),
    (r"arctic-embed-?(?:2|[ml]-v2)", "query: ", ""),
    (r"arctic-embed", _SEARCH, ""),
    (r"bge-(?:small|base|large)-en", _SEARCH, ""),
    (r"embedding-?gemma", "task: search result | query: ", "title: none | text: "),
)
"""(pattern of the name in lower case, before a question, before a text); the first that fits."""


def prefixes(model: str) -> tuple[str, str]:
    """Return what goes before a question, and before a text.

    >>> prefixes("intfloat/multilingual-e5-large")
    ('query: ', 'passage: ')
    """
    lower = model.lower()
    return next(
        (
            (query, document)
            for pattern, query, document in _FAMILIES
            if re.search(pattern, lower)
        ),
        ("", ""),
    )


def space_of(served: Served, dimensions: int) -> Space:
    """Return the space of a model's vectors of so many values."""
    query, document = prefixes(served.model)
    return Space(
        provider=served.provider,
        model=served.model.removesuffix(":latest"),
        version=VERSION,
        dimensions=dimensions,
        digest=served.digest.removeprefix("sha256:")[:_DIGEST_CHARACTERS],
        document_prefix=document,
        query_prefix=query,
    )

import pytest

from memd.errors import BadRequest, Broken
from memd.serve import results, schemas
from memd.serve.check import Checker

search = Checker(schemas.SEARCH, results.SEARCH)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k: 0 is less than the minimum of 1"),
        ({"k": -3}, "k: -3 is less than the minimum of 1"),
        ({"k": 51}, "k: 51 is greater than the maximum of 50"),
        ({"k": "many"}, "k: 'many' is not a whole number"),
        ({"k": True}, "k: true is not a whole number"),
        ({"k": None}, "k: null is not a whole number"),
        ({"query": 7}, "query: 7 is not a text"),
        ({"query": {"a": ["x" * 5000]}}, "query: an object is not a text"),
        ({"query": "x" * 4001}, "query: longer than 4000 characters"),
        ({"kinds": ["fix", "nonsense"]}, "kinds.1: must be one of decision, fix, "),
        ({"kinds": "fix"}, "kinds: 'fix' is not a list"),
        ({"tags": [""]}, "tags.0: must not be empty"),
        ({"since": 1.5}, "since: 1.5 is not a text or a whole number"),
        ({"que": "x"}, "que: there is no such argument; there are query, k, "),
    ],
)
def test_what_is_wrong_is_said_by_name_and_in_words(arguments, message):
    with pytest.raises(BadRequest) as error:
        search.arguments(arguments)
    assert error.value.message.startswith(message)
    assert len(error.value.message) < 400


def test_a_missing_argument_is_named():
    with pytest.raises(BadRequest, match=r"^text: is needed$"):
        Checker(schemas.REMEMBER, results.REMEMBER).arguments({})


def test_what_is_right_passes():
    search.arguments(
        {"query": "x", "k": 5, "kinds": ["fix"], "since": "7d", "until": 1_700_000_000_000}
    )


def test_a_result_of_ours_is_held_to_its_own_schema():
    search.result({"hits": [], "took_ms": 1, "note": "data"})
    with pytest.raises(Broken, match=r"\$.hits\[0\]"):
        search.result({"hits": [{"id": "twelve"}], "took_ms": 1, "note": "data"})

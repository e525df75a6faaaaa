import pytest

from memd.errors import Broken
from memd.server import responses
from memd.server.responses import (
    PinResponse,
    SearchResponse,
    WhyResponse,
    check_response,
    output_schema,
)
from tests.tables import every_row

TOOLS = [
    getattr(responses, f"{name}Response")
    for name in ("Search", "Timeline", "Why", "Get", "Remember", "Forget", "Pin", "Judge")
]
HIT = {
    "id": 1, "title": "t", "kind": "fix", "speaker": "user", "at": "2026-01-01", "age": "1d", "score": 1, "parts": {},
}  # fmt: skip


def described(schema):
    """Every field in a schema, at any depth."""
    for name, field in schema.get("properties", {}).items():
        yield name, field
        yield from described(field.get("items", field))


@every_row("response", TOOLS)
def test_a_result_schema_lists_its_required_fields(response):
    schema = output_schema(response)
    assert schema["type"] == "object"
    assert set(schema["required"]) <= set(schema["properties"])
    for field, inner in described(schema):
        assert inner["type"] != "null", field


def test_a_result_is_held_to_its_own_schema():
    frame = {"verdict": "found", "took_ms": 1, "note": "data"}
    check_response(SearchResponse, {**frame, "hits": [HIT]})
    with pytest.raises(Broken, match=r"at hits\.0\.id"):
        check_response(SearchResponse, {**frame, "hits": [{**HIT, "id": "1"}]})
    with pytest.raises(Broken, match="at note"):
        check_response(SearchResponse, {"verdict": "nothing", "hits": [], "took_ms": 1})
    with pytest.raises(Broken, match="at title"):
        check_response(PinResponse, {"id": 1, "pinned": True, "title": None})
    with pytest.raises(Broken, match=r"at hits\.0\.kind"):
        check_response(SearchResponse, {**frame, "hits": [{**HIT, "kind": "joke"}]})


def test_unknown_fields_and_lone_surrogates_pass_the_check():
    check_response(PinResponse, {"id": 1, "pinned": True, "new": None, "title": "\ud800"})


def test_an_edge_is_checked_though_its_fields_are_keywords_of_python():
    edge = {"from": "#1", "type": "edits", "to": "file:/a"}
    why = {"node": "#1", "verdict": "current", "relations": [], "sources": [], "note": "data"}
    check_response(WhyResponse, {**why, "edges": [edge]})
    with pytest.raises(Broken, match=r"at edges\.0\.from"):
        check_response(WhyResponse, {**why, "edges": [{**edge, "from": 1}]})

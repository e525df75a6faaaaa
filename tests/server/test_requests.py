import pytest

from memd.errors import BadRequest
from memd.models import Kind
from memd.server import requests
from memd.server.requests import (
    CaptureBatchRequest,
    CaptureEventRequest,
    GetRequest,
    JudgeRequest,
    RememberBatchRequest,
    RememberRequest,
    SearchRequest,
    WhyRequest,
    input_schema,
    parse,
    parse_tool_arguments,
)
from tests.tables import every_row

TOOLS = [
    getattr(requests, f"{name}Request")
    for name in ("Search", "Timeline", "Why", "Get", "Remember", "Forget", "Pin", "Judge")
]


@every_row(
    ("arguments", "message"),
    [
        ({"k": 0}, "k: 0 is less than the minimum of 1"),
        ({"k": -3}, "k: -3 is less than the minimum of 1"),
        ({"k": 51}, "k: 51 is greater than the maximum of 50"),
        ({"k": "many"}, "k: 'many' is not a whole number"),
        ({"k": 5.5}, "k: 5.5 is not a whole number"),
        ({"k": True}, "k: true is not a whole number"),
        ({"k": None}, "k: null; leave it out instead"),
        ({"offset": 10**30}, f"offset: {10**30} is greater than the maximum of 10000"),
        ({"query": 7}, "query: 7 is not a text"),
        ({"query": None}, "query: null is not a text"),
        ({"query": {"a": ["x" * 5000]}}, "query: an object is not a text"),
        ({"query": "x" * 4001}, "query: longer than 4000 characters"),
        ({"query": "\ud800"}, "query: "),
        ({"kinds": ["fix", "nonsense"]}, "kinds.1: must be one of decision, fix, "),
        ({"kinds": "fix"}, "kinds: 'fix' is not a list"),
        ({"tags": [""]}, "tags.0: must not be empty"),
        ({"tags": ["a"] * 21}, "tags: more than 20 items"),
        ({"since": 1.5}, "since: 1.5 is not a text or a whole number"),
        ({"since": ["x"]}, "since: a list is not a text or a whole number"),
        ({"include_turns": "x" * 5000}, "include_turns: a text is not true or false"),
        ({"que": "x"}, "que: there is no such argument; there are query, k, "),
        ({"q" * 5000: "x"}, "qqqqq"),
    ],
)
def test_a_wrong_argument_is_named_without_its_long_value(arguments, message):
    with pytest.raises(BadRequest) as error:
        parse_tool_arguments(SearchRequest, arguments)
    assert error.value.message.startswith(message)
    assert len(error.value.message) < 400


@every_row(
    ("model", "given", "message"),
    [
        (RememberRequest, {}, "text: is needed"),
        (WhyRequest, {"id": 0}, "id: 0 is less than the minimum of 1"),
        (WhyRequest, {"id": []}, "id: a list is not a whole number or a text"),
        (GetRequest, {"ids": []}, "ids: fewer than 1 items"),
        (JudgeRequest, {"id": 1, "other": 2, "relation": "x"}, "relation: must be one of "),
        (RememberRequest, {"text": "x", "origin": 7}, "origin: 7 is not an object"),
        (
            RememberBatchRequest,
            {"memories": [{"text": "x", "origin": {"path": "/a", "page": 1}}]},
            "memories.0.origin.page: there is no such argument",
        ),
        (CaptureBatchRequest, {"events": [{"client": "", "payload": 1}]}, "events.0.client: "),
    ],
)
def test_wrong_parameters_of_control_calls_are_named_at_any_depth(model, given, message):
    with pytest.raises(BadRequest) as error:
        parse(model, given)
    assert error.value.message.startswith(message)


def test_valid_arguments_pass():
    request = parse_tool_arguments(
        SearchRequest,
        {"query": "x", "k": 5, "kinds": ["fix"], "since": "7d", "until": 1_700_000_000_000},
    )
    assert (request.k, request.kinds, request.since) == (5, [Kind.FIX], "7d")


def test_a_whole_number_may_be_written_as_a_float_as_some_clients_do():
    assert parse_tool_arguments(SearchRequest, {"k": 5.0}).k == 5


def test_agents_may_pass_less_than_programs():
    assert parse(SearchRequest, {"k": 1_000, "directory": "/p", "embedding": [1.0]}).k == 1_000
    assert len(parse(GetRequest, {"ids": [1] * 1_000}).ids) == 1_000
    with pytest.raises(BadRequest, match=r"^ids: more than 20 items$"):
        parse_tool_arguments(GetRequest, {"ids": [1] * 21})
    with pytest.raises(BadRequest, match=r"^directory: there is no such argument"):
        parse_tool_arguments(SearchRequest, {"directory": None})


def test_a_directory_may_be_as_long_as_a_system_takes():
    event = {"client": "c", "payload": {}}
    assert parse(CaptureEventRequest, {**event, "directory": "/" + "a" * 4_000})
    with pytest.raises(BadRequest, match="directory: longer than 4096 characters"):
        parse(CaptureEventRequest, {**event, "directory": "/" + "a" * 4_096})


@every_row("model", TOOLS)
def test_a_schema_describes_every_argument_and_has_no_references_choices_or_nulls(model):
    schema = input_schema(model)
    assert schema["type"] == "object"
    for name, field in schema["properties"].items():
        assert len(field["description"]) > 5, name
    assert not set(keywords(schema)) & {"$ref", "$defs", "anyOf", "oneOf", "allOf", "title"}
    assert "null" not in str(schema)


def keywords(schema):
    """Every keyword in a schema; names of properties are none."""
    for keyword, value in schema.items():
        yield keyword
        inner = value.values() if keyword == "properties" else [value]
        for one in inner:
            if isinstance(one, dict):
                yield from keywords(one)

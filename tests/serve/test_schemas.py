import json
from typing import get_args

import pytest
from jsonschema import Draft202012Validator

from memd.serve import arguments as ask
from memd.serve import schemas

PAIRS = [
    (schemas.SEARCH, ask.Search),
    (schemas.TIMELINE, ask.Timeline),
    (schemas.WHY, ask.Why),
    (schemas.GET, ask.Get),
    (schemas.REMEMBER, ask.Remember),
    (schemas.FORGET, ask.Forget),
    (schemas.PIN, ask.Pin),
]


@pytest.mark.parametrize(("schema", "model"), PAIRS)
def test_the_schema_and_the_types_say_the_same(schema, model):
    assert list(schema["properties"]) == list(model.model_fields)
    assert schema["required"] == [
        n for n, field in model.model_fields.items() if field.is_required()
    ]
    for name, field in model.model_fields.items():
        default = schema["properties"][name].get("default")
        if default is not None:
            assert json.loads(json.dumps(field.default)) == default
    assert model.model_config["extra"] == "forbid"
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("schema", [schema for schema, _ in PAIRS])
def test_every_argument_is_described(schema):
    for name, field in schema["properties"].items():
        assert len(field["description"]) > 5, name


@pytest.mark.parametrize("schema", [schema for schema, _ in PAIRS])
def test_schemas_are_schemas_and_have_no_choice_at_their_top(schema):
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf"} & set(schema)


def test_the_bounds_are_the_same_on_both_sides():
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        ask.Search(k=0)
    assert set(schemas.SEARCH["properties"]["legs"]["items"]["enum"]) == set(get_args(ask.Leg))

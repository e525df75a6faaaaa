import pytest
from jsonschema import Draft202012Validator

from memd.serve import results

ALL = {
    name: value for name, value in vars(results).items() if name.isupper() and name != "KINDS"
}


def described(schema):
    """Every field in a schema, at any depth."""
    for name, field in schema.get("properties", {}).items():
        yield name, field
        yield from described(field.get("items", field))


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("_")])
def test_a_result_is_an_object_with_what_is_always_there(name):
    schema = ALL[name]
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert set(schema["required"]) <= set(schema["properties"])
    assert not {"anyOf", "oneOf", "allOf"} & set(schema)


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("_")])
def test_every_field_of_a_result_has_a_type_and_nothing_is_null(name):
    for field, schema in described(ALL[name]):
        assert schema["type"] != "null", field
        assert "type" in schema, field

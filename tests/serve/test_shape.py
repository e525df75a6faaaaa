import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from memd.serve import results, schemas, shape

KINDS = {"type": "string", "enum": ["fix", "fact"]}
SCHEMAS = [
    {"type": "integer", "minimum": 1, "maximum": 5, "description": "a number"},
    {"type": ["string", "integer"], "maxLength": 3},
    {"type": "array", "items": KINDS, "minItems": 1, "maxItems": 2},
    {"type": "object", "properties": {"k": {"type": "boolean"}}, "required": ["k"]},
    {"type": "object", "properties": {"k": KINDS}, "additionalProperties": False},
    {"type": "object", "additionalProperties": {"type": "number"}},
    {"type": "string", "minLength": 1},
    {},
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 6)
    | st.sampled_from([0.0, 1.0, 2.5, -1.0, 7.5])
    | st.sampled_from(["", "fix", "fact", "other", "ab"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["k", "x"]), inner, max_size=2)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize("schema", SCHEMAS)
@given(value=VALUES)
def test_it_says_of_every_value_what_a_validator_says(schema, value):
    assert shape.compiled(schema)(value) == Draft202012Validator(schema).is_valid(value)


def test_every_schema_of_ours_can_be_compiled():
    ours = [
        value
        for module in (schemas, results)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, dict) and not name.startswith("_")
    ]
    assert len(ours) >= 16
    for schema in ours:
        assert not shape.compiled(schema)(7)


def test_a_keyword_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="oneOf"):
        shape.compiled({"oneOf": []})
    with pytest.raises(ValueError, match="enum"):
        shape.compiled({"enum": [1]})

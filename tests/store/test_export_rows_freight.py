import re
from pathlib import Path

import pytest

from memd.errors import BadRequest
from memd.store.export_rows import DEPTH_MAX, EXPORT_SCHEMA, check_record, redact_record
from memd.transfer.archive import FORMAT
from tests.export_records import one_of_each

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "export.md"
EXAMPLES = dict(one_of_each())


def nested(depth):
    return {"a": nested(depth - 1)} if depth > 1 else {}


def test_a_record_of_every_kind_passes():
    assert EXAMPLES.keys() == EXPORT_SCHEMA.keys()
    for kind, fields in one_of_each():
        check_record(kind, fields)


@pytest.mark.parametrize("kind", EXPORT_SCHEMA)
def test_a_field_that_is_missing_or_strange_or_null_is_named(kind):
    fields = EXAMPLES[kind]
    with pytest.raises(BadRequest, match="no field 'wish'"):
        check_record(kind, fields | {"wish": 1})
    for name in fields:
        with pytest.raises(BadRequest, match=f"lacks the field '{name}'"):
            check_record(kind, {k: v for k, v in fields.items() if k != name})
        if name not in EXPORT_SCHEMA[kind].optional:
            with pytest.raises(BadRequest, match=f"{name} of this {kind} must be"):
                check_record(kind, fields | {name: None})


@pytest.mark.parametrize(
    ("kind", "field", "values"),
    [
        ("summary", "at", [-1, 1.5, "1", True, 2**53 + 1]),
        ("summary", "confidence", [float("nan"), float("inf"), "1", True, 10**400]),
        ("summary", "kind", ["wish", "", 1, []]),
        ("summary", "tags", ["x", [1], {}]),
        ("summary", "uid", ["", "x" * 5_000, 7]),
        ("summary", "revisions", [-1, 0.5]),
        (
            "event",
            "payload",
            [[], "x", nested(DEPTH_MAX + 1), {"a": float("inf")}, {"a": 2**63}],
        ),
        ("event", "distilled", [2, -1, True]),
        ("switch", "scope", ["everywhere"]),
        ("judgment", "relation", ["loves"]),
        ("project", "key", ["", 1]),
    ],
)
def test_a_value_that_cannot_be_is_refused(kind, field, values):
    for value in values:
        with pytest.raises(BadRequest, match=f"{field} of this {kind} must be"):
            check_record(kind, EXAMPLES[kind] | {field: value})
    check_record("event", EXAMPLES["event"] | {"payload": nested(DEPTH_MAX)})


def test_everything_is_redacted_but_what_names_a_row():
    seen = []

    def redact(value):
        seen.append(value)
        return "clean"

    found = redact_record(
        "edge", EXAMPLES["edge"] | {"from_kind": "summary", "from": "uid"}, redact
    )
    assert (found["from"], found["to"], found["detail"]) == ("uid", "clean", "clean")
    assert (
        redact_record("summary", EXAMPLES["summary"], redact)["uid"]
        == EXAMPLES["summary"]["uid"]
    )
    assert EXAMPLES["summary"]["body"] in seen


def test_the_documented_format_is_the_one_that_is_read():
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    told = {row.split("`")[1]: row.split("|")[2] for row in rows}
    assert [kind for kind in told if kind in EXPORT_SCHEMA] == list(EXPORT_SCHEMA)
    for kind, kept in EXPORT_SCHEMA.items():
        named = re.findall(r"`(\w+)`(\?)?", told[kind])
        assert [name for name, _ in named] == list(kept.fields)
        assert {name for name, mark in named if mark} == kept.optional
    assert f"The format, version {FORMAT}" in text

from memd.consolidate.retention import CITED_KEY, compact_payload

LONG = "x" * 500


def test_what_a_tool_was_and_was_told_in_short_stays_and_its_output_goes():
    payload = {
        "tool_name": "Bash",
        "tool_input": {"command": "pytest " + LONG, "timeout": 5, "content": LONG},
        "tool_response": {"stdout": LONG, "stderr": "", "interrupted": False, "lines": [1, 2]},
    }
    assert compact_payload(payload, []) == {
        "tool_name": "Bash",
        "tool_input": {"command": ("pytest " + LONG)[:400], "timeout": 5},
        "tool_response": {"stderr": "", "interrupted": False},
    }


def test_what_memories_cite_stays_unless_it_is_there_anyway():
    payload = {
        "tool_input": {"command": "make test"},
        "tool_response": {"stdout": LONG + "17 failed"},
    }
    assert compact_payload(payload, ["17 failed", "make test", "", "17 failed"])[CITED_KEY] == [
        "17 failed"
    ]


def test_compacting_twice_is_compacting_once():
    payload = {"error": LONG * 2, "deep": {"a": {"b": {"c": {"d": "gone"}}}}, "none": None}
    once = compact_payload(payload, ["a quote"])
    assert compact_payload(once, ["a quote"]) == once
    assert compact_payload(once, [])[CITED_KEY] == ["a quote"]
    assert "deep" not in once

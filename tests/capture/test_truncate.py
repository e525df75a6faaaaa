"""Bounds: bulk goes, memory stays, ids stay, and no cut ever leaves half a secret."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from memd.capture import truncate
from memd.capture.redact import redact_value
from tests.tables import every_row

SECRET = "AKIAIOSFODNN7EXAMPLE"
MARK = "characters cut] …"


def cut(text, limit=32_768):
    return truncate.truncate_text(text, limit, redact_value)


def test_a_short_text_stays_as_it_is():
    assert cut("hello") == "hello"


def test_a_long_text_keeps_head_and_tail_and_says_what_was_cut():
    text = "begin " + "x y " * 50_000 + "end"
    kept = cut(text)
    assert kept.startswith("begin ")
    assert kept.endswith("end")
    assert MARK in kept
    assert len(kept) <= 32_768
    cut_away = int(kept.split("… [")[1].split(" ")[0].replace(",", ""))
    head, tail = kept.split("… [")[0], kept.split(MARK)[1]
    assert cut_away == len(text) - len(head) - len(tail)


def test_a_cut_text_is_not_cut_again():
    kept = cut("word " * 50_000)
    assert cut(kept) == kept


@every_row("letter", ["é", "漢", "🙂"])
def test_the_limit_counts_bytes_and_no_letter_is_split(letter):
    kept = cut(letter * 60_000)
    assert len(kept.encode()) <= 32_768
    assert kept.strip(letter).startswith("… [")


def redact_keys(text):
    """Redact as `redact_value` does, of keys such as SECRET alone, and so in no time."""
    return re.sub("AKIA[A-Z0-9]{16}", "[REDACTED:key]", text)


LENGTHS = [40_000, 65_000, 66_000, 100_000]


APART = 2_000
"""How far apart secrets stand in one text, so that each cut has one before it, in it and behind it."""
WORDS = "word " * (APART // 5)


def find_survivors(length, shifts, redact):
    """By how much secrets in a long text have to be shifted for an end of one to be left."""
    for shift in shifts:
        text = WORDS[:shift] + f" {SECRET} {WORDS[: APART - len(SECRET) - 2]}" * (length // APART)
        kept = truncate.truncate_text(text, 32_768, redact)
        if SECRET[:9] in kept or SECRET[-9:] in kept:
            yield shift


@every_row("length", LENGTHS)
def test_no_secret_survives_wherever_the_cut_falls(length):
    """A step is so short that every cut falls into a secret at some shift, with an end of it long enough to be seen."""
    assert not list(find_survivors(length, range(0, APART, 11), redact_keys))


def test_the_real_redaction_leaves_no_secret_where_the_cut_falls():
    """Of every shift a sample: tests of redaction show what it finds, and the test above where it must look."""
    for length in LENGTHS:
        assert not list(find_survivors(length, range(length % 611, APART, 797), redact_value))


def test_a_private_span_that_is_longer_than_the_limit_leaves_nothing():
    text = "a " * 10_000 + "<private>" + "Ada Lovelace " * 20_000 + "</private>" + " z" * 10_000
    assert "Lovelace" not in cut(text)


def test_redaction_that_shrinks_a_text_does_not_pull_the_cut_edge_into_view():
    text = f"{SECRET} " * 20_000
    assert SECRET[:9] not in cut(text)
    assert SECRET[-9:] not in cut(text)


def test_lone_surrogates_huge_numbers_and_nan_become_storable():
    kept = truncate.clean_payload(
        {"a": "\ud800x", "b": 10**30, "c": float("nan"), "d": float("inf"), "e": True}
    )
    assert kept == {"a": "\ufffdx", "b": "… [huge number] …", "c": "nan", "d": "inf", "e": True}


def test_depth_and_width_are_bounded():
    deep = value = {}
    for _ in range(100):
        value["in"] = value = {}
    wide = {"list": list(range(10_000)), "object": {str(n): n for n in range(10_000)}, "deep": deep}
    text = json.dumps(truncate.clean_payload(wide))
    assert "nested too deep" in text
    assert "more cut" in text
    assert len(text) < 30_000


def test_a_huge_payload_keeps_its_ids_and_small_fields():
    payload = {"session_id": "0a1b", "tool_response": {str(n): "word " * 8_000 for n in range(40)}}
    payload |= {"tool_use_id": "toolu_01AbCdEfGhIjKlMnOpQrStUv", "duration_ms": 5, "end": "yes"}
    kept = truncate.clean_payload(payload)
    assert len(json.dumps(kept)) < 300_000
    assert kept["tool_use_id"] == payload["tool_use_id"]
    assert (kept["session_id"], kept["duration_ms"], kept["end"]) == ("0a1b", 5, "yes")


def test_an_id_that_looks_like_a_secret_becomes_its_own_hash():
    one = truncate.clean_payload({"session_id": SECRET})["session_id"]
    two = truncate.clean_payload({"session_id": "AKIAIOSFODNN7EXAMPLF"})["session_id"]
    assert SECRET not in one
    assert one != two
    assert truncate.clean_payload({"session_id": one})["session_id"] == one


def test_secrets_in_values_and_keys_are_redacted():
    text = json.dumps(
        truncate.clean_payload({"a": [f"x {SECRET}"], SECRET: 1, "b": {"c": f"<private>{SECRET}"}})
    )
    assert SECRET not in text


def read(response, **given):
    payload = {"tool_name": "Read", "tool_input": given, "tool_response": response}
    return truncate.trim_tool_response(payload, keep_reads=False)["tool_response"]


def test_what_was_read_becomes_its_path_and_size():
    response = {
        "type": "text",
        "file": {"filePath": "/p/a", "content": "one\ntwo\n", "numLines": 2},
    }
    assert read(response, file_path="/p/a") == {"path": "/p/a", "bytes": 8, "lines": 2}
    assert read("one\ntwo", path="/p") == {"path": "/p", "bytes": 7, "lines": 2}
    assert read(None) == {"path": None, "bytes": 0, "lines": 0}
    assert read({"path": "/p/a", "bytes": 8, "lines": 2}) == {
        "path": "/p/a",
        "bytes": 8,
        "lines": 2,
    }


def test_of_a_source_file_that_was_read_only_the_names_of_its_imports_stay():
    text = "import auth\n<private>import hush\n</private>\nTOKEN = 'x'\n"
    kept = read({"file": {"content": text}}, file_path="/p/a.py")
    fingerprint = kept["fingerprint"]
    sizes = {"path": "/p/a.py", "bytes": len(text), "lines": 4, "fingerprint": fingerprint}
    assert kept == {**sizes, "imports": ["auth"]}
    assert read(kept, file_path="/p/a.py") == kept


def test_a_read_file_is_stored_if_configured():
    payload = {"tool_name": "Read", "tool_response": "text"}
    assert truncate.trim_tool_response(payload, keep_reads=True) == payload


def test_an_edits_answer_loses_what_its_input_said():
    given = {"file_path": "/p", "old_string": "a", "new_string": "b"}
    response = {"oldString": "a", "newString": "B", "originalFile": "aaa", "structuredPatch": [1]}
    payload = {"tool_name": "Edit", "tool_input": given, "tool_response": response}
    slim = truncate.trim_tool_response(payload, keep_reads=False)["tool_response"]
    assert slim == {"newString": "B", "structuredPatch": [1]}
    written = {
        "tool_name": "Write",
        "tool_input": {"content": "x"},
        "tool_response": {"content": "x"},
    }
    assert truncate.trim_tool_response(written, keep_reads=False)["tool_response"] == {}


def test_other_answers_are_not_trimmed():
    payload = {"tool_name": "Bash", "tool_input": {}, "tool_response": {"stdout": "x"}}
    assert truncate.trim_tool_response(payload, keep_reads=False) is payload
    assert truncate.trim_tool_response("text", keep_reads=False) == "text"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@given(JSON)
def test_whatever_comes_can_be_written_down_and_cleaning_twice_is_cleaning_once(value):
    kept = truncate.clean_payload(value)
    json.dumps(kept, ensure_ascii=False, allow_nan=False).encode("utf-8")
    assert truncate.clean_payload(kept) == kept
    truncate.trim_tool_response(value, keep_reads=False)


@every_row("tool", [["Read"], {"Read": 1}, 7, None])
def test_a_tool_without_a_name_is_not_trimmed(tool):
    payload = {"tool_name": tool, "tool_input": {}, "tool_response": {"file": "x"}}
    assert truncate.trim_tool_response(payload, keep_reads=False) == payload

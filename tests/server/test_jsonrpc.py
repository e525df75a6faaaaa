import json

from hypothesis import given
from hypothesis import strategies as st

from memd import errors
from memd.server import jsonrpc
from memd.server.jsonrpc import Call, InvalidLine, LineSplitter, Preface
from tests.tables import every_row


def read(value):
    return jsonrpc.parse_line(value if isinstance(value, bytes) else json.dumps(value).encode())


def test_lines_are_whole_however_the_bytes_arrive():
    whole = LineSplitter(100)
    byte_by_byte = LineSplitter(100)
    text = b'one\r\n\ntwo "\xc3\xa4"\nthr'
    assert whole.feed(text) == [b"one\r", b"", b'two "\xc3\xa4"']
    assert [line for i in range(len(text)) for line in byte_by_byte.feed(text[i : i + 1])] == [
        b"one\r", b"", b'two "\xc3\xa4"',
    ]  # fmt: skip
    assert whole.take_rest() == b"thr"


def test_a_line_that_is_too_long_is_dropped_and_flagged():
    lines = LineSplitter(10)
    assert lines.feed(b"short\n") == [b"short"]
    assert lines.feed(b"x" * 11) == []
    assert lines.is_overfull
    assert lines.take_rest() == b""
    assert lines.feed(b"y" * 1000 + b"\nmore\n") == []


def test_a_line_that_is_too_long_is_flagged_even_if_it_ends_in_the_same_chunk():
    lines = LineSplitter(10)
    assert lines.feed(b"short\n" + b"x" * 11 + b"\nafter\n") == [b"short"]
    assert lines.is_overfull


def test_a_request_is_read_with_its_parameters():
    assert read({"jsonrpc": "2.0", "id": 7, "method": "memd/ping", "params": {"a": 1}}) == Call(
        7, "memd/ping", {"a": 1}
    )
    assert read({"jsonrpc": "2.0", "method": "note", "params": None}) == Call(None, "note", {})


def test_a_byte_order_mark_and_a_carriage_return_are_no_harm():
    line = b'\xef\xbb\xbf {"jsonrpc":"2.0","id":"a","method":"m"}\r'
    assert read(line) == Call("a", "m", {})


@every_row("line", [b"", b"   ", b"\r", b"\xef\xbb\xbf"])
def test_an_empty_line_is_nothing(line):
    assert read(line) is None


@every_row(
    "line",
    [
        b"{",
        b"nonsense",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'"\xff\xfe"',
        b"\x00",
        b"1" * 5000,
        b'{"a":1}}',
    ],
)
def test_malformed_json_is_a_parse_error_without_an_id(line):
    refused = read(line)
    assert (refused.code, refused.id) == (jsonrpc.PARSE_ERROR, None)


@every_row(
    "value",
    [
        1, "text", None, True, [], {},
        {"jsonrpc": "1.0", "id": 1, "method": "m"},
        {"jsonrpc": "2.0", "id": 1}, {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": None, "method": "m"}, {"jsonrpc": "2.0", "id": True, "method": "m"},
        {"jsonrpc": "2.0", "id": 1.5, "method": "m"}, {"jsonrpc": "2.0", "id": {}, "method": "m"},
    ],
)  # fmt: skip
def test_json_that_is_no_request_is_an_invalid_request(value):
    assert read(value).code == jsonrpc.INVALID_REQUEST


def test_the_error_carries_the_id_if_there_is_one():
    assert read({"id": 9, "method": "m"}).id == 9
    refused = read({"jsonrpc": "2.0", "id": 9, "method": "m", "params": [1]})
    assert (refused.id, refused.code) == (9, jsonrpc.INVALID_PARAMS)


def test_deep_nesting_is_refused_before_anything_walks_it():
    for depth in (200, 5_000, 200_000):
        assert read(b"[" * depth + b"]" * depth).code == jsonrpc.INVALID_REQUEST
    inner = "[" * 200 + "]" * 200
    line = f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{inner}}}}}'
    assert read(line.encode()).code == jsonrpc.INVALID_REQUEST


def test_many_brackets_side_by_side_are_not_deep():
    params = {"rows": [[i] for i in range(1_000)]}
    assert read({"jsonrpc": "2.0", "id": 1, "method": "m", "params": params}) == Call(
        1, "m", params
    )


def test_only_lone_surrogates_are_replaced():
    line = rb'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"x\ud83dy","b":"\ud83d\ude00"}}'
    assert read(line).params == {"a": "x�y", "b": "😀"}


def test_an_answer_to_nothing_is_recognised():
    assert read({"jsonrpc": "2.0", "id": 1, "result": {}}) is None


def test_a_preface_drops_malformed_fields():
    reply = read(
        {"memd": 1, "cwd": "/a", "project": None, "session": 7, "client": "x" * 5000, "new": 1}
    )
    assert reply == Preface(cwd="/a")
    assert isinstance(read({"memd": 2}), InvalidLine)


def test_each_response_is_one_line():
    line = jsonrpc.result_line("a", {"text": "two\nlines ä"})
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"jsonrpc": "2.0", "id": "a", "result": {"text": "two\nlines ä"}}
    assert json.loads(jsonrpc.error_line(None, -1, "no"))["error"] == {"code": -1, "message": "no"}


@given(st.binary(max_size=300))
def test_no_bytes_make_reading_fail(line):
    jsonrpc.parse_line(line.replace(b"\n", b""))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["jsonrpc", "id", "method", "params", "memd", "cwd", "result"]), _JSON
    )
)
def test_no_object_makes_reading_fail(value):
    jsonrpc.parse_line(json.dumps(value).encode())


@given(st.lists(st.binary(max_size=40)), st.integers(1, 60))
def test_lines_never_hold_more_than_their_limit(chunks, limit):
    lines = LineSplitter(limit)
    for chunk in chunks:
        assert all(len(line) <= limit for line in lines.feed(chunk))
        assert lines.held <= limit


@every_row("values", [b"1,", b"[],", b"{},", b'"\\ud83d",'])
def test_a_line_with_very_many_values_is_refused_before_it_is_parsed(values):
    line = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"p":[' + values * 100_000 + b"1]}}"
    refused = jsonrpc.parse_line(line)
    assert refused.code == jsonrpc.INVALID_REQUEST
    assert "more than 100000 commas, brackets" in refused.message


def test_a_long_text_is_not_taken_for_many_values():
    text = "It was slow, so we cached it. " * 90_000
    call = read({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"p": text}})
    assert call.params == {"p": text}


def test_the_bytes_of_an_unfinished_line_are_counted():
    lines = LineSplitter(100)
    lines.feed(b"one\ntwo")
    assert lines.held == 3
    lines.feed(b"\n")
    assert lines.held == 0


def failure(error):
    return json.loads(jsonrpc.failure_line(1, error))["error"]


def test_an_error_of_memd_s_is_sent_in_its_own_words():
    assert failure(errors.UnknownId("there is no memory #9")) == {
        "code": jsonrpc.INVALID_PARAMS, "message": "there is no memory #9", "data": {"error": "UnknownId"},
    }  # fmt: skip
    assert failure(errors.VaultFull())["code"] == jsonrpc.SERVER_ERROR


@every_row(
    "fault",
    [ValueError("secret"), KeyError("secret"), RecursionError("secret"), TimeoutError("secret")],
)
def test_any_other_error_is_sent_without_its_words(fault):
    assert isinstance(fault, errors.UNEXPECTED_ERRORS)
    assert failure(fault) == {
        "code": jsonrpc.SERVER_ERROR, "message": "memd could not do this; see the log",
        "data": {"error": "Broken"},
    }  # fmt: skip


def test_a_batch_is_refused_with_what_to_do_instead():
    line = jsonrpc.parse_line(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]')
    assert isinstance(line, jsonrpc.InvalidLine)
    assert line.message == "this is a batch: send one message a line"

"""The scripted Messages API of the end-to-end test: what it streams, records and refuses."""

import http.client
import json
from urllib.parse import urlsplit

import pytest

from e2e import scripted_api as scripted


@pytest.fixture
def api():
    with scripted.ScriptedApi(requests_max=3) as api:
        yield api


def post(api, body, path="/v1/messages?beta=true"):
    connection = http.client.HTTPConnection(urlsplit(api.url).netloc, timeout=60)
    connection.request("POST", path, json.dumps(body))
    response = connection.getresponse()
    told = response.status, response.read().decode()
    connection.close()
    return told


def events(text):
    return [
        json.loads(line.removeprefix("data: "))
        for line in text.splitlines()
        if line.startswith("data: ")
    ]


def test_a_text_is_streamed_from_start_to_stop(api):
    api.play(scripted.Say("It is so."))
    status, text = post(api, {"model": "m", "messages": []})
    told = events(text)
    assert status == 200
    assert [event["type"] for event in told] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert told[0]["message"]["model"] == "m"
    assert told[2]["delta"] == {"type": "text_delta", "text": "It is so."}
    assert told[4]["delta"]["stop_reason"] == "end_turn"


def test_a_tool_is_called_with_its_arguments_and_an_id_of_its_own(api):
    api.play(scripted.Use("Bash", {"command": "true"}), scripted.Use("Read"))
    first, second = (events(post(api, {"messages": []})[1]) for _ in range(2))
    assert first[1]["content_block"]["name"] == "Bash"
    assert json.loads(first[2]["delta"]["partial_json"]) == {"command": "true"}
    assert first[4]["delta"]["stop_reason"] == "tool_use"
    assert first[1]["content_block"]["id"] != second[1]["content_block"]["id"]


def test_every_request_is_recorded_and_one_beyond_the_script_is_told_apart(api):
    api.play(scripted.Say("a"), scripted.Say("b"))
    post(api, {"messages": [], "n": 1})
    assert [turn.text for turn in api.left] == ["b"]
    api.play()
    post(api, {"messages": [], "n": 2})
    assert [body["n"] for body in api.requests] == [1, 2]
    assert [body["n"] for body in api.unscripted] == [2]


def test_a_client_that_does_not_stop_is_refused(api):
    statuses = [post(api, {"messages": []})[0] for _ in range(5)]
    assert statuses == [200, 200, 200, 400, 400]
    assert len(api.requests) == 3


def test_anything_but_messages_is_not_there(api):
    assert post(api, {}, "/v1/messages/count_tokens")[0] == 404
    assert api.requests == []


def test_what_a_request_tells_the_model_is_read_from_strings_and_blocks():
    body = {
        "messages": [
            {"role": "user", "content": "plain"},
            {"role": "user", "content": [{"type": "text", "text": "block"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Bash"}]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": "42", "is_error": True},
                    {
                        "type": "tool_result",
                        "tool_use_id": "u",
                        "content": [{"type": "text", "text": "x"}],
                    },
                ],
            },
        ]
    }
    assert list(scripted.texts(body)) == ["plain", "block", "42", "x"]
    assert list(scripted.results(body)) == [("t", True, "42"), ("u", False, "x")]

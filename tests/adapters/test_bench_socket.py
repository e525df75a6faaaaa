"""agent-memory-bench's protocol over a real socket, before a real daemon."""

import json
import socket
import threading

import pytest

from memd.adapters.bench_socket import API, BenchAdapter, serve
from tests.e2e.real_daemon import RealDaemon


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The socket of an adapter whose daemon has three memories."""
    daemon = RealDaemon(tmp_path_factory.mktemp("bench"))
    daemon.start()
    path = tmp_path_factory.mktemp("s") / "a.sock"
    with daemon.client() as memd, serve(BenchAdapter(memd), path) as server:
        texts = (
            "Deploys go through the staging cluster first.",
            "The cache lives for an hour.",
            "The staging cluster is rebuilt on Mondays.",
        )
        remembered = {"memories": [{"text": text, "project": "amb"} for text in texts]}
        with daemon.client() as own:
            own.call("memd/remember", remembered)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield path
        server.shutdown()
        thread.join()
    daemon.stop()


def ask(path, method, **params):
    """The answer to one request, which must be of the protocol's form."""
    request = {"api": API, "id": "r1", "method": method, "params": params}
    answer = talk(path, json.dumps(request).encode())
    assert (answer["api"], answer["id"]) == (API, "r1")
    assert isinstance(answer["result" if answer["ok"] else "error"], dict)
    return answer


def talk(path, line):
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(path))
        link.sendall(line + b"\n")
        said = link.makefile("rb").readline()
    return json.loads(said) if said else None


def test_it_is_ready_when_everything_can_be_found(path):
    assert ask(path, "health")["result"] == {"ready": True}


def test_a_search_returns_ranked_hits_in_exactly_the_protocols_fields(path):
    result = ask(path, "search", task_id="t", query="what is deployed to the staging cluster")[
        "result"
    ]
    assert set(result) == {"hits", "abstained", "usage"}
    assert result["abstained"] is False
    assert result["usage"] == {"input_tokens": 0, "output_tokens": 0}
    assert [hit["rank"] for hit in result["hits"]] == [1, 2]
    for hit in result["hits"]:
        assert {name: type(value) for name, value in hit.items()} == {
            "source_id": str, "text": str, "score": float, "rank": int,
        }  # fmt: skip
        assert "staging cluster" in hit["text"]
    one = ask(path, "search", task_id="t", query="staging cluster", limit=1)["result"]
    assert len(one["hits"]) == 1


def test_it_abstains_where_nothing_is_known(path):
    result = ask(path, "search", task_id="t", query="favourite holiday island of the grandmother")[
        "result"
    ]
    assert (result["hits"], result["abstained"]) == ([], True)


def test_a_reset_changes_nothing_that_is_remembered(path):
    assert ask(path, "reset", task_id="t")["result"] == {}
    assert ask(path, "search", task_id="t", query="how long does the cache live")["result"]["hits"]


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("search", {"query": "x"}, "task_id"),
        ("search", {"task_id": "t", "query": " "}, "query"),
        ("search", {"task_id": "t", "query": "x" * 32_769}, "query"),
        ("search", {"task_id": "t", "query": "x", "limit": 0}, "limit"),
        ("search", {"task_id": "t", "query": "x", "limit": True}, "limit"),
        ("reset", {"task_id": ""}, "task_id"),
        ("ingest", {"task_id": "t"}, "there is no method"),
    ],
)
def test_a_wrong_call_is_told_what_is_wrong(path, method, params, message):
    answer = ask(path, method, **params)
    assert not answer["ok"]
    assert message in answer["error"]["message"]


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"\xff", b'{"api": "other", "id": "r1"}'])
def test_a_line_that_is_no_request_is_answered_and_the_next_one_works(path, line):
    assert talk(path, line)["ok"] is False
    assert ask(path, "health")["ok"]

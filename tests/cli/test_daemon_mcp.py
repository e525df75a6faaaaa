import json

from memd import stdio_proxy


def test_the_stdio_door_answers_a_handshake(served):
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    ran = served.run("mcp", stdin=json.dumps(hello) + "\n")
    assert json.loads(ran.out.splitlines()[0])["result"]["serverInfo"]["name"] == "memd"


def test_through_the_help_page_s_door_it_is_the_same(alone, monkeypatch):
    taken = []
    monkeypatch.setattr(
        stdio_proxy, "main", lambda arguments: taken.append(list(arguments)) or 5
    )
    assert alone("mcp", "--anything").status == 5
    assert taken == [["--anything"]]

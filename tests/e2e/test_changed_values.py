"""A statement and its correction, through a real daemon: what is found, what is hidden, and why."""

import pytest
from mcp import Client

from tests.e2e.test_judging import Asking, stdio_proxy

CORRECTIONS = [
    ("sessions live in Redis; the TTL is 5 minutes", "sessions live in Redis; the TTL is 60 minutes"),
    ("the gateway retries when status == 500", "the gateway retries when status != 500"),
    ("the offset of the parser is -5", "the offset of the parser is 5"),
    ("the lexer is written in C", "the lexer is written in C++"),
    ("build the image with --no-cache", "build the image with --cache"),
    ("the entry point is src/a/b.ts", "the entry point is src/b/a.ts"),
]  # fmt: skip


def capture(client, number, prompt, answer="Noted."):
    """One turn; its last event."""
    here = {"session_id": "s1", "prompt_id": f"p{number}", "cwd": "/a"}
    events = [
        {**here, "hook_event_name": "UserPromptSubmit", "prompt": prompt},
        {**here, "hook_event_name": "Stop", "last_assistant_message": answer},
    ]
    wanted = [{"client": "claude-code", "payload": one, "directory": "/a"} for one in events]
    return client.call("memd/capture", {"events": wanted})["receipts"][-1]["seq"]


def find_decisions(client, query, seq):
    wanted = {"query": query, "project": "all", "min_event": seq, "kinds": ["decision"]}
    return client.call("memd/search", wanted)["hits"]


def test_a_corrected_decision_is_found_and_the_old_one_is_not(daemon):
    daemon.start()
    with daemon.client() as client:
        for number, (older, newer) in enumerate(CORRECTIONS):
            seq = capture(client, 2 * number, f"Decision: {older}.")
            (old,) = [hit for hit in find_decisions(client, older, seq) if older in hit["body"]]
            seq = capture(client, 2 * number + 1, f"Decision: {newer}.")
            shown = {hit["id"]: hit["body"] for hit in find_decisions(client, newer, seq)}
            assert old["id"] not in shown
            (new,) = [one for one, body in shown.items() if newer in body]
            why = client.call("memd/why", {"id": old["id"]})
            assert why["verdict"] == f"superseded by #{new} (changed-value)"
            assert "changed from" in why["relations"][0]["supersession"]["guard"]
            assert client.call("memd/why", {"id": new})["summary"]["duplicates"] == 1


@pytest.mark.parametrize("kind", ["decision", "fact", "instruction", "preference", "note"])
async def test_a_value_that_an_agent_corrects_supersedes_its_own(daemon, kind):
    daemon.start()
    async with Client(stdio_proxy(daemon), mode="auto") as client:
        ask = Asking(client)
        for older, newer in CORRECTIONS if kind == "decision" else CORRECTIONS[::3]:
            old = await ask("mem_remember", text=older, kind=kind)
            new = await ask("mem_remember", text=newer, kind=kind)
            assert (new["outcome"], new["superseded"]) == ("superseded", [old["id"]])
            again = await ask("mem_remember", text=f"{newer}.", kind=kind)
            assert (again["outcome"], again["id"]) == ("duplicate", new["id"])
            back = await ask("mem_remember", text=older, kind=kind)
            assert (back["outcome"], back["superseded"]) == ("revived", [new["id"]])

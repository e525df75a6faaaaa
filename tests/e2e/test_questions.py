"""Profiles, mistakes in them, and what was said, through a real daemon."""

import pytest

from memd.errors import BadRequest
from memd.recall.profiles import BUILT_IN

WORDS = {
    "session_id": "s1",
    "prompt_id": "p1",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "From now on the kettle is always teal.",
}
DONE = {
    "session_id": "s1",
    "prompt_id": "p1",
    "hook_event_name": "Stop",
    "last_assistant_message": "Understood: the kettle is always teal.",
}


def capture(client):
    events = [{"client": "claude-code", "payload": p, "directory": "/a"} for p in (WORDS, DONE)]
    receipts = client.call("memd/capture", {"events": events})["receipts"]
    return receipts[-1]["seq"]


def ask(client, query="kettle teal", **more):
    return client.call("memd/search", {"query": query, "project": "all", **more})


def test_every_profile_answers_and_a_mistake_in_one_costs_only_its_question(daemon):
    daemon.start()
    with daemon.client() as client:
        seq = capture(client)
        ask(client, min_event=seq)
        for name in BUILT_IN:
            assert ask(client, profile=name)["hits"][0]["score"] > 0
        with pytest.raises(BadRequest, match="profile: there is no profile 'nosuch'; there are cl"):
            ask(client, profile="nosuch")
        with pytest.raises(BadRequest, match="legs"):
            ask(client, legs=["smell"])
        with pytest.raises(BadRequest, match="include_turns"):
            ask(client, include_turns="perhaps")
        assert ask(client)["hits"]


def test_what_was_said_is_found_word_for_word_and_gone_once_forgotten(daemon):
    daemon.start()
    with daemon.client() as client:
        seq = capture(client)
        found = ask(client, min_event=seq, include_turns=True)
        assert {(turn["role"], turn["snippet"]) for turn in found["turns"]} == {
            ("user", WORDS["prompt"]),
            ("assistant", DONE["last_assistant_message"]),
        }
        assert ask(client)["turns"] == []
        ids = [hit["id"] for hit in ask(client, k=50)["hits"]]
        client.call("memd/forget", {"ids": ids, "dry_run": False})
        assert ask(client, include_turns=True)["turns"] == []

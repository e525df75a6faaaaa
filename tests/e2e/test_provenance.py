"""From what an agent read and wrote to the graph that mem_why shows, through a real daemon."""

SECRET = "not-to-be-stored"
HERE = {"session_id": "s1", "prompt_id": "p1", "transcript_path": "/t/s1.jsonl", "cwd": "/a"}


def said(event, **fields):
    return {**HERE, "hook_event_name": event, **fields}


def did(number, tool, path, response, **given):
    return said(
        "PostToolUse", tool_name=tool, tool_use_id=f"toolu_{number:016}",
        tool_input={"file_path": path, **given}, tool_response=response,
    )  # fmt: skip


EVENTS = [
    said("UserPromptSubmit", prompt="Make login use the new token store"),
    did(
        1, "Read", "/a/app/main.py",
        {"file": {"content": f"import json\nfrom . import auth\nKEY = '{SECRET}'\n"}},
    ),
    did(2, "Write", "/a/app/auth.py", {}, content="from app.store import Row\n"),
    did(3, "Write", "/a/app/store.py", {}, content="class Row: ...\n"),
    said(
        "Stop",
        last_assistant_message="We decided to keep tokens in Redis rather than SQLite because three share them.",
    ),
]  # fmt: skip


def test_what_was_read_and_written_becomes_a_graph_that_can_be_forgotten(daemon):
    daemon.start()
    with daemon.client() as client:
        events = [{"client": "claude-code", "payload": one, "directory": "/a"} for one in EVENTS]
        seq = client.call("memd/capture", {"events": events})["receipts"][-1]["seq"]
        hits = client.call(
            "memd/search", {"query": "token store", "project": "all", "min_event": seq}
        )["hits"]
        by_rule = {hit["rule"]: hit["id"] for hit in hits}

        turn = client.call("memd/why", {"id": by_rule["turn"], "depth": 2})
        between = {
            (edge["from_id"], edge["type"], edge["to_id"])
            for edge in turn["edges"]
            if edge["from_kind"] == edge["to_kind"] == "file"
        }
        assert between == {
            ("/a/app/main.py", "imports", "/a/app/auth.py"),
            ("/a/app/auth.py", "imports", "/a/app/store.py"),
        }
        assert turn["verdict"] == "current"
        assert {one["position"]["transcript"] for one in turn["sources"]} == {"/t/s1.jsonl"}
        # What a file said is not stored, only the names of what it imports.
        assert daemon.files_with(SECRET) == []

        assert turn["sources"][0]["position"]["prompt"] == "p1"

        (day,) = {
            row["begins_session"]
            for row in client.call("memd/timeline", {"days": 1, "project": "all"})["rows"][:1]
        }
        assert day

        ids = list(by_rule.values())
        client.call("memd/forget", {"ids": ids, "dry_run": False})
        assert daemon.files_with("app/start.sh") == []

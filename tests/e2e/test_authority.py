"""The user's word against an agent's, through hooks, the command line, MCP and a real daemon."""

import json
import pathlib

from mcp import Client

from tests.e2e.test_judging import Asking, stdio_proxy

PLACE = str(pathlib.Path(__file__).parent)
"""Where the agent works: what `memd mcp` inherits."""
ASKED = "Move the sessions of the ledger."
ANSWERED = "Decision: sessions move from SQLite to Redis, because three machines share them."


def hook(daemon, name, **payload):
    whole = {
        "hook_event_name": name, "session_id": "s1", "cwd": PLACE, "prompt_id": "p1", **payload
    }  # fmt: skip
    done = daemon.run("hook", name, stdin=json.dumps(whole).encode())
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def command(daemon, *words):
    done = daemon.run(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def memories(daemon, *ids):
    read = json.loads(command(daemon, "get", *map(str, ids), "--json"))
    return {one["id"]: one for one in read["memories"]}


async def test_the_agent_s_answer_contradicts_the_user_s_decision_and_the_user_settles_it(daemon):
    daemon.start()
    command(
        daemon, "remember", "We keep sessions in SQLite", "--kind", "decision", "--project", PLACE
    )
    command(daemon, "pin", "1")
    hook(daemon, "UserPromptSubmit", prompt=ASKED)
    hook(daemon, "Stop", last_assistant_message=ANSWERED)
    daemon.settle()

    first = memories(daemon, 1)[1]
    assert (first["superseded_by"], first["pinned_by"]) == (None, "user")
    assert (first["speaker"], first["authority"]) == ("user", "the user by hand")
    (other,) = first["contradicted_by"]
    assert daemon.status()["summaries"]["contradictions"] == 1
    assert f"#{other} and #1" in command(daemon, "doctor")
    shown = hook(daemon, "SessionStart", session_id="s2", source="startup")
    assert "We keep sessions in SQLite (pinned, contradicted by" in shown

    server = stdio_proxy(daemon).model_copy(update={"cwd": PLACE})
    async with Client(server, mode="auto") as client:
        ask = Asking(client)
        asked = await ask(
            "mem_judge", id=other, other=1, relation="supersedes", reason="it says so"
        )
        assert asked["outcome"] == "asked"
        assert "only the user" in await ask.refused("mem_pin", id=1, pinned=False)
        said = await ask("mem_remember", text="Sessions live in Redis", kind="decision")
        marks = await ask.marks("where do sessions live")
        assert 1 in marks
        assert marks[1]
        assert said["outcome"] == "created"
    assert memories(daemon, 1)[1]["superseded_by"] is None

    command(daemon, "pin", "--off", "1")
    command(daemon, "judge", str(other), "1", "supersedes", "--reason", "we did move")
    assert memories(daemon, 1)[1]["superseded_by"] == other

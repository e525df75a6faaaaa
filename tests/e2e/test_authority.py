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


def in_agents_shell(daemon, *words, stdin=b"", **more):
    return daemon.run(*words, stdin=stdin, environ={"CLAUDECODE": "1", **more})


def memories(daemon, *ids):
    read = json.loads(command(daemon, "get", *map(str, ids), "--json"))
    return {one["id"]: one for one in read["memories"]}


async def test_the_agent_s_answer_contradicts_the_user_s_decision_and_the_user_settles_it(daemon):
    daemon.start()
    command(
        daemon, "remember", "We keep sessions in SQLite", "--kind", "decision", "--project", PLACE
    )
    command(daemon, "pin", "1")
    in_agents_shell(daemon, "remember", ANSWERED, "--kind", "decision", "--project", PLACE)
    said = in_agents_shell(daemon, "judge", "2", "1", "contradicts", "--reason", "it says so")
    assert said.returncode == 0, said.stderr

    first = memories(daemon, 1)[1]
    assert (first["superseded_by"], first["pinned_by"]) == (None, "user")
    assert (first["speaker"], first["authority"]) == ("user", "the user by hand")
    (other,) = first["contradicted_by"]
    assert daemon.status()["summaries"]["contradictions"] == 1
    shown = hook(daemon, "SessionStart", session_id="s2", source="startup")
    assert "We keep sessions in SQLite (pinned, contradicts the later #" in shown

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


def remember(daemon, text, project=None):
    done = command(
        daemon,
        "remember",
        text,
        "--kind",
        "decision",
        "--json",
        *(["--project", project] if project else ()),
    )
    return json.loads(done)["id"]


def test_an_agent_s_shell_changes_nothing_of_the_user_s(daemon):
    daemon.start()
    mine = remember(daemon, "We keep sessions in SQLite")
    command(daemon, "pin", str(mine))
    theirs = json.loads(
        in_agents_shell(daemon, "remember", "Sessions live in Redis", "--json").stdout
    )["id"]
    refused = {
        ("pin", "--off", str(mine)): "only the user unpins it",
        ("forget", str(mine), "--yes"): "only the user can erase it",
        (
            "remember",
            "Deploy on Fridays",
            "--project",
            "global",
        ): "an agent remembers for its own project",
        ("scrub", "SQLite", "--yes"): "only the user runs it",
    }
    for words, reason in refused.items():
        done = in_agents_shell(daemon, *words)
        assert done.returncode == 1, words
        assert reason in done.stderr.decode().replace("\n", " "), words
    in_agents_shell(daemon, "judge", str(theirs), str(mine), "supersedes", "--reason", "so")
    kept = memories(daemon, mine)[mine]
    assert (kept["superseded_by"], kept["pinned_by"], kept["body"]) == (
        None,
        "user",
        "We keep sessions in SQLite",
    )

    previewed = in_agents_shell(daemon, "forget", str(theirs), "--dry-run")
    assert "would forget" in previewed.stdout.decode()
    gone = in_agents_shell(daemon, "forget", str(theirs), "--yes")
    assert (gone.returncode, "forgot" in gone.stdout.decode()) == (0, True), gone.stderr
    assert in_agents_shell(daemon, "get", str(theirs)).returncode == 1


def test_with_user_memories_an_agent_s_shell_is_the_user_s_hand(daemon):
    (daemon.home / "config.toml").write_text("[agents]\nuser_memories = true\n")
    daemon.start()
    mine = remember(daemon, "We keep sessions in SQLite")
    command(daemon, "pin", str(mine))
    done = in_agents_shell(daemon, "pin", "--off", str(mine))
    assert (done.returncode, done.stderr) == (0, b"")
    said = json.loads(
        in_agents_shell(daemon, "remember", "Sessions live in Redis", "--json").stdout
    )
    assert memories(daemon, said["id"])[said["id"]]["speaker"] == "user"
    assert in_agents_shell(daemon, "forget", str(mine), "--yes").returncode == 0

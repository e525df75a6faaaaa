"""What real hook processes bring arrives once, as what it is, where it belongs."""

import json

import apsw
import pytest

TURN = "b71a2c55-77e5-4884-aeb6-5b097c91094e"


@pytest.fixture
def running(daemon):
    return daemon.start()


def send(daemon, name, *, root=None, **fields):
    """One event through the hook, as the client starts it."""
    payload = {"session_id": "5e55", "hook_event_name": name, "cwd": "/nowhere", **fields}
    more = {"MEMD_INJECT": "0"} | ({} if root is None else {"CLAUDE_PROJECT_DIR": str(root)})
    done = daemon.run("hook", name, stdin=json.dumps(payload).encode(), environ=more)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def stored(daemon):
    vault = apsw.Connection(daemon.paths.database, flags=apsw.SQLITE_OPEN_READONLY)
    rows = vault.execute("SELECT payload FROM events ORDER BY id").fetchall()
    vault.close()
    return [json.loads(text) for (text,) in rows]


def test_two_prompts_with_one_id_by_two_hooks_the_spool_and_an_import_are_two_events(
    running, tmp_path
):
    first, second = "Keep sessions in Redis.", "No, in SQLite: Redis is one service more."
    for text in (first, first, second, second):
        send(running, "UserPromptSubmit", prompt=text, prompt_id=TURN)
    running.stop()
    send(running, "UserPromptSubmit", prompt=second, prompt_id=TURN)
    running.start()
    transcript = tmp_path / "projects" / "-nowhere" / "5e55.jsonl"
    transcript.parent.mkdir(parents=True)
    lines = [
        {
            "type": "user", "uuid": f"u{n}", "sessionId": "5e55", "cwd": "/nowhere", "promptId": TURN,
            "timestamp": "2026-08-20T10:00:00.000Z", "message": {"role": "user", "content": text},
        }
        for n, text in enumerate((first, second))
    ]  # fmt: skip
    transcript.write_text("\n".join(map(json.dumps, lines)))
    assert running.run("import", "claude-code", str(transcript)).returncode == 0
    running.wait_for(lambda: running.status()["books"]["received"] >= 6)
    assert [row["prompt"] for row in stored(running)] == [first, second]
    books = running.status()["books"]
    assert (books["stored"], books["refused"], books["balanced"]) == (2, 0, True)


def decide(daemon, where, text, *, as_root, turn):
    """A turn that makes a decision in one directory."""
    place = {"root": where} if as_root else {}
    here = {"cwd": str(where), "prompt_id": turn, **place}
    send(daemon, "UserPromptSubmit", prompt=text, **here)
    send(daemon, "Stop", last_assistant_message="All right.", **here)


def titles(daemon, where, *words):
    done = daemon.run("search", *words, "--project", str(where), "--json")
    assert done.returncode == 0, done.stderr
    return [hit["title"] for hit in json.loads(done.stdout)["hits"]]


def make_places(tmp_path):
    one, other = tmp_path / "shop", tmp_path / "depot"
    for place in (one, other):
        (place / ".git").mkdir(parents=True)
        (place / "src" / "deep").mkdir(parents=True)
    return one, other


@pytest.mark.parametrize("as_root", [True, False])
def test_a_session_that_moves_leaves_its_decisions_in_each_project(running, tmp_path, as_root):
    shop, depot = make_places(tmp_path)
    decide(running, shop, "Decision: we use Redis for sessions.", as_root=as_root, turn="t1")
    decide(running, depot, "Decision: we use Kafka for orders.", as_root=as_root, turn="t2")
    # The agent changes its directory; that moves nothing.
    decide(running, shop / "src/deep", "Decision: we use Vite for pages.", as_root=False, turn="t3")
    running.settle()
    assert any("Redis" in title for title in titles(running, shop, "Redis sessions"))
    assert not any("Kafka" in title for title in titles(running, shop, "Kafka orders"))
    assert any("Kafka" in title for title in titles(running, depot, "Kafka orders"))
    assert not any("Redis" in title for title in titles(running, depot, "Redis sessions"))
    assert any("Vite" in title for title in titles(running, shop, "Vite pages"))
    with running.client() as client:
        for place, word, strange in ((shop, "Redis", "Kafka"), (depot, "Kafka", "Redis")):
            line = client.call("memd/timeline", {"session": "5e55", "project": str(place)})
            assert word in json.dumps(line)
            assert strange not in json.dumps(line)

"""Hooks and a growing transcript give the memories that an import of the transcript gives."""

import json

from memd.transfer import parse_time_ms
from tests.e2e.real_daemon import LEDGER, RealDaemon

SESSIONS = sorted((LEDGER / "projects/-home-dev-ledger").glob("*.jsonl"))


def add_words(lines):
    """The transcript with what no hook delivers, after its first prompt: a text and a refused call."""
    at = next(n for n, line in enumerate(lines) if line["type"] == "user")
    prompt = lines[at]
    same = {name: prompt[name] for name in ("sessionId", "promptId", "timestamp", "cwd")}
    given = {"command": "git push --force"}
    call = {
        "type": "tool_use",
        "id": f"toolu_{prompt['uuid'].replace('-', '')}",
        "name": "Bash",
        "input": given,
    }
    said = (
        "The user doesn't want to proceed. To tell you how to proceed, the user said:\nnever force"
    )
    refused = {
        "type": "tool_result", "tool_use_id": call["id"], "content": said, "is_error": True,
    }  # fmt: skip
    blocks = (
        ("assistant", {"type": "text", "text": "The parser drops the last row."}),
        ("assistant", call),
        ("user", refused),
    )
    added = [
        {**same, "type": kind, "uuid": f"{prompt['uuid'][:-1]}{n}", "message": {"content": [block]}}
        for n, (kind, block) in enumerate(blocks)
    ]
    return [*lines[: at + 1], *added, *lines[at + 1 :]]


def write_until(file, lines, at):
    """Write the lines that the client has written at this time; the rest is returned."""
    for n, line in enumerate(lines):
        if (parse_time_ms(line.get("timestamp")) or 0) > at:
            return lines[n:]
        file.write(json.dumps(line) + "\n")
        file.flush()
    return []


def live_through(daemon, source, target):
    """Send a session's hooks while its transcript grows, a little behind."""
    lines = add_words([json.loads(line) for line in source.read_text().splitlines()])
    hooks = [json.loads(line) for line in (LEDGER / "hooks.jsonl").read_text().splitlines()]
    with daemon.client() as client, target.open("w") as file:
        for hook in hooks:
            if hook["stdin"]["session_id"] != source.stem:
                continue
            at = int(hook["t"] * 1000)
            lines = write_until(file, lines, at - 20)
            client.call("memd/capture", {
                "client": "claude-code", "payload": hook["stdin"] | {"transcript_path": str(target)},
                "at": at, "directory": hook["env"]["CLAUDE_PROJECT_DIR"],
            })  # fmt: skip
        write_until(file, lines, 2**62)


def memories(daemon):
    records = [json.loads(line) for line in daemon.run("export", "-").stdout.splitlines()]
    told = sorted(
        (one["kind"], one["title"], one["body"], one["rule"])
        for one in records
        if one["record"] == "summary"
    )
    words = sorted(
        one["payload"].get("text") or one["payload"].get("said")
        for one in records
        if one["record"] == "event" and one["kind"] in ("agent_text", "tool_refused")
    )
    return told, words


def is_read(daemon):
    (follower,) = [room for room in daemon.status()["rooms"] if room["name"] == "follower"]
    return not follower["due"] and follower["last_error"] is None


def test_a_session_lived_through_is_remembered_as_its_import(tmp_path):
    lived, imported = (tmp_path / name for name in ("lived", "imported"))
    files = tmp_path / "projects"
    for directory in (lived, imported, files):
        directory.mkdir()
    daemon = RealDaemon(lived)
    try:
        daemon.start()
        for source in SESSIONS:
            live_through(daemon, source, files / source.name)
        daemon.wait_for(lambda: is_read(daemon))
        daemon.settle()
        found = memories(daemon)
        books = daemon.status()["books"]
    finally:
        daemon.stop()
    daemon = RealDaemon(imported)
    try:
        daemon.start()
        assert daemon.run("import", "claude-code", str(files)).returncode == 0
        daemon.settle()
        assert found == memories(daemon)
    finally:
        daemon.stop()
    assert len(found[0]) > len(SESSIONS)
    assert found[1].count("never force") > 1
    assert books["balanced"]
    assert not books["refused"]

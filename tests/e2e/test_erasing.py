"""Forgetting and scrubbing with a real daemon: what is forgotten is in no file below its home."""

import json
import time

import pytest

from tests.e2e.real_daemon import RealDaemon

SESSION = "5f0c{:04d}-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """One daemon for all: each test has words and sessions of its own."""
    it = RealDaemon(tmp_path_factory.mktemp("erasing")).start()
    yield it
    it.stop()


def says(daemon, number, words, *, directory="/home/dev/ledger", at=None, output=""):
    """A session that asks, edits, runs and answers, all of it with these words; as its hook sends it."""
    base = {"session_id": SESSION.format(number), "cwd": directory, "prompt_id": f"p{number}"}
    tool = {"tool_name": "Bash", "tool_use_id": f"toolu_{number}"}
    payloads = [
        {"hook_event_name": "UserPromptSubmit", "prompt": f"Please look into {words} now"},
        {
            "hook_event_name": "PostToolUse",
            **tool,
            "tool_input": {"command": f"grep {words} src/a.py"},
            "tool_response": {"stdout": f"found {words} {output}", "stderr": ""},
        },
        {
            "hook_event_name": "PostToolUse",
            "tool_name": "Edit",
            "tool_use_id": f"toolu_edit_{number}",
            "tool_input": {"file_path": f"{directory}/src/{words}.py", "old_string": "a",
                           "new_string": words},
            "tool_response": {"success": True},
        },
        {
            "hook_event_name": "Stop",
            "last_assistant_message": f"We chose {words} over files because they are quicker.",
        },
    ]  # fmt: skip
    events = [
        {"client": "claude-code", "payload": base | one, "directory": directory}
        | ({} if at is None else {"at": at})
        for one in payloads
    ]
    last = call(daemon, "memd/capture", events=events)["receipts"][-1]["seq"]
    if last is not None:
        daemon.wait_for(
            lambda: "waited" not in call(daemon, "memd/search", query=words, min_event=last)
        )


def call(daemon, method, **params):
    with daemon.client() as client:
        return client.call(method, params)


def test_a_forgotten_session_is_gone_from_every_file_and_does_not_come_back(daemon):
    says(daemon, 11, "xylophone")
    says(daemon, 12, "marimba")
    assert daemon.files_with("xylophone")
    reply = call(daemon, "memd/forget", session=SESSION.format(11), dry_run=True)
    assert (reply["count"] > 0, reply["events"], reply["kept_events"]) == (True, 4, 0)
    assert reply["sessions"] == ["Please look into xylophone now"]
    assert daemon.files_with("xylophone"), "a dry run erases nothing"
    done = call(
        daemon, "memd/forget", session=SESSION.format(11), dry_run=False, token=reply["token"]
    )
    assert done["count"] == reply["count"]
    assert daemon.files_with("xylophone") == []
    assert daemon.files_with(SESSION.format(11)) == []
    assert daemon.files_with("marimba")
    says(daemon, 11, "xylophone")
    # The counts of a status may be a moment old.
    daemon.wait_for(lambda: daemon.status()["books"]["reasons"]["filtered"] == {"forgotten": 4})
    assert daemon.status()["books"]["balanced"]


def test_a_forgotten_project_is_gone_with_its_name_and_its_directory(daemon):
    says(daemon, 21, "balalaika", directory="/home/dev/quetzal")
    says(daemon, 22, "zither")
    done = call(daemon, "memd/forget", project="quetzal", dry_run=False)
    assert (len(done["sessions"]), done["events"]) == (1, 4)
    assert daemon.files_with("balalaika", "quetzal") == []
    names = [one["name"] for one in call(daemon, "memd/projects")["projects"]]
    assert "quetzal" not in names
    says(daemon, 23, "balafon", directory="/home/dev/quetzal")
    assert call(daemon, "memd/search", query="balafon", project="all")["hits"]


def test_what_waits_in_the_spool_is_forgotten_too(daemon):
    says(daemon, 31, "kazoo")
    daemon.stop()
    prompt = {
        "hook_event_name": "UserPromptSubmit", "session_id": SESSION.format(31), "prompt_id": "p9",
        "cwd": "/home/dev/ledger", "prompt": "the ocarina again",
    }  # fmt: skip
    daemon.run("hook", "UserPromptSubmit", stdin=json.dumps(prompt).encode())
    assert daemon.files_with("ocarina")
    daemon.start()
    call(daemon, "memd/forget", session=SESSION.format(31), dry_run=False)
    assert daemon.files_with("ocarina", "kazoo") == []


def test_what_is_old_is_previewed_then_cut_down_to_what_is_cited_and_why_still_cites_it(daemon):
    at = int(time.time() * 1000) - 100 * 86_400_000
    says(daemon, 61, "hurdygurdy", at=at, output="sackbut " * 200)
    assert daemon.files_with("sackbut")
    ran = daemon.run("vacuum", "--dry-run")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"would shorten 1 event older than 90 days to what is cited: 1." in ran.stdout
    assert daemon.files_with("sackbut"), "a preview changes nothing"
    (hit, *_) = call(daemon, "memd/search", query="hurdygurdy", project="all")["hits"]
    before = call(daemon, "memd/why", id=hit["id"])["sources"]
    ran = daemon.run("vacuum")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"shortened 1 event older than 90 days" in ran.stdout
    assert daemon.files_with("sackbut") == []
    after = call(daemon, "memd/why", id=hit["id"])["sources"]
    assert [source["quote"] for source in after] == [source["quote"] for source in before]
    assert daemon.status()["books"]["balanced"]
    assert b"no old events to shorten" in daemon.run("vacuum", "--dry-run").stdout

"""Whether what a session was told helped it, with a real daemon: hooks, `memd injected`, `memd status`."""

import json

import pytest

from tests.e2e.real_daemon import RealDaemon
from tests.e2e.test_authority import PLACE, command, hook

TOLD = "s1"
LINE = "Exports are written by ledger/export_worker.py, in batches of 4096 rows."


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    it = RealDaemon(tmp_path_factory.mktemp("d"))
    it.start()
    command(it, "remember", LINE, "--kind", "decision", "--project", PLACE)
    yield it
    it.stop()


def play(daemon, session):
    """A session in which the agent goes straight to the file; what it was told at its start."""
    told = hook(daemon, "SessionStart", session_id=session, source="startup")
    hook(daemon, "UserPromptSubmit", session_id=session, prompt="the nightly job is too slow")
    given = {"file_path": f"{PLACE}/ledger/export_worker.py", "old_string": "1", "new_string": "2"}
    hook(
        daemon, "PostToolUse", session_id=session, tool_name="Edit", tool_input=given,
        tool_response={"filePath": given["file_path"]}, tool_use_id=f"{session}-t1",
    )  # fmt: skip
    hook(daemon, "Stop", session_id=session, last_assistant_message="It is faster now.")
    hook(daemon, "SessionEnd", session_id=session, reason="exit")
    return told


def injected(daemon, session):
    return json.loads(command(daemon, "injected", session, "--json"))["injections"]


def capture(daemon, session, name, **fields):
    payload = {"session_id": session, "cwd": PLACE, "hook_event_name": name, **fields}
    with daemon.client() as client:
        call = {"client": "claude-code", "payload": payload, "inject": True}
        client.call("memd/capture", call)


def row_of_line(daemon, session):
    return next(one for one in injected(daemon, session) if one["id"] == 1)


def test_a_told_session_that_goes_straight_to_the_file_used_the_line(daemon):
    assert "export_worker" in play(daemon, TOLD)
    row = row_of_line(daemon, TOLD)
    assert (row["outcome"], row["evidence"]) == ("used", "ledger/export_worker.py")
    assert "used: ledger/export_worker.py" in command(daemon, "injected", TOLD)

    def read_week():
        return daemon.status()["told"]["weeks"][0]

    daemon.wait_for(lambda: read_week()["told"]["used"] == 1)
    assert read_week()["costs"]["starts"]["tokens"] > 0
    assert "1 seen used" in command(daemon, "status")

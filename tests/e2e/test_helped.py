"""Whether what a session was told helped it, with a real daemon: hooks, `memd injected`, `memd status`, sessions held back."""

import json

import pytest

from memd.injection.outcomes import is_held_back
from tests.e2e.real_daemon import PATIENT, RealDaemon
from tests.e2e.test_authority import PLACE, command, hook

SHARE = 0.5
TOLD, HELD = (
    next(f"s{n}" for n in range(99) if is_held_back(f"s{n}", SHARE) is which)
    for which in (False, True)
)
LINE = "Exports are written by ledger/export_worker.py, in batches of 4096 rows."


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    it = RealDaemon(tmp_path_factory.mktemp("d"))
    (it.home / "config.toml").write_text(f"{PATIENT}holdout = {SHARE}\n")
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


def count_judged(daemon):
    week = daemon.status()["told"]["weeks"][0]["told"]
    return sum(week[name] for name in ("used", "overruled", "ignored", "untraceable"))


def test_a_told_session_that_goes_straight_to_the_file_used_the_line(daemon):
    assert "export_worker" in play(daemon, TOLD)
    (row,) = injected(daemon, TOLD)
    assert (row["outcome"], row["evidence"]) == ("used", "ledger/export_worker.py")
    listed = command(daemon, "injected", TOLD)
    assert "1 memory, about" in listed
    assert "used: ledger/export_worker.py" in listed
    daemon.wait_for(lambda: count_judged(daemon) == 1)
    week = daemon.status()["told"]["weeks"][0]
    assert (week["told"]["lines"], week["told"]["used"]) == (1, 1)
    assert week["costs"]["starts"]["tokens"] > 0
    assert "in 7 days 1 line to 1 session: 1 seen used, 0 overruled" in command(daemon, "status")


def test_a_held_session_is_told_nothing_at_any_moment_and_compared_by_counts_alone(daemon):
    assert play(daemon, HELD) == ""
    row = next(one for one in injected(daemon, HELD) if one["id"] == 1)
    assert (row["held"], row["outcome"]) == (True, "used")
    assert "held back" in command(daemon, "injected", HELD)
    shown = command(daemon, "context", "--session", HELD)
    assert "held back" in shown
    assert hook(daemon, "SessionStart", session_id=HELD, source="compact") == ""
    words = daemon.status()["told"]["holdout"]["words"]
    assert words.startswith("1 session beside 0 that were told: too few to compare")
    access = json.loads(command(daemon, "why", "1", "--json"))["access"]
    assert (access["shown"], access["sessions"]) == (1, 1)

"""A start that was told nothing is told with a first prompt: a daemon that is late, away or killed; and why is on record."""

import json
import signal

import pytest

from tests.e2e.hooked_session import Session
from tests.e2e.test_told_at_the_moment import ids

IN_VAIN = {"inject.session_s": 1e-6}
"""No page is ready at a start; with a prompt it has all the time that it needs."""


@pytest.fixture
def noted(daemon):
    """A daemon with a rule, that is too late for every start."""
    daemon.tune(IN_VAIN)
    daemon.start()
    first = Session(daemon, "first", "/home/dev/mill")
    first.hook("SessionStart", source="startup")
    first.rule = f"#{first.notes('Flour is weighed before each delivery.', kind='instruction')}"
    return first


def begin(noted, key):
    session = Session(noted.daemon, key, noted.project)
    return session, session.hook("SessionStart", source="startup")


def injected(daemon, key):
    return daemon.run("injected", key).stdout.decode()


def test_a_start_that_was_late_is_told_with_a_first_prompt_and_once(noted):
    session, begun = begin(noted, "second")
    assert begun == ""
    assert "startup: nothing, building the context took longer" in injected(noted.daemon, "second")
    told = [session.asks(f"Grind {number} sacks of rye, please.") for number in range(3)]
    assert [ids(text) for text in told] == [{noted.rule}, set(), set()]


def test_a_start_that_a_killed_daemon_did_not_tell_is_told_by_the_next_one_with_a_later_prompt(
    noted,
):
    daemon = noted.daemon
    session, begun = begin(noted, "second")
    assert begun == ""
    daemon.stop(signal.SIGKILL)
    payload = {"session_id": "second", "cwd": noted.project, "prompt": "Grind the rye.", "hook_event_name": "UserPromptSubmit", "prompt_id": "p0"}  # fmt: skip
    assert daemon.run("hook", stdin=json.dumps(payload).encode()).stdout == b""
    daemon.start()
    daemon.wait_for(lambda: "Grind the rye" in injected(daemon, "second"))
    assert ids(session.asks("Sweep the floor of the mill.")) == {noted.rule}
    assert ids(session.asks("Oil the big wheel now.")) == set()


def test_a_session_that_began_while_no_daemon_ran_says_so_until_it_is_told(noted):
    daemon = noted.daemon
    daemon.stop(signal.SIGKILL)
    payload = {"session_id": "alone", "cwd": noted.project, "hook_event_name": "SessionStart", "source": "startup"}  # fmt: skip
    assert daemon.run("hook", stdin=json.dumps(payload).encode()).stdout == b""
    daemon.start()
    daemon.settle()
    assert "startup: nothing, no daemon answered in time when it began" in injected(daemon, "alone")
    assert ids(Session(daemon, "alone", noted.project).asks("Grind the rye.")) == {noted.rule}


def test_a_session_of_which_memd_knows_nothing_or_that_is_switched_off_says_why_it_was_told_nothing(
    daemon,
):
    daemon.start()
    for key in ("new", "off"):
        if key == "off":
            with daemon.client() as client:
                client.call("memd/switch", {"state": "capture-only", "directory": "/home/dev/new"})
        session = Session(daemon, key, "/home/dev/new")
        assert session.hook("SessionStart", source="startup") == ""
        assert session.asks("Grind the rye.") == ""
    assert "startup: nothing, nothing is known that a session begins with" in injected(
        daemon, "new"
    )
    assert "startup: nothing, " in injected(daemon, "off")
    assert "nothing is known" not in injected(daemon, "off")

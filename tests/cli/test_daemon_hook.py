import json

from memd import hook

PROMPT = {
    "session_id": "cli-hook",
    "prompt_id": "p1",
    "cwd": "/home/dev/ledger",
    "hook_event_name": "UserPromptSubmit",
    "prompt": "How do the hooks of the ledger work?",
}


def test_a_payload_is_taken_without_a_word(served):
    before = served.run("status", "--json").json["events"]["count"]
    ran = served.run("hook", stdin=json.dumps(PROMPT))
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    # At once, or by the spool if this machine is busy.
    served.wait_for(lambda status: status["events"]["count"] == before + 1)


def test_without_a_daemon_the_payload_waits_and_the_status_says_so(machine):
    ran = machine.run("hook", stdin=json.dumps(PROMPT))
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert machine.run("status", "--json").json["spool"]["files"] == 1
    assert machine.run("start").status == 0
    status = machine.wait_for(lambda status: status["events"]["count"] == 1)
    assert status["books"]["stored"] == 1
    machine.wait_for(lambda status: status["spool"]["files"] == 0)


def test_through_the_help_page_s_door_it_is_the_same(alone, monkeypatch):
    monkeypatch.setattr(hook, "main", lambda arguments: 0 if list(arguments) == ["stop"] else 9)
    assert alone("hook", "stop").status == 0

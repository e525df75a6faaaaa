"""`memd switch`: less of memd where a person wants less of it, told where one stands."""

import json

KEY = "0f0f0f0f-0000-4000-8000-0123456789ab"


def test_memd_is_switched_where_one_stands_and_back_on(machine):
    here = machine.home.name
    assert machine.run("start").status == 0
    assert machine.run("switch").out == "on everywhere\n"
    off = machine.run("switch", "off").out
    assert off == f"memd is off for project {here}\n"
    assert machine.run("switch").out.startswith(f"off          project  {here}")
    assert f"switched off for project {here}" in machine.run("status").out
    hook = {
        "session_id": KEY, "hook_event_name": "UserPromptSubmit", "prompt_id": "p",
        "prompt": "keep this", "cwd": str(machine.home),
    }  # fmt: skip
    assert machine.run("hook", "UserPromptSubmit", stdin=json.dumps(hook)).status == 0
    status = machine.wait_for(lambda status: status["books"]["received"])
    assert status["books"]["reasons"]["filtered"] == {"switched off for this project": 1}
    assert status["here"]["switch"]["captures"] is False
    assert machine.run("remember", "Said by hand.").status == 0
    assert "Said by hand" in machine.run("search", "said by hand").out

    told = machine.run("switch", "on", "--session", KEY).out
    assert told == f"memd is on for session {KEY}\n"
    assert machine.run("hook", "UserPromptSubmit", stdin=json.dumps(hook)).status == 0
    assert machine.wait_for(lambda status: status["books"]["stored"])
    told = machine.run("switch", "capture-only", "--project", ".").out
    assert told == f"memd is capture-only for project {here}\n"
    told = machine.run("switch", "on", "--project", ".").out
    assert told == f"memd is on for project {here}\n"
    rows = machine.run("switch", "--json").json
    assert [(row["scope"], row["target"]) for row in rows] == [("session", KEY)]


def test_a_mistake_says_what_to_do(memd):
    for words, said in (
        (["off", "--project", "a", "--session", "b"], "not both"),
        (["--project", "a"], "say what it should be"),
        (["off", "--session", "typo"], "there is no 'typo'"),
        (["off", "--project", "typo"], "there is no 'typo'"),
        (["sideways"], "see `memd switch --help`"),
    ):
        ran = memd("switch", *words)
        assert ran.status == 1
        assert said in ran.err
    assert memd("switch").out == "on everywhere\n"

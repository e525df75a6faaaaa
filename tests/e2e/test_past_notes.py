"""`memd notes --past`: a program that plays a model reads past sessions; a real daemon, hook and command line."""

import json
import signal
import sys
import time

import pytest

from tests.e2e.real_daemon import RealDaemon
from tests.fakes.ollama import Ollama

WRITER = """
import json, os, pathlib, sys, time
home, daemon = pathlib.Path({home!r}), os.getppid()
prompt = sys.stdin.read()
number = len(list(home.glob("prompt*")))
(home / f"prompt{{number}}").write_text(prompt)
replies = json.loads((home / "replies.json").read_text())
reply = next((said for word, said in replies.items() if word in prompt), {{"notes": []}})
if reply == "fail":
    sys.exit(3)
while reply == "wait" and os.getppid() == daemon and not (home / "go").exists():
    time.sleep(0.02)
print(reply if isinstance(reply, str) else json.dumps(reply))
"""
SAID = "Migrations by hand only, please, the generator dropped a column once."
NOTE = {"text": "Migrations are by hand only.", "kind": "instruction"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    it = RealDaemon(tmp_path_factory.mktemp("past"))
    writer = it.home / "writer.py"
    writer.write_text(WRITER.format(home=str(it.home)))
    command = json.dumps([sys.executable, str(writer)])
    (it.home / "config.toml").write_text(f"[distill]\nwriter_command = {command}\n")
    it.start()
    yield it
    it.stop()


@pytest.fixture
def replies(daemon):
    def tell(**said):
        (daemon.home / "replies.json").write_text(json.dumps(said))

    tell()
    return tell


def say(daemon, place, session, *prompts, minutes_ago=60):
    """A past session: what a user said and the agent answered."""
    (daemon.home / place).mkdir(exist_ok=True)
    now = time.time_ns() // 1_000_000
    with daemon.client() as client:
        for number, prompt in enumerate(prompts):
            at = now - minutes_ago * 60_000 + number * 1_000
            common = {"session_id": session, "cwd": str(daemon.home / place), "prompt_id": f"p{number}"}  # fmt: skip
            events = [
                {"hook_event_name": "UserPromptSubmit", "prompt": prompt},
                {"hook_event_name": "Stop", "last_assistant_message": "Done as you said."},
            ]
            for step, one in enumerate(events):
                client.call(
                    "memd/capture",
                    {"client": "claude-code", "payload": {**common, **one}, "at": at + step},
                )


def notes(daemon, place, *words, code=0):
    done = daemon.run("notes", "--past", "--project", str(daemon.home / place), *words, "--json")
    assert done.returncode == code, (done.stdout, done.stderr)
    return json.loads(done.stdout) if done.stdout else done.stderr.decode()


def sent(daemon):
    return [path.read_text() for path in sorted(daemon.home.glob("prompt*"))]


def known(daemon, place):
    with daemon.client() as client:
        found = client.call("memd/list", {"directory": str(daemon.home / place), "limit": 100})
        ids = [one["id"] for one in found["memories"]]
        got = client.call("memd/get", {"ids": ids})["memories"] if ids else []
    return [one for one in got if one["source"] == "import:past-sessions"]


@pytest.mark.usefixtures("replies")
def test_nothing_is_sent_before_the_user_has_seen_what_and_agreed(daemon):
    say(daemon, "asked", "a1", f"Add a table. {SAID}")
    before = sent(daemon)
    plan = notes(daemon, "asked", "--dry-run")
    assert (plan["sessions"], plan["calls"], plan["failed"]) == (1, 1, 0)
    assert plan["characters"] > 100
    assert [(key, calls) for key, _, _, calls in plan["listed"]] == [("a1", 1)]
    done = daemon.run("notes", "--past", "--project", str(daemon.home / "asked"))
    assert done.returncode == 1
    assert b"nothing was sent; use --yes" in done.stderr
    assert sent(daemon) == before


def test_a_note_is_proved_by_its_session_and_what_nobody_said_is_the_agent_s_text(daemon, replies):
    say(daemon, "proved", "b1", f"Add a table named zebra. {SAID}")
    invented = {"text": "Deploy on Fridays without review.", "kind": "decision", "quote": "Deploy on Fridays, always."}  # fmt: skip
    replies(zebra={"notes": [{**NOTE, "quote": SAID}, invented]})
    (step,) = notes(daemon, "proved", "--yes")["steps"]
    assert (step["outcomes"], step["proved"]) == ({"created": 2}, 1)
    assert "not in this session's record" in step["problems"][0]
    speakers = {one["body"].split("\n")[0]: one["speaker"] for one in known(daemon, "proved")}
    assert speakers == {NOTE["text"]: "told", invented["text"]: "agent"}
    assert notes(daemon, "proved", "--yes")["calls"] == 0  # read once


def test_a_useless_answer_is_told_and_can_be_read_again(daemon, replies):
    say(daemon, "useless", "c1", f"Make the walrus swim. {SAID}")
    say(daemon, "useless", "c2", f"Make the heron fly. {SAID}")
    half = {"notes": [{"kind": "instruction"}, "x", NOTE]}
    replies(walrus="I would rather not.", heron=half)
    steps = {one["session"]: one for one in notes(daemon, "useless", "--yes")["steps"]}
    assert steps["c1"]["problems"] == ["the answer is not the JSON object that was asked for"]
    assert len(steps["c2"]["problems"]) == 2
    assert steps["c2"]["outcomes"] == {"created": 1}
    plan = notes(daemon, "useless", "--dry-run")
    assert (plan["calls"], plan["failed"]) == (0, 1)
    replies(walrus={"notes": [{**NOTE, "text": "The walrus swims only by hand."}]})
    (step,) = notes(daemon, "useless", "--again", "--yes")["steps"]
    assert (step["session"], step["outcomes"]) == ("c1", {"created": 1})
    assert notes(daemon, "useless", "--dry-run")["failed"] == 0


def test_it_stops_after_so_many_calls_or_when_the_model_fails_and_goes_on_later(daemon, replies):
    for number in range(3):
        say(daemon, "stopped", f"d{number}", f"Task otter{number}. {SAID}", minutes_ago=100 - number)  # fmt: skip
    assert len(notes(daemon, "stopped", "--yes", "--calls", "1")["steps"]) == 1
    replies(otter1="fail")
    notes(daemon, "stopped", "--yes", code=1)
    assert notes(daemon, "stopped", "--dry-run")["calls"] == 2
    replies()
    daemon.stop()
    daemon.start()
    assert [one["left"] for one in notes(daemon, "stopped", "--yes")["steps"]] == [1, 0]


def test_a_daemon_that_is_killed_while_the_model_reads_goes_on_there(daemon, replies):
    for number in range(2):
        say(daemon, "killed", f"k{number}", f"Task stoat{number}. {SAID}", minutes_ago=90 - number)
    note = {"notes": [{**NOTE, "quote": SAID}]}
    replies(stoat1=note, stoat0="wait")
    project = str(daemon.home / "killed")
    run = daemon._spawn("notes", "--past", "--yes", "--project", project)
    daemon.wait_for(lambda: any("stoat0" in one for one in sent(daemon)))
    daemon.stop(signal.SIGKILL)
    assert run.wait(timeout=60) == 2  # no daemon
    (daemon.home / "go").touch()
    daemon.start()
    assert notes(daemon, "killed", "--dry-run")["calls"] == 1
    replies(stoat0=note)
    (step,) = notes(daemon, "killed", "--yes")["steps"]
    assert (step["session"], step["outcomes"], step["left"]) == ("k0", {"duplicate": 1}, 0)
    assert sum("stoat1" in one for one in sent(daemon)) == 1
    assert [one["speaker"] for one in known(daemon, "killed")] == ["told"]


@pytest.mark.parametrize("form", ["fenced", "result", "stream"])
def test_each_form_in_which_claude_p_prints_is_read(daemon, replies, form):
    say(daemon, form, f"{form}1", f"Count the okapi. {SAID}")
    said = f"One thing:\n```json\n{json.dumps({'notes': [{**NOTE, 'quote': SAID}]})}\n```"
    result = {"type": "result", "subtype": "success", "is_error": False, "result": said}
    printed = {"fenced": said, "result": json.dumps(result), "stream": '{"type": "system"}\n' + json.dumps(result)}  # fmt: skip
    replies(okapi=printed[form])
    (step,) = notes(daemon, form, "--yes")["steps"]
    assert (step["outcomes"], step["proved"]) == ({"created": 1}, 1)


def test_a_failure_that_claude_p_prints_as_a_result_leaves_the_stretch_unread(daemon, replies):
    say(daemon, "limit", "l1", f"Count the quokka. {SAID}")
    replies(quokka=json.dumps({"type": "result", "is_error": True, "result": "usage limit"}))
    assert "usage limit" in notes(daemon, "limit", "--yes", code=1)
    assert notes(daemon, "limit", "--dry-run")["calls"] == 1


def test_ollama_reads_past_sessions_and_gets_nothing_private(tmp_path):
    it = RealDaemon(tmp_path / "ollama")
    it.home.mkdir(mode=0o700)
    with Ollama() as server:
        server.pull("qwen2.5:3b")
        server.replies = [json.dumps({"notes": [{**NOTE, "quote": SAID}]})]
        (it.home / "config.toml").write_text(f'[distill]\nwriter = "ollama"\n[engines]\nurl = "{server.url}"\n')  # fmt: skip
        it.start()
        say(it, "shop", "o1", f"Add a table. {SAID}", "The wage of <private>Ann</private> and the ibex rise.")  # fmt: skip
        plan = notes(it, "shop", "--dry-run")
        assert (plan["model"], plan["calls"]) == ("ollama/qwen2.5:3b", 1)
        (step,) = notes(it, "shop", "--yes")["steps"]
        it.stop()
        asked = json.dumps(server.calls("/api/chat"))
    assert (step["outcomes"], step["proved"]) == ({"created": 1}, 1)
    assert "dropped a column" in asked
    assert not [word for word in ("Ann", "ibex") if word in asked]


@pytest.mark.usefixtures("replies")
def test_what_is_private_or_switched_off_is_never_sent(daemon):
    say(
        daemon, "private", "e1", "Paint the gecko green.",
        "The wage of <private>Ann</private> and the ibex rise.", "Feed the lemur.",
    )  # fmt: skip
    say(daemon, "off", "e2", "The narwhal is secret.")
    with daemon.client() as client:
        client.call("memd/switch", {"directory": str(daemon.home / "off"), "state": "off"})
    notes(daemon, "private", "--yes")
    assert notes(daemon, "off", "--yes")["calls"] == 0
    everything = "".join(sent(daemon))
    assert "gecko" in everything
    assert "lemur" in everything
    assert not [word for word in ("Ann", "ibex", "narwhal") if word in everything]


def test_what_was_forgotten_is_not_brought_back_and_a_long_session_is_read_in_stretches(
    daemon, replies
):
    long = [f"Point {number} of the tapir list: " + "we keep it simple here. " * 60 for number in range(12)]  # fmt: skip
    say(daemon, "long", "f1", *long)
    replies(tapir={"notes": [NOTE]})
    steps = notes(daemon, "long", "--yes")["steps"]
    assert len(steps) > 1
    (one,) = known(daemon, "long")
    with daemon.client() as client:
        client.call("memd/forget", {"ids": [one["id"]], "dry_run": False})
    say(daemon, "long", "f2", "Another tapir.", minutes_ago=30)
    (step,) = notes(daemon, "long", "--yes")["steps"]
    assert step["outcomes"] == {"forgotten": 1}
    assert known(daemon, "long") == []


@pytest.mark.usefixtures("replies")
def test_an_agent_cannot_send_the_user_s_sessions(daemon):
    say(daemon, "agents", "g1", "Count the puffins.")
    before = sent(daemon)
    done = daemon.run(
        "notes", "--past", "--yes", "--project", str(daemon.home / "agents"), environ={"CLAUDECODE": "1"}
    )  # fmt: skip
    assert done.returncode == 1
    assert b"memd notes --past" in done.stderr
    assert sent(daemon) == before

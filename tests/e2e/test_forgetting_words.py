"""Forgetting by words with a real daemon: whole words only, and then no byte of them is left."""

import json
import pathlib
import signal
import subprocess
import sys

import pytest

from tests.e2e.real_daemon import RealDaemon

SESSION = "7f0c{:04d}-0000-4000-8000-000000000000"
EVERYWHERE = ("--project", "all")
HOLD = """
import sys, apsw
reader = apsw.Connection(sys.argv[1])
reader.execute("BEGIN")
reader.execute("SELECT count(*) FROM summaries").fetchall()
print("reading", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """One daemon for all: each test has words and sessions of its own."""
    it = RealDaemon(tmp_path_factory.mktemp("words")).start()
    yield it
    it.stop()


def call(daemon, method, **params):
    with daemon.client() as client:
        return client.call(method, params)


def remember(daemon, text, **more):
    return call(daemon, "memd/remember", text=text, **{"project": "global"} | more)["id"]


def capture(daemon, number, *payloads, directory="/home/dev/ledger"):
    """A session with these payloads, of which the last may end a turn; the numbers of its events."""
    base = {"session_id": SESSION.format(number), "cwd": directory, "prompt_id": f"p{number}"}
    events = [
        {"client": "claude-code", "payload": base | one, "directory": directory} for one in payloads
    ]
    receipts = call(daemon, "memd/capture", events=events)["receipts"]
    assert {one["outcome"] for one in receipts} == {"stored"}
    return [one["seq"] for one in receipts]


def prompt(text):
    return {"hook_event_name": "UserPromptSubmit", "prompt": text}


def bash(number, command, stdout):
    return {
        "hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": f"toolu_words_{number}",
        "tool_input": {"command": command}, "tool_response": {"stdout": stdout, "stderr": ""},
    }  # fmt: skip


def stop(text):
    return {"hook_event_name": "Stop", "last_assistant_message": text}


def selected(daemon, query, **more):
    """The texts of the memories and events that a query would take."""
    found = call(daemon, "memd/forget", query=query, dry_run=True, **{"project": "all"} | more)
    return [one["title"] for one in found["summaries"]], [
        one["text"] for one in found["event_excerpts"]
    ]


class Reader:
    """Another process that reads the vault in one long transaction."""

    def __init__(self, daemon):
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, daemon.paths.database],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout.readline() == b"reading\n"

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()


@pytest.fixture
def reader(daemon):
    it = Reader(daemon)
    yield it
    if it.process.poll() is None:
        it.end()


def test_a_tool_event_that_no_memory_cites_goes_and_is_listed(daemon):
    numbers = capture(daemon, 2, bash(2, "cat notes", "the gamelan is here"), bash(3, "ls", "b.py"))
    ran = daemon.run("forget", "--query", "gamelan", "--dry-run", *EVERYWHERE)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert f"event {numbers[0]}, Bash: cat notes".encode() in ran.stdout
    plan = json.loads(daemon.run("forget", "--query", "gamelan", "--json", *EVERYWHERE).stdout)
    assert (plan["event_ids"], plan["is_dry_run"]) == ([numbers[0]], True)
    assert daemon.run("forget", "--query", "gamelan", "--yes", *EVERYWHERE).returncode == 0
    assert daemon.files_with("gamelan") == []
    assert daemon.files_with("b.py")


def test_no_byte_of_a_forgotten_word_is_left_anywhere(daemon):
    word = "qanunqan"
    first = remember(daemon, "the tea is green", kind="fact")
    second = remember(daemon, "the tea is black", kind="fact")
    call(
        daemon,
        "memd/judge",
        id=second,
        other=first,
        relation="supersedes",
        reason=f"{word} said so",
    )
    remember(daemon, f"a {word} is an instrument", tags=[word], files=[f"/x/{word}.py"])
    remember(daemon, "keyed", topic_key=f"{word}.key")
    numbers = capture(
        daemon, 4, prompt(f"Please look at {word} now"), bash(4, f"grep {word} a", f"a {word} b"),
        {"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_use_id": "toolu_words_edit",
         "tool_input": {"file_path": f"/home/dev/ledger/{word}.py", "old_string": "a", "new_string": word},
         "tool_response": {"success": True}},
        stop(f"Decision: we chose {word} over files because it is quicker."),
    )  # fmt: skip
    call(daemon, "memd/search", query=word, min_event=numbers[-1])
    with pathlib.Path(daemon.paths.log).open("a", encoding="utf-8") as log:
        log.write(json.dumps({"error": f"no {word}", "event": "x"}) + "\n")
    spool = pathlib.Path(daemon.paths.spool_dir)
    spool.mkdir(exist_ok=True, parents=True)
    line = json.dumps({"client": "x", "payload": prompt(f"the {word}")})
    (spool / ".own-00000000000000000001-4194304").write_text(line + "\n")
    call(daemon, "memd/imports/mark", path=f"/x/{word}.jsonl", size=1, modified_at=1)
    daemon.settle()
    plan = call(daemon, "memd/forget", query=word, project="all", dry_run=True)
    assert plan["count"] >= 3
    assert set(numbers) <= set(plan["event_ids"])
    assert {"judgments", "titles"} <= plan["rows"].keys()
    assert plan["lines"] == {"log": 1, "spool": 1}
    assert plan["imported_files"] == [f"/x/{word}.jsonl"]
    assert {"turns", "edges", "entities", "passages"} <= plan["attached"].keys()
    assert daemon.files_with(word), "a dry run erases nothing"
    done = call(
        daemon, "memd/forget", query=word, project="all", dry_run=False, token=plan["token"]
    )
    assert (done["count"], done["event_ids"], done["pending"]) == (
        plan["count"], plan["event_ids"], ""
    )  # fmt: skip
    assert daemon.files_with(word, word.upper(), word.title()) == []
    assert [one["id"] for one in call(daemon, "memd/get", ids=[first, second])["memories"]] == [
        first, second
    ]  # fmt: skip
    findings = call(daemon, "memd/doctor")["findings"]
    assert [one for one in findings if one["verdict"] == "problem"] == []


def test_with_an_open_reader_it_says_so_and_finishes_when_the_reader_ends(daemon, reader):
    number = remember(daemon, "the sarangi is old")
    ran = daemon.run("forget", str(number), "--yes")
    assert ran.returncode == 0
    assert f"(pid {reader.process.pid}) ends".encode() in ran.stdout
    assert daemon.files_with("sarangi"), "else this test proves nothing"
    assert selected(daemon, "sarangi") == ([], [])
    doctor = {one["name"]: one for one in call(daemon, "memd/doctor")["findings"]}
    assert doctor["erasure"]["verdict"] == "warning"
    reader.end()
    daemon.wait_for(lambda: not daemon.files_with("sarangi"))
    daemon.wait_for(
        lambda: {one["name"]: one["verdict"] for one in call(daemon, "memd/doctor")["findings"]}[
            "erasure"
        ] == "ok"
    )  # fmt: skip


def test_a_killed_daemon_finishes_what_a_reader_has_held_up(daemon):
    remember(daemon, "the rebab is lost")
    reader = Reader(daemon)
    assert call(daemon, "memd/forget", query="rebab", project="all", dry_run=False)["pending"]
    daemon.stop(signal.SIGKILL)
    daemon.start()
    assert daemon.files_with("rebab"), "else this test proves nothing"
    reader.end()
    daemon.wait_for(lambda: not daemon.files_with("rebab"))


def test_exports_and_copies_elsewhere_are_named(daemon, tmp_path):
    remember(daemon, "the oud is tuned")
    export, folder = tmp_path / "all.jsonl", tmp_path / "copies"
    assert daemon.run("export", str(export)).returncode == 0
    assert daemon.run("backup", "--to", str(folder)).returncode == 0
    ran = daemon.run("forget", "--query", "oud", "--yes", *EVERYWHERE)
    assert f"{export} is an export and may still contain it".encode() in ran.stdout
    (copy,) = folder.iterdir()
    assert f"{copy} is a backup and may still contain it".encode() in ran.stdout
    assert b"oud" in export.read_bytes()
